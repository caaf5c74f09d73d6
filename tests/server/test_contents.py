"""Whatever a resource's handler returns becomes contents."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest

from mcprelay.server.contents import resource_result
from mcprelay.server.encoding import ResultInvalid
from mcprelay.server.file import File
from mcprelay.server.results import Items
from mcprelay.types import Audio, EmbeddedResource, Image, ReadResourceResult, ResourceContents, Text

URI = "config://app"


@dataclass
class Settings:
    precision: int


def contents(value, **options):
    return resource_result(value, uri=URI, **options).contents


def one(value, **options):
    (item,) = contents(value, **options)
    return item


def text(value: str, mime_type: str) -> ResourceContents:
    return ResourceContents(uri=URI, mime_type=mime_type, text=value)


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ("plain", text("plain", "text/plain")),
        ("<p>a</p>", text("<p>a</p>", "text/plain")),
        (" <!DOCTYPE html><HTML></html>", text(" <!DOCTYPE html><HTML></html>", "text/html")),
        ("<?xml version='1.0'?><a/>", text("<?xml version='1.0'?><a/>", "application/xml")),
        ('{"a": 1}', text('{"a": 1}', "application/json")),
        ("[1, 2", text("[1, 2", "text/plain")),
        ([], text("[]", "application/json")),
        ({}, text("{}", "application/json")),
        ({"a": "ü/"}, text('{"a":"ü/"}', "application/json")),
        ({"text": "a", "lang": "de"}, text('{"text":"a","lang":"de"}', "application/json")),
        ([1, 2], text("[1,2]", "application/json")),
        (Settings(2), text('{"precision":2}', "application/json")),
        (3, text("3", "application/json")),
        (True, text("true", "application/json")),
        ({"text": "a"}, text("a", "text/plain")),
        ({"text": "a", "mimeType": "text/x"}, text("a", "text/x")),
        ({"blob": "aGk=", "text": "a"}, ResourceContents(uri=URI, mime_type="application/octet-stream", blob=b"hi")),
        (b"\x00", ResourceContents(uri=URI, mime_type="application/octet-stream", blob=b"\x00")),
        (b"%PDF-1", ResourceContents(uri=URI, mime_type="application/pdf", blob=b"%PDF-1")),
        (Text("a"), text("a", "text/plain")),
        (Image(b"a", "image/png"), ResourceContents(uri=URI, mime_type="image/png", blob=b"a")),
        (Audio(b"a", "audio/wav"), ResourceContents(uri=URI, mime_type="audio/wav", blob=b"a")),
        (ResourceContents(uri="a:b", text="x"), ResourceContents(uri="a:b", text="x")),
        (EmbeddedResource(ResourceContents(uri="a:b", text="x")), ResourceContents(uri="a:b", text="x")),
        (File(b"hi", "a.txt"), text("hi", "text/plain")),
        (io.BytesIO(b"\x00"), ResourceContents(uri=URI, mime_type="application/octet-stream", blob=b"\x00")),
        (io.StringIO("<x>"), text("<x>", "text/plain")),
    ],
    ids=repr,
)
def test_every_value_has_its_contents(value, made):
    assert one(value) == made


def test_a_declared_media_type_holds_for_everything_that_says_no_other():
    assert one("plain", mime_type="text/markdown").mime_type == "text/markdown"
    assert one({"a": 1}, mime_type="text/html").mime_type == "text/html"
    assert one(b"hi", mime_type="text/plain") == text("hi", "text/plain")
    assert one(b"\xff", mime_type="text/plain").blob == b"\xff"
    assert one({"text": "a"}, mime_type="text/x").mime_type == "text/x"
    assert one({"text": "a", "mimeType": "text/y"}, mime_type="text/x").mime_type == "text/y"


def test_a_path_is_read_as_its_name_says(tmp_path):
    (tmp_path / "a.csv").write_text("a,b")
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    assert one(tmp_path / "a.csv") == text("a,b", "text/csv")
    assert one(tmp_path / "a.png") == ResourceContents(uri=URI, mime_type="image/png", blob=b"\x89PNG")


def test_a_list_with_contents_in_it_is_several_contents():
    made = contents([ResourceContents(uri="a:b", text="x"), "plain", {"a": 1}, {"text": "t", "uri": "a:c"}])
    assert [(item.uri, item.text) for item in made] == [("a:b", "x"), (URI, "plain"), (URI, '{"a":1}'), ("a:c", "t")]


def test_a_generator_is_read_to_its_end():
    assert [item.blob for item in contents(item for item in [b"\x00", b"\x01"])] == [b"\x00", b"\x01"]
    assert [item.text for item in contents(Items(["a", {"b": 1}]))] == ["a", '{"b":1}']


def test_meta_is_given_to_contents_that_have_none():
    own = ResourceContents(uri="a:b", text="x", meta={"own": 1})
    assert [item.meta for item in contents([own, "a"], meta={"a": 1})] == [{"own": 1}, {"a": 1}]


def test_a_whole_result_passes():
    result = ReadResourceResult(contents=(), ttl_ms=5)
    assert resource_result(result, uri=URI) is result


@pytest.mark.parametrize("value", [None, object(), {"blob": "!"}, {"a": float("nan")}])
def test_what_is_no_contents_is_an_error(value):
    with pytest.raises(ResultInvalid):
        contents(value)
