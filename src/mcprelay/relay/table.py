"""One server's table of settings as a value: which keys there are, what they may say, and what contradicts what."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from mcprelay.ports import Channel
from mcprelay.relay.budget import Limits
from mcprelay.relay.entry import Entry, Problems
from mcprelay.relay.errors import SettingWrong
from mcprelay.relay.policy import Pins, pinned
from mcprelay.relay.reveal import hidden, legible
from mcprelay.relay.settings import Secret, ServerSettings, TokenSource, Transport

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PREFIX = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_-]{0,40})?")
_VISIBLE = re.compile(r"[!-~]+")
_LONGEST_NAME = 100


def read_server(
    name: str,
    table: Any,
    *,
    folder: Path,
    env: Mapping[str, str],
    problems: Problems,
    limits: Limits,
    under: str = "servers",
) -> ServerSettings | None:
    """Read one server's table.

    Args:
        folder: What a relative `cwd` is relative to.
        env: The variables that `${NAME}` means.
        problems: Where mistakes go.
        limits: The bounds that hold where the table sets none.
        under: Where the table stands, for mistakes.

    Returns:
        The settings, or None if no server can be made of them; what is wrong is among the problems in any case.
    """
    where = f"{under}.{legible(str(name))}"
    if not _is_name(name):
        problems.add(where, "a server's name is a text that one can see, of at most 100 characters")
        return None
    if isinstance(table, ServerSettings):
        return table
    if not isinstance(table, Mapping):
        problems.add(where, "expected a table")
        return None
    entry = Entry(table, where, problems, env=env)
    url, command = _url(entry), _command(entry)
    target = _target(entry)
    transport = _transport(entry, url, command) if target is None else "object"
    token = _token(entry)
    auth = _auth(entry, token)
    _check_reach(entry, transport)
    unpinned, pins = _pins(entry)
    cwd, timeout = entry.text("cwd"), entry.number("timeout", least=0)
    server = ServerSettings(
        name=name,
        transport=transport or "http",
        url=url,
        command=command,
        cwd=None if cwd is None else folder / cwd,
        target=target,
        env=entry.texts("env"),
        inherit=entry.names("inherit"),
        headers=_headers(entry),
        token=token,
        auth=auth,
        timeout=30.0 if timeout is None else timeout,
        cache=entry.number("cache", least=0),
        allow=entry.trust("allow"),
        prompts=entry.trust("prompts"),
        resources=entry.trust("resources"),
        instructions=entry.flag("instructions"),
        pins=pins,
        unpinned="offered" if unpinned == "optional" else "withheld",
        limits=entry.limits("limits", limits),
        prefix=_prefix(entry),
    )
    entry.done()
    return None if transport is None else server


def _is_name(name: Any) -> bool:
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or name.strip() != name:
        return False
    return not hidden(name) and "\n" not in name and "\t" not in name  # of a text, `reveal` keeps these two


def _url(entry: Entry) -> str | None:
    url = entry.text("url")
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and not hidden(url)
        secret = parts.username is not None or parts.password is not None
    except ValueError:
        usable = secret = False
    if not usable:
        entry.wrong("url", "expected an address that begins with https:// or http://")
    elif secret:
        entry.wrong("url", "holds a user or a password; use token or headers, which are kept out of messages")
    return url


def _auth(entry: Entry, token: Any) -> Any:
    auth = entry.choice("auth", ("oauth",))
    if auth is not None and token is not None:
        entry.wrong("auth", "stands beside token; one of them says who calls")
    return auth


def _check_reach(entry: Entry, transport: Transport | None) -> None:
    """See that nothing is set which the way to the server cannot carry."""
    if transport == "object":
        why = "an object of this process has none"
        _refuse(entry, why, "url", "command", "token", "headers", "auth", "env", "inherit", "cwd")
    elif transport == "stdio":
        why = "stdio has no requests to carry it; give the server its secret by env"
        _refuse(entry, why, "token", "headers", "auth")
    elif transport is not None:
        _refuse(entry, "only a command has it", "env", "inherit", "cwd")


def _target(entry: Entry) -> Any:
    """A server that is an object of this process: code alone can give one."""
    target = entry.any("target")
    if target is not None and not callable(getattr(target, "connect", None)) and not isinstance(target, Channel):
        entry.wrong("target", "expected a Server, another object whose connect() gives a channel, or a channel")
    return target


def _command(entry: Entry) -> tuple[str, ...]:
    command = entry.any("command")
    if command is None:
        return ()
    if isinstance(command, str):
        entry.wrong("command", f"expected a list, since no shell takes part; write {json.dumps(_split(command))}")
        return (command,)
    if not isinstance(command, list | tuple) or not command or not isinstance(command[0], str) or not command[0]:
        entry.wrong("command", "expected a list that begins with a program")
        return ("",)
    return tuple(
        entry.filled(part, "command") if isinstance(part, str) else json.dumps(part, separators=(",", ":"))
        for part in command
    )


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _transport(entry: Entry, url: str | None, command: tuple[str, ...]) -> Transport | None:
    """How the server is reached: as said, or as url and command tell."""
    said: Any = entry.choice("transport", ("http", "sse", "stdio"))
    if url is not None and command:
        entry.wrong("url", "stands beside command; a server is reached in one way")
        return None
    if said == "stdio" and not command:
        entry.wrong("transport", "'stdio' starts a command, and there is none")
        return None
    if said in {"http", "sse"} and url is None:
        entry.wrong("transport", f"{said!r} needs a url")
        return None
    if url is None and not command:
        entry.wrong("url", "is missing; a server has a url or a command")
        return None
    return said or ("stdio" if command else "http")


def _refuse(entry: Entry, why: str, *keys: str) -> None:
    for key in keys:
        if entry.has(key):
            entry.wrong(key, why)


def _token(entry: Entry) -> Secret | TokenSource | None:
    token: Any = entry.any("token")
    if token is not None and not isinstance(token, Secret) and not callable(token):
        text = entry.text("token")
        token = Secret(text) if text else None  # empty is none: `${NAME:-}` says that it may be missing
    if isinstance(token, Secret) and not _VISIBLE.fullmatch(token.value):
        entry.wrong("token", "holds a character that no token has")
    return cast("Secret | TokenSource | None", token)


def _headers(entry: Entry) -> dict[str, Secret]:
    headers = entry.texts("headers")
    for name, value in headers.items():
        if not _HEADER.fullmatch(name):
            entry.wrong(f"headers.{legible(name)}", "is no name of a header")
        if not value.value.isascii() or not value.value.isprintable():
            entry.wrong(f"headers.{legible(name)}", "holds a character that no header has")
    return headers


def _pins(entry: Entry) -> tuple[str | None, Pins]:
    """`pins` says whether tools have to be in the lock file, or is a table of digests."""
    pins = entry.any("pins")
    if not isinstance(pins, Mapping):
        return entry.choice("pins", ("required", "optional")), Pins(digests={})
    try:
        return None, pinned(pins)
    except SettingWrong as wrong:
        entry.wrong("pins", str(wrong))
        return None, Pins(digests={})


def _prefix(entry: Entry) -> str | None:
    prefix = entry.text("prefix")
    if prefix is not None and not _PREFIX.fullmatch(prefix):
        entry.wrong("prefix", "expected at most 40 letters, digits, _ and -, not beginning with a digit; or nothing")
    return prefix
