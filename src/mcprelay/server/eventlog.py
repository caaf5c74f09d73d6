"""Events of resumable streams, kept in this process's memory.

Bounded by bytes over all streams: the oldest events go first, whichever stream they are of. What is durable here is
durable for as long as the process lives; a log that survives it is a user's own `mcprelay.ports.EventLog`.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

EVENT_LOG_BYTES = 16 * 2**20
_LONGEST_ID = 20
_OVERHEAD = 300
"""What an event costs beside its data, so that many empty ones are bounded too."""


class MemoryEventLog:
    """See `mcprelay.ports.EventLog`.

    Args:
        event_log_bytes: How much is kept.
    """

    def __init__(self, *, event_log_bytes: int = EVENT_LOG_BYTES) -> None:
        self.event_log_bytes = event_log_bytes
        self._numbers = itertools.count(1)
        self._streams: dict[str, list[tuple[int, bytes]]] = {}
        self._order: deque[str] = deque()
        self._size = 0

    def __len__(self) -> int:
        """How many events are kept."""
        return len(self._order)

    async def append(self, stream: str, data: bytes) -> str:
        """See `EventLog`."""
        number = next(self._numbers)
        self._streams.setdefault(stream, []).append((number, data))
        self._order.append(stream)
        self._size += len(data) + _OVERHEAD
        while self._size > self.event_log_bytes and len(self._order) > 1:
            self._forget_oldest()
        return str(number)

    def _forget_oldest(self) -> None:
        stream = self._order.popleft()
        events = self._streams[stream]
        self._size -= len(events.pop(0)[1]) + _OVERHEAD
        if not events:
            del self._streams[stream]

    async def after(self, stream: str, event_id: str) -> AsyncIterator[tuple[str, bytes]]:
        """See `EventLog`."""
        events = self._streams.get(stream, [])
        wanted = int(event_id) if event_id.isdecimal() and len(event_id) < _LONGEST_ID else -1
        index = bisect_left(events, (wanted,))
        if index == len(events) or events[index][0] != wanted:
            raise KeyError(f"no event {event_id!r} of this stream is kept")
        for number, data in events[index + 1 :]:
            yield str(number), data
