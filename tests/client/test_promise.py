"""What a call on a channel waits for."""

import asyncio
import contextvars
from typing import Any

import pytest

from mcprelay.client.promise import Promise

CALLER: contextvars.ContextVar[str] = contextvars.ContextVar("CALLER", default="nobody")


async def _waiting(promise: Promise, seen: list[Any]) -> Any:
    seen.append("waits")
    try:
        return await promise
    finally:
        seen.append("goes on")


async def _begun(promise: Promise, seen: list[Any]) -> asyncio.Task[Any]:
    task = asyncio.ensure_future(_waiting(promise, seen))
    await asyncio.sleep(0)
    return task


async def test_whoever_waits_goes_on_before_the_loop_turns():
    loop, seen = asyncio.get_running_loop(), []
    promise = Promise(loop=loop)
    task = await _begun(promise, seen)

    def arrives() -> None:
        promise.keep("answer", loop)
        seen.append("was told")

    loop.call_soon(arrives)
    assert await task == "answer"
    assert seen == ["waits", "goes on", "was told"]


async def test_an_answer_that_a_task_gives_waits_for_its_turn():
    loop, seen = asyncio.get_running_loop(), []
    promise = Promise(loop=loop)
    task = await _begun(promise, seen)
    promise.keep("answer", loop)
    assert seen == ["waits"]
    assert await task == "answer"


async def test_an_answer_that_came_before_anybody_waited_is_kept():
    loop = asyncio.get_running_loop()
    promise = Promise(loop=loop)
    loop.call_soon(promise.keep, "answer", loop)
    await asyncio.sleep(0)
    assert promise.done()
    assert await promise == "answer"


async def test_a_failure_wakes_whoever_waits():
    seen: list[Any] = []
    promise = Promise(loop=asyncio.get_running_loop())
    task = await _begun(promise, seen)
    promise.set_exception(OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        await task


async def test_whoever_waits_can_be_cancelled():
    seen: list[Any] = []
    promise = Promise(loop=asyncio.get_running_loop())
    task = await _begun(promise, seen)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert promise.cancelled()


async def test_whoever_goes_on_does_so_in_its_own_context():
    loop, seen = asyncio.get_running_loop(), []
    promise = Promise(loop=loop)

    async def caller() -> str:
        CALLER.set("caller")
        await _waiting(promise, seen)
        return CALLER.get()

    task = asyncio.ensure_future(caller())
    await asyncio.sleep(0)
    CALLER.set("test")
    loop.call_soon(promise.keep, "answer", loop)
    assert await task == "caller"
    assert CALLER.get() == "test"


async def test_whoever_goes_on_may_wait_for_the_next_answer_at_once():
    loop = asyncio.get_running_loop()
    first, second = Promise(loop=loop), Promise(loop=loop)

    async def both() -> list[Any]:
        loop.call_soon(first.keep, 1, loop)
        got = [await first]
        loop.call_soon(second.keep, 2, loop)
        return [*got, await second]

    assert await asyncio.ensure_future(both()) == [1, 2]


async def test_what_a_task_fails_with_when_it_goes_on_stays_with_the_task():
    loop, seen = asyncio.get_running_loop(), []
    promise = Promise(loop=loop)

    async def fails() -> None:
        await _waiting(promise, seen)
        raise OSError("afterwards")

    task = asyncio.ensure_future(fails())
    await asyncio.sleep(0)
    told: list[str] = []

    def arrives() -> None:
        promise.keep("answer", loop)
        told.append("no error came out of it")

    loop.call_soon(arrives)
    with pytest.raises(OSError, match="afterwards"):
        await task
    assert told
