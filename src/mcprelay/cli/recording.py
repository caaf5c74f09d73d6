"""Writing `mcprelay.lock`: one server's section, while others may write theirs at the same moment.

Knows which file is written, and by whom else. What is recorded was reviewed before.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from mcprelay.auth.store import LOCK_PAUSE
from mcprelay.auth.store import Lock as FileLock
from mcprelay.errors import ConfigurationError
from mcprelay.relay.lock import load, save

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from mcprelay.relay.lock import Lock

PATIENCE = 10.0
"""Seconds that are waited for who else writes the file, which takes them a moment."""


async def change(path: Path, made: Callable[[Lock], Lock]) -> None:
    """Put another lock in the place of what the file says now, which may be what somebody else has just written.

    Raises:
        ConfigurationError: Somebody else keeps the file for too long.
        LockUnreadable: It cannot be read as a lock.
        OSError: It cannot be written.
    """
    async with _alone(path):
        save(path, made(load(path)))


@contextlib.asynccontextmanager
async def _alone(path: Path) -> AsyncGenerator[None]:
    """Keep other processes that record from writing. The lock is on the folder, so no file of it is left behind."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    with _folder(path) as folder:
        while not folder.taken():
            if loop.time() >= end:
                kept = f"{path}: another process has kept its folder locked for {PATIENCE:g} seconds"
                raise ConfigurationError(f"{kept}; end it, and record again")
            await asyncio.sleep(LOCK_PAUSE)
        yield


def _folder(path: Path) -> FileLock:
    """The lock of the folder that the file itself is in: behind a link, which stays one."""
    return FileLock(path.resolve().parent)
