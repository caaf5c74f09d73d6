"""What a server said and was discarded is counted, and told to whoever asks."""

import asyncio
import json

from mcprelay.client.discarded import Discarded
from tests.client.peer import DISCOVERED, connected, fresh, in_session, tool_result
from tests.client.scripted_http import ScriptedHttp
from tests.client.test_session import Pair

NOTHING = Discarded(unasked=0, unreadable=0)


async def answered(client, channel):
    """One call that goes well, after everything that the server said before."""
    calling = asyncio.ensure_future(client.call_tool("x"))
    channel.reply(await channel.expect("tools/call"), tool_result())
    await calling


async def test_answers_that_nobody_asked_for_and_what_cannot_be_read_are_counted():
    async with connected() as (client, channel):
        await answered(client, channel)
        assert client.discarded == NOTHING
        channel.say(b'{"jsonrpc":"2.0","id":"never","result":{}}')
        channel.say(b'{"jsonrpc":"2.0","id":12345,"error":{"code":1,"message":"x"}}')
        channel.say(b"a banner")
        await answered(client, channel)
        assert client.discarded == Discarded(unasked=2, unreadable=1)


async def test_progress_that_nobody_asked_for_is_counted():
    async with in_session() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        request = await channel.expect("tools/call")
        for token in (request["id"], "never"):
            params = {"progressToken": token, "progress": 1}
            channel.say(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).encode())
        channel.reply(request, tool_result())
        await calling
        assert client.discarded == Discarded(unasked=2, unreadable=0)


async def test_questions_that_are_too_many_at_once_were_read():
    forever = asyncio.Event()
    async with in_session(on_roots=forever.wait, concurrent_requests=1) as (client, channel):
        for number in range(3):
            channel.call(f"q{number}", "roots/list", {})
        refused = [await channel.expect() for _ in range(2)]
        assert all("concurrent_requests=1" in answer["error"]["message"] for answer in refused)
        assert client.discarded == NOTHING


async def test_an_answer_that_comes_late_is_counted():
    async with in_session() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("slow"))
        request = await channel.expect("tools/call")
        calling.cancel()
        await asyncio.wait([calling])
        await channel.expect("notifications/cancelled")
        channel.reply(request, tool_result())
        await answered(client, channel)
        assert client.discarded.unasked == 1


async def test_over_http_they_are_counted_too():
    async def respond(exchange):
        if exchange.asks != "tools/call":
            await exchange.result(DISCOVERED)
            return
        await exchange.stream()
        await exchange.event({"jsonrpc": "2.0", "id": "never", "result": {}})
        await exchange.event({"jsonrpc": "2.0", "id": exchange.message["id"], "result": tool_result()})
        await exchange.end()

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        assert client.discarded == NOTHING
        await client.call_tool("x")
        assert client.discarded == Discarded(unasked=1, unreadable=0)


async def test_over_the_pair_they_are_counted_too():
    pair = Pair()
    async with ScriptedHttp(pair) as http, fresh(http.url) as client:
        await client.call_tool("x")
        await pair.say({"jsonrpc": "2.0", "id": "never", "result": {}})
        await client.call_tool("x")
        assert client.discarded.unasked == 1


def test_a_client_that_is_not_open_has_discarded_nothing():
    assert fresh(["server"]).discarded == NOTHING
