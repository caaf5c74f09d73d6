"""Our client against servers of other people: it uses everything that they have."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mcprelay import Client
from mcprelay.client.memory import Memory
from tests.interop.process import free_port, served
from tests.interop.run import SERVERS, Run
from tests.interop.visit import ANSWERS, use_everything

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("run", SERVERS, ids=lambda run: run.id)
async def test_our_client_uses_everything_that_a_server_has(run: Run, tmp_path: Path):
    run.peer.install()
    async with connected(run, tmp_path) as client:
        await use_everything(client, run)


@contextlib.asynccontextmanager
async def connected(run: Run, tmp_path: Path) -> AsyncIterator[Client]:
    """Our client, connected to the peer's server."""
    program = run.program + (".mjs" if "typescript" in run.name else ".py")
    async with contextlib.AsyncExitStack() as stack:
        target: Any
        if run.transport == "stdio":
            target = run.peer.command(program, "stdio")
        else:
            port = free_port()
            command = run.peer.command(program, run.transport, str(port))
            await stack.enter_async_context(served(run.peer, command, port, tmp_path / "log"))
            target = f"http://127.0.0.1:{port}/{'mcp' if run.transport == 'http' else 'sse'}"
        client = Client(
            target,
            revision=run.revision if run.pinned else None,
            memory=Memory(),
            request_timeout=15,
            **ANSWERS,
        )
        yield await stack.enter_async_context(client)
