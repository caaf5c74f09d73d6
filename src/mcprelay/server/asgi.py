"""The ASGI app: Streamable HTTP, on any ASGI server, mounted under any prefix.

The rules are `core.endpoint`'s; this module reads bodies, writes answers, upgrades an answer to an event stream when a
notification comes first, notices that a client hung up, and keeps quiet streams alive. Its state is kept per event
loop, because a test client may use a new loop for each request.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from mcprelay.core.endpoint import Endpoint, Exchange, Head, Notice, Refusal
from mcprelay.errors import ProtocolError
from mcprelay.revisions import Fault
from mcprelay.server.call import Call, HttpRequest
from mcprelay.wire import jsonrpc, sse
from mcprelay.wire.field import Headers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from msgspec import Raw

    from mcprelay.server import Server
    from mcprelay.server.call import Answer, Principal
    from mcprelay.wire.origin import HostRules

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

logger = logging.getLogger("mcprelay.server")

_JSON_HEADER = (b"content-type", b"application/json")
_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
_KEEP_ALIVE = b": keep-alive\n\n"


class App:
    """A server as an ASGI application.

    Args:
        server: What is served.
        rules: Which hosts and origins are served.
        path: Where the endpoint is, below the mount; the mount itself answers too, with and without a slash.
    """

    def __init__(self, server: Server, rules: HostRules, *, path: str = "/mcp") -> None:
        limits = server.limits
        self._server = server
        self.endpoint = Endpoint(
            rules,
            among=server.revisions,
            body_bytes=limits.body_bytes,
            depth=limits.depth,
            header_params=server.catalog.header_params,
        )
        root = "/" + path.strip("/")
        self._paths = frozenset(("", "/", root, root.rstrip("/") + "/"))
        self._limits = limits
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        kind = scope["type"]
        if kind == "http":
            await self._http(scope, receive, send)
        elif kind == "lifespan":
            await self._lifespan(receive, send)
        elif kind == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000, "reason": "this is an HTTP endpoint"})

    async def aclose(self) -> None:
        """End every stream with its final message and leave the server's lifespan, where the host forwards none."""
        await self._server.stop()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._server.start()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._server.stop()
        await send({"type": "lifespan.shutdown.complete"})

    # --- one request

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        prefix = scope.get("root_path", "")
        if prefix and path.startswith(prefix):
            path = path[len(prefix) :]
        if path not in self._paths:
            await _respond(send, Refusal(404, jsonrpc.refusal(None, jsonrpc.INVALID_REQUEST, "there is nothing here")))
            return
        head = Head(scope["method"], Headers.of(scope["headers"]))
        refusal = self.endpoint.open(head)
        if refusal is not None:
            await _respond(send, refusal)
            return
        if self._open >= self._limits.concurrent_requests:
            why = f"too many requests at once: concurrent_requests={self._limits.concurrent_requests}; try again later"
            busy = Refusal(503, jsonrpc.refusal(None, jsonrpc.INTERNAL_ERROR, why), (_JSON_HEADER, (b"retry-after", b"1")))
            await _respond(send, busy)
            return
        self._open += 1
        try:
            await self._admitted(scope, head, receive, send)
        finally:
            self._open -= 1

    async def _admitted(self, scope: Scope, head: Head, receive: Receive, send: Send) -> None:
        if not self._server.started:
            await self._server.start()
        principal: Principal | None = None
        body = await self._read(receive)
        if body is None:
            return
        if isinstance(body, Refusal):
            await _respond(send, body)
            return
        work = self.endpoint.accept(head, body)
        if type(work) is Exchange:
            await self._exchange(work, scope, head, principal, receive, send)
        elif type(work) is Refusal:
            await _respond(send, work)
        elif type(work) is Notice:
            await _respond(send, Refusal(202, b"", ()))

    async def _read(self, receive: Receive) -> bytes | Refusal | None:
        """The body, or None when the client hung up before its end."""
        message = await receive()
        body: bytes = message.get("body", b"")
        if message["type"] == "http.request" and not message.get("more_body"):
            return body if len(body) <= self._limits.body_bytes else self.endpoint.too_long()
        parts, size = [body], len(body)
        while message["type"] == "http.request" and message.get("more_body"):
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._limits.body_bytes:
                return self.endpoint.too_long()
        return b"".join(parts) if message["type"] == "http.request" else None

    async def _exchange(
        self, work: Exchange, scope: Scope, head: Head, principal: Principal | None, receive: Receive, send: Send
    ) -> None:
        """Answer one request of the stateless era. Hanging up is its cancellation."""
        link = ExchangeLink(send, self._limits.keep_alive)
        call = Call(
            work.revision, work.id, work.method, work.params, work.raw, link, principal=principal, http=_Request(scope, head)
        )
        hangup = Hangup(receive, call)
        try:
            answer = await self._server.dispatcher.handle(call)
            hangup.close()
            await link.finish(answer, work.revision.status_of.get(answer.code, 200))
        except asyncio.CancelledError:
            if not hangup.hung_up:
                raise
            hangup.acknowledge()
        finally:
            hangup.close()
            link.close()


class _Request:
    """The HTTP request of a call, made into an `HttpRequest` when a handler looks at it."""

    __slots__ = ("_head", "_scope")

    def __init__(self, scope: Scope, head: Head) -> None:
        self._scope = scope
        self._head = head

    def __call__(self) -> HttpRequest:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self._head.headers.items()}
        scope = self._scope
        client = scope.get("client")
        return HttpRequest(scope["method"], scope["path"], headers, tuple(client) if client else None, scope)


class Hangup:
    """Cancels the present task when its client hangs up.

    The watcher is only scheduled: a handler that finishes without suspending takes it back before it exists.
    """

    __slots__ = ("_call", "_caller", "_handle", "_receive", "_watcher", "hung_up")

    def __init__(self, receive: Receive, call: Call) -> None:
        self._receive = receive
        self._call = call
        self._watcher: asyncio.Task[None] | None = None
        self.hung_up = False
        caller = asyncio.current_task()
        assert caller is not None, "ASGI applications run in tasks"  # noqa: S101 - asyncio's promise
        self._caller = caller
        self._handle = caller.get_loop().call_soon(self._start)

    def _start(self) -> None:
        self._watcher = self._caller.get_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.hung_up = True
        self._call.cancelled = True
        self._caller.cancel()

    def acknowledge(self) -> None:
        """The cancellation was this one's, and is dealt with."""
        self._caller.uncancel()

    def close(self) -> None:
        """Stop watching."""
        if self._watcher is None:
            self._handle.cancel()
        else:
            self._watcher.cancel()


class ExchangeLink:
    """The way back to the client of one exchange: one JSON answer, or an event stream from the first notification on."""

    __slots__ = ("_closed", "_keep_alive", "_queue", "_send", "_started", "_timer", "_writer")

    def __init__(self, send: Send, keep_alive: float) -> None:
        self._send = send
        self._keep_alive = keep_alive
        self._queue: list[bytes] = []
        self._started = False
        self._closed = False
        self._writer: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def notify(self, message: bytes) -> None:
        """See `Link`."""
        if not self._closed:
            self._queue.append(sse.frame(message))
            self._wake()

    def _wake(self) -> None:
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        """Write what is queued. Runs only while there is something, so that a quiet stream costs no task."""
        if not self._started:
            self._started = True
            await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
        while self._queue:
            chunk = b"".join(self._queue)
            self._queue.clear()
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        self._rest()

    def _rest(self) -> None:
        """Nothing to write: say something when it stays so (streamable-http: an SSE comment as keep-alive)."""
        if self._timer is not None:
            self._timer.cancel()
        if self._keep_alive > 0 and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(self._keep_alive, self._comment)

    def _comment(self) -> None:
        if not self._closed:
            self._queue.append(_KEEP_ALIVE)
            self._wake()

    async def drain(self) -> None:
        """See `Link`."""
        if self._writer is not None:
            await asyncio.shield(self._writer)

    async def request(self, method: str, params: bytes) -> Raw:  # noqa: ARG002 - see `Link`
        """There are no requests of a server's in the stateless era."""
        raise ProtocolError(jsonrpc.INTERNAL_ERROR, f"{Fault.INTERNAL.value}: {method} is asked by input_required here")

    async def finish(self, answer: Answer, status: int) -> None:
        """Answer: as JSON, or as the last event of the stream."""
        if not self._started and self._writer is None:
            self._closed = True
            body = answer.message
            headers = [_JSON_HEADER, (b"content-length", b"%d" % len(body))]
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
            await self._send({"type": "http.response.body", "body": body})
            return
        self._queue.append(sse.frame(answer.message))
        self._wake()
        await self.drain()
        self._closed = True
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def close(self) -> None:
        """Nothing more is written."""
        self._closed = True
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()


async def _respond(send: Send, refusal: Refusal) -> None:
    headers = [*refusal.headers, (b"content-length", b"%d" % len(refusal.body))]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": refusal.body})
