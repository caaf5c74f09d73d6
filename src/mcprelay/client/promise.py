"""`Promise`: what a call on a channel waits for.

Knows tasks and the loop. Knows no message.
"""

from __future__ import annotations

import asyncio
from asyncio import current_task
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context


class Promise(asyncio.Future[Any]):
    """A future whose task goes on in the turn of the loop in which the answer came.

    A turn of the loop is a system call and a dozen steps: with one call at a time, a tenth of what the call costs.
    Whatever else settles it, a failure or a cancellation, wakes the task in the loop's next turn, as with any future.
    """

    _resume: Callable[[Any], object] | None = None
    _context: Context | None = None

    def add_done_callback(self, fn: Callable[[Any], object], *, context: Context | None = None) -> None:
        """See `asyncio.Future`. A task that awaits this adds its own next step, with its own context."""
        self._resume, self._context = fn, context
        super().add_done_callback(fn, context=context)

    def keep(self, result: Any, loop: asyncio.AbstractEventLoop) -> None:
        """Give the answer, and let the task go on before this returns, if nothing but the loop stands below.

        Whoever calls this has nothing half done: the task may do anything, but nothing that takes the loop away.
        """
        resume, context = self._resume, self._context
        if resume is None or context is None or current_task(loop) is not None:
            self.set_result(result)
            return
        self.remove_done_callback(resume)
        self.set_result(result)
        context.run(resume, self)
