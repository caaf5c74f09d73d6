"""Answers that come as streams: events, notices on the way, resumption (transports of both eras)."""

import asyncio

import pytest

from mcprelay import CallFailed, CallLimitExceeded, ConnectionLost, Evidence, LogMessage, Progress, RemoteError
from tests.client.peer import INITIALIZED, LEGACY, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp


def answer(exchange, result=None):
    return {"jsonrpc": "2.0", "id": exchange.message["id"], "result": result or tool_result()}


async def test_notices_come_before_the_answer_and_in_order():
    async def respond(exchange):
        token = exchange.message["params"]["_meta"]["progressToken"]
        level = exchange.message["params"]["_meta"]["io.modelcontextprotocol/logLevel"]
        await exchange.stream()
        for n in range(3):
            params = {"progressToken": token, "progress": n, "total": 3, "message": f"step {n}"}
            await exchange.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        params = {"level": level, "data": {"a": None}, "logger": "db"}
        await exchange.event({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
        await exchange.event(answer(exchange))
        await exchange.end()

    heard = []
    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            result = await client.call_tool("x", on_progress=heard.append, on_log=heard.append, log_level="debug")
            assert result.value == "ok"
    assert heard == [
        Progress(0, 3, "step 0"),
        Progress(1, 3, "step 1"),
        Progress(2, 3, "step 2"),
        LogMessage("debug", {"a": None}, "db"),
    ]


async def test_without_a_listener_neither_progress_nor_logs_are_asked_for():
    async def respond(exchange):
        await exchange.result(tool_result())

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            await client.call_tool("x")
        meta = http.exchanges[0].message["params"]["_meta"]
        assert "progressToken" not in meta
        assert "io.modelcontextprotocol/logLevel" not in meta


async def test_a_slow_callback_is_finished_before_the_call_returns_and_calls_do_not_overlap():
    running = 0
    heard = []

    async def slow(progress):
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0)
        heard.append(progress.progress)
        running -= 1

    async def respond(exchange):
        token = exchange.message["params"]["_meta"]["progressToken"]
        await exchange.stream()
        for n in range(5):
            params = {"progressToken": token, "progress": n}
            await exchange.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        await exchange.event(answer(exchange))
        await exchange.end()

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            await client.call_tool("x", on_progress=slow)
    assert heard == [0, 1, 2, 3, 4]


async def test_a_callback_that_fails_disturbs_nothing(caplog):
    def broken(_):
        raise ZeroDivisionError

    async def respond(exchange):
        token = exchange.message["params"]["_meta"]["progressToken"]
        await exchange.stream()
        params = {"progressToken": token, "progress": 1}
        await exchange.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        await exchange.event(answer(exchange))
        await exchange.end()

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            assert (await client.call_tool("x", on_progress=broken)).value == "ok"
    assert "ZeroDivisionError" in caplog.text


async def test_notices_of_another_request_and_nonsense_on_the_stream_are_passed_over():
    async def respond(exchange):
        await exchange.stream()
        await exchange.chunk(b": keep-alive\n\n")
        await exchange.event(b"{nonsense")
        await exchange.event(
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7, "progress": 1}}
        )
        await exchange.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": "x"})
        await exchange.event({"jsonrpc": "2.0", "method": "notifications/unheard", "params": {}})
        await exchange.event({"jsonrpc": "2.0", "id": "other", "result": {}})
        await exchange.event({"jsonrpc": "2.0", "id": str(exchange.message["id"]), "result": {}})
        await exchange.event(b"x", event="other")
        await exchange.event(answer(exchange))
        await exchange.end()

    heard = []
    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            assert (await client.call_tool("x", on_progress=heard.append)).value == "ok"
    assert heard == []


async def test_the_connection_of_a_stream_whose_end_comes_late_is_used_again():
    async def respond(exchange):
        await exchange.stream()
        await exchange.event(answer(exchange))
        await asyncio.sleep(0)
        await exchange.end()

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            for _ in range(3):
                await client.call_tool("x")
                draining = client._connection.current.courier.sender._draining
                while draining:
                    await asyncio.wait(draining)
        assert http.connections == 1


async def test_an_error_comes_over_a_stream_too():
    async def respond(exchange):
        await exchange.stream()
        await exchange.event({"jsonrpc": "2.0", "id": exchange.message["id"], "error": {"code": 5, "message": "no"}})
        await exchange.end()

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url, revision="2026-07-28") as client:
            await client.connect()
            with pytest.raises(RemoteError) as caught:
                await client.request("x/y")
            assert caught.value.code == 5


@pytest.mark.parametrize("how", ["end", "cut"])
async def test_a_stream_that_ends_without_an_answer_is_a_lost_connection(how):
    async def respond(exchange):
        if len(http.exchanges) > 1:
            await exchange.result(tool_result())
            return
        await exchange.stream()
        await exchange.event({"jsonrpc": "2.0", "method": "notifications/unheard"}, id="e1")
        if how == "end":
            await exchange.end()
        else:
            exchange.cut()

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            with pytest.raises(ConnectionLost) as caught:
                await client.call_tool("x")
            assert caught.value.evidence is Evidence.MAYBE_SENT
            assert (await client.call_tool("x")).value == "ok"
        assert "GET" not in http.methods  # this era resumes nothing


async def test_an_event_that_is_too_large_is_told_with_the_name_of_the_limit():
    async def respond(exchange):
        await exchange.stream()
        await exchange.event(answer(exchange, tool_result("x" * 2000)))
        await exchange.end()

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url, response_bytes=1000) as client:
            with pytest.raises(CallLimitExceeded, match="response_bytes=1000") as caught:
                await client.call_tool("x")
            assert caught.value.evidence is Evidence.MAYBE_SENT  # what was too large is not known to be the answer


async def test_a_notice_that_is_too_large_says_nothing_of_the_work():
    async def respond(exchange):
        await exchange.stream()
        params = {"level": "info", "data": "x" * 2000}
        await exchange.event({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
        await exchange.left()

    async with ScriptedHttp(respond) as http, fresh(http.url, response_bytes=1000) as client:
        with pytest.raises(CallLimitExceeded, match="the answer, or a message before it, is over the limit") as caught:
            await client.call_tool("x")
        assert caught.value.evidence is Evidence.MAYBE_SENT
        assert "repeat it only if that does no harm" in str(caught.value)


# --- resumption, in the handshake era


def polled(script):
    """A server that shakes hands, and then does what `script` says with calls and with streams that are resumed."""

    async def respond(exchange):
        if exchange.method == "DELETE":
            await exchange.reply(204)
        elif exchange.asks == "initialize":
            await exchange.result(INITIALIZED, headers={"mcp-session-id": "s1"})
        elif exchange.method == "POST" and exchange.asks.startswith("notifications/"):
            await exchange.reply(202)
        else:
            await script(exchange)

    return respond


@pytest.mark.clause("handshake.http.poll", "handshake.http.resume", "handshake.http.retry")
async def test_a_stream_that_the_server_ends_is_resumed_after_the_time_it_names():
    posted = None
    times = []

    async def script(exchange):
        nonlocal posted
        times.append(asyncio.get_running_loop().time())
        await exchange.stream()
        if exchange.method == "POST":
            posted = exchange
            await exchange.event(id="e1", retry=30)
            await exchange.end()
        elif exchange.headers["last-event-id"] == "e1":
            await exchange.event({"jsonrpc": "2.0", "method": "notifications/unheard"}, id="e2")
            exchange.cut()
        else:
            await exchange.event(answer(posted, {"content": []}), id="e3")
            await exchange.end()

    async with ScriptedHttp(polled(script)) as http:
        async with fresh(http.url, revision=LEGACY) as client:
            assert (await client.call_tool("x")).content == ()
        gets = [e for e in http.exchanges if e.method == "GET"]
        assert [e.headers["last-event-id"] for e in gets] == ["e1", "e2"]
        assert all(e.headers["mcp-session-id"] == "s1" for e in gets)
        assert all(e.headers["accept"] == "text/event-stream" for e in gets)
        assert times[1] - times[0] >= 0.03
        assert http.methods.count("tools/call") == 1


async def test_a_stream_without_event_ids_cannot_be_resumed():
    async def script(exchange):
        await exchange.stream()
        await exchange.event({"jsonrpc": "2.0", "method": "notifications/unheard"})
        await exchange.end()

    async with ScriptedHttp(polled(script)) as http:
        async with fresh(http.url, revision=LEGACY) as client:
            with pytest.raises(ConnectionLost) as caught:
                await client.call_tool("x")
            assert caught.value.evidence is Evidence.MAYBE_SENT
        assert "GET" not in http.methods


async def test_resuming_ends_when_nothing_new_comes():
    async def script(exchange):
        await exchange.stream()
        if exchange.method == "POST":
            await exchange.event(id="e1", retry=1)
        await exchange.end()

    async with ScriptedHttp(polled(script)) as http:
        async with fresh(http.url, revision=LEGACY, resumptions=3) as client:
            with pytest.raises(ConnectionLost, match="resumptions=3") as caught:
                await client.call_tool("x")
            assert caught.value.evidence is Evidence.MAYBE_SENT
        assert http.methods.count("GET") == 3


async def test_a_server_that_refuses_to_resume_has_lost_the_answer():
    async def script(exchange):
        if exchange.method == "GET":
            await exchange.reply(405)
            return
        await exchange.stream()
        await exchange.event(id="e1", retry=1)
        await exchange.end()

    async with ScriptedHttp(polled(script)) as http:
        async with fresh(http.url, revision=LEGACY) as client:
            with pytest.raises(ConnectionLost, match="405") as caught:
                await client.call_tool("x")
            assert caught.value.evidence is Evidence.MAYBE_SENT


async def test_an_error_that_a_resumed_stream_brings_is_the_answer():
    posted = None

    async def script(exchange):
        nonlocal posted
        await exchange.stream()
        if exchange.method == "POST":
            posted = exchange
            await exchange.event(id="e1", retry=1)
        else:
            error = {"code": -32000, "message": "the tool is out of order"}
            await exchange.event({"jsonrpc": "2.0", "id": posted.message["id"], "error": error}, id="e2")
        await exchange.end()

    async with ScriptedHttp(polled(script)) as http, fresh(http.url, revision=LEGACY) as client:
        with pytest.raises(RemoteError, match="the tool is out of order") as caught:
            await client.call_tool("x")
        assert caught.value.evidence is Evidence.ANSWERED


@pytest.mark.parametrize("trouble", [429, 502, 503, "cut"])
async def test_a_resumption_that_fails_for_the_moment_is_tried_again(trouble):
    posted = None

    async def script(exchange):
        nonlocal posted
        if exchange.method == "POST":
            posted = exchange
            await exchange.stream()
            await exchange.event(id="e1", retry=1)
            await exchange.end()
        elif http.methods.count("GET") > 2:
            await exchange.stream()
            await exchange.event(answer(posted, {"content": []}), id="e2")
            await exchange.end()
        elif trouble == "cut":
            exchange.cut()
        else:
            await exchange.reply(trouble)

    async with ScriptedHttp(polled(script)) as http:
        async with fresh(http.url, revision=LEGACY) as client:
            assert (await client.call_tool("x")).content == ()
        assert [e.headers["last-event-id"] for e in http.exchanges if e.method == "GET"] == ["e1"] * 3
        assert http.methods.count("tools/call") == 1


async def test_resumptions_that_bring_nothing_are_tried_after_ever_longer_waits(monkeypatch):
    waits = []

    async def slept(seconds):
        waits.append(round(seconds * 1000))

    async def script(exchange):
        await exchange.stream()
        if exchange.method == "POST":
            await exchange.event(id="e1", retry=20)
        await exchange.end()

    async with ScriptedHttp(polled(script)) as http, fresh(http.url, revision=LEGACY, resumptions=7) as client:
        monkeypatch.setattr("mcprelay.client.stream.asyncio.sleep", slept)
        with pytest.raises(ConnectionLost, match="resumptions=7"):
            await client.call_tool("x")
        monkeypatch.undo()
    assert waits == [20, 100, 200, 400, 800, 1000, 1000]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("result", "why"), [(b"[" * 101 + b"]" * 101, "depth=100"), (b'"\\ud800"', "not JSON")])
async def test_an_answer_that_cannot_be_read_is_told_with_the_reason(streamed, result, why):
    async def respond(exchange):
        data = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (exchange.message["id"], result)
        if streamed:
            await exchange.stream()
            await exchange.event(data)
            await exchange.end()
        else:
            await exchange.reply(200, data, headers={"content-type": "application/json"})

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        with pytest.raises(CallFailed, match=why):
            await client.call_tool("x")
