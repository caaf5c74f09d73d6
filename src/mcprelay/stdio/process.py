"""A child process with a group of its own, which is gone when we are done with it, whatever happens.

Knows starting, watching, signalling and reaping. Knows nothing of what is said over its pipes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from mcprelay.errors import ConfigurationError, ConnectFailed, Evidence

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence

REAP_SECONDS = 1.0
"""How long a process that was killed may take to be gone before we go on without it."""

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class ProcessGroup:
    """One process, the leader, and everything it starts.

    Attributes:
        pid: The leader's process id, and its group's.
        exit_code: How the leader ended (a negative number is a signal), or None while it runs.
        pipes: Our ends of its standard input, output and error; the last is -1 where it is not ours to read. Whoever
            is done with one gives it back by `close`, and by nothing else.
    """

    def __init__(self, leader: subprocess.Popen[bytes], pipes: tuple[int, int, int]) -> None:
        self._leader = leader
        self._members_left = True
        self._unwatch: Callable[[], None] | None = None
        self.pid = leader.pid
        self.exit_code: int | None = None
        self.pipes = pipes
        self._open = {fd for fd in pipes if fd >= 0}

    def close(self, fd: int) -> None:
        """Close one of our pipes, unless that was done: its number may be another file's by now."""
        with suppress(KeyError):
            self._open.remove(fd)  # in one step: a finalizer runs in whatever thread collects the garbage
            os.close(fd)

    def signal(self, signum: int) -> None:
        """Send a signal to every member that is left."""
        if self._members_left:
            try:
                with suppress(PermissionError):  # macOS says so of a group of zombies
                    _signal_group(self._leader, signum)
            except ProcessLookupError:
                self._members_left = False

    @property
    def gone(self) -> bool:
        """Nobody of the group is left. A member that ended but was not waited for counts as being there."""
        self.signal(0)
        return not self._members_left

    def watch(self, ended: Callable[[], None], *, loop: asyncio.AbstractEventLoop) -> None:
        """Call `ended` on the loop once the leader has ended and was reaped, and those it left were told to end."""

        def reap() -> None:
            self.unwatch()
            # Until the leader is reaped its number cannot pass to another process: this finds the right group.
            self.signal(signal.SIGTERM)
            self.exit_code = self._leader.wait()
            ended()

        self._unwatch = _watch(self._leader, reap, loop)

    def unwatch(self) -> None:
        """Watch no more."""
        stop, self._unwatch = self._unwatch, None
        if stop is not None:
            stop()

    def kill(self) -> None:
        """Kill every member and reap the leader, now. Blocks for about as long as that takes, which is not long."""
        self.unwatch()
        self.signal(KILL)
        if self.exit_code is None:
            # One that is stuck in the kernel is reaped by `subprocess` when it comes out.
            with suppress(subprocess.TimeoutExpired):
                self.exit_code = self._leader.wait(REAP_SECONDS)
        self._members_left = False  # whoever gets the number of the group next is a stranger


def _signal_group(leader: subprocess.Popen[bytes], signum: int) -> None:
    if hasattr(os, "killpg"):
        os.killpg(leader.pid, signum)
    elif leader.poll() is not None:
        raise ProcessLookupError
    elif signum:
        leader.terminate()  # Windows knows no groups and no other signal


def start(
    command: Sequence[str], *, env: Mapping[str, str], cwd: str | os.PathLike[str] | None, capture_stderr: bool
) -> ProcessGroup:
    """Start `command` in a session of its own, without a shell. Its standard error is ours unless it is captured.

    Raises:
        ConnectFailed: It cannot be started.
        ConfigurationError: It is not a command.
    """
    if isinstance(command, str) or not command:
        raise ConfigurationError(f"command must be a list of a program and its arguments, not {command!r}")
    pipes: list[int] = []
    try:
        for _ in range(2 + capture_stderr):
            pipes += os.pipe()
        leader = _launch(command, env=env, cwd=cwd, pipes=pipes)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"command {list(command)!r} cannot be started: {error}") from error
    except OSError as error:
        raise ConnectFailed(unstarted(command, cwd, error), evidence=Evidence.NOT_SENT) from error
    else:
        theirs = {pipes[0], *pipes[3::2]}
        ours = (pipes[1], pipes[2], pipes[4] if capture_stderr else -1)
        pipes = list(theirs)
        return ProcessGroup(leader, ours)
    finally:
        for fd in pipes:
            os.close(fd)


def _launch(
    command: Sequence[str], *, env: Mapping[str, str], cwd: str | os.PathLike[str] | None, pipes: list[int]
) -> subprocess.Popen[bytes]:
    program = command[0]
    if sys.platform == "win32":  # scripts such as npx.cmd are only found by looking through PATHEXT
        import shutil

        program = shutil.which(program, path=env.get("PATH")) or program
    return subprocess.Popen(  # noqa: S603 - a command that the user wrote
        [program, *command[1:]],
        stdin=pipes[0],
        stdout=pipes[3],
        stderr=pipes[5] if len(pipes) > 4 else None,
        env=env,
        cwd=cwd,
        start_new_session=True,
    )


def unstarted(command: Sequence[str], cwd: str | os.PathLike[str] | None, error: OSError) -> str:
    """Why a command did not start, in words of our own and of the system."""
    name = os.fspath(command[0])
    if cwd is not None and not os.path.isdir(cwd):  # noqa: PTH112 - one question
        return f"cannot start {name!r}: its working directory {os.fspath(cwd)!r} does not exist"
    if isinstance(error, FileNotFoundError):
        where = "" if os.path.dirname(name) else " on PATH"  # noqa: PTH120
        hint = _split(name.split(), *command[1:2]) or "Is it installed?"
        return f"cannot start {name!r}: there is no such program{where}. {hint}"
    return f"cannot start {name!r}: {error.strerror}"


def _split(words: list[str], *more: object) -> str:
    """What to do where a program was given together with its arguments, as it is for a shell; empty elsewhere."""
    import shutil

    if len(words) < 2 or not shutil.which(words[0]):
        return ""
    listed = ", ".join([*map(repr, words), *("…" for _ in more)])
    return f"Give each word by itself, there is no shell: [{listed}]"


def _watch(
    leader: subprocess.Popen[bytes], ended: Callable[[], None], loop: asyncio.AbstractEventLoop
) -> Callable[[], None]:
    """Call `ended` on the loop once the process has ended, if possible before it is reaped. Returns how to stop."""
    try:
        pidfd = os.pidfd_open(leader.pid)
    except (AttributeError, OSError):  # not Linux, or one that is too old
        return _watch_in_thread(leader, ended, loop)

    def stop() -> None:
        if not loop.is_closed():
            loop.remove_reader(pidfd)
        os.close(pidfd)

    loop.add_reader(pidfd, ended)
    return stop


def _watch_in_thread(
    leader: subprocess.Popen[bytes], ended: Callable[[], None], loop: asyncio.AbstractEventLoop
) -> Callable[[], None]:
    stopped = threading.Event()

    def tell() -> None:
        if not stopped.is_set():
            ended()

    def wait() -> None:
        with suppress(ChildProcessError):  # reaped meanwhile
            if hasattr(os, "waitid"):
                os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
            else:
                leader.wait()
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(tell)

    threading.Thread(target=wait, name="mcprelay-child", daemon=True).start()
    return stopped.set
