"""What may have been carried out is never sent again by itself, whatever the client wants to know of the server."""

import asyncio

import pytest

from mcprelay import ConnectFailed, DeadlineExceeded, Evidence, HttpError, RemoteError, Retry
from mcprelay.revisions import Era
from tests.client.peer import DISCOVERED, INITIALIZED, LEGACY, MODERN, fresh, known, tool_result
from tests.client.scripted_http import ScriptedHttp

OLD = {"content": [{"type": "text", "text": "old"}]}


def older(fails, *, times=1):
    """A server of the handshake era without sessions, whose first calls end with `fails`."""
    ran = 0

    async def respond(exchange):
        nonlocal ran
        if exchange.method != "POST":
            await exchange.reply(405)
        elif exchange.asks == "initialize":
            await exchange.result(INITIALIZED)
        elif exchange.asks == "server/discover":
            await exchange.error(-32601)
        elif exchange.asks.startswith("notifications/"):
            await exchange.reply(202)
        elif ran < times:
            ran += 1
            await fails(exchange)
        else:
            await exchange.result(OLD if exchange.asks == "tools/call" else {"tools": []})

    return respond


@pytest.mark.parametrize("code", [-32000, -32001, -32020, -32042, -32099, -32600, -32602, -32603, -32700, 42])
async def test_an_error_that_came_with_success_is_the_calls_answer_and_the_next_call_knows_the_server(code):
    async with ScriptedHttp(older(lambda e: e.error(code, "the gateway timed out"))) as http, fresh(http.url) as client:
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("charge")
        assert (caught.value.code, caught.value.message) == (code, "the gateway timed out")
        assert caught.value.evidence is Evidence.ANSWERED
        assert http.methods.count("tools/call") == 1
        assert client.server.revision == LEGACY
        assert (await client.call_tool("charge")).value == "old"
        assert http.methods.count("initialize") == 1


async def test_an_own_code_of_an_older_server_is_not_taken_for_a_refused_revision():
    async with ScriptedHttp(older(lambda e: e.error(-32022, "no such account"))) as http, fresh(http.url) as client:
        with pytest.raises(RemoteError, match="no such account"):
            await client.call_tool("charge")
        assert http.methods.count("tools/call") == 1


@pytest.mark.parametrize("status", [409, 410, 422, 501])
@pytest.mark.parametrize("body", [b"booked already", {"jsonrpc": "2.0", "error": {"code": -32000, "message": "no"}}])
async def test_a_status_that_may_come_after_the_work_is_the_calls_answer(status, body):
    async def fails(exchange):
        await exchange.reply(status, {**body, "id": exchange.message["id"]} if isinstance(body, dict) else body)

    async with ScriptedHttp(older(fails)) as http, fresh(http.url) as client:
        with pytest.raises((HttpError, RemoteError)) as caught:
            await client.call_tool("charge")
        assert caught.value.status == status
        assert caught.value.evidence is Evidence.ANSWERED
        assert http.methods.count("tools/call") == 1
        assert (await client.call_tool("charge")).value == "old"


async def test_what_only_reads_is_read_again_in_the_way_that_the_server_speaks():
    async with ScriptedHttp(older(lambda e: e.error(-32000, "not initialized"))) as http, fresh(http.url) as client:
        assert list(await client.list_tools()) == []
        assert http.methods.count("tools/list") == 2


async def test_a_handshake_that_fails_beside_an_answer_changes_nothing_of_it():
    async def respond(exchange):
        if exchange.asks == "initialize":
            exchange.cut()
        else:
            await exchange.error(-32000, "the gateway timed out")

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        with pytest.raises(RemoteError, match="the gateway timed out"):
            await client.call_tool("charge")
        assert http.methods == ["tools/call", "server/discover", "initialize"]


@pytest.mark.parametrize("supported", [["1999-01-01"], ["1999-01-01", MODERN]])
async def test_a_discovery_beside_an_answer_changes_nothing_of_it(supported):
    async def respond(exchange):
        if exchange.asks == "server/discover":
            await exchange.result({**DISCOVERED, "supportedVersions": supported})
        else:
            await exchange.error(-32000, "the gateway timed out")

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        with pytest.raises(RemoteError, match="the gateway timed out"):
            await client.call_tool("charge")
        assert http.methods == ["tools/call", "server/discover"]


@pytest.mark.parametrize("status", [400, 404, 409, 422])
async def test_a_server_that_is_still_the_one_that_it_was_is_not_called_again(status):
    async def respond(exchange):
        if exchange.asks == "server/discover":
            await exchange.result(DISCOVERED)
        elif http.methods.count("tools/call") == 2:
            await exchange.reply(status, b"booked already")
        else:
            await exchange.result(tool_result("ok"))

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        await client.call_tool("charge")
        with pytest.raises(HttpError) as caught:
            await client.call_tool("charge")
        assert caught.value.status == status
        assert http.methods.count("tools/call") == 2
        assert client.server.revision == MODERN
        await client.call_tool("charge")
        assert http.methods.count("server/discover") <= 1
        assert "initialize" not in http.methods


async def test_an_error_under_no_id_is_no_reason_to_call_a_server_again_that_is_still_the_one_that_it_was():
    async def respond(exchange):
        if exchange.asks == "server/discover":
            await exchange.result(DISCOVERED)
        elif http.methods.count("tools/call") == 2:
            error = {"code": -32000, "message": "booked already"}
            await exchange.reply(400, {"jsonrpc": "2.0", "id": None, "error": error})
        else:
            await exchange.result(tool_result("ok"))

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        await client.call_tool("charge")
        with pytest.raises(RemoteError, match="booked already"):
            await client.call_tool("charge")
        assert http.methods == ["tools/call", "tools/call", "server/discover"]


async def test_a_header_that_does_not_mirror_is_mended_only_as_the_specification_has_it():
    async def respond(exchange):
        if exchange.asks == "server/discover":
            await exchange.result(DISCOVERED)
        else:
            await exchange.error(-32020, "an own code of this server")

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        for _ in range(2):
            with pytest.raises(RemoteError):
                await client.call_tool("charge")
        assert http.methods == ["tools/call", "server/discover", "tools/call"]


@pytest.mark.parametrize("how", ["cut", "silent"])
async def test_a_list_that_cannot_be_refreshed_leaves_the_call_with_its_own_answer(how):
    async def respond(exchange):
        if exchange.asks == "tools/call":
            await exchange.error(-32020, "headers do not mirror", status=400)
        elif how == "cut":
            exchange.cut()
        else:
            await exchange.left()

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        with pytest.raises(RemoteError, match="headers do not mirror") as caught:
            await client.call_tool("charge", timeout=0.3 if how == "silent" else 30)
        assert caught.value.method == "tools/call"
        assert caught.value.evidence is Evidence.ANSWERED
        assert caught.value.__cause__.method == "tools/list"
        assert http.methods.count("tools/call") == 1


async def test_who_was_refused_and_then_finds_nobody_was_answered_and_may_be_repeated_where_that_is_allowed():
    async def respond(exchange):
        if exchange.asks == "initialize" and http.methods.count("initialize") < 3:
            exchange.cut()
        elif exchange.asks == "tools/call" and "_meta" in exchange.message["params"]:
            await exchange.reply(400)
        else:
            await older(None, times=0)(exchange)

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        with pytest.raises(ConnectFailed) as caught:
            await client.call_tool("charge")
        assert caught.value.evidence is Evidence.ANSWERED
        assert str(caught.value).endswith("carried nothing of it out, so it is safe to try again")
        assert (await client.call_tool("charge", retry=Retry(attempts=2, backoff=0))).value == "old"


async def test_a_deadline_that_passes_after_a_refusal_says_that_there_was_one():
    async def respond(exchange):
        if exchange.asks == "initialize" and http.methods.count("initialize") > 1:
            await exchange.left()
        elif exchange.asks == "initialize":
            await exchange.result(INITIALIZED, headers={"mcp-session-id": "s1"})
        elif exchange.asks == "tools/call" and http.methods.count("tools/call") > 1:
            await exchange.reply(404)
        else:
            await older(None, times=0)(exchange)

    async with ScriptedHttp(respond) as http:
        known(client := fresh(http.url)).keep(Era.HANDSHAKE)
        async with client:
            await client.call_tool("warm")
            with pytest.raises(DeadlineExceeded) as caught:
                await client.call_tool("charge", timeout=0.3)
            assert caught.value.evidence is Evidence.ANSWERED
            assert "nothing was sent" not in str(caught.value)
            assert "safe to try again" in str(caught.value)


async def test_a_list_that_was_left_for_an_answer_that_came_beside_it_has_been_sent():
    async def respond(exchange):
        if exchange.asks == "tools/list":
            await exchange.left()
        elif exchange.asks == "server/discover":
            await exchange.error(-32601)
        elif exchange.asks == "initialize":
            await exchange.result(INITIALIZED)
        else:
            http._server.close()
            await exchange.reply(202, headers={"connection": "close"})
            exchange.cut()

    async with ScriptedHttp(respond) as http, fresh(http.url, probe_timeout=0.05) as client:
        with pytest.raises(ConnectFailed) as caught:
            async with asyncio.timeout(10):
                await client.list_tools()
        assert caught.value.evidence is Evidence.MAYBE_SENT
