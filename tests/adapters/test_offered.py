"""What a relay has let through, every adapter can show."""

import importlib

import pytest

from mcprelay.adapters.offered import form, offered
from mcprelay.relay import Limits, Relay
from mcprelay.wire.dialect import gemini, openai_strict, plain
from mcprelay.wire.reference import SchemaRefused
from mcprelay.wire.schema import SchemaLimits, Validator
from tests.relay.far import Far

LIMITS = SchemaLimits(schema_depth=200)


def nested(levels):
    schema = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize("dialect", [plain, openai_strict, gemini])
@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        {"type": ["object", "null"]},
        {"$ref": "#/nope"},
        {"properties": {"a": {"$ref": "https://x.example/s"}}},
        {"properties": []},
        {"properties": {"a": True, "b": False}},
        {"properties": {"c": {"$ref": "#"}}},
        {"properties": {"a": {"pattern": "("}}},
        {"anyOf": [{"required": ["a"]}]},
        {"$defs": {"a": {"$dynamicAnchor": "x"}}, "properties": {"q": {"$dynamicRef": "#x"}}},
        {"definitions": {"x": {"type": "string"}}, "properties": {"a": {"$ref": "#/definitions/x"}}},
        nested(25),
        nested(60),
        nested(250),
    ],
    ids=lambda schema: str(schema)[:40],
)
def test_a_schema_that_arguments_can_be_checked_against_can_be_shown(schema, dialect):
    try:
        Validator(schema, limits=LIMITS)
    except SchemaRefused:
        with pytest.raises(SchemaRefused):
            dialect(schema, limits=LIMITS)
    else:
        dialect(schema, limits=LIMITS)


def test_a_mapping_of_guarded_tools_is_no_tool_set(tools):
    with pytest.raises(TypeError, match=r"await relay\.tools"):
        offered(dict(tools.items()))


def wide(number, *, members):
    properties = {f"p{i}": {"type": "string"} for i in range(members)}
    return {"name": f"t{number}", "inputSchema": {"type": "object", "properties": properties}}


async def test_a_form_is_made_once_however_much_there_is_of_other_forms():
    # given tools whose forms together are more than any room that is shared
    made = []

    def dialect(schema, *, limits, formed):
        made.append(formed)
        return plain(schema, limits=limits, formed=formed)

    async with Relay(
        servers={"far": {"target": Far(*(wide(i, members=2_200) for i in range(12)), ttl_ms=60_000), "allow": "*"}},
        lock=None,
    ) as relay:
        # when they are converted turn after turn, each of which asks for the tools again
        for _ in range(3):
            tools = offered(await relay.tools())
            for tool in tools:
                form(tool, dialect)
    # then each of them was converted once, without looking again at what its relay has looked at
    assert made == ["known"] * 12


async def test_what_an_sdk_changes_in_a_form_changes_nothing_of_ours():
    async with Relay(servers={"far": {"target": Far(wide(0, members=1)), "allow": "*"}}, lock=None) as relay:
        (tool,) = offered(await relay.tools())
        form(tool, plain).schema["properties"].clear()
        assert form(tool, plain).schema == wide(0, members=1)["inputSchema"]


async def test_a_program_that_changes_the_schema_of_its_tool_changes_no_form():
    async with Relay(servers={"far": {"target": Far(wide(0, members=1)), "allow": "*"}}, lock=None) as relay:
        (tool,) = offered(await relay.tools())
        tool.input_schema["properties"].clear()
        assert form(tool, plain).schema == wide(0, members=1)["inputSchema"]


async def test_a_form_of_what_nests_deeper_than_can_be_walked_is_refused():
    deep = {"name": "deep", "inputSchema": nested(110)}
    server = {"target": Far(deep), "allow": "*"}
    async with Relay(servers={"far": server}, limits=Limits(schema_depth=500, message_depth=1000), lock=None) as relay:
        (tool,) = offered(await relay.tools())
        with pytest.raises(SchemaRefused, match="schema_depth"):
            form(tool, plain)


@pytest.mark.parametrize("arguments", ["\ud800", '{"name": "\ud800"}'])
async def test_half_a_character_in_arguments_is_answered(tools, arguments):
    pytest.importorskip("openai")
    adapter = importlib.import_module("mcprelay.adapters.openai")
    answer = await adapter.call(tools, "house__greet", arguments)
    assert answer.failed
