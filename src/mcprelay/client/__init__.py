"""`Client`: call any MCP server, and know what happened."""

from __future__ import annotations

import inspect
import os
import ssl as tls
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import msgspec

from mcprelay import __version__, revisions
from mcprelay.auth import Auth
from mcprelay.client import argument, discarded, handshake, misuse
from mcprelay.client.argument import encode_object
from mcprelay.client.cache import Cache
from mcprelay.client.caller import Caller
from mcprelay.client.calling import ToolCalls
from mcprelay.client.catalogue import Catalogue
from mcprelay.client.connection import Connection
from mcprelay.client.discarded import Discarded
from mcprelay.client.ear import Ear
from mcprelay.client.face import Face
from mcprelay.client.handler import Handlers, OnElicit, OnRoots, OnSample
from mcprelay.client.listening import Listening
from mcprelay.client.memory import SHARED, Memory
from mcprelay.client.network import Network
from mcprelay.client.option import CallOptions, Fields, TimeOptions
from mcprelay.client.party import Party, weakly
from mcprelay.client.progress import Hearing, OnLog, OnProgress
from mcprelay.client.retry import Retry
from mcprelay.client.setting import DEFAULTS, Settings
from mcprelay.client.shelf import Shelf
from mcprelay.client.target import target_of
from mcprelay.client.toolbox import Toolbox
from mcprelay.client.tooling import Tooling
from mcprelay.errors import ConfigurationError
from mcprelay.ports import Channel, Sender
from mcprelay.revisions import Era
from mcprelay.types import ClientCapabilities, Implementation, LogLevel, SubscriptionFilter

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Client"]

_METHOD = "the name of a method, such as 'tools/list'"
_TOOLS_CHANGED = "notifications/tools/list_changed"


class Client(ToolCalls, Catalogue):
    """One server, as its client sees it. May be used by many tasks of one event loop at once.

    `async with client:`, or `connect()` and `aclose()`, in any task. A client that was closed can be opened again.
    Blocks of `async with` may lie inside and beside each other: the last that is left closes it.

    Args:
        target: An address (`https://…`), a command (a list of strings or paths), a `Server` of this process or anything
            else with a `connect()` that gives a `Channel`, or a `Channel`.
        auth: Over HTTP: a bearer token, a function that gives one for each request, or an `Auth` that gets tokens.
        headers: Over HTTP: more headers, or a function that gives them for each request. The protocol's own cannot be
            set.
        env: Of a command: variables beside the few that are safe to inherit.
        cwd: Of a command: its working directory.
        stderr: Of a command: what becomes of its standard error: `"tail"` keeps the end for errors, `"inherit"` shows
            it, a function gets each line.
        client_info: Name and version that the server sees.
        capabilities: What the server may ask for. What the handlers answer, when left out; in the stateless era forms
            and addresses too, because a question without a handler is handed to the caller.
        on_elicit: Answers questions to a person.
        on_sample: Answers questions to a model.
        on_roots: The folders that the server may work in: a list, or a function.
        on_progress: Hears of the progress of every call that has no `on_progress` of its own.
        on_log: Hears of log messages that no call hears of itself.
        log_level: From which level on they are asked for; `"unasked"` asks for none, and hears what comes all the same.
        retry: When failed calls are sent again; never, when left out.
        settings: Limits and waits; single ones can be given by name (`request_timeout=5`).
        revision: The only protocol revision to speak, by its name.
        sender: The HTTP client, in place of the one on aiohttp. Whoever made it closes it: this client does not.
        proxy: The URL of an HTTP proxy.
        ssl: How TLS is done: custom authorities, a client certificate.
        trust_env: Whether proxies named by the environment are used.
        allow_plaintext: Whether credentials may go over plain HTTP to another machine. What gives tokens to `OAuth` is
            reached over https all the same.
        cache: Where fresh results are kept; clients of one loop may share one, and share what is the same for them.
        memory: Where the eras of servers are remembered; the process shares one.
        check_output: Whether structured content is checked against the output schema of a tool that was listed.

    Raises:
        ConfigurationError: Something of this cannot be.
    """

    def __init__(
        self,
        target: str | Sequence[str | os.PathLike[str]] | Channel | Any,
        *,
        auth: str | Callable[[], str | Awaitable[str]] | Auth | None = None,
        headers: Fields | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stderr: Literal["tail", "inherit"] | Callable[[str], None] = "tail",
        client_info: Implementation | None = None,
        capabilities: ClientCapabilities | None = None,
        on_elicit: OnElicit | None = None,
        on_sample: OnSample | None = None,
        on_roots: OnRoots | None = None,
        on_progress: OnProgress | None = None,
        on_log: OnLog | None = None,
        log_level: LogLevel | Literal["unasked"] | None = None,
        retry: Retry | None = None,
        settings: Settings = DEFAULTS,
        revision: str | None = None,
        sender: Sender | None = None,
        proxy: str | None = None,
        ssl: tls.SSLContext | None = None,
        trust_env: bool = False,
        allow_plaintext: bool = False,
        cache: Cache | None = None,
        memory: Memory | None = None,
        check_output: bool = True,
        **limits: float,
    ) -> None:
        misuse.of_type("settings", settings, Settings)
        self.settings = _with(settings, limits)
        misuse.of_type("client_info", client_info, Implementation)
        misuse.of_type("capabilities", capabilities, ClientCapabilities)
        misuse.of_type("retry", retry, Retry)
        misuse.of_type("cache", cache, Cache)
        misuse.of_type("memory", memory, Memory)
        misuse.function("on_progress", on_progress)
        misuse.function("on_log", on_log)
        if log_level != "unasked":
            misuse.level(log_level)
        self._party = Party(
            info=client_info or Implementation("mcprelay", __version__),
            handlers=Handlers(elicit=on_elicit, sample=on_sample, roots=on_roots),
            settings=self.settings,
            offered=_offered(revision),
            capabilities=capabilities,
            changed=weakly(self._changed),
            on_log=None if on_log is None else Hearing(on_log, pending_messages=self.settings.pending_messages),
            log_level=log_level,
        )
        network = Network(sender=sender, proxy=proxy, ssl=ssl, trust_env=trust_env, allow_plaintext=allow_plaintext)
        self._target = target_of(target, auth=auth, headers=headers, env=env, cwd=cwd, stderr=stderr, network=network)
        self._connection = Connection(self._target, self._party, memory or SHARED)
        self._caller = Caller(self._connection, self._party, retry=retry, on_progress=on_progress)
        self._cache = cache
        self._shelf = Shelf(self._caller, self._target, self._party, cache=self._kept)
        self._toolbox = Toolbox()
        self._tooling = Tooling(self._caller, self._toolbox, refresh=self._refresh, check_output=check_output)
        self._ear = Ear(self._caller)

    def __repr__(self) -> str:
        return f"Client({self._target.name!r})"

    # --- lifetime

    async def connect(self) -> Self:
        """Connect. Over HTTP nothing is sent before the first call; a child process is started and greeted.

        Raises:
            CallFailed: There is no connection, or nothing in common to speak.
            LocalFault: The client is open in another event loop, or its pool has let it go.
        """
        await self._connection.open()
        return self

    async def aclose(self) -> None:
        """Let go of everything: calls that wait fail, a child process ends. Twice is once.

        Blocks of `async with` close it when the last of them is left; this does at once, whoever is in one.
        """
        await self._hush()
        await self._connection.close()

    async def _hush(self) -> None:
        for listening in list(self._ear.open):
            await listening.aclose()

    async def __aenter__(self) -> Self:
        self._connection.enter()
        try:
            return await self.connect()
        except BaseException:
            if self._connection.held:  # by a block that may have been left meanwhile
                await self.__aexit__(None, None, None)
            else:
                self._connection.leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._connection.last:
                await self._hush()
        finally:  # only now, because another block may have been entered meanwhile
            if self._connection.leave():
                await self._connection.close()

    @property
    def busy(self) -> bool:
        """Whether a call is on its way, from its beginning to its end, somebody listens, or a handler is asked."""
        return bool(self._ear.open) or self._caller.busy

    # --- the server

    @property
    def server(self) -> Face:
        """What is known of the server: name, capabilities, instructions, revision. `discover` asks for it."""
        link = self._connection.current
        return Face() if link is None else link.face

    @property
    def discarded(self) -> Discarded:
        """How much of what came over this connection was discarded; more than nothing shows a confused server."""
        return discarded.of(self._connection.current)

    async def discover(self, **times: Unpack[TimeOptions]) -> Face:
        """Ask the server what it is. In the handshake era it has said so when the connection was made.

        Raises:
            CallFailed: It did not answer.
        """
        call = self._caller.call(handshake.DISCOVER, options=times)
        link = await self._connection.link(call)
        if link.revision is None or link.revision.era is Era.STATELESS:
            result = await self._caller.send(call)
            if link.revision is not None and link.revision.era is Era.STATELESS:
                handshake.discovered(link, result, call)
        return self.server

    # --- anything else

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Send any request, and give its result as plain data.

        Args:
            method: The method, such as `"tools/list"`.
            params: A mapping of its params, without what the client itself puts into `_meta`.
            name: What the `Mcp-Name` header mirrors, for a method of an extension.
            options: See `CallOptions`.

        Raises:
            CallFailed: There is no result.
            ConfigurationError: It cannot be sent as it is. Nothing was.
        """
        argument.text("method", method, wanted=_METHOD)
        if name is not None:
            argument.text("name", name)
        given = argument.members("params", params)
        meta = argument.members("params: _meta", given.pop("_meta", None))
        options["meta"] = {**meta, **argument.members("meta", options.get("meta"))} or None
        known = revisions.NEWEST.method(method)
        if name is None and known is not None and known.mirror is not None:
            mirrored = given.get(known.mirror)
            name = mirrored if isinstance(mirrored, str) else None  # else the server says what is wrong with it
        call = self._caller.call(method, encode_object(given, what="params")[1:-1], name=name, options=options)
        result = await self._caller.send(call)
        return self._caller.read(call, result, msgspec.json.decode)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification. Nobody answers it, so one that is lost on the way is lost without a word.

        Raises:
            CallFailed: There is no connection.
            ConfigurationError: It cannot be sent as it is.
        """
        argument.text("method", method, wanted=_METHOD)
        encoded = b"" if params is None else encode_object(params, what="params")
        await self._caller.tell(method, encoded)

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        updates: Iterable[str] = (),
        reconnect: bool = False,
    ) -> Listening:
        """Hear of changes: `async with client.listen(tools=True) as events: async for event in events: ...`.

        Args:
            tools: Changes of the list of tools.
            prompts: Changes of the list of prompts.
            resources: Changes of the lists of resources and templates.
            updates: URIs of resources whose changes matter.
            reconnect: Listen again when the connection is lost, when the server ends it gracefully, or when one that
                is started anew is not ready yet: after waits that grow, at most `reconnections` times in vain in a
                row. Everything is told as changed then, because what happened meanwhile is not known. A `Channel`
                cannot be opened again.

        Raises:
            ConfigurationError: Nothing is asked for, or `updates` is one string.
        """
        wanted = SubscriptionFilter(
            tools_list_changed=tools,
            prompts_list_changed=prompts,
            resources_list_changed=resources,
            resource_subscriptions=misuse.texts("updates", updates),
        )
        return Listening(
            wanted,
            begin=self._ear.listen,
            left=self._ear.leave,
            missed=self._outdated,
            pending_events=self.settings.pending_events,
            reconnections=self.settings.reconnections if reconnect and self._target.reopens else None,
        )

    # --- inside

    def _kept(self) -> Cache:
        if self._cache is None:
            entries, size = self.settings.cache_entries, self.settings.cache_bytes
            self._cache = Cache(entries=entries, size=size, now=self._connection.now)
        return self._cache

    def _changed(self, notice: str, uri: str | None) -> None:
        self._outdated(notice, uri)
        self._ear.heard(notice, uri)

    def _outdated(self, notice: str, uri: str | None) -> None:
        """What is kept of this is not so any more, or may not be: nobody listened for a while."""
        self._shelf.changed(notice, uri)
        if notice == _TOOLS_CHANGED:
            self._toolbox.forget()

    async def _refresh(self, deadline: float | None) -> None:
        await self.list_tools(fresh=True, deadline=deadline)


def check_names(owner: str, given: Iterable[str], *more: str) -> None:
    """See that a client has such options, or that `more` names them.

    Raises:
        ConfigurationError: It has not; the text says which was meant.
    """
    known = {*inspect.signature(Client).parameters, *Settings.__struct_fields__, *more} - {"target", "limits"}
    for name in sorted(set(given) - known):
        raise ConfigurationError(f"{owner} has no option {name!r}; {misuse.meant(name, known)}")


def _with(settings: Settings, limits: Mapping[str, float]) -> Settings:
    if not limits:
        return settings
    if not limits.keys() <= set(Settings.__struct_fields__):
        check_names("Client", limits)
    return msgspec.structs.replace(settings, **limits)


def _offered(revision: str | None) -> Sequence[revisions.Revision]:
    if revision is None:
        return tuple(revisions.ALL.values())
    found = revisions.find(revision)
    if found is None:
        told = misuse.told_value(revision)
        raise ConfigurationError(f"revision is one of {', '.join(revisions.ALL)}, and not {told}")
    return (found,)
