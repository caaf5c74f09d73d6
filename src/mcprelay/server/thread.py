"""Worker threads for `def` handlers.

They are daemon threads, so that a handler that blocks for ever does not keep the process from ending (the loop's
default executor would). A thread whose call was given up is counted as abandoned and replaced, up to a cap; when its
call returns after all it ends. Context variables of the caller are visible in the thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from mcprelay.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

WORKER_THREADS = 40


_CONTROL = (StopIteration, GeneratorExit, KeyboardInterrupt)
"""What a future cannot carry, or what would end more than the call: in a thread none of it comes from outside."""


def _told(error: BaseException) -> RuntimeError:
    told = RuntimeError(f"the handler raised {type(error).__name__}")
    told.__cause__ = error
    return told


class _Job:
    """One call, on its way through a thread."""

    __slots__ = ("abandoned", "context", "done", "function", "future", "loop")

    def __init__(self, function: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.function = function
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.context = contextvars.copy_context()
        self.abandoned = False
        self.done = False

    def run(self) -> tuple[Any, BaseException | None]:
        """Run it in the present thread."""
        try:
            return self.context.run(self.function), None
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the caller
            return None, error

    def hand_back(self, value: Any, error: BaseException | None) -> None:
        """Give the outcome to the caller's loop."""
        try:
            self.loop.call_soon_threadsafe(self._finish, value, error)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    def _finish(self, value: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(value)
        elif isinstance(error, _CONTROL):
            self.future.set_exception(_told(error))
        else:
            self.future.set_exception(error)


class ThreadPool:
    """At most `worker_threads` calls at once; the others wait in order. `abandoned_threads` more may be stuck."""

    def __init__(self, worker_threads: int = WORKER_THREADS, *, abandoned_threads: int | None = None) -> None:
        self.worker_threads = worker_threads
        self.abandoned_threads = worker_threads if abandoned_threads is None else abandoned_threads
        self.abandoned = 0
        self._jobs: deque[_Job] = deque()
        self._ready = threading.Condition()
        self._threads = 0
        self._idle = 0

    async def run(self, function: Callable[[], Any]) -> Any:
        """Run `function` in a thread and give what it returns or raises.

        Cancelling the caller does not stop the thread: Python cannot. It is counted as abandoned until it returns.

        Raises:
            LimitExceeded: Too many abandoned threads are stuck (`abandoned_threads`).
        """
        if self.abandoned > self.abandoned_threads:
            what = "the number of handlers that block although their calls were given up"
            raise LimitExceeded("abandoned_threads", self.abandoned_threads, what=what)
        job = _Job(function, asyncio.get_running_loop())
        with self._ready:
            self._jobs.append(job)
            self._attend()
        try:
            return await job.future
        except asyncio.CancelledError:
            self._give_up(job)
            raise

    def _attend(self) -> None:
        """Wake or start a thread for a waiting job. The lock is held."""
        if self._idle >= len(self._jobs):
            self._ready.notify()
        elif self._threads < self.worker_threads:
            self._threads += 1
            threading.Thread(target=self._work, name="mcprelay-handler", daemon=True).start()

    def _give_up(self, job: _Job) -> None:
        with self._ready:
            if job in self._jobs:
                self._jobs.remove(job)
            elif not job.done:
                job.abandoned = True
                self.abandoned += 1
                self._threads -= 1
                if self._jobs:
                    self._attend()

    def _work(self) -> None:
        with self._ready:
            self._idle += 1
        while True:
            with self._ready:
                while not self._jobs:
                    self._ready.wait()
                job = self._jobs.popleft()
                self._idle -= 1
            outcome = job.run()
            with self._ready:
                job.done = True
                if job.abandoned:
                    self.abandoned -= 1
                    return
                self._idle += 1  # before the caller knows, so that its next call finds this thread free
            job.hand_back(*outcome)
            del job, outcome
