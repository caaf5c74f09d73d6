"""The lock as it is now: a file that may be written while the relay runs, or a value that does not change."""

from __future__ import annotations

import os
from pathlib import Path

from mcprelay.relay import lock


class LockFile:
    """What was reviewed.

    Args:
        source: The file's path, a lock, or None where there is none.
    """

    def __init__(self, source: str | os.PathLike[str] | lock.Lock | None) -> None:
        self._lock = source if isinstance(source, lock.Lock) else lock.Lock()
        self._path = None if source is None or isinstance(source, lock.Lock) else Path(source)
        self._seen: tuple[int, int, int] | None = None

    def now(self) -> lock.Lock:
        """The lock. The file is read again where it was written since.

        Raises:
            LockUnreadable: It cannot be read as a lock.
        """
        if self._path is None:
            return self._lock
        seen = self._stamp(self._path)
        if seen != self._seen:
            self._lock = lock.load(self._path)
            self._seen = seen
        return self._lock

    @staticmethod
    def _stamp(path: Path) -> tuple[int, int, int] | None:
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
