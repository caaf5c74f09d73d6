"""What a server says while it works: progress and log messages, and the user's callbacks that hear of them.

A callback may be a function or a coroutine function. Calls of one callback never overlap and keep their order; what it
raises is logged and disturbs nothing else.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from mcprelay.client.deadline import is_cancelled
from mcprelay.types import LogLevel

if TYPE_CHECKING:
    from collections import deque


logger = logging.getLogger("mcprelay.client")

_T = TypeVar("_T")


class Progress(Struct, frozen=True):
    """How far a call is. `total` is None when the server does not know."""

    progress: float
    total: float | None = None
    message: str | None = None


class LogMessage(Struct, frozen=True):
    """One log message of a server: untrusted text or data."""

    level: LogLevel
    data: Any
    logger: str | None = None


OnProgress: TypeAlias = Callable[[Progress], Awaitable[None] | None]
OnLog: TypeAlias = Callable[[LogMessage], Awaitable[None] | None]


class Hearing(Generic[_T]):
    """One callback, called with one item after the other.

    Args:
        call: The callback.
        pending_messages: How many items may wait for it while it is slow. Of more the oldest is dropped: a server could
            else fill our memory by saying much.
    """

    __slots__ = ("_call", "_dropped", "_most", "_task", "_waiting")

    def __init__(self, call: Callable[[_T], Awaitable[None] | None], *, pending_messages: float) -> None:
        self._call = call
        self._most = pending_messages
        self._dropped = 0
        self._waiting: deque[_T] | None = None
        self._task: asyncio.Task[None] | None = None

    def hear(self, item: _T) -> None:
        """Call back now, or after the items that came before."""
        if self._waiting:
            self._wait(item, self._waiting)
            return
        try:
            pending = self._call(item)
        except (Exception, asyncio.CancelledError):  # nothing is awaited here: it is the callback's own, and no end
            logger.exception("the callback %r failed", self._call)
            return
        if inspect.isawaitable(pending):
            self._go_on(pending, item)

    def _wait(self, item: _T, waiting: deque[_T]) -> None:
        if len(waiting) > self._most:  # the first is being called back
            if not self._dropped:
                logger.warning(
                    "the callback %r is slow: pending_messages=%d wait for it, and older ones are dropped",
                    self._call,
                    self._most,
                )
            self._dropped += 1
            if self._most < 1:
                return
            del waiting[1]
        waiting.append(item)

    def _go_on(self, pending: Awaitable[None], item: _T) -> None:
        from collections import deque

        waiting = self._waiting = deque([item])

        def ended(_: object) -> None:
            waiting.clear()  # it may have been ended: what comes later begins anew
            if inspect.iscoroutine(pending):
                pending.close()  # one that was never begun; what ran is over anyway

        self._task = asyncio.ensure_future(self._drain(pending, waiting))
        self._task.add_done_callback(ended)

    async def _drain(self, pending: Awaitable[None] | None, waiting: deque[_T]) -> None:
        while waiting:
            try:
                if pending is None:
                    pending = self._call(waiting[0])
                if inspect.isawaitable(pending):
                    await pending
            except asyncio.CancelledError:
                if is_cancelled():
                    raise
                logger.exception("the callback %r failed", self._call)
            except Exception:
                logger.exception("the callback %r failed", self._call)
            pending = None
            waiting.popleft()

    async def finish(self, *, deadline: float | None) -> None:
        """Wait until everything that was heard has been called back, or until the deadline."""
        if self._task is not None and not self._task.done():
            remaining = None if deadline is None else deadline - asyncio.get_running_loop().time()
            await asyncio.wait([self._task], timeout=remaining)
            self.drop()

    def drop(self) -> None:
        """Call back no more of what was heard so far."""
        if self._task is not None:
            self._task.cancel()
