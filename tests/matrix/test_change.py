"""What a server tells without being asked: changes of lists and of resources."""

import asyncio

import pytest

from mcprelay import PromptsChanged, ResourcesChanged, ResourceUpdated, ToolsChanged
from mcprelay.revisions import Feature
from tests.matrix.conftest import House

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHANGES = {"tools": ToolsChanged(), "prompts": PromptsChanged(), "resources": ResourcesChanged()}
PATIENCE = 5


def skip_where_nothing_is_told(house: House) -> None:
    if house.transport == "stateless":
        pytest.skip("where there are no sessions nothing is told")


async def told(events, expected) -> None:
    assert await asyncio.wait_for(anext(events), PATIENCE) == expected


@pytest.mark.clause(
    "handshake.prompts.list-changed", "handshake.resources.list-changed", "handshake.tools.list-changed"
)
async def test_a_change_of_each_list_is_told(house: House):
    skip_where_nothing_is_told(house)
    async with house.client.listen(tools=True, prompts=True, resources=True) as events:
        for what, expected in CHANGES.items():
            for said in ("more", "less"):
                assert (await house.client.call_tool("change", {"what": what})).text == said
                await told(events, expected)


async def test_a_change_of_a_resource_is_told_to_who_asked_for_it(house: House):
    skip_where_nothing_is_told(house)
    async with house.client.listen(updates=["house://text"]) as events:
        await house.client.call_tool("touch", {"uri": "house://bytes"})
        await house.client.call_tool("touch", {"uri": "house://text"})
        assert await asyncio.wait_for(anext(events), PATIENCE) == ResourceUpdated("house://text")
    subscribed = house.tape.said("client", "resources/subscribe")
    assert bool(subscribed) == (not house.has(Feature.LISTEN))
    assert len(house.tape.said("client", "resources/unsubscribe")) == len(subscribed)


async def test_what_was_listened_for_is_not_told_any_more(house: House):
    skip_where_nothing_is_told(house)
    async with house.client.listen(updates=["house://text"]):
        pass
    async with house.client.listen(updates=["house://bytes"]) as events:
        await house.client.call_tool("touch", {"uri": "house://text"})
        await house.client.call_tool("touch", {"uri": "house://bytes"})
        assert await asyncio.wait_for(anext(events), PATIENCE) == ResourceUpdated("house://bytes")


async def test_a_change_of_the_tools_spoils_what_the_client_knew_of_them(house: House):
    skip_where_nothing_is_told(house)
    before = [tool.name for tool in await house.client.list_tools()]
    async with house.client.listen(tools=True) as events:
        await house.client.call_tool("change", {"what": "tools"})
        await told(events, ToolsChanged())
        assert [tool.name for tool in await house.client.list_tools()] == [*before, "extra"]
        await house.client.call_tool("change", {"what": "tools"})
        await told(events, ToolsChanged())
        assert [tool.name for tool in await house.client.list_tools()] == before
