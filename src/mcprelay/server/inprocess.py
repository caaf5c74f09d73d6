"""A client and a server in one process, with real bytes between them and nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from mcprelay.errors import NotSent
from mcprelay.server.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mcprelay.server import Server
    from mcprelay.server.call import HttpRequest, Principal

logger = logging.getLogger("mcprelay.server")

BUFFERED_BYTES = 1 << 20


class Pipe:
    """Messages in one direction. About `buffered_bytes` may wait for the reader; then the writer waits.

    Attributes:
        ended: Whether nothing more is written.
        full: Whether a writer has to wait.
        put_in_all: How many messages were handed over.
    """

    def __init__(self, buffered_bytes: int = BUFFERED_BYTES) -> None:
        self._buffered_bytes = buffered_bytes
        self._messages: deque[bytes] = deque()
        self._size = 0
        self._reader: asyncio.Future[None] | None = None
        self._writers: deque[asyncio.Future[None]] = deque()
        self._reading: Callable[[bytes], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.ended = False
        self.full = False
        self.put_in_all = 0

    def attach(self, take: Callable[[bytes], None]) -> None:
        """Hand each message to `take` as it is written, in place of `take()`, and `b""` once at the end."""
        self._reading = take
        while self._messages:
            take(self._messages.popleft())
        self._size = 0
        self._measure()
        self._next_writer()
        if self.ended:
            take(b"")

    def _measure(self) -> None:
        self.full = (self._size > self._buffered_bytes or bool(self._writers)) and not self.ended

    async def take(self) -> bytes:
        """The next message, or `b""` at the end."""
        while not self._messages:
            if self.ended:
                return b""
            if self._loop is None:  # to ask for it is a system call
                self._loop = asyncio.get_running_loop()
            self._reader = self._loop.create_future()
            await self._reader
        data = self._messages.popleft()
        self._size -= len(data)
        if self.full:
            self._measure()
            self._next_writer()
        return data

    async def put(self, data: bytes) -> None:
        """Hand a message over, once there is room for it; in the order of the calls."""
        if self.full:
            await self.room()
        self.put_nowait(data)

    def put_nowait(self, data: bytes) -> int:
        """Hand a message over, whatever waits, and say how many were by now."""
        if self.ended:
            self._next_writer()
            raise NotSent("the channel is closed")
        self.put_in_all += 1
        if self._reading is not None:
            self._reading(data)
            return self.put_in_all
        self._messages.append(data)
        self._size += len(data)
        if self._size > self._buffered_bytes:
            self._measure()
        if self._reader is not None:
            _wake(self._reader)
        if self._writers:
            self._next_writer()
        return self.put_in_all

    def offer(self, data: bytes) -> int:
        """Hand a message over and say how many were by now, or 0 where it would have to wait for room."""
        return 0 if self.full else self.put_nowait(data)

    async def room(self) -> None:
        """Wait for one's turn to put."""
        turn = asyncio.get_running_loop().create_future()
        self._writers.append(turn)
        self._measure()
        try:
            await turn
        except asyncio.CancelledError:
            self._writers.remove(turn)
            self._measure()
            self._next_writer()
            raise
        self._writers.remove(turn)
        self._measure()

    def _next_writer(self) -> None:
        """Let the first of those that wait go on; it stays the first until it has run, so that nobody overtakes it."""
        if self._writers and (self.ended or self._size <= self._buffered_bytes):
            _wake(self._writers[0])

    def end(self) -> None:
        """Nothing more is written; what is there is still read."""
        if not self.ended:
            self.ended = True
            self.full = False
            if self._reading is not None:
                self._reading(b"")
        if self._reader is not None:
            _wake(self._reader)
        self._next_writer()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class MemoryChannel:
    """A `Channel` over two pipes. What it has beside the port is as in `mcprelay.stdio.LineChannel`."""

    def __init__(self, inbound: Pipe, outbound: Pipe) -> None:
        self._inbound = inbound
        self._outbound = outbound
        self.receive = inbound.take
        self.send = outbound.put
        self.offer = outbound.offer

    async def aclose(self) -> None:
        """See `Channel`."""
        self._outbound.end()
        self._inbound.end()


class ServedChannel:
    """The client's end of a channel to a server in this process, which is served from the first use on.

    Attributes:
        failure: What the server failed with, once it has.
    """

    def __init__(self, serve: Callable[[MemoryChannel], Coroutine[Any, Any, None]]) -> None:
        self._serve = serve
        self._near, self._far = Pipe(), Pipe()
        self.offer = self._far.offer
        self.send_nowait = self._far.put_nowait
        self._task: asyncio.Task[None] | None = None
        self.failure: BaseException | None = None

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._serve(MemoryChannel(self._far, self._near)))
            self._task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        """The server's end is gone: the client's ends too. Why is told to the client, or logged once it has left."""
        self.failure = None if task.cancelled() else task.exception()
        if self.failure is not None and self._near.ended:
            logger.error("the server in this process ended", exc_info=self.failure)
        self._near.end()
        self._far.end()

    async def receive(self) -> bytes:
        """See `Channel`."""
        self._begin()
        data = await self._near.take()
        if not data and self.failure is not None:
            raise self.failure
        return data

    def attach(self, take: Callable[[bytes], None]) -> None:
        """Hand each message of the server to `take` as it comes, in place of `receive`."""
        self._begin()
        self._near.attach(take)

    async def send(self, data: bytes) -> None:
        """See `Channel`."""
        self._begin()
        await self._far.put(data)

    async def room(self) -> None:
        """Wait until `send` would not suspend."""
        if self._far.full:
            await self._far.room()

    @property
    def congested(self) -> bool:
        """Whether `send` would suspend."""
        return self._far.full

    @property
    def handed(self) -> int:
        """How many messages the server's end has been given."""
        return self._far.put_in_all

    @property
    def lost(self) -> str | None:
        """Why nothing can be sent any more, or None."""
        return "the server ended" if self._far.ended else None

    async def aclose(self) -> None:
        """See `Channel`. Returns when the server's end has let go of everything."""
        self._far.end()
        self._near.end()
        if self._task is not None:
            await asyncio.wait([self._task])


def connect(server: Server, *, principal: Principal | None, http: HttpRequest | None, state: Any) -> ServedChannel:
    """See `Server.connect`."""

    async def serve(far: MemoryChannel) -> None:
        async with server.life.held():
            await Connection(server, far, principal=principal, http=http, state=state).serve()

    return ServedChannel(serve)
