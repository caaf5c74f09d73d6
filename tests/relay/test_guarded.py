"""A guarded tool is what was pinned, whatever an adapter does to what it was handed."""

import pytest

from mcprelay.relay import Relay
from tests.relay.far import Far, servers

STRICT = {
    "name": "search",
    "inputSchema": {
        "type": "object",
        "properties": {"q": {"type": "string", "pattern": "^[a-z]+$"}},
        "required": ["q"],
        "additionalProperties": False,
    },
}


async def test_what_an_adapter_does_to_a_schema_changes_no_check_and_no_other_tool():
    async with Relay(servers=servers(far=Far(STRICT))) as relay:
        one, other = [(await relay.tools())["far__search"] for _ in range(2)]
        assert one.input_schema is one.input_schema
        one.input_schema.pop("additionalProperties")
        one.input_schema["properties"].clear()
        one.input_schema["required"].clear()
        assert other.input_schema == STRICT["inputSchema"]
        for tool in (one, other, (await relay.tools())["far__search"]):
            assert (await tool({"zz": 1})).code == "arguments"
            assert (await tool("abc")).code is None


@pytest.mark.parametrize("field", ["name", "description", "input_schema", "server", "tool", "digest"])
async def test_nothing_of_a_guarded_tool_can_be_set(field):
    async with Relay(servers=servers(far=Far(STRICT))) as relay:
        tool = (await relay.tools())["far__search"]
        before = getattr(tool, field)
        with pytest.raises(AttributeError):
            setattr(tool, field, "b")
        with pytest.raises(AttributeError):
            delattr(tool, field)
        assert getattr(tool, field) == before
