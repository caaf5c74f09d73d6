"""What is added from outside: a protocol revision is one row of a table, a transport is one class."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mcprelay import Client, Server, revisions
from mcprelay.errors import NotSent
from mcprelay.revisions import NEWEST, NEWEST_HANDSHAKE, Fault, Feature
from mcprelay.revisions.shape import without
from mcprelay.types import Tool
from tests.server.ask import connected

MADE_UP = "2099-01-01"


def a_server() -> Server:
    server = Server("s")

    @server.tool(title="Add")
    def add(a: int, b: int) -> int:
        return a + b

    return server


@pytest.fixture(params=["stateless", "handshake"])
def made_up(request: Any, monkeypatch: pytest.MonkeyPatch) -> revisions.Revision:
    """A revision that differs from one that there is in a code, a feature and a shape: one row of the table."""
    like = NEWEST if request.param == "stateless" else NEWEST_HANDSHAKE
    revision = like.but(
        MADE_UP,
        codes={Fault.INVALID_PARAMS: -31999},
        without=Feature.TOOL_INPUT_ERRORS,
        shapes={Tool: without("title")},
    )
    monkeypatch.setitem(revisions.ALL, MADE_UP, revision)
    return revision


async def test_a_server_speaks_a_revision_that_was_added_to_the_table(made_up: revisions.Revision):
    async with connected(a_server()) as client:

        async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
            meta = {
                "io.modelcontextprotocol/protocolVersion": MADE_UP,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            stateless = made_up.era is revisions.Era.STATELESS
            whole = {**params, "_meta": meta} if stateless else params
            await client.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": whole})
            return await client.receive()

        if made_up.era is revisions.Era.HANDSHAKE:
            hello = {"protocolVersion": MADE_UP, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
            greeted = await ask("initialize", hello)
            assert greeted["result"]["protocolVersion"] == MADE_UP
            await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        else:
            found = await ask("server/discover", {})
            assert MADE_UP in found["result"]["supportedVersions"]

        [tool] = (await ask("tools/list", {}))["result"]["tools"]
        assert "title" not in tool
        answer = await ask("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        assert answer["result"]["content"][0]["text"] == "3"
        refused = await ask("tools/call", {"name": "add", "arguments": {}})
        assert refused["error"]["code"] == -31999


async def test_over_http_and_to_our_client_too(made_up: revisions.Revision):
    server = a_server()
    async with server.serve("http", port=0) as running, Client(running.url, revision=MADE_UP) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        [tool] = await client.list_tools()
        assert tool.title is None


class Postbox:
    """A transport in one class: messages as JSON in two lists that somebody else empties."""

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[bytes] = asyncio.Queue()
        self.outbox: asyncio.Queue[bytes] = asyncio.Queue()
        self.closed = False

    async def receive(self) -> bytes:
        return await self.inbox.get()

    async def send(self, data: bytes) -> None:
        if self.closed:
            raise NotSent("the postbox is gone")
        await self.outbox.put(data)

    async def aclose(self) -> None:
        self.closed = True


async def test_a_transport_is_one_class_with_three_methods():
    server, box = a_server(), Postbox()
    serving = asyncio.create_task(server.serve_channel(box, state="x"))
    meta = {
        "io.modelcontextprotocol/protocolVersion": NEWEST.name,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": meta}
    request = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}

    await box.inbox.put(json.dumps(request).encode())

    answer = json.loads(await box.outbox.get())
    assert (answer["id"], answer["result"]["structuredContent"]) == (7, 3)
    assert server.started
    await box.inbox.put(b"")
    await serving
    assert box.closed
    assert not server.started


async def test_our_client_speaks_over_it_as_well():
    class Crossed:
        """The other end of a postbox."""

        def __init__(self, box: Postbox) -> None:
            self.receive = box.outbox.get
            self.send = box.inbox.put
            self.box = box

        async def aclose(self) -> None:
            await self.box.inbox.put(b"")

    server, box = a_server(), Postbox()
    serving = asyncio.create_task(server.serve_channel(box))
    async with Client(Crossed(box)) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).value == 3
    await serving
