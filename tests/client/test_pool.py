"""One client for each server of an application."""

import asyncio

import pytest

from mcprelay import CallFailed, ConfigurationError, LimitExceeded
from mcprelay.client.pool import ClientPool
from tests.client.peer import tool_result
from tests.client.scripted_http import ScriptedHttp


async def ok(exchange):
    await exchange.result(tool_result())


async def test_the_same_server_with_the_same_options_is_the_same_client():
    async with ScriptedHttp(ok) as http, ClientPool(request_timeout=5) as pool:
        clients = await asyncio.gather(*(pool.get(http.url) for _ in range(5)))
        assert len({id(client) for client in clients}) == 1
        assert clients[0].settings.request_timeout == 5
        assert (await clients[0].call_tool("x")).value == "ok"


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
