"""How long a client of the handshake era waits, and what it says when it waits no longer."""

import asyncio
from typing import Any

import pytest

from mcprelay import DeadlineExceeded
from tests.client.conftest import StoppedClock
from tests.client.peer import in_session


@pytest.fixture
async def clock() -> StoppedClock:
    """Time stands still."""
    return StoppedClock(asyncio.get_running_loop())


@pytest.mark.clause(
    "handshake.lifecycle.timeouts",
    "handshake.lifecycle.timeout-per-request",
    "handshake.lifecycle.timeout-cancels",
    "handshake.cancellation.own",
    "handshake.cancellation.client-late",
    "handshake.cancellation.races",
)
@pytest.mark.parametrize(("options", "seconds"), [({}, 60), ({"timeout": 7}, 7)], ids=["default", "own"])
async def test_a_call_that_takes_too_long_is_cancelled_by_its_id_and_a_late_answer_ignored(
    options: Any, seconds: float, clock: StoppedClock
):
    async with in_session(request_timeout=60) as (client, channel):
        slow = asyncio.ensure_future(client.call_tool("slow", **options))
        other = asyncio.ensure_future(client.call_tool("other", timeout=1000))
        asked, kept = await channel.expect("tools/call"), await channel.expect("tools/call")
        await clock.advance(seconds - 0.5)
        assert not slow.done()
        await clock.advance(1)
        with pytest.raises(DeadlineExceeded):
            await slow
        notice = await channel.expect("notifications/cancelled")
        assert notice["params"]["requestId"] == asked["id"]
        channel.reply(asked, {"content": [{"type": "text", "text": "late"}]})
        channel.reply(kept, {"content": [{"type": "text", "text": "in time"}]})
        assert (await other).text == "in time"
        assert sum(b"notifications/cancelled" in sent for sent in channel.sent) == 1


@pytest.mark.clause("handshake.lifecycle.timeout-maximum")
async def test_progress_puts_a_timeout_off_and_never_the_deadline(clock: StoppedClock):
    async with in_session() as (client, channel):
        deadline = asyncio.get_running_loop().time() + 25
        calling = asyncio.ensure_future(
            client.call_tool("slow", timeout=10, deadline=deadline, on_progress=lambda _: None)
        )
        asked = await channel.expect("tools/call")
        token = asked["params"]["_meta"]["progressToken"]
        for step in range(4):
            channel.notify("notifications/progress", {"progressToken": token, "progress": step})
            for _ in range(5):
                await asyncio.sleep(0)
            assert not calling.done()
            await clock.advance(6)
        await clock.advance(2)
        with pytest.raises(DeadlineExceeded):
            await calling
        assert (await channel.expect("notifications/cancelled"))["params"]["requestId"] == asked["id"]
