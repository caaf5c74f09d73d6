"""A transport of your own in one file: MCP over a WebSocket, for a server and a client.

    python examples/websocket_channel.py

A `Channel` moves whole messages and knows nothing of the protocol, so a WebSocket, which does the same, is one in a few
lines. `mcprelay.testing.check_channel` proves that it keeps the promises of a channel.
"""

import asyncio

from aiohttp import ClientSession, ClientWebSocketResponse, ClientWSTimeout, WSMsgType, web

from mcprelay import Client, NotSent, Server

MESSAGE_BYTES = 64 * 2**20
CLOSE_SECONDS = 1.0  # how long closing waits for an other side that does not read any more
CONNECT = {"max_msg_size": MESSAGE_BYTES, "timeout": ClientWSTimeout(ws_close=CLOSE_SECONDS)}


class WebSocketChannel:
    """A `Channel` over one WebSocket, of either side."""

    def __init__(self, socket: web.WebSocketResponse | ClientWebSocketResponse) -> None:
        self._socket = socket
        self._order = asyncio.Lock()
        self._sending: asyncio.Future[None] | None = None
        self._closed = False

    async def receive(self) -> bytes:
        """The next message; `b""` at the end."""
        if self._closed or self._socket.closed:
            return b""
        message = await self._socket.receive()
        if message.type is WSMsgType.TEXT:
            return message.data.encode()
        return message.data if message.type is WSMsgType.BINARY else b""  # the others say that it ends

    async def send(self, data: bytes) -> None:
        """Hand a message over, in the order of the calls."""
        async with self._order:
            if self._closed or self._socket.closed:
                msg = "the WebSocket is closed"
                raise NotSent(msg)
            self._sending = asyncio.ensure_future(self._socket.send_bytes(data))
            await asyncio.wait([self._sending])  # aclose() may cancel it, when the other side does not read
            if self._sending.cancelled():
                msg = "the WebSocket was closed while it was sending"
                raise ConnectionError(msg)
            self._sending.result()

    async def aclose(self) -> None:
        """Close both directions, soon, also when the other side does not read any more."""
        self._closed = True
        if self._sending is not None:
            self._sending.cancel()
        closing = asyncio.ensure_future(self._socket.close())
        await asyncio.wait([closing], timeout=CLOSE_SECONDS)
        closing.cancel()


def application(server: Server) -> web.Application:
    """A web application that serves MCP at /mcp."""

    async def connected(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=MESSAGE_BYTES, timeout=CLOSE_SECONDS)
        await socket.prepare(request)
        await server.serve_channel(WebSocketChannel(socket))
        return socket

    app = web.Application()
    app.router.add_get("/mcp", connected)
    return app


async def main() -> None:
    server = Server("over a WebSocket")

    @server.tool
    def shout(text: str) -> str:
        """Say it louder."""
        return text.upper()

    runner = web.AppRunner(application(server))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"ws://127.0.0.1:{runner.addresses[0][1]}/mcp"
    async with ClientSession() as http, http.ws_connect(address, **CONNECT) as socket:
        client = Client(WebSocketChannel(socket))
        async with client:
            print((await client.call_tool("shout", {"text": "hello over a WebSocket"})).value)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
