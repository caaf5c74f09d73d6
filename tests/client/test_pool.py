"""One client for each server of an application."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mcprelay import CallFailed, ConfigurationError, Context, LimitExceeded, LocalFault, Retry, Server
from mcprelay.client.http import HttpSender
from mcprelay.client.likeness import key
from mcprelay.client.memory import Memory
from mcprelay.client.pool import ClientPool
from tests.client.peer import INITIALIZED, tool_result
from tests.client.scripted_http import ScriptedHttp


async def ok(exchange):
    await exchange.result(tool_result())


async def test_the_same_server_with_the_same_options_is_the_same_client():
    async with ScriptedHttp(ok) as http, ClientPool(request_timeout=5) as pool:
        clients = await asyncio.gather(*(pool.get(http.url) for _ in range(5)))
        assert len({id(client) for client in clients}) == 1
        assert clients[0].settings.request_timeout == 5
        assert (await clients[0].call_tool("x")).value == "ok"


async def test_a_block_of_one_who_uses_it_does_not_close_what_is_shared():
    async with ScriptedHttp(ok) as http, ClientPool() as pool:
        async with await pool.get(http.url) as client:
            await client.call_tool("x")
        assert (await client.call_tool("x")).value == "ok"
        assert await pool.get(http.url) is client
    with pytest.raises(CallFailed, match="not open"):
        await client.call_tool("x")


def test_a_pool_whose_loop_ended_keeps_its_clients_open_in_the_next_one():
    pool = ClientPool()
    server = Server("s")
    server.tool(lambda: 1, name="one")

    async def used():
        for _ in range(2):
            async with await pool.get(server) as client:
                assert (await client.call_tool("one")).text == "1"
            assert (await client.call_tool("one")).text == "1"

    for _ in range(2):
        asyncio.run(used())


async def test_another_token_is_another_client():
    async with ScriptedHttp(ok) as http, ClientPool() as pool:
        alice, bob = await pool.get(http.url, auth="alice"), await pool.get(http.url, auth="bob")
        assert alice is not bob
        await alice.call_tool("x")
        await bob.call_tool("x")
        assert [e.headers["authorization"] for e in http.exchanges] == ["Bearer alice", "Bearer bob"]
        assert await pool.get(http.url, auth="alice") is alice


async def test_beyond_its_number_the_idle_one_of_longest_ago_is_closed():
    async with ScriptedHttp(ok) as http, ClientPool(clients=2) as pool:
        one, two = await pool.get(http.url, auth="1"), await pool.get(http.url, auth="2")
        assert await pool.get(http.url, auth="1") is one
        await pool.get(http.url, auth="3")
        with pytest.raises(CallFailed, match="not open"):
            await two.call_tool("x")
        await one.call_tool("x")


async def test_clients_that_are_busy_are_not_closed():
    gate = asyncio.Event()

    async def slow(exchange):
        await gate.wait()
        await exchange.result(tool_result())

    async with ScriptedHttp(slow) as http, ClientPool(clients=1) as pool:
        one = await pool.get(http.url)
        calling = asyncio.ensure_future(one.call_tool("x"))
        await http.came()
        with pytest.raises(LimitExceeded, match="clients=1"):
            await pool.get(http.url, auth="other")
        gate.set()
        assert (await calling).value == "ok"


async def test_a_server_that_cannot_be_reached_is_not_kept():
    async with ClientPool() as pool:
        for _ in range(2):
            with pytest.raises(CallFailed):
                await pool.get(["/no/such/program"])
        assert pool._kept == {}


async def test_a_closed_pool_has_closed_everything():
    async with ScriptedHttp(ok) as http:
        async with ClientPool() as pool:
            client = await pool.get(http.url)
        with pytest.raises(CallFailed, match="not open"):
            await client.call_tool("x")
        with pytest.raises(ConfigurationError, match="closed"):
            await pool.get(http.url)
        with pytest.raises(ConfigurationError, match="at least 1"):
            ClientPool(clients=0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"request_timout": 3}, "^ClientPool has no option 'request_timout'; did you mean 'request_timeout'"),
        ({"client": 3}, "^ClientPool has no option 'client'; did you mean 'clients'"),
        ({"target": "x"}, "^ClientPool has no option 'target'"),
        ({"clients": "3"}, r"^clients is a whole number of at least 1, and not '3' \(str\)"),
    ],
)
def test_an_option_that_a_client_does_not_have_is_told_where_the_pool_is_made(options, said):
    with pytest.raises(ConfigurationError, match=said):
        ClientPool(**options)


async def refused(pool):
    """There is no room for one more."""
    with pytest.raises(LimitExceeded, match="clients=1"):
        await pool.get("http://127.0.0.1:9/other")


async def test_who_asks_for_the_same_at_once_gets_the_same_also_where_another_must_leave():
    async with ScriptedHttp(ok) as http:
        async with ClientPool(clients=2) as pool:
            await pool.get(http.url, auth="1")
            await pool.get(http.url, auth="2")
            clients = await asyncio.gather(*(pool.get(http.url, auth="3") for _ in range(5)))
            assert len(set(map(id, clients))) == 1
            assert len(pool._kept) == 2
        assert clients[0]._connection.current is None


async def test_a_client_that_is_connecting_is_not_closed_for_another():
    source = Source()
    async with ClientPool(clients=1, memory=Memory()) as pool:
        connecting = asyncio.ensure_future(pool.get(source))
        await source.asked.wait()
        await refused(pool)
        source.gate.set()
        client = await connecting
        assert await pool.get(source) is client
        assert len(await client.list_tools()) == 1


def serving():
    """A server with one tool."""
    server = Server("s")
    server.add_tool(function, name="tool")
    return server


class Source:
    """A server that takes its time."""

    def __init__(self):
        self.asked, self.gate = asyncio.Event(), asyncio.Event()
        self.server = serving()

    async def connect(self):
        self.asked.set()
        await self.gate.wait()
        return self.server.connect()


async def test_a_call_whose_handler_is_asked_keeps_its_client():
    asked, gate = asyncio.Event(), asyncio.Event()

    async def on_elicit(question):
        asked.set()
        await gate.wait()
        return {"value": "Ada"}

    async def greet(ctx: Context) -> str:
        return (await ctx.elicit("name?", str, key="name")).value

    server = Server("desk")
    server.add_tool(greet)
    async with ClientPool(clients=1, on_elicit=on_elicit) as pool:
        calling = asyncio.ensure_future((await pool.get(server)).call_tool("greet"))
        await asked.wait()
        await refused(pool)
        gate.set()
        assert (await calling).value == "Ada"


async def test_a_call_that_waits_to_be_sent_again_keeps_its_client(clock):
    async def flaky(exchange):
        if len(http.exchanges) == 1:
            exchange.cut()
        else:
            await exchange.result(tool_result())

    async with ScriptedHttp(flaky) as http, ClientPool(clients=1) as pool:
        client = await pool.get(http.url)
        retry = Retry(idempotent=True, backoff=60, jitter=0)
        calling = asyncio.ensure_future(client.call_tool("x", retry=retry, timeout=600))
        await http.came()
        while client._connection.current.peer.pending:  # noqa: ASYNC110 - nobody is told of it
            await asyncio.sleep(0)
        await refused(pool)
        await clock.advance(61)
        assert (await calling).value == "ok"


async def test_a_call_over_the_pair_keeps_its_client():
    events, gate = asyncio.Queue(), asyncio.Event()

    async def respond(exchange):
        if exchange.method == "GET":
            await exchange.stream()
            await exchange.event(b"/post", event="endpoint")
            while True:
                await exchange.event(await events.get())
        if exchange.path != "/post":
            await exchange.reply(405)
            return
        await exchange.reply(202)
        if exchange.asks == "tools/call":
            await gate.wait()
        if "id" in exchange.message:
            answer = (
                tool_result() if exchange.asks == "tools/call" else {**INITIALIZED, "protocolVersion": "2024-11-05"}
            )
            events.put_nowait({"jsonrpc": "2.0", "id": exchange.message["id"], "result": answer})

    async with ScriptedHttp(respond) as http, ClientPool(clients=1, memory=Memory()) as pool:
        calling = asyncio.ensure_future((await pool.get(http.url)).call_tool("x"))
        await http.came(of="tools/call", count=2)  # refused once, and then over the pair
        await refused(pool)
        gate.set()
        assert (await calling).value == "ok"


async def test_a_pool_belongs_to_one_loop_and_loses_nothing_to_another():
    async with ScriptedHttp(ok) as http, ClientPool() as pool:
        client = await pool.get(http.url)

        def elsewhere(call):
            with pytest.raises(LocalFault, match="another event loop"):
                asyncio.run(call())

        await asyncio.to_thread(elsewhere, lambda: pool.get(http.url))
        await asyncio.to_thread(elsewhere, pool.aclose)
        await asyncio.to_thread(elsewhere, pool.__aenter__)
        assert await pool.get(http.url) is client
        assert (await client.call_tool("x")).value == "ok"
    assert client._connection.current is None


def test_a_pool_whose_loop_has_ended_serves_in_the_next_one():
    pool, server = ClientPool(), serving()

    async def once():
        return len(await (await pool.get(server)).list_tools(fresh=True))

    assert asyncio.run(once()) == asyncio.run(once()) == 1


async def test_a_pool_that_is_closed_while_a_client_connects_keeps_none():
    source = Source()
    pool = ClientPool()
    connecting = asyncio.ensure_future(pool.get(source))
    await source.asked.wait()
    await pool.aclose()
    with pytest.raises((CallFailed, ConfigurationError)):
        await connecting
    assert pool._kept == {}
    assert not pool._closing


async def test_who_gives_up_waiting_takes_nothing_from_those_who_wait_on():
    source = Source()
    async with ClientPool() as pool:
        patient, impatient = (asyncio.ensure_future(pool.get(source)) for _ in range(2))
        await source.asked.wait()
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        source.gate.set()
        assert await pool.get(source) is await patient


async def test_one_sender_of_the_users_serves_all_the_clients_of_a_pool():
    sender = HttpSender()
    async with ScriptedHttp(ok) as http, ClientPool(clients=1, sender=sender) as pool:
        for token in ("a", "b", "a"):
            assert (await (await pool.get(http.url, auth=token)).call_tool("x")).value == "ok"
    await sender.aclose()


def test_what_is_told_apart_by_what_it_is_is_held_so_that_nothing_takes_its_place():
    keys = {key("http://a/", {"on_progress": function()}) for _ in range(50)}
    assert len(keys) == 50
    assert key("http://a/", {"cwd": Path("x"), "headers": {"a": "1", "b": "2"}}) == key(
        "http://a/", {"headers": {"b": "2", "a": "1"}, "cwd": "x"}
    )
    assert key("http://a/", {"x": 1}) != key("http://a/", {"x": True})


def function() -> Any:
    """Another one each time."""
    return lambda _: None
