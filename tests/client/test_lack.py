"""A result without the structured content that its tool has declared (server/tools, "Output Schema")."""

import asyncio

import pytest

from mcprelay import Client, Evidence, Refused, ResponseInvalid, revisions
from mcprelay.revisions import Era, Feature
from mcprelay.testing import ScriptedChannel
from tests.client.peer import INITIALIZED, connected, in_session

OUTPUT = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
DECLARED = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": OUTPUT}
UNDECLARED = {"name": "t", "inputSchema": {"type": "object"}}
TEXT = {"content": [{"type": "text", "text": "nope"}]}
HANDSHAKE = [revision for revision in revisions.ALL.values() if revision.era is Era.HANDSHAKE]
STRUCTURED = [revision.name for revision in HANDSHAKE if revision.has(Feature.STRUCTURED)]
PLAIN = [revision.name for revision in HANDSHAKE if not revision.has(Feature.STRUCTURED)]


async def outcome(client: Client, channel: ScriptedChannel, tool, result):
    """What comes of a call of a tool that was listed so."""
    listing = asyncio.ensure_future(client.list_tools())
    channel.reply(await channel.expect("tools/list"), {"resultType": "complete", "tools": [tool]})
    await listing
    calling = asyncio.ensure_future(client.try_call_tool("t"))
    channel.reply(await channel.expect("tools/call"), result)
    return await calling


@pytest.mark.parametrize("result", [{**TEXT, "resultType": "complete"}, TEXT, {"content": []}], ids=repr)
async def test_what_a_tool_has_declared_and_does_not_give_is_told(result):
    async with connected() as (client, channel):
        with pytest.raises(ResponseInvalid) as caught:
            await outcome(client, channel, DECLARED, result)
    assert str(caught.value).startswith(
        "tools/call 't': the result has no structured content, and the tool's output schema says that it has"
    )
    assert caught.value.evidence is Evidence.ANSWERED
    assert caught.value.excerpt == ("nope" if result["content"] else "")


@pytest.mark.parametrize("revision", STRUCTURED)
async def test_it_is_told_in_each_revision_with_sessions_that_has_structured_content(revision):
    async with in_session(initialized={**INITIALIZED, "protocolVersion": revision}) as (client, channel):
        with pytest.raises(ResponseInvalid, match="no structured content"):
            await outcome(client, channel, DECLARED, TEXT)


@pytest.mark.parametrize("revision", PLAIN)
async def test_where_a_revision_has_no_structured_content_the_text_is_the_value(revision):
    async with in_session(initialized={**INITIALIZED, "protocolVersion": revision}) as (client, channel):
        assert (await outcome(client, channel, DECLARED, TEXT)).value == "nope"


async def test_what_is_not_declared_need_not_come():
    async with connected() as (client, channel):
        assert (await outcome(client, channel, UNDECLARED, TEXT)).value == "nope"


async def test_a_refusal_needs_no_structured_content():
    async with connected() as (client, channel):
        refused = await outcome(client, channel, DECLARED, {**TEXT, "isError": True})
        assert isinstance(refused, Refused)
        assert refused.text == "nope"


async def test_nothing_is_held_against_what_was_declared_where_nobody_wants_that():
    async with connected(check_output=False) as (client, channel):
        assert (await outcome(client, channel, DECLARED, TEXT)).value == "nope"
