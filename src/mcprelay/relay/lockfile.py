"""The lock as it is now: a file that may be written while the relay runs, or a value that does not change."""

from __future__ import annotations

import logging
import os
from time import monotonic
from typing import NamedTuple

from mcprelay.relay import given, lock
from mcprelay.relay.errors import LockUnreadable

log = logging.getLogger("mcprelay.relay")
_ABSENT = 1.0
"""Seconds for which calls do not look again for a file that was never there: not to find it costs a third of a call."""


class Usual(NamedTuple):
    """Where a lock file is looked for that nobody has named: it may as well not be there."""

    path: str | os.PathLike[str]


class LockFile:
    """What was reviewed.

    Args:
        source: The file's path, a lock, or None where there is none.

    Attributes:
        named: Whether the application named a file, so that its absence is a fault.

    Raises:
        SettingWrong: It is none of these.
    """

    def __init__(self, source: str | os.PathLike[str] | lock.Lock | Usual | None) -> None:
        self.named = source is not None and not isinstance(source, lock.Lock | Usual)
        source = source.path if isinstance(source, Usual) else source
        self._lock = source if isinstance(source, lock.Lock) else lock.Lock()
        self._path: str | None = None
        self._read = isinstance(source, lock.Lock)
        self._written: tuple[int, ...] = ()
        self._absent_until = 0.0
        self._warned = False
        if source is not None and not isinstance(source, lock.Lock):
            given.path("lock", source)
            self._path = _absolute(os.fsdecode(source))
        self._asked = b"" if self._path is None else os.fsencode(self._path)

    @property
    def absence(self) -> str:
        """Why there was no lock when `now` was asked for, in words; empty where there was one."""
        if self._read:
            return ""
        if self._path is None:
            return "lock=None"
        if self.named:
            return f"there is no {self._path}, which lock= names; see that the path is right, or restore the file"
        return f"there is no {self._path}; `mcprelay lock` writes it"

    @property
    def lost(self) -> bool:
        """Whether there was no file when `now` was asked for, though the application named one."""
        return self.named and not self._read

    def lately(self) -> lock.Lock:
        """The lock for one of many calls: as `now`, but for a file that was never there is looked once a second."""
        return self._lock if not self._read and monotonic() < self._absent_until else self.now()

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
            self._absent_until = monotonic() + _ABSENT
            if self._read:
                raise LockUnreadable(
                    f"{self._path}: it was here and is gone, so nothing says what was reviewed, and no tool is offered"
                    " or called. Restore it; or start the application anew, if it is to go on without one"
                ) from None
            self._warn()
        except OSError as error:
            raise lock.unreadable(self._path, error) from error
        return self._lock

    def _warn(self) -> None:
        """Tell the log, once, of a file that was named and is not there: not everyone prints the report."""
        if self.named and not self._warned:
            self._warned = True
            log.warning("%s; what servers offer is compared with nothing", self.absence)


def _absolute(path: str) -> str:
    """The same file, wherever the process goes. A process whose folder is gone has files by absolute paths only."""
    try:
        return os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118 - `..` behind a link stays what it is
    except OSError:
        return path
