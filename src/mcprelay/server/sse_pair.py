"""The older HTTP+SSE transport: a GET whose stream carries what the server says, and POSTs of what the client says.

The pair is one more way to carry whole messages both ways, so it is a `Channel`, and what is said on it is a
`Connection`'s. Its stream is its session: when the stream ends, everything in it ends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote

from mcprelay.core.endpoint import form_of
from mcprelay.core.work import Form, Head, Refusal
from mcprelay.errors import LimitExceeded, NotSent
from mcprelay.server.connection import Connection
from mcprelay.server.exchange import ACCEPTED, JSON_HEADER
from mcprelay.server.handshake import subject_of
from mcprelay.server.inprocess import Pipe
from mcprelay.server.session import new_session_id
from mcprelay.server.stream import Reply, Stream
from mcprelay.server.subscription import Listener
from mcprelay.wire import jsonrpc, sse

if TYPE_CHECKING:
    from mcprelay.server import Server
    from mcprelay.server.call import Principal
    from mcprelay.server.exchange import Arrival
    from mcprelay.server.stream import Pace

SESSION = "session_id"
_UNKNOWN = "Session not found: its stream has ended. Open another"


def pair_stream_refusal(head: Head) -> Refusal | None:
    """Why a request does not open the stream of a pair."""
    if head.method != "GET":
        return _not_served(head, b"GET, OPTIONS")
    if form_of(head.headers.get(b"accept")) not in (Form.EITHER, Form.STREAM):
        return _refusal(406, "GET opens a stream: Accept must list text/event-stream")
    return None


def pair_message_refusal(head: Head) -> Refusal | None:
    """Why a request does not bring messages of a pair."""
    return None if head.method == "POST" else _not_served(head, b"POST, OPTIONS")


def _not_served(head: Head, allowed: bytes) -> Refusal:
    if head.method == "OPTIONS":
        return Refusal(204, b"", ((b"allow", allowed),))
    return _refusal(405, f"{head.method} is not served here", (b"allow", allowed))


def _refusal(status: int, why: str, *headers: tuple[bytes, bytes]) -> Refusal:
    return Refusal(status, jsonrpc.refusal(None, jsonrpc.INVALID_REQUEST, why), (JSON_HEADER, *headers))


class PairChannel:
    """One client. See `mcprelay.ports.Channel`.

    Args:
        stream: What the server says.
        principal: Who the client is.
    """

    def __init__(self, stream: Stream, principal: Principal | None) -> None:
        self.subject = subject_of(principal)
        self.inbox = Pipe()
        self._stream = stream

    async def receive(self) -> bytes:
        """See `Channel`."""
        return await self.inbox.take()

    async def send(self, data: bytes) -> None:
        """See `Channel`."""
        if self.inbox.ended:
            msg = "the client has closed the stream"
            raise NotSent(msg)
        self._stream.push(sse.frame(data, event="message"))
        await self._stream.drain()

    async def aclose(self) -> None:
        """See `Channel`."""
        self.inbox.end()


class _Closing(Listener):
    """Ends a channel when the server ends every subscription."""

    __slots__ = ("_channel",)

    def __init__(self, channel: PairChannel) -> None:
        super().__init__(frozenset(), frozenset())
        self._channel = channel

    def _wake(self, change: object) -> None:
        self._channel.inbox.end()


class SsePair:
    """The clients of one event loop that use the pair.

    Args:
        server: What is served.
        pace: How streams behave.
    """

    def __init__(self, server: Server, pace: Pace) -> None:
        self._server = server
        self._pace = pace
        self._channels: dict[str, PairChannel] = {}

    async def open(self, arrival: Arrival, address: str) -> None:
        """Serve a client for as long as it reads its stream.

        Args:
            arrival: The GET.
            address: Where the client posts its messages.
        """
        try:
            self._server.changes.opened()
        except LimitExceeded as error:
            await arrival.refuse(_refusal(503, str(error), (b"retry-after", b"60")), limit=error)
            return
        try:
            await self._serve(arrival, address)
        finally:
            self._server.changes.closed()

    async def _serve(self, arrival: Arrival, address: str) -> None:
        session_id = new_session_id()
        stream = Stream(self._pace, Reply(arrival.send), frame=bytes)
        channel = self._channels[session_id] = PairChannel(stream, arrival.principal)
        stream.push(sse.frame(f"{quote(address)}?{SESSION}={session_id}".encode(), event="endpoint"))
        closing = _Closing(channel)
        self._server.changes.add(closing)
        talking = asyncio.create_task(self._talk(channel, stream, arrival))
        try:
            await arrival.hung_up()
        finally:
            channel.inbox.end()
            del self._channels[session_id]
            self._server.changes.discard(closing)
            await talking

    async def _talk(self, channel: PairChannel, stream: Stream, arrival: Arrival) -> None:
        connection = Connection(self._server, channel, principal=arrival.principal, http=arrival, state=arrival.state)
        try:
            await connection.serve()
        finally:
            await stream.finish()

    async def post(self, arrival: Arrival, body: bytes) -> None:
        """Take a message of a client."""
        query = parse_qs(arrival.scope.get("query_string", b"").decode("latin-1"))
        session_id = query.get(SESSION, [""])[0]
        channel = self._channels.get(session_id)
        if not session_id:
            await arrival.refuse(_refusal(400, f"{SESSION} is missing: post to the address that the stream named"))
        elif channel is None or channel.subject != subject_of(arrival.principal):
            await arrival.refuse(_refusal(404, _UNKNOWN))
        else:
            try:
                await channel.inbox.put(body)
            except NotSent:
                await arrival.refuse(_refusal(404, _UNKNOWN))
            else:
                await arrival.respond(ACCEPTED)
