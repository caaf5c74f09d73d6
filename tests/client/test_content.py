"""Values that come as content: bytes, blocks and nothing are never an empty success."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from mcprelay import (
    Client,
    EmbeddedResource,
    File,
    Image,
    ResourceContents,
    ResourceLink,
    ResponseInvalid,
    Server,
    Text,
    ToolResult,
    define,
    revisions,
)
from mcprelay.client.content import is_content

PDF = b"%PDF-1.7 \xff"
PNG = b"\x89PNG\r\n\x1a\n"


class Empty(BaseModel):
    pass


def served() -> Server:
    server = Server("content")

    @server.tool
    def receipt() -> bytes:
        return PDF

    @server.tool
    def page() -> bytes:
        return b"<?xml version='1.0'?><a/>"

    @server.tool
    def maybe(yes: bool) -> bytes | None:
        return PDF if yes else None

    @server.tool
    def several(count: int) -> list[bytes]:
        return [PDF, PNG][:count]

    @server.tool
    def picture() -> Image:
        return Image(PNG, "image/png")

    @server.tool
    def note() -> File:
        return File(b"hello", "a.txt")

    @server.tool
    def mixed() -> ToolResult:
        return ToolResult(content=(Text("done"), Image(PNG, "image/png")))

    @server.tool
    def nothing() -> None:
        return None

    @server.tool
    def anything(value: Any) -> Any:
        return value

    server.handle(define("contract", input=Empty, output=bytes), lambda given: PDF)
    return server


@pytest.fixture(params=list(revisions.ALL))
async def client(request):
    async with Client(served(), revision=request.param) as client:
        yield client


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "expected"),
    [
        ("receipt", {}, bytes, PDF),
        ("receipt", {}, bytearray, bytearray(PDF)),
        ("receipt", {}, Annotated[bytes, "a file"], PDF),
        ("receipt", {}, bytes | None, PDF),
        ("receipt", {}, str | bytes, PDF),
        ("receipt", {}, Any, PDF),
        ("receipt", {}, list[bytes], [PDF]),
        ("page", {}, bytes, b"<?xml version='1.0'?><a/>"),
        ("contract", {}, bytes, PDF),
        ("maybe", {"yes": True}, bytes | None, PDF),
        ("maybe", {"yes": False}, bytes | None, None),
        ("several", {"count": 2}, list[bytes], [PDF, PNG]),
        ("several", {"count": 1}, list[bytes], [PDF]),
        ("several", {"count": 0}, list[bytes], []),
        ("several", {"count": 2}, tuple[bytes, bytes], (PDF, PNG)),
        ("several", {"count": 2}, Any, [PDF, PNG]),
        ("picture", {}, bytes, PNG),
        ("picture", {}, Image, Image(PNG, "image/png")),
        ("picture", {}, Image | None, Image(PNG, "image/png")),
        ("note", {}, str, "hello"),
        ("note", {}, bytes, b"hello"),
        ("mixed", {}, Image, Image(PNG, "image/png")),
        ("mixed", {}, str, "done"),
        ("mixed", {}, list[Text | Image], [Text("done"), Image(PNG, "image/png")]),
        ("mixed", {}, ToolResult, ToolResult(content=(Text("done"), Image(PNG, "image/png")))),
        ("nothing", {}, Any, None),
        ("nothing", {}, int | None, None),
        ("anything", {"value": None}, Any, None),
        ("anything", {"value": None}, object, None),
        ("anything", {"value": None}, dict[str, int] | None, None),
        ("anything", {"value": None}, str | None, None),
        ("anything", {"value": None}, type(None), None),
        ("anything", {"value": None}, Empty | None, None),
        ("anything", {"value": None}, str, "(null)"),
        ("anything", {"value": ""}, str, ""),
    ],
)
async def test_content_is_read_into_the_declared_type(client, name, arguments, kind, expected):
    value = (await client.call_tool(name, arguments, output=kind)).value
    if isinstance(value, ToolResult):
        value = ToolResult(content=value.content, structured_content=value.structured_content)
    assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("receipt", str, "an embedded resource (application/pdf, 10 bytes)"),
        ("picture", str, "a picture (image/png, 8 bytes)"),
        ("picture", int, "a picture (image/png, 8 bytes)"),
        ("picture", str | None, "a picture (image/png, 8 bytes)"),
        ("picture", Empty, "a picture (image/png, 8 bytes)"),
        ("mixed", bytes, "a text, a picture (image/png, 8 bytes)"),
        ("receipt", Image, "an embedded resource (application/pdf, 10 bytes)"),
        ("nothing", str, "neither JSON nor a text came"),
        ("nothing", bytes, "neither JSON nor a text came"),
    ],
)
async def test_what_is_no_such_value_is_refused_and_says_what_came(client, name, kind, said):
    with pytest.raises(ResponseInvalid) as caught:
        await client.call_tool(name, {}, output=kind)
    assert said in str(caught.value)


async def test_a_link_is_no_text_where_the_revision_has_links():
    server = Server("links")

    @server.tool
    def link() -> ResourceLink:
        return ResourceLink(uri="file:///a", name="a")

    async with Client(server) as client:
        assert await client.tool(link)() == ResourceLink(uri="file:///a", name="a")
        with pytest.raises(ResponseInvalid, match="what came is a link to file:///a"):
            await client.call_tool("link", output=str)


async def test_a_function_gives_the_bytes_that_it_returns(client):
    server = Server("functions")

    @server.tool
    def receipt() -> bytes:
        return PDF

    @server.tool
    def several() -> list[bytes]:
        return [PDF]

    @server.tool
    def perhaps() -> Image | None:
        return Image(PNG, "image/png")

    @server.tool
    def unsaid(value: Any):
        return value

    async with Client(server, revision=client.server.revision) as own:
        assert await own.tool(receipt)() == PDF
        assert await own.tool(several)() == [PDF]
        assert await own.tool(perhaps)() == Image(PNG, "image/png")
        assert await own.tool(unsaid)(None) is None
        assert await own.tool(unsaid)("5") == "5"


@pytest.mark.parametrize(
    ("kind", "is_so"),
    [
        (bytes, True),
        (bytes | None, True),
        (list[bytes | Image], True),
        (tuple[Image, ...], True),
        (EmbeddedResource, True),
        (str, False),
        (str | Image, False),
        (list, False),
        (dict[str, bytes], False),
        (None, False),
        (Any, False),
        (ResourceContents, False),
    ],
)
def test_types_of_content_are_those_of_bytes_and_blocks_alone(kind, is_so):
    assert is_content(kind) is is_so
