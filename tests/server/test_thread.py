"""Worker threads: context, errors, abandonment, and a process that ends all the same."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from mcprelay.errors import LimitExceeded
from mcprelay.server.thread import ThreadPool

who = contextvars.ContextVar("who", default="nobody")


async def test_what_a_function_returns_or_raises_comes_back() -> None:
    pool = ThreadPool()

    def fail() -> None:
        raise KeyError("x")

    assert await pool.run(lambda: 42) == 42
    with pytest.raises(KeyError):
        await pool.run(fail)


async def test_a_stop_iteration_is_an_error_and_not_a_hang() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await ThreadPool().run(lambda: next(iter(())))


async def test_the_callers_context_is_visible_in_the_thread() -> None:
    who.set("ada")

    assert await ThreadPool().run(who.get) == "ada"


async def test_blocking_calls_run_at_once_up_to_the_number_of_threads() -> None:
    pool = ThreadPool(4)
    barrier = threading.Barrier(4, timeout=10)

    await asyncio.gather(*(pool.run(barrier.wait) for _ in range(4)))
    assert await asyncio.gather(*(pool.run(lambda: 1) for _ in range(50))) == [1] * 50


async def test_a_thread_is_used_again() -> None:
    pool = ThreadPool()
    idents = {await pool.run(threading.get_ident) for _ in range(20)}

    assert len(idents) == 1


async def test_a_call_that_is_given_up_frees_its_place_and_is_counted_until_it_returns() -> None:
    pool = ThreadPool(1)
    release, started, done = threading.Event(), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def block() -> None:
        loop.call_soon_threadsafe(started.set)
        release.wait(10)
        done.set()

    stuck = asyncio.ensure_future(pool.run(block))
    await started.wait()
    stuck.cancel()
    await asyncio.wait([stuck])
    assert pool.abandoned == 1
    assert await pool.run(lambda: "served") == "served"

    release.set()
    done.wait(10)
    for _ in range(1000):
        if not pool.abandoned:
            break
        await asyncio.sleep(0.001)
    assert pool.abandoned == 0


async def test_a_call_that_is_given_up_before_a_thread_took_it_never_runs() -> None:
    pool = ThreadPool(1)
    release, ran = threading.Event(), []
    busy = asyncio.ensure_future(pool.run(lambda: release.wait(10)))
    waiting = asyncio.ensure_future(pool.run(lambda: ran.append(1)))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    release.set()
    await busy

    assert await pool.run(lambda: 1) == 1
    assert ran == []


async def test_too_many_abandoned_threads_are_an_error_that_names_the_limit() -> None:
    pool = ThreadPool(1, abandoned_threads=0)
    release, started = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def block() -> None:
        loop.call_soon_threadsafe(started.set)
        release.wait(10)

    stuck = asyncio.ensure_future(pool.run(block))
    await started.wait()
    stuck.cancel()
    await asyncio.wait([stuck])

    with pytest.raises(LimitExceeded, match="abandoned_threads=0"):
        await pool.run(lambda: 1)
    release.set()


def test_a_thread_that_blocks_for_ever_does_not_keep_the_process() -> None:
    program = """
import asyncio, threading
from mcprelay.server.thread import ThreadPool
async def main():
    task = asyncio.ensure_future(ThreadPool().run(threading.Event().wait))
    await asyncio.sleep(0.05)
    task.cancel()
asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=10, check=False).returncode == 0
