"""Questions that the agreed revision does not have: a client that could answer them does not."""

import asyncio

import pytest

from mcprelay import Client, revisions
from mcprelay.revisions import Era, Feature
from mcprelay.testing import ScriptedChannel

HANDSHAKE = [revision for revision in revisions.ALL.values() if revision.era is Era.HANDSHAKE]
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


@pytest.mark.parametrize("revision", HANDSHAKE, ids=lambda revision: revision.name)
async def test_a_form_is_answered_only_where_the_revision_has_forms(revision):
    asked = []
    channel = ScriptedChannel()
    client = Client(channel, revision=revision.name, on_elicit=lambda form: asked.append(form) or {"name": "Ada"})
    connecting = asyncio.ensure_future(client.connect())
    greeting = await channel.expect("initialize")
    assert ("elicitation" in greeting["params"]["capabilities"]) == revision.has(Feature.ELICITATION)
    face = {"capabilities": {}, "serverInfo": {"name": "scripted", "version": "1"}}
    channel.reply(greeting, {"protocolVersion": revision.name, **face})
    await channel.expect("notifications/initialized")
    await connecting
    channel.call(7, "elicitation/create", FORM)
    answer = await channel.expect()
    if revision.has(Feature.ELICITATION):
        assert answer["result"]["content"] == {"name": "Ada"}
    else:
        assert answer["error"]["code"] == -32601
        assert asked == []
    await client.aclose()
