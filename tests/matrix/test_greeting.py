"""How a client and a server meet, in every revision over every wire."""

import pytest

from mcprelay import revisions
from mcprelay.revisions import Era, Feature
from tests.matrix.conftest import House, moved_in

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.clause("handshake.index.lifecycle", "handshake.lifecycle.respect-version", "handshake.transports.custom")
async def test_both_sides_agree_on_the_revision_and_say_who_they_are(house: House):
    await house.client.discover()
    face = house.client.server
    assert face.revision == house.revision.name
    assert face.info is not None
    assert (face.info.name, face.info.version) == ("house", "1.2.3")
    assert face.info.title == ("The House" if house.has(Feature.STRUCTURED) else None)
    assert bool(face.info.icons) == house.has(Feature.URL_INPUT)
    assert face.instructions == "Look around."


async def test_the_server_declares_what_it_has_in_the_words_of_the_revision(house: House):
    face = await house.client.discover()
    assert face.capabilities is not None
    told = house.has(Feature.LISTEN) or house.keeps_a_session
    assert face.capabilities.tools == ({"listChanged": True} if told else {})
    assert face.capabilities.prompts == ({"listChanged": True} if told else {})
    assert face.capabilities.resources == ({"subscribe": True, "listChanged": True} if told else {})
    assert (face.capabilities.completions is not None) == house.has(Feature.COMPLETIONS_CAPABILITY)
    assert face.capabilities.logging == {}


@pytest.mark.clause("handshake.ping.answered")
async def test_a_ping_is_answered_where_there_are_pings(house: House):
    if house.revision.method("ping") is None:
        pytest.skip("the revision has no pings")
    assert await house.client.request("ping") == {}


@pytest.mark.parametrize("transport", ["stdio", "memory", "http", "pair"])
@pytest.mark.parametrize("revision", revisions.ALL.values(), ids=lambda revision: revision.name)
async def test_a_client_that_speaks_everything_finds_the_only_revision_of_a_server(revision, transport):
    if transport == "pair" and revision.era is Era.STATELESS:
        pytest.skip("the HTTP+SSE pair is of the other era")
    async with moved_in(revision, transport, among=[revision.name], open_minded=True) as house:
        assert (await house.client.call_tool("add", {"a": 1, "b": 2}, output=int)).value == 3
        assert house.client.server.revision == revision.name
    assert house.tape.faults == []
