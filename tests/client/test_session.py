"""A session that is lost: made anew once for everybody, and told to everybody (handshake transports, "Session
Management"; "Listening for Messages from the Server")."""

import asyncio
from itertools import pairwise

import pytest

from mcprelay import (
    CallLimitExceeded,
    Client,
    ConnectFailed,
    ConnectionLost,
    Evidence,
    HttpError,
    PromptsChanged,
    RemoteError,
    ResourceUpdated,
    Server,
    ToolsChanged,
)
from tests.client.peer import INITIALIZED, LEGACY, fresh
from tests.client.scripted_http import ScriptedHttp

CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True},
}
TOOLS_CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


class Forgetful:
    """A server of the handshake era whose sessions can be taken away, and whose every step can be held up or refused.

    Attributes:
        sessions: The sessions that it knows.
        made: How many it has made.
        gate: `initialize` waits for it.
        refusal: What `initialize` is answered with, if with a refusal.
        refusals: What the next GETs are answered with, if with refusals: statuses.
        streams: The GET streams that are open.
        version: What it speaks.
    """

    def __init__(self, *, version=LEGACY):
        self.sessions = set()
        self.made = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.refusal = None
        self.refusals = []
        self.streams = []
        self.opened = asyncio.Event()
        self.version = version

    async def __call__(self, exchange):
        session = exchange.headers.get("mcp-session-id")
        if exchange.asks == "initialize":
            await self._initialize(exchange)
        elif session is None:
            await exchange.reply(400, b"no session")
        elif session not in self.sessions:
            await exchange.reply(404, b"session not found")
        elif exchange.method == "GET":
            await self._stream(exchange)
        elif exchange.method == "DELETE":
            await exchange.reply(204)
        elif "id" not in exchange.message or "method" not in exchange.message:
            await exchange.reply(202)
        else:
            await exchange.result({"content": [{"type": "text", "text": session}]})

    async def _initialize(self, exchange):
        await self.gate.wait()
        if self.refusal is not None:
            await exchange.reply(self.refusal, b"not now")
            return
        self.made += 1
        self.sessions.add(f"s{self.made}")
        result = {**INITIALIZED, "protocolVersion": self.version, "capabilities": CAPABILITIES}
        await exchange.result(result, headers={"mcp-session-id": f"s{self.made}"})

    async def _stream(self, exchange):
        if self.refusals:
            await exchange.reply(self.refusals.pop(0), b"no stream")
            return
        await exchange.stream()
        await exchange.chunk(b"retry: 1\n\n")
        self.streams.append(exchange)
        self.opened.set()
        await exchange.left()

    def forget(self):
        """Lose every session, and cut its streams."""
        self.sessions.clear()
        self.cut()

    def cut(self):
        """Cut every stream."""
        self.opened.clear()
        while self.streams:
            self.streams.pop().cut()


async def initialized(http, count):
    """Wait until `initialize` came so often."""
    await http.came(count, of="initialize")


# --- calls


async def test_calls_that_lose_the_session_and_calls_that_come_meanwhile_share_one_handshake():
    server = Forgetful()
    async with ScriptedHttp(server) as http, fresh(http.url, revision=LEGACY) as client:
        await client.call_tool("first")
        server.sessions.clear()
        server.gate.clear()
        losing = [asyncio.ensure_future(client.call_tool("lost", {"n": n})) for n in range(10)]
        await initialized(http, 2)
        await http.came(11, of="tools/call")
        coming = [asyncio.ensure_future(client.call_tool("late", {"n": n})) for n in range(10)]
        reading = asyncio.ensure_future(client.request("x/y"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert http.methods.count("tools/call") == 11  # those that come wait, and nothing of them is sent
        server.gate.set()
        assert {(await call).value for call in losing + coming} == {"s2"}
        await reading
        assert http.methods.count("initialize") == 2
        assert http.methods.count("tools/call") == 1 + 10 + 10 + 10
        assert all(one.headers.get("mcp-session-id") for one in http.exchanges if one.asks != "initialize")


async def test_a_real_server_that_lost_its_sessions_costs_concurrent_calls_nothing():
    server = Server("s")

    @server.tool
    async def turn(n: int) -> int:
        """Take a turn of the loop."""
        await asyncio.sleep(0)
        return n

    async with server.serve("http", port=0) as running, Client(running.url, revision=LEGACY) as client:
        await client.call_tool("turn", {"n": 0})
        for count in (2, 5, 20):
            server.session_store._kept.clear()
            results = await asyncio.gather(*(client.call_tool("turn", {"n": n}) for n in range(count)))
            assert [int(result.text) for result in results] == list(range(count))


async def test_a_call_that_waited_is_repeated_too_if_the_next_session_is_lost_as_well():
    server = Forgetful()
    async with ScriptedHttp(server) as http, fresh(http.url, revision=LEGACY) as client:
        await client.call_tool("first")
        server.sessions.clear()
        server.gate.clear()
        losing = asyncio.ensure_future(client.call_tool("lost"))
        await initialized(http, 2)
        coming = asyncio.ensure_future(client.call_tool("late"))
        server.gate.set()
        assert (await losing).value == (await coming).value == "s2"
        server.sessions.clear()
        assert (await client.call_tool("again")).value == "s3"


async def test_a_session_that_is_lost_twice_in_a_row_surfaces():
    class Amnesiac(Forgetful):
        async def _initialize(self, exchange):
            await super()._initialize(exchange)
            if self.made > 1:
                self.sessions.clear()

    server = Amnesiac()
    async with ScriptedHttp(server) as http, fresh(http.url, revision=LEGACY) as client:
        await client.call_tool("first")
        server.sessions.clear()
        with pytest.raises(HttpError) as caught:
            await client.call_tool("lost")
        assert caught.value.status == 404
        assert caught.value.evidence is Evidence.ANSWERED
        assert http.methods.count("initialize") == 2


@pytest.mark.parametrize("refusal", [503, 500, 429, 401])
async def test_a_renewal_that_fails_is_told_with_what_became_of_each_call_and_the_next_one_tries_again(refusal):
    server = Forgetful()
    async with ScriptedHttp(server) as http, fresh(http.url, revision=LEGACY) as client:
        await client.call_tool("first")
        server.sessions.clear()
        server.refusal = refusal
        server.gate.clear()
        losing = asyncio.ensure_future(client.call_tool("lost"))
        await initialized(http, 2)
        coming = asyncio.ensure_future(client.call_tool("late"))
        server.gate.set()
        for call, known in ((losing, Evidence.ANSWERED), (coming, Evidence.NOT_SENT)):
            with pytest.raises(HttpError) as caught:
                await call
            assert caught.value.status == refusal
            assert caught.value.method == "initialize"
            assert caught.value.evidence is known
            assert ("carried nothing of it out" in str(caught.value)) is (call is losing)
        with pytest.raises(HttpError):
            await client.call_tool("still")
        server.refusal = None
        assert (await client.call_tool("again")).value == "s2"
        assert (await client.call_tool("and again")).value == "s2"
        assert http.methods.count("initialize") == 4


async def test_a_renewal_whose_connection_is_cut_is_tried_again_by_the_next_call():
    server = Forgetful()
    cut = True

    async def respond(exchange):
        if exchange.asks == "initialize" and server.made and cut:
            exchange.cut()
        else:
            await server(exchange)

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=LEGACY) as client:
        await client.call_tool("first")
        server.sessions.clear()
        with pytest.raises(ConnectFailed) as caught:
            await client.call_tool("lost")
        assert caught.value.evidence is Evidence.ANSWERED
        assert "safe to try again" in str(caught.value)
        with pytest.raises(ConnectFailed) as caught:
            await client.call_tool("not even sent")
        assert caught.value.evidence is Evidence.NOT_SENT
        cut = False
        assert (await client.call_tool("again")).value == "s2"


async def test_a_call_that_gives_up_while_the_session_is_renewed_leaves_the_renewal_to_the_others():
    server = Forgetful()
    async with ScriptedHttp(server) as http, fresh(http.url, revision=LEGACY) as client:
        await client.call_tool("first")
        server.sessions.clear()
        server.gate.clear()
        losing = asyncio.ensure_future(client.call_tool("lost"))
        await initialized(http, 2)
        coming = asyncio.ensure_future(client.call_tool("late"))
        losing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await losing
        server.gate.set()
        assert (await coming).value == "s2"
        assert http.methods.count("initialize") == 2


# --- listening


async def test_a_listener_whose_session_is_lost_goes_on_in_the_next_one_and_everything_is_told_as_changed():
    server = Forgetful()
    async with ScriptedHttp(server) as http, fresh(http.url, revision=LEGACY) as client:
        async with client.listen(tools=True, updates=["file:///a"]) as events:
            await server.opened.wait()
            server.forget()
            assert {await anext(events), await anext(events)} == {ToolsChanged(), ResourceUpdated("file:///a")}
            await server.opened.wait()
            await server.streams[-1].event(TOOLS_CHANGED)
            assert await anext(events) == ToolsChanged()
        subscribed = [one.headers["mcp-session-id"] for one in http.exchanges if one.asks == "resources/subscribe"]
        assert subscribed == ["s1", "s2"]
        assert http.methods.count("resources/unsubscribe") == 1


async def test_questions_outside_of_calls_are_heard_in_the_next_session_too():
    server = Forgetful()
    answered = asyncio.Event()

    async def respond(exchange):
        if exchange.method == "POST" and exchange.message.get("id") == "Q":
            answered.set()
        await server(exchange)

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=LEGACY, on_sample=lambda _: "x") as client:
        await client.call_tool("first")
        await server.opened.wait()
        server.forget()
        await server.opened.wait()
        params = {"messages": [], "maxTokens": 1}
        await server.streams[-1].event(
            {"jsonrpc": "2.0", "id": "Q", "method": "sampling/createMessage", "params": params}
        )
        await answered.wait()
        assert http.exchanges[-1].headers["mcp-session-id"] == "s2"


async def test_a_server_that_knows_no_session_on_its_stream_is_not_greeted_for_ever():
    server = Forgetful()

    async def respond(exchange):
        if exchange.method == "GET":
            await exchange.reply(404, b"no such session here")
        else:
            await server(exchange)

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=LEGACY) as client:
        async with client.listen(tools=True) as events:
            assert await anext(events) == ToolsChanged()  # the session is another one
            with pytest.raises(HttpError, match="no stream of its own") as caught:
                await anext(events)
            assert caught.value.status == 404
        assert http.methods.count("initialize") == 2
        assert http.methods.count("GET") == 2


async def until(clock, is_so, *, step=0.1):
    """Let time pass in small steps until something is so."""
    for _ in range(100_000):
        if is_so():
            return
        await clock.advance(step)
    pytest.fail("it never became so")


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_a_stream_that_is_refused_for_the_moment_is_opened_again_after_a_longer_wait_each_time(status, clock):
    server = Forgetful()
    server.refusals = [status] * 3
    loop = asyncio.get_running_loop()
    tried = []

    async def respond(exchange):
        if exchange.method == "GET":
            tried.append(loop.time())
        await server(exchange)

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=LEGACY) as client:
        async with client.listen(tools=True) as events:
            await until(clock, server.opened.is_set)
            assert await anext(events) == ToolsChanged()  # what was missed is not known
            await server.streams[-1].event(TOOLS_CHANGED)
            assert await anext(events) == ToolsChanged()
        waited = [later - earlier for earlier, later in pairwise(tried)]
        assert len(waited) == 3
        assert all(round(wait, 3) >= least for wait, least in zip(waited, (2, 4, 8), strict=True))
        assert http.methods.count("initialize") == 1


async def test_a_stream_that_stays_away_is_told_by_the_limits_name_and_still_tried_for(clock):
    server = Forgetful()
    server.refusals = [503] * 20
    async with (
        ScriptedHttp(server) as http,
        fresh(http.url, revision=LEGACY, resumptions=2, request_timeout=1e6) as client,
    ):
        async with client.listen(tools=True) as events:
            reading = asyncio.ensure_future(anext(events))
            await until(clock, reading.done)
            with pytest.raises(ConnectionLost, match=r"could not be opened again: resumptions=2 \(.*HTTP 503"):
                await reading
        assert http.methods.count("GET") == 3
        await until(clock, lambda: http.methods.count("GET") > 4)
        server.refusals.clear()
        async with client.listen(tools=True) as events:  # somebody listens again: there is no wait
            await server.opened.wait()
            await server.streams[-1].event(TOOLS_CHANGED)
            assert await anext(events) == ToolsChanged()


async def test_where_it_is_asked_for_a_stream_that_stayed_away_is_listened_to_again(clock):
    server = Forgetful()
    server.refusals = [503] * 6
    async with (
        ScriptedHttp(server) as http,
        fresh(http.url, revision=LEGACY, resumptions=2, request_timeout=1e6) as client,
    ):
        async with client.listen(prompts=True, reconnect=True) as events:
            await until(clock, server.opened.is_set)
            assert await anext(events) == PromptsChanged()
            assert http.methods.count("GET") == 7


@pytest.mark.parametrize("status", [400, 405, 410, 501])
@pytest.mark.parametrize("reconnect", [False, True])
async def test_a_server_without_a_stream_is_asked_once_and_whoever_listens_is_told(status, reconnect):
    server = Forgetful()
    server.refusals = [status]
    async with ScriptedHttp(server) as http, fresh(http.url, revision=LEGACY) as client:
        async with client.listen(tools=True, reconnect=reconnect) as events:
            with pytest.raises(HttpError, match="the server has no stream of its own") as caught:
                await anext(events)
            assert caught.value.status == status
            assert not events.ended
        assert (await client.call_tool("x")).value == "s1"
        assert http.methods.count("GET") == 1


async def test_a_listener_without_a_token_is_told_what_is_missing():
    server = Forgetful()
    server.refusals = [401]
    async with (
        ScriptedHttp(server) as http,
        fresh(http.url, revision=LEGACY) as client,
        client.listen(tools=True) as events,
    ):
        with pytest.raises(HttpError, match="give the client a token"):
            await anext(events)


async def test_a_server_that_forgot_the_last_event_is_listened_to_from_the_beginning_and_everything_told(clock):
    server = Forgetful()
    asked = []

    async def respond(exchange):
        if exchange.method != "GET":
            await server(exchange)
            return
        asked.append(exchange.headers.get("last-event-id"))
        if asked[-1] is not None:
            await exchange.reply(400, b"no such event")
            return
        await exchange.stream()
        if len(asked) == 1:
            await exchange.event(TOOLS_CHANGED, id="e1", retry=1)
            await exchange.end()
        else:
            await exchange.left()

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=LEGACY) as client:
        async with client.listen(prompts=True, tools=True) as events:
            assert await anext(events) == ToolsChanged()
            await until(clock, lambda: len(asked) == 3)
            assert {await anext(events), await anext(events)} == {ToolsChanged(), PromptsChanged()}
    assert asked == [None, "e1", None]


async def test_who_listens_while_the_session_cannot_be_renewed_is_told_why(clock):
    server = Forgetful()
    async with (
        ScriptedHttp(server) as http,
        fresh(http.url, revision=LEGACY, resumptions=1, request_timeout=1e6) as client,
    ):
        async with client.listen(tools=True) as events:
            await server.opened.wait()
            server.refusal = 503
            server.forget()
            reading = asyncio.ensure_future(anext(events))
            await until(clock, reading.done)
            with pytest.raises(ConnectionLost, match="initialize: HTTP 503"):
                await reading
        server.refusal = None
        async with client.listen(tools=True) as events:
            assert (await client.call_tool("x")).value == "s2"


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18"])
async def test_a_batch_on_the_servers_own_stream_is_read_in_the_one_revision_that_has_batches(version):
    server = Forgetful(version=version)
    answers = asyncio.Queue()

    async def respond(exchange):
        if exchange.method == "POST" and exchange.message.get("id") == "a ping":
            answers.put_nowait(exchange.message)
        await server(exchange)

    question = {"jsonrpc": "2.0", "id": "a ping", "method": "ping"}
    async with (
        ScriptedHttp(respond) as http,
        fresh(http.url, revision=version) as client,
        client.listen(tools=True, prompts=True) as events,
    ):
        await server.opened.wait()
        nonsense = {"jsonrpc": "2.0", "method": 5}
        answer = {"jsonrpc": "2.0", "id": 7, "result": {}}
        await server.streams[-1].event([question, nonsense, answer, TOOLS_CHANGED])
        await server.streams[-1].event({**TOOLS_CHANGED, "method": "notifications/prompts/list_changed"})
        if version == "2025-03-26":
            assert await anext(events) == ToolsChanged()
            assert (await answers.get())["result"] == {}
        assert await anext(events) == PromptsChanged()
        assert answers.empty()


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18"])
async def test_a_batch_on_the_stream_of_a_call_is_read_in_the_one_revision_that_has_batches(version):
    server = Forgetful(version=version)

    async def respond(exchange):
        if exchange.asks != "tools/call":
            await server(exchange)
            return
        await exchange.stream()
        text = {"content": [{"type": "text", "text": "in a batch"}]}
        answer = {"jsonrpc": "2.0", "id": exchange.message["id"], "result": text}
        await exchange.event([{"jsonrpc": "2.0", "method": 5}, answer])
        await exchange.end()

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=version) as client:
        if version == "2025-03-26":
            assert (await client.call_tool("x")).text == "in a batch"
        else:
            with pytest.raises(ConnectionLost, match="the stream ended without an answer that can be read"):
                await client.call_tool("x")


# --- the HTTP+SSE pair


class Pair:
    """A server of the oldest revision, whose streams can be cut."""

    def __init__(self):
        self.streams = []
        self.opened = asyncio.Event()

    async def __call__(self, exchange):
        if exchange.method == "GET":
            await exchange.stream()
            self.streams.append(exchange)
            await exchange.event(b"/messages", event="endpoint")
            self.opened.set()
            await exchange.left()
        elif exchange.path == "/mcp":
            await exchange.reply(405)
        else:
            await exchange.reply(202)
            await self._answer(exchange.message)

    async def _answer(self, message):
        if message.get("method") == "initialize":
            result = {**INITIALIZED, "protocolVersion": "2024-11-05", "capabilities": CAPABILITIES}
        else:
            result = {"content": [{"type": "text", "text": f"stream {len(self.streams)}"}]}
        if "id" in message:
            await self.say({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def say(self, message):
        await self.streams[-1].event(message, event="message")

    def cut(self):
        self.opened.clear()
        self.streams[-1].cut()


async def test_a_listener_on_the_pair_hears_of_its_end_and_the_next_call_opens_another_one():
    pair = Pair()
    async with ScriptedHttp(pair) as http, fresh(http.url) as client:
        async with client.listen(tools=True) as events:
            await pair.say(TOOLS_CHANGED)
            assert await anext(events) == ToolsChanged()
            reading = asyncio.ensure_future(anext(events))
            pair.cut()
            with pytest.raises(ConnectionLost):
                await reading
        assert http.methods.count("GET") == 1  # nobody wants another one yet
        assert (await client.call_tool("x")).text == "stream 2"


async def test_where_it_is_asked_for_the_pair_is_opened_again_and_listened_to(clock):
    pair = Pair()
    async with ScriptedHttp(pair) as http, fresh(http.url, request_timeout=1e6, connect_timeout=1e6) as client:
        async with client.listen(tools=True, updates=["file:///a"], reconnect=True) as events:
            pair.cut()
            await until(clock, pair.opened.is_set)
            await until(clock, lambda: len(events._waiting) == 2)
            assert {await anext(events), await anext(events)} == {ToolsChanged(), ResourceUpdated("file:///a")}
            await pair.say(TOOLS_CHANGED)
            assert await anext(events) == ToolsChanged()
        assert http.methods.count("resources/subscribe") == 2


async def test_a_listener_that_leaves_a_pair_that_ended_opens_no_other_one_to_say_so():
    pair = Pair()
    async with ScriptedHttp(pair) as http, fresh(http.url) as client:
        async with client.listen(updates=["file:///a"]) as events:
            pair.cut()
            with pytest.raises(ConnectionLost):
                await anext(events)
        assert "resources/unsubscribe" not in http.methods
        assert http.methods.count("GET") == 1


async def test_two_that_listen_to_one_resource_keep_it_subscribed_through_a_renewal_until_both_have_left():
    server = Forgetful()
    async with ScriptedHttp(server) as http, fresh(http.url, revision=LEGACY) as client:
        async with client.listen(updates=["file:///a"]) as stays:
            async with client.listen(updates=["file:///a"]) as leaves:
                await server.opened.wait()
                server.forget()
                assert await anext(stays) == await anext(leaves) == ResourceUpdated("file:///a")
            assert "resources/unsubscribe" not in http.methods
        assert http.methods.count("resources/unsubscribe") == 1


async def test_an_explicit_refusal_of_a_message_is_the_calls_own_and_not_a_loss():
    server = Forgetful()

    async def respond(exchange):
        if exchange.asks == "tools/call":
            await exchange.error(-32602, "unknown tool", status=400)
        else:
            await server(exchange)

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=LEGACY) as client:
        with pytest.raises(RemoteError, match="unknown tool"):
            await client.call_tool("x")
        assert http.methods.count("initialize") == 1


@pytest.mark.parametrize("wire", ["body", "stream"])
async def test_a_batch_of_too_many_values_fails_its_call_by_the_name_of_the_limit(wire):
    server = Forgetful(version="2025-03-26")

    async def respond(exchange):
        if exchange.asks != "tools/call":
            await server(exchange)
            return
        answer = {"jsonrpc": "2.0", "id": exchange.message["id"], "result": {"content": [], "x": [0] * 2_000}}
        if wire == "body":
            await exchange.reply(200, [answer])
            return
        await exchange.stream()
        await exchange.event([answer])
        await exchange.end()

    async with (
        ScriptedHttp(respond) as http,
        fresh(http.url, revision="2025-03-26", response_values=1_000) as client,
    ):
        with pytest.raises(CallLimitExceeded, match="the batch with the answer.*response_values=1000") as caught:
            await client.call_tool("x")
    assert (caught.value.limit, caught.value.evidence) == ("response_values", Evidence.MAYBE_SENT)
