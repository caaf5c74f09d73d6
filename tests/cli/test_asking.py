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
