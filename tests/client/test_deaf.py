"""What a client says when it was deaf for a while: streams that ended cleanly, lists that were never declared, and how
often it begins again in a session."""

import asyncio
from itertools import pairwise

import pytest

from mcprelay import CallFailed, PromptsChanged, ToolsChanged
from tests.client.peer import INITIALIZED, LEGACY, fresh
from tests.client.scripted_http import ScriptedHttp
from tests.client.test_session import TOOLS_CHANGED, Forgetful, until


class Closing(Forgetful):
    """A server whose streams are closed in good order after a while, without ids of events, as proxies do.

    Attributes:
        lasts: Seconds that each stream is open.
        at: When each was opened.
    """

    def __init__(self, lasts):
        super().__init__()
        self.lasts = lasts
        self.at = []

    async def _stream(self, exchange):
        self.at.append(asyncio.get_running_loop().time())
        await exchange.stream()
        await exchange.chunk(b"retry: 1000\n\n")
        await asyncio.sleep(self.lasts)
        await exchange.end()


async def test_after_a_stream_that_ended_in_good_order_without_an_id_everything_is_told_as_changed(clock):
    server = Closing(lasts=0.1)
    async with ScriptedHttp(server) as http, fresh(http.url, revision=LEGACY) as client:
        async with client.listen(tools=True, prompts=True) as events:
            await until(clock, lambda: len(server.at) == 2)
            assert {await anext(events), await anext(events)} == {ToolsChanged(), PromptsChanged()}


async def test_an_idle_stream_that_is_closed_again_and_again_makes_nobody_deaf_for_longer(clock):
    server = Closing(lasts=90.0)
    async with ScriptedHttp(server) as http, fresh(http.url, revision=LEGACY) as client:
        async with client.listen(tools=True):
            await until(clock, lambda: len(server.at) == 8, step=1.0)
    assert all(later - earlier < 100 for earlier, later in pairwise(server.at))


async def test_a_list_whose_changes_are_told_without_having_been_declared_is_told_as_changed_too(clock):
    server = Forgetful()

    async def respond(exchange):
        if exchange.asks == "initialize":
            server.made += 1
            server.sessions.add(f"s{server.made}")
            capabilities = {"tools": {}, "prompts": {"listChanged": True}}
            result = {**INITIALIZED, "protocolVersion": LEGACY, "capabilities": capabilities}
            await exchange.result(result, headers={"mcp-session-id": f"s{server.made}"})
        else:
            await server(exchange)

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=LEGACY) as client:
        async with client.listen(tools=True, prompts=True) as events:
            await until(clock, server.opened.is_set)
            await server.streams[-1].event(TOOLS_CHANGED)
            assert await anext(events) == ToolsChanged()
            server.cut()
            await until(clock, server.opened.is_set)
            assert {await anext(events), await anext(events)} == {ToolsChanged(), PromptsChanged()}


async def test_a_subscription_that_is_refused_again_and_again_is_given_up_after_longer_and_longer_waits(clock):
    server = Forgetful()
    asked = []

    async def respond(exchange):
        if exchange.asks == "resources/subscribe":
            asked.append(asyncio.get_running_loop().time())
            if len(asked) > 1:
                await exchange.reply(503, b"not now")
                return
        await server(exchange)

    async with (
        ScriptedHttp(respond) as http,
        fresh(http.url, revision=LEGACY, reconnections=3, resumptions=0, request_timeout=1e6) as client,
    ):
        async with client.listen(updates=["a://b"], reconnect=True) as events:
            await until(clock, server.opened.is_set)
            server.refusals = [503] * 3
            server.cut()
            reading = asyncio.ensure_future(anext(events))
            await until(clock, reading.done)
            with pytest.raises(CallFailed, match="tried again 3 times in a row: reconnections=3"):
                await reading
    assert len(asked) == 4
    waits = [later - earlier for earlier, later in pairwise(asked[1:])]
    assert waits == sorted(waits)
