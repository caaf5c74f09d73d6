"""What a module of tests leaves behind is told there, and not by whatever test runs when it is collected."""

import gc
from collections.abc import Generator, Iterator

import pytest

from tests import emitted


def pytest_collection_finish() -> None:
    """What was imported by now lives to the end: later collections need not look at it, and cost next to nothing."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """A coroutine that never finished, a transport that was never closed: the warnings are errors of this module."""
    yield
    gc.collect()


@pytest.fixture(scope="session", autouse=True)
def _wires_are_watched() -> Iterator[None]:
    with emitted.installed():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test in which one of our sides said what its revision does not have has failed."""
    emitted.FAULTS.clear()
    outcome = yield
    if item.get_closest_marker("off_schema") is None:
        assert not emitted.FAULTS, "\n".join(emitted.FAULTS)
    return outcome
