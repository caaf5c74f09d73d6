"""What the values of the protocol do beyond holding their fields."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.types import Audio, Image, ResourceContents, SamplingResult, Text, ToolUse, guess_mime_type


@given(st.text(alphabet="`a\n"), st.sampled_from(["", "python"]))
def test_code_cannot_end_its_own_fence(source: str, lang: str):
    fence, *lines = Text.code(source, lang).text.split("\n")
    end = lines.pop()
    assert fence == end + lang
    assert len(end) >= 3
    assert set(end) == {"`"}
    assert end not in "\n".join(lines)
    assert "\n".join(lines) == source


@pytest.mark.parametrize(("kind", "name", "guessed"), [(Image, "a.jpeg", "image/jpeg"), (Audio, "a.mp3", "audio/mpeg")])
def test_a_file_is_read_at_once_and_its_type_guessed_from_its_name(tmp_path: Path, kind, name, guessed):
    path = tmp_path / name
    path.write_bytes(b"\x00\x01")
    block = kind.from_path(path)
    path.unlink()
    assert (block.data, block.mime_type) == (b"\x00\x01", guessed)


@pytest.mark.parametrize(("kind", "default"), [(Image, "image/png"), (Audio, "audio/wav")])
def test_a_name_that_says_nothing_gets_a_usual_type_unless_one_is_given(tmp_path: Path, kind, default):
    path = tmp_path / "nameless"
    path.write_bytes(b"x")
    assert kind.from_path(path).mime_type == default
    assert kind.from_path(str(path), mime_type="a/b").mime_type == "a/b"
    assert guess_mime_type("x.nothing-known", "d/d") == "d/d"


def test_what_a_model_said_is_its_text_however_many_blocks_came():
    one = SamplingResult(role="assistant", content=Text("hi"), model="m")
    two = SamplingResult(
        role="assistant", content=(Text("a"), ToolUse(id="1", name="t", input={}), Text("b")), model="m"
    )
    assert (one.blocks, one.text) == ((Text("hi"),), "hi")
    assert (len(two.blocks), two.text) == (3, "ab")


def test_contents_are_text_or_bytes():
    assert ResourceContents(uri="a:b", text="x").blob is None
