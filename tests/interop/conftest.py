"""INTEROP_PEERS=python-1,typescript-2 runs only what has to do with these peers, for where time is short."""

import os

import pytest

from tests.interop.peer import PEERS

ONLY = {name for name in os.environ.get("INTEROP_PEERS", "").split(",") if name}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out runs against other peers."""
    if unknown := ONLY - PEERS.keys():
        raise pytest.UsageError(f"INTEROP_PEERS names {sorted(unknown)}; there are {', '.join(PEERS)}")
    if not ONLY:
        return
    left_out = [item for item in items if _is_run(item) and not ONLY & set(_peers(item))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _is_run(item: pytest.Item) -> bool:
    return "tests/interop/" in item.path.as_posix() and item.get_closest_marker("interop") is not None


def _peers(item: pytest.Item) -> list[str]:
    """Whom a test runs against."""
    run = getattr(item, "callspec", None) and item.callspec.params.get("run")
    return [getattr(run, "name", run)] if run is not None else []
