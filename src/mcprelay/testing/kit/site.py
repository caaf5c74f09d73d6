"""A web server of a few lines that misbehaves on request, for the kit that checks a `Sender`.

Knows just enough of HTTP/1.1 to see what was sent and to break an answer at any byte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


class Seen(Struct):
    """A request as it arrived; header names in lower case."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> list[str]:
        """The values of a header."""
        return [value for key, value in self.headers if key == name]


Respond: TypeAlias = "Callable[[Seen, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]"


class Site:
    """What listens, and what it saw.

    Attributes:
        url: Where it is, without a path.
        seen: The requests that arrived whole, in order.
        connections: How many connections were made.
    """

    def __init__(self, server: asyncio.Server, respond: Respond) -> None:
        self._respond = respond
        self.url = "http://{}:{}".format(*server.sockets[0].getsockname()[:2])
        self.seen: list[Seen] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until either side ends it."""
        self.connections += 1
        try:
            while True:
                request = await _read(reader)
                self.seen.append(request)
                await self._respond(request, reader, writer)
                await writer.drain()
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()


@asynccontextmanager
async def site(respond: Respond) -> AsyncGenerator[Site]:
    """A site on a free port of this machine."""
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(served.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    served = Site(server, respond)
    try:
        yield served
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    pairs = [line.partition(":") for line in lines]
    request = Seen(method, target, [(name.lower(), value.strip()) for name, _, value in pairs], b"")
    if "chunked" in request.header("transfer-encoding"):
        while size := int(await reader.readline(), 16):
            request.body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        request.body = await reader.readexactly(int((request.header("content-length") or ["0"])[0]))
    return request


def reply(status: int, body: bytes = b"", *headers: tuple[str, str], length: int | None = None) -> bytes:
    """The bytes of a reply. `length` is what it says its length is, if that is not the truth; -1 says nothing."""
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in headers)]
    if length != -1:
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def chunk(data: bytes) -> bytes:
    """A piece of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)
