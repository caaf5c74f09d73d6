"""Programs of peers as processes: run to their end, or served with until the test is over."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.interop.peer import Peer

RUN_SECONDS = 90
START_SECONDS = 30


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def output_of(peer: Peer, command: list[str]) -> bytes:
    """What a program writes, which has to end well."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **peer.environment},
    )
    try:
        async with asyncio.timeout(RUN_SECONDS):
            out, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        out, errors = await process.communicate()
        pytest.fail(f"{command} did not end within {RUN_SECONDS} s: {errors.decode()[-3000:]}")
    assert process.returncode == 0, f"{command} ended with {process.returncode}: {errors.decode()[-3000:]}"
    return out


@contextlib.asynccontextmanager
async def served(
    peer: Peer, command: list[str], port: int, log: Path, env: dict[str, str] | None = None
) -> AsyncIterator[None]:
    """A server of a peer that listens on a port, for a while. What it writes goes to `log`."""
    with log.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env={**os.environ, **peer.environment, **(env or {})},
        )
    try:
        async with asyncio.timeout(START_SECONDS):
            while not await _listens(port):
                assert process.returncode is None, f"{command} ended: {_end_of(log)}"
                await asyncio.sleep(0.05)
        yield
    except TimeoutError:
        pytest.fail(f"{command} did not listen within {START_SECONDS} s: {_end_of(log)}")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
