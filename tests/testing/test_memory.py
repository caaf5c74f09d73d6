import asyncio

import pytest

from mcprelay.errors import ConfigurationError, NotSent
from mcprelay.testing import check_channel, memory_channels


async def test_memory_channels_keep_the_promises_of_a_channel():
    await check_channel(memory_channels)


async def test_what_one_end_sends_the_other_receives():
    near, far = memory_channels()
    await near.send(b"ping")
    assert await far.receive() == b"ping"
    await far.send(b"pong")
    assert await near.receive() == b"pong"


async def test_only_so_much_waits_for_the_other_end():
    near, far = memory_channels(buffered_bytes=100)
    await near.send(b"x" * 101)
    sending = asyncio.ensure_future(near.send(b"late"))
    await asyncio.sleep(0)
    assert not sending.done()
    await far.receive()
    await sending
    assert await far.receive() == b"late"


async def test_a_sender_that_gave_up_holds_up_nobody():
    near, far = memory_channels(buffered_bytes=1)
    await near.send(b"xx")
    first, second = (asyncio.ensure_future(near.send(b"%d" % number)) for number in (1, 2))
    await asyncio.sleep(0)
    assert await far.receive() == b"xx"  # it is the turn of the first one, which gives up
    first.cancel()
    assert await far.receive() == b"2"
    await second


async def test_senders_that_wait_are_told_when_the_channel_is_closed():
    near, far = memory_channels(buffered_bytes=1)
    await near.send(b"xx")
    senders = [asyncio.ensure_future(near.send(b"%d" % number)) for number in range(3)]
    await asyncio.sleep(0)
    await far.aclose()
    assert [type(error) for error in await asyncio.gather(*senders, return_exceptions=True)] == [NotSent] * 3
    with pytest.raises(NotSent):
        await near.send(b"late")


@pytest.mark.parametrize("size", ["100", None, -1])
def test_what_may_wait_is_told_in_bytes(size):
    with pytest.raises(ConfigurationError, match="buffered_bytes is a number that is not negative"):
        memory_channels(buffered_bytes=size)
