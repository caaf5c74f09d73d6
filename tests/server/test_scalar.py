"""Scalars: a text, an integer or a boolean that nobody looks at is its own JSON until it is sent."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay import Client, Server
from mcprelay.revisions import ALL, NEWEST
from mcprelay.server.encoding import ResultInvalid, encode_scalar
from mcprelay.server.face import Face
from mcprelay.server.scalar import Scalar, scalar
from mcprelay.server.signature import compile_call
from mcprelay.types import Text


@pytest.mark.parametrize("revision", ALL.values(), ids=lambda revision: revision.name)
@given(value=st.one_of(st.text(), st.integers(), st.booleans()))
def test_a_scalar_is_said_as_the_whole_result_that_it_stands_for(revision, value):
    outcome = scalar(value, encode_scalar(value))
    whole = revision.shape_output(outcome.whole(), {"type": "string"})

    said = json.loads(Face(Server("x"), revision).say(outcome))
    begins = {name for name in ("resultType", "_meta") if said.pop(name, None) is not None}
    assert begins == ({"resultType", "_meta"} if revision is NEWEST else set())
    assert said == json.loads(msgspec.json.encode(whole))


@given(value=st.one_of(st.text(), st.integers(), st.booleans()))
def test_a_scalar_that_a_tool_returns_comes_to_the_same_as_a_result_that_is_made_the_long_way(value):
    async def tool():
        """A tool."""

    tool.__annotations__["return"] = type(value)
    output = compile_call(tool).output
    outcome = output.outcome(value)
    assert type(outcome) is Scalar
    assert outcome.whole() == output.result(value)


def test_a_text_is_said_in_its_own_words_and_another_scalar_as_json():
    assert scalar('say "hi"\n', encode_scalar('say "hi"\n')).whole().content == (Text('say "hi"\n'),)
    assert scalar(True, b"true").whole().content == (Text("true"),)
    assert (scalar(7, b"7").text, scalar(7, b"7").data) == (b'"7"', b"7")


def test_half_a_surrogate_pair_is_no_outcome():
    with pytest.raises(ResultInvalid):
        encode_scalar("\ud800")


async def test_middleware_sees_a_whole_result_where_a_handler_gave_a_scalar():
    seen = []

    server = Server("x")

    @server.middleware
    async def look(call, call_next):
        outcome = await call_next(call)
        if call.method.name == "tools/call":
            seen.append(outcome)
        return outcome

    @server.tool
    async def greet(name: str) -> str:
        return f"Hello {name}"

    async with Client(server) as client:
        result = await client.call_tool("greet", {"name": "Ada"})

    assert result.value == "Hello Ada"
    assert [outcome.content for outcome in seen] == [(Text("Hello Ada"),)]
    assert [bytes(outcome.structured_content) for outcome in seen] == [b'"Hello Ada"']


async def test_middleware_of_the_outer_server_sees_a_whole_result_of_a_mounted_one():
    seen = []

    inner = Server("inner")

    @inner.tool
    async def count(text: str) -> int:
        return len(text)

    outer = Server("outer")

    @outer.middleware
    async def look(call, call_next):
        outcome = await call_next(call)
        seen.append(type(outcome).__name__)
        return outcome

    outer.mount("in", inner)
    async with Client(outer) as client:
        (tool,) = await client.list_tools()
        result = await client.call_tool(tool.name, {"text": "four"})

    assert result.value == 4
    assert seen[-1] == "ToolResult"
