"""A client and a server in one process, with real bytes between them and nothing else."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from mcprelay.errors import NotSent
from mcprelay.server.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mcprelay.server import Server
    from mcprelay.server.call import HttpRequest, Principal

BUFFERED_BYTES = 1 << 20


class Pipe:
    """Messages in one direction. About `buffered_bytes` may wait for the reader; then the writer waits."""

    def __init__(self, buffered_bytes: int = BUFFERED_BYTES) -> None:
        self._buffered_bytes = buffered_bytes
        self._messages: deque[bytes] = deque()
        self._size = 0
        self._reader: asyncio.Future[None] | None = None
        self._writers: deque[asyncio.Future[None]] = deque()
        self.ended = False

    async def take(self) -> bytes:
        """The next message, or `b""` at the end."""
        while not self._messages:
            if self.ended:
                return b""
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        data = self._messages.popleft()
        self._size -= len(data)
        self._next_writer()
        return data

    async def put(self, data: bytes) -> None:
        """Hand a message over, once there is room for it; in the order of the calls."""
        if not self.ended and (self._writers or self._size > self._buffered_bytes):
            await self._room()
        if self.ended:
            self._next_writer()
            raise NotSent("the channel is closed")
        self._messages.append(data)
        self._size += len(data)
        if self._reader is not None:
            _wake(self._reader)
        self._next_writer()

    async def _room(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._writers.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            self._writers.remove(turn)
            self._next_writer()
            raise
        self._writers.remove(turn)

    def _next_writer(self) -> None:
        """Let the first of those that wait go on; it stays the first until it has run, so that nobody overtakes it."""
        if self._writers and (self.ended or self._size <= self._buffered_bytes):
            _wake(self._writers[0])

    def end(self) -> None:
        """Nothing more is written; what is there is still read."""
        self.ended = True
        if self._reader is not None:
            _wake(self._reader)
        self._next_writer()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class MemoryChannel:
    """A `Channel` over two pipes."""

    def __init__(self, inbound: Pipe, outbound: Pipe) -> None:
        self._inbound = inbound
        self._outbound = outbound
        self.receive = inbound.take
        self.send = outbound.put

    async def aclose(self) -> None:
        """See `Channel`."""
        self._outbound.end()
        self._inbound.end()


class ServedChannel:
    """The client's end of a channel to a server in this process, which is served from the first use on."""

    def __init__(self, serve: Callable[[MemoryChannel], Coroutine[Any, Any, None]]) -> None:
        self._serve = serve
        self._near, self._far = Pipe(), Pipe()
        self._task: asyncio.Task[None] | None = None

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._serve(MemoryChannel(self._far, self._near)))
            self._task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        """The server's end is gone: the client's ends too. A server that could not start says why on the next use."""
        self._near.end()
        self._far.end()
        self._failure = None if task.cancelled() else task.exception()

    _failure: BaseException | None = None

    async def receive(self) -> bytes:
        """See `Channel`."""
        self._begin()
        data = await self._near.take()
        if not data and self._failure is not None:
            raise self._failure
        return data

    async def send(self, data: bytes) -> None:
        """See `Channel`."""
        self._begin()
        await self._far.put(data)

    async def aclose(self) -> None:
        """See `Channel`. Returns when the server's end has let go of everything."""
        self._far.end()
        self._near.end()
        if self._task is not None:
            await asyncio.wait([self._task])


def connect(server: Server, *, principal: Principal | None, http: HttpRequest | None, state: Any) -> ServedChannel:
    """See `Server.connect`."""

    async def serve(far: MemoryChannel) -> None:
        await server.start()
        await Connection(server, far, principal=principal, http=http, state=state).serve()

    return ServedChannel(serve)
