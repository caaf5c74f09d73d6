"""Which era a server behind HTTP is of (Streamable HTTP, "Backward Compatibility"; cases T46, T50, T51)."""

import asyncio

import pytest

from mcprelay import Evidence, HttpError, RemoteError, ResponseInvalid, RevisionUnsupported
from mcprelay.client.memory import Memory
from tests.client.peer import DISCOVERED, INITIALIZED, LEGACY, MODERN, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp


def legacy(first, *, session="s1", **answers):
    """A server of the handshake era: `first` answers what carries the newest metadata."""

    async def respond(exchange):
        if exchange.method == "DELETE":
            await exchange.reply(204)
        elif exchange.method == "GET":
            await exchange.reply(405)
        elif exchange.asks == "initialize":
            fields = {"mcp-session-id": session} if session else None
            await exchange.result({**INITIALIZED, **answers}, headers=fields)
        elif exchange.asks.startswith("notifications/"):
            await exchange.reply(202)
        elif "_meta" in exchange.message["params"]:
            await first(exchange)
        else:
            await exchange.result({"content": [{"type": "text", "text": "old"}]})

    return respond


async def test_a_fresh_client_puts_exactly_one_request_on_the_wire():
    async def respond(exchange):
        await exchange.result(tool_result(3))

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            assert http.connections == 0
            assert (await client.call_tool("add", {"a": 1, "b": 2})).value == 3
            assert client.server.revision == MODERN
        assert http.methods == ["tools/call"]
        headers = http.exchanges[0].headers
        assert headers["mcp-protocol-version"] == MODERN
        assert headers["mcp-method"] == "tools/call"
        assert headers["mcp-name"] == "add"
        assert headers["accept"] == "application/json, text/event-stream"
        assert headers["content-type"] == "application/json"
        assert "mcp-session-id" not in headers
        assert "cookie" not in headers


REFUSALS = {
    "400 with text": lambda e: e.reply(400, b"Bad Request: no session"),
    "400 empty": lambda e: e.reply(400),
    "400 -32600": lambda e: e.error(-32600, "no session", status=400),
    "400 -32601": lambda e: e.error(-32601, status=400),
    "404": lambda e: e.reply(404, b"Not Found"),
    "405": lambda e: e.reply(405),
    "406": lambda e: e.reply(406),
    "200 -32601": lambda e: e.error(-32601),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
async def test_what_is_no_error_of_the_newest_era_means_a_handshake_and_the_call_goes_through(refusal):
    async with ScriptedHttp(legacy(refusal)) as http:
        async with fresh(http.url) as client:
            assert (await client.call_tool("echo", {})).value == "old"
            assert client.server.revision == LEGACY
            assert client.server.info.name == "scripted"
            assert (await client.call_tool("echo", {})).value == "old"
        assert http.methods.count("initialize") == 1
        greeting = next(e for e in http.exchanges if e.asks == "initialize")
        assert "mcp-session-id" not in greeting.headers
        last = [e for e in http.exchanges if e.asks == "tools/call"][-1]
        assert last.headers["mcp-session-id"] == "s1"
        assert last.headers["mcp-protocol-version"] == LEGACY
        assert "mcp-method" not in last.headers
        assert http.exchanges[-1].method == "DELETE"
        assert http.exchanges[-1].headers["mcp-session-id"] == "s1"


@pytest.mark.parametrize("status", [401, 403, 408, 413, 429, 500, 502, 503])
async def test_other_statuses_have_nothing_to_do_with_the_era(status):
    async def respond(exchange):
        await exchange.reply(status, {"detail": "db down"})

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            with pytest.raises(HttpError) as caught:
                await client.call_tool("echo")
        assert http.methods == ["tools/call"]
        assert caught.value.status == status
        assert "db down" in caught.value.body
        assert caught.value.evidence is Evidence.ANSWERED


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
async def test_an_error_of_the_newest_era_is_no_reason_to_shake_hands(code):
    async def respond(exchange):
        await exchange.error(code, "modern", {"supported": [MODERN]}, status=400)

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            with pytest.raises((RemoteError, RevisionUnsupported)):
                await client.read_resource("config://x")
        assert "initialize" not in http.methods


async def test_a_method_that_a_server_of_the_newest_era_lacks_is_its_error():
    async def respond(exchange):
        await exchange.error(-32601, status=404)

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            with pytest.raises(RemoteError) as caught:
                await client.complete("review", "language")
            assert caught.value.code == -32601
            assert client.server.revision == MODERN
        assert http.methods == ["completion/complete"]


async def test_an_error_that_either_era_may_give_is_settled_by_asking():
    async def respond(exchange):
        if exchange.asks == "server/discover":
            await exchange.result(DISCOVERED)
        else:
            await exchange.error(-32602, "unknown tool")

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            for _ in range(2):
                with pytest.raises(RemoteError, match="unknown tool"):
                    await client.call_tool("nope")
        assert http.methods == ["tools/call", "server/discover", "tools/call"]


async def test_a_call_that_an_older_server_may_have_carried_out_is_not_repeated():
    async with ScriptedHttp(legacy(lambda e: e.error(-32603, "the tool crashed"))) as http:
        async with fresh(http.url) as client:
            with pytest.raises(RemoteError, match="the tool crashed"):
                await client.call_tool("charge")
            assert client.server.revision == LEGACY
        assert http.methods.count("tools/call") == 1


async def test_the_named_revision_is_spoken_after_one_repetition():
    async def respond(exchange):
        if len(http.exchanges) == 1:
            await exchange.error(-32022, "no", {"supported": [MODERN], "requested": MODERN}, status=400)
        else:
            await exchange.result(tool_result())

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            assert (await client.call_tool("echo")).value == "ok"
        assert http.methods == ["tools/call", "tools/call"]
        assert http.exchanges[0].message["id"] != http.exchanges[1].message["id"]


@pytest.mark.parametrize("supported", [["1999-01-01"], []])
async def test_no_revision_in_common_is_said_and_nothing_is_tried_blindly(supported):
    async def respond(exchange):
        await exchange.error(-32022, "no", {"supported": supported}, status=400)

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            with pytest.raises(RevisionUnsupported) as caught:
                await client.call_tool("echo")
        assert caught.value.supported == tuple(supported)
        assert http.methods == ["tools/call"]


async def test_a_server_that_supports_only_an_older_revision_is_greeted_in_it():
    async def first(exchange):
        await exchange.error(-32022, "no", {"supported": ["2025-06-18"]}, status=400)

    async with ScriptedHttp(legacy(first, protocolVersion="2025-06-18")) as http:
        async with fresh(http.url) as client:
            await client.call_tool("echo")
            assert client.server.revision == "2025-06-18"
        greeting = next(e for e in http.exchanges if e.asks == "initialize")
        assert greeting.message["params"]["protocolVersion"] == "2025-06-18"


async def test_when_nothing_speaks_mcp_the_first_refusal_is_what_counts():
    async def respond(exchange):
        await exchange.reply(404, b"nothing here")

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            with pytest.raises(HttpError) as caught:
                await client.call_tool("echo")
        assert caught.value.status == 404
        assert caught.value.method == "tools/call"
        assert http.methods == ["tools/call", "initialize", "GET"]


async def test_the_era_of_a_server_is_remembered_and_the_memory_given_up_when_it_is_wrong():
    memory = Memory()
    now_modern = False

    async def respond(exchange):
        if not now_modern:
            await legacy(REFUSALS["400 with text"])(exchange)
        elif exchange.asks == "initialize":
            await exchange.error(-32601, status=404)
        else:
            await exchange.result(tool_result("new"))

    async with ScriptedHttp(respond) as http:
        for _ in range(2):
            async with fresh(http.url, memory=memory) as client:
                await client.call_tool("echo")
        assert http.methods.count("tools/call") == 3  # the second client knew
        now_modern = True
        async with fresh(http.url, memory=memory) as client:
            assert (await client.call_tool("echo")).value == "new"
            assert client.server.revision == MODERN


async def test_concurrent_first_calls_shake_hands_once():
    async with ScriptedHttp(legacy(REFUSALS["400 with text"])) as http:
        async with fresh(http.url) as client:
            results = await asyncio.gather(*(client.call_tool("echo", {"n": n}) for n in range(10)))
            assert {result.value for result in results} == {"old"}
        assert http.methods.count("initialize") == 1


# --- sessions


def forgetful(*, forget, then=lambda e: e.result({"content": []})):
    """A server that forgets session number `forget` after its first call."""
    sessions = []
    used = set()

    async def respond(exchange):
        if exchange.method in ("DELETE", "GET"):
            await exchange.reply(405)
        elif exchange.asks == "initialize":
            sessions.append(f"s{len(sessions) + 1}")
            await exchange.result(INITIALIZED, headers={"mcp-session-id": sessions[-1]})
        elif exchange.asks.startswith("notifications/"):
            await exchange.reply(202)
        else:
            session = exchange.headers.get("mcp-session-id")
            if session in forget and session in used:
                await exchange.reply(404, b"session not found")
            else:
                used.add(session)
                await then(exchange)

    return respond


@pytest.mark.clause("handshake.http.session-renewed")
async def test_a_lost_session_is_renewed_once_and_the_call_repeated():
    async with ScriptedHttp(forgetful(forget={"s1"})) as http:
        async with fresh(http.url, revision=LEGACY) as client:
            await client.call_tool("one")
            await client.call_tool("two")
        calls = [(e.asks, e.headers.get("mcp-session-id")) for e in http.exchanges if e.method == "POST"]
        assert calls == [
            ("initialize", None),
            ("notifications/initialized", "s1"),
            ("tools/call", "s1"),
            ("tools/call", "s1"),
            ("initialize", None),
            ("notifications/initialized", "s2"),
            ("tools/call", "s2"),
        ]


async def test_a_second_loss_in_a_row_surfaces():
    async def lost(exchange):
        await exchange.reply(404, b"session not found")

    async with ScriptedHttp(forgetful(forget=set(), then=lost)) as http:
        async with fresh(http.url, revision=LEGACY) as client:
            with pytest.raises(HttpError) as caught:
                await client.call_tool("one")
        assert caught.value.status == 404
        assert http.methods.count("initialize") == 2
        assert http.methods.count("tools/call") == 2


async def test_concurrent_calls_share_one_renewal():
    async with ScriptedHttp(forgetful(forget={"s1"})) as http:
        async with fresh(http.url, revision=LEGACY) as client:
            await client.call_tool("one")
            await asyncio.gather(*(client.call_tool("n") for _ in range(10)))
        assert http.methods.count("initialize") == 2


async def test_a_server_without_sessions_gets_no_session_header():
    async with ScriptedHttp(legacy(REFUSALS["400 empty"], session=None)) as http:
        async with fresh(http.url) as client:
            await client.call_tool("echo")
        assert all("mcp-session-id" not in e.headers for e in http.exchanges)
        assert http.exchanges[-1].method == "POST"  # there is nothing to end


@pytest.mark.parametrize("session", ["two words", "bad\x7f", "ümlaut"])
async def test_a_session_id_that_is_none_is_not_taken(session):
    async with ScriptedHttp(legacy(REFUSALS["400 empty"], session=session)) as http:
        async with fresh(http.url) as client:
            await client.call_tool("echo")
        assert all("mcp-session-id" not in e.headers for e in http.exchanges)


@pytest.mark.clause("handshake.http.cancel-notification", "handshake.cancellation.own")
async def test_cancelling_in_the_handshake_era_is_a_notice_because_a_closed_stream_is_none():
    heard = asyncio.Event()

    async def hang(exchange):
        if exchange.asks == "tools/call":
            await exchange.left()
        else:
            await exchange.reply(202)

    async def respond(exchange):
        if exchange.asks == "notifications/cancelled":
            heard.set()
        await forgetful(forget=set(), then=hang)(exchange)

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url, revision=LEGACY) as client:
            calling = asyncio.ensure_future(client.call_tool("slow"))
            await http.came(of="tools/call")
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            await asyncio.wait_for(heard.wait(), 5)
        call = next(e for e in http.exchanges if e.asks == "tools/call")
        notice = next(e for e in http.exchanges if e.asks == "notifications/cancelled")
        assert notice.message["params"]["requestId"] == call.message["id"]


# --- answers that are none


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (200, {"content-type": "text/html"}, b"<html>hello</html>"),
        (200, {}, b"hello"),
        (202, {}, b""),
        (204, {}, b""),
        (200, {"content-type": "application/json"}, b"{nonsense"),
        (200, {"content-type": "application/json"}, b"[]"),
        (200, {"content-type": "application/json"}, b'{"jsonrpc":"2.0","id":"other","result":{}}'),
        (200, {"content-type": "application/json"}, b'{"jsonrpc":"2.0","method":"ping"}'),
    ],
)
async def test_what_is_no_answer_is_told_with_its_beginning_and_the_next_call_works(status, headers, body):
    async def respond(exchange):
        if len(http.exchanges) == 1:
            await exchange.reply(status, body, headers=headers)
        else:
            await exchange.result(tool_result())

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            with pytest.raises(ResponseInvalid) as caught:
                await client.call_tool("echo")
            assert caught.value.evidence is Evidence.ANSWERED
            assert caught.value.excerpt == body.decode()
            assert (await client.call_tool("echo")).value == "ok"


async def test_a_redirect_is_told_and_not_followed():
    async def respond(exchange):
        await exchange.reply(307, headers={"location": "https://elsewhere.example/mcp"})

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            with pytest.raises(HttpError, match="elsewhere.example"):
                await client.call_tool("echo")
        assert len(http.exchanges) == 1


NAMELESS = {"jsonrpc": "2.0", "error": {"code": -32000, "message": "Server not initialized"}}
REPLACED = {name: REFUSALS[name] for name in ("400 with text", "404", "405", "406")} | {
    "400 under no id": lambda e: e.reply(400, {**NAMELESS, "id": None}),
    "400 under its own id": lambda e: e.reply(400, {**NAMELESS, "id": "server-error"}),
}


@pytest.mark.parametrize("refusal", REPLACED.values(), ids=REPLACED.keys())
async def test_a_server_that_is_another_one_by_now_is_met_anew(refusal):
    old = False

    async def respond(exchange):
        if old:
            await legacy(refusal)(exchange)
        else:
            await exchange.result(tool_result("new"))

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        assert (await client.call_tool("x")).value == "new"
        old = True
        assert (await client.call_tool("x")).value == "old"
        assert client.server.revision == LEGACY


async def test_a_server_that_is_away_for_a_moment_is_still_the_one_that_it_was():
    away = False

    async def respond(exchange):
        if away:
            await exchange.reply(404, b"no route")
        else:
            await exchange.result(tool_result())

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        await client.call_tool("x")
        away = True
        with pytest.raises(HttpError) as caught:
            await client.call_tool("x")
        assert (caught.value.status, caught.value.kind) == (404, "http")
        away = False
        assert (await client.call_tool("x")).value == "ok"
        assert client.server.revision == MODERN


async def test_an_older_server_that_answers_without_a_session_is_not_taken_for_a_newer_one():
    async def respond(exchange):
        if exchange.asks == "initialize":
            await exchange.result(INITIALIZED)
        elif exchange.asks == "tools/call":
            await exchange.result({"content": [{"type": "text", "text": "ok"}]})
        elif exchange.asks.startswith("notifications/"):
            await exchange.reply(202)
        else:
            await exchange.error(-32601)

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        assert (await client.call_tool("x")).value == "ok"
        assert client.server.revision is None
        await client.discover()
        assert client.server.revision == LEGACY


@pytest.mark.clause("handshake.http.answer-types-both", "handshake.http.answers-posted")
async def test_what_the_server_asks_on_a_calls_stream_is_answered_by_a_request_of_its_own():
    answered = asyncio.Event()
    answers = []

    async def respond(exchange):
        if exchange.method != "POST":
            await exchange.reply(405)
        elif exchange.asks == "initialize":
            await exchange.result(INITIALIZED, headers={"mcp-session-id": "s"})
        elif exchange.asks == "tools/call":
            await exchange.stream()
            params = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"n": {"type": "string"}}}}
            await exchange.event({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
            await answered.wait()
            await exchange.event({"jsonrpc": "2.0", "id": exchange.message["id"], "result": {"content": []}})
            await exchange.end()
        else:
            if exchange.asks is None:
                answers.append((exchange.message, exchange.headers["mcp-session-id"]))
                answered.set()
            await exchange.reply(202)

    async with (
        ScriptedHttp(respond) as http,
        fresh(http.url, revision=LEGACY, on_elicit=lambda q: {"n": "Ada"}) as client,
    ):
        await client.call_tool("x")
    result = {"action": "accept", "content": {"n": "Ada"}}
    assert answers == [({"jsonrpc": "2.0", "id": "q", "result": result}, "s")]


async def test_a_notification_is_sent_in_the_session():
    async with ScriptedHttp(legacy(REFUSALS["400 empty"])) as http, fresh(http.url) as client:
        await client.call_tool("x")
        await client.notify("notifications/roots/list_changed")
        assert http.exchanges[-1].message == {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
        assert http.exchanges[-1].headers["mcp-session-id"] == "s1"


async def test_an_answer_without_a_result_type_is_complete_but_says_nothing_of_the_server():
    """An older server that needs no session answers a request of the newest era as it is (schema, "Result")."""

    async def respond(exchange):
        content = {"content": [{"type": "text", "text": "ok"}], "structuredContent": {"resultType": "of the tool"}}
        await exchange.result(content)

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        assert (await client.call_tool("x")).text == "ok"
        assert client.server.revision is None
        assert (await client.call_tool("x")).text == "ok"
        assert http.methods == ["tools/call", "tools/call"]


async def test_an_answer_with_a_result_type_settles_what_the_server_speaks():
    async def respond(exchange):
        await exchange.result({"resultType": "complete", "content": []})

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        await client.call_tool("x")
        assert client.server.revision == MODERN
