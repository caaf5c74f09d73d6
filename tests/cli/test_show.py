"""What a server writes, on the screen, in a pipe and in a file."""

import io
import json
from contextlib import redirect_stdout

import pytest

from mcprelay.cli import show
from mcprelay.types import Completion, Image, Prompt, Resource, ResourceLink, Text, Tool

HOSTILE = "\x1b]0;owned\x07\x9b31m\u202edrowssap\u200b\U000e0041"
"""A title for the terminal, a color by one character of C1, a text turned round, and what nobody sees."""


class _Screen(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def screen(request):
    return _Screen(terminal=request.param)


def harmless(text: str) -> bool:
    ours = text.replace("\x1b[1m", "").replace("\x1b[0m", "")
    return all(char.isprintable() or char == "\n" for char in ours)


def test_lists_are_visible_everywhere_also_in_a_file_that_is_shown_later(screen):
    schema = {"type": "object", "properties": {HOSTILE: {"type": HOSTILE, "description": HOSTILE}}}
    with redirect_stdout(screen):
        show.tools([Tool(name=HOSTILE, description=HOSTILE, input_schema=schema)])
        show.prompts([Prompt(name=HOSTILE, description=HOSTILE)])
        show.resources([Resource(uri=HOSTILE, name=HOSTILE, description=HOSTILE)], [])
    assert harmless(screen.getvalue())
    assert "⟨U+202E" in screen.getvalue()


def test_json_says_the_same_and_hides_nothing(screen):
    said = {HOSTILE: [HOSTILE, "grün 世界 🙂"]}
    with redirect_stdout(screen):
        show.as_json(said)
    whole = screen.getvalue()
    assert harmless(whole)
    assert json.loads(whole) == said
    assert "grün 世界 🙂" in whole
    with redirect_stdout(screen):
        show.as_json_line(said)
    assert harmless(screen.getvalue())


def test_what_was_asked_for_goes_into_a_pipe_as_it_is(screen):
    with redirect_stdout(screen):
        show.blocks([Text(HOSTILE)])
    assert harmless(screen.getvalue()) is screen.isatty()
    assert (HOSTILE in screen.getvalue()) is not screen.isatty()


def test_no_name_begins_a_line_of_its_own(capsys):
    forged = "x\nadd a=integer\n    Adds."
    schema = {"type": "object", "properties": {forged: {"type": forged}}}
    show.tools([Tool(name=forged, input_schema=schema)])
    show.prompts([Prompt(name=forged)])
    show.resources([Resource(uri=forged, name=forged, mime_type=forged)], [])
    show.warnings([forged])
    show.blocks([ResourceLink(uri=forged, name=forged), Image(b"", mime_type=forged)])
    show.completion(Completion(values=(forged,)))
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 6
    assert [line for line in said.err.splitlines() if line.startswith("add")] == []


@pytest.mark.parametrize(("total", "said"), [(None, "there are more; type"), (120, "there are more, 120 in all; type")])
def test_a_completion_that_goes_on_is_told(capsys, total, said):
    show.completion(Completion(values=("a",), total=total, has_more=True))
    assert capsys.readouterr().err.startswith(said)
