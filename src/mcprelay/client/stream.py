"""How an answer is read from HTTP: a body with one message, or a stream that ends with it.

In the handshake era a stream that breaks off is resumed where the server gave its events ids, and a server may end it
on purpose and be asked again later (handshake transports, "Resumability and Redelivery").
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from mcprelay.client import failure
from mcprelay.client.courier import Refusal
from mcprelay.core.dialer import Kind, kind_of
from mcprelay.core.peer import Garbled, Refused, Replied
from mcprelay.errors import ANSWERED, MAYBE_SENT, NOT_SENT, CallFailed, ConnectionLost
from mcprelay.revisions import Feature
from mcprelay.wire import jsonrpc, sse
from mcprelay.wire.field import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcprelay.client.call import Call
    from mcprelay.client.web import Web
    from mcprelay.ports import Reply, Request
    from mcprelay.revisions import Revision

RETRY_MS = 1000
"""How long to wait before a stream is resumed when the server names no time."""
FOR_THE_MOMENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that say nothing of whether there is such a stream."""
_NO_CONTENT = 204
_HASTE_MS = 50
"""What doubles with each resumption that brought nothing: a server that is started anew is not given up in a blink."""


class Reading:
    """Reads the answer to one call.

    Attributes:
        headers: The headers of the reply that the answer came in.
    """

    __slots__ = (
        "_broken", "_call", "_fruitless", "_last", "_resumed", "_retry", "_revision", "_unreadable", "_web", "headers",
    )  # fmt: skip

    def __init__(self, web: Web, call: Call, revision: Revision | None) -> None:
        self._web = web
        self._call = call
        self._revision = revision
        self._last = ""
        self._retry: int | None = None
        self._broken: ConnectionLost | None = None
        self._fruitless = 0
        self._resumed = 0
        self._unreadable: str | None = None
        self.headers: Mapping[str, str] = {}

    async def of(self, request: Request) -> Raw | Refusal:
        """The result, or what was refused and how.

        Raises:
            CallFailed: There is no complete answer.
        """
        answer = await self._web.courier.deliver(request, self._receive, call=self._call, patience=self._web)
        while answer is None:
            await self._pause()
            answer = await self._resume()
        return answer

    async def _receive(self, reply: Reply) -> Raw | Refusal | None:
        self.headers = headers = reply.headers
        kind = kind_of(reply.status, headers)
        if kind is Kind.MESSAGE:
            return self._only(await reply.read(self._web.settings.response_bytes), reply.status)
        if kind is Kind.STREAM:
            return await self._read(reply)
        came, unread = b"", kind is Kind.NOTHING and "transfer-encoding" in headers  # which need not end
        if not unread and headers.get("content-length") != "0" and reply.status != _NO_CONTENT:
            came = await reply.read(self._web.settings.response_bytes)
        if not unread and not came.strip():
            raise self._empty(reply.status)
        media_type = headers.get("content-type", "none")
        reason = f"HTTP {reply.status} with the content type {shown(media_type)} is no answer to a request"
        advice = "if there is, it may have been carried out: repeat it only if that does no harm"
        self._call.evidence = ANSWERED
        raise failure.invalid(self._call, f"{reason} ({failure.ADVICE_FOR[404]})", came, advice=advice)

    def _empty(self, status: int) -> CallFailed:
        self._call.evidence = ANSWERED
        return failure.invalid(self._call, f"HTTP {status} came with an empty body, and not with an answer")

    # --- messages

    def _only(self, data: bytes, status: int) -> Raw | Refusal:
        """The one message of a body."""
        if not data.strip():
            raise self._empty(status)
        answer = self._message(data, status)
        if answer is None:
            self._call.evidence = ANSWERED
            why = "" if self._unreadable is None else f" ({self._unreadable})"
            raise failure.invalid(self._call, f"the body holds no answer to this request{why}", data)
        return answer

    def _message(self, data: bytes, status: int = 200) -> Raw | Refusal | None:
        """What a message says about the call: its answer, or nothing; what else it says goes to the link."""
        peer = self._web.peer
        message = jsonrpc.parse(data, depth=peer.depth, values=peer.values)
        if type(message) is jsonrpc.Envelope:
            return self._take(message, status)
        if message.crowded and jsonrpc.is_batch(data):  # nothing tells whether the answer is in it
            values, sent = self._web.settings.response_values, MAYBE_SENT
            part = "the batch with the answer, or one before it,"
            raise failure.too_long(self._call, "response_values", values, evidence=sent, part=part)
        if self._revision is not None and self._revision.has(Feature.BATCH) and jsonrpc.is_batch(data):
            batch = jsonrpc.parse_batch(data, depth=peer.depth, values=peer.values)
            if isinstance(batch, list):
                return self._parts(batch, data, status)
        return self._malformed(message, data)

    def _parts(self, batch: list[jsonrpc.Message], data: bytes, status: int) -> Raw | Refusal | None:
        answer = None
        for part in batch:
            if isinstance(part, jsonrpc.Malformed):
                self._malformed(part, data)
            else:
                answer = self._take(part, status) or answer
        return answer

    def _take(self, message: jsonrpc.Envelope, status: int) -> Raw | Refusal | None:
        web, call = self._web, self._call
        if message.method is not UNSET:
            web.heard(web.peer.take(message), call)
            return None
        if message.id != call.request_id:
            if message.id is not UNSET or message.error is UNSET:
                web.peer.dropped += 1
                return None
            # An error without an id: the server could not read the request that this reply is to.
            call.evidence = ANSWERED
            return Refusal(status, self.headers, b"", message.error)
        event = web.peer.take(message)
        call.evidence = ANSWERED
        if isinstance(event, Replied):
            return event.result
        if isinstance(event, Refused):
            return Refusal(status, self.headers, b"", event.error)
        return None

    def _malformed(self, message: jsonrpc.Malformed, data: bytes) -> Raw | None:
        """What is no message: the answer all the same, where it is a list of which only a part cannot be read."""
        web = self._web
        self._unreadable = message.reason
        if message.id is not None and message.role != "request" and message.id != self._call.request_id:
            web.unreadable += 1  # what this stream says of other calls does not count
            return None
        event = web.peer.take(message)
        if isinstance(event, Replied):
            self._call.evidence = ANSWERED
            return event.result
        if isinstance(event, Garbled):
            web.unreadable += 1
            self._call.evidence = ANSWERED
            raise failure.garbled(self._call, event, data, settings=web.settings)
        web.heard(event, self._call)
        return None

    # --- streams

    async def _read(self, reply: Reply) -> Raw | Refusal | None:
        """Read a stream to the answer; None when it ended before that and can be resumed."""
        parser = sse.Parser(limit=self._web.settings.response_bytes)
        self._broken = None
        try:
            async for chunk in reply.chunks():
                for event in parser.feed(chunk):
                    self._fruitless = 0
                    answer = self._event(event)
                    if answer is not None:
                        settle(reply)
                        return answer
        except ConnectionLost as error:
            self._broken = error
        if parser.last_event_id and parser.last_event_id != self._last:
            self._last, self._fruitless = parser.last_event_id, 0
        if parser.retry is not None:
            self._retry = parser.retry
        self._ended()
        return None

    def _event(self, event: sse.Event | sse.Oversized) -> Raw | Refusal | None:
        if isinstance(event, sse.Oversized):
            # It may have been the answer, and whoever waits for one that was thrown away would wait for ever. It may
            # as well have been a log message, while the call is still at work.
            part, sent = "the answer, or a message before it,", MAYBE_SENT
            raise failure.too_long(self._call, "response_bytes", event.limit, evidence=sent, part=part)
        if event.event != "message":
            return None
        return self._message(event.data)

    def _ended(self) -> None:
        """A stream ended without the answer: it is resumed if the server can, and the loss is told if it cannot."""
        revision = self._revision
        if revision is not None and revision.http.resumable and self._last:
            return
        broken = self._broken
        reason = "the stream ended without an answer" if broken is None else f"the stream broke off ({broken})"
        if broken is None and self._unreadable is not None:
            reason += f" that can be read ({self._unreadable})"
        raise failure.lost(self._call, MAYBE_SENT, reason)

    async def _pause(self) -> None:
        self._fruitless += 1
        if self._fruitless > self._web.settings.resumptions:
            limit = f"resumptions={self._web.settings.resumptions}"
            raise failure.lost(self._call, MAYBE_SENT, f"the stream was resumed without anything new: {limit}")
        self._resumed += 1
        # One that ends its stream again and again is not asked in a frenzy.
        again = _HASTE_MS * 2 ** (self._fruitless - 1) if self._fruitless > 1 else 0
        least = min(RETRY_MS, max(again, 2**self._resumed))
        await asyncio.sleep(max(least, RETRY_MS if self._retry is None else self._retry) / 1000)

    async def _resume(self) -> Raw | Refusal | None:
        """Ask for the rest; None when there is nothing yet. A GET may be repeated, so what may pass is waited out."""
        web = self._web
        request = web.dialer.get(last_event_id=self._last)
        try:
            answer = await web.courier.deliver(request, self._receive, call=self._call)
        except ConnectionLost:
            return None
        except CallFailed as error:
            if error.evidence is NOT_SENT:  # of this GET: the request itself had been sent
                return None
            raise
        if not isinstance(answer, Refusal) or 200 <= answer.status < 300:
            return answer  # the last is the error that the call is answered with
        if answer.status in FOR_THE_MOMENT:
            return None
        reason = f"the stream could not be resumed (HTTP {answer.status})"
        raise failure.lost(self._call, MAYBE_SENT, reason)


def settle(reply: Reply) -> None:
    """Tell a reply that knows how to end by itself that its answer is there."""
    settle: Any = getattr(reply, "settle", None)
    if settle is not None:
        settle()
