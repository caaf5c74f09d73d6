"""Bytes as they come from a descriptor.

Pipes and sockets are polled by the loop. What cannot be polled (a regular file) or must not be made non-blocking
because others share it (a terminal) is read by a thread. Knows nothing of lines.
"""

from __future__ import annotations

import os
import stat
import threading
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    Feed: TypeAlias = "Callable[[bytes], None]"

CHUNK = 2**16
"""Bytes asked for at once: what a pipe holds."""

LAST_READS = 64
"""How often a source is read after its writer is known to be gone, so that nobody else can keep it open for ever."""


class Source(Protocol):
    """Hands each chunk to its `feed`, and `b""` once at the end, on the loop."""

    def pause(self) -> None:
        """Hand over nothing more for now."""
        ...

    def resume(self) -> None:
        """Go on."""
        ...

    def finish(self) -> None:
        """Whoever mattered has stopped writing: what is there now is the rest, even if another holds the pipe open."""
        ...

    def close(self) -> None:
        """Hand over nothing more, and give the descriptor back."""
        ...


def open_source(
    fd: int, feed: Feed, *, loop: asyncio.AbstractEventLoop, close: Callable[[int], None] = os.close
) -> Source:
    """Start to read `fd`, which belongs to the source from now on, and is given back by `close`."""
    kind = PolledSource if pollable(fd) else ThreadSource
    return kind(fd, feed, loop=loop, close=close)


def pollable(fd: int) -> bool:
    """Whether the loop can wait for `fd`, and may make it non-blocking."""
    mode = os.fstat(fd).st_mode
    return os.name == "posix" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def is_write_end(fd: int) -> bool:
    """Whether `fd` is the end of a pipe that can only be written. The loop calls it readable when nobody reads it."""
    if os.name != "posix":
        return False
    import fcntl

    only_writes = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
    return only_writes and stat.S_ISFIFO(os.fstat(fd).st_mode)


class PolledSource:
    """A pipe or a socket, read when the loop says that there is something."""

    __slots__ = ("_active", "_close", "_ended", "_fd", "_feed", "_finishing", "_loop")

    def __init__(
        self, fd: int, feed: Feed, *, loop: asyncio.AbstractEventLoop, close: Callable[[int], None] = os.close
    ) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._close = close
        self._feed = feed
        self._loop = loop
        self._active = False
        self._finishing = False
        self._ended = False
        self.resume()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # a socket that was reset: its stream is over
            data = b""
        if data:
            self._feed(data)
        else:
            self._end()

    def _end(self) -> None:
        self.pause()
        if not self._ended:
            self._ended = True
            self._feed(b"")

    def pause(self) -> None:
        """See `Source`."""
        if self._active:
            self._active = False
            if not self._loop.is_closed():
                self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """See `Source`."""
        if self._ended or self._active:
            return
        if self._finishing:
            self._loop.call_soon(self._read_last)
        else:
            self._active = True
            self._loop.add_reader(self._fd, self._read)

    def finish(self) -> None:
        """See `Source`."""
        self._finishing = True
        if self._active:
            self.pause()
            self._read_last()

    def _read_last(self) -> None:
        for _ in range(LAST_READS):
            if self._ended:
                return
            try:
                data = os.read(self._fd, CHUNK)
            except OSError:
                break
            if not data:
                break
            self._feed(data)
        self._end()

    def close(self) -> None:
        """See `Source`."""
        self.pause()
        self._ended = True
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._close(fd)


class ThreadSource:
    """A file or a terminal, read by a thread that nothing waits for."""

    __slots__ = ("_close", "_closed", "_fd", "_feed", "_going", "_loop", "_wake", "_woken")

    def __init__(
        self, fd: int, feed: Feed, *, loop: asyncio.AbstractEventLoop, close: Callable[[int], None] = os.close
    ) -> None:
        self._fd = fd
        self._close = close
        self._feed = feed
        self._loop = loop
        self._closed = False
        self._going = threading.Event()
        self._going.set()
        self._woken, self._wake = os.pipe()
        threading.Thread(target=self._run, name="mcprelay-stdio", daemon=True).start()

    def _run(self) -> None:
        data = b"-"
        try:
            while data and not self._closed:
                data = self._next()
                self._going.wait()
                self._loop.call_soon_threadsafe(self._hand_over, data)
        except RuntimeError:  # the loop was closed
            pass
        finally:
            self._close(self._fd)
            os.close(self._woken)

    def _next(self) -> bytes:
        try:
            if _readable(self._fd, self._woken):
                return os.read(self._fd, CHUNK)
        except OSError:  # a terminal that hung up
            pass
        return b""

    def _hand_over(self, data: bytes) -> None:
        if not self._closed:
            self._feed(data)

    def pause(self) -> None:
        """See `Source`."""
        self._going.clear()

    def resume(self) -> None:
        """See `Source`."""
        self._going.set()

    def finish(self) -> None:
        """A file ends by itself, and a terminal has no other writer."""

    def close(self) -> None:
        """See `Source`."""
        if not self._closed:
            self._closed = True
            os.close(self._wake)
            self._going.set()


def _readable(fd: int, woken: int) -> bool:
    """Wait until `fd` can be read (True), or the thread is wanted no more (False)."""
    import select

    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.register(woken, select.POLLIN)
    return all(ready != woken for ready, _ in poll.poll())
