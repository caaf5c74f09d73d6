"""How a kit says that a promise was broken. Knows waiting, and no port."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Make: TypeAlias = Callable[[], T | Awaitable[T]]

PATIENCE = 5.0
"""Seconds that a kit waits for what should happen at once."""


def promise(kept: object, broken: str) -> None:
    """Go on if a promise is kept.

    Raises:
        AssertionError: It is not; the message is the sentence that says so.
    """
    if not kept:
        raise AssertionError(broken)


async def within(seconds: float, work: Awaitable[T], broken: str) -> T:
    """Await what must not take longer than that.

    Raises:
        AssertionError: It does; or what it raised itself.
    """
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait([task], timeout=seconds)
    if not done:
        task.cancel()
        await asyncio.wait([task], timeout=seconds)
    promise(done, f"{broken} (waited {seconds:g} s)")
    return task.result()


async def made(make: Make[T]) -> T:
    """A new one, whether `make` is a function or a coroutine function."""
    one: Any = make()
    new: T = await one if inspect.isawaitable(one) else one
    return new


async def close(one: object) -> None:
    """Close what can be closed."""
    aclose = getattr(one, "aclose", None)
    if aclose is not None:
        await aclose()


async def turns(count: int = 10) -> None:
    """Let others go on."""
    for _ in range(count):
        await asyncio.sleep(0)
