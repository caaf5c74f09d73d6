"""The settings of a relay as values: what is known of each server before anything is sent to it.

Secrets are held so that no `repr`, message or log shows them. Nothing here reads files or variables: `config` does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct, field
from msgspec.structs import replace

from mcprelay.relay import given
from mcprelay.relay.budget import Limits
from mcprelay.relay.errors import SettingWrong
from mcprelay.relay.policy import UNDECLARED, Pins, Trust, declared
from mcprelay.wire.authority import is_loopback
from mcprelay.wire.spelling import Spelled

Transport: TypeAlias = Literal["http", "sse", "stdio", "object"]
CODE = "settings in code"
"""What settings are called that no file holds."""
HINTLESS_SECONDS = 60.0
"""How long the lists of a server that gives no hint are kept, unless told otherwise."""


class Secret:
    """A text that is shown nowhere; `value` is what it is."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.value == other.value

    def __hash__(self) -> int:
        return hash((Secret, self.value))


_VISIBLE = re.compile(r"[!-~]+")


def sendable(token: str) -> bool:
    """Whether a header can carry a token: visible ASCII, without a space."""
    return _VISIBLE.fullmatch(token) is not None


TokenSource: TypeAlias = Callable[[], str | Awaitable[str]]
"""Gives the token of each call."""


class ServerSettings(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """One server.

    Attributes:
        name: What it is called here.
        transport: How it is reached.
        url: Where, for `http` and `sse`.
        command: What starts it, for `stdio`; no shell takes part.
        cwd: Where it is started.
        target: A server that is an object of this process, for `object`.
        env: Variables that it gets.
        inherit: Names of variables that it gets from this process, beside the few that are safe.
        headers: HTTP headers of every request.
        token: The bearer token, or what gives it; it goes before an `Authorization` header.
        auth: `oauth` uses what `mcprelay login` has stored.
        proxy: The address of an HTTP proxy, which may hold credentials.
        trust_env: Whether the proxies that the environment names are used.
        ca_file: Certificates of the authorities that are trusted, in place of the system's.
        client_cert: The certificate that this application shows.
        client_key: Its key, where that is not in the same file.
        allow_plaintext: Whether credentials may go over plain HTTP to another machine.
        timeout: Seconds for one call, connecting included.
        cache: Seconds that its lists are kept; 0 for not at all, None for as long as the server says.
        allow: Which tools may be used.
        prompts: Which prompts may be used, by name.
        resources: Which resources may be used, by URI.
        instructions: Whether its instructions may be shown to a model.
        pins: Digests pinned in settings, beside the lock file.
        unpinned: What becomes of an allowed tool that is not in the lock file: `offered`; `withheld` where the file has
            a section for its server; or `refused`, withheld whether it has or not.
        limits: Bounds.
        prefix: What its tools' public names begin with, instead of its name; empty for nothing.
        where: Which table of which file they are, for messages.
    """

    name: str
    transport: Transport
    url: str | None = None
    command: tuple[str, ...] = ()
    cwd: Path | None = None
    target: Any = None
    env: dict[str, Secret] = field(default_factory=dict)
    inherit: tuple[str, ...] = ()
    headers: dict[str, Secret] = field(default_factory=dict)
    token: Secret | TokenSource | None = None
    auth: Literal["oauth"] | None = None
    proxy: Secret | None = None
    trust_env: bool = False
    ca_file: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    allow_plaintext: bool = False
    timeout: float = 30.0
    cache: float | None = None
    allow: Trust = UNDECLARED
    prompts: Trust = UNDECLARED
    resources: Trust = UNDECLARED
    instructions: bool = False
    pins: Pins = Pins(digests={})
    unpinned: Literal["withheld", "offered", "refused"] = "withheld"
    limits: Limits = Limits()
    prefix: str | None = None
    where: str = ""

    @property
    def place(self) -> str:
        """Where a mistake in them is mended."""
        return self.where or f"servers.{self.name}"

    @property
    def address(self) -> str:
        """The server's place for messages and logs: a URL without what may be secret in it, or the command's name."""
        if self.url is not None:
            return shown_url(self.url)
        return self.command[0] if self.command else type(self.target).__name__

    @property
    def exposed(self) -> str:
        """Why credentials may not be sent to it, since others could read them on the way; empty where they may."""
        if self.url is None or self.allow_plaintext:
            return ""
        try:
            parts = urlsplit(self.url)
        except ValueError:  # it is told where it is read
            return ""
        host = parts.hostname or ""
        if parts.scheme == "https" or is_loopback(host):
            return ""
        return (
            f"would go over plain HTTP to another machine ({host}): use https, or set allow_plaintext = true for the"
            " server where nobody can listen"
        )

    def __repr__(self) -> str:
        return f"ServerSettings({self.name!r}, {self.transport} {self.address!r})"


class CacheSettings(Struct, metaclass=Spelled, frozen=True, kw_only=True):
    """Where lists are kept, and for how long.

    Attributes:
        path: A file that keeps them between runs; None keeps them in memory only.
        hintless: Seconds that the list of a server is kept which says nothing of that.

    Raises:
        SettingWrong: One of them is of another type.
    """

    path: str | os.PathLike[str] | None = None
    hintless: float = HINTLESS_SECONDS

    def __post_init__(self) -> None:
        if self.path is not None:
            given.path("cache: path", self.path)
        given.seconds("cache: hintless", self.hintless)


class Config(Struct, frozen=True, kw_only=True):
    """All settings of a relay.

    Attributes:
        servers: By name, in the order of the file.
        limits: Bounds for servers that set none of their own.
        cache: Where and how long lists are kept.
        lock: Where the lock file is, or None where there is none.
        source: The file, for messages.
        notes: What of the file was left out, one sentence each.
        disabled: Where the file says of a server that it is not to be used, by the server's name.
        under: Where servers stand in it, for messages.
    """

    servers: dict[str, ServerSettings] = field(default_factory=dict)
    limits: Limits = Limits()
    cache: CacheSettings = CacheSettings()
    lock: Path | None = None
    source: str = CODE
    notes: tuple[str, ...] = ()
    disabled: dict[str, str] = field(default_factory=dict)
    under: str = "servers="

    def server(self, name: str) -> ServerSettings:
        """The settings of a server.

        Raises:
            SettingWrong: There is none of this name, or it is disabled.
        """
        if name in self.servers:
            return self.servers[name]
        if name in self.disabled:
            where = self.disabled[name]
            disabled = f"{self.source}: the server {name!r} is disabled there, by {where}; take that out to use it"
            raise SettingWrong(disabled, server=name)
        known = f"It has {', '.join(map(repr, self.servers))}." if self.servers else "It has none."
        raise SettingWrong(f"{self.source}: there is no server {name!r}. {known}", server=name)

    def trusting(self, allow: Mapping[str, Any]) -> Config:
        """The same with declarations for some servers, which a desktop client's file cannot hold.

        Raises:
            SettingWrong: There is no such server, or a declaration is none.
        """
        servers = dict(self.servers)
        for name, names in given.mapping("allow", allow, of="servers and what of each may be used").items():
            server = self.server(name)
            try:
                servers[name] = replace(server, allow=declared(names))
            except SettingWrong as wrong:
                raise SettingWrong(f"allow: {name}: {wrong}", server=name) from None
        return replace(self, servers=servers)


def shown_url(url: str) -> str:
    """A URL without user, query and fragment, which may hold secrets."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
