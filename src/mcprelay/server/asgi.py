"""The ASGI app: Streamable HTTP and the older HTTP+SSE pair, on any ASGI server, mounted under any prefix.

The rules are `core.endpoint`'s; this module finds what a path is for, admits the caller, reads bodies, and hands the
work on: requests of the stateless era are answered here, those of the handshake era by `streamable` and `sse_pair`.
Its state is kept per event loop, because a test client may use a new loop for each request.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

import mcprelay
from mcprelay.core.endpoint import Endpoint
from mcprelay.core.work import Exchange, Form, Handshake, Head, InSession, Notice, Refusal, Work, request_id
from mcprelay.errors import LimitExceeded
from mcprelay.revisions import Era
from mcprelay.server.batch import requests_in
from mcprelay.server.bearer import Door, metadata
from mcprelay.server.call import Call, Principal
from mcprelay.server.cors import Cors
from mcprelay.server.cutting import cut_off
from mcprelay.server.event import LimitHit
from mcprelay.server.eventlog import MemoryEventLog
from mcprelay.server.exchange import (
    ACCEPTED,
    JSON_HEADER,
    RETRY,
    Arrival,
    ExchangeLink,
    Hangup,
    Load,
    Receive,
    Scope,
    refuse,
    respond,
)
from mcprelay.server.intake import Intake
from mcprelay.server.session import MemorySessions
from mcprelay.server.sse_pair import SsePair, pair_message_refusal, pair_stream_refusal
from mcprelay.server.stream import Pace, Send
from mcprelay.server.streamable import Streamable
from mcprelay.wire import jsonrpc
from mcprelay.wire.field import Headers
from mcprelay.wire.origin import HostRules

Admit: TypeAlias = Callable[[Scope, Head], Awaitable[Principal | Refusal | None]]
Route: TypeAlias = Callable[[Scope, Head, Receive, Send], Awaitable[None]]

logger = logging.getLogger("mcprelay.server")

LISTEN = "subscriptions/listen"
_PATH = 200
"""Characters of a wrong path that the answer shows."""


class Here:
    """What the app keeps on one event loop."""

    __slots__ = ("intake", "load", "pair", "streamable")

    def __init__(self, load: Load, intake: Intake, streamable: Streamable, pair: SsePair) -> None:
        self.load = load
        self.intake = intake
        self.streamable = streamable
        self.pair = pair


class App:
    """A server as an ASGI application.

    Args:
        server: What is served.
        rules: Which hosts and origins are served.
        path: Where the endpoint is, below the mount; the mount itself answers too, with and without a slash.
        sse_path: Where the stream of the older HTTP+SSE pair is, below the mount and below `path`; None for no pair.
        message_path: Where its messages are posted.
        admit: Verifies who calls, after the head of a request and before its body is read: a principal, None where
            nobody needs to be known, or a refusal.
    """

    def __init__(
        self,
        server: mcprelay.Server,
        rules: HostRules,
        *,
        path: str = "/mcp",
        sse_path: str | None = "/sse",
        message_path: str = "/messages",
        admit: Admit | None = None,
    ) -> None:
        limits = server.limits
        self._server = server
        self._limits = limits
        self.endpoint = Endpoint(
            rules,
            among=server.revisions,
            body_bytes=limits.body_bytes,
            depth=limits.depth,
            sessions=server.sessions,
            header_params=server.catalog.header_params,
        )
        self.admit = admit if admit is not None or server.auth is None else Door(server, server.auth)
        self._cors = Cors(self.endpoint.rules) if server.cors else None
        self._pace = Pace(limits.keep_alive, limits.stream_bytes)
        if server.session_store is None:
            server.session_store = MemorySessions(sessions=limits.sessions)
        if server.event_log is None and limits.event_log_bytes > 0:
            server.event_log = MemoryEventLog(event_log_bytes=limits.event_log_bytes)
        self._store = server.session_store
        self._log = server.event_log
        self._public_prefix = _public_prefix(server.public_url, "/" + path.strip("/"))
        self._root = "/" + path.strip("/")
        self._routes = self._paths(sse_path, message_path)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._here: Here | None = None
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Here] = weakref.WeakKeyDictionary()

    def _paths(self, sse_path: str | None, message_path: str) -> dict[str, Route]:
        """What is at which path, below the mount."""
        root = self._root
        routes: dict[str, Route] = dict.fromkeys(("", "/", root, root.rstrip("/") + "/"), self._endpoint)
        if self._server.auth is not None:
            routes[self._server.auth.metadata_path] = self._metadata
        if sse_path is None or not any(revision.era is Era.HANDSHAKE for revision in self._server.revisions):
            return routes
        for prefix in dict.fromkeys(("", root.rstrip("/"))):
            stream, messages = f"{prefix}/{sse_path.strip('/')}", f"{prefix}/{message_path.strip('/')}"

            async def opened(scope: Scope, head: Head, receive: Receive, send: Send, messages: str = messages) -> None:
                await self._pair_stream(messages, scope, head, receive, send)

            routes.setdefault(stream, opened)
            routes.setdefault(messages, self._pair_message)
        return routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        kind = scope["type"]
        if kind == "http":
            try:
                await self._http(scope, receive, send)
            except asyncio.CancelledError:
                if not self._server.dispatcher.ending:
                    raise
                await cut_off(send)
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

    def here(self) -> Here:
        """The state of the running loop."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop or self._here is None:
            here = self._loops.get(loop)
            if here is None:
                here = self._loops[loop] = Here(
                    Load(self._limits.concurrent_requests, self._limits.detached_calls),
                    Intake(self._limits),
                    Streamable(self._server, self.endpoint, self._store, self._log, self._pace),
                    SsePair(self._server, self._pace),
                )
            self._loop, self._here = loop, here
        return self._here

    # --- one request

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        prefix: str = scope.get("root_path") or ""
        if prefix and path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("", "/"):
            path = path[len(prefix) :]
        head = Head(scope["method"], Headers.of(scope["headers"]))
        if self._cors is not None:
            preflight = self._cors.preflight(head)
            if preflight is not None:
                await respond(send, preflight)
                return
            send = self._cors.marked(head, send)
        route = self._routes.get(path)
        if route is None:
            said = (
                f"there is nothing at {(prefix + path)[:_PATH]!r}: the endpoint of this server is {prefix + self._root}"
            )
            await self._refuse(send, Refusal(404, _say(said)))
            return
        await route(scope, head, receive, send)

    async def _endpoint(self, scope: Scope, head: Head, receive: Receive, send: Send) -> None:
        """A request to the MCP endpoint."""
        refusal = self.endpoint.open(head)
        if refusal is not None:
            await self._refuse(send, refusal)
            return
        arrival = await self._admitted(scope, head, receive, send)
        if arrival is None:
            return
        if head.method == "POST":
            listen = await self._post(arrival)
            refusal = None if listen is None else self._opened(listen, arrival)
            if refusal is not None:
                await self._refuse(send, refusal)
            elif listen is not None:
                try:
                    await self._exchange(listen, arrival)
                finally:
                    self._server.changes.closed()
            return
        work = self.endpoint.get(head) if head.method == "GET" else self.endpoint.delete(head)
        if isinstance(work, Refusal):
            await self._refuse(send, work)
        else:
            await self.here().streamable.carry_out(work, arrival)

    async def _refuse(self, send: Send, refusal: Refusal) -> None:
        """Answer a request for which nothing is done."""
        limit = LimitExceeded("body_bytes", self._limits.body_bytes) if refusal.status == 413 else None
        await refuse(self._server.events, send, refusal, limit=limit)

    async def _metadata(self, _scope: Scope, head: Head, _receive: Receive, send: Send) -> None:
        """The document that says where tokens for this server come from (RFC 9728)."""
        if self._server.auth is not None:
            await self._refuse(send, metadata(self._server.auth, head.method))

    async def _admitted(self, scope: Scope, head: Head, receive: Receive, send: Send) -> Arrival | None:
        """The request of a verified caller; None when it is refused, and answered so."""
        principal: Principal | None = None
        if self.admit is not None:
            found = await self.admit(scope, head)
            if isinstance(found, Refusal):
                told = isinstance(self.admit, Door)  # as an `Authorization`
                await (respond(send, found) if told else self._refuse(send, found))
                return None
            principal = found
        if not self._server.started:
            await self._server.start()
        events = self._server.events
        arrival = Arrival(scope, head, receive, send, principal=principal, load=self.here().load, events=events)
        if self._server.builder is not None:
            state = await self._server.builder.state(arrival(), principal)
            if isinstance(state, Refusal):  # which the builder has told
                await respond(send, state)
                return None
            arrival.state = state
        return arrival

    async def _post(self, arrival: Arrival) -> Exchange | None:
        """Read a message to the MCP endpoint and carry it out, unless it asks for a stream of changes, which does not
        count as being worked on.
        """
        body = await self.here().intake.take(arrival)
        if body is None:
            return None
        if not arrival.begin():
            await self._refuse_busy(arrival, request_id(jsonrpc.parse(body, depth=self._limits.depth)))
            return None
        try:
            work = self.endpoint.accept(arrival.head, body)
            if type(work) is InSession and work.batch:  # it is one request already
                if not arrival.begin(max(requests_in(work.messages) - 1, 0)):
                    await self._refuse_busy(arrival)
                    return None
            elif type(work) is Exchange and work.method.name == LISTEN:
                return work
            await self._carry_out(work, arrival)
            return None
        finally:
            arrival.end()

    async def _refuse_busy(self, arrival: Arrival, request_id: int | str | None = None) -> None:
        allowed = self._limits.concurrent_requests
        limit = LimitExceeded("concurrent_requests", allowed, what="the number of requests")
        why = f"too many requests at once: concurrent_requests={allowed}; try again later"
        await arrival.refuse(_busy(why, request_id), limit=limit)

    async def _carry_out(self, work: Work | Refusal, arrival: Arrival) -> None:
        if type(work) is Exchange:
            await self._exchange(work, arrival)
        elif type(work) is InSession:
            await self.here().streamable.carry_out(work, arrival)
        elif type(work) is Handshake:
            await self.here().streamable.initialize(work, arrival)
        elif type(work) is Refusal:
            await self._refuse(arrival.send, work)
        elif type(work) is Notice:
            await arrival.respond(ACCEPTED)

    # --- the stateless era

    async def _exchange(self, work: Exchange, arrival: Arrival) -> None:
        """Answer one request. Hanging up is its cancellation."""
        link = ExchangeLink(arrival, self._pace)
        call = Call(
            work.revision,
            work.id,
            work.method,
            work.params,
            work.raw,
            link,
            principal=arrival.principal,
            carrier=arrival,
            state=arrival.state,
        )
        task = asyncio.current_task()
        assert task is not None, "ASGI applications run in tasks"  # noqa: S101 - asyncio's promise

        def gone() -> None:
            call.cancelled = True
            task.cancel()

        hangup = Hangup(arrival, gone, link.suspended)
        try:
            answer = await self._server.dispatcher.handle(call)
            hangup.close()
            await link.finish(answer.message, work.revision.status_of.get(answer.code, 200))
        except asyncio.CancelledError:
            if not call.cancelled:
                raise
            task.uncancel()
        finally:
            hangup.close()
            link.close()

    def _opened(self, work: Exchange, arrival: Arrival) -> Refusal | None:
        """Count one more stream of changes, unless it cannot be had: then the refusal."""
        if arrival.head.form is Form.JSON:
            why = f"{LISTEN} is answered by an event stream: Accept must list text/event-stream"
            return Refusal(406, jsonrpc.refusal(work.id, jsonrpc.INVALID_REQUEST, why))
        try:
            self._server.changes.opened()
        except LimitExceeded as error:
            self._server.events.emit(LimitHit(limit=error.limit, allowed=error.allowed))
            return _busy(str(error), work.id)
        return None

    # --- the HTTP+SSE pair

    async def _pair_stream(self, messages: str, scope: Scope, head: Head, receive: Receive, send: Send) -> None:
        """GET: the stream that carries everything that the server says."""
        refusal = self.endpoint.admit(head) or pair_stream_refusal(head)
        if refusal is not None:
            await self._refuse(send, refusal)
            return
        arrival = await self._admitted(scope, head, receive, send)
        if arrival is not None:
            await self.here().pair.open(arrival, f"{self._prefix(scope)}{messages}")

    async def _pair_message(self, scope: Scope, head: Head, receive: Receive, send: Send) -> None:
        """POST: everything that the client says."""
        refusal = self.endpoint.admit(head) or pair_message_refusal(head) or self.endpoint.open_post(head)
        if refusal is not None:
            await self._refuse(send, refusal)
            return
        arrival = await self._admitted(scope, head, receive, send)
        body = None if arrival is None else await self.here().intake.take(arrival)
        if arrival is not None and body is not None:
            await self.here().pair.post(arrival, body)

    def _prefix(self, scope: Scope) -> str:
        """What clients have to put before a path of this app: what is said of the public address, else the mount."""
        return scope.get("root_path") or "" if self._public_prefix is None else self._public_prefix


def _busy(why: str, request_id: int | str | None = None) -> Refusal:
    return Refusal(503, jsonrpc.refusal(request_id, jsonrpc.INTERNAL_ERROR, why), (JSON_HEADER, RETRY))


def _say(why: str) -> bytes:
    return jsonrpc.refusal(None, jsonrpc.INVALID_REQUEST, why)


def _public_prefix(public_url: str | None, root: str) -> str | None:
    """The prefix that clients know, whatever a proxy makes of it; None where the public address does not tell."""
    if public_url is None:
        return None
    path = "/" + unquote(urlsplit(public_url).path).strip("/")
    return path[: -len(root)] if path != "/" and path.endswith(root) else None
