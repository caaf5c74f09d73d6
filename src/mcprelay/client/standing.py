"""The server's own stream of the handshake era: what it says and asks outside of any call.

It is opened where there is something to hear, opened again when it ends, and given up where the server has none.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import UNSET

from mcprelay.client.courier import Refusal
from mcprelay.client.progress import logger
from mcprelay.client.stream import RETRY_MS, RETRY_MS_MOST
from mcprelay.core.dialer import Kind, kind_of
from mcprelay.errors import CallFailed
from mcprelay.wire import jsonrpc, sse

if TYPE_CHECKING:
    from mcprelay.client.web import Web
    from mcprelay.ports import Reply


class _Ear:
    """What one reading of the stream leaves for the next."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self.last = ""
        self.retry = RETRY_MS
        self.fruitless = 0

    async def read(self, reply: Reply) -> None:
        if kind_of(reply.status, reply.headers) is not Kind.STREAM:
            self.fruitless += 1
            return
        web = self.web
        parser = sse.Parser(limit=web.settings.response_bytes)
        try:
            async for chunk in reply.chunks():
                for event in parser.feed(chunk):
                    self.fruitless = 0
                    if isinstance(event, sse.Event) and event.event == "message":
                        self.hear(event.data)
        finally:
            self.last = parser.last_event_id or self.last
            self.retry = self.retry if parser.retry is None else min(parser.retry, RETRY_MS_MOST)

    def hear(self, data: bytes) -> None:
        """Take a message. An answer does not belong here, and settles nothing: who waits for one reads elsewhere."""
        web = self.web
        message = jsonrpc.parse(data, depth=web.peer.depth)
        asks = message.role == "request" if isinstance(message, jsonrpc.Malformed) else message.method is not UNSET
        if asks:
            web.heard(web.peer.take(message))
        else:
            web.peer.dropped += 1

    def pause(self) -> float:
        """Seconds to wait before it is opened again: longer each time that nothing came."""
        return float(min(self.retry * 2 ** min(self.fruitless, 6), RETRY_MS_MOST)) / 1000


async def stand(web: Web) -> None:
    """Listen until the link ends, or the server says that it has no such stream."""
    ear = _Ear(web)
    while web.alive:
        ear.fruitless += 1
        try:
            answer = await web.courier.deliver(web.dialer.get(last_event_id=ear.last), ear.read)
        except CallFailed as error:
            logger.debug("the server's own stream broke off: %s", error)
            answer = None
        if isinstance(answer, Refusal):
            logger.debug("the server has no stream of its own: HTTP %d", answer.status)
            return
        await asyncio.sleep(ear.pause())
