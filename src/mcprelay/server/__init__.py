"""`Server`: what a Python program offers to MCP clients."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Concatenate, Literal, TypeVar, overload

import msgspec

from mcprelay import revisions
from mcprelay.errors import ConfigurationError
from mcprelay.revisions import Feature, Revision
from mcprelay.server.catalog import Catalog
from mcprelay.server.container import Container
from mcprelay.server.context import Context
from mcprelay.server.dispatch import Dispatcher
from mcprelay.server.limits import Limits
from mcprelay.server.resume import KeyRing, StateKeys
from mcprelay.server.subscription import UPDATED, Changes
from mcprelay.server.thread import ThreadPool
from mcprelay.types import Implementation, ServerCapabilities

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager

    from mcprelay.auth.resource import Bearer
    from mcprelay.contract import Contract
    from mcprelay.core.endpoint import SessionMode
    from mcprelay.ports import Channel, EventLog, Sealer, SessionStore
    from mcprelay.server.asgi import App
    from mcprelay.server.call import Call, HttpRequest, Principal
    from mcprelay.server.dispatch import CallNext, Outcome
    from mcprelay.server.running import Running
    from mcprelay.types import Annotations, CacheScope, Icon, Meta

__all__ = ["Context", "Limits", "Server"]

F = TypeVar("F")
InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
Transport = Literal["stdio", "http"]


class Server:
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
        lifespan: An async context manager of the server, entered once per process before the first request.
        auth: Who may call over HTTP. Without it the server is open to whoever reaches it.
        capabilities: What is declared, where it shall not be derived from what is registered.
        limits: See `Limits`.
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
        lifespan: Callable[[Server], AbstractAsyncContextManager[Any]] | None = None,
        auth: Bearer | None = None,
        capabilities: ServerCapabilities | None = None,
        limits: Limits | None = None,
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
        self.info = Implementation(name, version, title, description, tuple(icons) if icons else None, website_url)
        self.instructions = instructions
        self.limits = limits or Limits()
        self.revisions = _chosen(among)
        self.served = {revision.name: revision for revision in self.revisions}
        self.auth = auth
        self.ttl_ms = ttl_ms
        self.cache_scope: CacheScope = cache_scope
        self.strict = strict
        self.allowed_hosts = allowed_hosts
        self.allowed_origins = allowed_origins
        self.public_url = public_url
        self.cors = cors
        self.sessions: SessionMode = sessions
        self.session_store = session_store
        self.event_log = event_log
        self.state_keys = StateKeys(
            sealer or KeyRing(list(state_keys) if state_keys else None),
            self.limits.state_bytes,
            self.limits.state_seconds,
        )
        self.changes = Changes(self.limits.listen_streams)
        self._derived: ServerCapabilities | None = None
        self.catalog = Catalog(self._catalog_changed)
        for shelf in self.catalog.shelves:
            shelf.page_size = self.limits.page_size
        self.container = Container(container)
        self.threads = ThreadPool(self.limits.worker_threads)
        self.dispatcher = Dispatcher(self)
        self.started = False
        self._running = False
        self._declared = capabilities
        self._lifespan = lifespan
        self._middleware: list[Callable[[Call, CallNext], Awaitable[Outcome]]] = []
        self._exit = contextlib.AsyncExitStack()
        self._starting: asyncio.Lock | None = None

    def __repr__(self) -> str:
        return f"Server({self.info.name!r}, version={self.info.version!r})"

    # --- what it offers

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
        output_schema: dict[str, Any] | None = None,
        schema: Any = None,
        tags: Iterable[str] = (),
        strict: bool | None = None,
        inline: bool = False,
        visible: Callable[[Principal | None], bool] | None = None,
        requires: Iterable[str] = (),
        replace: bool = False,
    ) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Offer a function as a tool; it stays the function it was. See `add_tool` for the options."""
        return self._decorate(self.add_tool, function, options)

    @overload
    def resource(self, uri: str) -> Callable[[F], F]: ...
    @overload
    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
        ttl_ms: int | None = None,
        cache_scope: CacheScope | None = None,
        tags: Iterable[str] = (),
        inline: bool = False,
        visible: Callable[[Principal | None], bool] | None = None,
        requires: Iterable[str] = (),
        replace: bool = False,
    ) -> Callable[[F], F]: ...
    def resource(self, uri: str, **options: Any) -> Any:
        """Offer a function as a resource, or as a template where the URI has `{variables}`. See `add_resource`."""
        if not isinstance(uri, str):
            msg = "@server.resource needs the resource's URI: @server.resource('config://app')"
            raise ConfigurationError(msg)
        return self._decorate(lambda function, **given: self.add_resource(uri, function, **given), None, options)

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
        tags: Iterable[str] = (),
        inline: bool = False,
        visible: Callable[[Principal | None], bool] | None = None,
        requires: Iterable[str] = (),
        replace: bool = False,
    ) -> Callable[[F], F]: ...
    def prompt(self, function: Any = None, /, **options: Any) -> Any:
        """Offer a function as a prompt; it stays the function it was. See `add_prompt` for the options."""
        return self._decorate(self.add_prompt, function, options)

    def _decorate(self, add: Callable[..., None], function: Any, options: dict[str, Any]) -> Any:
        def decorate(given: Any) -> Any:
            add(given, **options)
            return given

        return decorate if function is None else decorate(function)

    def add_tool(self, function: Any, *, replace: bool = False, **options: Any) -> None:
        """Offer a tool. At run time, every client that listens is told.

        Args:
            function: What to call: a function, a bound method, a callable object, a class with `__call__`.
            replace: Whether it may take the place of a tool of that name.
            options: `name`, `title`, `description`, `icons`, `meta`; the hints `read_only`, `destructive`,
                `idempotent`, `open_world` (unset ones are not sent); `output_schema` and `schema` to override what the
                signature says; `tags`; `strict`; `inline` to run a `def` on the loop; `visible` and `requires`.

        Raises:
            DefinitionError: The function cannot be a tool as it is written, or there is one of that name.
        """
        from mcprelay.server.element import tool_entry

        self.catalog.tools.add(tool_entry(self, function, **options), replace=replace)

    def add_resource(self, uri: str, function: Any, *, replace: bool = False, **options: Any) -> None:
        """Offer a resource, or a template where the URI has `{variables}` named like the function's parameters.

        Raises:
            DefinitionError: The URI or the function will not do, or there is one of that URI.
        """
        from mcprelay.server.element import resource_entry, template_entry

        if "{" in uri:
            self.catalog.templates.add(template_entry(self, uri, function, **options), replace=replace)
        else:
            self.catalog.resources.add(resource_entry(self, uri, function, **options), replace=replace)

    def add_prompt(self, function: Any, *, replace: bool = False, **options: Any) -> None:
        """Offer a prompt.

        Raises:
            DefinitionError: The function cannot be a prompt as it is written, or there is one of that name.
        """
        from mcprelay.server.element import prompt_entry

        self.catalog.prompts.add(prompt_entry(self, function, **options), replace=replace)

    def handle(
        self,
        contract: Contract[InputT, OutputT],
        function: Callable[Concatenate[InputT, ...], OutputT | Awaitable[OutputT]],
        *,
        replace: bool = False,
        inline: bool = False,
    ) -> None:
        """Offer the tool that a contract describes; `function` takes the contract's input and gives its output.

        Raises:
            DefinitionError: The function takes another number of values, or there is a tool of that name.
        """
        from mcprelay.server.contract import contract_entry

        self.catalog.tools.add(contract_entry(self, contract, function, inline=inline), replace=replace)

    def enable(self, *names: str, tags: Iterable[str] = ()) -> None:
        """Offer these again: tools and prompts by name, resources by URI, templates by their text, all of them by tag.

        Raises:
            KeyError: There is nothing of that name.
        """
        self._switch(names, frozenset(tags), on=True)

    def disable(self, *names: str, tags: Iterable[str] = ()) -> None:
        """Stop offering these until they are enabled again; to a client they are unknown meanwhile.

        Raises:
            KeyError: There is nothing of that name.
        """
        self._switch(names, frozenset(tags), on=False)

    def _switch(self, names: Sequence[str], tags: frozenset[str], *, on: bool) -> None:
        known = set().union(*(shelf.keys for shelf in self.catalog.shelves))
        for name in names:
            if name not in known:
                raise KeyError(f"there is no tool, resource, template or prompt {name!r}")
        for shelf in self.catalog.shelves:
            tagged = shelf.tagged(tags) if tags else set()
            shelf.switch([key for key in shelf.keys if key in names or key in tagged], on)

    def remove_tool(self, name: str) -> None:
        """Stop offering a tool. Raises `KeyError` for an unknown one."""
        self.catalog.tools.remove(name)

    def remove_resource(self, uri: str) -> None:
        """Stop offering a resource, or a template by its text. Raises `KeyError` for an unknown one."""
        (self.catalog.templates if "{" in uri else self.catalog.resources).remove(uri)

    def remove_prompt(self, name: str) -> None:
        """Stop offering a prompt. Raises `KeyError` for an unknown one."""
        self.catalog.prompts.remove(name)

    def bind(self, interface: type, implementation: Any) -> None:
        """Say what stands for a type in the constructors of handler classes: a class, or an instance."""
        self.container.bind(interface, implementation)

    def middleware(self, layer: F) -> F:
        """Put `async def layer(call, call_next)` around every call. The first registered is the outermost.

        Raises:
            ConfigurationError: The server has started.
        """
        if self.started:
            msg = "middleware is registered before the server starts"
            raise ConfigurationError(msg)
        self._middleware.append(layer)  # type: ignore[arg-type]
        return layer

    async def resource_updated(self, uri: str) -> None:
        """Tell every client that subscribed to this resource that it changed."""
        self.changes.publish(UPDATED, uri)

    # --- what it says of itself

    @property
    def capabilities(self) -> ServerCapabilities:
        """What is declared: as given, or as what is registered makes it."""
        if self._declared is not None:
            return self._declared
        if self._derived is None:
            self._derived = self._derive()
        return self._derived

    def _derive(self) -> ServerCapabilities:
        catalog = self.catalog
        completes = len(catalog.prompts) or len(catalog.templates)
        resources = len(catalog.resources) or len(catalog.templates)
        return ServerCapabilities(
            tools={"listChanged": True} if len(catalog.tools) else None,
            resources={"subscribe": True, "listChanged": True} if resources else None,
            prompts={"listChanged": True} if len(catalog.prompts) else None,
            completions={} if completes else None,
            logging={},
        )

    def _catalog_changed(self, notice: str) -> None:
        self._derived = None
        self.changes.publish(notice)

    def capabilities_in(self, revision: Revision) -> ServerCapabilities:
        """The same, as a revision has it."""
        declared = self.capabilities
        if not revision.has(Feature.COMPLETIONS_CAPABILITY):
            declared = msgspec.structs.replace(declared, completions=None)
        return declared

    # --- its life

    async def start(self) -> None:
        """Enter the lifespan and compose the middleware. Starting twice is starting once."""
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            if self.started:
                return
            if self._lifespan is not None:
                await self._exit.enter_async_context(self._lifespan(self))
            self.dispatcher.compose(self._middleware)
            self.started = True

    async def stop(self) -> None:
        """End every subscription with its final message, then leave the lifespan."""
        self.changes.close()
        if self.started:
            self.started = False
            self._starting = None
            await self._exit.aclose()

    def claim(self) -> None:
        """Note that the server runs.

        Raises:
            ConfigurationError: It runs already.
        """
        if self._running:
            msg = f"{self!r} runs already: a server runs once per process"
            raise ConfigurationError(msg)
        self._running = True

    def release(self) -> None:
        """Note that it does not run any more."""
        self._running = False

    # --- how it is reached

    def asgi(self, *, path: str = "/mcp", sse_path: str | None = "/sse", message_path: str = "/messages") -> App:
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

        Args:
            principal: Who the client is.
            http: An HTTP request that handlers shall see.
            state: The value of `ctx.state`.
        """
        from mcprelay.server.inprocess import connect

        return connect(self, principal=principal, http=http, state=state)

    async def serve_channel(self, channel: Channel, *, principal: Principal | None = None, state: Any = None) -> None:
        """Serve one client over a channel, until it ends."""
        from mcprelay.server.connection import Connection

        await self.start()
        await Connection(self, channel, principal=principal, state=state).serve()

    def serve(self, transport: Transport = "stdio", **options: Any) -> Running:
        """Serve from async code.

        `async with server.serve("http", port=0) as running: running.url`, or `await server.serve("stdio")` until the
        client ends it. See `run` for the options.
        """
        from mcprelay.server.running import Running

        return Running(self, transport, options)

    def run(self, transport: Transport = "stdio", **options: Any) -> None:
        """Serve until the client ends it (stdio) or a signal does (HTTP).

        Args:
            transport: `"stdio"` or `"http"`.
            options: For HTTP: `host` ("127.0.0.1"), `port` (8000), `path` ("/mcp"), `sse_path` ("/sse", None for not),
                `message_path` ("/messages"), `ssl_certfile`, `ssl_keyfile`,
                `allow_unauthenticated` (needed to bind an unprotected server to anything but loopback).

        Raises:
            ConfigurationError: An option is unknown or will not do, or the server runs already.
        """
        from mcprelay.server.running import run

        run(self, transport, options)


def _chosen(among: Iterable[str] | None) -> tuple[Revision, ...]:
    """The revisions of these names, the newest first."""
    if among is None:
        return tuple(revisions.ALL.values())
    names = list(among)
    for name in names:
        if name not in revisions.ALL:
            raise ConfigurationError(f"among: there is no revision {name!r}; there are {', '.join(revisions.ALL)}")
    if not names:
        msg = "among: name at least one protocol revision"
        raise ConfigurationError(msg)
    return tuple(revision for revision in revisions.ALL.values() if revision.name in names)
