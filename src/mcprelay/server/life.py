"""The lifespan of a server: entered once before the first request, left when nobody needs the server any more.

It is entered and left in one task of its own, so that it may hold what must be left where it was entered, and so that
it ends with the event loop that it belongs to, whoever was the first to need it.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from typing import TYPE_CHECKING, Any

from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager

    from mcprelay.server import Server

    Entering = Callable[[], AbstractAsyncContextManager[Any]]


class Life:
    """Keeps a server alive.

    Args:
        server: The server; its `started` says whether it lives.
        entering: Makes the context that it lives in.

    Attributes:
        value: What the context gave.
    """

    def __init__(self, server: Server, entering: Entering) -> None:
        self._server = server
        self._entering = entering
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._enough: asyncio.Event | None = None
        self._holders = 0
        self._kept = False
        self.value: Any = None

    async def start(self) -> None:
        """Begin to live, until `stop`. Starting twice is starting once.

        Raises:
            Exception: What the context raised when it was entered; then nothing has begun.
        """
        self._kept = True
        await self._begin()

    async def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._server.started:
            if self._task is None or self._task.get_loop() is not loop:
                self._ready, self._enough = loop.create_future(), asyncio.Event()
                self._ready.add_done_callback(_seen)
                self._task = loop.create_task(self._live(self._ready, self._enough), name="mcprelay-lifespan")
            assert self._ready is not None, "a life that begins will be ready"  # noqa: S101 - set with the task
            await asyncio.shield(self._ready)

    async def _live(self, ready: asyncio.Future[None], enough: asyncio.Event) -> None:
        try:
            async with self._entering() as value:
                self.value, self._server.started = value, True
                ready.set_result(None)
                await enough.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error) if isinstance(error, Exception) else ready.cancel()
        finally:
            self.value, self._server.started = None, False
            if self._enough is enough:
                self._task = self._ready = self._enough = None

    async def stop(self) -> None:
        """Leave the context.

        Raises:
            Exception: What the context raised when it was left.
        """
        self._kept = False
        task, enough = self._task, self._enough
        if task is None or enough is None or task.get_loop() is not asyncio.get_running_loop():
            return
        enough.set()
        await asyncio.shield(task)

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncGenerator[None, None]:
        """Live at least as long as this context: who leaves last ends the life, unless it was started for itself."""
        self._holders += 1
        try:
            await self._begin()
            yield
        except GeneratorExit:  # the loop is gone, and nothing can be waited for any more
            self._holders -= 1
            raise
        except BaseException:
            await self._let_go()
            raise
        await self._let_go()

    async def _let_go(self) -> None:
        self._holders -= 1
        if not self._holders and not self._kept:
            await self.stop()


def _seen(ready: asyncio.Future[None]) -> None:
    """Whoever waited may have been cancelled meanwhile: a failure is theirs, and not the event loop's."""
    if not ready.cancelled():
        ready.exception()


def lifespan_of(function: Any) -> Callable[[Any], AbstractAsyncContextManager[Any]]:
    """What a user gave as a lifespan, as a function of the server.

    Args:
        function: An async generator function with one `yield`, or a function that gives an async context manager, of
            the server or of nothing.

    Raises:
        ConfigurationError: It is neither.
    """
    if not callable(function) or inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise ConfigurationError(
            f"lifespan: {function!r} is no lifespan. Write `async def lifespan(server): …; yield value; …`."
        )
    made: Any = contextlib.asynccontextmanager(function) if inspect.isasyncgenfunction(function) else function
    takes_server = bool(inspect.signature(function).parameters)

    def entered(server: Any) -> AbstractAsyncContextManager[Any]:
        context: AbstractAsyncContextManager[Any] = made(server) if takes_server else made()
        return context

    return entered
