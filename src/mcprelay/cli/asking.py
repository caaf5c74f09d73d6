"""A server's question to the person at the terminal: a form filled in line by line, or an address to open.

Everything that is shown is the server's words, so it is shown as that, and nothing is opened without consent.
"""

from __future__ import annotations

import asyncio
import sys
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from mcprelay.cli.argument import words_to_arguments
from mcprelay.cli.show import say
from mcprelay.cli.terminal import typed
from mcprelay.client.elicitation import choices
from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcprelay.client.elicitation import Elicitation
    from mcprelay.types import ElicitResult


_ONE_QUESTION = asyncio.Lock()
_SAID = {"y": "true", "yes": "true", "n": "false", "no": "false"}
"""What a person says, and what JSON says."""


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
    say(f"  {name} ({'; '.join(filter(None, _hints(field, optional=optional)))})")
    alone = replace(question, requested_schema={"properties": {name: field}})
    while True:
        line = await typed("  > ")
        if not line and (optional or "default" in field):
            return {}
        try:
            content = words_to_arguments([f"{name}={word}" for word in _words(line, field)], question.schema)
            alone.accept(content)
        except (ConfigurationError, ValueError) as error:
            say(f"  {error}")
        else:
            return content


def _hints(field: dict[str, Any], *, optional: bool) -> Iterator[str]:
    """What a person has to know to fill in a field."""
    yield str(field.get("description") or field.get("title") or "")
    named = ", ".join(_named(field))
    if field.get("type") == "array":
        yield f"any of {named}, with commas between them" if named else "with commas between them"
    else:
        kind = str(field.get("type", ""))
        yield f"one of {named}" if named else "y or n" if kind == "boolean" else kind
    yield f"default {field['default']}" if "default" in field else "may be left empty" if optional else ""


def _named(field: dict[str, Any]) -> list[str]:
    """What may be chosen, each with its title where it has another."""
    items = field.get("items")
    holder = items if isinstance(items, dict) else field
    titled, names = holder.get("oneOf") or holder.get("anyOf"), holder.get("enumNames")
    if isinstance(titled, list):
        names = [each.get("title") for each in titled if isinstance(each, dict)]
    titles = chain(names if isinstance(names, list) else (), repeat(None))
    values = choices(field) or ()
    return [f"{value} ({title})" if title else str(value) for value, title in zip(values, titles, strict=False)]


def _words(line: str, field: dict[str, Any]) -> list[str]:
    """The items of a list, unless it is written in JSON; any other value is one word, and yes is `true`."""
    if field.get("type") == "boolean":
        return [_SAID.get(line.strip().lower(), line)]
    if field.get("type") != "array" or line.lstrip().startswith("["):
        return [line]
    return [word.strip() for word in line.split(",")]


async def _visit(question: Elicitation) -> ElicitResult:
    url = question.url or ""
    host = _host_of(url)
    if host is None:
        say(f"  It wants you to open {url}\n  which is no address of a web page, so it is declined")
        return question.decline()
    say(f"  It wants you to open {url}\n  on the host {host}. Open it? [y/N]")
    if (await typed("  > ")).strip().lower() not in ("y", "yes"):
        return question.decline()
    from mcprelay.auth.interaction import open_browser

    if not open_browser(url):
        say("  no browser can be opened here; open the address in one elsewhere")
    return question.accept()


def _host_of(url: str) -> str | None:
    """The host that a page is on, or None where the address is not of the web: a file or a script is not opened."""
    try:
        parts = urlsplit(url)
        return parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        return None
