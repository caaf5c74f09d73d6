"""One server behind a switchboard: what it was asked, and what it has not answered yet."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msgspec import Raw

    from mcprelay.ports import Channel
    from mcprelay.types import RequestId


class Position:
    """A server that is plugged in.

    Attributes:
        channel: Where it is reached.
        pending: The ids of what the client asked and it owes, in that order. What never ends by itself is not in here.
        idle: Set while it owes nothing.
        reader: The task that passes on what it says.
    """

    def __init__(self, channel: Channel) -> None:
        """Needs a running loop."""
        self.channel = channel
        self.pending: dict[RequestId, None] = {}
        self.idle = asyncio.Event()
        self.idle.set()
        self.reader: asyncio.Task[None] | None = None
        self._over = False
        self._repeated: dict[RequestId, asyncio.Future[Raw | None]] = {}

    def owes(self, request_id: RequestId) -> None:
        """The client asked it something."""
        self.pending[request_id] = None
        self.idle.clear()

    def answered(self, request_id: RequestId) -> None:
        """It answered, or does not have to any more."""
        self.pending.pop(request_id, None)
        if not self.pending:
            self.idle.set()

    # --- what an earlier server was told already

    def repeated(self, request_id: RequestId) -> asyncio.Future[Raw | None]:
        """It is asked what another server has answered the client already. Gives its result, None for an error."""
        answer = self._repeated[request_id] = asyncio.get_running_loop().create_future()
        if self._over:
            self.swallows(request_id, None)
        return answer

    def swallows(self, request_id: RequestId, result: Raw | None) -> bool:
        """Whether an answer is to a repeated request: the client does not get it."""
        answer = self._repeated.pop(request_id, None)
        if answer is not None and not answer.done():
            answer.set_result(result)
        return answer is not None

    def over(self) -> None:
        """It ended: what is repeated to it is not answered any more."""
        self._over = True
        for request_id in tuple(self._repeated):
            self.swallows(request_id, None)
        self.idle.set()
