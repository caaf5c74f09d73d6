"""What a client is a client of: an address, a command, a server in this process, or a channel.

Each knows how to make a fresh link, and whether it can make another one after that.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from mcprelay.client import failure, misuse
from mcprelay.client.line import Line
from mcprelay.errors import CallFailed, ConfigurationError, ConnectionLost
from mcprelay.ports import Channel
from mcprelay.revisions import Era

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from urllib.parse import SplitResult

    from mcprelay.auth import Auth
    from mcprelay.client.courier import Fields
    from mcprelay.client.link import Link
    from mcprelay.client.memory import Memory
    from mcprelay.client.party import Party
    from mcprelay.ports import Sender

_SECRETS = ("auth", "cookie", "key", "secret", "token", "password")


class Target(Protocol):
    """Makes links to one server.

    Attributes:
        key: What the server is remembered by, or None.
        name: What it is called in messages and in the cache.
        reopens: Whether a link that ended can be replaced.
        mirrors: Whether its wire mirrors parts of a message in headers.
    """

    @property
    def key(self) -> Hashable: ...  # noqa: D102 - said above
    @property
    def name(self) -> str: ...  # noqa: D102 - said above
    @property
    def reopens(self) -> bool: ...  # noqa: D102 - said above
    @property
    def mirrors(self) -> bool: ...  # noqa: D102 - said above

    async def open(self, party: Party, memory: Memory) -> Link:
        """A link that is ready for calls.

        Raises:
            CallFailed: There is none.
        """
        ...


class Address:
    """An HTTP server."""

    reopens = True
    mirrors = True

    def __init__(
        self,
        url: str,
        *,
        auth: Auth | None,
        fields: Fields | None,
        sender: Callable[[Party], Sender],
        allow_plaintext: bool,
    ) -> None:
        self.url = url
        self.name = self.key = checked_url(url)
        self._auth = auth
        if not callable(fields):
            misuse.variables("headers", fields)
        self._fields = fields
        self._sender = sender
        if not allow_plaintext and not _is_safe(url):
            secret = "auth" if auth is not None else _secret(fields)
            if secret is not None:
                raise ConfigurationError(
                    f"{secret} would go over plain HTTP to another machine ({_split(url).hostname}): use https, "
                    "or allow_plaintext=True where nobody can listen"
                )

    async def open(self, party: Party, memory: Memory) -> Link:
        """See `Target`. Sends nothing."""
        from mcprelay.client.courier import Courier
        from mcprelay.client.web import Web

        sender = self._sender(party)
        credentials = None if self._auth is None else self._auth.bind(self.url, sender=sender)
        courier = Courier(sender, credentials=credentials, fields=self._fields)
        return Web(self.url, courier, party, remembered=memory.recall(self.key))


class Command:
    """A server that is a child process."""

    reopens = True
    mirrors = False

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None,
        cwd: str | os.PathLike[str] | None,
        stderr: Any,
    ) -> None:
        if not command or not all(isinstance(part, str) for part in command):
            raise ConfigurationError(f"a command is a list of strings that is not empty, not {list(command)!r}")
        misuse.variables("env", env)
        misuse.of_type("cwd", cwd, str, os.PathLike)
        if stderr not in ("tail", "inherit") and not callable(stderr):
            wrong = misuse.told_value(stderr)
            raise ConfigurationError(f"stderr is 'tail', 'inherit' or a function that gets each line, and not {wrong}")
        self._command = list(command)
        self._env = None if env is None else dict(env)
        self._cwd = cwd
        self._stderr: Any = stderr
        self.key = ("command", tuple(command), None if cwd is None else os.fspath(cwd))
        self.name = command[0]

    async def open(self, party: Party, memory: Memory) -> Link:
        """See `Target`. A server that a probe ends is started again and greeted in the older way, in the same time."""
        remembered = memory.recall(self.key)
        due = asyncio.get_running_loop().time() + party.settings.connect_timeout
        try:
            return await self._open(party, remembered, due)
        except ConnectionLost:
            offered = any(revision.era is Era.HANDSHAKE for revision in party.offered)
            if remembered is Era.HANDSHAKE or not offered:
                raise
            return await self._open(party, Era.HANDSHAKE, due)
        except CallFailed:
            if remembered is None or asyncio.get_running_loop().time() >= due:
                raise
            memory.forget(self.key)
            return await self._open(party, None, due)

    async def _open(self, party: Party, remembered: Era | None, due: float) -> Link:
        from mcprelay.stdio import ChildChannel

        settings = party.settings
        channel = await ChildChannel.spawn(
            self._command,
            env=self._env,
            cwd=self._cwd,
            message_bytes=settings.response_bytes,
            stderr=self._stderr,
            grace=settings.close_timeout,
        )
        line = Line(channel, party, remembered=remembered, due=due)
        await line.start()
        return line


class Opened:
    """A channel that the user opened. It serves for one connection."""

    reopens = False
    mirrors = False
    key = None

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._used = False
        self.name = type(channel).__name__

    async def open(self, party: Party, memory: Memory) -> Link:
        """See `Target`."""
        if self._used:
            raise failure.unconnected(None, "a channel serves for one connection; give the client a new one")
        self._used = True
        line = Line(self._channel, party)
        await line.start()
        return line


class Source:
    """Anything with a `connect()` that gives a channel: a `Server` of this process, or a factory of the user's."""

    reopens = True
    mirrors = False

    def __init__(self, source: Any) -> None:
        self._source = source
        self.key = None
        self.name = getattr(source, "name", None) or type(source).__name__

    async def open(self, party: Party, memory: Memory) -> Link:
        """See `Target`."""
        due = asyncio.get_running_loop().time() + party.settings.connect_timeout
        channel = self._source.connect()
        if inspect.isawaitable(channel):
            limit = asyncio.timeout_at(due)
            try:
                async with limit:
                    channel = await channel
            except TimeoutError:
                if not limit.expired():
                    raise
                reason = f"connect() of {self.name!r} did not give a channel within connect_timeout="
                raise failure.unconnected(None, f"{reason}{party.settings.connect_timeout:g} seconds") from None
        line = Line(channel, party, due=due)
        await line.start()
        return line


def _split(url: str) -> SplitResult:
    from urllib.parse import urlsplit

    return urlsplit(url)


def checked_url(url: str) -> str:
    """An address that can be used.

    Raises:
        ConfigurationError: It is not http or https, has no host, or holds what it must not.
    """
    parts = _split(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        wrong = f"the address {url!r} must begin with http:// or https:// and name a host"
        raise ConfigurationError(wrong if parts.scheme else f"{wrong}; {_LISTED}")
    if "@" in parts.netloc:
        raise ConfigurationError("an address must not hold credentials: give them as auth=")
    if parts.fragment:
        raise ConfigurationError(f"the address {url!r} must have no fragment (#...)")
    if not url.isprintable() or " " in url:
        raise ConfigurationError(f"the address {url!r} holds a character that an address cannot have")
    try:
        _ = parts.port
    except ValueError:
        raise ConfigurationError(f"the address {url!r} has no valid port") from None
    return url


_LISTED = 'a command is a list: ["python", "library.py"]'


def _is_safe(url: str) -> bool:
    from mcprelay.wire.authority import is_loopback

    parts = _split(url)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")


def _secret(fields: Fields | None) -> str | None:
    """A header that looks like credentials; what a function gives may hold them."""
    if fields is None:
        return None
    if callable(fields):
        return "headers"
    named = (name for name in fields if any(part in name.lower() for part in _SECRETS))
    return next((f"the header {name!r}" for name in named), None)


def is_channel(value: Any) -> bool:
    """Whether it is a `Channel`."""
    return isinstance(value, Channel) and inspect.iscoroutinefunction(getattr(value, "aclose", None))


def target_of(
    target: Any,
    *,
    auth: Any,
    headers: Fields | None,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    stderr: Any,
    http: HttpOptions,
) -> Target:
    """What the user named, as a target.

    Raises:
        ConfigurationError: It is none, or an option does not belong to it.
    """
    is_command = isinstance(target, (list, tuple))
    if not is_command:
        _only("a command", env=env, cwd=cwd, stderr=None if stderr == "tail" else stderr)
    if isinstance(target, str):
        return Address(
            target,
            auth=_auth(auth, target, allow_plaintext=http.allow_plaintext),
            fields=headers,
            sender=http.sender_for,
            allow_plaintext=http.allow_plaintext,
        )
    _only("an address", auth=auth, headers=headers)
    if is_command:
        return Command(target, env=env, cwd=cwd, stderr=stderr)
    if is_channel(target):
        return Opened(target)
    if callable(getattr(target, "connect", None)):
        return Source(target)
    wrong = misuse.told_value(target)
    raise ConfigurationError(
        f"a client takes an address, a command as a list of strings, a Server or a Channel, not {wrong}"
    )


class HttpOptions(Struct, frozen=True, kw_only=True):
    """How HTTP is done."""

    sender: Sender | None = None
    proxy: str | None = None
    ssl: Any = None
    trust_env: bool = False
    allow_plaintext: bool = False

    def sender_for(self, party: Party) -> Sender:
        """The HTTP client for a party."""
        if self.sender is not None:
            return self.sender
        from mcprelay.client.http import HttpSender

        return HttpSender(
            connect_timeout=party.settings.connect_timeout,
            connections=int(party.settings.connections),
            proxy=self.proxy,
            ssl=self.ssl,
            trust_env=self.trust_env,
        )


def _auth(auth: Any, url: str, *, allow_plaintext: bool) -> Auth | None:
    if auth is None or callable(getattr(auth, "bind", None)):
        return auth  # type: ignore[no-any-return]
    if not isinstance(auth, str) and not callable(auth):
        raise ConfigurationError(f"auth is a token, a function that gives one, or an Auth, not {type(auth).__name__}")
    from mcprelay.auth.bearer import StaticToken

    host = _split(url).hostname or ""
    given: Any = auth
    return StaticToken(given, insecure_hosts=(host,) if allow_plaintext else ())


def _only(owner: str, **options: Any) -> None:
    """Refuse options that belong to another kind of target."""
    for name, value in options.items():
        if value is not None:
            raise ConfigurationError(f"{name} belongs to {owner}, which this client is not given")
