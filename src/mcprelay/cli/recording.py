"""Writing `mcprelay.lock`: one server's section, while others may write theirs at the same moment.

Knows files and locks. What is recorded was reviewed before.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import TYPE_CHECKING

from mcprelay.errors import ConfigurationError
from mcprelay.relay.lock import load, save

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from mcprelay.relay.lock import Lock

PATIENCE = 10.0
"""Seconds that are waited for who else writes the file, which takes them a moment."""
_PAUSE = 0.02


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
    """Keep other processes that record from writing. The lock is on the folder, so that no file of it is left behind.

    Where the system, or the place that the folder is in, has no locks, this keeps nobody out.
    """
    if sys.platform == "win32":
        yield
        return
    folder = _folder(path)
    try:
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE
        while not _taken(folder):
            if loop.time() >= end:
                raise ConfigurationError(f"{path}: another process has kept its folder locked for {PATIENCE:g} seconds")
            await asyncio.sleep(_PAUSE)
        yield
    finally:
        os.close(folder)


def _folder(path: Path) -> int:
    """The folder that the file itself is in, opened: behind a link, which stays one."""
    return os.open(path.resolve().parent, os.O_RDONLY | os.O_CLOEXEC)


def _taken(folder: int) -> bool:
    import fcntl

    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # some network file systems know no locks
    return True
