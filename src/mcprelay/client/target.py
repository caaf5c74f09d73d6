"""What a client is a client of: an address, a command, a server in this process, or a channel.

Each knows how to make a fresh link, and whether it can make another one after that.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from typing import TYPE_CHECKING, Any, Protocol

from mcprelay.client import failure, identity, misuse
from mcprelay.client.line import Line
from mcprelay.errors import CallFailed, ConfigurationError, ConnectionLost, MCPRelayError
from mcprelay.ports import Channel
from mcprelay.revisions import Era
from mcprelay.wire.field import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from urllib.parse import SplitResult

    from mcprelay.auth import Auth
    from mcprelay.client.call import Call
    from mcprelay.client.courier import Courier
    from mcprelay.client.link import Link
    from mcprelay.client.memory import Acquaintance
    from mcprelay.client.network import Network
    from mcprelay.client.option import Fields
    from mcprelay.client.party import Party

_SECRETS = (
    "assertion", "auth", "bearer", "cookie", "credential", "jwt", "key", "pass", "pwd", "secret", "session",
    "signature", "token",
)  # fmt: skip


class Target(Protocol):
    """Makes links to one server.

    Attributes:
        reach: Everything that decides which server answers, and as what, as JSON can carry it; None where a server is
            not remembered.
        name: What it is called in messages. It holds nothing secret.
        reopens: Whether a link that ended can be replaced.
        mirrors: Whether its wire mirrors parts of a message in headers.
        parts: Everything that decides what it answers, as JSON can carry it; None where that cannot be known.
        public: Whether what it says to be everybody's is everybody's who reaches it in the same way.
    """

    @property
    def reach(self) -> Any: ...  # noqa: D102 - said above
    @property
    def name(self) -> str: ...  # noqa: D102 - said above
    @property
    def reopens(self) -> bool: ...  # noqa: D102 - said above
    @property
    def mirrors(self) -> bool: ...  # noqa: D102 - said above
    @property
    def parts(self) -> Any: ...  # noqa: D102 - said above
    @property
    def public(self) -> bool: ...  # noqa: D102 - said above

    async def whose(self, link: Link | None) -> str | None:
        """Whose private results could be had now; None where that is not known. Raises what the user's functions do."""
        ...

    def sent(self, call: Call) -> str | None:
        """Whose private results a call has been answered with; None where that is not known."""
        ...

    async def open(self, party: Party, known: Acquaintance) -> Link:
        """A link that is ready for calls.

        Raises:
            CallFailed: There is none.
        """
        ...


class Address:
    """An HTTP server. `account` is a name of whoever `auth` is for."""

    reopens = True
    mirrors = True
    parts: Any
    reach: Any

    def __init__(
        self, url: str, *, auth: Auth | None, account: str | None, fields: Fields | None, network: Network
    ) -> None:
        self.url = url
        checked_url(url)
        self.name = url.partition("?")[0]  # a query can hold credentials
        self._auth = auth
        self.public = not callable(fields)  # a function may name another tenant each time
        if not callable(fields):
            _check_fields(fields)
        self._fields = fields
        self._network = network
        if not network.allow_plaintext and not _is_safe(url):
            secret = "auth" if auth is not None else _secret(fields)
            if secret is not None:
                raise ConfigurationError(
                    f"{secret} would go over plain HTTP to another machine ({_split(url).hostname}): use https, "
                    "or allow_plaintext=True where nobody can listen"
                )
        named = {} if fields is None or callable(fields) else fields
        fixed = sorted((name.lower(), value) for name, value in named.items())
        alone = network.sender is not None or network.ssl is not None  # who is shown by those is not known
        way = ["address", url, fixed, network.proxy, network.trust_env]
        self.parts = None if alone else way
        objects = (fields if callable(fields) else None, network.sender, network.ssl)
        self.reach = [way, account, *(None if one is None else identity.named(one) for one in objects)]

    async def whose(self, link: Link | None) -> str | None:
        """See `Target`."""
        courier: Courier | None = getattr(link, "courier", None)
        return None if courier is None else identity.whose(await courier.shown(self.url))

    def sent(self, call: Call) -> str | None:
        """See `Target`."""
        return None if call.request is None else identity.whose(call.request.headers)

    async def open(self, party: Party, known: Acquaintance) -> Link:
        """See `Target`. Sends nothing."""
        from mcprelay.client.courier import Courier
        from mcprelay.client.web import Web

        sender = self._network.sender_for(party)
        credentials = None if self._auth is None else self._auth.bind(self.url, sender=sender)
        courier = Courier(sender, credentials=credentials, fields=self._fields, lent=self._network.sender is not None)
        return Web(self.url, courier, party, remembered=known.recall())


class _Reached:
    """A server that whoever has the client reaches in one way, and as one."""

    mirrors = False
    public = True
    parts: Any = None
    reach: Any = None

    async def whose(self, link: Link | None) -> str | None:
        """See `Target`."""
        return ""

    def sent(self, call: Call) -> str | None:
        """See `Target`."""
        return ""


class Command(_Reached):
    """A server that is a child process."""

    reopens = True

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None,
        cwd: str | os.PathLike[str] | None,
        stderr: Any,
    ) -> None:
        parts = [_part(index, part) for index, part in enumerate(command)]
        if not parts or not parts[0]:
            raise ConfigurationError("a command is a list that begins with a program: ['python', 'server.py']")
        misuse.environment("env", env)
        misuse.of_type("cwd", cwd, str, os.PathLike)
        if stderr not in ("tail", "inherit") and not callable(stderr):
            wrong = misuse.told_value(stderr)
            raise ConfigurationError(f"stderr is 'tail', 'inherit' or a function that gets each line, and not {wrong}")
        self._command = parts
        self._env = None if env is None else dict(env)
        self._cwd = cwd
        self._stderr: Any = stderr
        self.name = parts[0]

    @property
    def reach(self) -> Any:
        """See `Target`. Another environment may be another server."""
        return self.parts

    @property
    def parts(self) -> Any:
        """See `Target`. A folder that is not named is the one where this process is."""
        from pathlib import Path

        from mcprelay.stdio.environment import child_environment

        try:
            folder = str(Path(self._cwd or os.curdir).absolute())
        except OSError:  # the folder of this process is gone
            return None
        return ["command", self._command, folder, sorted(child_environment(self._env).items())]

    async def open(self, party: Party, known: Acquaintance) -> Link:
        """See `Target`. A server that a probe ends is started again and greeted in the older way, in the same time."""
        remembered = known.recall()
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
            known.forget()
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
        return await _started(line)


class Opened(_Reached):
    """A channel that the user opened. It serves for one connection."""

    reopens = False

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._used = False
        self.name = type(channel).__name__

    async def open(self, party: Party, known: Acquaintance) -> Link:
        """See `Target`."""
        if self._used:
            raise failure.unconnected(
                None, "a channel serves for one connection; give the client a new one", lasting=True
            )
        self._used = True
        line = Line(self._channel, party)
        return await _started(line)


class Source(_Reached):
    """Anything with a `connect()` that gives a channel: a `Server` of this process, or a factory of the user's."""

    reopens = True

    def __init__(self, source: Any) -> None:
        self._source = source
        self.name = getattr(source, "name", None) or type(source).__name__

    async def open(self, party: Party, known: Acquaintance) -> Link:
        """See `Target`."""
        due = asyncio.get_running_loop().time() + party.settings.connect_timeout
        channel = await self._connected(due, party)
        if not isinstance(channel, Channel):
            wrong = misuse.told_value(channel)
            raise ConfigurationError(f"connect() of {self.name!r} gives a Channel, and not {wrong}")
        line = Line(channel, party, due=due)
        return await _started(line)

    async def _connected(self, due: float, party: Party) -> Any:
        limit = asyncio.timeout_at(due)
        try:
            channel = self._source.connect()
            if not inspect.isawaitable(channel):
                return channel
            async with limit:
                return await channel
        except MCPRelayError:
            raise
        except Exception as error:
            if limit.expired():
                reason = f"connect() of {self.name!r} did not give a channel within connect_timeout="
                raise failure.unconnected(None, f"{reason}{party.settings.connect_timeout:g} seconds") from None
            raise failure.unconnected(None, f"connect() of {self.name!r} failed ({error!r})") from error


async def _started(line: Line) -> Line:
    """A line that is ready for calls. When that is given up, it has ended by the time that this raises."""
    try:
        await line.start()
    except asyncio.CancelledError:
        await line.aclose()  # it may have failed already, and have been left to end by itself
        raise
    return line


def _part(index: int, part: Any) -> str:
    """One item of a command. It may be a secret, so an item that is text is not shown."""
    try:
        text = os.fspath(part)
    except TypeError:
        text = None
    if not isinstance(text, str):
        wrong = misuse.told_value(part)
        raise ConfigurationError(f"a command is a list of strings and paths, and its item {index} is {wrong}")
    if "\0" in text:
        raise ConfigurationError(f"a command holds no null character, and its item {index} does")
    return text


def _split(url: str) -> SplitResult:
    from urllib.parse import urlsplit

    return urlsplit(url)


def checked_url(url: str) -> str:
    """An address that can be used.

    Raises:
        ConfigurationError: It is not http or https, has no host, or holds what it must not.
    """
    try:
        parts = _split(url)
    except ValueError as error:
        raise ConfigurationError(f"the address {shown(url)} is none: {error}") from None
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


def _check_fields(fields: Mapping[str, str] | None) -> None:
    if fields is not None:
        from mcprelay.client.courier import checked

        checked(fields)


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
    network: Network,
) -> Target:
    """What the user named, as a target.

    Raises:
        ConfigurationError: It is none, or an option does not belong to it.
    """
    is_command = isinstance(target, (list, tuple))
    if not is_command:
        _only("a command", env=env, cwd=cwd, stderr=None if stderr == "tail" else stderr)
    if isinstance(target, str):
        account = None if auth is None else identity.digest(auth) if isinstance(auth, str) else identity.named(auth)
        auth = _auth(auth, target, headers, allow_plaintext=network.allow_plaintext)
        return Address(target, auth=auth, account=account, fields=headers, network=network)
    _only("an address", auth=auth, headers=headers, **network.given)
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


def _auth(auth: Any, url: str, headers: Fields | None, *, allow_plaintext: bool) -> Auth | None:
    if auth is None:
        return None
    if callable(getattr(auth, "bind", None)):
        return _over(auth, url) if allow_plaintext else auth  # type: ignore[no-any-return]
    if not isinstance(auth, str) and not callable(auth):
        raise ConfigurationError(f"auth is a token, a function that gives one, or an Auth, not {type(auth).__name__}")
    from mcprelay.auth.bearer import StaticToken
    from mcprelay.client.courier import check_alone

    if headers is not None and not callable(headers):
        check_alone(headers)
    given: Any = auth
    token = StaticToken(given)
    return token.over_plaintext(url) if allow_plaintext else token


def _over(auth: Any, url: str) -> Any:
    """Credentials that may go over plain HTTP to the server, where they can; others decide for themselves."""
    over: Any = getattr(auth, "over_plaintext", None)
    return over(url) if callable(over) else auth


def _only(owner: str, **options: Any) -> None:
    """Refuse options that belong to another kind of target."""
    for name, value in options.items():
        if value is not None:
            raise ConfigurationError(f"{name} belongs to {owner}, which this client is not given")
