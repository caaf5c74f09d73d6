"""Rarer rungs of the ladder between the eras over HTTP."""

import asyncio

import pytest

from mcprelay import CallFailed, HttpError, RemoteError, RevisionUnsupported
from mcprelay.revisions import Era
from tests.client.peer import INITIALIZED, LEGACY, MODERN, fresh, known, tool_result
from tests.client.scripted_http import ScriptedHttp
from tests.client.test_courier import Credentials


async def session(exchange, *, result=None, **initialized):
    """What any server of the handshake era says."""
    if exchange.method != "POST":
        await exchange.reply(405)
    elif exchange.asks == "initialize":
        await exchange.result({**INITIALIZED, **initialized}, headers={"mcp-session-id": "s"})
    elif exchange.asks is None or exchange.asks.startswith("notifications/"):
        await exchange.reply(202)
    else:
        await exchange.result(result or {"content": [{"type": "text", "text": "old"}]})


def is_modern(exchange):
    return exchange.method == "POST" and "_meta" in exchange.message.get("params", {})


async def test_a_greeting_that_is_refused_with_a_list_is_said_again_in_what_is_on_it():
    async def respond(exchange):
        if is_modern(exchange):
            await exchange.reply(400)
        elif (
            exchange.method == "POST"
            and exchange.asks == "initialize"
            and exchange.message["params"]["protocolVersion"] == LEGACY
        ):
            await exchange.error(-32022, "no", {"supported": ["2025-03-26"]}, status=400)
        else:
            await session(exchange, protocolVersion="2025-03-26")

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        assert (await client.call_tool("x")).value == "old"
        assert client.server.revision == "2025-03-26"
        assert "mcp-protocol-version" not in http.exchanges[-1].headers  # that revision has no such header


async def test_a_server_that_is_newer_than_remembered_names_its_revision_when_it_is_greeted():
    async def respond(exchange):
        if exchange.asks == "initialize":
            await exchange.error(-32022, "no", {"supported": [MODERN]}, status=400)
        else:
            await exchange.result(tool_result("new"))

    async with ScriptedHttp(respond) as http:
        known(client := fresh(http.url)).keep(Era.HANDSHAKE)
        async with client:
            assert (await client.call_tool("x")).value == "new"
        assert http.methods == ["initialize", "tools/call"]
        assert known(client).recall() is Era.STATELESS


async def test_a_greeting_that_names_nothing_of_ours_ends_it():
    async def respond(exchange):
        if is_modern(exchange):
            await exchange.reply(400)
        else:
            await exchange.error(-32022, "no", {"supported": ["1999-01-01"]}, status=400)

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        with pytest.raises(RevisionUnsupported):
            await client.call_tool("x")


async def test_calls_that_learn_late_that_the_server_is_older_use_the_session_that_there_is():
    gate = asyncio.Event()

    async def respond(exchange):
        if is_modern(exchange):
            if exchange.message["params"]["name"] == "late":
                await gate.wait()
            await exchange.reply(400)
        else:
            await session(exchange)

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        late = asyncio.ensure_future(client.call_tool("late"))
        assert (await client.call_tool("early")).value == "old"
        gate.set()
        assert (await late).value == "old"
        assert http.methods.count("initialize") == 1


async def test_consent_may_take_longer_than_a_handshake(clock):
    class Slow(Credentials):
        async def challenged(self, request, status, headers, *, attempt):
            await clock.advance(3600)
            return await super().challenged(request, status, headers, attempt=attempt)

    async def respond(exchange):
        if exchange.headers.get("authorization") != "Bearer new":
            await exchange.reply(401, headers={"www-authenticate": "Bearer"})
        else:
            await session(exchange)

    async with ScriptedHttp(respond) as http:
        auth = Slow(tokens=["old", "new"])
        options = {"revision": LEGACY, "auth": auth, "connect_timeout": 10, "request_timeout": 30}
        async with fresh(http.url, **options) as client:
            assert (await client.call_tool("x")).value == "old"


async def test_a_401_to_the_greeting_is_what_is_told():
    async def respond(exchange):
        if is_modern(exchange):
            await exchange.reply(400)
        else:
            await exchange.reply(401, headers={"www-authenticate": "Bearer"})

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        with pytest.raises(HttpError) as caught:
            await client.call_tool("x")
        assert caught.value.status == 401


async def test_a_greeting_that_is_never_answered_fails_the_call_as_one_that_was_refused():
    async def respond(exchange):
        if is_modern(exchange):
            await exchange.reply(400)
        else:
            await exchange.left()

    async with ScriptedHttp(respond) as http, fresh(http.url, connect_timeout=0.05) as client:
        with pytest.raises(CallFailed) as caught:
            await client.call_tool("x")
        assert caught.value.evidence.value == "answered"
        assert "carried nothing of it out, so it is safe to try again" in str(caught.value)
        with pytest.raises(TimeoutError) as caught:
            await client.call_tool("x", timeout=0.02)
        assert caught.value.evidence.value in ("maybe sent", "answered")


async def test_closing_while_hands_are_shaken_is_told():
    greeted = asyncio.Event()

    async def respond(exchange):
        if is_modern(exchange):
            await exchange.reply(400)
        else:
            greeted.set()
            await exchange.left()

    async with ScriptedHttp(respond) as http:
        client = await fresh(http.url).connect()
        calling = asyncio.ensure_future(client.call_tool("x"))
        await greeted.wait()
        await client.aclose()
        with pytest.raises(CallFailed):
            await calling


async def test_a_body_may_be_a_batch_in_the_one_revision_that_has_them():
    progress = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
    heard = []

    async def respond(exchange):
        if exchange.method == "POST" and exchange.asks == "tools/call":
            answer = {"jsonrpc": "2.0", "id": exchange.message["id"], "result": {"content": []}}
            await exchange.reply(200, [progress, answer])
        else:
            await session(exchange, protocolVersion="2025-03-26")

    async with ScriptedHttp(respond) as http, fresh(http.url, revision="2025-03-26", on_log=heard.append) as client:
        assert (await client.call_tool("x")).content == ()
    assert [message.data for message in heard] == ["x"]


async def test_an_error_that_names_no_request_is_about_the_one_that_it_answers():
    async def respond(exchange):
        await exchange.reply(200, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "bad json"}})

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=MODERN) as client:
        with pytest.raises(RemoteError, match="bad json"):
            await client.call_tool("x")


async def test_a_log_level_is_asked_for_where_somebody_listens_and_the_server_logs():
    async def respond(exchange):
        await session(exchange, capabilities={"logging": {}}, result={})

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url, revision=LEGACY, on_log=lambda message: None, log_level="error") as client:
            await client.request("ping")
            async with asyncio.timeout(5):
                while "logging/setLevel" not in http.methods:  # noqa: ASYNC110 - it goes beside the call
                    await asyncio.sleep(0.001)
        request = next(e for e in http.exchanges if e.method == "POST" and e.asks == "logging/setLevel")
        assert request.message["params"] == {"level": "error"}


async def test_the_sessions_own_stream_survives_what_is_no_stream_and_what_breaks():
    opened = []
    heard = asyncio.Event()

    async def respond(exchange):
        if exchange.method != "GET":
            await session(exchange)
            return
        opened.append(exchange)
        if len(opened) == 1:
            await exchange.stream()
            await exchange.event({"jsonrpc": "2.0", "id": "stray", "result": {}}, retry=1)
            await exchange.event(b"{nonsense")
            exchange.cut()
        elif len(opened) == 2:
            await exchange.reply(200, {"not": "a stream"})
        else:
            await exchange.stream()
            await exchange.event(
                {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}
            )
            await exchange.left()

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=LEGACY, on_log=lambda _: heard.set()) as client:
        await client.call_tool("x")
        await asyncio.wait_for(heard.wait(), 5)
    assert len(opened) == 3
