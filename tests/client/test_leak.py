"""What thousands of calls leave behind: nothing. The whole of it is `benchmarks/leak.py`; this is a small part."""

import importlib.util
import socket
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def leak():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("mcprelay_leak", ROOT / "benchmarks" / "leak.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize("wire", ["stdio", "http"])
async def test_cancellations_deadlines_and_cuts_end_with_what_they_began_with(leak, wire):
    seen, wrong = await leak.check(wire, 400, warm=300)
    assert wrong == []
    assert sum(count for how, count in seen.items() if how != "(cuts)") == 400
    assert seen["(cuts)"] == 1
    assert seen["answered"] > 100
    assert seen["cancelled"] > 10


async def test_what_is_left_behind_is_named(leak):
    before = await leak.inventory()
    with socket.socket():
        assert leak.left(before, await leak.inventory()) == [
            f"1 descriptors more than before ({before['descriptors'] + 1})"
        ]
