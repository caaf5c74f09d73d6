"""`Relay`: tools of servers that are not ours, in front of a model, across a boundary that the application can see."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Never, Self

from msgspec.structs import replace

from mcprelay.relay import audit, config, given
from mcprelay.relay.behalf import Behalf, Token, require_requests, secret
from mcprelay.relay.budget import Ledger, Limits
from mcprelay.relay.errors import DefinitionRefused, RelayError, ServerUnreachable, SettingWrong
from mcprelay.relay.frame import Filter, Funnel, TokenCounter
from mcprelay.relay.gate import PATIENCE, Gate, Gated
from mcprelay.relay.library import Library
from mcprelay.relay.lock import Lock
from mcprelay.relay.lockfile import LockFile, Usual
from mcprelay.relay.offer import Chosen, offered
from mcprelay.relay.post import Post
from mcprelay.relay.question import Askers, OnAsked
from mcprelay.relay.reading import Readings
from mcprelay.relay.redaction import Redaction, secrets_of
from mcprelay.relay.selection import select
from mcprelay.relay.settings import CacheSettings, ServerSettings
from mcprelay.relay.stations import Shelves, Stations
from mcprelay.relay.toolset import ToolSet

if TYPE_CHECKING:
    from types import TracebackType

    from mcprelay.relay.listed import Listed


_USUAL = Usual(config.LOCK)


class Relay(Library):
    """The servers of an application, and what of them its models may have.

    Nothing is sent to a server, and no process is started, before `allow` says what of it may be used. `async with`
    lets go of everything at the end; so does `aclose`.

    Args:
        servers: The servers by name: the keys of `mcprelay.toml`, or `target` for a `Server` of this process.
        limits: Bounds on everything that is shown: the keys of `[limits]`, or `Limits`.
        gate: Asked before each call (`mcprelay.relay.gate`).
        gate_timeout: Seconds that the gate may take for one call, which is denied then; `math.inf` is no limit. A
            person whom it asks by `ask` has the patience said there.
        lock: What was reviewed: the path of a lock file, or a lock; `mcprelay.lock` in the working directory unless
            something is said. A file that is not there says nothing, and the report says that; where it was named here,
            the report is not clean, and the log has a warning. None is no lock.
        filters: See each text before a model does.
        tokens: Counts the tokens of a text, for limits in tokens.
        local: Names of the application's own functions, for the report on what may be taken for something else.
        on_elicit: Answers a server's questions to a person. Without it no server may ask any.
        on_sample: Answers a server's questions to a model. Without it no server may ask any.
        cache: Where lists are kept between runs, and for how long without a hint: the keys of `[cache]`, or
            `CacheSettings`.
        connections: How many servers stay connected, over all principals, each counted once for each; more do only
            while more are busy. Those whose changes are listened for are always busy.
        clock: The time in seconds since the epoch.

    Raises:
        SettingWrong: A setting is wrong.
    """

    def __init__(
        self,
        *,
        servers: Mapping[str, Mapping[str, Any]] | None = None,
        limits: Limits | Mapping[str, Any] | None = None,
        gate: Gate | None = None,
        gate_timeout: float = PATIENCE,
        lock: str | os.PathLike[str] | Lock | Usual | None = _USUAL,
        filters: Sequence[Filter] = (),
        tokens: TokenCounter | None = None,
        local: Sequence[str] = (),
        on_elicit: OnAsked | None = None,
        on_sample: OnAsked | None = None,
        cache: CacheSettings | Mapping[str, Any] | None = None,
        connections: int = 256,
        clock: Callable[[], float] = time.time,
        **unknown: Never,
    ) -> None:
        given.known("Relay", unknown, of=Relay.__init__)
        self._config = config.from_mapping({} if servers is None else servers, limits=limits, cache=cache)
        self._gate = _gated(gate, gate_timeout)
        self._lock = LockFile(lock)
        self._filters = given.functions("filters", filters, "text", "origin")
        self._counter = _checked("tokens", tokens, "text")
        self._local = given.texts("local", local)
        given.function("clock", clock)
        given.whole("connections", connections)
        _checked("on_elicit", on_elicit, "asked")
        _checked("on_sample", on_sample, "asked")
        self._readings = Readings()
        self._behalf = Behalf()
        askers = Askers(self._asking, elicit=on_elicit, sample=on_sample)
        shelves = Shelves(self._config.cache, clock=clock)
        self._stations = Stations(shelves, askers=askers, connections=connections)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        allow: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Self:
        """The relay that a file describes, with the lock file beside it.

        Args:
            path: `mcprelay.toml` in the working directory if None; a JSON file is read as `mcpServers`.
            allow: Declarations for servers, which a JSON file of a desktop client cannot hold.
            env: The variables that `${NAME}` means; this process's if None.
            options: Everything that `Relay` takes but `servers`, `limits` and `cache`, which the file says.

        Raises:
            SettingWrong: The file is not there, or something in it is wrong.
        """
        given.known("Relay.load", options, of=(Relay.__init__, cls.load))
        for name in ("servers", "limits", "cache"):
            if name in options:
                raise SettingWrong(f"{name} is what the file says; give the file {name}, or make a Relay({name}=…)")
        read = config.load(path, env=env)
        given_here: dict[str, Any] = {"lock": None if read.lock is None else Usual(read.lock), **options}
        relay = cls(cache=read.cache, **given_here)
        relay.__dict__.update(_config=read if allow is None else read.trusting(allow))
        return relay

    def __repr__(self) -> str:
        return f"Relay({', '.join(self._config.servers)})"

    # --- lifetime

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Let go of all servers. Tools of this relay, and of those made from it, cannot be called any more."""
        await self._stations.aclose()

    # --- for whom

    def with_token(self, token: Token, *, principal: Any = None) -> Self:
        """The same relay for one user's token, which serves exactly one server a call.

        The token goes before the configured one, and before an `Authorization` header. Nothing that is kept is shared
        with another token.

        Args:
            token: The bearer token, or a function that gives one for each call.
            principal: For whom calls are made, for gates and the audit record.
        """
        return self._for(Behalf(one=secret(token, of="with_token"), principal=principal))

    def with_tokens(self, tokens: Mapping[str, Token], *, principal: Any = None) -> Self:
        """The same relay for one user's tokens: it serves the servers named here, and no others.

        Raises:
            SettingWrong: There is no such server, or it takes no token.
        """
        given.mapping("with_tokens", tokens, of="names of servers and the token for each")
        held = {name: secret(token, of=f"with_tokens: {name!r}") for name, token in tokens.items()}
        for name in held:
            require_requests(self._config.server(name))
        return self._for(Behalf(each=held, principal=principal))

    def acting_for(self, principal: Any) -> Self:
        """The same relay with calls made for somebody, whom gates and the audit record see."""
        return self._for(replace(self._behalf, principal=principal))

    def server(self, target: Any, *, name: str | None = None, **settings: Any) -> Self:
        """A relay of one server that no file knows. It is refused like any other without `allow`.

        Args:
            target: A URL, a command as a list, or a `Server` of this process.
            name: What it is called here.
            settings: The keys of a server's table, `allow` above all.

        Raises:
            SettingWrong: A setting is wrong.
        """
        made = config.from_target(target, name=name, settings=settings, limits=self._config.limits)
        view = self._for(replace(self._behalf, each=None))
        view.__dict__.update(_config=replace(made, cache=self._config.cache))
        return view

    def _for(self, behalf: Behalf) -> Self:
        view = copy(self)
        view.__dict__.update(_behalf=behalf)
        return view

    # --- tools

    async def tools(
        self,
        *names: str | Mapping[str, Any],
        strict: bool = False,
        skip_unavailable: bool = False,
        **unknown: Never,
    ) -> ToolSet:
        """What a model may have of some servers, or of all of them.

        Trust, pins and exclusions are decided anew each time, also where the lists are kept.

        Args:
            names: Servers; all of them if none is named. A mapping after a name is that server's settings, in place
                of those of the file.
            strict: Raise where the report would not be clean.
            skip_unavailable: Leave servers out that cannot be reached; they are in the report.

        Raises:
            SettingWrong: A setting is wrong, or one token would go to several servers.
            NotTrusted: Nothing says what of a server may be used; nothing was sent to any server.
            Unauthorized: A server does not accept the credentials.
            ServerUnreachable: A server cannot be reached.
            DefinitionRefused: A list, or a tool that was asked for by name, cannot be used.
            LockUnreadable: The lock file cannot be read, or is gone.
            LocalFault: The relay is open in another event loop.
        """
        given.known("tools()", unknown, of=Relay.tools)
        given.flag("strict", strict)
        given.flag("skip_unavailable", skip_unavailable)
        servers = self._servers(names)
        for server in servers:
            with audit.watched("offer", server=server.name, tool="", principal=self._behalf.principal):
                server.allow.require(server.name)
        posts = [self._post(server) for server in servers]
        lock = self._lock.now()
        lists = await self._lists(posts, skip=skip_unavailable)
        chosen: list[Chosen] = []
        unreachable: dict[str, RelayError] = {}
        for post, listed in zip(posts, lists, strict=True):
            name = post.settings.name
            if isinstance(listed, RelayError):
                unreachable[name] = listed
                continue
            section = lock.section(name)
            made = await select(listed, settings=post.settings, section=section, readings=self._readings)
            chosen.append(Chosen(post, listed, made, self._stations.heard(name)))
        tools = offered(chosen, gate=self._gate, local=self._local, unreachable=unreachable, lock=self._lock)
        if strict:
            tools.report().require_clean()
        return tools

    async def _lists(self, posts: Sequence[Post], *, skip: bool) -> list[Listed | RelayError]:
        """The lists of all servers, asked for at once where they are not kept, or why one that is left out has none."""
        skipped: dict[int, RelayError] = {}

        async def listed(number: int, post: Post) -> Listed | None:
            try:
                return await (await post.reached()).station.listed()
            except (ServerUnreachable, DefinitionRefused) as error:
                if not skip:
                    raise
                skipped[number] = error
                return None

        asked = [listed(number, post) for number, post in enumerate(posts)]
        if len(asked) == 1:
            found: list[Listed | BaseException | None] = [await asked[0]]
        else:
            found = await asyncio.gather(*asked, return_exceptions=True)  # none is left asking when another one raises
        lists: list[Listed | RelayError] = []
        for number, one in enumerate(found):
            if isinstance(one, BaseException):
                raise one
            lists.append(skipped[number] if one is None else one)
        return lists

    # --- inside

    def _server(self, name: str, inline: Mapping[str, Any] | None = None) -> ServerSettings:
        """The settings of a server that this relay may ask."""
        self._behalf.require_server(given.text("the name of a server", name))
        if inline is None:
            return self._config.server(name)
        return config.from_mapping({name: inline}, limits=self._config.limits, source="inline settings").server(name)

    def _servers(self, names: Sequence[str | Mapping[str, Any]]) -> list[ServerSettings]:
        """The servers that are meant, each once."""
        meant: dict[str, Mapping[str, Any] | None] = {}
        last: str | None = None
        for name in names or self._behalf.served(self._config.servers):
            if isinstance(name, str):
                meant.setdefault(name, None)
                last = name
            elif last is not None and isinstance(name, Mapping):
                meant[last], last = name, None
            else:
                raise SettingWrong(
                    "tools() takes names of servers as texts, each with its settings after it, as a mapping, if they"
                    f" are inline, and not {type(name).__name__}"
                )
        found = [self._server(name, inline) for name, inline in meant.items()]
        if not found and not names:
            raise SettingWrong(f"{self._config.source}: there is no server at all; name one in {self._config.under}")
        self._behalf.require_count(len(found))
        return found

    def _post(self, settings: ServerSettings) -> Post:
        if self._counter is None and (uncounted := settings.limits.in_tokens):
            why = f"{uncounted[0]} is a limit in tokens, and nothing counts them: give the relay a counter, as tokens="
            raise SettingWrong(f"{settings.name}: {why}", server=settings.name)
        return Post(
            settings,
            stations=self._stations,
            lock=self._lock,
            token=self._behalf.token(settings),
            principal=self._behalf.principal,
            funnels=self._charged,
        )

    def _charged(self, settings: ServerSettings, ledger: Ledger, redaction: Redaction | None) -> Funnel:
        filters = self._filters if redaction is None else (redaction.filtered, *self._filters)
        return Funnel(settings.name, limits=settings.limits, filters=filters, tokens=self._counter, ledger=ledger)

    def _asking(self, settings: ServerSettings, ledger: Ledger) -> Funnel:
        return self._charged(settings, ledger, Redaction(secrets_of(settings)))


def _gated(gate: Gate | None, timeout: float) -> Gated | None:
    given.seconds("gate_timeout", timeout)
    gate = _checked("gate", gate, "call")
    return None if gate is None else Gated(gate, timeout)


def _checked(name: str, function: Any, *takes: str) -> Any:
    if function is not None:
        given.function(name, function, *takes)
    return function
