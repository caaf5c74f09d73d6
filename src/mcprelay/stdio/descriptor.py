"""Descriptors 0, 1 and 2, secured for a process that speaks a protocol on its standard streams.

Knows descriptors and `sys.stdout`; imports nothing that takes time, because the command line calls `secure` before it
imports anything else.
"""

from __future__ import annotations

import os
import sys

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_AWAY = 64
"""The protocol's descriptors are moved up here, away from those that programs expect to be handed from 3 on."""


class Descriptors:
    """Where the protocol went.

    Attributes:
        reads: The descriptor that standard input was.
        writes: The descriptor that standard output was.
        taken: Whether a channel speaks over them.
        users: How many have secured them and not released them.
    """

    __slots__ = ("_blocking", "_line_buffering", "reads", "taken", "users", "writes")

    def __init__(self) -> None:
        _open_closed()
        self._blocking = (_blocking(0), _blocking(1))
        self.reads = _move_away(0)
        self.writes = _move_away(1)
        self.users = 0
        self.taken = False
        _null(0, os.O_RDONLY)
        os.dup2(2, 1)
        # What was printed so far, and what will be, goes where descriptor 1 leads now.
        self._line_buffering = _line_buffering(wanted=True)

    def release(self) -> None:
        """Undo what `secure` did, when all who called it have released it. Nobody may use the descriptors then."""
        self.users -= 1
        if self.users == 0:
            global _secured  # noqa: PLW0603 - descriptors 0, 1 and 2 are the process's, and so is this
            _secured = None
            _line_buffering(wanted=self._line_buffering)
            for away, home in (self.reads, 0), (self.writes, 1):
                os.dup2(away, home)
                os.close(away)

    def take(self) -> tuple[int, int]:
        """Duplicates of the two, for a channel that closes what it reads and writes."""
        self.taken = True
        return _move_away(self.reads), _move_away(self.writes)

    def give_back(self) -> None:
        """The channel is done. Others may share the pipes, so they are left in the mode they came in."""
        self.taken = False
        for fd, blocking in zip((self.reads, self.writes), self._blocking, strict=True):
            if blocking is not None:
                os.set_blocking(fd, blocking)


_secured: Descriptors | None = None


def secure() -> Descriptors:
    """Keep everything but the protocol away from the protocol.

    Whatever standard input and output were is moved to high descriptors that no child process inherits. Descriptor 0
    becomes the null device and descriptor 1 leads to standard error, for this process and its children: `print`,
    `os.write(1, …)`, C libraries and subprocesses cannot break the protocol. What waited in `sys.stdout` goes to
    standard error. Descriptors that are closed are opened on the null device first, so that no file or socket of the
    program gets their number.

    Each call must be met by one `release`, or by the end of the process.
    """
    global _secured  # noqa: PLW0603
    if _secured is None:
        _secured = Descriptors()
    _secured.users += 1
    return _secured


def _open_closed() -> None:
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            _null(fd, os.O_RDWR)


def _null(fd: int, flags: int) -> None:
    null = os.open(os.devnull, flags)
    if null != fd:
        os.dup2(null, fd)
        os.close(null)
    os.set_inheritable(fd, True)


def _move_away(fd: int) -> int:
    if fcntl is not None:
        try:
            return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _AWAY)
        except OSError:  # the limit on open files is lower than that
            pass
    return os.dup(fd)


def _blocking(fd: int) -> bool | None:
    try:
        return os.get_blocking(fd)
    except (OSError, AttributeError):  # Windows, before 3.12
        return None


def _line_buffering(*, wanted: bool) -> bool:
    """Flush `sys.stdout`, set how it is buffered and return how it was. A replaced `sys.stdout` is left alone."""
    before = wanted
    for stream in {id(s): s for s in (sys.__stdout__, sys.stdout)}.values():
        try:
            before = getattr(stream, "line_buffering", wanted)
            stream.reconfigure(line_buffering=wanted)  # type: ignore[union-attr]
        except (AttributeError, ValueError, OSError):  # none, closed, or not a text file
            pass
    return before
