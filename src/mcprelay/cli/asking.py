"""A server's question to the person at the terminal: a form filled in line by line, or an address to open.

Everything that is shown is the server's words, so it is shown as that, and nothing is opened without consent.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcprelay.cli.argument import words_to_arguments
from mcprelay.cli.show import say
from mcprelay.cli.terminal import typed
from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from mcprelay.client.elicitation import Elicitation
    from mcprelay.types import ElicitResult


_ONE_QUESTION = asyncio.Lock()


def somebody_is_there() -> bool:
    """Whether questions can be answered here."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


async def ask(question: Elicitation) -> ElicitResult:
    """Ask the person at the terminal. The end of input (Ctrl-D) declines."""
    async with _ONE_QUESTION:  # several may come at once
        say(f"The server asks: {question.message}")
        answer = _visit if question.mode == "url" else _fill_in
        try:
            return await answer(question)
        except EOFError:
            say("declined")
            return question.decline()


async def _fill_in(question: Elicitation) -> ElicitResult:
    required = question.schema.get("required")
    needed = required if isinstance(required, list) else []
    content: dict[str, Any] = {}
    for name, field in question.fields.items():
        content |= await _asked(name, field, question, optional=name not in needed)
    return question.accept(content)


async def _asked(name: str, field: dict[str, Any], question: Elicitation, *, optional: bool) -> dict[str, Any]:
    """One field. An empty line takes the default, or leaves out what may be left out."""
    options = field.get("enum")
    hints = [
        str(field.get("description") or field.get("title") or ""),
        "one of " + ", ".join(map(str, options)) if isinstance(options, list) else str(field.get("type", "")),
        f"default {field['default']}" if "default" in field else "may be left empty" if optional else "",
    ]
    say(f"  {name} ({'; '.join(filter(None, hints))})")
    while True:
        line = await typed("  > ")
        if not line and (optional or "default" in field):
            return {}
        try:
            return words_to_arguments([f"{name}={line}"], question.schema)
        except ConfigurationError as error:
            say(f"  {error}")


async def _visit(question: Elicitation) -> ElicitResult:
    url = question.url or ""
    host = _host_of(url)
    if host is None:
        say(f"  It wants you to open {url}\n  which is no address of a web page, so it is declined")
        return question.decline()
    say(f"  It wants you to open {url}\n  on the host {host}. Open it? [y/N]")
    if (await typed("  > ")).strip().lower() not in ("y", "yes"):
        return question.decline()
    import webbrowser

    webbrowser.open(url)
    return question.accept()


def _host_of(url: str) -> str | None:
    """The host that a page is on, or None where the address is not of the web: a file or a script is not opened."""
    try:
        parts = urlsplit(url)
        return parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        return None
