"""What a function of the application is awaited for: within its time, and apart from the task of the call.

In a task of its own, the function's cancellations are told from the call's; and a call whose time is over, or that is
given up, ends though the function takes no notice of its end. Such a task is left behind, counted and told to the log.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING, Any

from mcprelay.client.deadline import is_cancelled

if TYPE_CHECKING:
    from collections.abc import Awaitable

log = logging.getLogger("mcprelay.relay")
_TURNS = 20
"""Turns of the loop in which a task that was cancelled may end before it is called one that takes no notice."""
_ending: set[asyncio.Task[Any]] = set()
"""Tasks that were cancelled and go on: nobody else holds them."""


class Late(Exception):
    """There is no answer, and its time is over."""


class WaitCancelled(Exception):
    """What a function of the application waited for was cancelled, though nobody gave up the call."""

    def __init__(self) -> None:
        super().__init__("what it waited for was cancelled, by somebody else than the caller")


async def awaited(answer: Awaitable[Any], *, seconds: float, who: str) -> Any:
    """What an answer comes to.

    Args:
        answer: What a function of the application gave.
        seconds: How long it may take; what comes later is thrown away.
        who: What the function is called in the log.

    Raises:
        Late: It took longer.
        WaitCancelled: It was cancelled, and not from here.
        Exception: What it raised.
    """
    task = asyncio.create_task(_settled(answer))
    task.add_done_callback(_ended)
    try:
        await asyncio.wait([task], timeout=seconds)
        if not task.done():
            raise Late
    finally:
        if not task.done():
            await _end(task, who)
    try:
        return task.result()
    except asyncio.CancelledError as error:
        raise WaitCancelled from error


async def settled(answer: Any, *, seconds: float, who: str) -> Any:
    """An answer that may be there at once; else as `awaited`."""
    return await awaited(answer, seconds=seconds, who=who) if inspect.isawaitable(answer) else answer


def foreign(error: BaseException) -> Exception:
    """What a function of the application raised. The end of the call goes through; that of something else does not.

    Raises:
        asyncio.CancelledError: The call itself is given up.
    """
    if isinstance(error, Exception):
        return error
    if is_cancelled():
        raise error
    made = WaitCancelled()
    made.__cause__ = error
    return made


async def _settled(answer: Awaitable[Any]) -> Any:
    return await answer


async def _end(task: asyncio.Task[Any], who: str) -> None:
    """Cancel a task, and leave it behind if it does not end of that."""
    _ending.add(task)
    task.cancel()
    for _ in range(_TURNS):
        await asyncio.sleep(0)
        if task.done():
            return
    log.warning("%s takes no notice of being cancelled: its task is left behind, as %d in all", who, len(_ending))


def _ended(task: asyncio.Task[Any]) -> None:
    """Let go of a task, and look at how it ended, so that nothing is logged where nobody waits for it any more."""
    _ending.discard(task)
    if not task.cancelled():
        task.exception()
