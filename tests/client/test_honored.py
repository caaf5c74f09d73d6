"""What a listening tells is exactly what the server agreed to tell, and a server that tells nothing says so."""

import asyncio

import pytest

from mcprelay import Client, ConnectionLost, PromptsChanged, RemoteError, ResourceUpdated, Server, ToolsChanged
from tests.client.peer import INITIALIZED, LEGACY, connected, fresh, in_session, tool_result
from tests.client.scripted_http import ScriptedHttp
from tests.client.test_listening import acknowledge, settled, tell


async def test_in_a_session_what_is_told_without_having_been_declared_is_heard_where_it_was_asked_for():
    capabilities = {"tools": {"listChanged": True}, "prompts": {}, "resources": {}}
    async with in_session(initialized={**INITIALIZED, "capabilities": capabilities}) as (client, channel):
        async with client.listen(tools=True, prompts=True) as events:
            assert events.honored.tools_list_changed
            assert not events.honored.prompts_list_changed, "it is no promise"
            channel.notify("notifications/resources/list_changed")
            channel.notify("notifications/prompts/list_changed")
            channel.notify("notifications/tools/list_changed")
            assert await anext(events) == PromptsChanged()
            assert await anext(events) == ToolsChanged()
            await settled(client, channel)
            assert not events._waiting


async def test_on_a_subscription_what_was_not_agreed_to_is_not_told_even_if_it_comes():
    async with connected() as (client, channel):
        entering = asyncio.ensure_future(client.listen(tools=True, prompts=True).__aenter__())
        request = await channel.expect("subscriptions/listen")
        acknowledge(channel, request, toolsListChanged=True, resourcesListChanged=True)
        events = await entering
        assert not events.honored.resources_list_changed  # it was not asked for
        tell(channel, request, "prompts/list_changed")
        tell(channel, request, "tools/list_changed")
        assert await anext(events) == ToolsChanged()
        await settled(client, channel)
        assert not events._waiting
        await events.aclose()


@pytest.mark.parametrize("wanted", [{"prompts": True}, {"updates": ["file:///a"]}])
async def test_a_session_whose_server_has_nothing_of_what_is_asked_for_says_so_at_once(wanted):
    capabilities = {"tools": {}, "resources": {}}
    async with in_session(initialized={**INITIALIZED, "capabilities": capabilities}) as (client, channel):
        with pytest.raises(RemoteError, match=r"does not tell of changes \(.*: it agrees to none of it\)") as caught:
            await client.listen(**wanted).__aenter__()
        assert caught.value.code == -32601
        assert caught.value.method == "subscriptions/listen"
        assert len(channel.sent) == 2  # initialize, and that it is done


async def test_a_server_that_agrees_to_nothing_is_an_error_and_is_told_that_nobody_listens():
    async with connected() as (client, channel):
        entering = asyncio.ensure_future(client.listen(prompts=True, updates=["file:///a"]).__aenter__())
        request = await channel.expect("subscriptions/listen")
        tell(channel, request, "subscriptions/acknowledged", notifications={})
        with pytest.raises(RemoteError, match=r"does not tell of changes \(prompts, updates"):
            await entering
        assert (await channel.expect("notifications/cancelled"))["params"]["requestId"] == request["id"]


@pytest.mark.parametrize("wire", ["channel", "http"])
async def test_a_server_without_subscriptions_is_told_as_one_that_does_not_tell_of_changes(wire):
    said = r"the server does not tell of changes \(tools: Method not found\)"
    if wire == "channel":
        async with connected() as (client, channel):
            entering = asyncio.ensure_future(client.listen(tools=True).__aenter__())
            channel.refuse(await channel.expect("subscriptions/listen"), -32601, "Method not found")
            with pytest.raises(RemoteError, match=said):
                await entering
        return

    async def respond(exchange):
        if exchange.asks == "subscriptions/listen":
            await exchange.error(-32601, "Method not found", status=404)
        else:
            await exchange.result({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}})

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        with pytest.raises(RemoteError, match=said):
            await client.listen(tools=True).__aenter__()


async def test_in_a_session_the_update_of_one_resource_is_told_to_those_who_asked_for_it():
    async with in_session(close_timeout=0) as (client, channel):
        both = []
        for uri in ("file:///a", "file:///b"):
            entering = asyncio.ensure_future(client.listen(updates=[uri]).__aenter__())
            channel.reply(await channel.expect("resources/subscribe"), {})
            both.append(await entering)
        one, two = both
        channel.notify("notifications/resources/updated", {"uri": "file:///a/part"})
        channel.notify("notifications/resources/updated", {"uri": "file:///b"})
        channel.notify("notifications/resources/updated", {"uri": "FILE:///A"})  # whose that is cannot be told
        await settled(client, channel)
        assert list(one._waiting) == [ResourceUpdated("file:///a/part"), ResourceUpdated("FILE:///A")]
        assert list(two._waiting) == [ResourceUpdated("file:///b"), ResourceUpdated("FILE:///A")]


async def test_in_a_session_an_update_that_comes_while_the_next_resource_is_subscribed_is_not_lost():
    async with in_session(close_timeout=0) as (client, channel):
        entering = asyncio.ensure_future(client.listen(updates=["file:///a", "file:///b"]).__aenter__())
        channel.reply(await channel.expect("resources/subscribe"), {})
        second = await channel.expect("resources/subscribe")
        channel.notify("notifications/resources/updated", {"uri": "file:///a"})
        channel.reply(second, {})
        assert await anext(await entering) == ResourceUpdated("file:///a")


async def test_an_answer_on_the_sessions_own_stream_settles_nothing_and_leaves_the_deadline_in_place():
    told = asyncio.Event()

    async def respond(exchange):
        if exchange.method == "GET":
            await exchange.stream()
            await http.came(1, of="tools/call")
            call = next(one for one in http.exchanges if one.asks == "tools/call")
            for body in (b'"result":{"content":[]}', b'"result":NaN'):
                await exchange.event(b'{"jsonrpc":"2.0","id":%d,%b}' % (call.message["id"], body))
            await exchange.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            await exchange.left()
        elif exchange.asks == "initialize":
            await exchange.result(INITIALIZED, headers={"mcp-session-id": "s"})
        elif exchange.asks == "tools/call":
            await told.wait()
            await exchange.result(tool_result("from its own stream"))
        else:
            await exchange.reply(202)

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=LEGACY) as client:
        async with client.listen(tools=True) as events:
            calling = asyncio.ensure_future(client.call_tool("x"))
            assert await anext(events) == ToolsChanged()
            peer = client._connection.current.peer
            assert (peer.dropped, len(peer.pending)) == (2, 1)
            told.set()
            assert (await calling).value == "from its own stream"


async def test_a_server_of_this_package_agrees_to_what_was_asked():
    server = Server("s")
    server.add_tool(lambda: "x", name="first", description="x")
    async with Client(server) as client, client.listen(tools=True) as events:
        assert events.honored == events.wanted
        server.add_tool(lambda: "x", name="x", description="x")
        assert await anext(events) == ToolsChanged()


async def test_a_listening_that_lost_its_connection_still_says_what_was_agreed():
    async with connected() as (client, channel):
        entering = asyncio.ensure_future(client.listen(tools=True).__aenter__())
        acknowledge(channel, await channel.expect("subscriptions/listen"))
        events = await entering
        channel.end()
        with pytest.raises(ConnectionLost):
            await anext(events)
        assert events.honored.tools_list_changed


async def test_closing_does_not_wait_long_for_a_server_that_does_not_answer_that_nobody_listens(clock):
    async with in_session(close_timeout=2) as (client, channel):
        entering = asyncio.ensure_future(client.listen(updates=["file:///a", "file:///b"]).__aenter__())
        for _ in range(2):
            channel.reply(await channel.expect("resources/subscribe"), {})
        await entering
        closing = asyncio.ensure_future(client.aclose())
        await channel.expect("resources/unsubscribe")
        await clock.advance(2.1)
        await closing
