"""How a channel ended, as far as it is known: why, by which exception, and what became of the process behind it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcprelay.client import failure
from mcprelay.client.deadline import is_cancelled

if TYPE_CHECKING:
    from mcprelay.ports import Channel


class Ending(Struct, frozen=True):
    """Why a channel ended.

    Attributes:
        reason: What a failure says of it.
        cause: The exception behind it, or None.
    """

    reason: str = "the connection ended"
    cause: BaseException | None = None


def of(channel: Channel) -> Ending:
    """How a channel that gave `b""` ended: a server in this process may have failed, a process may have exited."""
    cause = getattr(channel, "failure", None)
    if isinstance(cause, BaseException):
        return Ending(f"the server in this process failed ({cause!r})", cause)
    code = getattr(channel, "exit_code", None)
    if code is None:
        return Ending("the server closed the connection")
    return Ending(f"the server's process {failure.exited(code)}")


def broken(doing: str, error: BaseException) -> Ending:
    """What a channel raised, `doing` something: it may be anybody's, so whatever that is breaks it.

    Raises:
        BaseException: `error` itself, where it is this task that is cancelled, or the program that ends.
    """
    ours = isinstance(error, asyncio.CancelledError) and is_cancelled()
    if ours or isinstance(error, (KeyboardInterrupt, SystemExit)):
        raise error
    return Ending(f"the channel broke while {doing} ({error!r})", error)


def process(channel: Channel) -> dict[str, Any]:
    """What is known of the server's process, where there is one."""
    return {
        "exit_code": getattr(channel, "exit_code", None),
        "stderr": failure.text_of(getattr(channel, "stderr_tail", "")[-failure.EXCERPT :]),
    }
