"""Bodies of HTTP requests on their way in: how many at once, how long each may be, and how long it may take.

A request is worked on only when its body is here, so slow senders take no place among those that are. What they take,
a connection and the bytes so far, is bounded here. One timer serves all bodies of an event loop: they have equally
long, so the first that came is the first that is late.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcprelay.core.work import Refusal
from mcprelay.errors import LimitExceeded
from mcprelay.server.batch import holds_more, over
from mcprelay.server.exchange import JSON_HEADER, RETRY
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from mcprelay.server.exchange import Arrival, Receive
    from mcprelay.server.limits import Limits

_WHAT = {
    "body_bytes": "the body",
    "body_seconds": "the time that the body took",
    "pending_bodies": "the number of requests whose bodies are on their way",
}
_STATUS = {"body_bytes": 413, "body_seconds": 408, "pending_bodies": 503, "batch_messages": 413}


class Intake:
    """Reads the bodies of one event loop.

    Args:
        limits: `body_bytes`, `body_seconds` (0 for as long as it takes) and `pending_bodies` count here.
    """

    __slots__ = ("_deadlines", "_late", "_limits", "_timer")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._deadlines: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._deadlines)

    async def take(self, arrival: Arrival) -> bytes | None:
        """The body of a request; None when there is none to be had: the client hung up, or was refused."""
        try:
            body = await self.read(arrival.receive)
        except LimitExceeded as error:
            headers: list[tuple[bytes, bytes]] = [JSON_HEADER]
            if error.limit == "pending_bodies":
                headers.append(RETRY)
            if arrival.scope.get("http_version", "1.1").startswith("1"):  # what is left of the body is not read
                headers.append((b"connection", b"close"))
            await _refuse(arrival, error, str(error), *headers)
            return None
        allowed = self._limits.batch_messages
        if body is not None and body[:1] != b"{" and jsonrpc.is_batch(body) and holds_more(body, allowed):
            await _refuse(arrival, LimitExceeded("batch_messages", allowed), over(allowed), JSON_HEADER)
            return None
        return body

    async def read(self, receive: Receive) -> bytes | None:
        """The body, or None when the client hung up before its end.

        Raises:
            LimitExceeded: It is too long or took too long, or too many are on their way.
        """
        limits = self._limits
        if len(self._deadlines) >= limits.pending_bodies:
            raise self._exceeded("pending_bodies", limits.pending_bodies)
        task = asyncio.current_task()
        assert task is not None, "ASGI applications run in tasks"  # noqa: S101 - asyncio's promise
        self._enter(task)
        try:
            return await self._body(receive)
        except asyncio.CancelledError:
            if task not in self._late or task.uncancel():
                raise
            raise self._exceeded("body_seconds", limits.body_seconds) from None
        finally:
            del self._deadlines[task]
            self._late.discard(task)

    async def _body(self, receive: Receive) -> bytes | None:
        allowed = self._limits.body_bytes
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > allowed:
                raise self._exceeded("body_bytes", allowed)
            if not message.get("more_body"):
                return b"".join((*parts, part)) if parts else part
            parts.append(part)

    def _exceeded(self, limit: str, allowed: float) -> LimitExceeded:
        return LimitExceeded(limit, allowed, what=_WHAT[limit])

    # --- time

    def _enter(self, task: asyncio.Task[object]) -> None:
        seconds = self._limits.body_seconds
        loop = asyncio.get_running_loop()
        deadline = self._deadlines[task] = loop.time() + seconds
        if self._timer is None and seconds > 0:
            self._timer = loop.call_at(deadline, self._look)

    def _look(self) -> None:
        """Give up on those that are late, and look again when the next one may be."""
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        for task, deadline in self._deadlines.items():
            if deadline > now:
                self._timer = loop.call_at(deadline, self._look)
                return
            if task not in self._late:
                self._late.add(task)
                task.cancel()


async def _refuse(arrival: Arrival, error: LimitExceeded, why: str, *headers: tuple[bytes, bytes]) -> None:
    body = jsonrpc.refusal(None, jsonrpc.INVALID_REQUEST, why)
    await arrival.refuse(Refusal(_STATUS[error.limit], body, headers), limit=error)
