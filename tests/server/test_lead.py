"""Who leads a connection: calls that do not suspend share a task, and nothing left behind by one silences the rest."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from mcprelay import Client, Limits, Server, revisions
from mcprelay.errors import RemoteError


async def test_what_cancels_the_task_of_a_call_that_is_over_does_not_silence_the_connection():
    server, tasks = Server("s"), []

    @server.tool
    async def leave() -> str:
        tasks.append(asyncio.current_task())
        return "left"

    async with Client(server, request_timeout=5) as client:
        await client.call_tool("leave")
        tasks[0].cancel()
        assert (await client.call_tool("leave")).text == "left"
        assert tasks[0].cancelled()
        assert tasks[1] is not tasks[0]


async def test_calls_that_do_not_suspend_share_a_task_and_one_that_does_ends_in_its_own():
    server, tasks = Server("s"), []

    @server.tool
    async def quick() -> str:
        tasks.append(asyncio.current_task())
        return "quick"

    @server.tool
    async def slow() -> str:
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)
        return "slow"

    async with Client(server) as client:
        for name in ("quick", "quick", "slow", "quick"):
            assert (await client.call_tool(name)).text == name
    first, second, third, fourth = tasks
    assert first is second is third
    assert fourth is not first


async def test_a_call_whose_own_task_is_cancelled_by_its_handler_is_answered_all_the_same():
    server = Server("s")

    @server.tool
    async def reckless() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        task.cancel()
        await asyncio.sleep(0)
        return "unreachable"

    @server.tool
    async def quick() -> str:
        return "quick"

    async with Client(server) as client:
        with pytest.raises(RemoteError, match="Internal error while answering tools/call reckless"):
            await client.call_tool("reckless")
        assert (await client.call_tool("quick")).text == "quick"


async def test_a_call_that_leaves_its_own_task_cancelled_costs_no_call_that_waits_behind_it_anything():
    server = Server("s")

    @server.tool
    async def reckless() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "left"

    @server.tool
    async def steady() -> str:
        await asyncio.sleep(0)
        return "steady"

    async with Client(server, request_timeout=5) as client:
        names = ["reckless", "steady", "reckless", "reckless", "steady"] * 20
        results = await asyncio.gather(*(client.call_tool(name) for name in names))
    assert [result.text for result in results] == ["left", "steady", "left", "left", "steady"] * 20


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks start eagerly from Python 3.12 on")
async def test_where_tasks_start_eagerly_any_number_of_calls_that_wait_are_answered():
    server = Server("s")

    @server.tool
    async def steady() -> str:
        await asyncio.sleep(0)
        return "steady"

    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]
    async with Client(server, request_timeout=30) as client:
        results = await asyncio.gather(*(client.call_tool("steady") for _ in range(1000)))
    assert {result.text for result in results} == {"steady"}


class Odd:
    """A value that does not compare, as arrays do not."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value is ambiguous")


@pytest.mark.parametrize("make", [Odd, list])
async def test_what_a_handler_sets_is_seen_by_no_other_call_whatever_it_is_equal_to(make: Callable[[], Any]):
    server, variable, first = Server("s"), ContextVar[Any]("variable"), make()
    variable.set(first)
    seen = []

    @server.tool
    async def change() -> str:
        seen.append(variable.get())
        variable.set(make())
        return "changed"

    async with Client(server) as client:
        for _ in range(3):
            assert (await client.call_tool("change")).text == "changed"
    assert all(value is first for value in seen)


async def test_a_client_that_does_not_read_is_not_read_from_and_gets_every_answer_once_it_does():
    server, ran = Server("s", limits=Limits(stream_bytes=100_000)), []

    @server.tool
    async def big(number: int) -> str:
        ran.append(number)
        return "x" * 20_000

    meta = {
        "io.modelcontextprotocol/protocolVersion": next(iter(revisions.ALL)),
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    channel, count = server.connect(), 1000
    for number in range(count):
        params = {"name": "big", "arguments": {"number": number}, "_meta": meta}
        await channel.send(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()
        )
    for _ in range(5000):
        await asyncio.sleep(0)
    assert len(ran) < 100
    answered = {json.loads(await channel.receive())["id"] for _ in range(count)}
    assert answered == set(range(count))
    await channel.aclose()


async def test_a_call_that_suspends_is_ended_with_what_it_is_cancelled_by_and_may_go_on_all_the_same():
    server, begun, ended = Server("s"), asyncio.Event(), asyncio.Event()

    @server.tool
    async def stubborn() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # which suspends once more, after what was thrown
            ended.set()
            raise
        raise AssertionError("nobody sets that event")

    @server.tool
    async def quick() -> str:
        return "quick"

    async with Client(server) as client:
        call = asyncio.create_task(client.call_tool("stubborn"))
        await begun.wait()
        assert (await client.call_tool("quick")).text == "quick"
        call.cancel()
        await asyncio.wait_for(ended.wait(), 5)
        assert (await client.call_tool("quick")).text == "quick"
    assert call.cancelled()
