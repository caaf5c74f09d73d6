"""What a user's functions make for a request: while they are at work nothing was sent, and what they raise is told."""

import asyncio

import pytest

from mcprelay import CallFailed, ConfigurationError, ConnectFailed, ConnectionLost, DeadlineExceeded, Evidence, Retry
from tests.client.peer import fresh, tool_result
from tests.client.scripted_http import ScriptedHttp
from tests.client.test_courier import Credentials


async def answering(exchange):
    await exchange.result(tool_result())


async def asking(exchange):
    await exchange.reply(401, headers={"www-authenticate": "Bearer"})


async def hanging():
    await asyncio.Event().wait()


def broken():
    raise ConnectionError("the token service is down")


async def failed_elsewhere():
    raise ConnectionLost("another call was lost", evidence=Evidence.MAYBE_SENT, method="tools/call")


@pytest.mark.parametrize("option", ["headers", "auth"])
async def test_a_function_that_hangs_ends_with_the_deadline_and_nothing_was_sent(option):
    async with ScriptedHttp(answering) as http, fresh(http.url, **{option: hanging}) as client:
        with pytest.raises(DeadlineExceeded, match="nothing was sent") as caught:
            await client.call_tool("charge", timeout=0.05)
        assert caught.value.evidence is Evidence.NOT_SENT
        assert http.exchanges == []


@pytest.mark.parametrize("option", ["headers", "auth"])
async def test_who_gives_up_while_a_function_hangs_has_sent_nothing(option):
    asked = asyncio.Event()

    async def function():
        asked.set()
        await hanging()

    async with ScriptedHttp(answering) as http, fresh(http.url, **{option: function}) as client:
        calling = asyncio.ensure_future(client.call_tool("charge"))
        await asked.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await calling
        assert caught.value.__notes__ == ["tools/call 'charge' was cancelled by its caller: not sent"]
        assert http.exchanges == []


@pytest.mark.parametrize(
    ("option", "function", "said"),
    [
        ("headers", broken, r"headers \(broken\) raised ConnectionError\('the token service is down'\)"),
        ("auth", broken, r"auth raised ConnectionError\('the token service is down'\)"),
        ("headers", failed_elsewhere, r"headers \(failed_elsewhere\) raised ConnectionLost"),
        ("auth", failed_elsewhere, "auth raised ConnectionLost"),
    ],
)
async def test_what_a_function_raises_fails_the_call_unsent_and_names_the_function(option, function, said):
    async with ScriptedHttp(answering) as http, fresh(http.url, **{option: function}) as client:
        with pytest.raises(ConnectFailed, match=said) as caught:
            await client.call_tool("charge")
        assert caught.value.evidence is Evidence.NOT_SENT
        assert caught.value.method == "tools/call"
        assert isinstance(caught.value.__cause__, (ConnectionError, ConnectionLost))
        assert http.exchanges == []


async def test_a_function_that_failed_for_the_moment_is_asked_again_where_that_is_allowed():
    asked = 0

    def once_broken():
        nonlocal asked
        asked += 1
        return broken() if asked == 1 else {"X-Tenant": "7"}

    async with ScriptedHttp(answering) as http, fresh(http.url, headers=once_broken) as client:
        await client.call_tool("charge", retry=Retry(attempts=2, backoff=0))
        assert [exchange.headers["x-tenant"] for exchange in http.exchanges] == ["7"]


async def test_what_is_asked_after_a_refused_token_does_not_undo_that_the_call_was_refused():
    class Broken(Credentials):
        async def challenged(self, request, status, headers, *, attempt):
            return broken()

    class Hanging(Credentials):
        async def challenged(self, request, status, headers, *, attempt):
            return await hanging()

    for auth, timeout in ((Broken(tokens=["t"]), 30), (Hanging(tokens=["t"]), 0.2)):
        async with ScriptedHttp(asking) as http, fresh(http.url, auth=auth) as client:
            with pytest.raises(CallFailed) as caught:
                await client.call_tool("charge", timeout=timeout)
            assert caught.value.evidence is Evidence.ANSWERED
            assert len(http.exchanges) == 1


async def test_a_server_that_is_gone_after_it_refused_a_token_had_seen_the_call():
    async def respond(exchange):
        http._server.close()
        await exchange.reply(401, headers={"www-authenticate": "Bearer", "connection": "close"})
        exchange.cut()

    auth = Credentials(tokens=["old", "new"])
    async with ScriptedHttp(respond) as http, fresh(http.url, auth=auth) as client:
        with pytest.raises(ConnectFailed, match="safe to try again") as caught:
            await client.call_tool("charge")
        assert caught.value.evidence is Evidence.ANSWERED


async def test_headers_leave_it_to_auth_to_say_who_the_client_is():
    headers = {"authorization": "Bearer b"}
    with pytest.raises(ConfigurationError, match="'Authorization' is what auth= sets: give one of them"):
        fresh("https://far.example/mcp", auth="a", headers=headers)
    async with ScriptedHttp(answering) as http:
        async with fresh(http.url, auth="a", headers=lambda: headers) as client:
            with pytest.raises(ConfigurationError, match="'Authorization' is what auth= sets: give one of them"):
                await client.call_tool("charge")
        assert http.exchanges == []
        async with fresh(http.url, headers=lambda: headers) as client:
            await client.call_tool("charge")
        assert http.exchanges[0].headers["authorization"] == "Bearer b"


async def test_an_auth_that_shows_nothing_leaves_the_header_to_the_user():
    async with ScriptedHttp(answering) as http:
        headers = {"Authorization": "Bearer b"}
        async with fresh(http.url, auth=Credentials(tokens=[None]), headers=headers) as client:
            await client.call_tool("charge")
        assert http.exchanges[0].headers["authorization"] == "Bearer b"
        async with fresh(http.url, auth=Credentials(tokens=["t"]), headers=headers) as client:
            with pytest.raises(ConfigurationError, match="give one of them"):
                await client.call_tool("charge")
        assert len(http.exchanges) == 1


async def test_what_a_query_holds_is_sent_and_not_shown():
    assert repr(fresh("https://far.example/mcp?api_key=s3cret")) == "Client('https://far.example/mcp')"
    async with ScriptedHttp(answering) as http, fresh(f"{http.url}?api_key=s3cret") as client:
        await client.call_tool("charge")
        assert http.exchanges[0].path == "/mcp?api_key=s3cret"
