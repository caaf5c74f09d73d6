"""`Server`: what a Python program offers to MCP clients."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Unpack

import mcprelay.server
from mcprelay import revisions
from mcprelay.errors import ConfigurationError
from mcprelay.ports import Channel, EventLog, Sealer, SessionMode, SessionStore
from mcprelay.server.call import HttpRequest, Principal
from mcprelay.server.capability import Capabilities
from mcprelay.server.context import Context
from mcprelay.server.dispatch import Dispatcher
from mcprelay.server.life import Life, lifespan_of
from mcprelay.server.limits import Limits
from mcprelay.server.option import RunOptions
from mcprelay.server.registry import Registry
from mcprelay.server.resume import KeyRing, StateKeys
from mcprelay.server.setting import check_settings
from mcprelay.server.telemetry import traced
from mcprelay.server.thread import ThreadPool
from mcprelay.types import CacheScope, Icon, Implementation, ServerCapabilities

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcprelay.auth.resource import Bearer
    from mcprelay.revisions import Revision
    from mcprelay.server.admission import Builder
    from mcprelay.server.asgi import App
    from mcprelay.server.discovery import Found
    from mcprelay.server.discovery.cache import Store
    from mcprelay.server.running import Running

__all__ = ["App", "Bearer", "Context", "Found", "Limits", "Running", "Server", "Store"]

_PLACES = {
    "App": "mcprelay.server.asgi",
    "Bearer": "mcprelay.auth.resource",
    "Found": "mcprelay.server.discovery",
    "Running": "mcprelay.server.running",
    "Store": "mcprelay.server.discovery.cache",
}
"""What signatures name and only some servers use: each is loaded when it is first asked for, which `help` does."""

Transport = Literal["stdio", "http"]


class Server(Registry):
    """A server: tools, resources, templates and prompts, and how they are reached.

    One server may be reached in several ways at once; it runs once per process.

    Args:
        name: What it is called, for display.
        version: Its own version.
        title: A name for people.
        description: What it is for.
        instructions: Guidance for a model on how to use it.
        icons: Pictures for display.
        website_url: Where to read more.
        lifespan: An async generator function of the server, or one that gives an async context manager, entered once
            per process before the first request. What it yields is `ctx.lifespan`.
        auth: Who may call over HTTP. Without it the server is open to whoever reaches it.
        context: Makes the value of `ctx.state`, a function of the HTTP request (and the principal), sync or async. It
            may raise `RequestRefused`.
        capabilities: What is declared, where it shall not be derived from what is registered.
        limits: See `Limits`.
        logger: Where the server logs, `mcprelay.server` unless given; events go to its child `events`.
        among: The protocol revisions to speak, by name; all of them unless given.
        ttl_ms: For how many milliseconds clients may keep lists and resources.
        cache_scope: Whether what they keep may serve others too.
        strict: Whether arguments must have exactly their types: `"3"` is no integer then.
        container: Makes the instances of handler classes; without one there is one instance per class (see `bind`).
        state_keys: Secrets that seal the state of calls that ask questions, the first of which seals. Give the same
            ones to every worker and across restarts; without them a key is made for this process.
        sealer: Seals that state instead of the keys.
        allowed_hosts: Host names that HTTP requests may be for; derived from the bind address unless given.
        allowed_origins: Origins that HTTP requests may come from; the server's own unless given.
        public_url: The address that clients know, where it is not the bind address.
        cors: Whether pages of the allowed origins may use the server from a browser.
        sessions: Whether calls of the handshake era over HTTP need a session. `"optional"` serves plain calls without
            one too; `"off"` begins none, so that any worker can answer any request, and the server can neither ask the
            client nor tell it of changes.
        session_store: Where sessions are kept; in memory unless given.
        event_log: Where the events of resumable streams are kept; in memory unless given.

    Raises:
        ConfigurationError: A setting is not what it must be; the message names it.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0",
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        icons: Sequence[Icon] | None = None,
        website_url: str | None = None,
        lifespan: Callable[..., AsyncIterator[Any] | AbstractAsyncContextManager[Any]] | None = None,
        auth: mcprelay.server.Bearer | None = None,
        context: Callable[..., Any] | None = None,
        capabilities: ServerCapabilities | None = None,
        limits: Limits | None = None,
        logger: logging.Logger | None = None,
        among: Iterable[str] | None = None,
        ttl_ms: int = 0,
        cache_scope: CacheScope = "private",
        strict: bool = False,
        container: Callable[[type], Any] | None = None,
        state_keys: Sequence[str | bytes] | None = None,
        sealer: Sealer | None = None,
        allowed_hosts: Sequence[str] | None = None,
        allowed_origins: Sequence[str] | None = None,
        public_url: str | None = None,
        cors: bool = False,
        sessions: SessionMode = "required",
        session_store: SessionStore | None = None,
        event_log: EventLog | None = None,
    ) -> None:
        check_settings(locals())
        self.limits = limits or Limits()
        super().__init__(self.limits, container=container, logger=logger or logging.getLogger("mcprelay.server"))
        self.container.bind(Server, self)
        self.info = Implementation(name, version, title, description, tuple(icons) if icons else None, website_url)
        self.instructions = instructions
        self.revisions = _chosen(among)
        self.served = {revision.name: revision for revision in self.revisions}
        self.auth = _guard(auth)
        self.ttl_ms = ttl_ms
        self.cache_scope: CacheScope = cache_scope
        self.strict = strict
        self.allowed_hosts = allowed_hosts
        self.allowed_origins = allowed_origins
        self.public_url = public_url
        if allowed_hosts or allowed_origins or public_url:
            _check_hosts(self)
        self.cors = cors
        self.sessions: SessionMode = sessions
        self.session_store = session_store
        self.event_log = event_log
        self.state_keys = _sealing(sealer or KeyRing(list(state_keys) if state_keys else None), self.limits)
        self.declared = Capabilities(self.catalog, capabilities)
        self.threads = _threads(self.limits)
        self.door_threads = _threads(self.limits)  # of what decides on requests, whatever the handlers block
        self.dispatcher = Dispatcher(self)
        self.life = Life(self, self._entered)
        self.builder = None if context is None else _builder(self, context)
        self._running = False
        self._held: contextlib.AsyncExitStack | None = None
        if lifespan is not None:
            self.entering = lifespan_of(lifespan)

    def __repr__(self) -> str:
        return f"Server({self.info.name!r}, version={self.info.version!r})"

    # --- what it says of itself

    @property
    def capabilities(self) -> ServerCapabilities:
        """What is declared: as given, or as what is registered makes it."""
        return self.declared.now

    # --- its life

    async def start(self) -> None:
        """Enter the lifespan and compose the middleware, until `stop`. Starting twice is starting once."""
        await self.life.start()

    async def stop(self) -> None:
        """End every subscription with its final message, then leave the lifespan."""
        self.changes.close()
        await self.life.stop()

    @contextlib.asynccontextmanager
    async def _entered(self) -> AsyncGenerator[Any, None]:
        """What the server lives in: the servers mounted in it, then its own lifespan."""
        async with contextlib.AsyncExitStack() as stack:
            self._held = stack
            if self.auth is not None:
                stack.push_async_callback(self.auth.aclose)
            for mount in self.mounts:
                await stack.enter_async_context(mount.inner.life.held())
            value = None if self.entering is None else await stack.enter_async_context(self.entering(self))
            if not any(shelf.keys for shelf in self.catalog.shelves):
                self.logger.warning(
                    "%r starts with nothing to offer: decorate something, or call server.discover(…) before", self
                )
            self.dispatcher.compose([*traced(self), *self.layers])
            try:
                yield value
            finally:
                self._held = None
                self.followed.clear()
                self.changes.close()

    async def hold(self, inner: Server) -> None:
        """Let a server that was mounted late live as long as this one."""
        await self.keep(inner.life.held())

    async def keep(self, context: AbstractAsyncContextManager[Any]) -> None:
        """Enter a context until the server's life ends."""
        if self._held is not None:
            await self._held.enter_async_context(context)

    def claim(self) -> None:
        """Note that the server runs.

        Raises:
            ConfigurationError: It runs already.
        """
        if self._running:
            raise ConfigurationError(f"{self!r} runs already: a server runs once per process")
        self._running = True

    def release(self) -> None:
        """Note that it does not run any more."""
        self._running = False

    # --- how it is reached

    def asgi(
        self, *, path: str = "/mcp", sse_path: str | None = "/sse", message_path: str = "/messages"
    ) -> mcprelay.server.App:
        """The server as an ASGI app, to be mounted anywhere. It answers at the mount and at `path` below it.

        The older HTTP+SSE transport is served beside it, at `sse_path` and `message_path` (`sse_path=None` for not).

        No lifespan wiring is needed: where the host forwards the lifespan, the server starts and stops with it; where
        it does not, the server starts at the first request and stops by `await app.aclose()`.
        """
        from mcprelay.server.asgi import App
        from mcprelay.server.running import host_rules

        return App(self, host_rules(self, None), path=path, sse_path=sse_path, message_path=message_path)

    def connect(
        self, *, principal: Principal | None = None, http: HttpRequest | None = None, state: Any = None
    ) -> Channel:
        """A client's end of a channel to this server, in this process, with real bytes.

        The server lives as long as somebody is connected, unless it was started for itself.

        Args:
            principal: Who the client is.
            http: An HTTP request that handlers shall see.
            state: The value of `ctx.state`.
        """
        from mcprelay.server.inprocess import connect

        return connect(self, principal=principal, http=http, state=state)

    async def serve_channel(
        self, channel: Channel, *, principal: Principal | None = None, state: Any = None, linger: float = 0.0
    ) -> None:
        """Serve one client over a channel, until it ends. Calls in flight then have `linger` seconds to answer."""
        from mcprelay.server.connection import Connection

        async with self.life.held():
            await Connection(self, channel, principal=principal, state=state, linger=linger).serve()

    def serve(self, transport: Transport = "stdio", **options: Unpack[RunOptions]) -> mcprelay.server.Running:
        """Serve from async code.

        `async with server.serve("http", port=0) as running: running.url`, or `await server.serve("stdio")` until the
        client ends it. See `run` for the options.
        """
        from mcprelay.server.running import Running

        return Running(self, transport, dict(options))

    def run(self, transport: Transport = "stdio", **options: Unpack[RunOptions]) -> None:
        """Serve until the client ends it (stdio) or a signal does (HTTP).

        Args:
            transport: `"stdio"` or `"http"`.
            options: For HTTP: `host` ("127.0.0.1"), `port` (8000), `path` ("/mcp"), `sse_path` ("/sse", None for not),
                `message_path` ("/messages"), `ssl_certfile`, `ssl_keyfile`,
                `allow_unauthenticated` (needed to bind an unprotected server to anything but loopback).
                For stdio: `state`, the value of `ctx.state`.

        Raises:
            ConfigurationError: An option is unknown or will not do, or the server runs already.
        """
        from mcprelay.server.running import run

        run(self, transport, dict(options))


def _chosen(among: Iterable[str] | None) -> tuple[Revision, ...]:
    """The revisions of these names, the newest first."""
    if among is None:
        return tuple(revisions.ALL.values())
    names = list(among)
    for name in names:
        if name not in revisions.ALL:
            raise ConfigurationError(f"among: there is no revision {name!r}; there are {', '.join(revisions.ALL)}")
    if not names:
        raise ConfigurationError("among: name at least one protocol revision")
    return tuple(revision for revision in revisions.ALL.values() if revision.name in names)


def _check_hosts(server: Server) -> None:
    from mcprelay.server.running import host_rules

    host_rules(server, None)


def _sealing(sealer: Sealer, limits: Limits) -> StateKeys:
    return StateKeys(sealer, limits.state_bytes, limits.state_seconds)


def _threads(limits: Limits) -> ThreadPool:
    return ThreadPool(limits.worker_threads, abandoned_threads=limits.abandoned_threads)


def _builder(server: Server, context: Callable[..., Any]) -> Builder:
    from mcprelay.server.admission import Builder

    return Builder(server, context)


def _guard(auth: Any) -> Bearer | None:
    if auth is None:
        return None
    from mcprelay.auth.resource import Bearer

    if not isinstance(auth, Bearer):
        kind = type(auth).__name__  # the value may be a secret
        msg = f"auth: a mcprelay.auth.resource.Bearer(verify, resource=...), and not a {kind}"
        raise ConfigurationError(msg)
    return auth


def __getattr__(name: str) -> object:
    """Load the module of a public name when it is first asked for."""
    module = _PLACES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *_PLACES})
