"""A server at one end of a `Channel`: stdio, in process, or a user's own.

All messages share the channel. One task at a time *leads*: it receives, and works on a call itself. If the call
suspends, another task takes the lead; if it does not, which is most often so, no task was made at all.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import logging
import os
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from mcprelay import revisions
from mcprelay.core.peer import CANCELLED, Called, Cancelled, Event, Lost, Notified, Peer, Refused, Rejected, Replied
from mcprelay.errors import Evidence, LimitExceeded, ProtocolError
from mcprelay.ports import Session
from mcprelay.revisions import Era, Fault, Feature
from mcprelay.server.call import Answer, Call
from mcprelay.server.subscription import SessionListener, notice
from mcprelay.wire import jsonrpc
from mcprelay.wire.params import CLIENT_CAPABILITIES, NO_META, PROTOCOL_VERSION, InitializeParams, Params

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from mcprelay.ports import Channel
    from mcprelay.revisions import Revision
    from mcprelay.server import Server
    from mcprelay.server.call import HttpRequest, Principal

logger = logging.getLogger("mcprelay.server")

_decode_params = msgspec.json.Decoder(Params).decode
_decode_initialize = msgspec.json.Decoder(InitializeParams).decode
INITIALIZED = "notifications/initialized"
LISTEN = "subscriptions/listen"


def unguessable_ids() -> Iterator[int]:
    """Request ids that the other side cannot guess."""
    return (int.from_bytes(os.urandom(6), "big") for _ in itertools.count())


class _Lead:
    """Whether the task that holds it still leads."""

    __slots__ = ("moved",)

    def __init__(self) -> None:
        self.moved = False


class Connection:
    """Serves one client over one channel. It is also the `Link` of every call on it.

    Args:
        server: What is served.
        channel: The client.
        principal: Who it is, where the application knows.
        http: An HTTP request that handlers shall see, where there is one.
        state: The value of `ctx.state` for every call.
    """

    def __init__(
        self,
        server: Server,
        channel: Channel,
        *,
        principal: Principal | None = None,
        http: HttpRequest | None = None,
        state: Any = None,
    ) -> None:
        self._server = server
        self._channel = channel
        self._principal = principal
        self._http = http
        self._state = state
        limits = server.limits
        self._peer = Peer(ids=unguessable_ids(), concurrent_requests=limits.concurrent_requests, depth=limits.depth)
        self._session: Session | None = None
        self._revision: Revision | None = None
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._working: dict[int | str, tuple[asyncio.Task[Any], Call]] = {}
        self._ended = asyncio.Event()
        self._base = contextvars.copy_context()
        self._outbox: deque[bytes] = deque()
        self._flushing: asyncio.Event | None = None

    async def serve(self) -> None:
        """Serve until the client ends the channel, or until cancelled. Then every call is cancelled."""
        self._spawn(self._lead())
        try:
            await self._ended.wait()
        finally:
            await self._stop()

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine, context=self._base.copy())
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.debug("the connection ended", exc_info=error)
            self._ended.set()

    async def _stop(self) -> None:
        for event in self._peer.lost():
            if isinstance(event, Lost):
                event.pending.slot.cancel()
        for _, call in self._working.values():
            call.cancelled = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._server.limits.cancel_grace)
        await self._channel.aclose()

    # --- receiving

    async def _lead(self) -> None:
        """Receive and work, until a call suspends and another task leads."""
        leading = True
        while leading:
            try:
                data = await self._channel.receive()
            except LimitExceeded as error:
                await self._send(jsonrpc.refusal(None, jsonrpc.INVALID_REQUEST, str(error)))
                continue
            if not data:
                self._ended.set()
                return
            events = self._peer.receive(data)
            if len(events) == 1 and type(events[0]) is Called:
                leading = await self._work_leading(events[0])
            else:
                for event in events:
                    await self._take(event)

    async def _work_leading(self, event: Called) -> bool:
        """Work on a call, and say whether this task still leads."""
        lead = _Lead()
        follower = self._loop.call_soon(self._follow, lead)
        await self._work(event)
        if lead.moved:
            return False
        follower.cancel()
        if contextvars.copy_context() != self._base:  # a handler set a variable, which the next call must not see
            self._follow(lead)
            return False
        return True

    def _follow(self, lead: _Lead) -> None:
        lead.moved = True
        self._spawn(self._lead())

    async def _take(self, event: Event) -> None:
        """Take anything but a single call."""
        if isinstance(event, Called):
            self._spawn(self._work(event))
        elif isinstance(event, Cancelled):
            self._cancel(event)
        elif isinstance(event, Rejected):
            await self._send(event.answer)
        elif isinstance(event, Replied):
            _settle(event.pending.slot, event.result)
        elif isinstance(event, Refused):
            error = event.error
            data = None if error.data is UNSET else msgspec.json.decode(error.data)  # type: ignore[arg-type]
            _settle(event.pending.slot, ProtocolError(error.code, error.message, data))
        elif isinstance(event, Notified) and event.method == INITIALIZED and self._session is not None:
            self._begin(self._session)

    def _cancel(self, event: Cancelled) -> None:
        task, call = self._working.get(event.call.id, (None, None))
        if task is not None and call is not None:
            logger.debug("%s was cancelled by the client: %s", call.method.name, event.reason)
            call.cancelled = True
            task.cancel()

    # --- working

    async def _work(self, event: Called) -> None:
        call = self._call(event)
        if isinstance(call, Answer):
            await self._send(self._peer.settle(event.id, call.message))
            return
        task = asyncio.current_task()
        assert task is not None, "calls are worked on in tasks"  # noqa: S101 - asyncio's promise
        self._working[event.id] = (task, call)
        try:
            answer = await self._server.dispatcher.handle(call)
        except asyncio.CancelledError:
            if not call.cancelled or self._ended.is_set():
                raise
            task.uncancel()
            return
        finally:
            del self._working[event.id]
        message = self._peer.settle(event.id, answer.message)
        if message:
            await self._send(message)
            if event.method == LISTEN and not answer.code:  # patterns/cancellation: the server tears a subscription down
                await self._send(jsonrpc.notification(CANCELLED, jsonrpc.encode({"requestId": event.id})))

    def _call(self, event: Called) -> Call | Answer:
        """The call, in the revision that it is in; or the answer that it gets instead."""
        try:
            meta = _decode_params(event.params).meta if event.params is not UNSET else NO_META  # type: ignore[arg-type]
        except msgspec.DecodeError as error:
            return self._refuse(event, Fault.INVALID_PARAMS, f"Invalid params: {error}")
        if meta.protocol_version is None:
            return self._handshake_call(event)
        revision = self._server.served.get(meta.protocol_version)
        if revision is None or revision.era is not Era.STATELESS:
            supported = [revision.name for revision in self._server.revisions]
            data = {"supported": supported, "requested": meta.protocol_version}
            why = f"Unsupported protocol version: {meta.protocol_version}"
            return self._refuse(event, Fault.UNSUPPORTED_REVISION, why, data)
        if meta.client_capabilities is None:
            why = f"Invalid params: params._meta must have {CLIENT_CAPABILITIES!r}"
            return self._refuse(event, Fault.INVALID_PARAMS, why)
        return self._decoded(event, revision, None)

    def _handshake_call(self, event: Called) -> Call | Answer:
        if event.method == "initialize":
            return self._initialize(event)
        if self._revision is None:
            names = ", ".join(revision.name for revision in self._server.revisions)
            why = f"Invalid params: params._meta must have {PROTOCOL_VERSION!r} (supported: {names})"
            return self._refuse(event, Fault.INVALID_PARAMS, why)
        return self._decoded(event, self._revision, self._session)

    def _initialize(self, event: Called) -> Call | Answer:
        handshake = revisions.of_era(Era.HANDSHAKE, self._server.revisions)
        if not handshake:
            names = ", ".join(revision.name for revision in self._server.revisions)
            why = f"Method not found: initialize. This server speaks {names}, without a handshake"
            return self._refuse(event, Fault.METHOD_NOT_FOUND, why)
        try:
            params = _decode_initialize(b"{}" if event.params is UNSET else event.params)  # type: ignore[arg-type]
        except msgspec.DecodeError as error:
            return self._refuse(event, Fault.INVALID_PARAMS, f"Invalid params: {error}")
        self._revision = revisions.negotiate(params.protocol_version, handshake)
        self._session = Session(
            id="",
            revision=self._revision.name,
            client_info=msgspec.to_builtins(params.client_info),
            client_capabilities=msgspec.to_builtins(params.capabilities),
        )
        self._peer.batches = self._revision.has(Feature.BATCH)
        return self._decoded(event, self._revision, self._session)

    def _decoded(self, event: Called, revision: Revision, session: Session | None) -> Call | Answer:
        method = revision.method(event.method)
        if method is None:
            return self._refuse(event, Fault.METHOD_NOT_FOUND, f"Method not found: {event.method}", revision=revision)
        try:
            params = method.decode(b"{}" if event.params is UNSET else event.params)  # type: ignore[arg-type]
        except msgspec.DecodeError as error:
            return self._refuse(event, Fault.INVALID_PARAMS, f"Invalid params: {error}", revision=revision)
        return Call(
            revision,
            event.id,
            method,
            params,
            event.params,
            self,
            principal=self._principal,
            http=self._http,
            session=session,
            state=self._state,
        )

    def _refuse(
        self, event: Called, fault: Fault, why: str, data: Any = None, *, revision: Revision | None = None
    ) -> Answer:
        code = (revision or self._revision or self._server.revisions[0]).code(fault)
        return Answer(jsonrpc.refusal(event.id, code, why, data), code)

    def _begin(self, session: Session) -> None:
        """The handshake is done: tell the session of every change from now on."""
        if not session.initialized:
            session.initialized = True
            self._spawn(self._tell(session))

    async def _tell(self, session: Session) -> None:
        listener = SessionListener(session)
        changes = self._server.changes
        changes.add(listener)
        try:
            while changed := await listener.changes():
                for change in changed:
                    self.notify(notice(change))
                await self.drain()
        finally:
            changes.discard(listener)

    # --- sending: the way back to the client

    async def _send(self, message: bytes) -> None:
        if not message:
            return
        if self._flushing is None:
            await self._channel.send(message)
        else:
            self._outbox.append(message)
            await self.drain()

    def notify(self, message: bytes) -> None:
        """See `Link`."""
        self._outbox.append(message)
        if self._flushing is None:
            self._flushing = asyncio.Event()
            self._spawn(self._flush(self._flushing))

    async def _flush(self, done: asyncio.Event) -> None:
        try:
            while self._outbox:
                await self._channel.send(self._outbox.popleft())
        finally:
            self._flushing = None
            done.set()

    async def drain(self) -> None:
        """See `Link`."""
        while self._flushing is not None:
            await self._flushing.wait()

    async def request(self, method: str, params: bytes) -> Raw:
        """See `Link`."""
        pending, message = self._peer.request(method, params)
        pending.slot = self._loop.create_future()
        pending.evidence = Evidence.MAYBE_SENT
        try:
            await self._send(message)
            return await pending.slot  # type: ignore[no-any-return]
        finally:
            notice_of_abandonment = self._peer.abandon(pending)
            if notice_of_abandonment:
                self.notify(notice_of_abandonment)


def _settle(future: asyncio.Future[Any] | None, outcome: Raw | Exception) -> None:
    """Settle a question of ours, unless nobody waits for it any more."""
    if future is None or future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
