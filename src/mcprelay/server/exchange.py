"""One HTTP request that is answered: what came with it, the way back to its client, and noticing that it hung up.

An answer is one JSON body, or an event stream from the first notification on. Which it is, the handler's own deeds
decide; a handler that only returns costs neither a stream nor a task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

from mcprelay.core.work import Form, Refusal
from mcprelay.errors import ProtocolError
from mcprelay.server import event
from mcprelay.server.call import HttpRequest
from mcprelay.server.stream import HEADERS, Reply, Stream
from mcprelay.wire import jsonrpc, sse

if TYPE_CHECKING:
    from msgspec import Raw

    from mcprelay.core.work import Head
    from mcprelay.errors import LimitExceeded
    from mcprelay.server.call import Principal
    from mcprelay.server.event import Events
    from mcprelay.server.stream import Pace, Send

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]

logger = logging.getLogger("mcprelay.server")

JSON_HEADER = (b"content-type", b"application/json")
RETRY = (b"retry-after", b"1")
ACCEPTED = Refusal(202, b"", ())


class Load:
    """How much is worked on: requests whose clients wait, and calls that run on although their clients hung up.

    Args:
        concurrent_requests: How many requests may be worked on.
        detached_calls: How many calls may run on without a client.
    """

    __slots__ = ("concurrent_requests", "detached", "detached_calls", "requests")

    def __init__(self, concurrent_requests: int, detached_calls: int) -> None:
        self.concurrent_requests = concurrent_requests
        self.detached_calls = detached_calls
        self.requests = 0
        self.detached = 0


class Arrival:
    """One admitted HTTP request. Called, it is the `HttpRequest` that handlers see, made when one looks.

    Attributes:
        state: What `Server(context=…)` made for it.
    """

    __slots__ = ("_count", "_load", "_state", "events", "head", "principal", "receive", "scope", "send", "state")

    def __init__(
        self,
        scope: Scope,
        head: Head,
        receive: Receive,
        send: Send,
        *,
        principal: Principal | None,
        load: Load,
        events: Events,
    ) -> None:
        self.scope = scope
        self.head = head
        self.principal = principal
        self.receive = receive
        self.send = send
        self.state: Any = None
        self.events = events
        self._load = load
        self._state = ""
        self._count = 0

    # --- as a part of what is worked on

    def begin(self, requests: int = 1) -> bool:
        """Be worked on, as so many requests (more). False when there is too much to do already."""
        load = self._load
        if load.requests + requests > load.concurrent_requests:
            return False
        load.requests += requests
        self._count += requests
        self._state = "requests"
        return True

    def detach(self) -> bool:
        """The client hung up, and the call runs on. False when too many do so already."""
        load = self._load
        if self._state == "requests":
            load.requests -= self._count
            load.detached += self._count
            self._state = "detached"
        return load.detached <= load.detached_calls

    def end(self) -> None:
        """Nothing is worked on any more."""
        if self._state == "requests":
            self._load.requests -= self._count
        elif self._state:
            self._load.detached -= self._count
        self._state = ""
        self._count = 0

    def __call__(self) -> HttpRequest:
        """The request as handlers see it."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self.head.headers.items()}
        scope = self.scope
        client = scope.get("client")
        return HttpRequest(scope["method"], scope["path"], headers, tuple(client) if client else None, scope)

    async def respond(self, refusal: Refusal) -> None:
        """Answer with a complete HTTP answer."""
        await respond(self.send, refusal)

    async def refuse(self, refusal: Refusal, *, reason: str = "", limit: LimitExceeded | None = None) -> None:
        """Answer that nothing is done. See `refuse`."""
        await refuse(self.events, self.send, refusal, reason=reason, limit=limit)

    async def answer(self, message: bytes, *headers: tuple[bytes, bytes]) -> None:
        """Answer with one message, as JSON or, for a client that takes nothing else, as a stream of one event."""
        if self.head.form is Form.STREAM:
            await deliver(self.send, 200, [*HEADERS, *headers], sse.frame(message))
        else:
            await deliver(self.send, 200, [JSON_HEADER, *headers], message)

    async def hung_up(self) -> None:
        """Wait until the client has hung up, or its response has ended."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


async def respond(send: Send, refusal: Refusal) -> None:
    """Send a complete HTTP answer."""
    await deliver(send, refusal.status, [*refusal.headers], refusal.body)


async def refuse(
    events: Events, send: Send, refusal: Refusal, *, reason: str = "", limit: LimitExceeded | None = None
) -> None:
    """Answer a request for which nothing is done, and tell whoever counts refusals.

    Args:
        events: Who is told.
        send: The way to the client.
        refusal: The answer.
        reason: Why, in the words of `event.Refusal`, where the status does not tell.
        limit: The limit that was hit.
    """
    if limit is not None:
        events.emit(event.LimitHit(limit=limit.limit, allowed=limit.allowed))
    if refusal.status >= 400 or reason:
        events.emit(event.Refusal.of(refusal.status, reason))
    await respond(send, refusal)


async def deliver(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    """Send a whole HTTP response, unless the client is gone."""
    headers.append((b"content-length", b"%d" % len(body)))
    try:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
    except Exception as error:  # noqa: BLE001 - each host has its own way to say that the client is gone
        logger.debug("a client is gone: %r", error)


class Hangup:
    """Runs `then` when the client of a request hangs up while a handler works.

    The watcher is only scheduled: a handler that finishes without suspending takes it back before it exists.

    Args:
        arrival: The request.
        then: What to do.
        suspended: Called when the handler suspends for the first time.
    """

    __slots__ = ("_arrival", "_handle", "_suspended", "_then", "_watcher")

    def __init__(self, arrival: Arrival, then: Callable[[], object], suspended: Callable[[], object]) -> None:
        self._arrival = arrival
        self._then = then
        self._suspended = suspended
        self._watcher: asyncio.Task[None] | None = None
        self._handle = asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        self._watcher = asyncio.get_running_loop().create_task(self._watch())
        self._suspended()

    async def _watch(self) -> None:
        receive = self._arrival.receive
        while (await receive())["type"] != "http.disconnect":  # written out: each waiting stream holds this frame
            pass
        self._then()

    def close(self) -> None:
        """Stop watching."""
        if self._watcher is None:
            self._handle.cancel()
        else:
            self._watcher.cancel()


class ExchangeLink:
    """The way back to the client of one request of the stateless era. See `mcprelay.server.call.Link`.

    Args:
        arrival: The HTTP request.
        pace: How a stream behaves, if there is one.
    """

    __slots__ = ("_arrival", "_closed", "_pace", "_quiet", "_reply", "_stream")

    def __init__(self, arrival: Arrival, pace: Pace) -> None:
        self._arrival = arrival
        self._pace = pace
        self._reply: Reply | None = None
        self._stream: Stream | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self._closed = False

    def _open(self) -> Stream | None:
        """The stream, begun now if it must be; None for a client that takes none."""
        if self._stream is None and not self._closed and self._arrival.head.form is not Form.JSON:
            self._reply = Reply(self._arrival.send)
            self._stream = self._made(self._reply)
        return self._stream

    def _made(self, reply: Reply) -> Stream:
        return Stream(self._pace, reply)

    def notify(self, message: bytes) -> None:
        """See `Link`."""
        stream = self._stream or self._open()
        if stream is not None:
            stream.push(message)

    async def drain(self) -> None:
        """See `Link`."""
        if self._stream is not None:
            await self._stream.drain()

    async def request(self, method: str, params: bytes) -> Raw:
        """There are no requests of a server's in the stateless era."""
        raise ProtocolError(jsonrpc.INTERNAL_ERROR, f"{method} is asked by input_required in this revision")

    def close_stream(self, retry_ms: int) -> None:
        """There is nothing to come back for in the stateless era: the stream stays open."""

    def suspended(self) -> None:
        """The handler takes its time: a client that takes streams gets one when it would hear nothing for too long."""
        if self._pace.keep_alive > 0 and self._stream is None and self._arrival.head.form is not Form.JSON:
            self._quiet = asyncio.get_running_loop().call_later(self._pace.keep_alive, self._hold)

    def _hold(self) -> None:
        stream = self._open()
        if stream is not None:
            stream.wake()

    async def finish(self, message: bytes, status: int) -> None:
        """Answer: as JSON, or as the last event of the stream."""
        if self._quiet is not None:
            self._quiet.cancel()
        if self._stream is None and self._arrival.head.form is Form.STREAM:
            self._open()
        if self._stream is not None:
            await self._stream.finish(message)
            return
        self._closed = True
        await deliver(self._arrival.send, status, [JSON_HEADER], message)

    def close(self) -> None:
        """Nothing more is written."""
        self._closed = True
        if self._quiet is not None:
            self._quiet.cancel()
        if self._stream is not None:
            self._stream.close()
