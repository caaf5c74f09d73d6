"""The client's end: a child process and its pipes as a `Channel`.

Knows how the process is started, what is known of it when it ends, and how it is ended. Knows no message: a banner or
any other line that the child prints is handed over like every line.
"""

from __future__ import annotations

import asyncio
import os
import signal
import weakref
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from mcprelay.stdio import process
from mcprelay.stdio.channel import LineChannel
from mcprelay.stdio.environment import child_environment
from mcprelay.stdio.line import MESSAGE_BYTES
from mcprelay.stdio.outlet import HIGH_WATER
from mcprelay.stdio.source import Source, open_source
from mcprelay.stdio.stderr import TAIL_BYTES, Stderr

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    StderrWanted: TypeAlias = Literal["tail", "inherit"] | Callable[[str], None]

GRACE = 1.5
"""Seconds a child has to end after its input ended, and once more after it was asked to terminate."""

EXIT_SECONDS = 0.5
"""How long the end of the child's output waits for its exit, so that exit code and last words are known by then."""

LINGER_SECONDS = 0.25
"""How long what the child left behind may take to end after it was asked to."""


_FOR_EVER = 10 * 365 * 86400.0
"""Seconds: longer than any loop runs."""


class ChildChannel(LineChannel):
    """Messages to and from a child process over its standard streams. Made by `spawn`.

    The process leads a group of its own. The group is gone when `aclose` returns; and also when the channel is dropped,
    its loop is closed or the interpreter ends without `aclose`, by force then.
    """

    def __init__(
        self,
        group: process.ProcessGroup,
        *,
        message_bytes: int = MESSAGE_BYTES,
        high_water: int = HIGH_WATER,
        stderr: Stderr,
        grace: float = GRACE,
    ) -> None:
        """Take over a group that `process.start` started; `spawn` does both."""
        writes, reads, errors = group.pipes
        close = group.close
        self._group = group
        self._stderr = stderr
        self._grace = grace
        self._finalizer = weakref.finalize(self, _abandon, group, os.getpid())
        super().__init__(reads, writes, message_bytes=message_bytes, high_water=high_water, close=close)
        bond = _Bond()
        self._bond = weakref.finalize(bond, _outlive, group, os.getpid())
        self._bond.atexit = False
        self._tied = weakref.ref(self._loop.call_later(_FOR_EVER, bond.hold))
        self._exit: asyncio.Future[None] = self._loop.create_future()
        self._patience: asyncio.TimerHandle | None = None
        self._errors: Source | None = None
        if errors >= 0:
            self._errors = open_source(errors, stderr.feed, loop=self._loop, close=close)
        try:
            group.watch(self._exited, loop=self._loop)
        except BaseException:
            self._release()
            raise

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        message_bytes: int = MESSAGE_BYTES,
        high_water: int = HIGH_WATER,
        stderr: StderrWanted = "tail",
        stderr_bytes: int = TAIL_BYTES,
        grace: float = GRACE,
    ) -> Self:
        """Start `command` and speak with it. Nothing was left behind when this raises.

        Args:
            command: A program, looked up on PATH, and its arguments. There is no shell.
            env: Added to the few variables that are safe to inherit (`environment.POSIX`).
            cwd: Its working directory; ours unless given.
            message_bytes: How long a message of the child may be. A longer one is discarded as it streams, and
                `receive` raises `LineTooLong` in its place.
            high_water: How many bytes may wait for the child before `send` suspends.
            stderr: What becomes of its standard error: only its tail is kept; it goes to ours, and no tail is kept; or
                the tail is kept and a callable gets each line.
            stderr_bytes: How much of the end of its standard error is kept.
            grace: Seconds that `aclose` gives it to end after its input ended, and again after SIGTERM. SIGKILL
                follows, so `aclose` takes about twice as long at most.

        Raises:
            ConnectFailed: It cannot be started; the message says why.
            ConfigurationError: `command` is not a command.
        """
        kept = Stderr(tail_bytes=stderr_bytes, on_line=stderr if callable(stderr) else None)
        group = process.start(command, env=child_environment(env), cwd=cwd, capture_stderr=stderr != "inherit")
        return cls(group, message_bytes=message_bytes, high_water=high_water, stderr=kept, grace=grace)

    @property
    def pid(self) -> int:
        """The process id of the child, which is also its group's."""
        return self._group.pid

    @property
    def exit_code(self) -> int | None:
        """The child's exit code, negative for the signal that ended it, or None while it runs.

        It is there when `receive` returned `b""`, unless the child closed its output and runs on.
        """
        return self._group.exit_code

    @property
    def stderr_tail(self) -> str:
        """The end of what the child said on standard error: untrusted text."""
        return self._stderr.tail

    # --------------------------------------------------------------------------------------------------------- ending

    def _exited(self) -> None:
        if self._errors is not None:
            self._errors.finish()
        self._outlet.lose(reason := f"the process had exited with code {self.exit_code}")
        self._outlet.lost = reason  # which says more than that the pipe broke
        # All that the child wrote is in the pipe by now, whoever else may hold the pipe open.
        self._source.finish()
        if self._patience is not None:
            self._end()
        if not self._exit.done():
            self._exit.set_result(None)

    def _input_ended(self) -> None:
        if self.exit_code is None:
            self._patience = self._loop.call_later(EXIT_SECONDS, self._end)
        else:
            self._end()

    async def aclose(self) -> None:
        """End the child: end its input, wait, terminate its group, wait, kill its group. Never raises.

        What was sent is handed over first, as far as the child takes it. What it still says is discarded.
        """
        await super().aclose()

    async def _wind_down(self) -> None:
        self._ready.clear()
        self._end()
        self._source.resume()  # a child that waits for us to read would never see that its input ended
        await self._hang_up()
        if self.exit_code is None:
            self._group.signal(signal.SIGTERM)
            await asyncio.wait([self._exit], timeout=self._grace)
        await self._outlast()

    async def _hang_up(self) -> None:
        patience = self._loop.time() + self._grace
        try:
            async with asyncio.timeout_at(patience):
                await self._outlet.drain()
        except TimeoutError:
            pass
        self._outlet.close()
        await asyncio.wait([self._exit], timeout=max(0.0, patience - self._loop.time()))

    async def _outlast(self) -> None:
        """Wait a little for those that the child left behind, and kill who is left."""
        patience = self._loop.time() + LINGER_SECONDS
        # Nothing tells when the child of somebody else ends.
        while self.exit_code is not None and not self._group.gone and self._loop.time() < patience:  # noqa: ASYNC110
            await asyncio.sleep(LINGER_SECONDS / 10)
        if not self._group.gone:
            self._group.signal(process.KILL)
            await asyncio.wait([self._exit], timeout=process.REAP_SECONDS)

    def _release(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        super()._release()
        if self._errors is not None:
            self._errors.close()
        if self.exit_code is None or not self._group.gone:
            self._group.kill()
        self._group.unwatch()
        self._finalizer.detach()
        self._bond.detach()
        if (held := self._tied()) is not None:
            held.cancel()


class _Bond:
    """Held by the loop alone, in a timer: gone once the loop is closed, whoever still keeps the channel."""

    def hold(self) -> None:
        """What the timer would call, later than any loop runs."""


def _abandon(group: process.ProcessGroup, owner: int) -> None:
    """The last resort, when nobody closed the channel. A fork of the process must not kill what is not its own."""
    if os.getpid() != owner:
        return
    group.kill()
    for fd in group.pipes:
        group.close(fd)


def _outlive(group: process.ProcessGroup, owner: int) -> None:
    """The loop was closed before the channel. The pipes stay: whoever keeps the channel still has their numbers."""
    if os.getpid() == owner:
        group.kill()
