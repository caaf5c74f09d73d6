"""Processes that serve one after the other on one listening socket. What runs in each is `worker`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from mcprelay.cli.worker import Reachable, Task

if TYPE_CHECKING:
    import socket
    from asyncio.subprocess import Process

GRACE_SECONDS = 10.0
"""How long a process that is told to end may take before it is killed: longer than servers take by themselves."""


class Succession:
    """The process that serves, and those after it.

    Args:
        source: What is served.
        listening: The socket. It stays open here, so that nobody who connects meanwhile is refused.
        options: Further options of `Server.serve`.
    """

    def __init__(self, source: str, listening: socket.socket, options: dict[str, Any]) -> None:
        self._source = source
        self._listening = listening
        self._options = options
        self._current: Process | None = None

    async def start(self) -> bool:
        """Start a process, and end the one before when it is reachable. Whether it is."""
        reads, writes = os.pipe()
        try:
            process = await self._started(writes)
        except BaseException:
            os.close(reads)
            raise
        finally:
            os.close(writes)
        try:
            said = await _said(reads)
        except BaseException:
            await _end(process)
            raise
        if not said:
            await _end(process)
            return False
        old, self._current = self._current, process
        if old is not None:
            await _end(old)
        else:
            reachable = msgspec.json.decode(said, type=Reachable)
            print(f"{reachable.name} is served at {reachable.url} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        return True

    async def _started(self, ready: int) -> Process:
        task = Task(source=self._source, socket=self._listening.fileno(), ready=ready, options=self._options)
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mcprelay.cli.worker", msgspec.json.encode(task).decode()),
            stdin=asyncio.subprocess.PIPE,
            pass_fds=(task.socket, task.ready),
            start_new_session=True,
        )

    async def aclose(self) -> None:
        """End the process that serves."""
        if self._current is not None:
            await _end(self._current)


async def _said(descriptor: int) -> bytes:
    """What comes out of a pipe, whole."""
    reader = asyncio.StreamReader()
    pipe = os.fdopen(descriptor, "rb", buffering=0)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        return await reader.read()
    finally:
        transport.close()


async def _end(process: Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
