"""The WebSocket channel keeps the promises of a channel, carries calls, and stands in front of a model as well."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import ClientSession, ClientWSTimeout, web

from mcprelay import Relay, Server
from mcprelay.testing import check_channel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "websocket_channel.py"


def loaded() -> Any:
    spec = importlib.util.spec_from_file_location("websocket_channel", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.asynccontextmanager
async def listening(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()


async def test_it_passes_the_kit_for_channels() -> None:
    example = loaded()
    example.CLOSE_SECONDS = 0.2  # the kit closes on a side that does not answer, twice
    example.CONNECT["timeout"] = ClientWSTimeout(ws_close=0.2)
    arrived: asyncio.Queue[Any] = asyncio.Queue()

    async def connected(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=example.MESSAGE_BYTES, timeout=example.CLOSE_SECONDS)
        await socket.prepare(request)
        done = asyncio.Event()
        await arrived.put((example.WebSocketChannel(socket), done))
        await done.wait()
        return socket

    app = web.Application()
    app.router.add_get("/mcp", connected)
    ends: list[asyncio.Event] = []
    async with listening(app) as url, ClientSession() as http:

        async def make() -> tuple[Any, Any]:
            near = example.WebSocketChannel(await http.ws_connect(url, **example.CONNECT))
            far, done = await arrived.get()
            ends.append(done)
            return near, far

        try:
            await check_channel(make)
        finally:
            for done in ends:
                done.set()


async def test_a_relay_takes_it_like_any_other_server() -> None:
    example = loaded()
    server = Server("far")

    @server.tool
    def shout(text: str) -> str:
        """Say it louder."""
        return text.upper()

    async with listening(example.application(server)) as url, ClientSession() as http:
        channel = example.WebSocketChannel(await http.ws_connect(url))
        async with Relay(servers={"far": {"target": channel, "allow": ["shout"]}}) as relay:
            tools = await relay.tools()
            assert "HELLO" in (await tools["far__shout"](text="hello")).text


def test_the_example_runs() -> None:
    done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "HELLO OVER A WEBSOCKET\n", done.stderr
