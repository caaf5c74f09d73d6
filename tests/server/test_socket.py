"""Real sockets: uvicorn, keep-alive connections, clients that vanish, a server that ends with streams open."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from mcprelay import Context, Limits, Server
from mcprelay.revisions import NEWEST, NEWEST_HANDSHAKE
from tests.server.wire import BOTH, INFO, notification, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PREFIX = "io.modelcontextprotocol/"
META = {PREFIX + "protocolVersion": NEWEST.name, PREFIX + "clientInfo": INFO, PREFIX + "clientCapabilities": {}}


class Gate:
    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.cancelled = asyncio.Event()


def build(gate: Gate, **options: Any) -> Server:
    server = Server("socket", **options)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def wait(ctx: Context) -> str:
        ctx.progress(1)
        gate.entered.set()
        try:
            await gate.opened.wait()
        except asyncio.CancelledError:
            gate.cancelled.set()
            raise
        return "waited"

    @server.tool
    async def flood(ctx: Context, megabytes: int) -> str:
        for number in range(megabytes * 10):
            ctx.info({"number": number, "padding": "x" * 100_000})
            await asyncio.sleep(0)
        gate.entered.set()
        return "flooded"

    return server


class Connection:
    """One TCP connection, and HTTP/1.1 spoken on it by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self.reader = reader
        self.writer = writer
        self.host = host
        self.status = 0
        self.headers: dict[str, str] = {}

    @classmethod
    async def to(cls, url: str) -> Connection:
        host = url.partition("://")[2].partition("/")[0]
        name, _, port = host.partition(":")
        return cls(*await asyncio.open_connection(name, int(port)), host)

    def send(self, method: str, message: Any = None, *, path: str = "/mcp", **headers: str) -> None:
        body = b"" if message is None else json.dumps(message).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}", f"Content-Length: {len(body)}"]
        given = {"accept": BOTH, "content_type": "application/json", **headers}
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in given.items()]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)

    async def head(self) -> int:
        async with asyncio.timeout(5):
            raw = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = raw.decode().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines if line)}
        return self.status

    async def body(self) -> bytes:
        async with asyncio.timeout(5):
            if "content-length" in self.headers:
                return await self.reader.readexactly(int(self.headers["content-length"]))
            chunks = []
            while (chunk := await self.chunk()) != b"":
                chunks.append(chunk)
            return b"".join(chunks)

    async def chunk(self) -> bytes:
        """The next chunk of a chunked body; empty at its end."""
        async with asyncio.timeout(5):
            size = int(await self.reader.readline(), 16)
            data = await self.reader.readexactly(size + 2)
        return data[:-2]

    async def answer(self) -> Any:
        await self.head()
        body = await self.body()
        return json.loads(body) if body else None

    def vanish(self) -> None:
        """Reset the connection."""
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()


def call(name: str, arguments: dict[str, Any] | None = None, *, id: Any = 1, **meta: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": name, "arguments": arguments or {}}
    if meta:
        params["_meta"] = meta
    return request("tools/call", params, id=id)


def modern(name: str, arguments: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    headers = {"mcp_protocol_version": NEWEST.name, "mcp_method": "tools/call", "mcp_name": name}
    return call(name, arguments, **META, progressToken=1), headers


async def session(connection: Connection) -> dict[str, str]:
    params = {"protocolVersion": NEWEST_HANDSHAKE.name, "capabilities": {}, "clientInfo": INFO}
    connection.send("POST", request("initialize", params))
    await connection.answer()
    headers = {
        "mcp_session_id": connection.headers["mcp-session-id"],
        "mcp_protocol_version": NEWEST_HANDSHAKE.name,
    }
    connection.send("POST", notification("notifications/initialized"), **headers)
    assert await connection.answer() is None
    assert connection.status == 202
    return headers


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def url(gate: Gate) -> AsyncIterator[str]:
    async with build(gate).serve("http", port=0) as running:
        yield running.url


async def test_one_connection_carries_many_requests_of_both_eras(url: str) -> None:
    connection = await Connection.to(url)
    headers = await session(connection)
    for number in range(3):
        connection.send("POST", call("add", {"a": number, "b": 1}), **headers)
        assert (await connection.answer())["result"]["structuredContent"] == {"result": number + 1}
        message, modern_headers = modern("add", {"a": number, "b": 1})
        connection.send("POST", message, **modern_headers)
        assert (await connection.answer())["result"]["structuredContent"] == number + 1
    connection.send("DELETE", **headers)
    assert await connection.head() == 204
    await connection.close()


async def test_requests_sent_in_a_row_are_answered_in_order(url: str) -> None:
    connection = await Connection.to(url)
    headers = await session(connection)
    for number in range(5):
        connection.send("POST", call("add", {"a": number, "b": 0}, id=number), **headers)
    assert [(await connection.answer())["id"] for _ in range(5)] == list(range(5))
    await connection.close()


async def test_a_client_that_vanishes_cancels_a_request_of_the_stateless_era(url: str, gate: Gate) -> None:
    connection = await Connection.to(url)
    message, headers = modern("wait")
    connection.send("POST", message, **headers)
    await connection.head()
    await gate.entered.wait()
    connection.vanish()
    async with asyncio.timeout(5):
        await gate.cancelled.wait()


async def test_a_client_that_vanishes_finds_its_answer_when_it_comes_back(url: str, gate: Gate) -> None:
    connection = await Connection.to(url)
    headers = await session(connection)
    connection.send("POST", call("wait", progressToken=1), **headers)
    await connection.head()
    seen = b""
    while b"notifications/progress" not in seen:
        seen += await connection.chunk()
    last = [line for line in seen.decode().splitlines() if line.startswith("id: ")][-1][4:]
    connection.vanish()
    back = await Connection.to(url)
    back.send("GET", last_event_id=last, **headers)
    assert await back.head() == 200
    gate.opened.set()
    assert b"waited" in await back.body()
    assert not gate.cancelled.is_set()
    await back.close()


async def test_a_connection_that_was_let_go_of_carries_the_next_request(url: str) -> None:
    connection = await Connection.to(url)
    headers = await session(connection)
    connection.send("GET", **headers)
    await connection.head()
    other = await Connection.to(url)
    other.send("GET", **headers)
    await other.head()
    await connection.body()
    connection.send("POST", request("ping"), **headers)
    assert (await connection.answer())["result"] == {}
    await connection.close()
    await other.close()


async def test_a_slow_reader_is_waited_for_and_costs_no_more_than_its_limit(gate: Gate) -> None:
    server = build(gate, limits=Limits(stream_bytes=500_000, event_log_bytes=0))
    async with server.serve("http", port=0) as running:
        connection = await Connection.to(running.url)
        headers = await session(connection)
        connection.send("POST", call("flood", {"megabytes": 30}), **headers)
        await connection.head()
        quick = await Connection.to(running.url)
        quick.send("POST", request("ping", id="quick"), **headers)
        assert (await quick.answer())["result"] == {}
        await gate.entered.wait()
        received = await connection.body()
        assert b"flooded" in received
        assert len(received) < 25_000_000
        await quick.close()
        await connection.close()


async def test_a_server_that_ends_tells_its_streams_and_is_gone_within_its_grace(gate: Gate) -> None:
    server = build(gate)
    async with server.serve("http", port=0) as running:
        streams = []
        connection = await Connection.to(running.url)
        headers = await session(connection)
        for _ in range(3):
            own = await Connection.to(running.url)
            mine = await session(own)
            own.send("GET", **mine)
            streams.append(own)
        listen = await Connection.to(running.url)
        params = {"notifications": {"toolsListChanged": True}, "_meta": META}
        listen_headers = {"mcp_protocol_version": NEWEST.name, "mcp_method": "subscriptions/listen"}
        listen.send("POST", request("subscriptions/listen", params, id="l"), **listen_headers)
        pair = await Connection.to(running.url)
        pair.send("GET", path="/sse")
        streams += [listen, pair]
        for stream in streams:
            assert await stream.head() == 200
            await stream.chunk()
        connection.send("POST", call("wait"), **headers)
        await gate.entered.wait()
        began = time.monotonic()
    assert time.monotonic() - began < 3
    assert b'"id":"l","result"' in await listen.body()
    for stream in streams:
        if stream is not listen:
            await stream.body()
        await stream.close()
    assert gate.cancelled.is_set()
    await connection.close()


async def test_other_http_methods_are_told_what_is_served(url: str) -> None:
    connection = await Connection.to(url)
    for method, status in (("HEAD", 405), ("OPTIONS", 204), ("PUT", 405)):
        connection.send(method)
        assert await connection.head() == status
        assert "POST" in connection.headers["allow"]
        if method == "PUT":
            await connection.body()
    await connection.close()
