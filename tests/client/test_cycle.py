"""However a stdio client ends, and whenever: no process, no descriptor and no task is left of it."""

import asyncio
import contextlib
import os
import random
import sys
from pathlib import Path

import pytest

from mcprelay import Client
from mcprelay.client.memory import Memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts processes and descriptors in /proc")

SERVER = r"""
while read -r line; do
  case $line in *'"id":'*) id=${line#*'"id":'}; id=${id%%[,\}]*} ;; *) continue ;; esac
  case $line in
    *server/discover*) result='"supportedVersions":["2026-07-28"],"capabilities":{}' ;;
    *) result='"content":[]' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}\n' "$id" "$result"
done
"""
TINY = ["sh", "-c", SERVER]
"""A server that starts within a millisecond or two."""


class CountingLoop(asyncio.SelectorEventLoop):
    """A loop that counts its passes, and calls `passed` after each."""

    passes = 0

    def passed(self) -> None:
        """Nothing to do yet."""

    def _run_once(self) -> None:
        super()._run_once()
        self.passes += 1
        self.passed()


def children():
    """The processes that this one has started and that are there, dead or alive."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def descriptors():
    """What is open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def settled():
    """Wait until every other task has ended: what is being ended beside the callers is bounded in time."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        _, late = await asyncio.wait(others, timeout=10)
        assert not late, late


def cancelled_after(passes, use):
    """Run `use`, cancelled after so many passes of the loop; whether it had ended before."""
    loop = CountingLoop()
    try:
        using = loop.create_task(use())
        begun = loop.passes

        def passed():
            if loop.passes - begun == passes:
                using.cancel()

        loop.passed = passed
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(using)
        ended = loop.passes - begun < passes
        loop.run_until_complete(settled())
        return ended
    finally:
        loop.close()


async def opened():
    async with Client(TINY, memory=Memory()):
        pass


async def used():
    async with Client(TINY, memory=Memory()) as client:
        await client.call_tool("x")


@pytest.mark.parametrize("use", [opened, used])
def test_a_client_that_is_cancelled_in_any_pass_of_the_loop_leaves_nothing(use):
    before = children(), descriptors()
    passes, ended = 0, False
    while not ended and passes < 40:
        passes += 1
        ended = cancelled_after(passes, use)
        assert (children(), descriptors()) == before, f"cancelled in pass {passes}"
    assert passes > 5


def test_whoever_is_cancelled_just_when_the_connection_is_made_leaves_nothing():
    before = children(), descriptors()

    async def cancelled_by_its_own_success():
        client = Client(TINY, memory=Memory())
        connecting = asyncio.ensure_future(client.connect())
        await asyncio.sleep(0)
        client._connection._opening.add_done_callback(lambda _: connecting.cancel())
        with pytest.raises(asyncio.CancelledError):
            await connecting
        assert client._connection.current is None
        await settled()

    asyncio.run(cancelled_by_its_own_success())
    assert (children(), descriptors()) == before


async def test_one_of_two_that_connect_may_be_cancelled_at_any_time_without_harm_to_the_other():
    client = Client(TINY, memory=Memory())
    one, two = (asyncio.ensure_future(client.connect()) for _ in range(2))
    await asyncio.sleep(0)
    client._connection._opening.add_done_callback(lambda _: one.cancel())
    with pytest.raises(asyncio.CancelledError):
        await one
    await two
    assert (await client.call_tool("x")).content == ()
    await client.aclose()


async def test_a_close_that_is_cancelled_closes_all_the_same():
    before = children(), descriptors()
    client = await Client(TINY, memory=Memory()).connect()
    closing = asyncio.ensure_future(client.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await client.connect()  # waits for the end of the other child
    await client.aclose()
    await settled()
    assert (children(), descriptors()) == before


def test_five_hundred_clients_that_connect_call_and_close_or_are_cancelled_leave_nothing():
    before = children(), descriptors()
    chance = random.Random(4)
    ended = {"used": 0, "cancelled": 0}

    async def one(number):
        using = asyncio.ensure_future(used())
        if number % 3 == 0:
            asyncio.get_running_loop().call_later(chance.uniform(0, 0.03), using.cancel)
        await asyncio.wait([using])
        ended["cancelled" if using.cancelled() else "used"] += 1

    async def all_of_them():
        waiting = iter(range(500))

        async def worker():
            for number in waiting:
                await one(number)

        await asyncio.gather(*(worker() for _ in range(8)))
        await settled()

    asyncio.run(all_of_them())
    assert (children(), descriptors()) == before
    assert ended["used"] + ended["cancelled"] == 500
    assert ended["used"] >= 333
    assert ended["cancelled"] >= 20
