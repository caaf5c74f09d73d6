import asyncio

import pytest

from mcprelay.auth import Headless, MemoryStore, OAuth
from tests.auth.world import FakeClock, World, public


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def make(clock: FakeClock):
    """An `OAuth` whose person is nobody, whose names are all public and whose time stands still."""

    def make(network: World, **settings) -> OAuth:
        defaults = {"interaction": Headless(network), "clock": clock, "resolver": public, "store": MemoryStore()}
        return OAuth(**{**defaults, **settings})

    return make


@pytest.fixture(autouse=True)
async def _nothing_is_left_running():
    yield
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and not task.done()]
    assert left == []
