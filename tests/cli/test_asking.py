"""What a person at the terminal is asked by a server, and what is not even offered."""

from __future__ import annotations

import webbrowser

import pytest

from mcprelay.cli import asking
from mcprelay.client.elicitation import Elicitation


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that the browser was given."""
    addresses: list[str] = []

    def browse(url: str) -> bool:
        addresses.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    return addresses


def says(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    async def typed(_: str) -> str:
        return answer

    monkeypatch.setattr(asking, "typed", typed)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "vscode://file/x"])
async def test_an_address_that_is_no_page_of_the_web_is_declined_and_never_opened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], opened: list[str], url: str
):
    says(monkeypatch, "y")
    result = await asking.ask(Elicitation(message="Look", mode="url", url=url))
    assert result.action == "decline"
    assert not opened
    assert "no address of a web page" in capsys.readouterr().err


@pytest.mark.parametrize(("answer", "action"), [("y", "accept"), ("n", "decline"), ("", "decline")])
async def test_a_page_is_opened_only_with_consent_and_its_host_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], opened: list[str], answer: str, action: str
):
    says(monkeypatch, answer)
    url = "https://bank.example@evil.example/login"
    result = await asking.ask(Elicitation(message="Sign in", mode="url", url=url))
    assert result.action == action
    assert opened == ([url] if action == "accept" else [])
    assert "on the host evil.example" in capsys.readouterr().err


async def test_where_no_browser_opens_the_page_is_for_another(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    says(monkeypatch, "y")
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    result = await asking.ask(Elicitation(message="Look", mode="url", url="https://a.example/x"))
    assert result.action == "accept"
    assert "open the address in one elsewhere" in capsys.readouterr().err


TITLED = [{"const": "s", "title": "small"}, {"const": "l", "title": "large"}]
FORM = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "oneOf": TITLED},
        "old": {"type": "string", "enum": ["a", "b"], "enumNames": ["Ah", "Be"]},
        "extras": {"type": "array", "items": {"type": "string", "anyOf": TITLED}},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "maxItems": 1},
        "count": {"type": "integer", "minimum": 3},
        "odd": {"type": "string", "oneOf": 5, "enumNames": "no"},
    },
    "required": ["size", "old", "extras", "tags", "count", "odd"],
}


async def test_a_form_shows_what_may_be_chosen_and_asks_again_until_each_answer_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    lines = iter(["medium", "l", "a", "s, l", "x,y", '["x"]', "2", "3", "free"])

    async def typed(_: str) -> str:
        return next(lines)

    monkeypatch.setattr(asking, "typed", typed)
    result = await asking.ask(Elicitation(message="Order", requested_schema=FORM))
    assert result.content == {"size": "l", "old": "a", "extras": ["s", "l"], "tags": ["x"], "count": 3, "odd": "free"}
    said = capsys.readouterr().err
    for each in (
        "size (one of s (small), l (large))",
        "must be one of 's', 'l', not 'medium'",
        "old (one of a (Ah), b (Be))",
        "extras (any of s (small), l (large), with commas between them)",
        "tags (any of x, y, with commas between them)",
        "'tags' must be at most 1 items long, not",
        "'count' must be at least 3, not 2",
    ):
        assert each in said


@pytest.mark.parametrize(
    ("line", "value"), [("y", True), ("Yes", True), (" n ", False), ("no", False), ("true", True), ("false", False)]
)
async def test_yes_and_no_answer_a_question_of_yes_or_no(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, value: bool
):
    lines = iter(["maybe", line, line])

    async def typed(_: str) -> str:
        return next(lines)

    monkeypatch.setattr(asking, "typed", typed)
    fields = {"sure": {"type": "boolean"}, "word": {"type": "string"}}
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    result = await asking.ask(Elicitation(message="Go on?", requested_schema=schema))
    assert result.content == {"sure": value, "word": line}  # where it is a text, it stays one
    said = capsys.readouterr().err
    assert "sure (y or n)" in said
    assert "sure is true or false, and not 'maybe'" in said
