"""Calls with random cancellations, deadlines and cuts, which end with the tasks, descriptors and memory they began with.

A child process over stdio, and a server over HTTP behind a wire that is cut at random. Each answer is held against its
question, so that a crossed one is seen too. Prints what it counted; ends with 1 where something was left behind.

    python benchmarks/leak.py                   10,000 calls over each, about half a minute
    python benchmarks/leak.py 1000              fewer
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcprelay import CallFailed, Client, Server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    Cut = Callable[[Client], Awaitable[None]]

CALLS = 10_000
WORKERS = 50
CUT_EVERY = 500
"""How many calls there are to a cut."""
OBJECTS = 2_000
"""How many more objects there may be at the end: caches that fill up to their bound."""
MEMORY = 8 * 2**20
"""How many more bytes of memory: what the allocator keeps."""


def serve(wire: str, port: int = 0) -> None:
    """The server: an echo, one that takes its time, and one that dies."""
    server = Server("echo")

    @server.tool
    async def echo(n: int, wait: float = 0) -> int:
        await asyncio.sleep(wait)
        return n

    @server.tool
    async def die() -> None:
        os._exit(3)

    if wire == "http":
        server.run("http", port=port)
    else:
        server.run()


# --- what there is


def descriptors() -> int:
    """How many descriptors this process has, where the system tells."""
    path = Path("/proc/self/fd")
    return len(list(path.iterdir())) if path.exists() else 0


def resident() -> int:
    """How many bytes of memory this process has, where the system tells."""
    path = Path("/proc/self/statm")
    return int(path.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if path.exists() else 0


def children() -> int:
    """How many processes this one started and has not seen end, where the system tells."""
    path = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return len(path.read_text().split()) if path.exists() else 0


async def inventory() -> dict[str, int]:
    """All that is there, after what is garbage was collected."""
    for _ in range(3):
        await asyncio.sleep(0.05)
        gc.collect()
    return {
        "tasks": len(asyncio.all_tasks()),
        "descriptors": descriptors(),
        "children": children(),
        "objects": len(gc.get_objects()),
        "memory": resident(),
    }


def left(before: dict[str, int], after: dict[str, int]) -> list[str]:
    """What is there that was not there before, in words."""
    allowed = {"objects": OBJECTS, "memory": MEMORY}
    return [
        f"{after[what] - before[what]} {what} more than before ({after[what]})"
        for what in before
        if after[what] - before[what] > allowed.get(what, 0)
    ]


# --- the storm


async def call(client: Client, number: int, dice: random.Random, seen: Counter[str]) -> None:
    """One call, which may be cancelled, run out of time, or fail; its end is counted."""
    wait = dice.choice([0.0, 0.0, 0.0, 0.005])
    timeout = 0.003 if dice.random() < 0.1 else 30.0
    calling = asyncio.ensure_future(client.call_tool("echo", {"n": number, "wait": wait}, output=int, timeout=timeout))
    if dice.random() < 0.15:
        await asyncio.sleep(dice.random() * 0.003)
        calling.cancel()
    await asyncio.wait([calling])
    if calling.cancelled():
        seen["cancelled"] += 1
    elif (error := calling.exception()) is None:
        seen["answered" if calling.result().value == number else "CROSSED"] += 1
    elif isinstance(error, CallFailed):
        seen[f"{type(error).__name__}, {error.evidence}"] += 1
    else:
        seen[f"UNEXPECTED {error!r}"] += 1


async def storm(client: Client, calls: int, dice: random.Random, cut: Cut) -> Counter[str]:
    """So many calls, some dozens at once, with cuts between them."""
    seen: Counter[str] = Counter()
    numbers = iter(range(calls))

    async def work() -> None:
        for number in numbers:
            if number % CUT_EVERY == CUT_EVERY // 2:
                await cut(client)
                seen["(cuts)"] += 1
            await call(client, number, dice, seen)

    await asyncio.gather(*(work() for _ in range(WORKERS)))
    return seen


class Wire:
    """A way to a port that can be cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._joined, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp"

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None, "it was entered"
        self._server.close()
        await self.cut(None)
        if self._pumps:
            await asyncio.wait(self._pumps)

    async def cut(self, _: Client | None) -> None:
        """Cut all that is open, without a word."""
        for writer in self._open:
            writer.transport.abort()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "connections are served in tasks"
        self._pumps.add(task)
        task.add_done_callback(self._pumps.discard)
        self._open.add(writer)
        far: asyncio.StreamWriter | None = None
        try:
            back, far = await asyncio.open_connection("127.0.0.1", self._port)
            self._open.add(far)
            await asyncio.gather(_pump(reader, far), _pump(back, writer))
        except OSError:
            pass
        finally:
            for one in (writer, far):
                if one is not None:
                    self._open.discard(one)
                    one.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
    writer.close()


# --- each wire


@contextlib.asynccontextmanager
async def over_stdio() -> AsyncGenerator[tuple[Client, Cut]]:
    """A client of a child, whose wire is cut by the death of the child."""

    async def cut(client: Client) -> None:
        with contextlib.suppress(CallFailed):
            await client.call_tool("die")

    async with Client([sys.executable, __file__, "serve", "stdio"]) as client:
        yield client, cut


@contextlib.asynccontextmanager
async def over_http() -> AsyncGenerator[tuple[Client, Cut]]:
    """A client of a server in another process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, __file__, "serve", "http", str(port)]
    server = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    try:
        await _until_open(port)
        wire = Wire(port)
        async with wire as url, Client(url, connections=WORKERS) as client:
            yield client, wire.cut
    finally:
        server.terminate()
        await server.wait()


async def _until_open(port: int) -> None:
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.05)


WIRES: dict[str, Callable[[], contextlib.AbstractAsyncContextManager[tuple[Client, Cut]]]] = {
    "stdio": over_stdio,
    "http": over_http,
}


async def check(wire: str, calls: int, *, warm: int = 500, seed: int = 7) -> tuple[Counter[str], list[str]]:
    """Make the calls over one wire, and give how they ended and what was left behind.

    What is measured begins after a first connection with `warm` calls: modules, caches and pools are there by then.
    """
    dice = random.Random(seed)
    async with WIRES[wire]() as (client, cut):
        await storm(client, warm, dice, cut)
    before = await inventory()
    async with WIRES[wire]() as (client, cut):
        seen = await storm(client, calls, dice, cut)
        owed = ["a call still waits"] if client.busy else []
    wrong = [f"{count} {how}" for how, count in seen.items() if how.startswith(("CROSSED", "UNEXPECTED"))]
    return seen, wrong + owed + left(before, await inventory())


async def main(calls: int) -> int:
    """Check each wire, and say what was found."""
    found = 0
    for wire in WIRES:
        begun = time.monotonic()
        seen, wrong = await check(wire, calls)
        print(f"{wire}: {calls:,} calls in {time.monotonic() - begun:.1f} s")
        for how, count in sorted(seen.items()):
            print(f"  {count:>7,} {how}")
        print("\n".join(f"  LEFT BEHIND: {what}" for what in wrong) if wrong else "  nothing was left behind")
        found += len(wrong)
    return 1 if found else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    else:
        sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else CALLS)))
