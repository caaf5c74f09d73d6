"""`Registry`: the half of a server that says what it offers, and what it is made of.

What is registered here goes to the catalog's shelves; how calls find it there is the dispatcher's business. At run time
everything here may be done as well, from the event loop's thread or another, and whoever listens is told.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Concatenate, TypeVar, Unpack, cast, overload

import mcprelay.server
from mcprelay.contract import Contract
from mcprelay.errors import ConfigurationError, DefinitionError
from mcprelay.server.catalog import Catalog
from mcprelay.server.container import Container
from mcprelay.server.event import Event, Events
from mcprelay.server.life import lifespan_of
from mcprelay.server.limits import Limits
from mcprelay.server.mounting import Mounts
from mcprelay.server.option import HandlerOptions, PromptOptions, ResourceOptions, ToolOptions, check
from mcprelay.server.subscription import UPDATED, Changes

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from mcprelay.server import Context, Server
    from mcprelay.server.depends import Overrides
    from mcprelay.server.discovery import Discovery
    from mcprelay.server.dispatch import Middleware

F = TypeVar("F")
MiddlewareT = TypeVar("MiddlewareT", bound="Middleware")
InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class Registry:
    """What a server offers. `Server` is the only one there is.

    Args:
        limits: How long a page of a list is, and how many may listen.
        container: Makes the instances of handler classes.
        logger: Where the server logs.
    """

    def __init__(self, limits: Limits, *, container: Callable[[type], Any] | None, logger: logging.Logger) -> None:
        self.logger = logger
        self.events = Events(logger.getChild("events"))
        self.changes = Changes(limits.listen_streams)
        self.catalog = Catalog(self._catalog_changed)
        for shelf in self.catalog.shelves:
            shelf.page_size = limits.page_size
        self.container = Container(container)
        self.container.bind(logging.Logger, logger)
        self.mounts = Mounts(self._server)
        self.overrides: Overrides | None = None
        self.layers: list[Middleware] = []
        self.entering: Callable[[Any], AbstractAsyncContextManager[Any]] | None = None
        self.started = False
        """Whether the server's lifespan is entered."""
        self.follow: list[Callable[[tuple[str, ...]], AbstractAsyncContextManager[None]]] = []
        """Entered with the URIs that somebody listens to, for as long as they do."""
        self.followed: set[str] = set()
        """Those of them that are followed until the server's life ends, for sessions."""
        self.by_hand = 0
        """How much was done to the server by code: discovery looks at it to know what it must not skip."""
        self._discovery: Discovery | None = None

    @property
    def _server(self) -> Server:
        return cast("Server", self)

    # --- decorators

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self, _name: str | None = None, /, *, replace: bool = False, **options: Unpack[ToolOptions]
    ) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Offer a function as a tool; it stays the function it was. See `add_tool`."""
        return self._decorator("tool", None, function, options)

    def resource(self, uri: str, *, replace: bool = False, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Offer a function as a resource, or as a template where the URI has `{variables}`. See `add_resource`."""
        if not isinstance(uri, str):
            raise DefinitionError("@server.resource needs the resource's URI: @server.resource('config://app')")
        decorator: Callable[[F], F] = self._decorator("resource", uri, None, {"replace": replace, **options})
        return decorator

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(
        self, _name: str | None = None, /, *, replace: bool = False, **options: Unpack[PromptOptions]
    ) -> Callable[[F], F]: ...
    def prompt(self, function: Any = None, /, **options: Any) -> Any:
        """Offer a function as a prompt; it stays the function it was. See `add_prompt`."""
        return self._decorator("prompt", None, function, options)

    def _decorator(self, kind: str, uri: str | None, function: Any, options: dict[str, Any]) -> Any:
        if isinstance(function, str):
            function, options = None, {"name": function, **options}
        replace = options.pop("replace", False)
        check(kind, options)

        def decorate(given: Any) -> Any:
            self._offer(kind, uri, given, options, replace=replace)
            return given

        return decorate if function is None else decorate(function)

    def _offer(self, kind: str, uri: str | None, function: Any, options: Any, *, replace: bool) -> None:
        from mcprelay.server.offering import entry_of

        self.by_hand += 1
        shelf, entry = entry_of(self._server, kind, uri, function, options)
        shelf.add(entry, replace=replace)

    def add_tool(self, function: Any, *, replace: bool = False, **options: Unpack[ToolOptions]) -> None:
        """Offer a tool. At run time, every client that listens is told.

        Args:
            function: What to call: a function, a bound method, a callable object, a class with `__call__`, or
                `(Class, "method")`. The instance of a class is made on first use.
            replace: Whether it may take the place of a tool of that name.
            options: See `ToolOptions`.

        Raises:
            DefinitionError: The function cannot be a tool as it is written, or there is one of that name.
        """
        self._offer("tool", None, function, options, replace=replace)

    def add_resource(
        self, uri: str, function: Any, *, replace: bool = False, **options: Unpack[ResourceOptions]
    ) -> None:
        """Offer a resource, or a template where the URI has `{variables}` named like the function's parameters.

        A parameter `uri` gets the URI itself. See `add_tool` for what `function` may be, and `ResourceOptions`.

        Raises:
            DefinitionError: The URI or the function will not do, or there is one of that URI.
        """
        self._offer("resource", uri, function, options, replace=replace)

    def add_prompt(self, function: Any, *, replace: bool = False, **options: Unpack[PromptOptions]) -> None:
        """Offer a prompt. See `add_tool` for what `function` may be, and `PromptOptions`.

        Raises:
            DefinitionError: The function cannot be a prompt as it is written, or there is one of that name.
        """
        self._offer("prompt", None, function, options, replace=replace)

    def add(self, thing: Any, *, replace: bool = False) -> None:
        """Offer what is marked: a function, a class, an object whose methods are marked, or a module.

        A mark on a method is inherited, also by a method of a subclass that takes its place (`method = None` takes it
        away). A mark on a class is not.

        Raises:
            DefinitionError: Nothing about it is marked, or something cannot be offered as it is written.
        """
        from mcprelay.server.discovery.collect import marked_in

        marked = list(marked_in(thing))
        if not marked:
            raise DefinitionError(f"nothing about {thing!r} is marked with @tool, @resource or @prompt")
        for handler, mark in marked:
            self._offer(mark.kind, mark.uri, handler, mark.options, replace=replace)

    def discover(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = ".",
        *,
        exclude: Iterable[str] = (),
        force: bool = False,
        cache: str | os.PathLike[str] | mcprelay.server.Store | None = None,
        save: bool = True,
    ) -> mcprelay.server.Found:
        """Import the Python files of some folders, and offer what is marked in them. See `mcprelay.server.discovery`.

        What is registered by hand wins over what is discovered. A file that cannot be imported is reported and does not
        stop the scan.

        Args:
            paths: Folders and files. A relative one is looked for beside the file that calls this, then in the working
                directory.
            exclude: Further names and patterns to leave out. A pattern without a slash means a folder or file of that
                name at any depth; another one the path below the scanned folder.
            force: Whether to scan again. A second call does nothing otherwise.
            cache: Where to keep what was found, so that the next start need not import what has not changed: a path, or
                an object with `get`, `set` and `delete`.
            save: Whether to write to the cache.

        Raises:
            ConfigurationError: A path is not there, or a scan is going on.
        """
        from mcprelay.server.discovery import Discovery, asked_from

        if self._discovery is None:
            self._discovery = Discovery(self._server)
        return self._discovery.discover(
            paths, beside=asked_from(2), exclude=exclude, force=force, cache=cache, save=save
        )

    @overload
    def handle(
        self,
        contract: Contract[InputT, OutputT],
        function: Callable[Concatenate[InputT, ...], OutputT | Awaitable[OutputT]]
        | Callable[Concatenate[Context[Any], InputT, ...], OutputT | Awaitable[OutputT]],
        *,
        replace: bool = False,
        **options: Unpack[HandlerOptions],
    ) -> None: ...
    @overload
    def handle(
        self, contract: Contract[Any, Any], *, replace: bool = False, **options: Unpack[HandlerOptions]
    ) -> Callable[[F], F]: ...
    def handle(
        self,
        contract: Contract[Any, Any],
        function: Any = None,
        *,
        replace: bool = False,
        **options: Unpack[HandlerOptions],
    ) -> Any:
        """Offer the tool that a contract describes; `function` takes the contract's input and gives its output.

        `server.handle(contract, function)`, where checkers see to the types, or `@server.handle(contract)` above the
        function, which stays the function it was.

        Args:
            contract: What is offered.
            function: What is called. It may take more, which is injected; a `Context` may come first.
            replace: Whether it may take the place of a tool of that name.
            options: `inline`, `timeout`, `tags`, `visible`, `requires`; everything else is the contract's to say.

        Raises:
            DefinitionError: There is no contract, the function takes another number of values, or there is a tool of
                that name.
        """
        from mcprelay.server.contract import contract_entry

        if not isinstance(contract, Contract):
            raise DefinitionError(
                "server.handle needs the contract first: server.handle(contract, function), or @server.handle(contract)"
                " above it, where contract = define(name, input=…, output=…); without one it is @server.tool"
            )
        check("tool", options)

        def register(function: Any) -> Any:
            self.by_hand += 1
            self.catalog.tools.add(contract_entry(self._server, contract, function, **options), replace=replace)
            return function

        if function is None:
            return register
        register(function)
        return None

    def mount(self, prefix: str, server: mcprelay.Server) -> None:
        """Offer what another server offers, under a prefix, now and later. See `mcprelay.server.mounting`.

        Its lifespan is entered with this server's own.

        Raises:
            ConfigurationError: The prefix will not do or is taken, or this server is mounted in that one.
        """
        self.by_hand += 1
        self.mounts.add(prefix, server)

    def unmount(self, prefix: str) -> None:
        """Let go of what was mounted. Raises `KeyError` where nothing was."""
        self.mounts.remove(prefix)

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
        (self.catalog.templates if uri in self.catalog.templates.keys else self.catalog.resources).remove(uri)

    def remove_prompt(self, name: str) -> None:
        """Stop offering a prompt. Raises `KeyError` for an unknown one."""
        self.catalog.prompts.remove(name)

    # --- how it works

    def bind(self, interface: type, implementation: Any) -> None:
        """Say what stands for a type in the constructors of handler classes: a class, or an instance.

        Raises:
            ConfigurationError: The class cannot stand for the type, or an instance is in use already.
        """
        self.by_hand += 1
        self.container.bind(interface, implementation)

    def override(self, dependency: Callable[..., Any], replacement: Callable[..., Any]) -> AbstractContextManager[None]:
        """For tests, `with server.override(get_db, fake):`: let another give what `Depends(dependency)` gives."""
        from mcprelay.server.depends import Overrides

        if self.overrides is None:
            self.overrides = Overrides()
        return self.overrides.put(dependency, replacement)

    def middleware(self, layer: MiddlewareT) -> MiddlewareT:
        """Put `async def layer(call, call_next)` around every call. The first registered is the outermost.

        It may look at the call and at the outcome, put another in its place, answer without `call_next`, and refuse by
        `ProtocolError` or, for a tool, `ToolError`. An outcome is a result of `mcprelay.types`, a list included.

        Raises:
            ConfigurationError: The server has started.
        """
        if self.started:
            raise ConfigurationError("middleware is registered before the server starts")
        self.by_hand += 1
        self.layers.append(layer)
        return layer

    def lifespan(self, function: F) -> F:
        """Say what the server lives in, as `Server(lifespan=…)` does.

        Raises:
            ConfigurationError: It is no lifespan, or there is one already, or the server has started.
        """
        if self.entering is not None or self.started:
            raise ConfigurationError("a server has one lifespan, given before it starts")
        self.entering = lifespan_of(function)
        return function

    def observe(self, observer: Callable[[Event], object]) -> None:
        """Call `observer(event)` for everything that an operator counts. See `mcprelay.server.event`."""
        self.events.observe(observer)

    async def resource_updated(self, uri: str) -> None:
        """Tell every client that subscribed to this resource, and may see it, that it changed."""
        self.changes.publish(UPDATED, uri)
        for mount in self.mounts.inside:
            await mount.outer.resource_updated(mount.outward(uri))

    def _catalog_changed(self, notice: str) -> None:
        self._server.declared.changed()
        self.changes.publish(notice)
        for mount in self.mounts.inside:
            mount.changed(notice)
