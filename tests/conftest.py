"""What a module of tests leaves behind is told there, and not by whatever test runs when it is collected."""

import gc
from collections.abc import Iterator

import pytest


def pytest_collection_finish() -> None:
    """What was imported by now lives to the end: later collections need not look at it, and cost next to nothing."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """A coroutine that never finished, a transport that was never closed: the warnings are errors of this module."""
    yield
    gc.collect()
