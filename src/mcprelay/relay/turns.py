"""So many at once, and the others in their order.

In place of `asyncio.Semaphore`, because a turn that is free is taken before every call, and costs nothing here.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """Turns that are taken and given back.

    Args:
        most: How many there are.
    """

    def __init__(self, most: int) -> None:
        self._most = self._free = most
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def taken(self) -> bool:
        """Whether anybody has a turn."""
        return self._free < self._most

    def take(self) -> bool:
        """Take a turn, if one is free: then nobody waits for one."""
        if self._free:
            self._free -= 1
            return True
        return False

    async def wait(self) -> None:
        """Wait for a turn, after those who wait already, and have it."""
        if self.take():
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._waiting.remove(turn)
            else:
                self.give()  # it was given to somebody who has just gone
            raise

    def give(self) -> None:
        """Give a turn back: it goes to the one who waits longest."""
        for turn in self._waiting:
            if not turn.done():
                self._waiting.remove(turn)
                turn.set_result(None)
                return
        self._free += 1
