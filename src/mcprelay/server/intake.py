"""Bodies of HTTP requests on their way in: how many at once, how long each may be, and how long it may take.

A request is worked on only when its body is here, so slow senders take no place among those that are. What they take,
a connection and the bytes so far, is bounded here. One timer serves all bodies of an event loop: they have equally
long, so the first that came is the first that is late.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mcprelay.core.work import Refusal
from mcprelay.errors import LimitExceeded
from mcprelay.server.batch import holds_more, over
from mcprelay.server.exchange import JSON_HEADER, RETRY
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import TypeAlias

    from mcprelay.server.exchange import Arrival, Receive
    from mcprelay.server.limits import Limits

    Message: TypeAlias = MutableMapping[str, Any]

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

    __slots__ = ("_deadlines", "_late", "_limits", "_now", "_timer")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._now = asyncio.get_running_loop().time
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
        deadlines = self._deadlines
        if len(deadlines) >= self._limits.pending_bodies:
            raise self._exceeded("pending_bodies")
        task = asyncio.current_task()
        assert task is not None, "ASGI applications run in tasks"  # noqa: S101 - asyncio's promise
        deadlines[task] = self._now() + self._limits.body_seconds
        if self._timer is None:
            self._watch(deadlines[task])
        try:
            message = await receive()
            body: bytes = message.get("body", b"")
            if message.get("more_body"):
                message, body = await self._rest(receive, message)
            if len(body) > self._limits.body_bytes:
                raise self._exceeded("body_bytes")
            return body if message["type"] == "http.request" else None
        except asyncio.CancelledError:
            if task not in self._late or task.uncancel():
                raise
            raise self._exceeded("body_seconds") from None
        finally:
            del deadlines[task]
            if self._late:
                self._late.discard(task)

    async def _rest(self, receive: Receive, message: Message) -> tuple[Message, bytes]:
        """The last message, and the whole body, which came in parts; not much more of it than is too long."""
        parts = [message.get("body", b"")]
        size = len(parts[0])
        while message.get("more_body") and size <= self._limits.body_bytes:
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
        return message, b"".join(parts)

    def _exceeded(self, limit: str) -> LimitExceeded:
        return LimitExceeded(limit, getattr(self._limits, limit), what=_WHAT[limit])

    # --- time

    def _watch(self, deadline: float) -> None:
        if self._limits.body_seconds > 0:
            self._timer = asyncio.get_running_loop().call_at(deadline, self._look)

    def _look(self) -> None:
        """Give up on those that are late, and look again when the next one may be."""
        self._timer = None
        now = self._now()
        for task, deadline in self._deadlines.items():
            if deadline > now:
                self._watch(deadline)
                return
            if task not in self._late:
                self._late.add(task)
                task.cancel()


async def _refuse(arrival: Arrival, error: LimitExceeded, why: str, *headers: tuple[bytes, bytes]) -> None:
    body = jsonrpc.refusal(None, jsonrpc.INVALID_REQUEST, why)
    await arrival.refuse(Refusal(_STATUS[error.limit], body, headers), limit=error)
