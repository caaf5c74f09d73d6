"""The HTTP+SSE pair of the oldest revision: reached down the ladder, and used like any other channel."""

import asyncio

import pytest

from mcprelay import CallFailed, Evidence, HttpError
from tests.client.peer import INITIALIZED, fresh
from tests.client.scripted_http import ScriptedHttp

OLDEST = "2024-11-05"


class Pair:
    """A server of the oldest revision."""

    def __init__(self, *, endpoint="/messages?session=1", post=202):
        self.endpoint = endpoint
        self.post = post
        self.stream = None
        self.opened = asyncio.Event()

    async def __call__(self, exchange):
        if exchange.method == "GET":
            await exchange.stream()
            await exchange.event(self.endpoint.encode(), event="endpoint")
            self.stream = exchange
            self.opened.set()
            await exchange.left()
        elif exchange.path.startswith("/messages"):
            await exchange.reply(self.post, b"Accepted" if self.post == 202 else b"no")
            if self.post == 202:
                await self.answer(exchange)
        else:
            await exchange.reply(405)

    async def answer(self, exchange):
        message = exchange.message
        if message["method"] == "initialize":
            result = {**INITIALIZED, "protocolVersion": OLDEST}
        elif "id" not in message:
            return
        else:
            result = {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}
        await self.stream.event({"jsonrpc": "2.0", "id": message["id"], "result": result}, event="message")


async def test_a_server_that_has_only_the_pair_is_reached_and_used():
    pair = Pair()
    async with ScriptedHttp(pair) as http, fresh(http.url) as client:
        texts = await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(5)))
        assert [result.value for result in texts] == [str(n) for n in range(5)]
        assert client.server.revision == OLDEST
        assert client.server.info.name == "scripted"
        posted = [e for e in http.exchanges if e.path.startswith("/messages")]
        assert [e.asks for e in posted[:2]] == ["initialize", "notifications/initialized"]
        assert posted[0].path == "/messages?session=1"
        assert http.methods.count("GET") == 1


async def test_calls_that_wait_fail_when_the_stream_ends_and_the_next_call_opens_another():
    pair = Pair()
    async with ScriptedHttp(pair) as http, fresh(http.url) as client:
        await client.call_tool("echo", {"text": "a"})
        pair.answer = lambda exchange: asyncio.sleep(0)
        waiting = asyncio.ensure_future(client.call_tool("echo", {"text": "b"}))
        await http.came(3, of="tools/call")
        pair.stream.cut()
        with pytest.raises(CallFailed) as caught:
            await waiting
        assert caught.value.evidence is Evidence.MAYBE_SENT
        del pair.answer
        assert (await client.call_tool("echo", {"text": "c"})).value == "c"


@pytest.mark.parametrize(
    "endpoint", ["https://elsewhere.example/messages", "//elsewhere.example/x", "http://127.0.0.1:1/x"]
)
async def test_an_address_at_another_origin_is_refused(endpoint):
    pair = Pair(endpoint=endpoint)
    async with ScriptedHttp(pair) as http, fresh(http.url) as client:
        with pytest.raises(HttpError, match="another origin"):
            await client.call_tool("echo", {"text": "a"})


async def test_a_post_that_is_refused_fails_its_call_alone():
    pair = Pair()
    async with ScriptedHttp(pair) as http, fresh(http.url) as client:
        await client.call_tool("echo", {"text": "a"})
        pair.post = 500
        with pytest.raises(HttpError) as caught:
            await client.call_tool("echo", {"text": "b"})
        assert caught.value.status == 500
        pair.post = 202
        assert (await client.call_tool("echo", {"text": "c"})).value == "c"


async def test_a_stream_without_an_endpoint_is_not_the_pair():
    async def respond(exchange):
        if exchange.method == "GET":
            await exchange.stream()
            await exchange.end()
        else:
            await exchange.reply(404, b"nothing")

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        with pytest.raises(HttpError) as caught:
            await client.call_tool("echo", {"text": "a"})
        assert caught.value.status == 404
