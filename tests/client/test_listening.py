"""Listening for changes, in each era (patterns/subscriptions)."""

import asyncio

import pytest

from mcprelay import (
    CallLimitExceeded,
    ConfigurationError,
    ConnectionLost,
    DeadlineExceeded,
    LocalFault,
    PromptsChanged,
    RemoteError,
    ResourcesChanged,
    ResourceUpdated,
    ResponseInvalid,
    ToolsChanged,
)
from mcprelay.testing import ScriptedChannel
from tests.client.peer import DISCOVERED, INITIALIZED, LEGACY, connected, fresh, in_session, tool_result
from tests.client.scripted_http import ScriptedHttp

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def tell(channel, request, method, **params):
    """A notice of a subscription."""
    channel.notify(f"notifications/{method}", {"_meta": {SUBSCRIPTION: request["id"]}, **params})


def acknowledge(channel, request, **honored):
    tell(channel, request, "subscriptions/acknowledged", notifications=honored or request["params"]["notifications"])


async def begun(client, channel, **what):
    """Listen, acknowledged: `(events, request)`."""
    listening = client.listen(**what)
    entering = asyncio.ensure_future(listening.__aenter__())
    request = await channel.expect("subscriptions/listen")
    acknowledge(channel, request)
    return await entering, request


async def settled(client, channel):
    """Whatever the server said before has been taken."""
    calling = asyncio.ensure_future(client.call_tool("x"))
    channel.reply(await channel.expect("tools/call"), tool_result())
    await calling


async def test_events_come_in_order_and_one_that_waits_is_not_told_twice():
    async with connected() as (client, channel):
        events, request = await begun(client, channel, tools=True, resources=True, updates=["file:///a"])
        assert request["params"]["notifications"] == {
            "toolsListChanged": True,
            "resourcesListChanged": True,
            "resourceSubscriptions": ["file:///a"],
        }
        tell(channel, request, "tools/list_changed")
        tell(channel, request, "resources/updated", uri="file:///a")
        tell(channel, request, "tools/list_changed")
        tell(channel, request, "resources/updated", uri="file:///a/b")
        tell(channel, request, "resources/list_changed")
        await settled(client, channel)
        told = [await anext(events) for _ in range(4)]
        assert told == [
            ToolsChanged(),
            ResourceUpdated("file:///a"),
            ResourceUpdated("file:///a/b"),
            ResourcesChanged(),
        ]
        tell(channel, request, "tools/list_changed")
        assert await anext(events) == ToolsChanged()
        await events.aclose()
        notice = await channel.expect("notifications/cancelled")
        assert notice["params"]["requestId"] == request["id"]


async def test_what_was_not_asked_for_is_not_told():
    async with connected() as (client, channel):
        events, request = await begun(client, channel, prompts=True)
        tell(channel, request, "tools/list_changed")
        tell(channel, request, "resources/updated", uri="file:///a")
        tell(channel, request, "resources/updated")  # malformed
        tell(channel, request, "prompts/list_changed")
        assert await anext(events) == PromptsChanged()
        await events.aclose()


async def test_what_the_server_honors_is_said():
    async with connected() as (client, channel):
        listening = client.listen(tools=True, prompts=True)
        entering = asyncio.ensure_future(listening.__aenter__())
        request = await channel.expect("subscriptions/listen")
        acknowledge(channel, request, toolsListChanged=True)
        events = await entering
        assert events.honored.tools_list_changed
        assert not events.honored.prompts_list_changed
        assert events.wanted.prompts_list_changed
        await events.aclose()


async def test_several_on_one_channel_do_not_disturb_each_other_or_the_calls():
    async with connected() as (client, channel):
        one, first = await begun(client, channel, tools=True)
        two, second = await begun(client, channel, tools=True, updates=["file:///a"])
        tell(channel, second, "resources/updated", uri="file:///a")
        tell(channel, first, "tools/list_changed")
        await settled(client, channel)
        assert await anext(one) == ToolsChanged()
        assert await anext(two) == ResourceUpdated("file:///a")
        waiting = asyncio.ensure_future(anext(two))
        await one.aclose()
        tell(channel, first, "tools/list_changed")  # late, and nobody's
        tell(channel, second, "tools/list_changed")
        assert await waiting == ToolsChanged()
        await two.aclose()


@pytest.mark.parametrize("how", ["result", "result and notice", "notice"])
async def test_a_graceful_end_by_the_server_ends_the_iteration(how):
    async with connected() as (client, channel):
        events, request = await begun(client, channel, tools=True)
        tell(channel, request, "tools/list_changed")
        if "result" in how:
            channel.reply(request, {"resultType": "complete", "_meta": {SUBSCRIPTION: request["id"]}})
        if "notice" in how:
            channel.notify("notifications/cancelled", {"requestId": request["id"]})
        assert [event async for event in events] == [ToolsChanged()]
        assert events.ended
        await events.aclose()
        await settled(client, channel)


async def test_a_connection_that_is_lost_is_no_graceful_end():
    async with connected() as (client, channel):
        events, request = await begun(client, channel, tools=True)
        tell(channel, request, "tools/list_changed")
        channel.end()
        assert await anext(events) == ToolsChanged()
        with pytest.raises(ConnectionLost):
            await anext(events)
        assert not events.ended


async def test_a_subscription_that_is_refused_or_never_acknowledged_does_not_begin(clock):
    async with connected(request_timeout=30) as (client, channel):
        entering = asyncio.ensure_future(client.listen(tools=True).__aenter__())
        channel.refuse(await channel.expect("subscriptions/listen"), -32601)
        with pytest.raises(RemoteError):
            await entering
        entering = asyncio.ensure_future(client.listen(tools=True).__aenter__())
        request = await channel.expect("subscriptions/listen")
        channel.reply(request, {"resultType": "complete"})
        with pytest.raises(ResponseInvalid, match="without acknowledging"):
            await entering
        entering = asyncio.ensure_future(client.listen(tools=True).__aenter__())
        await channel.expect("subscriptions/listen")
        await clock.advance(30)
        with pytest.raises(DeadlineExceeded):
            await entering


async def test_after_the_acknowledgement_there_is_no_deadline(clock):
    async with connected(request_timeout=30) as (client, channel):
        events, request = await begun(client, channel, tools=True)
        await clock.advance(3600)
        tell(channel, request, "tools/list_changed")
        assert await anext(events) == ToolsChanged()
        await events.aclose()


async def test_what_waits_is_bounded_by_a_named_limit():
    async with connected(pending_events=2) as (client, channel):
        events, request = await begun(client, channel, updates=["file:///"])
        for n in range(3):
            tell(channel, request, "resources/updated", uri=f"file:///{n}")
        await settled(client, channel)
        assert [(await anext(events)).uri for _ in range(2)] == ["file:///0", "file:///1"]
        with pytest.raises(CallLimitExceeded, match="pending_events=2"):
            await anext(events)


async def test_leaving_the_context_or_closing_the_client_ends_the_iteration():
    async with connected() as (client, channel):
        events, _ = await begun(client, channel, tools=True)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        await client.aclose()
        with pytest.raises(StopAsyncIteration):
            await waiting


async def test_a_listening_says_what_for_and_is_entered_once():
    async with connected() as (client, channel):
        with pytest.raises(ConfigurationError, match="say what to listen for"):
            client.listen()
        events, _ = await begun(client, channel, tools=True)
        with pytest.raises(LocalFault):
            await events.__aenter__()
        await events.aclose()


class Channels:
    """Gives a new scripted channel for each connection."""

    def __init__(self):
        self.made = []
        self.more = asyncio.Condition()

    async def connect(self):
        channel = ScriptedChannel()
        async with self.more:
            self.made.append(channel)
            self.more.notify_all()
        return channel

    async def number(self, count):
        async with self.more:
            await self.more.wait_for(lambda: len(self.made) >= count)
        return self.made[count - 1]


async def opened(client, channels):
    """Connect a client over the first of its channels, and give that."""
    connecting = asyncio.ensure_future(client.connect())
    channel = await channels.number(1)
    channel.reply(await channel.expect("server/discover"), DISCOVERED)
    await connecting
    return channel


@pytest.mark.clause("subscriptions.resent")
async def test_where_it_is_asked_for_a_lost_connection_is_listened_to_again_and_everything_told_as_changed():
    channels = Channels()
    client = fresh(channels)
    channel = await opened(client, channels)
    events, _ = await begun(client, channel, tools=True, updates=["file:///a"], reconnect=True)
    channel.end()
    channel = await channels.number(2)
    channel.reply(await channel.expect("server/discover"), DISCOVERED)
    acknowledge(channel, await channel.expect("subscriptions/listen"))
    assert [await anext(events) for _ in range(2)] == [ToolsChanged(), ResourceUpdated("file:///a")]
    await events.aclose()
    await client.aclose()


# --- over HTTP


async def test_over_http_a_subscription_is_one_stream_and_leaving_closes_it():
    left = asyncio.Event()

    async def respond(exchange):
        if exchange.asks == "server/discover":
            await exchange.result(DISCOVERED)
            return
        await exchange.stream()
        number = exchange.message["id"]
        meta = {SUBSCRIPTION: number}
        honored = exchange.message["params"]["notifications"]
        params = {"_meta": meta, "notifications": honored}
        await exchange.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
        await exchange.chunk(b": keep-alive\n\n")
        await exchange.event(
            {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}}
        )
        if "promptsListChanged" in honored:
            await exchange.event({"jsonrpc": "2.0", "id": number, "result": {"resultType": "complete"}})
            await exchange.end()
            return
        await exchange.left()
        left.set()

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        async with client.listen(tools=True) as events:
            assert await anext(events) == ToolsChanged()
        await asyncio.wait_for(left.wait(), 5)
        async with client.listen(tools=True, prompts=True) as events:
            assert [event async for event in events] == [ToolsChanged()]
            assert events.ended


# --- the handshake era


async def test_in_a_session_notices_and_subscriptions_give_the_same_events():
    async with in_session() as (client, channel):
        listening = client.listen(tools=True, prompts=True, updates=["file:///a"])
        entering = asyncio.ensure_future(listening.__aenter__())
        request = await channel.expect("resources/subscribe")
        assert request["params"] == {"uri": "file:///a"}
        channel.reply(request, {})
        events = await entering
        assert events.honored.tools_list_changed
        assert not events.honored.prompts_list_changed
        channel.notify("notifications/tools/list_changed")
        channel.notify("notifications/resources/updated", {"uri": "file:///a"})
        channel.notify("notifications/resources/list_changed")
        assert [await anext(events) for _ in range(2)] == [ToolsChanged(), ResourceUpdated("file:///a")]
        closing = asyncio.ensure_future(events.aclose())
        channel.reply(await channel.expect("resources/unsubscribe"), {})
        await closing


async def test_a_resource_that_two_listen_to_is_subscribed_until_the_last_leaves():
    async with in_session() as (client, channel):
        both = []
        for _ in range(2):
            entering = asyncio.ensure_future(client.listen(updates=["file:///a"]).__aenter__())
            channel.reply(await channel.expect("resources/subscribe"), {})
            both.append(await entering)
        await both[0].aclose()
        channel.notify("notifications/resources/updated", {"uri": "file:///a"})
        assert await anext(both[1]) == ResourceUpdated("file:///a")
        closing = asyncio.ensure_future(both[1].aclose())
        channel.reply(await channel.expect("resources/unsubscribe"), {})
        await closing


async def test_over_http_the_sessions_own_stream_is_opened_resumed_and_heard():
    heard = []

    async def respond(exchange):
        if exchange.method == "DELETE":
            await exchange.reply(204)
        elif exchange.method == "GET":
            heard.append(exchange.headers.get("last-event-id"))
            await exchange.stream()
            if len(heard) == 1:
                note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
                await exchange.event(note, id="e1", retry=1)
                await exchange.end()
            else:
                note = {"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}
                await exchange.event(note)
                await exchange.left()
        elif exchange.asks == "initialize":
            capabilities = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}}
            await exchange.result({**INITIALIZED, "capabilities": capabilities}, headers={"mcp-session-id": "s"})
        else:
            await exchange.reply(202)

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=LEGACY) as client:
        async with client.listen(tools=True, prompts=True) as events:
            assert [await anext(events) for _ in range(2)] == [ToolsChanged(), PromptsChanged()]
    assert heard == [None, "e1"]


async def test_a_session_that_is_renewed_is_subscribed_to_again():
    sessions = []

    async def respond(exchange):
        session = exchange.headers.get("mcp-session-id")
        if exchange.method == "GET":
            await exchange.stream()
            await exchange.left()
        elif exchange.method == "DELETE":
            await exchange.reply(204)
        elif exchange.asks == "initialize":
            sessions.append(f"s{len(sessions) + 1}")
            await exchange.result(INITIALIZED, headers={"mcp-session-id": sessions[-1]})
        elif exchange.asks.startswith("notifications/"):
            await exchange.reply(202)
        elif session == "s1" and exchange.asks == "tools/call":
            await exchange.reply(404)
        else:
            await exchange.result({"content": []})

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=LEGACY) as client:
        async with client.listen(updates=["file:///a"]) as events:
            await client.call_tool("x")
            assert await anext(events) == ResourceUpdated("file:///a")  # what happened meanwhile is not known
        subscribed = [
            e.headers["mcp-session-id"]
            for e in http.exchanges
            if e.method == "POST" and e.asks == "resources/subscribe"
        ]
        assert subscribed == ["s1", "s2"]
