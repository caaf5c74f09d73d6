"""One server's table of settings as a value: which keys there are, what they may say, and what contradicts what."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from mcprelay.client.network import Network
from mcprelay.errors import ConfigurationError
from mcprelay.ports import Channel
from mcprelay.relay import given
from mcprelay.relay.budget import Limits
from mcprelay.relay.entry import Entry, Problems, meant
from mcprelay.relay.errors import SettingWrong
from mcprelay.relay.policy import Pins, Trust, pinned
from mcprelay.relay.reveal import hidden, legible
from mcprelay.relay.settings import Secret, ServerSettings, TokenSource, Transport, sendable

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PREFIX = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_-]{0,40})?")
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
        folder: What relative paths are relative to.
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
    allow = entry.trust("allow")
    unpinned, pins = _pins(entry, allow)
    timeout = entry.seconds("timeout")
    server = ServerSettings(
        name=name,
        transport=transport or "http",
        url=url,
        command=command,
        cwd=entry.path("cwd", folder),
        target=target,
        env=entry.texts("env"),
        inherit=entry.names("inherit"),
        headers=_headers(entry),
        token=token,
        auth=auth,
        **_network(entry, folder),
        timeout=30.0 if timeout is None else timeout,
        cache=entry.number("cache", least=0),
        allow=allow,
        prompts=entry.trust("prompts"),
        resources=entry.trust("resources"),
        instructions=entry.flag("instructions"),
        pins=pins,
        unpinned=_UNPINNED[unpinned],
        limits=entry.limits("limits", limits),
        prefix=_prefix(entry),
        where=f"{problems.source}: {where}",
    )
    _check_plaintext(entry, server)
    entry.done(elsewhere=_ELSEWHERE)
    return None if transport is None else server


_ELSEWHERE = {
    "args": 'all that a command takes stands in the list of command: command = ["npx", "-y", "some-server"]',
    "type": 'a server with a url is spoken to over http; what speaks the old transport has transport = "sse"',
    "disabled": "take the server out, or leave it out of what is asked for",
    "autoApprove": "what may be used is said by allow, and what may run without asking by a gate",
    "alwaysAllow": "what may be used is said by allow, and what may run without asking by a gate",
}
"""What the files of desktop clients have and our tables have not, with what stands for it."""


_UNPINNED: dict[str | None, Literal["withheld", "offered", "refused"]] = {
    None: "withheld",
    "optional": "offered",
    "required": "refused",
}
"""What `pins` makes of a tool that nobody has reviewed. Who says `required` means servers without any review, too."""


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


_HTTP = ("proxy", "trust_env", "ca_file", "client_cert", "client_key", "allow_plaintext")


def _check_reach(entry: Entry, transport: Transport | None) -> None:
    """See that nothing is set which the way to the server cannot carry."""
    if transport == "object":
        why = "an object of this process has none"
        _refuse(entry, why, "url", "command", "token", "headers", "auth", "env", "inherit", "cwd", *_HTTP)
    elif transport == "stdio":
        why = "stdio has no requests to carry it; give the server its secret by env"
        _refuse(entry, why, "token", "headers", "auth")
        _refuse(entry, "only a server with a url is reached by it", *_HTTP)
    elif transport is not None:
        _refuse(entry, "only a command has it", "env", "inherit", "cwd")
    if entry.has("client_key") and not entry.has("client_cert"):
        entry.wrong("client_key", "is the key of a certificate, and client_cert names none")


def _check_plaintext(entry: Entry, server: ServerSettings) -> None:
    """See that no credentials go where others can read them on the way."""
    for key, said in (("token", server.token), ("auth", server.auth)):
        if said is not None and server.exposed:
            entry.wrong(key, server.exposed)


def _network(entry: Entry, folder: Path) -> dict[str, Any]:
    """How a server with a url is reached."""
    return {
        "proxy": _proxy(entry),
        "trust_env": entry.flag("trust_env"),
        **{key: entry.path(key, folder) for key in ("ca_file", "client_cert", "client_key")},
        "allow_plaintext": entry.flag("allow_plaintext"),
    }


def _proxy(entry: Entry) -> Secret | None:
    """The address may hold credentials, so it is not shown."""
    said = entry.any("proxy")
    if isinstance(said, Secret):
        text: str | None = said.value
    else:
        text = entry.text("proxy") or None  # empty is none: `${PROXY:-}` says that it may be missing
    try:
        Network(proxy=text)
    except ConfigurationError as error:
        entry.wrong("proxy", str(error).replace("proxy is", "expected", 1))
    return None if text is None else Secret(text)


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
    if isinstance(token, Secret) and not sendable(token.value):
        entry.wrong("token", "holds a character that no token has")
    if callable(token):
        try:
            given.function("it", token)
        except SettingWrong as wrong:
            entry.wrong("token", str(wrong))
    return cast("Secret | TokenSource | None", token)


def _headers(entry: Entry) -> dict[str, Secret]:
    headers = entry.texts("headers")
    for name, value in headers.items():
        if not _HEADER.fullmatch(name):
            entry.wrong(f"headers.{legible(name)}", "is no name of a header")
        if not value.value.isascii() or not value.value.isprintable():
            entry.wrong(f"headers.{legible(name)}", "holds a character that no header has")
    return headers


def _pins(entry: Entry, allow: Trust) -> tuple[str | None, Pins]:
    """`pins` says whether tools have to be in the lock file, or is a table of digests, by allowed tools."""
    pins = entry.any("pins")
    if not isinstance(pins, Mapping):
        return entry.choice("pins", ("required", "optional")), Pins(digests={})
    try:
        made = pinned(pins)
    except SettingWrong as wrong:
        entry.wrong("pins", str(wrong))
        return None, Pins(digests={})
    for name in made.digests if allow.is_declared else ():
        if not allow.allows(name):  # misspelt, it would leave the tool that is meant without a pin
            entry.wrong(f"pins.{legible(name)}", f"allow does not name it{meant(name, allow.names or ())}")
    return None, made


def _prefix(entry: Entry) -> str | None:
    prefix = entry.text("prefix")
    if prefix is not None and not _PREFIX.fullmatch(prefix):
        entry.wrong("prefix", "expected at most 40 letters, digits, _ and -, not beginning with a digit; or nothing")
    return prefix
