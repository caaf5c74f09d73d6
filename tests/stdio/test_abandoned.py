"""A channel whose loop ended before it did: the child goes, and no descriptor that others have by then is touched."""

import asyncio
import gc
import os
import signal

import pytest
import uvloop

from mcprelay.stdio import process
from mcprelay.stdio.child import ChildChannel
from tests.stdio.program import descriptors

STUBBORN = ["sh", "-c", "trap '' TERM; sleep 300; sleep 300"]


async def being_closed(channel):
    """Closing has begun: the child's input is closed, and it has its grace."""
    closing = asyncio.ensure_future(channel.aclose())
    while channel._outlet._fd >= 0:  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0)
    return closing


async def untouched(channel):
    """Nothing was closed."""


async def outlet_closed(channel):
    """Only what leads to the child."""
    channel._outlet.close()


async def source_closed(channel):
    """Only what comes from the child."""
    channel._source.close()
    channel._errors.close()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("done", [untouched, outlet_closed, source_closed, being_closed])
def test_a_channel_that_is_collected_closes_only_what_is_still_its_own(new_loop, done, monkeypatch):
    unraisable = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)
    warm = new_loop()  # the first of its kind opens what it keeps
    warm.run_until_complete(asyncio.sleep(0))
    warm.close()
    gc.collect()
    before = descriptors()
    loop = new_loop()

    async def begin():
        channel = await ChildChannel.spawn(STUBBORN, grace=60)
        return channel, await done(channel)

    channel, closing = loop.run_until_complete(begin())
    pid = channel.pid
    loop.close()
    # They get the numbers that the channel gave back.
    mine = [os.open(os.devnull, os.O_RDONLY) for _ in range(12)]
    try:
        del channel, closing, loop
        gc.collect()
        gc.collect()
        for fd in mine:
            os.fstat(fd)
        assert not any(isinstance(one.exc_value, OSError) for one in unraisable)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    finally:
        for fd in mine:
            os.close(fd)
    gc.collect()
    assert descriptors() == before


async def test_a_group_that_was_killed_is_gone_and_its_number_is_never_signalled_again(monkeypatch):
    group = process.start(["cat"], env={}, cwd=None, capture_stderr=True)
    group.kill()
    monkeypatch.setattr(process, "_signal_group", lambda leader, signum: pytest.fail("a stranger was signalled"))
    assert group.gone
    group.kill()
    for fd in group.pipes:
        group.close(fd)
        group.close(fd)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_child_is_gone_once_its_loop_is_closed_though_its_channel_is_kept(new_loop):
    loop = new_loop()
    channel = loop.run_until_complete(ChildChannel.spawn(STUBBORN, grace=60))
    loop.close()
    with pytest.raises(ProcessLookupError):
        os.kill(channel.pid, 0)
    assert channel.exit_code == -signal.SIGKILL
    for fd in channel._group.pipes:
        os.fstat(fd)  # they are the channel's until it is dropped


async def test_a_channel_that_is_closed_leaves_no_timer_behind():
    channel = await ChildChannel.spawn(["cat"])
    held = channel._tied
    await channel.aclose()
    await asyncio.sleep(0)
    gc.collect()
    assert held() is None or held().cancelled()
