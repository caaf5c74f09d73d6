"""How long a handler may go on, and what it learns of it.

Time that the client takes to answer a question does not count: a person may think for as long as the client lets them.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from mcprelay.errors import DefinitionError, LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from mcprelay.server.call import Call


class Allowance(NamedTuple):
    """How long a handler may go on.

    Attributes:
        limit: The name of the setting that says so.
        seconds: 0 for as long as it takes.
    """

    limit: str
    seconds: float


def allowance(timeout: float | None, *, otherwise: float, place: str) -> Allowance:
    """How long a handler may go on.

    Args:
        timeout: What was said of the handler.
        otherwise: The limit `call_seconds`, which holds where nothing was said.
        place: Where the handler is defined.

    Raises:
        DefinitionError: It is no number of seconds.
    """
    if timeout is None:
        return Allowance("call_seconds", otherwise)
    given: object = timeout  # whatever a user passed
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= timeout < float("inf"):
        raise DefinitionError(f"timeout is a number of seconds, 0 for no limit, and not {timeout!r} ({place})")
    return Allowance("timeout", timeout)


class Patience:
    """How long one call may still go on.

    Args:
        allowed: The whole of it.
    """

    def __init__(self, allowed: Allowance) -> None:
        self._allowed = allowed
        self._loop = asyncio.get_running_loop()
        self._scope = asyncio.timeout(allowed.seconds)
        self._pauses = 0
        self._kept = allowed.seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        until = self._scope.when()
        return self._kept if until is None else max(0.0, until - self._loop.time())

    @property
    def over(self) -> bool:
        """Whether it took too long. A thread cannot be ended, and may still go on."""
        return self._scope.expired()

    async def hold(self, call: Call, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do the work of a call.

        Raises:
            LimitExceeded: It took too long (`call_seconds`, or the handler's own `timeout`).
        """
        call.patience = self
        try:
            async with self._scope:
                return await work()
        except TimeoutError as error:
            if not self._scope.expired():
                raise
            raise LimitExceeded(*self._allowed, what="the time that this call took") from error

    @contextmanager
    def paused(self) -> Generator[None, None, None]:
        """Somebody else's time."""
        self._pauses += 1
        if self._pauses == 1:
            self._kept = self.left
            self._scope.reschedule(None)
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses and not self._scope.expired():
                self._scope.reschedule(self._loop.time() + self._kept)
