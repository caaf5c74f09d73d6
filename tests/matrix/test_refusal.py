"""What goes wrong, and with which code each revision says so."""

import pytest

from mcprelay import RemoteError, ToolError
from mcprelay.revisions import Fault, Feature
from tests.matrix.conftest import House

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def code_of(call) -> int:
    with pytest.raises(RemoteError) as caught:
        await call
    return caught.value.code


async def test_a_tool_that_says_no_is_an_error_that_a_model_may_read(house: House):
    with pytest.raises(ToolError, match="not today"):
        await house.client.call_tool("refuse")


async def test_a_tool_that_breaks_gives_nothing_away(house: House):
    with pytest.raises(ToolError) as caught:
        await house.client.call_tool("broken")
    assert "secret" not in str(house.tape.said("server"))
    assert "reference" in str(caught.value)


async def test_an_unknown_tool_is_a_protocol_error(house: House):
    assert await code_of(house.client.call_tool("nobody")) == house.revision.code(Fault.INVALID_PARAMS)


@pytest.mark.clause("handshake.resources.not-found")
async def test_an_unknown_resource_has_the_code_of_the_revision(house: House):
    code = await code_of(house.client.read_resource("house://nowhere"))
    assert code == house.revision.code(Fault.RESOURCE_NOT_FOUND)


async def test_an_unknown_prompt_is_a_protocol_error(house: House):
    assert await code_of(house.client.get_prompt("nobody")) == house.revision.code(Fault.INVALID_PARAMS)


async def test_a_prompt_without_its_argument_is_a_protocol_error(house: House):
    assert await code_of(house.client.get_prompt("review")) == house.revision.code(Fault.INVALID_PARAMS)


async def test_a_resource_that_breaks_gives_nothing_away(house: House):
    code = await code_of(house.client.read_resource("house://broken"))
    assert code == house.revision.code(Fault.INTERNAL)
    assert "secret" not in str(house.tape.said("server"))


async def test_an_unknown_method_is_a_protocol_error(house: House):
    assert await code_of(house.client.request(house.tape.unheard)) == house.revision.code(Fault.METHOD_NOT_FOUND)


async def test_arguments_that_do_not_fit_are_refused_where_the_revision_wants_it(house: House):
    if house.has(Feature.TOOL_INPUT_ERRORS):
        with pytest.raises(ToolError, match="b"):
            await house.client.call_tool("add", {"a": 1})
    else:
        assert await code_of(house.client.call_tool("add", {"a": 1})) == house.revision.code(Fault.INVALID_PARAMS)


async def test_a_cursor_that_nobody_gave_is_refused(house: House):
    code = await code_of(house.client.request("tools/list", {"cursor": "made up"}))
    assert code == house.revision.code(Fault.INVALID_PARAMS)
