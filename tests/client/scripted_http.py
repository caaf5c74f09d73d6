"""An HTTP server that does exactly what a test says, down to the byte where the wire is cut."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Self

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

_PHRASES = {200: "OK", 202: "Accepted", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}


class Exchange:
    """One request that came, and the way to answer it.

    Attributes:
        method: `POST`, `GET` or `DELETE`.
        path: The request's target.
        headers: Names in lower case.
        body: The body.
        gone: Set when the client closed the connection, looked at while `left` is awaited.
    """

    def __init__(self, method, path, headers, body, *, reader, writer) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.cut_off = False
        self._reader = reader
        self._writer = writer
        self._chunked = False

    @property
    def message(self) -> dict[str, Any]:
        """The body as JSON."""
        message: dict[str, Any] = msgspec.json.decode(self.body)
        return message

    @property
    def asks(self) -> str | None:
        """The JSON-RPC method of the body, or None."""
        return self.message.get("method") if self.body else None

    async def reply(
        self, status: int = 200, body: Any = b"", *, headers: dict[str, str] | None = None, **more: str
    ) -> None:
        """A whole answer: bytes as they are, anything else as JSON."""
        fields = {"content-type": "application/json"} if not isinstance(body, bytes) else {}
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        await self.head(status, {**fields, "content-length": str(len(data)), **(headers or {}), **more})
        await self.raw(data)

    async def result(self, result: dict[str, Any], *, headers: dict[str, str] | None = None) -> None:
        """The result of the request, as a JSON body."""
        await self.reply(200, {"jsonrpc": "2.0", "id": self.message["id"], "result": result}, headers=headers)

    async def error(self, code: int, message: str = "no", data: Any = None, *, status: int = 200) -> None:
        """A JSON-RPC error, as a JSON body."""
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        await self.reply(status, {"jsonrpc": "2.0", "id": self.message["id"], "error": error})

    async def head(self, status: int, headers: dict[str, str]) -> None:
        """The head of an answer."""
        lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Status')}", *(f"{k}: {v}" for k, v in headers.items())]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def stream(self, *, headers: dict[str, str] | None = None) -> None:
        """The head of a stream of events, which `event` continues and `end` ends."""
        self._chunked = True
        fields = {"content-type": "text/event-stream", "transfer-encoding": "chunked", **(headers or {})}
        await self.head(200, fields)

    async def event(
        self, data: Any = None, *, id: str | None = None, retry: int | None = None, event: str | None = None
    ) -> None:
        """One event: bytes as they are, anything else as JSON; without data only the other fields."""
        lines = [
            f"{name}: {value}\n"
            for name, value in (("event", event), ("id", id), ("retry", retry))
            if value is not None
        ]
        text = "".join(lines).encode()
        if data is not None:
            text += b"data: %b\n" % (data if isinstance(data, bytes) else msgspec.json.encode(data))
        else:
            text += b"data:\n"
        await self.chunk(text + b"\n")

    async def chunk(self, data: bytes) -> None:
        """A piece of a stream."""
        await self.raw(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        """The regular end of a stream."""
        await self.raw(b"0\r\n\r\n")

    async def raw(self, data: bytes) -> None:
        """Bytes as they are."""
        self._writer.write(data)
        await self._writer.drain()

    def cut(self) -> None:
        """Cut the connection, without a word."""
        self.cut_off = True
        self._writer.transport.abort()

    async def left(self) -> None:
        """Wait until the client has closed the connection."""
        with contextlib.suppress(ConnectionError):
            while await self._reader.read(65536):
                pass
        self.cut_off = True


class ScriptedHttp:
    """Listens on loopback, and hands each request to `respond`.

        async with ScriptedHttp(respond) as http:
            async with Client(http.url) as client: ...

    Args:
        respond: What is done with a request. What it raises closes the connection.
        connected: Called with each connection before anything is read of it; False closes it at once.

    Attributes:
        exchanges: Every request that came, in order.
        connections: How many connections were made.
    """

    def __init__(
        self,
        respond: Callable[[Exchange], Awaitable[None]],
        *,
        connected: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]] | None = None,
    ) -> None:
        self._respond = respond
        self._connected = connected
        self.exchanges: list[Exchange] = []
        self.connections = 0
        self.failures: list[BaseException] = []
        self._news = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The address of the endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def port(self) -> int:
        """The port."""
        if self._server is None:
            raise RuntimeError("enter the server first")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def came(self, count: int = 1, *, of: str | None = None) -> None:
        """Wait until so many requests came, of a JSON-RPC method if one is given."""
        async with asyncio.timeout(10):
            while (len(self.exchanges) if of is None else self.methods.count(of)) < count:
                self._news.clear()
                await self._news.wait()

    @property
    def methods(self) -> list[str]:
        """What was asked: the JSON-RPC method of each POST, `GET` and `DELETE` for the others."""
        return [one.asks or one.method for one in self.exchanges]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if kind is None and self.failures:
            raise self.failures[0]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            if self._connected is not None and not await self._connected(reader, writer):
                return
            while (exchange := await _read(reader, writer)) is not None:
                self.exchanges.append(exchange)
                self._news.set()
                await self._respond(exchange)
                if exchange.cut_off:
                    return
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        except Exception as error:  # noqa: BLE001 - a script's mistake is raised where the server is left
            self.failures.append(error)
        finally:
            writer.transport.abort()


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange | None:
    """The next request of a connection, or None at its end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Exchange(method, path, headers, body, reader=reader, writer=writer)
