"""`LineChannel`: whole messages, one a line, over a pair of descriptors.

This is the framing of the stdio transport, which works unchanged over a Unix socket or any other byte stream. Knows how
the two halves end together. Knows no process and no JSON.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import TYPE_CHECKING

from mcprelay.errors import LocalFault, NotSent
from mcprelay.stdio.line import MESSAGE_BYTES, Line, Splitter
from mcprelay.stdio.outlet import HIGH_WATER, Outlet
from mcprelay.stdio.source import Source, open_source

if TYPE_CHECKING:
    from collections.abc import Callable

READ_AHEAD = 2**20
"""Bytes of complete messages that may wait to be received before reading pauses."""

TURN = 256
"""How many messages are handed over before whatever else the loop has to do."""

FLUSH_SECONDS = 1.0
"""How long closing waits for the other side to take what was sent."""


class LineChannel:
    """A `Channel` over two descriptors, which belong to it from now on. One socket serves both ways if duplicated.

    Beside the port it has what a driver in a hurry needs: `attach`, `offer`, `send_nowait`, `room`, `congested`,
    `handed` and `lost`. `offer` is `send_nowait` where `send` would not suspend, and else gives 0 and takes nothing.

    Attributes:
        on_mute: Called once when nothing can be sent any more, if it is set.
    """

    def __init__(
        self,
        reads: int,
        writes: int,
        *,
        message_bytes: int = MESSAGE_BYTES,
        high_water: int = HIGH_WATER,
        close: Callable[[int], None] = os.close,
    ) -> None:
        """Needs a running loop, to which the channel is bound.

        Args:
            reads: What is read.
            writes: What is written.
            message_bytes: How long a line that is received may be.
            high_water: How many bytes may wait to be sent before `send` suspends.
            close: How a descriptor is given back.
        """
        self._loop = asyncio.get_running_loop()
        self._ready: deque[Line] = deque()
        self._splitter = Splitter(limit=message_bytes)
        self._held = 0
        self._paused = False
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None
        self._take: Callable[[Line], None] | None = None
        self._more = False  # to be handed over in the next turn of the loop
        self._told = False  # whoever is attached, of the end
        self._closing: asyncio.Task[None] | None = None
        self.on_mute: Callable[[], None] | None = None
        self._outlet = Outlet(writes, loop=self._loop, on_lost=self._output_lost, high_water=high_water, close=close)
        self.offer = self._outlet.offer
        self._source: Source = open_source(reads, self._feed, loop=self._loop, close=close)

    # ------------------------------------------------------------------------------------------------------ receiving

    async def receive(self) -> bytes:
        """The next line, without its line end; `b""` when the stream ended or the channel is closed.

        Does not suspend while a whole line is there. A last line without a line end counts as one.

        Raises:
            LineTooLong: A line was over `message_bytes`, and was discarded. The channel goes on: receive again.
        """
        while not self._ready:
            if self._ended:
                return b""
            await self._arrival()
        line = self._ready.popleft()
        if isinstance(line, bytes):
            return line
        raise line

    def attach(self, take: Callable[[Line], None]) -> None:
        """Hand every line to `take` as it comes, in place of `receive`: what came before first, `b""` once at the end.

        A line that was too long is handed over as the `LineTooLong` that `receive` would raise. `take` must not raise.
        """
        self._take = take
        self._hand_over()
        if not self._more:
            self._read_on()

    async def _arrival(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            raise LocalFault("receive() is awaited by another task already")
        self._read_on()
        self._waiter = waiter = self._loop.create_future()
        try:
            await waiter
        finally:
            if self._waiter is waiter:
                self._waiter = None

    def _read_on(self) -> None:
        self._held = 0
        if self._paused:
            self._paused = False
            self._source.resume()

    def _feed(self, chunk: bytes) -> None:
        if self._ended:
            return
        if not chunk:
            self._ready += self._splitter.end()
            self._hand_over()
            self._input_ended()
            return
        ready = self._ready
        if self._take is not None and not ready and (line := self._splitter.whole(chunk)):
            self._outlet.eager = True
            self._take(line)
            return
        ready += self._splitter.feed(chunk)
        if not ready:
            return
        self._outlet.eager = len(ready) == 1
        if self._take is not None:
            self._hand_over()
            return
        self._held += len(chunk)
        if self._held > READ_AHEAD and not self._paused:
            self._paused = True
            self._source.pause()
        self._wake()

    def _hand_over(self) -> None:
        """Hand over what waits, and then the end, without keeping the loop from its timers for long."""
        take, ready = self._take, self._ready
        if take is None or self._more:
            return
        for _ in range(TURN):
            if not ready:
                break
            take(ready.popleft())
        if ready:
            self._more = True
            self._source.pause()
            self._loop.call_soon(self._go_on)
        elif self._ended and not self._told:
            self._told = True
            take(b"")

    def _go_on(self) -> None:
        self._more = False
        self._hand_over()
        if not self._more and not self._ended:
            self._source.resume()

    def _input_ended(self) -> None:
        """The stream is over. A subclass may put the end off until it knows more."""
        self._end()

    def _output_lost(self) -> None:
        """Nothing can be sent any more. A subclass may see that as the end of both ways."""
        if self.on_mute is not None:
            self.on_mute()

    def _end(self) -> None:
        self._ended = True
        self._hand_over()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -------------------------------------------------------------------------------------------------------- sending

    async def send(self, data: bytes) -> None:
        """Send one message as a line; line breaks inside become spaces, which in JSON mean the same.

        Suspends only while more than the high-water mark waits. What is sent in one turn of the loop is written
        together at its end, so the channel may break after `send` returned: `handed` tells what had left by then.

        Raises:
            NotSent: No byte of the message left, and none will.
        """
        if self._outlet.congested:
            await self._outlet.room()
        self._outlet.put(data)

    def send_nowait(self, data: bytes) -> int:
        """Send without regard to what waits already, and return the message's number, which counts from 1.

        The message is still in this process, and will never leave it once the channel has broken, if and only if
        `handed` is lower than that number.

        Raises:
            NotSent: No byte of the message left, and none will.
        """
        return self._outlet.put(data)

    async def room(self) -> None:
        """Wait until `send` would not suspend: what is sent in the same turn of the loop is taken at once.

        Raises:
            NotSent: The channel broke meanwhile.
        """
        if self._outlet.congested:
            await self._outlet.room()
            if self._outlet.lost is not None:
                raise NotSent(f"not sent: {self._outlet.lost}")

    @property
    def congested(self) -> bool:
        """Whether `send` would suspend."""
        return self._outlet.congested

    @property
    def handed(self) -> int:
        """How many messages were handed over to the other side, in whole or in part, since the beginning."""
        return self._outlet.handed

    @property
    def lost(self) -> str | None:
        """Why nothing can be sent any more, or None."""
        return self._outlet.lost

    # -------------------------------------------------------------------------------------------------------- closing

    async def aclose(self) -> None:
        """Hand over what was sent, for a second at most, and end both directions. Never raises."""
        if self._loop.is_closed():
            self._release()
            return
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            await self._wind_down()
        finally:
            self._release()

    async def _wind_down(self) -> None:
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._outlet.drain()
        except TimeoutError:
            pass

    def _release(self) -> None:
        """Give the descriptors back at once, whatever waits. Twice is once."""
        self._ready.clear()
        self._end()
        self._source.close()
        self._outlet.close()
