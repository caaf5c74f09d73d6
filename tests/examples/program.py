"""Examples as programs: each is started by its one command, and spoken to as a client would."""

import asyncio
import contextlib
import os
import socket
import sys
from pathlib import Path

from mcprelay import Client
from mcprelay.revisions import ALL, Era

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
HANDSHAKE = next(revision.name for revision in ALL.values() if revision.era is Era.HANDSHAKE)
"""The newest revision of the handshake era."""
NEWEST = next(iter(ALL))


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **more}


@contextlib.asynccontextmanager
async def started(example, *arguments, env=None, **options):
    """A client of an example that speaks stdio."""
    command = [sys.executable, str(EXAMPLES / example), *arguments]
    async with Client(command, env=environment(**(env or {})), **options) as client:
        yield client


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.asynccontextmanager
async def listening(example, *arguments, port=None):
    """The address of an example that speaks HTTP; when it is left, the example must end well."""
    port = port or free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLES / example), *arguments, env=environment(PORT=str(port))
    )
    try:
        await reached(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        code = await process.wait()
    assert code in {0, -15}, f"{example} ended with {code}"


async def reached(port, process):
    """Wait until somebody answers there, or the process is no more."""
    async with asyncio.timeout(20):
        while process.returncode is None:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 0.05)
    raise AssertionError(f"the example ended with {process.returncode}")


@contextlib.asynccontextmanager
async def connected(example, *arguments, path="/mcp", **options):
    """A client of an example that speaks HTTP."""
    async with listening(example, *arguments) as origin, Client(origin + path, **options) as client:
        yield client
