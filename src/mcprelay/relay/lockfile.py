"""The lock as it is now: a file that may be written while the relay runs, or a value that does not change."""

from __future__ import annotations

import os

from mcprelay.relay import lock
from mcprelay.relay.errors import LockUnreadable


class LockFile:
    """What was reviewed.

    Args:
        source: The file's path, a lock, or None where there is none.
    """

    def __init__(self, source: str | os.PathLike[str] | lock.Lock | None) -> None:
        self._lock = source if isinstance(source, lock.Lock) else lock.Lock()
        self._path = None if source is None or isinstance(source, lock.Lock) else os.fspath(source)
        self._asked = b"" if self._path is None else os.fsencode(self._path)
        self._read = False
        self._written: tuple[int, ...] = ()

    def now(self) -> lock.Lock:
        """The lock. The file is read again where it was written since. One that was never there is empty.

        Raises:
            LockUnreadable: It cannot be read as a lock, or it was there and is gone.
        """
        if self._path is None:
            return self._lock
        try:
            found = os.stat(self._asked)  # noqa: PTH116 - asked before every call, and a path object doubles the price
            # The last one cannot be set: whoever writes in place and keeps the time and the size is found out by it.
            written = (found.st_mtime_ns, found.st_ino, found.st_size, found.st_ctime_ns)
            if written != self._written:
                self._lock = lock.read(self._path)
                self._written = written
                self._read = True
        except FileNotFoundError:
            if self._read:
                raise LockUnreadable(
                    f"{self._path}: it was here and is gone, so nothing says what was reviewed, and no tool is offered"
                    " or called. Restore it; or start the application anew, if it is to go on without one"
                ) from None
        except OSError as error:
            raise LockUnreadable(f"{self._path}: cannot be read: {type(error).__name__}") from error
        return self._lock
