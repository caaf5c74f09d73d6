"""Connecting that is given up: whoever gave up goes on at once, and what was begun is ended beside it."""

import asyncio
import gc
import os
import sys

import pytest

from mcprelay import Client, ConfigurationError, ConnectFailed, DeadlineExceeded, Evidence
from mcprelay.client.pool import ClientPool
from mcprelay.stdio import process
from mcprelay.testing import ScriptedChannel
from tests.client.peer import DISCOVERED, fresh

DEAF = [sys.executable, "-c", "import time; time.sleep(60)"]


class Slow(ScriptedChannel):
    """A channel that ends only once it may."""

    def __init__(self):
        super().__init__()
        self.may_end = asyncio.Event()
        self.ended = False

    async def aclose(self):
        await self.may_end.wait()
        self.ended = True
        await super().aclose()


class Source:
    """Makes a slow channel for each connection."""

    def __init__(self):
        self.channels = []
        self.made = asyncio.Queue()

    def connect(self):
        self.channels.append(Slow())
        self.made.put_nowait(self.channels[-1])
        return self.channels[-1]

    async def greeted(self):
        """The next channel, once its greeting was sent, and that."""
        channel = await self.made.get()
        return channel, await channel.expect("server/discover")


async def turns(number):
    for _ in range(number):
        await asyncio.sleep(0)


async def through(act):
    """Connect in a task, cancel it when it waits for the greeting, and give the task."""
    source = Source()
    client = Client(source)
    connecting = asyncio.ensure_future(act(client))
    await source.greeted()
    return source, client, connecting


async def enter(client):
    async with client:
        pytest.fail("nothing was there to connect to")


@pytest.mark.parametrize("act", [Client.connect, enter], ids=["connect", "block"])
async def test_who_is_cancelled_while_it_connects_goes_on_at_once_and_closing_waits_for_the_end(act):
    source, client, connecting = await through(act)
    connecting.cancel()
    await turns(5)
    assert connecting.cancelled()
    closing = asyncio.ensure_future(client.aclose())
    await turns(10)
    assert not closing.done()
    source.channels[0].may_end.set()
    await closing
    assert source.channels[0].ended
    assert len(asyncio.all_tasks()) == 1


async def test_the_next_attempt_begins_once_what_was_given_up_has_ended():
    source, client, connecting = await through(Client.connect)
    connecting.cancel()
    again = asyncio.ensure_future(client.connect())
    await turns(20)
    assert connecting.cancelled()
    assert len(source.channels) == 1
    source.channels[0].may_end.set()
    channel, greeting = await source.greeted()
    channel.may_end.set()
    channel.reply(greeting, DISCOVERED)
    await again
    await client.aclose()
    assert all(one.ended for one in source.channels)


@pytest.mark.parametrize("closes", [False, True], ids=["alone", "closed-meanwhile"])
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("turn", range(14))
async def test_in_whichever_turn_it_is_given_up_nothing_is_left_behind(turn, twice, closes):
    source = Source()
    client = Client(source)
    connecting = asyncio.ensure_future(client.connect())
    await turns(turn)
    connecting.cancel()
    if closes:
        closing = asyncio.ensure_future(client.aclose())
    await turns(1)
    if twice:
        connecting.cancel()
    await turns(5)
    assert connecting.cancelled()
    for channel in source.channels:
        channel.may_end.set()
    if closes:
        await closing
    await client.aclose()
    assert all(one.ended for one in source.channels)
    assert len(asyncio.all_tasks()) == 1


async def test_a_call_that_is_cancelled_while_it_connects_anew_goes_on_at_once():
    source = Source()
    client = Client(source)
    connecting = asyncio.ensure_future(client.connect())
    channel, greeting = await source.greeted()
    channel.reply(greeting, DISCOVERED)
    await connecting
    channel.may_end.set()
    await client._connection.current.aclose()
    calling = asyncio.ensure_future(client.call_tool("x"))
    channel, _ = await source.greeted()
    calling.cancel()
    await turns(5)
    assert calling.cancelled()
    channel.may_end.set()
    await client.aclose()
    assert channel.ended


async def test_a_pool_is_closed_once_what_was_given_up_has_ended():
    source = Source()
    pool = ClientPool()
    getting = asyncio.ensure_future(pool.get(source))
    await source.greeted()
    getting.cancel()
    await turns(5)
    assert getting.cancelled()
    again = asyncio.ensure_future(pool.get(source))
    await turns(20)
    assert len(source.channels) == 1  # two of one server are not there at once
    again.cancel()
    closing = asyncio.ensure_future(pool.aclose())
    await turns(10)
    assert again.cancelled()
    assert not closing.done()
    source.channels[0].may_end.set()
    await closing
    assert source.channels[0].ended


@pytest.mark.parametrize("kind", ["timeout", "deadline"])
async def test_getting_a_client_may_be_bounded_in_time(kind):
    until = {"timeout": 0.05} if kind == "timeout" else {"deadline": asyncio.get_running_loop().time() + 0.05}
    async with ClientPool(close_timeout=0.01) as pool:
        said = "timeout=0.05 seconds" if kind == "timeout" else "deadline"
        with pytest.raises(DeadlineExceeded, match=said) as caught:
            await pool.get(DEAF, **until)
        assert caught.value.evidence is Evidence.NOT_SENT


async def test_what_failed_by_itself_in_that_time_is_told_as_it_is():
    async with ClientPool() as pool:
        with pytest.raises(ConnectFailed) as caught:
            await pool.get(["/no/such/program"], timeout=30)
        assert not isinstance(caught.value, DeadlineExceeded)


@pytest.mark.parametrize("until", [{"timeout": 0}, {"timeout": "1"}, {"deadline": "soon"}])
async def test_a_time_that_is_none_is_refused(until):
    async with ClientPool() as pool:
        with pytest.raises(ConfigurationError, match="timeout|deadline"):
            await pool.get(DEAF, **until)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="processes have groups on POSIX alone")
@pytest.mark.parametrize("debug", [False, True], ids=["plain", "debug"])
def test_a_loop_that_ends_right_after_leaves_no_process_and_logs_nothing(debug, caplog, monkeypatch):
    groups = []
    start = process.start

    def started(*args, **options):
        groups.append(start(*args, **options))
        return groups[-1]

    monkeypatch.setattr(process, "start", started)

    async def main():
        connecting = asyncio.ensure_future(fresh(DEAF, close_timeout=0.1).connect())
        await turns(10)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting

    asyncio.run(main(), debug=debug)
    gc.collect()
    assert [group.exit_code is not None for group in groups] == [True]
    assert [record for record in caplog.records if record.name == "asyncio" and record.levelname == "ERROR"] == []
