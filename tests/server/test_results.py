"""Whatever a tool returns becomes content."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from mcprelay import Limits, Server, define
from mcprelay.errors import LimitExceeded
from mcprelay.server.encoding import ResultInvalid
from mcprelay.server.file import File, is_textual, read_stream, sniff
from mcprelay.server.results import Items, collect, content_of, tool_result
from mcprelay.types import Audio, EmbeddedResource, Image, ResourceContents, ResourceLink, Text, ToolResult
from tests.server.ask import call, error, result

PNG = b"\x89PNG\r\n\x1a\nrest"
LINK = ResourceLink(uri="a:b", name="b")


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("a", ["a"]),
        ("", [""]),
        (None, ["(null)"]),
        (True, ["true"]),
        (3, ["3"]),
        (2.5, ["2.5"]),
        ([], ["[]"]),
        ([1, "a", None], ['[1,"a",null]']),
        (["a", "b"], ['["a","b"]']),
        ({"a": 1}, ['{"a":1}']),
        ({"ä": "/"}, ['{"ä":"/"}']),
        (Point(1), ['{"x":1}']),
        ((1, 2), ["[1,2]"]),
        ((item for item in ["a", 1]), ["a", "1"]),
        (range(2), ["[0,1]"]),
    ],
    ids=repr,
)
def test_data_becomes_text(value, texts):
    assert [block.text for block in content_of(value)] == texts


@pytest.mark.parametrize(
    "block",
    [
        Text("a"),
        Image(b"a", "image/png"),
        Audio(b"a", "audio/wav"),
        LINK,
        EmbeddedResource(ResourceContents(uri="a:b", text="a")),
    ],
)
def test_blocks_are_content_as_they_are(block):
    assert content_of(block) == (block,)
    assert content_of([block, "a", 3, None]) == (block, Text("a"), Text("3"), Text("(null)"))


def test_a_list_with_a_block_in_it_is_content_item_by_item():
    assert content_of(["a", {"b": 1}, LINK, [1, 2]]) == (Text("a"), Text('{"b":1}'), LINK, Text("[1,2]"))


def test_bytes_are_what_they_begin_like():
    assert content_of(PNG) == (Image(PNG, "image/png"),)
    assert content_of(b"RIFF....WAVE") == (Audio(b"RIFF....WAVE", "audio/wav"),)
    (other,) = content_of(b"\x00\x01")
    assert other.resource.blob == b"\x00\x01"
    assert other.resource.mime_type == "application/octet-stream"


def test_files_are_pictures_sound_or_resources(tmp_path):
    for name, data in [("a.png", PNG), ("a.json", b'{"a":1}'), ("a.bin", b"\xff"), ("a b.txt", "ä".encode())]:
        (tmp_path / name).write_bytes(data)
    assert content_of(tmp_path / "a.png") == (Image(PNG, "image/png"),)
    (json_file,) = content_of(tmp_path / "a.json")
    assert json_file.resource == ResourceContents(uri="attachment:a.json", mime_type="application/json", text='{"a":1}')
    (text_file,) = content_of(File.from_path(tmp_path / "a b.txt"))
    assert (text_file.resource.uri, text_file.resource.text) == ("attachment:a%20b.txt", "ä")
    (binary,) = content_of([File.from_path(tmp_path / "a.bin", mime_type="application/x-own")])
    assert (binary.resource.blob, binary.resource.mime_type) == (b"\xff", "application/x-own")
    assert Image.from_path(tmp_path / "a.png") == Image(PNG, "image/png")


def test_a_file_whose_name_tells_nothing_is_text_where_it_reads_as_text(tmp_path):
    for name, data in [("README", "ä\n".encode()), ("empty", b""), ("core", b"a\0b"), ("latin", b"\xe4")]:
        (tmp_path / name).write_bytes(data)
    contents = {name: content_of(tmp_path / name)[0].resource for name in ("README", "empty", "core", "latin")}
    assert (contents["README"].mime_type, contents["README"].text) == ("text/plain", "ä\n")
    assert contents["empty"].text == ""
    assert (contents["core"].mime_type, contents["core"].blob) == ("application/octet-stream", b"a\0b")
    assert contents["latin"].blob == b"\xe4"
    assert content_of(b"abc")[0].resource.blob == b"abc", "bytes stay bytes"


def test_a_file_that_claims_to_be_text_and_is_not_is_bytes():
    assert File(b"\xff\xfe", "a.txt").contents().blob == b"\xff\xfe"


@pytest.mark.parametrize("made", ["stream", "path", "list"])
async def test_a_server_reads_no_more_of_a_file_than_file_bytes(made, tmp_path):
    path = tmp_path / "long.bin"
    path.write_bytes(b"x" * 11)
    server = Server("files", limits=Limits(file_bytes=10))

    def file() -> Any:
        return {"stream": io.BytesIO(b"x" * 11), "path": path, "list": [path]}[made]

    server.add_tool(file)
    server.add_resource("a:file", file)
    contract = define("promised", input=Point, output=type(None))
    server.handle(contract, lambda _: file())
    assert "file_bytes=10" in await call(server, "file")
    assert "file_bytes=10" in await call(server, "promised", {"x": 1})
    assert "file_bytes=10" in (await error(server, "resources/read", {"uri": "a:file"}))["message"]
    path.write_bytes(b"x" * 10)
    if made != "stream":
        assert len((await result(server, "tools/call", {"name": "file", "arguments": {}}))["content"]) == 1


def test_open_files_are_read_and_closed_within_a_bound():
    stream = io.BytesIO(PNG)
    assert content_of(stream) == (Image(PNG, "image/png"),)
    assert stream.closed
    assert content_of(io.StringIO("text")) == (Text("text"),)
    long = io.BytesIO(b"x" * 11)
    with pytest.raises(LimitExceeded, match="file_bytes=10"):
        content_of(long, file_bytes=10)
    assert long.closed


def test_a_stream_that_gives_less_than_asked_is_read_on():
    class Dribble(io.RawIOBase):
        def __init__(self):
            super().__init__()
            self.left = [b"ab", b"cd", b""]

        def read(self, _size=-1):
            return self.left.pop(0) if self.left else b""

    assert read_stream(Dribble(), limit=10) == b"abcd"


def test_structures_are_structured_content_too():
    result = tool_result({"a": 1})
    assert msgspec.json.decode(result.structured_content) == {"a": 1}
    assert msgspec.json.decode(tool_result([1]).structured_content) == [1]
    for value in ("a", 3, None, True, LINK, [LINK], b"x"):
        assert tool_result(value).structured_content is UNSET


def test_a_whole_result_passes():
    result = ToolResult(content=(Text("a"),))
    assert tool_result(result) is result


@pytest.mark.parametrize("value", [object(), {"a": object()}, [float("nan")], {"a": {1: float("inf")}}])
def test_what_has_no_json_form_is_an_error(value):
    with pytest.raises(ResultInvalid):
        tool_result(value)


async def test_asynchronous_generators_are_collected():
    async def generate():
        yield "a"
        yield LINK

    assert content_of(await collect(generate())) == (Text("a"), LINK)


async def test_what_a_generator_gives_is_content_item_by_item_even_if_it_is_all_data():
    async def generate():
        yield "a"
        yield {"b": 1}

    assert content_of(await collect(generate())) == (Text("a"), Text('{"b":1}'))
    assert content_of(Items()) == ()
    assert tool_result(Items(["a"])).structured_content is UNSET


class Odd:
    """Stands for a library's own scalar."""

    __module__ = "numpy"

    def tolist(self) -> Any:
        return 3.5


def test_values_of_well_known_libraries_are_plain_values():
    assert content_of({"a": Odd()}) == (Text('{"a":3.5}'),)


@pytest.mark.parametrize(
    ("mime_type", "textual"),
    [
        ("text/plain; charset=utf-8", True),
        ("application/json", True),
        ("application/ld+json", True),
        ("image/svg+xml", True),
        ("image/png", False),
        ("application/octet-stream", False),
    ],
)
def test_textual_media_types(mime_type, textual):
    assert is_textual(mime_type) is textual


def test_unknown_bytes_have_no_media_type():
    assert sniff(b"hello") is None
    assert sniff(b"") is None
