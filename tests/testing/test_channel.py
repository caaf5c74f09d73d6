import asyncio
import re

import pytest

from mcprelay.errors import NotSent
from mcprelay.ports import Channel
from mcprelay.testing import ScriptedChannel, ScriptFault


async def test_the_test_plays_the_peer():
    channel = ScriptedChannel()
    assert isinstance(channel, Channel)

    async def code_under_test():
        await channel.send(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}')
        return await channel.receive()

    running = asyncio.ensure_future(code_under_test())
    request = await channel.expect("tools/call")
    channel.reply(request, {"content": []})
    assert await running == b'{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'
    assert channel.sent == [b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}']


async def test_another_message_than_expected_is_told():
    channel = ScriptedChannel()
    await channel.send(b'{"jsonrpc":"2.0","id":7,"method":"ping"}')
    with pytest.raises(AssertionError, match=r"expected a call of tools/list, and this came: .*ping"):
        await channel.expect("tools/list")


async def test_a_message_that_does_not_come_is_told():
    with pytest.raises(AssertionError, match=r"expected a call of ping, and nothing came in 0.01 s"):
        await ScriptedChannel().expect("ping", patience=0.01)
    with pytest.raises(AssertionError, match="expected a message"):
        await ScriptedChannel().expect(patience=0.01)


async def test_the_peer_can_say_anything():
    channel = ScriptedChannel()
    channel.say(b"{nonsense")
    channel.notify("notifications/message", {"level": "info"})
    channel.call("a", "roots/list")
    channel.refuse({"id": 3}, -32601, "no such method", {"method": "x"})
    channel.refuse({"id": 4}, -32603)
    channel.end()
    assert [await channel.receive() for _ in range(7)] == [
        b"{nonsense",
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}',
        b'{"jsonrpc":"2.0","id":"a","method":"roots/list","params":{}}',
        b'{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no such method","data":{"method":"x"}}}',
        b'{"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"no"}}',
        b"",
        b"",
    ]


async def test_closing_ends_a_pending_receive_and_later_sends():
    channel = ScriptedChannel()
    receiving = asyncio.ensure_future(channel.receive())
    await asyncio.sleep(0)
    await channel.aclose()
    assert await receiving == b""
    assert channel.closed
    with pytest.raises(NotSent):
        await channel.send(b"{}")


async def test_sends_can_fail_and_wait_as_the_test_says():
    channel = ScriptedChannel()
    channel.hold_sends()
    sending = asyncio.ensure_future(channel.send(b"{}"))
    await asyncio.sleep(0)
    assert not sending.done()
    channel.release_sends()
    await sending
    channel.fail_sends(ConnectionResetError("gone"))
    with pytest.raises(ConnectionResetError):
        await channel.send(b"{}")
    assert channel.sent == [b"{}"]


async def test_several_wait_for_what_changes_at_once():
    """A receiver and an expecting test both wait; each gets what is for it."""
    channel = ScriptedChannel()
    receiving = asyncio.ensure_future(channel.receive())
    expecting = asyncio.ensure_future(channel.expect())
    await asyncio.sleep(0)
    channel.say(b"{}")
    await channel.send(b'{"id":1}')
    assert await receiving == b"{}"
    assert await expecting == {"id": 1}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (lambda channel: channel.say("{}"), "say: a message is bytes, at least one, and not '{}' (str): encode it"),
        (lambda channel: channel.say(b""), "and not b'' (bytes): end() ends the channel"),
        (lambda channel: channel.reply({"method": "notifications/initialized"}, {}), "what is answered is a request"),
        (lambda channel: channel.reply(7, {}), "is a request that expect() gave, with an id, and not 7 (int)"),
        (lambda channel: channel.refuse([], -32601), "what is answered is a request that expect() gave"),
        (lambda channel: channel.reply({"id": 1}, object()), "JSON cannot carry"),
        (lambda channel: channel.notify("x", {"a": object()}), "JSON cannot carry"),
        (lambda channel: channel.fail_sends("full"), "NotSent('full') is raised, and not 'full' (str)"),
        (lambda channel: channel.fail_sends(NotSent), "and not the type NotSent"),
    ],
)  # fmt: skip
async def test_a_script_that_is_wrong_is_told_where_it_is_written(script, said):
    channel = ScriptedChannel()
    with pytest.raises(ScriptFault, match=re.escape(said)):
        script(channel)
    await channel.send(b"{}")  # and has changed nothing
    channel.say(b"1")
    assert await channel.receive() == b"1"
