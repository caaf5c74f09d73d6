"""The HTTP+SSE pair when a server answers a POST only once it has done what the message asks: nothing waits for it."""

import asyncio
import contextlib

import pytest

from mcprelay import (
    AuthorizationRequired,
    CallFailed,
    ConfigurationError,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    Evidence,
    HttpError,
    RemoteError,
)
from mcprelay.client.retry import Retry
from tests.client.peer import INITIALIZED, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp

OLDEST = "2024-11-05"


class Inline:
    """A server of the oldest revision that answers the POST of a tool's call when `behave` has returned."""

    def __init__(self, behave=None):
        self.stream = None
        self.behave = behave
        self.told = []
        self.answers = asyncio.Queue()

    async def __call__(self, exchange):
        if exchange.method == "GET":
            await exchange.stream()
            await exchange.event(b"/messages", event="endpoint")
            self.stream = exchange
            await exchange.left()
        elif exchange.path != "/messages":
            await exchange.reply(405)
        else:
            await self.posted(exchange)

    async def posted(self, exchange):
        message = exchange.message
        if exchange.asks == "initialize":
            await self.answer(exchange, {**INITIALIZED, "protocolVersion": OLDEST})
        elif exchange.asks is None:
            self.answers.put_nowait(message)
        elif exchange.asks != "tools/call":
            self.told.append(message)
        elif self.behave is not None:
            await self.behave(self, exchange)
            return
        else:
            await self.answer(exchange)
        await exchange.reply(202, b"Accepted")

    async def answer(self, exchange, result=None):
        """The answer to a request, on the stream."""
        await self.say({"id": exchange.message["id"], "result": result or tool_result()})

    async def say(self, message):
        await self.stream.event({"jsonrpc": "2.0", **message}, event="message")


@contextlib.asynccontextmanager
async def paired(behave=None, *, kind=Inline, **options):
    """A client that has shaken hands with such a server: `(client, server, http)`."""
    server = kind()
    async with ScriptedHttp(server) as http, fresh(http.url, **options) as client:
        await client.call_tool("warm")
        del http.exchanges[:]
        server.behave = behave
        yield client, server, http


async def failure_of(awaitable):
    with pytest.raises(CallFailed) as caught:
        await awaitable
    return caught.value


async def held(server, exchange):
    """A POST that is not answered for as long as its connection stands."""
    await exchange.left()


async def test_a_question_inside_of_a_call_is_answered_while_the_post_of_the_call_is_open():
    async def behave(server, exchange):
        await server.say({"id": "q", "method": "ping"})
        assert (await server.answers.get())["id"] == "q"
        await server.answer(exchange)
        await exchange.reply(202)

    async with paired(behave) as (client, _, _):
        assert (await client.call_tool("asks", timeout=5)).value == "ok"


async def test_calls_do_not_wait_for_each_others_posts():
    together = asyncio.Barrier(3)

    async def behave(server, exchange):
        await together.wait()
        await server.answer(exchange)
        await exchange.reply(202)

    async with paired(behave) as (client, _, _):
        results = await asyncio.gather(*(client.call_tool("works", timeout=5) for _ in range(3)))
        assert [result.value for result in results] == ["ok"] * 3


async def test_the_server_is_told_of_a_deadline_while_the_post_of_the_call_is_open():
    async with paired(held) as (client, server, http):
        error = await failure_of(client.call_tool("slow", timeout=0.05))
        assert type(error) is DeadlineExceeded
        assert error.evidence is Evidence.MAYBE_SENT
        await http.came(of="notifications/cancelled")
        assert http.exchanges[-1].message["params"]["requestId"] == error.request_id
        server.behave = None
        assert (await client.call_tool("next", timeout=5)).value == "ok"


async def test_the_server_is_told_of_a_caller_that_gives_up_while_the_post_of_the_call_is_open():
    async with paired(held) as (client, _, http):
        calling = asyncio.ensure_future(client.call_tool("slow"))
        await http.came(of="tools/call")
        calling.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await calling
        assert "maybe sent" in caught.value.__notes__[0]
        await http.came(of="notifications/cancelled")


async def test_hands_are_shaken_before_the_first_call_goes_out():
    order = []
    arrived = asyncio.Event()

    class Slow(Inline):
        async def posted(self, exchange):
            if exchange.asks == "notifications/initialized":
                arrived.set()
                for _ in range(50):  # time enough for a call that would not wait
                    await asyncio.sleep(0)
            order.append(exchange.asks)
            await super().posted(exchange)

    async with ScriptedHttp(Slow()) as http, fresh(http.url) as client:
        await client.call_tool("first")
    assert arrived.is_set()
    assert order == ["initialize", "notifications/initialized", "tools/call"]


async def test_a_server_that_never_answers_the_end_of_the_handshake_is_waited_for_as_long_as_connecting_may_take(clock):
    arrived = asyncio.Event()

    class Silent(Inline):
        async def posted(self, exchange):
            if exchange.asks == "notifications/initialized":
                arrived.set()
                await exchange.left()
            else:
                await super().posted(exchange)

    async with ScriptedHttp(Silent()) as http, fresh(http.url, connect_timeout=7) as client:
        calling = asyncio.ensure_future(client.call_tool("charge", timeout=20))
        await arrived.wait()
        await clock.advance(6)
        assert http.methods.count("tools/call") == 1  # which found out that there is only the pair
        await clock.advance(1)
        assert (await calling).value == "ok"


# --- how many at once


async def test_calls_beyond_the_connections_wait_and_have_sent_nothing():
    async with paired(held, connections=4) as (client, server, http):
        open_ = [asyncio.ensure_future(client.call_tool("slow")) for _ in range(2)]
        await http.came(2, of="tools/call")
        error = await failure_of(client.call_tool("waits", timeout=0.05))
        assert error.evidence is Evidence.NOT_SENT
        assert "it waited for its turn: connections=4 were open already" in str(error)
        waiting = asyncio.ensure_future(client.call_tool("waits too"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await waiting
        assert "not sent" in caught.value.__notes__[0]
        await server.say({"id": "q", "method": "ping"})
        assert (await server.answers.get())["id"] == "q"  # there is a connection for what is no call
        for one in open_:
            one.cancel()
        await asyncio.wait(open_)
        server.behave = None
        await http.came(2, of="notifications/cancelled")
    assert http.methods.count("tools/call") == 2


@pytest.mark.parametrize("few", [1, 2])
async def test_the_pair_needs_a_connection_beside_its_stream_and_one_beside_the_post_of_a_call(few):
    async with ScriptedHttp(Inline()) as http, fresh(http.url, connections=few) as client:
        error = await failure_of(client.call_tool("charge"))
        assert type(error) is HttpError
        assert f"it takes 3 connections at once, and connections={few}" in str(error)


async def test_three_connections_are_enough_to_answer_a_question_while_the_post_of_its_call_is_held():
    async def behave(server, exchange):
        await server.say({"id": "q", "method": "roots/list"})
        assert "result" in await server.answers.get()
        await server.answer(exchange)
        await exchange.reply(202)

    async with paired(behave, connections=3, on_roots=["file:///a"]) as (client, _, _):
        assert (await client.call_tool("asks", timeout=5)).value == "ok"


class Deaf(Inline):
    """A server that never answers the POST of an answer."""

    async def posted(self, exchange):
        if exchange.asks is None:
            self.answers.put_nowait(exchange.message)
            await exchange.left()
        else:
            await super().posted(exchange)


async def test_an_answer_whose_post_is_held_is_in_work_and_more_questions_are_refused():
    async def behave(server, exchange):
        for number in range(3):
            await server.say({"id": f"q{number}", "method": "roots/list"})
            assert ("result" in await server.answers.get()) is (number < 2)
        await server.answer(exchange)
        await exchange.reply(202)

    options = {"on_roots": ["file:///a"], "concurrent_requests": 2, "close_timeout": 0.1}
    async with paired(behave, kind=Deaf, **options) as (client, _, _):
        assert (await client.call_tool("asks", timeout=5)).value == "ok"


async def test_of_answers_to_pings_whose_posts_are_held_few_are_on_their_way():
    async def behave(server, exchange):
        for number in range(3):
            await server.say({"id": f"p{number}", "method": "ping"})
        await server.say({"id": "q", "method": "roots/list"})
        assert [(await server.answers.get())["id"] for _ in range(2)] == ["p0", "q"]
        await server.answer(exchange)
        await exchange.reply(202)

    options = {"on_roots": ["file:///a"], "refusal_bytes": 0, "close_timeout": 0.1}
    async with paired(behave, kind=Deaf, **options) as (client, _, _):
        assert (await client.call_tool("asks", timeout=5)).value == "ok"


async def test_answers_are_never_dropped_however_many_leave_at_once():
    async def behave(server, exchange):
        for number in range(40):
            await server.say({"id": f"q{number}", "method": "roots/list"})
        answered = [await server.answers.get() for _ in range(40)]
        assert all("result" in answer for answer in answered)
        await server.answer(exchange)
        await exchange.reply(202)

    async with paired(behave, on_roots=["file:///a"], refusal_bytes=1) as (client, _, _):
        assert (await client.call_tool("asks", timeout=5)).value == "ok"


async def test_a_post_that_is_never_answered_does_not_outlive_its_answered_call_for_long(clock):
    left = asyncio.Event()

    async def behave(server, exchange):
        await server.answer(exchange)
        await exchange.left()
        left.set()

    async with paired(behave, close_timeout=3) as (client, _, _):
        assert (await client.call_tool("x")).value == "ok"
        assert not left.is_set()
        await clock.advance(3)
        async with asyncio.timeout(5):
            await left.wait()


async def test_closing_ends_every_post():
    gone = asyncio.Queue()

    async def behave(server, exchange):
        await exchange.left()
        gone.put_nowait(exchange)

    async with paired(behave) as (client, _, http):
        calls = [asyncio.ensure_future(client.call_tool("slow")) for _ in range(3)]
        await http.came(3, of="tools/call")
        await client.aclose()
        for call in calls:
            error = await failure_of(call)
            assert type(error) is ConnectionLost
            assert error.evidence is Evidence.MAYBE_SENT
        for _ in calls:
            await gone.get()


# --- a POST that is refused


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind", "says"),
    [
        (500, b"kaput", {}, HttpError, "kaput"),
        (429, b"slow down", {"retry-after": "7"}, HttpError, "Retry-After: 7"),
        (401, b"no", {"www-authenticate": "Bearer"}, AuthorizationRequired, "auth="),
        (404, b"which session?", {}, HttpError, "which session"),
    ],
)
async def test_a_refusal_names_the_call_and_what_the_server_said(status, body, headers, kind, says):
    async def behave(server, exchange):
        await exchange.reply(status, body, headers=headers)

    async with paired(behave) as (client, server, _):
        error = await failure_of(client.call_tool("charge", correlation_id="c-1"))
        assert type(error) is kind
        assert str(error).startswith(f"tools/call 'charge': HTTP {status}")
        assert says in str(error)
        assert (error.method, error.correlation_id) == ("tools/call", "c-1")
        assert error.request_id is not None
        assert error.status == status
        assert error.headers.items() >= headers.items()
        assert error.body.encode() == body
        server.behave = None
        assert (await client.call_tool("next")).value == "ok"


async def test_an_error_in_the_body_of_a_refusal_is_the_servers_answer():
    async def behave(server, exchange):
        await exchange.error(-32600, "not like this", status=400)

    async with paired(behave) as (client, _, _):
        error = await failure_of(client.call_tool("charge"))
        assert type(error) is RemoteError
        assert error.message == "not like this"
        assert error.method == "tools/call"


async def test_a_server_that_asks_to_wait_is_asked_again_then(clock):
    times = []

    async def behave(server, exchange):
        times.append(asyncio.get_running_loop().time())
        server.behave = None
        await exchange.reply(429, headers={"retry-after": "7"})

    async with paired(behave, request_timeout=60) as (client, _, http):
        calling = asyncio.ensure_future(client.call_tool("charge", retry=Retry(jitter=0)))
        while not times:
            await clock.advance(0)
        while not calling.done():
            await clock.advance(1)
        assert (await calling).value == "ok"
        assert asyncio.get_running_loop().time() - times[0] >= 7
        assert http.methods == ["tools/call", "tools/call"]


async def test_a_post_that_is_cut_fails_its_call_alone():
    async def behave(server, exchange):
        exchange.cut()

    async with paired(behave) as (client, server, http):
        error = await failure_of(client.call_tool("charge"))
        assert type(error) is ConnectionLost
        assert error.evidence is Evidence.MAYBE_SENT
        assert str(error).startswith("tools/call 'charge': ")
        server.behave = None
        assert (await client.call_tool("next")).value == "ok"
        assert "GET" not in http.methods


async def test_a_refusal_after_the_answer_changes_nothing():
    heard = asyncio.Event()
    refused = asyncio.Event()

    async def behave(server, exchange):
        await server.answer(exchange)
        await heard.wait()
        await exchange.reply(500)
        refused.set()

    async with paired(behave) as (client, server, _):
        assert (await client.call_tool("charge")).value == "ok"
        heard.set()
        await refused.wait()
        server.behave = None
        assert (await client.call_tool("next")).value == "ok"


async def test_a_servers_notices_that_cannot_be_told_harm_no_call():
    class Refusing(Inline):
        async def posted(self, exchange):
            if exchange.asks is None or exchange.asks.startswith("notifications/"):
                await exchange.reply(500)
            else:
                await super().posted(exchange)

    async with ScriptedHttp(Refusing()) as http, fresh(http.url) as client:
        assert (await client.call_tool("x")).value == "ok"
        await client.notify("notifications/roots/list_changed")
        assert (await client.call_tool("x")).value == "ok"


async def test_what_a_users_headers_raise_is_the_failure_of_its_call_alone():
    wrong = []

    def headers():
        if wrong:
            raise wrong.pop()
        return {}

    async with paired(headers=headers) as (client, _, http):
        wrong.append(KeyError("tenant"))
        error = await failure_of(client.call_tool("charge"))
        assert error.evidence is Evidence.NOT_SENT
        assert error.method == "tools/call"
        assert "KeyError('tenant')" in str(error)
        wrong.append(ConfigurationError("no tenant"))
        with pytest.raises(ConfigurationError, match="no tenant"):
            await client.call_tool("charge")
        assert (await client.call_tool("next")).value == "ok"
        assert http.methods.count("tools/call") == 1


async def test_nobody_listens_any_more_for_posts():
    class Closing(Inline):
        async def posted(self, exchange):
            await super().posted(exchange)
            exchange.cut()  # so that no connection is kept

    server = Closing()
    async with ScriptedHttp(server) as http, fresh(http.url) as client:
        await client.call_tool("warm")
        http._server.close()
        error = await failure_of(client.call_tool("charge"))
        assert type(error) is ConnectFailed
        assert error.evidence is Evidence.NOT_SENT
        assert error.method == "tools/call"
