"""How a session of the handshake era begins: what is said first, what is agreed on, and what must wait."""

import asyncio
from typing import Any

import pytest

from mcprelay import Client, RevisionUnsupported, Server, revisions
from mcprelay.client.memory import Memory
from mcprelay.revisions import NEWEST_HANDSHAKE, Era, Revision
from mcprelay.testing import ScriptedChannel
from tests.client.peer import INITIALIZED
from tests.client.scripted_http import Exchange, ScriptedHttp
from tests.matrix.house import make
from tests.server.test_connection import Client as RawClient
from tests.server.wire import INFO, notification, request, until
from tests.wire_schema import validate_message

HANDSHAKE = revisions.of_era(Era.HANDSHAKE)
each = pytest.mark.parametrize("revision", HANDSHAKE, ids=lambda revision: revision.name)


@pytest.mark.clause(
    "handshake.lifecycle.first",
    "handshake.lifecycle.initialize",
    "handshake.lifecycle.initialized",
    "handshake.lifecycle.nothing-before-answer",
    "handshake.lifecycle.version-supported",
)
@each
async def test_a_client_says_nothing_but_initialize_until_it_is_answered(revision: Revision):
    channel = ScriptedChannel()
    client = Client(channel, revision=revision.name)
    opening = asyncio.ensure_future(client.connect())
    await asyncio.sleep(0)
    calls = [asyncio.ensure_future(client.call_tool("t", {"n": number})) for number in range(3)]
    greeting = await channel.expect("initialize")
    validate_message(revision.name, greeting, sender="client")
    params = greeting["params"]
    assert params["protocolVersion"] == revision.name
    assert params["capabilities"] == {}
    assert params["clientInfo"]["name"]
    assert params["clientInfo"]["version"]
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(channel.sent) == 1
    channel.reply(greeting, {**INITIALIZED, "protocolVersion": revision.name})
    validate_message(revision.name, await channel.expect("notifications/initialized"), sender="client")
    for _ in calls:
        channel.reply(await channel.expect("tools/call"), {"content": []})
    await asyncio.gather(opening, *calls)
    await client.aclose()


@pytest.mark.clause("handshake.lifecycle.version-latest")
async def test_a_client_that_speaks_everything_proposes_the_newest_version_of_the_era():
    channel = ScriptedChannel()
    client = Client(channel, memory=Memory())
    connecting = asyncio.ensure_future(client.connect())
    channel.refuse(await channel.expect("server/discover"), -32601)
    greeting = await channel.expect("initialize")
    assert greeting["params"]["protocolVersion"] == NEWEST_HANDSHAKE.name
    channel.reply(greeting, {**INITIALIZED, "protocolVersion": HANDSHAKE[-1].name})
    await connecting
    assert client.server.revision == HANDSHAKE[-1].name
    await client.aclose()


@pytest.mark.clause("handshake.lifecycle.disconnect", "handshake.lifecycle.errors-prepared")
async def test_a_client_hangs_up_on_a_version_that_it_does_not_speak():
    channel = ScriptedChannel()
    client = Client(channel, revision=NEWEST_HANDSHAKE.name)
    connecting = asyncio.ensure_future(client.connect())
    channel.reply(await channel.expect("initialize"), {**INITIALIZED, "protocolVersion": "2020-01-01"})
    with pytest.raises(RevisionUnsupported, match="2020-01-01"):
        await connecting
    assert len(channel.sent) == 1
    await until(lambda: channel.closed)
    await client.aclose()


@pytest.mark.clause("handshake.cancellation.initialize")
async def test_a_handshake_that_is_given_up_is_not_cancelled_on_a_channel():
    channel = ScriptedChannel()
    client = Client(channel, revision=NEWEST_HANDSHAKE.name)
    connecting = asyncio.ensure_future(client.connect())
    await channel.expect("initialize")
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    await client.aclose()
    assert len(channel.sent) == 1


@pytest.mark.clause("handshake.cancellation.initialize")
async def test_a_handshake_that_is_given_up_is_not_cancelled_over_http():
    async def respond(exchange: Exchange) -> None:
        await exchange.left()

    async with ScriptedHttp(respond) as http:
        async with Client(http.url, revision=NEWEST_HANDSHAKE.name, memory=Memory()) as client:
            calling = asyncio.ensure_future(client.call_tool("t"))
            await http.came(of="initialize")
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
    assert http.methods == ["initialize"]


# --- the server


@pytest.mark.clause("handshake.lifecycle.initialize-answer", "handshake.lifecycle.version-same")
@each
async def test_a_server_answers_in_the_proposed_version_with_who_it_is_and_what_it_has(revision: Revision):
    client = RawClient(make(), revision.name)
    result = await client.initialize()
    assert result["protocolVersion"] == revision.name
    assert (result["serverInfo"]["name"], result["serverInfo"]["version"]) == ("house", "1.2.3")
    assert result["capabilities"].keys() >= {"tools", "resources", "prompts"}
    await client.channel.aclose()


@pytest.mark.clause("handshake.lifecycle.version-other", "handshake.lifecycle.version-other-latest")
@pytest.mark.parametrize("newest", range(len(HANDSHAKE)))
async def test_a_server_answers_an_unknown_version_with_the_latest_that_it_has(newest: int):
    among = [revision.name for revision in HANDSHAKE[newest:]]
    client = RawClient(make(among=among), among[0])
    params = {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": INFO}
    answer = await client.ask("initialize", params)
    assert answer["result"]["protocolVersion"] == among[0]
    await client.channel.aclose()


@pytest.mark.clause("handshake.lifecycle.first", "handshake.ping.answered")
@each
async def test_before_the_handshake_a_server_answers_pings_alone(revision: Revision):
    client = RawClient(make(among=[revision.name]), revision.name)
    assert (await client.ask("ping", id="early"))["result"] == {}
    assert "error" in await client.ask("tools/list", {}, id=2)
    await client.initialize()
    assert "result" in await client.ask("tools/list", {}, id=3)
    await client.channel.aclose()


@pytest.mark.clause("handshake.lifecycle.nothing-before-initialized")
@each
async def test_a_server_says_nothing_of_its_own_before_the_client_is_ready(revision: Revision):
    server: Server = make()
    client = RawClient(server, revision.name)
    params = {"protocolVersion": revision.name, "capabilities": {"roots": {}}, "clientInfo": INFO}
    assert "result" in await client.ask("initialize", params)
    server.add_tool(lambda: "x", name="early")
    assert (await client.ask("ping", id="p"))["id"] == "p"
    await client.tell(notification("notifications/initialized"))
    assert (await client.ask("ping", id="q"))["id"] == "q"
    server.add_tool(lambda: "y", name="late")
    assert (await client.hear())["method"] == "notifications/tools/list_changed"
    await client.channel.aclose()


@pytest.mark.clause(
    "handshake.index.id-never-reused", "handshake.index.server-request-id", "handshake.index.server-request-id-null"
)
@each
async def test_a_server_never_uses_an_id_twice_in_a_session(revision: Revision):
    client = RawClient(make(), revision.name)
    await client.initialize(roots={})
    ids: list[Any] = []
    for number in range(5):
        await client.tell(request("tools/call", {"name": "ask_roots", "arguments": {}}, id=number))
        question = await client.hear()
        assert question["method"] == "roots/list"
        ids.append(question["id"])
        await client.tell({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        assert (await client.hear())["id"] == number
    assert all(type(one) in (int, str) for one in ids)
    assert len(set(ids)) == 5
    await client.channel.aclose()


@pytest.mark.clause("handshake.index.id-never-reused")
async def test_a_client_never_uses_an_id_twice_in_a_session():
    channel = ScriptedChannel()
    client = Client(channel, revision=NEWEST_HANDSHAKE.name)
    connecting = asyncio.ensure_future(client.connect())
    greeting = await channel.expect("initialize")
    channel.reply(greeting, INITIALIZED)
    await channel.expect("notifications/initialized")
    await connecting
    ids = [greeting["id"]]
    for _ in range(50):
        calling = asyncio.ensure_future(client.call_tool("t"))
        asked = await channel.expect("tools/call")
        ids.append(asked["id"])
        channel.reply(asked, {"content": []})
        await calling
    assert len(set(ids)) == 51
    await client.aclose()
