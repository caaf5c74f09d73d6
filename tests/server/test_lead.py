"""Who leads a connection: calls that do not suspend share a task, and nothing left behind by one silences the rest."""

from __future__ import annotations

import asyncio

from mcprelay import Client, Server


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
