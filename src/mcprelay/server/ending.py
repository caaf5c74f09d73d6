"""The end of a process that serves over stdio: its client is gone, so it goes too, whatever its handlers do.

A handler may block the event loop, swallow its cancellation, or leave threads behind that the interpreter waits for.
Nobody reads what such a process would still say (stdio, "Shutdown"), so it is ended from a thread of its own, and only
when it does not end by itself.
"""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from mcprelay.stdio.server import exit_within

if TYPE_CHECKING:
    import asyncio


class Ending:
    """Ends the process when it takes too long to end by itself.

    Args:
        loop: The event loop that serves.
        reads: The descriptor that the client writes to.
        seconds: How long each step to the end may take.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, reads: int, seconds: float) -> None:
        self._loop = loop
        self._reads = reads
        self._seconds = seconds
        self._over = threading.Event()
        self._returned = threading.Event()
        self._wakes, self._waker = os.pipe()
        self._of_main = threading.current_thread() is threading.main_thread()
        threading.Thread(target=self._watch, name="mcprelay-ending", daemon=True).start()

    def over(self) -> None:
        """Serving is over."""
        self._over.set()
        os.close(self._waker)

    def returned(self) -> None:
        """The program goes on with what comes after serving."""
        self._returned.set()

    def told(self) -> None:
        """A signal says that the process shall end. May be called while the loop is blocked."""
        threading.Thread(target=self._insist, name="mcprelay-ending", daemon=True).start()

    def _watch(self) -> None:
        self._wait_for_hangup()
        self._insist()
        if not self._returned.wait(self._seconds / 4):
            exit_within(0.0)
        if self._of_main:
            threading.main_thread().join()
            exit_within(self._seconds)

    def _wait_for_hangup(self) -> None:
        """Return when the client has let go of our input, or serving is over."""
        try:
            if hasattr(select, "poll"):
                poll = select.poll()
                poll.register(self._wakes, 0)
                poll.register(self._reads, 0)  # a hang-up is told of without being asked for
                poll.poll()
            else:
                self._over.wait()
        finally:
            os.close(self._wakes)

    def _insist(self) -> None:
        """Return when serving is over; end the process when the loop does not even answer."""
        while not self._over.wait(self._seconds / 4):
            answered = threading.Event()
            with suppress(RuntimeError):  # closed already
                self._loop.call_soon_threadsafe(answered.set)
            if not answered.wait(self._seconds * 3 / 4):
                exit_within(0.0)
                return
