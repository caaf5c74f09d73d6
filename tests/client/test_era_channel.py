"""Which era a server behind a channel is of (stdio, "Backward Compatibility"; cases T51)."""

import asyncio

import pytest

from mcprelay import CallFailed, Client, ConnectFailed, Evidence, RemoteError, RevisionUnsupported
from mcprelay.testing import ScriptedChannel
from tests.client.peer import DISCOVERED, INITIALIZED, LEGACY, MODERN, connected, in_session, tool_result

META = "io.modelcontextprotocol/"


async def finish(channel, connecting):
    """Shake hands, and wait for the client."""
    channel.reply(await channel.expect("initialize"), INITIALIZED)
    await channel.expect("notifications/initialized")
    return await connecting


async def test_a_server_of_the_newest_era_is_discovered_and_spoken_to_with_metadata_on_each_request():
    async with connected() as (client, channel):
        assert client.server.revision == MODERN
        assert client.server.info.name == "scripted"
        assert client.server.instructions == "be kind"
        calling = asyncio.ensure_future(client.call_tool("echo", {"text": "x"}))
        request = await channel.expect("tools/call")
        channel.reply(request, tool_result("x"))
        assert (await calling).value == "x"
        meta = request["params"]["_meta"]
        assert meta[META + "protocolVersion"] == MODERN
        assert meta[META + "clientInfo"]["name"] == "mcprelay"
        assert META + "clientCapabilities" in meta
        assert request["params"]["arguments"] == {"text": "x"}


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32000, -32603, 7])
async def test_any_error_that_is_not_of_the_newest_era_means_a_handshake(code):
    channel = ScriptedChannel()
    client = Client(channel)
    connecting = asyncio.ensure_future(client.connect())
    channel.refuse(await channel.expect("server/discover"), code, "initialize first")
    await finish(channel, connecting)
    assert client.server.revision == LEGACY
    await client.aclose()


async def test_an_answer_to_the_probe_that_is_no_discovery_means_a_handshake():
    channel = ScriptedChannel()
    client = Client(channel)
    connecting = asyncio.ensure_future(client.connect())
    channel.reply(await channel.expect("server/discover"), {"hello": "there"})
    await finish(channel, connecting)
    assert client.server.revision == LEGACY
    await client.aclose()


async def test_a_silent_server_is_greeted_too_and_the_first_valid_answer_counts():
    channel = ScriptedChannel()
    client = Client(channel, probe_timeout=0.01)
    connecting = asyncio.ensure_future(client.connect())
    probe = await channel.expect("server/discover")
    await finish(channel, connecting)
    assert client.server.revision == LEGACY
    channel.reply(probe, DISCOVERED)  # late, and no news any more
    calling = asyncio.ensure_future(client.call_tool("echo"))
    channel.reply(await channel.expect("tools/call"), {"content": []})
    await calling
    assert client.server.revision == LEGACY
    await client.aclose()


async def test_a_slow_server_of_the_newest_era_that_answers_first_is_not_shaken_hands_with():
    channel = ScriptedChannel()
    client = Client(channel, probe_timeout=0.01)
    connecting = asyncio.ensure_future(client.connect())
    probe = await channel.expect("server/discover")
    greeting = await channel.expect("initialize")
    channel.reply(probe, DISCOVERED)
    await connecting
    channel.refuse(greeting, -32601)
    assert client.server.revision == MODERN
    assert len(channel.sent) == 2  # neither is cancelled: one may not be, the other may be unknown
    await client.aclose()


async def test_a_slow_server_that_refuses_the_handshake_first_is_waited_for():
    channel = ScriptedChannel()
    client = Client(channel, probe_timeout=0.01)
    connecting = asyncio.ensure_future(client.connect())
    probe = await channel.expect("server/discover")
    channel.refuse(await channel.expect("initialize"), -32601, "I speak 2026-07-28")
    await asyncio.sleep(0)
    channel.reply(probe, DISCOVERED)
    await connecting
    assert client.server.revision == MODERN
    await client.aclose()


async def test_a_server_that_names_only_an_older_revision_is_greeted_with_exactly_that():
    channel = ScriptedChannel()
    client = Client(channel)
    connecting = asyncio.ensure_future(client.connect())
    data = {"supported": ["2025-06-18"], "requested": MODERN}
    channel.refuse(await channel.expect("server/discover"), -32022, "no", data)
    greeting = await channel.expect("initialize")
    assert greeting["params"]["protocolVersion"] == "2025-06-18"
    channel.reply(greeting, {**INITIALIZED, "protocolVersion": "2025-06-18"})
    await connecting
    assert client.server.revision == "2025-06-18"
    await client.aclose()


@pytest.mark.parametrize("data", [{"supported": ["1999-01-01"]}, {"supported": []}, {"supported": 7}, None])
async def test_an_unsupported_revision_is_never_fallen_back_to_blindly(data):
    channel = ScriptedChannel()
    client = Client(channel)
    connecting = asyncio.ensure_future(client.connect())
    channel.refuse(await channel.expect("server/discover"), -32022, "no", data)
    with pytest.raises(RevisionUnsupported) as caught:
        await connecting
    assert MODERN in str(caught.value)
    assert len(channel.sent) == 1
    assert channel.closed


async def test_a_server_that_names_the_revision_it_refused_is_asked_once_more_and_no_oftener():
    channel = ScriptedChannel()
    client = Client(channel)
    connecting = asyncio.ensure_future(client.connect())
    for _ in range(2):
        channel.refuse(await channel.expect("server/discover"), -32022, "no", {"supported": [MODERN]})
    with pytest.raises(RevisionUnsupported):
        await connecting
    assert len(channel.sent) == 2


async def test_a_discovery_that_names_no_revision_of_ours_ends_it():
    channel = ScriptedChannel()
    connecting = asyncio.ensure_future(Client(channel).connect())
    channel.reply(await channel.expect("server/discover"), {**DISCOVERED, "supportedVersions": ["2030-01-01"]})
    with pytest.raises(RevisionUnsupported) as caught:
        await connecting
    assert caught.value.supported == ("2030-01-01",)


async def test_a_handshake_that_answers_with_a_revision_that_we_do_not_speak_ends_it():
    channel = ScriptedChannel()
    connecting = asyncio.ensure_future(Client(channel, revision=LEGACY).connect())
    channel.reply(await channel.expect("initialize"), {**INITIALIZED, "protocolVersion": "2020-01-01"})
    with pytest.raises(RevisionUnsupported, match="2020-01-01"):
        await connecting


async def test_a_refused_handshake_is_the_servers_error():
    channel = ScriptedChannel()
    connecting = asyncio.ensure_future(Client(channel, revision=LEGACY).connect())
    channel.refuse(await channel.expect("initialize"), -32000, "go away")
    with pytest.raises(RemoteError, match="go away") as caught:
        await connecting
    assert caught.value.evidence is Evidence.ANSWERED


async def test_a_server_that_ends_during_the_handshake_was_never_reached():
    channel = ScriptedChannel()
    connecting = asyncio.ensure_future(Client(channel).connect())
    await channel.expect("server/discover")
    channel.end()
    with pytest.raises(ConnectFailed, match="the server closed the connection") as caught:
        await connecting
    assert caught.value.evidence is Evidence.NOT_SENT


async def test_a_server_that_never_answers_fails_the_connection_within_its_time():
    channel = ScriptedChannel()
    with pytest.raises(CallFailed):
        await Client(channel, probe_timeout=0.01, connect_timeout=0.05).connect()
    assert channel.closed


@pytest.mark.parametrize("revision", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_requests_of_the_handshake_era_carry_no_metadata_of_the_newest(revision):
    async with in_session(initialized={**INITIALIZED, "protocolVersion": revision}) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("echo", {"a": 1}))
        request = await channel.expect("tools/call")
        channel.reply(request, {"content": [{"type": "text", "text": "x"}]})
        result = await calling
        assert request["params"] == {"name": "echo", "arguments": {"a": 1}}
        assert result.value == "x"  # without `resultType`, which is complete


async def test_what_an_older_revision_lacks_is_not_declared_in_it():
    asked = {"on_elicit": lambda question: None, "on_sample": lambda question: "x", "on_roots": ["/tmp"]}
    for revision, elicitation in (("2025-11-25", {"form": {}, "url": {}}), ("2025-06-18", {}), ("2025-03-26", None)):
        channel = ScriptedChannel()
        connecting = asyncio.ensure_future(Client(channel, revision=revision, **asked).connect())
        greeting = await channel.expect("initialize")
        channel.reply(greeting, {**INITIALIZED, "protocolVersion": revision})
        client = await connecting
        capabilities = greeting["params"]["capabilities"]
        assert capabilities.get("elicitation") == elicitation
        assert capabilities["sampling"] == {}
        assert capabilities["roots"] == {}
        await client.aclose()


async def test_a_batch_is_read_in_the_one_revision_that_has_batches():
    initialized = {**INITIALIZED, "protocolVersion": "2025-03-26"}
    async with in_session(initialized=initialized) as (client, channel):
        one, two = (asyncio.ensure_future(client.call_tool("echo", {"n": n})) for n in (1, 2))
        requests = [await channel.expect("tools/call") for _ in range(2)]
        answers = [
            {
                "jsonrpc": "2.0",
                "id": r["id"],
                "result": {"content": [{"type": "text", "text": str(r["params"]["arguments"]["n"])}]},
            }
            for r in reversed(requests)
        ]
        import json

        channel.say(json.dumps(answers).encode())
        assert [(await one).text, (await two).text] == ["1", "2"]
