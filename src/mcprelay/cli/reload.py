"""`serve --reload`: a server whose code is loaded anew, in a new process, whenever a Python file changes.

The process that a client knows stays: over HTTP it holds the listening socket, over stdio it speaks with the client.
The server runs in a process of its own. A new one takes over when it has started; where it does not start, the reason
is on standard error, and the one that runs goes on.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcprelay.cli.exit import Exit
from mcprelay.cli.show import say
from mcprelay.cli.succession import Succession
from mcprelay.cli.switchboard import Switchboard
from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable

GRACE_SECONDS = 5.0
"""How long a server over stdio that is exchanged may finish what it is doing."""

UNBOUNDED = 2**40
"""What passes is bounded by the two who speak."""

DEBOUNCE_MILLISECONDS = 200
"""Files that change within this time are one change."""


def watched(source: str) -> Path:
    """The folder whose files matter: that of a file, a folder itself, or the working directory for a module."""
    place = source.rpartition(":")[0] if ".py:" in source else source
    path = Path(place)
    if path.is_dir():
        return path.resolve()
    return path.resolve().parent if path.suffix == ".py" else Path.cwd()


async def changes(source: str) -> AsyncGenerator[list[Path]]:
    """The Python files that changed, those of one moment together."""
    from watchfiles import PythonFilter, awatch

    folder = watched(source)
    async for found in awatch(folder, watch_filter=PythonFilter(), debounce=DEBOUNCE_MILLISECONDS):
        yield sorted({Path(path) for _, path in found})


def forget_bytecode(files: Iterable[Path]) -> None:
    """Remove the bytecode of these files, wherever Python keeps it.

    Python takes bytecode for that of a file whose size and time are the same, the time in whole seconds. Of two changes
    within a second it would go on running the first.
    """
    for file in files:
        with suppress(OSError, NotImplementedError):  # there is none, or none that a server of ours could write
            Path(cache_from_source(file)).unlink()


class Reloading:
    """Exchanges a server whenever a file changes, until it is told to end.

    Args:
        source: What is served.
        start: Starts a server, lets it take over, and says whether it did.
    """

    def __init__(self, source: str, start: Callable[[], Awaitable[bool]]) -> None:
        self._source = source
        self._start = start

    async def run(self) -> None:
        """Start a server, and another one at each change."""
        stream = changes(self._source)
        change = asyncio.ensure_future(anext(stream))
        try:
            await asyncio.sleep(0)  # from here on no change is missed
            await self._exchange()
            while True:
                await self._exchange(*await change)
                change = asyncio.ensure_future(anext(stream))
        finally:
            change.cancel()
            await asyncio.wait([change])
            await stream.aclose()

    async def _exchange(self, *changed: Path) -> None:
        forget_bytecode(changed)
        if await self._start():
            names = ", ".join(sorted({file.name for file in changed}))
            say(f"{names} changed: reloaded" if names else f"files in {watched(self._source)} are watched")
        else:
            say(f"{self._source} did not start; it is tried again when a file changes")


def serve_stdio(source: str) -> Exit:
    """Serve over standard input and output until the client ends it."""
    asyncio.run(_serve_stdio(source))
    return Exit.DONE


async def _serve_stdio(source: str) -> None:
    from mcprelay.stdio import ChildChannel, open_stdio

    client = await open_stdio(message_bytes=UNBOUNDED)
    board = Switchboard(client, ended=lambda: say("the server ended; it is started again when a file changes"))
    command = [sys.executable, "-m", "mcprelay.cli", "serve", source]

    async def start() -> bool:
        child = await ChildChannel.spawn(command, env=os.environ, message_bytes=UNBOUNDED, stderr="inherit")
        return await board.plug(child, grace=GRACE_SECONDS)

    try:
        await _until_ended(Reloading(source, start).run(), board.run())
    finally:
        await board.aclose()
        await client.aclose()


async def _until_ended(*work: Coroutine[Any, Any, None]) -> None:
    """Do all of it until one part ends, or a signal says so."""
    from mcprelay.server.listening import on_signals

    told = asyncio.Event()
    tasks = [asyncio.create_task(each) for each in (*work, _wait(told))]
    with on_signals(told.set):
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


def serve_http(source: str, **options: Any) -> Exit:
    """Serve over HTTP until it is interrupted.

    Raises:
        ConfigurationError: The address cannot be bound, or this system cannot hand a socket on.
    """
    if sys.platform == "win32":
        raise ConfigurationError("--reload with --http hands a socket on to a new process, which Windows does not")
    asyncio.run(_serve_http(source, options))
    return Exit.DONE


async def _serve_http(source: str, options: dict[str, Any]) -> None:
    from mcprelay.server.listening import HttpOptions, bound

    with bound(HttpOptions(host=options.pop("host"), port=options.pop("port"))) as listening:
        succession = Succession(source, listening, options)
        try:
            await _until_ended(Reloading(source, succession.start).run())
        finally:
            await succession.aclose()
