"""Return annotations that say little: lists of anything, open files, types of nobody's."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import IO, Any, BinaryIO, TextIO

import pytest

from mcprelay import Client, DefinitionError, Image, Server, Text
from mcprelay.server.signature import compile_call
from mcprelay.types import EmbeddedResource

PNG = b"\x89PNG\r\n\x1a\n"


def returning(annotation: Any, value: Any) -> Server:
    server = Server("s")

    def give() -> Any:
        return value

    give.__annotations__["return"] = annotation
    server.tool(give)
    return server


@pytest.mark.parametrize("annotation", [list, list[Any], tuple, Sequence, Sequence[object], tuple[Any, ...]])
async def test_a_list_of_anything_may_hold_blocks(annotation: Any):
    async with Client(returning(annotation, [Image(PNG, "image/png"), "text"])) as client:
        assert [tool.output_schema for tool in await client.list_tools()] == [None]
        assert [type(block) for block in (await client.call_tool("give")).content] == [Image, Text]


async def test_a_list_of_anything_that_is_data_is_structured_all_the_same():
    async with Client(returning(list, [1, 2])) as client:
        assert (await client.call_tool("give")).value == [1, 2]


def test_a_list_of_something_is_published():
    def give() -> list[int]: ...

    assert compile_call(give).output_schema == {"type": "array", "items": {"type": "integer"}}


@pytest.mark.parametrize("annotation", [BinaryIO, IO[bytes], io.BytesIO, io.BufferedReader])
async def test_an_open_file_may_be_announced(annotation: Any):
    async with Client(returning(annotation, io.BytesIO(b"x"))) as client:
        assert [type(block) for block in (await client.call_tool("give")).content] == [EmbeddedResource]


async def test_an_open_text_too():
    async with Client(returning(TextIO, io.StringIO("x"))) as client:
        assert (await client.call_tool("give")).content == (Text("x"),)


async def test_a_view_of_bytes_is_bytes():
    server = returning(memoryview, memoryview(b"ab"))
    server.add_resource("a://b", lambda: memoryview(b"ab"), name="view")
    async with Client(server) as client:
        assert [type(block) for block in (await client.call_tool("give")).content] == [EmbeddedResource]
        assert (await client.read_resource("a://b")).contents[0].blob == b"ab"


class Stranger:
    """A type that JSON cannot say."""


def test_advice_for_a_result_is_not_that_for_an_argument():
    with pytest.raises(DefinitionError, match="its result: .* has no JSON form.* say `-> Any`") as caught:
        returning(Stranger, None)
    assert "Depends" not in str(caught.value)

    def take(x: Stranger) -> None: ...

    with pytest.raises(DefinitionError, match=r"parameter 'x': .* take it from Annotated\[…, Depends\(…\)\]\.$"):
        Server("s").tool(take)
