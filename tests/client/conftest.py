"""The clock that a client's deadlines go by, in the hand of the test."""

import asyncio

import pytest


class StoppedClock:
    """A loop's clock that goes on only when it is told to. What the loop waits for outside still wakes it at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._now = loop.time()
        loop.time = lambda: self._now

    async def advance(self, seconds: float) -> None:
        """Let time pass, and let everything run that is due by then."""
        self._now += seconds
        for _ in range(10):  # a timer, the task that it wakes, and those that this one wakes
            await asyncio.sleep(0)

    def release(self) -> None:
        """Let time pass by itself again, for what a process needs to end."""
        vars(self._loop).pop("time", None)


@pytest.fixture
async def clock() -> StoppedClock:
    """Time stands still from the beginning of the test on."""
    return StoppedClock(asyncio.get_running_loop())
