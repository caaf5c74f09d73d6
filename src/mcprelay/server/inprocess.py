"""A client and a server in one process, with real bytes between them and nothing else."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from mcprelay.errors import NotSent
from mcprelay.server.connection import Connection

if TYPE_CHECKING:
    from mcprelay.server import Server
    from mcprelay.server.call import HttpRequest, Principal

BUFFERED_BYTES = 1 << 20


class MemoryChannel:
    """One end of a pair. At most about `buffered_bytes` wait for a reader; then the sender waits."""

    def __init__(self, *, buffered_bytes: int = BUFFERED_BYTES) -> None:
        self._buffered_bytes = buffered_bytes
        self._inbox: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._arrived: asyncio.Future[None] | None = None
        self._taken: asyncio.Future[None] | None = None
        self._peer: MemoryChannel = self

    @classmethod
    def pair(cls) -> tuple[MemoryChannel, MemoryChannel]:
        """Two ends that are connected."""
        one, two = cls(), cls()
        one._peer, two._peer = two, one
        return one, two

    async def receive(self) -> bytes:
        """See `Channel`."""
        while not self._inbox:
            if self._ended:
                return b""
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived
        data = self._inbox.popleft()
        self._size -= len(data)
        if self._taken is not None:
            _wake(self._taken)
        return data

    async def send(self, data: bytes) -> None:
        """See `Channel`."""
        peer = self._peer
        while peer._size > peer._buffered_bytes and not peer._ended:
            peer._taken = peer._taken or asyncio.get_running_loop().create_future()
            await peer._taken
            peer._taken = None
        if peer._ended or self._ended:
            msg = "the channel is closed"
            raise NotSent(msg)
        peer._inbox.append(data)
        peer._size += len(data)
        if peer._arrived is not None:
            _wake(peer._arrived)

    async def aclose(self) -> None:
        """See `Channel`."""
        for end in (self, self._peer):
            end._ended = True
            for waiter in (end._arrived, end._taken):
                if waiter is not None:
                    _wake(waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class ServedChannel(MemoryChannel):
    """The client's end of a channel to a server in this process; the server's end is served from the first use on."""

    def __init__(self, connection: Any) -> None:
        super().__init__()
        self._connection = connection
        self._task: asyncio.Task[None] | None = None

    def _serve(self) -> None:
        far = MemoryChannel()
        self._peer, far._peer = far, self
        self._task = asyncio.get_running_loop().create_task(self._connection(far))

    async def receive(self) -> bytes:
        """See `Channel`."""
        if self._task is None:
            self._serve()
        return await super().receive()

    async def send(self, data: bytes) -> None:
        """See `Channel`."""
        if self._task is None:
            self._serve()
        await super().send(data)

    async def aclose(self) -> None:
        """See `Channel`. Returns when the server's end has let go of everything."""
        await super().aclose()
        if self._task is not None:
            await asyncio.wait([self._task])


def connect(server: Server, *, principal: Principal | None, http: HttpRequest | None, state: Any) -> ServedChannel:
    """See `Server.connect`."""

    async def serve(far: MemoryChannel) -> None:
        await server.start()
        await Connection(server, far, principal=principal, http=http, state=state).serve()

    return ServedChannel(serve)
