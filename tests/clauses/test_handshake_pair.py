"""The HTTP+SSE pair of the oldest revision, and how a client comes to it."""

from typing import Any

import pytest

from mcprelay import HttpError, revisions
from mcprelay.revisions import Era
from tests.clauses.test_authorization import Guarded
from tests.client.peer import INITIALIZED, fresh
from tests.client.scripted_http import Exchange, ScriptedHttp
from tests.matrix.house import make
from tests.server.test_sse_pair import connected
from tests.server.wire import Http, opened, request

HOST = "127.0.0.1:8000"
OLDEST = revisions.of_era(Era.HANDSHAKE)[-1].name


class PairAlone:
    """A server that has nothing but the pair: `refusal` is what it says to a POST at the stream's address."""

    def __init__(self, refusal: int) -> None:
        self.refusal = refusal
        self.stream: Exchange | None = None

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.method == "GET":
            await exchange.stream()
            await exchange.event(b"/messages?session=1", event="endpoint")
            self.stream = exchange
            await exchange.left()
        elif exchange.path == "/mcp":
            await exchange.reply(self.refusal)
        else:
            await exchange.reply(202)
            await self._answer(exchange.message)

    async def _answer(self, message: Any) -> None:
        assert self.stream is not None
        result = {"content": []}
        if message["method"] == "initialize":
            result = {**INITIALIZED, "protocolVersion": OLDEST}
        if "id" in message:
            await self.stream.event({"jsonrpc": "2.0", "id": message["id"], "result": result}, event="message")


@pytest.mark.clause("handshake.http.pair-fallback", "handshake.pair.posts")
@pytest.mark.parametrize("revision", [None, OLDEST])
@pytest.mark.parametrize("refusal", [400, 404, 405])
async def test_a_client_greets_by_post_first_and_takes_the_pair_where_that_is_refused(
    refusal: int, revision: str | None
):
    options: dict[str, Any] = {} if revision is None else {"revision": revision}
    async with ScriptedHttp(PairAlone(refusal)) as http, fresh(http.url, **options) as client:
        await client.call_tool("t")
        before = http.methods[: http.methods.index("GET")]
        assert before[-1] == "initialize"
        assert client.server.revision == OLDEST
        after = http.exchanges[len(before) + 1 :]
        assert [one.asks for one in after] == ["initialize", "notifications/initialized", "tools/call"]
        assert {(one.method, one.path) for one in after} == {("POST", "/messages?session=1")}


@pytest.mark.clause("handshake.http.pair-fallback")
@pytest.mark.parametrize("refusal", [403, 500, 503])
async def test_another_refusal_says_nothing_of_the_pair(refusal: int):
    async with ScriptedHttp(PairAlone(refusal)) as http, fresh(http.url) as client:
        with pytest.raises(HttpError) as caught:
            await client.call_tool("t")
        assert caught.value.status == refusal
    assert "GET" not in http.methods


@pytest.mark.clause("handshake.pair.endpoints", "handshake.pair.endpoint-event", "handshake.pair.messages")
async def test_the_stream_names_the_address_for_messages_first_and_brings_every_answer():
    app = make().asgi()
    async with opened(Http(app, OLDEST).send("GET", path="/sse", accept="text/event-stream")) as stream:
        first = await stream.event()
        assert first.event == "endpoint"
        assert first.data.startswith(b"/messages?")
    async with connected(app, OLDEST) as pair:
        await pair.initialize()
        posted = pair.post(request("tools/call", {"name": "work", "arguments": {"steps": 2}}, id="w"))
        assert await posted.begun() == 202
        event = await pair.stream.event()
        assert event.event == "message"
        assert b'"id":"w"' in event.data


@pytest.mark.clause("handshake.pair.authentication")
@pytest.mark.parametrize("verb", ["GET", "POST"])
async def test_without_a_token_neither_address_of_the_pair_does_anything(verb: str):
    http = Http(Guarded().server.asgi(), OLDEST)
    if verb == "GET":
        response = http.send("GET", path="/sse", accept="text/event-stream", host=HOST)
    else:
        response = http.send("POST", b"{}", path="/messages", content_type="application/json", host=HOST)
    assert await response.begun() == 401
    assert "resource_metadata=" in response.headers["www-authenticate"]
    await response.body()


@pytest.mark.clause("handshake.pair.bind-loopback")
async def test_unless_told_otherwise_the_pair_is_served_to_this_machine_alone():
    async with make().serve("http", port=0) as running:
        address = running.url.removesuffix("/mcp")
        assert address.startswith("http://127.0.0.1:")
        async with fresh(address + "/sse", revision=OLDEST) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
