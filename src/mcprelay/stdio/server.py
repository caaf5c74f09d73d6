"""The server's end: this process's standard streams as a `Channel`.

Knows how the descriptors are secured and given back. Knows neither messages nor how a server ends.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress

from mcprelay.errors import LocalFault
from mcprelay.stdio import descriptor
from mcprelay.stdio.channel import LineChannel
from mcprelay.stdio.line import MESSAGE_BYTES
from mcprelay.stdio.outlet import HIGH_WATER

FLUSH_SECONDS = 0.2
"""How long the end of the process waits until what was printed is written."""


class StdioChannel(LineChannel):
    """Messages on what were this process's standard input and output. Made by `open_stdio`.

    When the client has closed the server's output, nothing that is received can be answered, so `receive` ends too.
    """

    def __init__(self, descriptors: descriptor.Descriptors, *, message_bytes: int, high_water: int) -> None:
        self._descriptors = descriptors
        super().__init__(*descriptors.take(), message_bytes=message_bytes, high_water=high_water)

    def _output_lost(self) -> None:
        self._end()

    def _release(self) -> None:
        super()._release()
        if self._descriptors.taken:
            self._descriptors.give_back()
            self._descriptors.release()


async def open_stdio(*, message_bytes: int = MESSAGE_BYTES, high_water: int = HIGH_WATER) -> StdioChannel:
    """Secure descriptors 0, 1 and 2 (see `descriptor.secure`) and speak on what standard input and output were.

    Closing the channel gives the descriptors back, unless the program secured them itself before.

    Args:
        message_bytes: How long a message of the client may be. A longer one is discarded as it streams, and `receive`
            raises `LineTooLong` in its place.
        high_water: How many bytes may wait for the client before `send` suspends.

    Raises:
        LocalFault: Another channel speaks on the standard streams already.
    """
    descriptors = descriptor.secure()
    if descriptors.taken:
        descriptors.release()
        raise LocalFault("the standard streams are in use already: one process serves one client over stdio")
    return StdioChannel(descriptors, message_bytes=message_bytes, high_water=high_water)


def exit_within(seconds: float, *, code: int = 0) -> None:
    """End this process with `code` in `seconds`, unless it has ended by then.

    For a program that has nothing left to do but to exit, and whose handlers may have left threads behind that the
    interpreter would wait for. What is buffered in the standard streams is written first.
    """
    due, flushed = threading.Event(), threading.Event()
    # Both now: a Python that is ending already starts no more threads (3.12.1 and before).
    threading.Thread(target=_exit, args=(seconds, code, due, flushed), name="mcprelay-exit", daemon=True).start()
    threading.Thread(target=_flush, args=(due, flushed), name="mcprelay-flush", daemon=True).start()


def _exit(seconds: float, code: int, due: threading.Event, flushed: threading.Event) -> None:
    threading.Event().wait(seconds)
    due.set()
    flushed.wait(FLUSH_SECONDS)  # nobody may be reading what the program prints
    os._exit(code)


def _flush(due: threading.Event, flushed: threading.Event) -> None:
    due.wait()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError, OSError):  # none, closed, or nobody reads it
            stream.flush()
    flushed.set()
