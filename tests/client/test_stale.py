"""A kept connection that its server has closed meanwhile: what was not written was not sent (see `test_evidence`)."""

import pytest

from mcprelay import ConfigurationError, ConnectFailed, ConnectionLost, Evidence, Retry
from mcprelay.client.retry import asked_to_wait
from tests.client.peer import MODERN, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp


async def closing(exchange):
    """An answer, after which the connection is cut without a word."""
    await exchange.result(tool_result("ok"))
    exchange.cut()


def lingering(monkeypatch):
    """Connections that their server has closed are kept in the pool all the same, as when the news is on its way."""
    import aiohttp.connector

    monkeypatch.setattr(aiohttp.client_proto.ResponseHandler, "is_connected", lambda _: True)
    monkeypatch.setattr(aiohttp.client_proto.ResponseHandler, "should_close", False)


async def until_closed(client):
    """Wait until the pooled connection has seen its end."""
    import asyncio

    (kept,) = client._connection.ready().courier.sender._session.connector._conns.values()
    (protocol, _), *_ = kept
    while protocol.transport is not None and not protocol.transport.is_closing():  # noqa: ASYNC110 - aiohttp tells nobody
        await asyncio.sleep(0)


async def test_a_request_that_a_closed_connection_refuses_was_not_sent(monkeypatch):
    lingering(monkeypatch)
    async with ScriptedHttp(closing) as http, fresh(http.url, revision=MODERN) as client:
        await client.call_tool("x")
        await until_closed(client)
        with pytest.raises(ConnectFailed, match="closed the connection before the request was written") as caught:
            await client.call_tool("x")
        assert caught.value.evidence is Evidence.NOT_SENT
        assert len(http.exchanges) == 1


async def test_it_is_repeated_where_repeating_what_was_not_sent_is_allowed(monkeypatch):
    lingering(monkeypatch)
    async with ScriptedHttp(closing) as http, fresh(http.url, revision=MODERN) as client:
        await client.call_tool("x")
        await until_closed(client)
        retry = Retry(attempts=2, backoff=0)
        assert (await client.call_tool("x", retry=retry)).value == "ok"
        assert len(http.exchanges) == 2


async def test_a_header_that_would_send_a_request_in_two_parts_is_refused():
    with pytest.raises(ConfigurationError, match="'Expect' is the protocol's own"):
        await fresh("http://127.0.0.1:1/mcp", headers={"Expect": "100-continue"}).connect()


async def test_a_body_that_ends_early_is_told_without_a_status_that_nobody_sent():
    async def respond(exchange):
        await exchange.head(200, {"content-type": "application/json", "content-length": "100"})
        await exchange.raw(b"{")
        exchange.cut()

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=MODERN) as client:
        with pytest.raises(ConnectionLost, match="the body ended early") as caught:
            await client.call_tool("x")
    assert "400" not in str(caught.value)
    assert caught.value.evidence is Evidence.MAYBE_SENT


@pytest.mark.parametrize("text", ["", "soon", "-5", "1e9", "0.5", "\u0661", "inf", "Wed, 99 Oct 2099"])
def test_a_retry_after_that_names_no_time_is_none(text):
    assert asked_to_wait({"retry-after": text}) is None


async def test_a_retry_after_that_names_no_time_is_no_advice():
    from mcprelay import HttpError

    async def respond(exchange):
        await exchange.reply(503, headers={"retry-after": "soon"})

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=MODERN) as client:
        with pytest.raises(HttpError, match="the server is not ready: try again later"):
            await client.call_tool("x")


async def test_a_process_that_a_signal_ended_is_told_by_the_name_of_the_signal():
    from tests.client.test_last_words import dying

    script = dying("")
    script[-1] = script[-1].replace("exit 3", "kill -9 $$")
    async with fresh(script) as client:
        with pytest.raises(ConnectionLost, match="the server's process was ended by the signal SIGKILL") as caught:
            await client.call_tool("x")
        assert caught.value.exit_code == -9
