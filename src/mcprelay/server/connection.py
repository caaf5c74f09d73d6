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
import types
from typing import TYPE_CHECKING, Any

from mcprelay.core.peer import CANCELLED, Called, Cancelled, Event, Lost, Notified, Peer, Refused, Rejected, Replied
from mcprelay.errors import LimitExceeded
from mcprelay.ports import Session
from mcprelay.revisions import Feature
from mcprelay.server import handshake, question
from mcprelay.server.agreement import Agreement
from mcprelay.server.batch import holds_more, over
from mcprelay.server.call import Answer, Call
from mcprelay.server.closing import close
from mcprelay.server.event import LimitHit, Refusal
from mcprelay.server.outbox import Outbox
from mcprelay.server.telling import Telling
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterator

    from msgspec import Raw

    from mcprelay.ports import Channel
    from mcprelay.server import Server
    from mcprelay.server.call import HttpRequest, Principal

logger = logging.getLogger("mcprelay.server")

LISTEN = "subscriptions/listen"
_WAITING = 4096
"""What a message that waits to be sent takes beside its own bytes, about: it waits in a task."""


def unguessable_ids() -> Iterator[int]:
    """Request ids that the other side cannot guess."""
    return (int.from_bytes(os.urandom(6), "big") for _ in itertools.count())


def _is_current(task: asyncio.Task[Any]) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False


@types.coroutine
def _until_suspended(
    work: Coroutine[Any, Any, None], context: contextvars.Context, suspended: Callable[[], None]
) -> Generator[Any, None, None]:
    """Do work in the task that awaits this, in a context of its own, and tell when it first suspends, if it does."""
    step = context.run
    try:
        wanted = step(work.send, None)
        suspended()
        while True:
            try:
                yield wanted
            except BaseException as error:  # noqa: BLE001 - the work's own, be it the end of the task or of the loop
                wanted = step(work.throw, error)
            else:
                wanted = step(work.send, None)
    except StopIteration:
        return


class Connection:
    """Serves one client over one channel. It is also the `Link` of every call on it.

    Args:
        server: What is served.
        channel: The client.
        principal: Who it is, where the application knows.
        http: An HTTP request that handlers shall see, where there is one.
        state: The value of `ctx.state` for every call.
        linger: Seconds that calls in flight have to answer after the client has ended its side. On stdio it may do so
            and still read, as in `printf … | server`.
    """

    def __init__(
        self,
        server: Server,
        channel: Channel,
        *,
        principal: Principal | None = None,
        http: HttpRequest | Callable[[], HttpRequest] | None = None,
        state: Any = None,
        linger: float = 0.0,
    ) -> None:
        self._linger = linger
        self._server = server
        self._channel = channel
        limits = server.limits
        self._peer = Peer(ids=unguessable_ids(), concurrent_requests=limits.concurrent_requests, depth=limits.depth)
        self._telling: Telling | None = None
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._working: dict[int | str, tuple[asyncio.Task[Any], Call]] = {}
        self._ended = asyncio.Event()
        self._base = contextvars.copy_context()
        self._outbox = Outbox(limits.stream_bytes)
        self._flushing: asyncio.Event | None = None
        self._agreement = Agreement(server, self, principal=principal, http=http, state=state)
        self._leader: asyncio.Task[Any] | None = None
        self._stopping = False
        self._unsent = 0  # bytes of what waits for the client to read
        self._relief: asyncio.Event | None = None
        # What a channel may have beyond the port (see `mcprelay.stdio.LineChannel`): then an answer leaves at once.
        self._offer: Callable[[bytes], int] | None = getattr(channel, "offer", None)

    async def serve(self) -> None:
        """Serve until the client ends the channel, or until cancelled. Then every call that is left is cancelled."""
        self._spawn(self._lead())
        try:
            await self._ended.wait()
            answering = [task for task, call in self._working.values() if call.method.name != LISTEN]
            if self._linger and answering:
                await asyncio.wait(answering, timeout=self._linger)
        except GeneratorExit:  # the loop is gone, and nothing can be waited for any more
            raise
        except BaseException:
            await self._stop()
            raise
        await self._stop()

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        # Not by the loop's factory: where tasks start eagerly, leaders would nest for as long as calls wait.
        task = asyncio.Task(coroutine, loop=self._loop, context=self._base.copy())
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            if task is self._leader and not self._stopping:  # by what a handler left behind, after its call
                self._spawn(self._lead())
        elif (error := task.exception()) is not None:
            logger.debug("the connection ended", exc_info=error)
            self._ended.set()

    async def _stop(self) -> None:
        self._stopping = True
        for event in self._peer.lost():
            if isinstance(event, Lost):
                question.settle(event)
        for _, call in self._working.values():
            call.cancelled = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._server.limits.cancel_grace)
        if self._telling is not None:
            self._telling.close()
        await close(self._channel, self._server.limits.cancel_grace)

    # --- receiving

    async def _lead(self) -> None:
        """Receive and work, until a call suspends and another task leads."""
        task = self._leader = asyncio.current_task()
        assert task is not None, "a connection is served in tasks"  # noqa: S101 - asyncio's promise
        peer = self._peer
        while self._leader is task:
            if self._unsent > self._outbox.stream_bytes:  # a client that does not read is not read from
                await self._relieved()
            try:
                data = await self._channel.receive()
            except LimitExceeded as error:
                await self._refuse_limited(error, str(error))
                continue
            if not data:
                self._ended.set()
                return
            if peer.batches and jsonrpc.is_batch(data):
                await self._take_batch(data)
                continue
            event = peer.take(jsonrpc.parse(data, depth=peer.depth))
            if type(event) is Called:
                # In a context of its own: what a handler sets there, the next call must not see.
                await _until_suspended(self._work(event, task), self._base.copy(), self._follow)
                if self._leader is task and task.cancelling() and not self._stopping:
                    self._follow()  # a handler cancelled the task that it ran in, which the next call must not feel
            else:
                await self._take(event)

    async def _refuse_limited(self, error: LimitExceeded, why: str) -> None:
        """Refuse a message that is not even read, because it is too much; under its id, where that was kept."""
        events = self._server.events
        events.emit(LimitHit(limit=error.limit, allowed=error.allowed))
        events.emit(Refusal(reason="too_long"))
        event = self._peer.unread(getattr(error, "head", b""), getattr(error, "tail", b""), why)
        if isinstance(event, Rejected):
            await self._send(self._as_agreed(event.answer))
        else:
            await self._take(event)

    def _rejected(self, event: Rejected) -> bytes:
        """The answer to what is no request, or one too many."""
        events = self._server.events
        if event.busy:
            events.emit(LimitHit(limit="concurrent_requests", allowed=self._peer.concurrent_requests))
        events.emit(Refusal(reason="busy" if event.busy else "malformed"))
        return self._as_agreed(event.answer)

    def _follow(self) -> None:
        """Another task leads from now on."""
        self._leader = None
        self._spawn(self._lead())

    async def _take(self, event: Event) -> None:
        """Take anything but a call."""
        if isinstance(event, Cancelled):
            self._cancel(event)
        elif isinstance(event, Rejected):
            await self._send(self._rejected(event))
        elif isinstance(event, (Replied, Refused)):
            question.settle(event)
        elif isinstance(event, Notified) and event.method == handshake.INITIALIZED:
            self._begin(self._agreement.session)

    def _cancel(self, event: Cancelled) -> None:
        task, call = self._working.get(event.call.id, (None, None))
        if task is not None and call is not None:
            logger.debug("%s was cancelled by the client: %r", call.method.name, event.reason)
            call.cancelled = True
            task.cancel()

    def _as_agreed(self, error: bytes) -> bytes:
        """An error as the agreed revision has it, where what it answers could not be read."""
        revision = self._agreement.revision
        if revision is None or revision.has(Feature.ERRORS_WITHOUT_ID):
            return error
        return jsonrpc.with_null_id(error)

    # --- working

    async def _work(self, event: Called, task: asyncio.Task[Any]) -> None:
        answer = await self._answer(event, task)
        if not answer.message:
            return
        if self._flushing is not None or self._offer is None or not self._offer(answer.message):
            await self._send(answer.message)
        if event.method == LISTEN and not answer.code:  # patterns/cancellation: how a server ends a subscription
            await self._send(jsonrpc.notification(CANCELLED, jsonrpc.encode({"requestId": event.id})))

    async def _answer(self, event: Called, task: asyncio.Task[Any]) -> Answer:
        """The answer to a call, worked on in `task`; one without a message when it was cancelled."""
        call = self._agreement.call(event)
        if type(call) is Answer:
            return self._declined(event, call)
        if event.method == "initialize":
            self._peer.batches = self._agreement.batches
        entry = self._working[event.id] = (task, call)
        try:
            answer = await self._server.dispatcher.handle(call)
        except asyncio.CancelledError as error:
            if self._stopping or self._ended.is_set():
                raise
            # Else, if not by the client, by what a handler does to its own task, or left behind: an answer is owed.
            answer = Answer(b"") if call.cancelled else self._server.dispatcher.failed(call, error)
            while not call.cancelled and task.cancelling():
                task.uncancel()
        except GeneratorExit as error:
            if not _is_current(task):  # the loop is gone
                raise
            answer = self._server.dispatcher.failed(call, error)
        finally:
            if self._working.get(event.id) is entry:
                del self._working[event.id]
        if event.method == "initialize" and (answer.code or call.cancelled):
            self._agreement.forget()
            self._peer.batches = False
        if call.cancelled:
            task.uncancel()
            return Answer(b"")
        return answer if self._peer.in_flight.pop(event.id, None) is not None else Answer(b"", answer.code)

    def _declined(self, event: Called, answer: Answer) -> Answer:
        """The answer to a call that is not carried out, as it is owed now."""
        self._server.events.emit(Refusal(reason="malformed", code=answer.code))
        return Answer(self._peer.settle(event.id, answer.message), answer.code)

    async def _take_batch(self, data: bytes) -> None:
        """Take a batch: its calls are worked on at once, and answered by one array (JSON-RPC 2.0, 6)."""
        allowed = self._server.limits.batch_messages
        if holds_more(data, allowed):
            await self._refuse_limited(LimitExceeded("batch_messages", allowed), over(allowed))
            return
        calls: list[Called] = []
        answers: list[bytes] = []
        for event in self._peer.receive(data):
            revision = self._agreement.revision
            if isinstance(event, Called) and event.method == "initialize" and revision is not None:
                answers.append(self._declined(event, handshake.in_batch(event, revision)).message)
            elif isinstance(event, Called):
                calls.append(event)
            elif isinstance(event, Rejected):
                answers.append(self._rejected(event))
            else:
                await self._take(event)
        if calls or answers:
            self._spawn(self._work_batch(calls, answers))

    async def _work_batch(self, calls: list[Called], answers: list[bytes]) -> None:
        async def work(event: Called) -> None:
            task = asyncio.current_task()
            assert task is not None, "the group below makes tasks"  # noqa: S101 - asyncio's promise
            answer = await self._answer(event, task)
            if answer.message:
                answers.append(answer.message)

        async with asyncio.TaskGroup() as group:
            for event in calls:
                group.create_task(work(event), context=self._base.copy())
        if answers:
            await self._send(b"[%b]" % b",".join(answers))

    def _begin(self, session: Session | None) -> None:
        """The handshake is done: tell the session of every change from now on."""
        if session is not None and not session.initialized:
            session.initialized = True
            self._telling = Telling(self._server, session)
            self._spawn(self._telling.tell(self))

    # --- sending: the way back to the client

    async def _send(self, message: bytes) -> None:
        if not message:
            return
        self._unsent += (weight := len(message) + _WAITING)
        try:
            if self._flushing is None:
                await self._channel.send(message)
            else:
                self._outbox.put(message)
                await self.drain()
        finally:
            self._unsent -= weight
            if self._relief is not None and self._unsent <= self._outbox.stream_bytes:
                self._relief.set()

    async def _relieved(self) -> None:
        """Wait until no more than `stream_bytes` wait for the client."""
        self._relief = asyncio.Event()
        try:
            await self._relief.wait()
        finally:
            self._relief = None

    def notify(self, message: bytes) -> None:
        """See `Link`."""
        self._outbox.put(message)
        if self._flushing is None:
            self._flushing = asyncio.Event()
            self._spawn(self._flush(self._flushing))

    async def _flush(self, done: asyncio.Event) -> None:
        try:
            while self._outbox:
                for message in self._outbox.take():
                    await self._channel.send(message)
        finally:
            self._flushing = None
            done.set()

    async def drain(self) -> None:
        """See `Link`."""
        while self._flushing is not None:
            await self._flushing.wait()

    async def request(self, method: str, params: bytes) -> Raw:
        """See `Link`."""
        return await question.ask(self._peer, method, params, self.notify)

    def close_stream(self, retry_ms: int) -> None:
        """See `Link`. A channel has no streams that could be closed one by one."""
