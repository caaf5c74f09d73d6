"""An HTTP server that says nothing to what it does not know: found out beside the call, in a stated time."""

import asyncio

import pytest

from mcprelay import DeadlineExceeded, Evidence
from mcprelay.client.memory import Memory
from tests.client.peer import DISCOVERED, INITIALIZED, LEGACY, MODERN, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp
from tests.client.test_session import until


class Silent:
    """A server of the handshake era that never answers a request of the newest one."""

    async def __call__(self, exchange):
        if exchange.method == "DELETE":
            await exchange.reply(204)
        elif exchange.asks == "initialize":
            await exchange.result(INITIALIZED, headers={"mcp-session-id": "s"})
        elif "id" not in exchange.message:
            await exchange.reply(202)
        elif "mcp-session-id" not in exchange.headers:
            await exchange.left()
        elif exchange.asks == "tools/list":
            await exchange.result({"tools": []})
        else:
            await exchange.result({"content": [{"type": "text", "text": "old"}]})


async def test_a_list_is_read_after_twice_the_wait_and_the_server_remembered(clock):
    memory = Memory()
    loop = asyncio.get_running_loop()
    async with ScriptedHttp(Silent()) as http:
        async with fresh(http.url, memory=memory) as client:
            began = loop.time()
            listing = asyncio.ensure_future(client.list_tools())
            await until(clock, listing.done)
            assert list(await listing) == []
            assert 4 <= loop.time() - began < 10
            assert client.server.revision == LEGACY
        assert http.methods == [
            "tools/list",
            "server/discover",
            "initialize",
            "notifications/initialized",
            "tools/list",
            "DELETE",
        ]
        async with fresh(http.url, memory=memory) as client:
            assert (await client.call_tool("x")).value == "old"  # the clock stands still
        assert http.methods[6] == "initialize"


async def test_a_call_that_may_be_at_work_is_never_sent_again_and_those_after_it_do_not_wait(clock):
    async with ScriptedHttp(Silent()) as http, fresh(http.url, probe_timeout=1) as client:
        calling = asyncio.ensure_future(client.call_tool("charge", timeout=20))
        await until(clock, lambda: client.server.revision is not None)
        assert client.server.revision == LEGACY
        await until(clock, lambda: not client._connection.current.renewing)
        assert (await client.call_tool("x")).value == "old"
        assert not calling.done()
        await until(clock, calling.done)
        with pytest.raises(DeadlineExceeded) as caught:
            await calling
        assert caught.value.evidence is Evidence.MAYBE_SENT
        charged = [e for e in http.exchanges if e.asks == "tools/call" and e.message["params"]["name"] == "charge"]
        assert len(charged) == 1


async def test_calls_that_wait_together_ask_once(clock):
    async with ScriptedHttp(Silent()) as http, fresh(http.url) as client:
        listing = [asyncio.ensure_future(client.request("tools/list")) for _ in range(10)]
        await until(clock, lambda: all(one.done() for one in listing))
        for one in listing:
            await one
        assert http.methods.count("server/discover") == 1
        assert http.methods.count("initialize") == 1


async def test_a_server_of_the_newest_era_that_works_for_long_is_asked_who_it_is_and_the_call_goes_on(clock):
    done = asyncio.Event()

    async def respond(exchange):
        if exchange.asks == "server/discover":
            await exchange.result(DISCOVERED)
        else:
            await done.wait()
            await exchange.result(tool_result("at last"))

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        calling = asyncio.ensure_future(client.call_tool("x"))
        await until(clock, lambda: client.server.revision is not None)
        assert client.server.revision == MODERN
        done.set()
        assert (await calling).value == "at last"
        assert http.methods == ["tools/call", "server/discover"]


async def test_a_server_that_has_begun_to_answer_is_not_silent(clock):
    async def respond(exchange):
        await exchange.stream()
        begun.set()
        await done.wait()
        await exchange.event({"jsonrpc": "2.0", "id": exchange.message["id"], "result": tool_result()})
        await exchange.end()

    begun, done = asyncio.Event(), asyncio.Event()
    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        calling = asyncio.ensure_future(client.call_tool("x"))
        await begun.wait()
        await clock.advance(0)
        await clock.advance(20)
        done.set()
        await calling
        assert http.methods == ["tools/call"]


async def test_a_client_that_speaks_only_the_newest_revision_asks_nothing_beside_its_call(clock):
    async def respond(exchange):
        await exchange.left()

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=MODERN) as client:
        calling = asyncio.ensure_future(client.call_tool("x", timeout=20))
        await http.came(1)
        await until(clock, calling.done)
        with pytest.raises(DeadlineExceeded):
            await calling
        assert http.methods == ["tools/call"]


async def test_a_server_that_is_silent_on_everything_costs_the_call_its_own_time_and_no_more(clock):
    loop = asyncio.get_running_loop()

    async def respond(exchange):
        await exchange.left()

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        began = loop.time()
        listing = asyncio.ensure_future(client.list_tools(timeout=9))
        await until(clock, listing.done)
        with pytest.raises(DeadlineExceeded):
            await listing
        assert loop.time() - began < 12
        assert http.methods[:3] == ["tools/list", "server/discover", "initialize"]
        assert http.methods.count("tools/list") == 1
