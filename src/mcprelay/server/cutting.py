"""What becomes of requests that are worked on for longer than their server, which ends, would wait.

They are cancelled, and each is answered all the same: calls by the dispatcher, under their ids; what is no call, or a
batch of them, as a whole. So a client knows that it was the server, and the log says it in one line.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Collection, Generator

    from mcprelay.server import Server
    from mcprelay.server.stream import Send

ENDING = "The server is shutting down: the request was cancelled"
_HEADERS = [(b"content-type", b"application/json"), (b"retry-after", b"1")]


@contextlib.contextmanager
def cutting(server: Server, working: Collection[asyncio.Task[None]]) -> Generator[None, None, None]:
    """While the context is entered, cancel what is still among `working` after `shutdown_grace`."""
    server.dispatcher.ending = True
    cut = asyncio.get_running_loop().call_later(server.limits.shutdown_grace, _cut, server, working)
    try:
        yield
    finally:
        cut.cancel()
        server.dispatcher.ending = False


def _cut(server: Server, working: Collection[asyncio.Task[None]]) -> None:
    late, grace = list(working), server.limits.shutdown_grace
    if late:
        why = "the server ends: requests that took longer than shutdown_grace=%g s are cancelled: %d"
        server.logger.warning(why, grace, len(late))
    for task in late:
        task.cancel()


async def cut_off(send: Send) -> None:
    """Answer a request that was cancelled so, or end its response where that has begun."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
    why = jsonrpc.refusal(None, jsonrpc.INTERNAL_ERROR, ENDING)
    with contextlib.suppress(Exception):  # it has begun
        await send({"type": "http.response.start", "status": 503, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": why, "more_body": True})
    with contextlib.suppress(Exception):  # it has ended
        await send({"type": "http.response.body", "body": b"", "more_body": False})
