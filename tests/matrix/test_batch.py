"""Batches, which one revision has: raw messages to our server over a channel and over HTTP, and from a server to us."""

import asyncio
import json
from typing import Any

import pytest

from mcprelay import Client, revisions
from mcprelay.client.http import HttpSender
from mcprelay.ports import Request
from mcprelay.revisions import Era, Feature, Revision
from mcprelay.testing import ScriptedChannel
from tests.matrix.house import make
from tests.matrix.tape import Passed, Tape

HANDSHAKE = [revision for revision in revisions.ALL.values() if revision.era is Era.HANDSHAKE]
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CALLS = [
    {"jsonrpc": "2.0", "id": "one", "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "long ago"}},
    {"jsonrpc": "2.0", "id": 2, "method": "ping"},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "nobody", "arguments": {}}},
]


def initialize(revision: Revision) -> dict[str, Any]:
    params = {"protocolVersion": revision.name, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


class OverChannel:
    """A client that is nothing but messages, over a channel."""

    def __init__(self) -> None:
        self._channel = make().connect()

    async def open(self) -> None:
        """Nothing: a channel is open."""

    async def say(self, message: Any) -> Any:
        await self._channel.send(json.dumps(message).encode())
        if message == INITIALIZED:
            return None
        return json.loads(await asyncio.wait_for(self._channel.receive(), 10))

    async def aclose(self) -> None:
        await self._channel.aclose()


class OverHttp:
    """The same over HTTP."""

    def __init__(self) -> None:
        self._running = make().serve("http", port=0)
        self._sender = HttpSender()
        self._session: list[tuple[str, str]] = []

    async def open(self) -> None:
        """Start the server."""
        await self._running.__aenter__()

    async def say(self, message: Any) -> Any:
        headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
        request = Request(url=self._running.url, headers=[*headers, *self._session], body=json.dumps(message).encode())
        async with self._sender.send(request) as reply:
            if "mcp-session-id" in reply.headers:
                self._session = [("mcp-session-id", reply.headers["mcp-session-id"])]
            body = await reply.read(2**20)
        return json.loads(body) if body else None

    async def aclose(self) -> None:
        await self._sender.aclose()
        await self._running.__aexit__()


@pytest.fixture(params=[OverChannel, OverHttp])
async def wire(request):
    wire = request.param()
    await wire.open()
    yield wire
    await wire.aclose()


@pytest.mark.clause("handshake.batch.received")
@pytest.mark.parametrize("revision", HANDSHAKE, ids=lambda revision: revision.name)
async def test_a_batch_is_answered_by_a_batch_in_the_revision_that_has_them_and_refused_in_others(wire, revision):
    tape = Tape(revision.name)
    answer = await wire.say(initialize(revision))
    assert answer["result"]["protocolVersion"] == revision.name
    await wire.say(INITIALIZED)
    answers = await wire.say(CALLS)
    if not revision.has(Feature.BATCH):
        assert answers["error"]["code"] == -32600
        return
    tape.check(Passed("client", CALLS))
    tape.check(Passed("server", answers))
    assert tape.faults == []
    found = {answer["id"]: answer for answer in answers}
    assert found.keys() == {"one", 2, 3}
    assert found["one"]["result"]["content"] == [{"type": "text", "text": "3"}]
    assert found[2]["result"] == {}
    assert found[3]["error"]["code"] == -32602
    assert (await wire.say({"jsonrpc": "2.0", "id": 4, "method": "ping"}))["result"] == {}


@pytest.mark.clause("handshake.batch.received")
@pytest.mark.parametrize("revision", HANDSHAKE, ids=lambda revision: revision.name)
async def test_a_client_understands_a_batch_of_its_server_in_the_revision_that_has_them(revision):
    channel = ScriptedChannel()
    client = Client(channel, revision=revision.name, on_roots=["file:///work"])
    connecting = asyncio.ensure_future(client.connect())
    face = {"capabilities": {"tools": {}}, "serverInfo": {"name": "scripted", "version": "1"}}
    channel.reply(await channel.expect("initialize"), {"protocolVersion": revision.name, **face})
    await channel.expect("notifications/initialized")
    await connecting
    call = asyncio.ensure_future(client.call_tool("batch", timeout=5))
    asked = await channel.expect("tools/call")
    result = {"content": [{"type": "text", "text": "ok"}]}
    batch = [
        {"jsonrpc": "2.0", "id": 77, "method": "ping"},
        {"jsonrpc": "2.0", "id": asked["id"], "result": result},
    ]
    channel.say(json.dumps(batch).encode())
    if revision.has(Feature.BATCH):
        assert (await call).text == "ok"
        pong = await channel.expect()
        assert (pong["id"], pong["result"]) == (77, {})
    else:
        channel.reply(asked, result)  # what is no message is passed over, and the channel goes on
        assert (await call).text == "ok"
    await client.aclose()
