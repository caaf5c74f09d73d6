"""The end of a server over HTTP while requests are worked on: each is answered, and the log says so in one line."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mcprelay import Client, Context, Limits, Server, revisions
from mcprelay.client.http import HttpSender
from mcprelay.errors import RemoteError
from mcprelay.ports import Request
from mcprelay.revisions import Era, Feature
from tests.server.wire import INFO, request

if TYPE_CHECKING:
    from pathlib import Path

STREAMABLE = [revision.name for revision in revisions.ALL.values() if revision.http.streamable]
BATCHING = next(name for name, revision in revisions.ALL.items() if revision.has(Feature.BATCH))
HANDSHAKE = [revision.name for revision in revisions.of_era(Era.HANDSHAKE)]
JSON = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]


def build() -> tuple[Server, asyncio.Event, list[str]]:
    server = Server("ends", limits=Limits(shutdown_grace=0.05, cancel_grace=5))
    entered, ended = asyncio.Event(), list[str]()

    async def hold() -> None:
        entered.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    @server.tool
    async def quiet() -> str:
        await hold()
        return "never"

    @server.tool
    async def loud(ctx: Context) -> str:
        ctx.progress(1)
        await hold()
        return "never"

    return server, entered, ended


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("revision", STREAMABLE)
@pytest.mark.parametrize("tool", ["quiet", "loud"])
async def test_a_call_is_cancelled_and_answered_on_json_and_on_a_stream(
    revision: str, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    server, entered, ended = build()
    progress: list[Any] = []
    async with server.serve("http", port=0) as running, Client(running.url, revision=revision) as client:
        calling = asyncio.ensure_future(client.call_tool(tool, on_progress=progress.append))
        await entered.wait()
        stopping = asyncio.ensure_future(running.__aexit__(None, None, None))
        with pytest.raises(RemoteError, match="The server is shutting down: the request was cancelled"):
            await calling
        await stopping
    assert ended == ["cancelled"]
    assert len(progress) == (tool == "loud")
    assert lines(caplog) == [
        "the server ends: requests that took longer than shutdown_grace=0.05 s are cancelled: 1",
    ]


async def test_a_call_that_ends_in_time_is_answered_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("ends", limits=Limits(shutdown_grace=5))
    entered, opened = asyncio.Event(), asyncio.Event()

    @server.tool
    async def wait() -> str:
        entered.set()
        await opened.wait()
        return "waited"

    async with server.serve("http", port=0) as running, Client(running.url) as client:
        calling = asyncio.ensure_future(client.call_tool("wait"))
        await entered.wait()
        stopping = asyncio.ensure_future(running.__aexit__(None, None, None))
        await asyncio.sleep(0)
        opened.set()
        assert (await calling).value == "waited"
        await stopping
    assert lines(caplog) == []


async def test_a_batch_is_refused_whole(caplog: pytest.LogCaptureFixture) -> None:
    server, entered, _ = build()
    sender = HttpSender()
    async with server.serve("http", port=0) as running:
        params = {"protocolVersion": BATCHING, "capabilities": {}, "clientInfo": INFO}
        first = json.dumps(request("initialize", params)).encode()
        async with sender.send(Request(url=running.url, headers=JSON, body=first)) as reply:
            session = ("mcp-session-id", reply.headers["mcp-session-id"])
            await reply.read(10_000)
        calls = [request("tools/call", {"name": "quiet"}, id=number) for number in (1, 2)]
        batch = Request(url=running.url, headers=[*JSON, session], body=json.dumps(calls).encode())

        async def answered() -> tuple[int, bytes]:
            async with sender.send(batch) as reply:
                return reply.status, await reply.read(10_000)

        answering = asyncio.ensure_future(answered())
        await entered.wait()
        stopping = asyncio.ensure_future(running.__aexit__(None, None, None))
        status, body = await answering
        await stopping
    await sender.aclose()
    assert status == 503
    assert b"The server is shutting down" in body
    assert len(lines(caplog)) == 1


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_the_older_pair_ends_its_stream(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    server, entered, ended = build()
    server.revisions = tuple(each for each in server.revisions if each.name == revision)
    async with server.serve("http", port=0) as running:
        async with Client(running.url.removesuffix("/mcp") + "/sse") as client:
            calling = asyncio.ensure_future(client.call_tool("quiet"))
            await entered.wait()
            stopping = asyncio.ensure_future(running.__aexit__(None, None, None))
            with pytest.raises(Exception, match="tools/call"):
                await calling
            await stopping
    assert ended == ["cancelled"]
    assert not any("Traceback" in (record.exc_text or "") for record in caplog.records)
    assert [line for line in lines(caplog) if "uvicorn" in line or "ASGI" in line] == []


async def test_a_server_that_ended_so_may_run_again() -> None:
    server, entered, _ = build()
    async with server.serve("http", port=0) as running, Client(running.url) as client:
        calling = asyncio.ensure_future(client.call_tool("quiet"))
        await entered.wait()
        await running.__aexit__(None, None, None)
        with pytest.raises(RemoteError):
            await calling
    entered.clear()
    async with server.serve("http", port=0) as running, Client(running.url) as client:
        calling = asyncio.ensure_future(client.call_tool("quiet"))
        await entered.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling


def test_a_signal_ends_it_cleanly(tmp_path: Path) -> None:
    program = tmp_path / "busy.py"
    program.write_text(
        "import asyncio, sys\nfrom mcprelay import Limits, Server\n"
        "server = Server('busy', limits=Limits(shutdown_grace=0.1))\n"
        "@server.tool\nasync def hold() -> str:\n"
        "    print('held', file=sys.stderr, flush=True)\n    await asyncio.sleep(60)\n    return 'never'\n"
        "server.run('http', port=0)\n",
        encoding="utf-8",
    )
    process = subprocess.Popen([sys.executable, str(program)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url = process.stderr.readline().split(" at ")[1].split(" ")[0]

    async def call() -> None:
        async with Client(url) as client:
            calling = asyncio.ensure_future(client.call_tool("hold"))
            assert await asyncio.to_thread(process.stderr.readline) == "held\n"  # type: ignore[union-attr]
            process.send_signal(signal.SIGTERM)
            with pytest.raises(RemoteError, match="shutting down"):
                await calling

    try:
        asyncio.run(call())
        assert process.wait(20) == 0
        said = process.stderr.read().splitlines()
        assert said == ["the server ends: requests that took longer than shutdown_grace=0.1 s are cancelled: 1"]
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
