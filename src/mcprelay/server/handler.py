"""Running a compiled callable: on the loop or in a thread, with what is injected, for questions in rounds."""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any

from mcprelay.server.context import Context
from mcprelay.server.depends import Scope, provide_context
from mcprelay.server.file import is_read
from mcprelay.server.patience import Patience, allowance
from mcprelay.server.results import Items, collect, drawn
from mcprelay.server.resume import Interview

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcprelay.server import Server
    from mcprelay.server.call import Call
    from mcprelay.server.signature import Compiled

    Finish = Callable[[Any], Any]


class Handler:
    """A compiled callable, ready to run for one server.

    Args:
        server: Whose handler it is.
        compiled: What to run.
        inline: Whether a `def` runs on the loop.
        timeout: Seconds that a call may take; the server's limit unless given.
        method: The method of the compiled callable's owner that is called.

    Attributes:
        run: Runs it, and makes what it returned into a result while its dependencies are still open.
        file_bytes: How much is read of a file or stream that it returns.
    """

    def __init__(
        self,
        server: Server,
        compiled: Compiled,
        *,
        inline: bool,
        timeout: float | None = None,
        method: str = "__call__",
    ) -> None:
        self._server = server
        self._compiled = compiled
        self._method = method
        self._on_loop = compiled.is_async or inline
        self._providers = tuple(injection.token for injection in compiled.injections)
        self._only_context = all(provider is provide_context for provider in self._providers)
        self._thunk = compiled.call if compiled.owner is None else None
        self._may_read = compiled.output.schema is None
        plain = compiled.is_async and not self._providers and not self._may_read
        self._work = self._run_plainly if plain else self._run
        self._allowed = allowance(timeout, otherwise=server.limits.call_seconds, place=compiled.place)
        self.file_bytes = server.limits.file_bytes
        self.run: Callable[[Call, Any, Finish], Awaitable[Any]] = self._held if self._allowed.seconds else self._work

    def _call(self) -> Any:
        """The thunk on the instance that the container makes of a handler class."""
        owner, container = self._compiled.owner, self._server.container
        assert owner is not None, "a callable without an owner has a thunk"  # noqa: S101 - the compiler's promise
        thunk = self._compiled.on(container.get(owner), self._method)
        if container.keeps:
            self._thunk = thunk
        return thunk

    def _held(self, call: Call, values: Any, finish: Finish) -> Awaitable[Any]:
        """Run it for as long as it may take."""
        return Patience(self._allowed).hold(call, lambda: self._work(call, values, finish))

    async def _run_plainly(self, _call: Call, values: Any, finish: Finish) -> Any:
        """Most handlers are `async`, want nothing but their arguments and return data: there is nothing between."""
        value = await (self._thunk or self._call())(values, ())
        return finish(value if type(value) is str else await self._collected(value))

    async def _run(self, call: Call, values: Any, finish: Finish) -> Any:
        if not self._providers:
            return await self._finished(finish, await self._invoke(values, ()))
        interview = Interview(call, call.keys or self._server.state_keys)
        context: Context[Any] = Context(call, self._server, interview)

        async def body() -> Any:
            if self._only_context:
                return await self._finished(finish, await self._invoke(values, (context,) * len(self._providers)))
            return await self._with_dependencies(context, values, finish)

        return await interview.run(body)

    async def _with_dependencies(self, context: Context[Any], values: Any, finish: Finish) -> Any:
        """Run it with what its dependencies give. One that swallows what the handler raised changes nothing."""
        raised: list[BaseException] = []
        async with contextlib.AsyncExitStack() as stack:
            try:
                scope = Scope(self._server, context, stack)
                injected = tuple([await provider(scope) for provider in self._providers])
                return await self._finished(finish, await self._invoke(values, injected))
            except BaseException as error:
                raised.append(error)
                raise
        raise raised[0]

    async def _finished(self, finish: Finish, value: Any) -> Any:
        """The result. Files and streams are read in a thread: a slow disk or pipe stops nobody else."""
        if self._may_read and is_read(value):
            return await self._server.threads.run(lambda: finish(value))
        return finish(value)

    async def _invoke(self, values: Any, injected: tuple[Any, ...]) -> Any:
        function = self._thunk or self._call()
        if self._on_loop:
            value = function(values, injected)
        elif self._compiled.is_generator and not inspect.isasyncgenfunction(function):
            value = await self._server.threads.run(lambda: self._drained(function(values, injected)))
        else:
            value = await self._server.threads.run(lambda: function(values, injected))
        if self._compiled.is_async or hasattr(value, "__await__"):
            value = await value
        return await self._collected(value)

    async def _collected(self, value: Any) -> Any:
        return await collect(value, limit=self.file_bytes) if hasattr(value, "__aiter__") else value

    def _drained(self, value: Any) -> Any:
        """A generator's items, read in the thread that made it."""
        return Items(drawn(value, self.file_bytes)) if inspect.isgenerator(value) else value
