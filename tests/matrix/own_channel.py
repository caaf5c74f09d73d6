"""A user's own `Channel`: two queues, the three methods of the port, and nothing of what faster channels have."""

import asyncio
from typing import Self

from mcprelay import NotSent, Server


class OwnChannel:
    """One end. `pair` makes both."""

    def __init__(self, incoming: "asyncio.Queue[bytes]", outgoing: "asyncio.Queue[bytes]") -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._closed = False

    @classmethod
    def pair(cls) -> tuple[Self, Self]:
        """Both ends."""
        one: asyncio.Queue[bytes] = asyncio.Queue(16)
        other: asyncio.Queue[bytes] = asyncio.Queue(16)
        return cls(one, other), cls(other, one)

    async def receive(self) -> bytes:
        """See `Channel`."""
        if self._closed:
            return b""
        data = await self._incoming.get()
        self._closed = self._closed or not data
        return data

    async def send(self, data: bytes) -> None:
        """See `Channel`."""
        if self._closed:
            raise NotSent("the channel is closed")
        await self._outgoing.put(data)

    async def aclose(self) -> None:
        """See `Channel`."""
        if not self._closed:
            self._closed = True
            for queue in (self._incoming, self._outgoing):
                while queue.full():
                    queue.get_nowait()
                queue.put_nowait(b"")


class Serving:
    """Hands out channels to a server, which serves each for as long as it lasts."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._serving: set[asyncio.Task[None]] = set()

    def connect(self) -> OwnChannel:
        """The client's end of a new channel."""
        ours, theirs = OwnChannel.pair()
        task = asyncio.ensure_future(self._server.serve_channel(theirs))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        return ours
