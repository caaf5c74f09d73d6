"""What a server tells on a subscription that did not ask for it is dropped and counted (patterns/subscriptions)."""

import asyncio

import pytest

from mcprelay import PromptsChanged, RemoteError, ResourceUpdated, ToolsChanged
from tests.client.peer import connected
from tests.client.test_listening import acknowledge, begun, settled, tell


def dropped(client):
    """How many strays were counted."""
    return client._connection.current.peer.dropped


@pytest.mark.parametrize(
    "uri",
    ["evil://x", "file:///ab", "file:///", "file://a", "http:///a", "file:///A", "", "file:///a%zz"],
)
async def test_the_update_of_a_resource_that_was_not_asked_for_is_dropped_and_counted(uri):
    async with connected() as (client, channel):
        events, request = await begun(client, channel, updates=["file:///a"])
        tell(channel, request, "resources/updated", uri=uri)
        tell(channel, request, "tools/list_changed")
        await settled(client, channel)
        assert dropped(client) == 2
        tell(channel, request, "resources/updated", uri="file:///a")
        assert await anext(events) == ResourceUpdated("file:///a")
        await events.aclose()


@pytest.mark.parametrize(
    ("asked", "uri"),
    [
        ("file:///a", "file:///a/b/c"),
        ("file:///a/", "file:///a"),
        ("file:///a", "file:///a?line=1"),
        ("file:///a", "file:///a#end"),
        ("http://Example.com/a b", "HTTP://example.com/a%20b/part"),
        ("note:1", "NOTE:1/part"),
        ("http://example.com", "http://example.com/"),
    ],
)
async def test_what_lies_below_a_resource_that_was_asked_for_or_is_spelled_otherwise_is_told(asked, uri):
    async with connected() as (client, channel):
        events, request = await begun(client, channel, updates=[asked])
        tell(channel, request, "resources/updated", uri=uri)
        assert await anext(events) == ResourceUpdated(uri)
        assert dropped(client) == 0
        await events.aclose()


async def test_a_resource_that_the_server_adds_to_what_was_asked_for_is_neither_honored_nor_told():
    async with connected() as (client, channel):
        entering = asyncio.ensure_future(client.listen(updates=["file:///a", "file:///b"]).__aenter__())
        request = await channel.expect("subscriptions/listen")
        acknowledge(channel, request, resourceSubscriptions=["evil://x", "FILE:///b"])
        events = await entering
        assert events.honored.resource_subscriptions == ("FILE:///b",)
        for uri in ("evil://x", "file:///a", "file:///b"):
            tell(channel, request, "resources/updated", uri=uri)
        assert await anext(events) == ResourceUpdated("file:///b")
        assert dropped(client) == 2
        await events.aclose()


async def test_a_server_that_agrees_to_other_resources_alone_tells_of_none_that_was_asked_for():
    async with connected() as (client, channel):
        entering = asyncio.ensure_future(client.listen(updates=["file:///a"]).__aenter__())
        acknowledge(channel, await channel.expect("subscriptions/listen"), resourceSubscriptions=["evil://x"])
        with pytest.raises(RemoteError, match="does not tell of changes"):
            await entering


async def test_what_comes_before_the_acknowledgement_is_dropped():
    async with connected() as (client, channel):
        entering = asyncio.ensure_future(client.listen(tools=True, prompts=True).__aenter__())
        request = await channel.expect("subscriptions/listen")
        tell(channel, request, "tools/list_changed")
        acknowledge(channel, request)
        events = await entering
        tell(channel, request, "prompts/list_changed")
        assert await anext(events) == PromptsChanged()
        assert dropped(client) == 1
        await events.aclose()


async def test_a_second_acknowledgement_changes_nothing_and_tells_nothing():
    async with connected() as (client, channel):
        events, request = await begun(client, channel, tools=True)
        tell(channel, request, "subscriptions/acknowledged", notifications={})
        tell(channel, request, "subscriptions/acknowledged", notifications=7)
        await settled(client, channel)
        assert events.honored.tools_list_changed
        assert not events._waiting
        assert dropped(client) + client._connection.current.unreadable == 2
        tell(channel, request, "tools/list_changed")
        assert await anext(events) == ToolsChanged()
        await events.aclose()
