"""A server at one end of a channel: all revisions on one wire, leading, batches, floods, the end."""

from __future__ import annotations

import asyncio
import json
import logging
from contextvars import ContextVar
from typing import Any

import pytest

from mcprelay import Context, Limits, Server, revisions
from mcprelay.errors import LimitExceeded, NotSent, ProtocolError
from mcprelay.revisions import NEWEST, Era, Feature
from mcprelay.server.connection import Connection
from tests.server.rawclient import RawClient
from tests.server.wire import INFO, notification, request
from tests.wire_schema import validate_message

HANDSHAKE = [revision.name for revision in revisions.of_era(Era.HANDSHAKE)]
BATCHING = next(name for name in HANDSHAKE if revisions.ALL[name].has(Feature.BATCH))

current: ContextVar[str] = ContextVar("current", default="nobody's")


def build(**options: Any) -> Server:
    server = Server("channel", **options)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def count(ctx: Context, to: int) -> str:
        for number in range(to):
            ctx.progress(number, to)
        return "counted"

    @server.tool
    async def folders(ctx: Context) -> str:
        return ", ".join(root.uri for root in await ctx.roots())

    @server.tool
    async def remember(name: str) -> str:
        before = current.get()
        current.set(name)
        return before

    @server.tool
    async def close(ctx: Context) -> str:
        ctx.close_stream()
        return "still here"

    return server


class Client:
    """Speaks one handshake revision over a channel."""

    def __init__(self, server: Server, revision: str) -> None:
        self.channel = server.connect()
        self.revision = revision
        self.asked: dict[Any, str] = {}

    async def tell(self, message: Any) -> None:
        for one in message if isinstance(message, list) else [message]:
            if isinstance(one, dict) and "id" in one and "method" in one:
                self.asked[one["id"]] = one["method"]
        await self.channel.send(message if isinstance(message, bytes) else json.dumps(message).encode())

    async def hear(self) -> Any:
        async with asyncio.timeout(5):
            heard = json.loads(await self.channel.receive())
        for one in heard if isinstance(heard, list) else [heard]:
            validate_message(self.revision, one, sender="server", request_method=self.asked.get(one.get("id")))
        return heard

    async def ask(self, method: str, params: Any = None, *, id: Any = 1) -> Any:
        await self.tell(request(method, params, id=id))
        return await self.hear()

    async def initialize(self, **capabilities: Any) -> Any:
        params = {"protocolVersion": self.revision, "capabilities": capabilities, "clientInfo": INFO}
        answer = await self.ask("initialize", params, id="i")
        await self.tell(notification("notifications/initialized"))
        return answer["result"]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_every_handshake_revision_is_agreed_on_and_spoken(revision: str) -> None:
    client = Client(build(), revision)
    assert (await client.initialize())["protocolVersion"] == revision
    answer = await client.ask("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    assert answer["result"]["content"][0]["text"] == "3"
    await client.channel.aclose()


@pytest.mark.off_schema  # each message is of its own revision, and what looks on takes them all for one's
async def test_both_eras_share_a_wire() -> None:
    server = build()
    raw = RawClient(server.connect())
    await raw.send(request("initialize", {"protocolVersion": HANDSHAKE[0], "capabilities": {}, "clientInfo": INFO}))
    assert (await raw.receive())["result"]["protocolVersion"] == HANDSHAKE[0]
    modern = await raw.result("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    assert modern["structuredContent"] == 3
    await raw.send(request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, id="legacy"))
    assert (await raw.receive())["result"]["structuredContent"] == {"result": 3}
    await raw.channel.aclose()


async def test_a_ping_is_answered_before_the_handshake_and_nothing_else_is() -> None:
    client = Client(build(), HANDSHAKE[0])
    assert (await client.ask("ping"))["result"] == {}
    refused = await client.ask("tools/list", id=2)
    assert refused["error"]["code"] == -32602
    assert "protocolVersion" in refused["error"]["message"]
    await client.channel.aclose()


async def test_where_no_handshake_is_spoken_it_is_said_so() -> None:
    client = Client(build(among=[NEWEST.name]), NEWEST.name)
    params = {"protocolVersion": HANDSHAKE[0], "capabilities": {}, "clientInfo": INFO}
    refused = await client.ask("initialize", params)
    assert refused["error"]["code"] == -32601
    assert NEWEST.name in refused["error"]["message"]
    await client.channel.aclose()


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_what_cannot_be_read_is_answered_as_the_revision_has_it(revision: str) -> None:
    client = Client(build(), revision)
    await client.initialize()
    await client.tell(b"{")
    answer = await client.hear()
    assert answer["error"]["code"] == -32700
    assert answer.get("id") is None
    await client.channel.aclose()


async def test_the_answers_of_a_batch_are_an_array_where_there_are_batches() -> None:
    client = Client(build(), BATCHING)
    await client.initialize()
    calls = [request("tools/call", {"name": "add", "arguments": {"a": n, "b": 1}}, id=n) for n in range(3)]
    await client.tell([*calls, notification("notifications/x"), 1])
    found = await client.hear()
    texts = {answer["id"]: answer["result"]["content"][0]["text"] for answer in found if "result" in answer}
    assert texts == {0: "1", 1: "2", 2: "3"}
    assert [answer["id"] for answer in found if "error" in answer] == [None]
    await client.tell([notification("notifications/x")])
    assert (await client.ask("ping", id="p"))["id"] == "p"
    await client.tell([request("ping", id="one")])
    assert [answer["id"] for answer in await client.hear()] == ["one"]
    await client.channel.aclose()


async def test_a_batch_elsewhere_is_refused() -> None:
    client = Client(build(), HANDSHAKE[0])
    await client.initialize()
    await client.tell([request("ping", id=1)])
    assert (await client.hear())["error"]["code"] == -32600
    await client.channel.aclose()


async def test_after_a_handshake_that_came_to_nothing_there_are_no_batches() -> None:
    server = build()

    @server.middleware
    async def refuse(call: Any, call_next: Any) -> Any:
        if call.method.name == "initialize":
            raise ProtocolError(-32000, "not now")
        return await call_next(call)

    raw = RawClient(server.connect())
    await raw.send(request("initialize", {"protocolVersion": BATCHING, "capabilities": {}, "clientInfo": INFO}))
    assert (await raw.receive())["error"]["message"] == "not now"
    await raw.send([request("ping", id=1)])
    assert (await raw.receive())["error"]["code"] == -32600
    await raw.channel.aclose()


async def test_questions_are_asked_and_answered_on_the_wire() -> None:
    client = Client(build(), HANDSHAKE[0])
    await client.initialize(roots={})
    await client.tell(request("tools/call", {"name": "folders", "arguments": {}}, id="f"))
    question = await client.hear()
    assert question["method"] == "roots/list"
    await client.tell({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -7, "message": "no"}})
    assert (await client.hear())["error"] == {"code": -7, "message": "no"}
    await client.channel.aclose()


@pytest.mark.clause("handshake.cancellation.server-stops", "handshake.cancellation.server-own")
async def test_a_cancelled_call_gets_no_answer_and_its_question_is_taken_back() -> None:
    client = Client(build(), HANDSHAKE[0])
    await client.initialize(roots={})
    await client.tell(request("tools/call", {"name": "folders", "arguments": {}}, id="f"))
    question = await client.hear()
    await client.tell(notification("notifications/cancelled", {"requestId": "f"}))
    notice = await client.hear()
    assert (notice["method"], notice["params"]["requestId"]) == ("notifications/cancelled", question["id"])
    assert (await client.ask("ping", id="p"))["id"] == "p"
    await client.channel.aclose()


async def test_a_variable_that_a_handler_sets_is_not_seen_by_the_next_call() -> None:
    client = Client(build(), HANDSHAKE[0])
    await client.initialize()
    for name in ("ada", "eve"):
        answer = await client.ask("tools/call", {"name": "remember", "arguments": {"name": name}}, id=name)
        assert answer["result"]["content"][0]["text"] == "nobody's"
    await client.channel.aclose()


async def test_letting_go_of_the_connection_does_nothing_where_there_is_only_one() -> None:
    client = Client(build(), HANDSHAKE[0])
    await client.initialize()
    answer = await client.ask("tools/call", {"name": "close", "arguments": {}})
    assert answer["result"]["content"][0]["text"] == "still here"
    await client.channel.aclose()


class SlowChannel:
    """A channel whose client reads nothing until it is told to."""

    def __init__(self, *messages: Any) -> None:
        self.incoming = [json.dumps(message).encode() for message in messages]
        self.sent: list[bytes] = []
        self.reading = asyncio.Event()
        self.answered = asyncio.Event()
        self.closed = asyncio.Event()

    async def receive(self) -> bytes:
        if self.incoming:
            return self.incoming.pop(0)
        await self.closed.wait()
        return b""

    async def send(self, data: bytes) -> None:
        await self.reading.wait()
        self.sent.append(data)
        if b'"result"' in data and b"counted" in data:
            self.answered.set()

    async def aclose(self) -> None:
        self.closed.set()


async def test_a_flood_of_progress_for_a_slow_client_is_bounded() -> None:
    params = {"protocolVersion": HANDSHAKE[0], "capabilities": {}, "clientInfo": INFO}
    call = {"name": "count", "arguments": {"to": 5000}, "_meta": {"progressToken": "t"}}
    channel = SlowChannel(request("initialize", params, id="i"), request("tools/call", call, id="c"))
    server = build(limits=Limits(stream_bytes=2000))
    serving = asyncio.ensure_future(server.serve_channel(channel))
    for _ in range(20):
        await asyncio.sleep(0)
    channel.reading.set()
    await channel.answered.wait()
    progress = [json.loads(data)["params"]["progress"] for data in channel.sent if b"notifications/progress" in data]
    assert progress[-1] == 4999
    assert len(progress) < 100
    assert progress == sorted(progress)
    await channel.aclose()
    await serving


async def test_when_the_channel_ends_what_waits_is_cancelled() -> None:
    server = build()
    waiting, ended = asyncio.Event(), asyncio.Event()

    @server.tool
    async def wait() -> str:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    client = Client(server, HANDSHAKE[0])
    await client.initialize()
    await client.tell(request("tools/call", {"name": "wait", "arguments": {}}, id=1))
    await waiting.wait()
    await client.channel.aclose()
    assert ended.is_set()
    assert len(server.changes) == 0


def test_a_connection_is_the_link_of_its_calls() -> None:
    assert all(hasattr(Connection, name) for name in ("notify", "drain", "request", "close_stream"))


async def test_a_request_of_the_newest_revision_is_refused_as_it_says() -> None:
    raw = RawClient(build().connect())
    for meta, code in (
        ({"io.modelcontextprotocol/protocolVersion": "v999"}, -32022),
        ({"io.modelcontextprotocol/protocolVersion": HANDSHAKE[0]}, -32022),
        ({"io.modelcontextprotocol/protocolVersion": NEWEST.name}, -32602),
        ({"io.modelcontextprotocol/protocolVersion": 7}, -32602),
    ):
        await raw.send(request("tools/list", {"_meta": meta}, id="r"))
        answer = await raw.receive()
        assert (answer["id"], answer["error"]["code"]) == ("r", code)
    assert (await raw.result("tools/list"))["tools"]
    await raw.channel.aclose()


@pytest.mark.parametrize("params", [{}, {"protocolVersion": HANDSHAKE[0]}, {"protocolVersion": 1}])
async def test_an_initialize_that_is_refused_may_be_repeated(params: Any) -> None:
    client = Client(build(), HANDSHAKE[0])
    assert (await client.ask("initialize", params))["error"]["code"] == -32602
    await client.initialize()
    assert (await client.ask("ping", id=2))["result"] == {}
    await client.channel.aclose()


class Faulty:
    """A channel that raises where it is told to, and then ends."""

    def __init__(self, incoming: list[Any], *, broken: bool = False) -> None:
        self.incoming = incoming
        self.broken = broken
        self.sent: list[Any] = []
        self.closed = False

    async def receive(self) -> bytes:
        if not self.incoming:
            return b""
        message = self.incoming.pop(0)
        if isinstance(message, Exception):
            raise message
        return json.dumps(message).encode()

    async def send(self, data: bytes) -> None:
        if self.broken:
            raise NotSent("the client is gone")
        self.sent.append(json.loads(data))

    async def aclose(self) -> None:
        self.closed = True


async def test_a_message_over_the_channels_limit_is_answered_and_the_next_one_is_read() -> None:
    channel = Faulty([LimitExceeded("message_bytes", 10), request("ping", id=1)])
    await build().serve_channel(channel)
    assert "message_bytes=10" in channel.sent[0]["error"]["message"]
    assert channel.sent[1]["id"] == 1


async def test_a_channel_that_breaks_ends_the_serving_and_nothing_else() -> None:
    for channel in (Faulty([OSError("broken"), request("ping")]), Faulty([request("ping")], broken=True)):
        await build().serve_channel(channel)
        assert channel.closed


@pytest.mark.clause("handshake.cancellation.reason-logged")
async def test_the_reason_of_a_cancellation_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    client = Client(build(), HANDSHAKE[0])
    await client.initialize(roots={})
    await client.tell(request("tools/call", {"name": "folders", "arguments": {}}, id="f"))
    await client.hear()
    with caplog.at_level(logging.DEBUG, "mcprelay.server"):
        await client.tell(notification("notifications/cancelled", {"requestId": "f", "reason": "the cat is hungry"}))
        await client.hear()
    assert "the cat is hungry" in caplog.text
    await client.channel.aclose()


class Unheard(BaseException):
    """What no `except Exception` catches."""


@pytest.mark.parametrize("raised", [SystemExit(3), asyncio.CancelledError(), Unheard()])
@pytest.mark.parametrize("threaded", [False, True])
async def test_whatever_a_handler_raises_is_answered_and_the_server_serves_on(
    raised: BaseException, threaded: bool
) -> None:
    server = build()

    async def leave() -> str:
        raise raised

    def leave_in_a_thread() -> str:
        raise raised

    server.add_tool(leave_in_a_thread if threaded else leave, name="leave")
    client = Client(server, HANDSHAKE[0])
    await client.initialize()

    assert "error" in await client.ask("tools/call", {"name": "leave", "arguments": {}}, id=2)
    assert "result" in await client.ask("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, id=3)
