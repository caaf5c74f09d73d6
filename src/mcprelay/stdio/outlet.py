"""Lines into a descriptor, all of one loop turn in one write, and exactly known which of them were handed over.

Knows back-pressure and how a pipe breaks. Knows nothing of what a line means.
"""

from __future__ import annotations

import asyncio
import os
from bisect import bisect_left
from collections import deque
from itertools import accumulate
from typing import TYPE_CHECKING

from mcprelay.errors import NotSent
from mcprelay.stdio.line import CR, LF
from mcprelay.stdio.source import is_write_end, pollable

if TYPE_CHECKING:
    from collections.abc import Callable

HIGH_WATER = 2**18
"""Bytes that may wait before `send` does."""


class Outlet:
    """The sending half of a channel. It owns its descriptor.

    Attributes:
        handed: How many lines were handed to the descriptor, in whole or in part, since the beginning. The n-th line
            that was put is still in this process if and only if `handed < n`.
        lost: Why nothing can be sent any more, or None while it can.
        eager: The next line is written at once instead of at the end of the loop turn. Who answers one message at a
            time sets it for each: a turn of the loop costs as much as the write.
    """

    __slots__ = (
        "_base", "_block", "_close", "_drained", "_fd", "_high_water", "_lines", "_loop", "_offset", "_on_lost",
        "_pollable", "_put", "_scheduled", "_size", "_starts", "_waiting", "_watched", "eager", "handed", "lost",
    )  # fmt: skip

    def __init__(
        self,
        fd: int,
        *,
        loop: asyncio.AbstractEventLoop,
        on_lost: Callable[[], None],
        high_water: int = HIGH_WATER,
        close: Callable[[int], None] = os.close,
    ) -> None:
        self._fd = fd
        self._close = close
        self._on_lost = on_lost
        self._loop = loop
        self._high_water = high_water
        self._pollable = pollable(fd)
        if self._pollable:
            os.set_blocking(fd, False)
        # A pipe that nobody reads any more is found out even while there is nothing to write.
        self._watched = is_write_end(fd)
        if self._watched:
            loop.add_reader(fd, self._hung_up)
        self._lines: list[bytes] = []  # put, not yet in a block
        self._put = 0
        self._size = 0  # bytes that wait, line ends included
        self._scheduled = False
        self._block: memoryview | None = None  # a block of lines that was written in part
        self._offset = 0
        self._starts: list[int] = []  # where each line of the block begins
        self._base = 0  # lines handed over before the block
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._drained: asyncio.Future[None] | None = None
        self.handed = 0
        self.eager = True
        self.lost: str | None = None

    @property
    def congested(self) -> bool:
        """More than the high-water mark waits, or somebody waits for room already."""
        return self._size >= self._high_water or bool(self._waiting)

    def offer(self, line: bytes) -> int:
        """Add a line and return its number, or 0 where it would have to wait for room.

        Raises:
            NotSent: The descriptor is closed or broken.
        """
        if self._size >= self._high_water or self._waiting:
            return 0
        if not self.eager or self._size or self.lost is not None or self._loop.is_closed():
            return self._add(line)
        self.eager = False
        self._put += 1
        block = (_flat(line) if LF in line or CR in line else line) + b"\n"
        try:
            written = os.write(self._fd, block)
        except OSError:
            written = 0
        if written != len(block):
            return self._go_on_later(block, written)
        self.handed += 1
        return self._put

    def put(self, line: bytes) -> int:
        """Add a line, whatever waits already, and return its number.

        Raises:
            NotSent: The descriptor is closed or broken.
        """
        return self.offer(line) or self._add(line)

    def _add(self, line: bytes) -> int:
        """Add a line to what is written at the end of the turn."""
        if self.lost is not None:
            raise NotSent(f"not sent: {self.lost}")
        if LF in line or CR in line:
            line = _flat(line)
        if not self._scheduled:
            if self._loop.is_closed():
                raise NotSent("not sent: the event loop that the channel was opened in is closed")
            self._loop.call_soon(self._flush_scheduled)
            self._scheduled = True
        self._lines.append(line)
        self._size += len(line) + 1
        self._put += 1
        return self._put

    def _go_on_later(self, block: bytes, written: int) -> int:
        """The first line of a turn was not taken whole: what was in the way shows again, or is gone."""
        more, broken = self._write(memoryview(block)[written:])
        if written + more == len(block):
            self.handed += 1
            return self._put
        self._size = len(block)
        self._keep(block, [0], written + more, broken)
        if self.lost is not None and self.handed < self._put:
            raise NotSent(f"not sent: {self.lost}")
        return self._put

    async def room(self) -> None:
        """Wait for one's turn to put a line, in the order of the calls.

        Raises:
            NotSent: The descriptor broke meanwhile.
        """
        turn = self._loop.create_future()
        self._waiting.append(turn)
        try:
            await turn
        finally:
            self._waiting.remove(turn)
            self._loop.call_soon(self._next_turn)  # after the caller has put its line

    def _next_turn(self) -> None:
        if self._waiting and (self._size < self._high_water or self.lost is not None):
            turn = self._waiting[0]
            if not turn.done():
                turn.set_result(None)

    def _flush_scheduled(self) -> None:
        self._scheduled = False
        self.flush()

    def flush(self) -> None:
        """Write what waits, as far as the descriptor takes it."""
        if self._block is None and self._lines and self.lost is None:
            self._write_lines()
        if self._waiting:
            self._next_turn()

    def _write_lines(self) -> None:
        lines, self._lines = self._lines, []
        lines.append(b"")
        block = b"\n".join(lines)
        written, broken = self._write(block)
        if written == len(block):
            self.handed += len(lines) - 1
            self._size -= written
            self._settle()
            return
        self._keep(block, list(accumulate((len(line) + 1 for line in lines[:-2]), initial=0)), written, broken)

    def _keep(self, block: bytes, starts: list[int], written: int, broken: str | None) -> None:
        """Go on with a block that was taken in part when the descriptor takes more."""
        self._starts = starts
        self._base, self._block, self._offset = self.handed, memoryview(block), 0
        self._loop.add_writer(self._fd, self._go_on)
        self._advance(written, broken)

    def _go_on(self) -> None:
        """The descriptor takes more of the block that it took in part."""
        block = self._block
        if block is None:
            return
        self._advance(*self._write(block[self._offset :]))
        if self._offset == len(block) and self.lost is None:
            self._loop.remove_writer(self._fd)
            self._block = None
            self.flush()
            self._settle()

    def _advance(self, written: int, broken: str | None) -> None:
        self._offset += written
        self._size -= written
        self.handed = self._base + bisect_left(self._starts, self._offset)
        if broken is not None:
            self.lose(broken)

    def _write(self, data: bytes | memoryview) -> tuple[int, str | None]:
        """How much was written, and what broke, if anything did."""
        written = 0
        while written < len(data):
            try:
                written += os.write(self._fd, data[written:] if written else data)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                return written, f"the other side closed its input ({error.strerror})"
            if self._pollable:
                break
        return written, None

    def _hung_up(self) -> None:
        self.lose("the other side closed its input")

    def lose(self, reason: str) -> None:
        """Give up what waits; every later `put` raises `NotSent` with this reason."""
        if self.lost is None:
            self.lost = reason
            blocked, self._block = self._block is not None, None
            self._lines = []
            self._size = 0
            if not self._loop.is_closed():
                if blocked:
                    self._loop.remove_writer(self._fd)
                if self._watched:
                    self._loop.remove_reader(self._fd)
                self._settle()
                self._next_turn()
                self._on_lost()

    def _settle(self) -> None:
        if self._drained is not None and not self._size and not self._drained.done():
            self._drained.set_result(None)

    async def drain(self) -> None:
        """Wait until nothing waits any more: everything was handed over, or cannot be."""
        self.flush()
        while self._size:
            self._drained = self._loop.create_future()
            await self._drained

    def close(self, reason: str = "the channel is closed") -> None:
        """Give up what waits, and the descriptor."""
        self.lose(reason)
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._close(fd)


def _flat(line: bytes) -> bytes:
    """A line without line breaks inside: in JSON they mean no more than spaces."""
    return line.replace(b"\n", b" ").replace(b"\r", b" ")
