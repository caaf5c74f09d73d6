"""The way back to the client of requests of the handshake era over HTTP. See `mcprelay.server.call.Link`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcprelay.core.work import Form
from mcprelay.errors import ProtocolError
from mcprelay.server import question
from mcprelay.server.exchange import Arrival, ExchangeLink
from mcprelay.server.stream import Reply, Stream
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from msgspec import Raw

    from mcprelay.core.peer import Pending
    from mcprelay.server.conversation import Conversation
    from mcprelay.server.stream import Pace

RETRY_MS = 1000


class CallLink(ExchangeLink):
    """The way back to the client of the calls of one POST: of one, or of a batch.

    Args:
        arrival: The HTTP request.
        pace: How a stream behaves, if there is one.
        conversation: What goes on in the session.
    """

    __slots__ = ("_conversation", "_gone", "_name", "_unanswered")

    def __init__(self, arrival: Arrival, pace: Pace, conversation: Conversation) -> None:
        super().__init__(arrival, pace)
        self._conversation = conversation
        self._name = ""
        self._gone = False
        self._unanswered: set[Pending] | None = None

    def _made(self, reply: Reply) -> Stream:
        conversation = self._conversation
        name = conversation.next_name()
        stream = Stream(self._pace, reply, track=conversation.track(name))
        if stream.track is not None:
            self._name = name
            conversation.streams[name] = stream
        return stream

    async def request(self, method: str, params: bytes) -> Raw:
        """See `Link`. The question goes on the stream of the request that it belongs to."""
        self._check_answerable(method)
        if self._unanswered is None:
            self._unanswered = set()
        return await question.ask(self._conversation.peer, method, params, self.notify, self._unanswered)

    def _check_answerable(self, method: str) -> None:
        why = ""
        if not self._conversation.session.id:
            why = f"{method} needs a session, and this request came without one"
        elif self._arrival.head.form is Form.JSON:
            why = f"{method} needs an event stream, and Accept does not list text/event-stream"
        elif self._gone and not self._resumable:
            why = question.GONE
        if why:
            raise ProtocolError(jsonrpc.INTERNAL_ERROR, why)

    @property
    def _resumable(self) -> bool:
        return self._stream is not None and self._stream.track is not None

    def close_stream(self, retry_ms: int) -> None:
        """See `Link`."""
        if self._conversation.revision.http.polling and self._conversation.session.id:
            stream = self._stream or self._open()
            if stream is not None:
                stream.part(retry_ms)

    def gone(self) -> None:
        """The client hung up. What it can come back for is kept; otherwise questions get no answer."""
        self._gone = True
        if self._stream is None:
            self._closed = True
        elif self._reply is not None:
            self._stream.detach(self._reply)
        if not self._resumable:
            for pending in list(self._unanswered or ()):
                self._conversation.peer.abandon(pending)
                question.drop(pending)

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream."""
        return self._stream is not None

    async def finish(self, message: bytes, status: int) -> None:
        """Answer: as JSON, or as the last event of the stream. Without a message there is no answer, but an end."""
        try:
            if message and not (self._gone and self._stream is None):
                await super().finish(message, status)
            elif not self._gone or self._stream is not None:
                await self._end()
        finally:
            self._conversation.streams.pop(self._name, None)

    async def _end(self) -> None:
        """A cancelled request is owed no answer, but its HTTP response an end: a stream without the answer."""
        if self._stream is not None:
            await self._stream.finish()
        else:
            self._closed = True
            await Reply(self._arrival.send).write(b"", last=True)
