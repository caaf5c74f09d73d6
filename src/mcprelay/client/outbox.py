"""What waits until a channel has room for it, in its order. A call that was given up meanwhile never leaves.

Knows how a channel takes messages: those in a hurry all at once, others one at a time. Knows no answer and no deadline.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from itertools import count
from typing import TYPE_CHECKING, Any

from mcprelay.errors import MAYBE_SENT, CallFailed, NotSent

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.core.peer import Peer, Pending
    from mcprelay.ports import Channel
    from mcprelay.types import RequestId


class Answer(bytes):
    """The answer to a question. While it waits here, the question is still in work."""

    __slots__ = ()


class Outbox:
    """Messages that wait for a channel, and who sends them.

    Args:
        channel: Where they go.
        peer: Knows which calls are still owed an answer.
        hasty: Whether the channel has what `LineChannel` has beside the port.
        put: Hands a message over with the channel's own function, and says whether it is settled.
        failed: Told of a call that was not taken: the channel broke, or refused that message alone.

    Attributes:
        waiting: The messages in their order, each with what it is the request of, if it is one.
        unsaid: How many bytes of what waits are neither a call nor an answer.
        answers: How many answers to questions wait.
    """

    def __init__(
        self,
        channel: Channel,
        peer: Peer,
        *,
        hasty: bool,
        put: Callable[[Pending | None, bytes, Callable[[bytes], int]], bool],
        failed: Callable[[Pending, NotSent | CallFailed], None],
    ) -> None:
        self.waiting: OrderedDict[RequestId, tuple[Pending | None, bytes]] = OrderedDict()
        self._others = count(-1, -1)  # stand for ids, which are not negative, where there is none
        self.unsaid = 0
        self.answers = 0
        self._channel: Any = channel
        self._peer = peer
        self._put = put
        self._failed = failed
        self._send_some = self._send_with_room if hasty else self._send_in_turn
        self._idle: asyncio.Future[None] | None = None

    def add(self, pending: Pending | None, data: bytes) -> None:
        """One more message waits."""
        if pending is None:
            self.waiting[next(self._others)] = None, data
            self._count(data, 1)
        else:
            self.waiting[pending.id] = pending, data
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def drop(self, pending: Pending) -> None:
        """A request is given up: if it is here, it never leaves, and is not kept."""
        self.waiting.pop(pending.id, None)

    async def run(self) -> None:
        """Send what waits, for ever. What the channel raises, beside that it did not take a message, is raised."""
        while True:
            while self.waiting:
                await self._send_some()
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    async def _send_with_room(self) -> None:
        """Send what has not been given up by the time that the channel takes it."""
        try:
            await self._channel.room()
        except NotSent as error:
            while (first := self._next()) is not None:
                if first[0] is not None:
                    self._failed(first[0], error)
            return
        while (first := self._next()) is not None:
            self._put(*first, self._channel.send_nowait)
            if self._channel.congested:
                return

    async def _send_in_turn(self) -> None:
        first = self._next()
        if first is None:
            return
        pending, data = first
        if pending is not None:
            pending.evidence = MAYBE_SENT
        try:
            await self._channel.send(data)
        except (NotSent, CallFailed) as error:
            if pending is not None:
                self._failed(pending, error)

    def _next(self) -> tuple[Pending | None, bytes] | None:
        """The next message that waits. A call that was given up while it waited is passed over."""
        while self.waiting:
            _, (pending, data) = self.waiting.popitem(last=False)
            if pending is None:
                self._count(data, -1)
            if pending is None or self._peer.pending.get(pending.id) is pending:
                return pending, data
        return None

    def _count(self, data: bytes, change: int) -> None:
        """Count what is no call as it comes, and as it leaves."""
        if isinstance(data, Answer):
            self.answers += change
        else:
            self.unsaid += change * len(data)
