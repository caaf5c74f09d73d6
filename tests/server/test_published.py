"""What a tool gives is what it publishes: return types of every kind, in every revision, there and back."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcprelay import Client, Context, Server, ToolError, ToolResult, revisions
from mcprelay.proxy import proxy

REVISIONS = tuple(revisions.ALL)
STRUCTURED = tuple(name for name, revision in revisions.ALL.items() if revision.has(revisions.Feature.STRUCTURED))


@dataclasses.dataclass
class Circle:
    radius: float


@dataclasses.dataclass
class Square:
    side: int
    name: str = "square"


class Leaf(msgspec.Struct, tag=True):
    value: int = 0


class Branch(msgspec.Struct, tag=True):
    left: Leaf | Branch
    right: Leaf | Branch | None = None


class Wrapping(msgspec.Struct):
    """A class that looks like the wrapping of a value."""

    result: int


numbers = st.integers(-(2**53), 2**53)
circles = st.builds(Circle, st.floats(allow_nan=False, allow_infinity=False, width=32))
squares = st.builds(Square, numbers, st.text(max_size=5))
leaves = st.builds(Leaf, numbers)
trees = st.recursive(leaves, lambda inner: st.builds(Branch, inner, st.none() | inner), max_leaves=5)
words = st.dictionaries(st.sampled_from(["a", "result", ""]), numbers, max_size=3)

CASES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "one class": (Square, squares),
    "a class that looks wrapped": (Wrapping, st.builds(Wrapping, numbers)),
    "a mapping": (dict[str, int], words),
    "two classes": (Leaf | Branch, trees),
    "a class or nothing": (Square | None, st.none() | squares),
    "a class that looks wrapped, or nothing": (Wrapping | None, st.none() | st.builds(Wrapping, numbers)),
    "a mapping or a number": (dict[str, int] | int, words | numbers),
    "a mapping or nothing": (dict[str, int] | None, st.none() | words),
    "nothing, a number or a list": (list[int] | int | None, st.none() | numbers | st.lists(numbers, max_size=3)),
    "nested": (list[Square | None], st.lists(st.none() | squares, max_size=3)),
    "with a remark": (Annotated[Square | None, "remark"], st.none() | squares),
    "a number": (int, numbers),
    "a text or nothing": (str | None, st.none() | st.text("abc ", max_size=5)),
}


def fitting(schema: dict[str, Any] | None, value: Any) -> bool:
    """Whether a value is what a schema says."""
    assert schema is not None, "it is published"
    return jsonschema_rs.is_valid(schema, value)


@pytest.mark.parametrize("name", REVISIONS)
@pytest.mark.parametrize("case", CASES)
async def test_structured_content_is_what_the_schema_says_and_comes_back_as_the_value_that_it_was(
    case: str, name: str
) -> None:
    kind, values = CASES[case]
    given_now: list[Any] = []
    server = Server("s")

    def give() -> Any:
        return given_now[0]

    give.__annotations__["return"] = kind
    server.tool(give)
    examples: list[Any] = []

    @settings(max_examples=20, database=None, derandomize=True)
    @given(values)
    def collected(value: Any) -> None:
        examples.append(value)

    collected()
    async with Client(server, revision=name) as client:
        (tool,) = await client.list_tools()
        for value in examples:
            given_now[:] = [value]
            result = await client.call_tool("give", output=kind)
            assert result.value == value
            if name in STRUCTURED:
                assert fitting(tool.output_schema, result.structured)


@pytest.mark.parametrize("name", STRUCTURED)
async def test_a_schema_that_the_author_wrote_decides_as_one_that_was_made(name: str) -> None:
    link = {"type": "object", "properties": {"next": {"$ref": "#"}, "old": {"$ref": "#/definitions/n"}}}
    chain = {"anyOf": [{"type": "null"}, link], "definitions": {"n": {"type": "integer"}}}
    server = Server("s")

    @server.tool(output_schema=chain)
    def give() -> Any:
        return {"next": {"next": None, "old": 1}}

    async with Client(server, revision=name) as client:
        (tool,) = await client.list_tools()
        structured: Any = (await client.call_tool("give")).structured
        assert fitting(tool.output_schema, structured)
        inner = structured if name == revisions.NEWEST.name else structured["result"]
        inner["next"]["old"] = "x"
        assert not fitting(tool.output_schema, structured), "references are still followed"


@pytest.mark.parametrize("name", STRUCTURED)
async def test_what_middleware_makes_fits_what_its_tool_publishes(name: str) -> None:
    server = Server("s")

    @server.tool
    def give() -> Square | None:
        return None

    @server.middleware
    async def other(call: Any, call_next: Any) -> Any:
        if call.method.name != "tools/call":
            return await call_next(call)
        return ToolResult(content=(), structured_content={"side": 1, "name": "n"})

    async with Client(server, revision=name) as client:
        (tool,) = await client.list_tools()
        result = await client.call_tool("give", output=Square | None)
        assert fitting(tool.output_schema, result.structured)
        assert result.value == Square(1, "n")


@pytest.mark.parametrize("name", STRUCTURED)
@pytest.mark.parametrize("behind", STRUCTURED)
async def test_a_proxy_passes_on_what_fits_in_either_era(behind: str, name: str) -> None:
    server = Server("behind")

    @server.tool
    def give(nothing: bool) -> Square | None:
        return None if nothing else Square(1)

    async with Client(proxy(Client(server, revision=behind)), revision=name) as client:
        (tool,) = await client.list_tools()
        for nothing in (True, False):
            result = await client.call_tool("give", {"nothing": nothing})
            assert fitting(tool.output_schema, result.structured)


@pytest.mark.parametrize("name", STRUCTURED)
async def test_what_a_tool_says_beside_its_refusal_is_held_against_no_schema(name: str) -> None:
    server = Server("s")

    @server.tool
    async def give(ctx: Context) -> Square | None:
        raise ToolError("no", structured={"code": 1})

    async with Client(server, revision=name) as client:
        with pytest.raises(ToolError) as refused:
            await client.call_tool("give")
    assert refused.value.structured == {"code": 1}
