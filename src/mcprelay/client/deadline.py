"""Deadlines on the loop: one timer for the nearest of a peer's, and the scope that an expiring call runs in.

`Peer` knows the deadlines. `Watch` keeps one `call_at` for the nearest. `Scope` ends what a task is doing from outside
and tells that apart from the task's own cancellation.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from mcprelay.core.peer import Event, Peer


class Watch:
    """The timer of one peer. `take` gets each `Expired` event; `due` is when it rings, or None."""

    __slots__ = ("_handle", "_loop", "_peer", "_take", "due")

    def __init__(self, peer: Peer, loop: asyncio.AbstractEventLoop, take: Callable[[Event], None]) -> None:
        self._peer = peer
        self._loop = loop
        self._take = take
        self.due: float | None = None
        self._handle: asyncio.TimerHandle | None = None

    def arm(self, deadline: float) -> None:
        """A deadline was set or moved. A timer that is too early is left alone: it finds nothing, and looks further."""
        if self.due is None or deadline < self.due:
            self._set(deadline)

    def close(self) -> None:
        """No more timer."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self.due = None

    def _set(self, due: float | None) -> None:
        self.close()
        if due is not None:
            self.due = due
            self._handle = self._loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._handle = self.due = None
        # The loop rounds up to its clock's resolution: what is due within it is due.
        for event in self._peer.tick(self._loop.time() + 1e-6):
            self._take(event)
        self._set(self._peer.next_deadline)


class Scope:
    """What one task does until it is ended from outside: `end` cancels it, and leaving says whether that was why.

    As in `asyncio.timeout`, the task's own cancellation goes through untouched, also when both come at once. The loop
    that runs is given, because to ask for it is a system call.
    """

    __slots__ = ("_cancelling", "_loop", "_task", "ended", "reason")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.reason: BaseException | None = None
        self.ended = False
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0

    def __enter__(self) -> Self:
        self._task = asyncio.current_task(self._loop)
        if self._task is None:
            raise RuntimeError("a client is called from a task")
        self._cancelling = self._task.cancelling()
        return self

    def end(self, reason: BaseException) -> None:
        """Raise `reason` where the task is. A scope that was ended, or left, is not ended again."""
        if not self.ended and self._task is not None:
            self.ended = True
            self.reason = reason
            self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if not self.ended or task is None:
            return
        others = task.uncancel() > self._cancelling
        if kind is asyncio.CancelledError and not others and self.reason is not None:
            raise self.reason from None


def is_cancelled() -> bool:
    """Whether the task that runs is being cancelled itself, and not only what it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
