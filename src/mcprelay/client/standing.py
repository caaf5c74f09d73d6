"""The server's own stream of the handshake era: what it says and asks outside of any call.

It is opened where there is something to hear, and opened again when it ends or is refused for the moment, each time
after a longer wait. Whoever listens is told when the server has none, when it stays away, and when something may have
been missed; a session that turns out to be lost is renewed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import UNSET

from mcprelay.client import failure
from mcprelay.client.courier import Refusal
from mcprelay.client.progress import logger
from mcprelay.client.stream import FOR_THE_MOMENT, RETRY_MS
from mcprelay.core.dialer import Kind, kind_of
from mcprelay.errors import CallFailed, HttpError, MCPRelayError
from mcprelay.wire import jsonrpc, sse

if TYPE_CHECKING:
    from mcprelay.client.web import Web
    from mcprelay.ports import Reply

_NOT_AFTER_THAT = frozenset({400, 404, 410, 422})
"""Statuses by which a server may refuse to resume a stream that it would begin."""
_PAUSE_MS_MOST = 60_000
"""How long waits grow by themselves."""


class _Ear:
    """What one reading of the stream leaves for the next.

    Attributes:
        last: The id of the last event, by which the server tells what comes after it.
        fruitless: How often in a row it was opened, or tried to be, without an event, and not for long.
        failed: How often in a row it could not be opened.
        gap: Whether something may have been missed since it was open last.
        renewed: Whether the session took the place of one that was lost, and the stream has not been open in it yet.
    """

    def __init__(self, web: Web, *, renewed: bool) -> None:
        self.web = web
        self.renewed = renewed
        self.last = ""
        self.retry = RETRY_MS
        self.fruitless = 0
        self.failed = 0
        self.gap = False

    async def read(self, reply: Reply) -> None:
        """Hear what the server says, for as long as it says something."""
        if kind_of(reply.status, reply.headers) is not Kind.STREAM:
            raise failure.deaf(f"a GET is answered with {reply.headers.get('content-type', 'nothing')}, not a stream")
        self._opened()
        begun, pause = self.web.loop.time(), self.pause()
        parser = sse.Parser(limit=self.web.settings.response_bytes)
        try:
            async for chunk in reply.chunks():
                for event in parser.feed(chunk):
                    self.fruitless = 0
                    if isinstance(event, sse.Event) and event.event == "message":
                        self.hear(event.data)
        finally:
            self.gap = True  # what is said until it is open again is missed, however it ended
            if self.web.loop.time() - begun >= pause:
                self.fruitless = 0  # an idle stream is cut off by proxies: that is no reason to be deaf for longer
            self.last = parser.last_event_id or self.last
            self.retry = self.retry if parser.retry is None else parser.retry

    def _opened(self) -> None:
        self.failed = 0
        self.renewed = False
        self.web.deaf = None
        if self.gap and not self.last:
            self.web.renewed()
        self.gap = False

    def hear(self, data: bytes) -> None:
        """Take a message, or a batch of them where the revision has batches."""
        web = self.web
        message = jsonrpc.parse(data, depth=web.peer.depth, values=web.peer.values)
        if isinstance(message, jsonrpc.Malformed) and web.peer.batches and jsonrpc.is_batch(data):
            batch = jsonrpc.parse_batch(data, depth=web.peer.depth, values=web.peer.values)
            for part in batch if isinstance(batch, list) else [batch]:
                self._take(part)
        else:
            self._take(message)

    def _take(self, message: jsonrpc.Message) -> None:
        """An answer does not belong here, and settles nothing: who waits for one reads elsewhere."""
        web = self.web
        asks = message.role == "request" if isinstance(message, jsonrpc.Malformed) else message.method is not UNSET
        if asks:
            web.heard(web.peer.take(message))
        else:
            web.peer.dropped += 1

    def broke_off(self, error: CallFailed) -> None:
        """It ended, or could not be opened, for a reason that may pass."""
        logger.debug("the server's own stream broke off: %s", error)
        self.gap = True
        self.failed += 1
        most = self.web.settings.resumptions
        if self.failed > most and self.web.deaf is None:
            reason = f"the server's own stream could not be opened again: resumptions={most:g} ({error})"
            self.web.deafened(failure.deaf(reason))

    def pause(self) -> float:
        """Seconds to wait before it is opened again: longer each time that it was short and empty, or refused."""
        return float(max(self.retry, min(self.retry * 2 ** min(self.fruitless, 6), _PAUSE_MS_MOST))) / 1000


async def stand(web: Web, *, renewed: bool = False) -> None:
    """Listen until the link ends, or the server says that it has no such stream.

    Args:
        web: The link.
        renewed: Whether the session took the place of one that was lost: one that is lost at once is not renewed again.
    """
    ear = _Ear(web, renewed=renewed)
    while web.alive:
        ear.fruitless += 1
        try:
            never = await _attempt(web, ear)
        except CallFailed as error:
            ear.broke_off(error)
        except MCPRelayError as error:
            web.deafened(error)  # a mistake of this program's own, which no waiting mends: whoever listens hears it
            return
        else:
            if never is not None:
                logger.debug("%s", never)
                web.deafened(never)
                return
        await asyncio.sleep(ear.pause())


async def _attempt(web: Web, ear: _Ear) -> CallFailed | None:
    """Open the stream and hear it to its end; or say why there is none, where that is final.

    Raises:
        CallFailed: It broke off, or cannot be opened for the moment.
    """
    if web.renewing:
        await web.rejoin()  # which ends this task, and begins another one in the new session
    session = web.dialer.session
    answer = await web.courier.deliver(web.dialer.get(last_event_id=ear.last), ear.read)
    if not isinstance(answer, Refusal):
        return None
    if answer.status == 404 and session is not None and not ear.renewed:
        web.lose(session)
        await web.rejoin()
        return None
    if answer.status in FOR_THE_MOMENT:
        raise failure.deaf(f"HTTP {answer.status}")
    if ear.last and answer.status in _NOT_AFTER_THAT:
        ear.last = ""
        raise failure.deaf(f"the server knows nothing of the last event any more (HTTP {answer.status})")
    return _without(answer)


def _without(refusal: Refusal) -> CallFailed:
    """The server has no such stream, or none for us."""
    if refusal.status in (401, 403):
        return failure.http(None, refusal.status, refusal.headers, refusal.body)
    reason = f"listening: the server has no stream of its own on which it could tell anything (HTTP {refusal.status})"
    return HttpError(reason, status=refusal.status, body=failure.text_of(refusal.body), headers=refusal.headers)
