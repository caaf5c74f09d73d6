"""What every connection to a server does, whatever the wire: debts and deadlines, and the server's questions.

A link sends one `Call` and gives its raw result or raises a `CallFailed`. It does not read results, repeat calls on
anybody's behalf, or ask its user anything but through the handlers. `Line` is the link over a channel, `Web` the one
over HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import struct
from itertools import chain, filterfalse
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcprelay.client import failure, notice
from mcprelay.client.deadline import Watch, is_cancelled
from mcprelay.client.face import Face
from mcprelay.client.handler import OPTIONS
from mcprelay.client.progress import logger
from mcprelay.core.peer import Called, Cancelled, Event, Expired, Notified, Peer, Rejected
from mcprelay.errors import Evidence, ProtocolError
from mcprelay.revisions import NEWEST, Era, Feature
from mcprelay.wire import jsonrpc
from mcprelay.wire.params import LOG_LEVEL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Container, Coroutine, Iterator

    from mcprelay.client.call import Call
    from mcprelay.client.party import Party
    from mcprelay.core.peer import Pending
    from mcprelay.errors import CallFailed, MCPRelayError
    from mcprelay.revisions import Revision

_TASK_BYTES = 4096
"""What a message that leaves in a task of its own takes beside its bytes, about."""


def unguessable(taken: Container[int]) -> Iterator[int]:
    """Request ids that the other side cannot guess, that are not taken, and that every JSON parser reads exactly."""
    return filterfalse(taken.__contains__, chain.from_iterable(iter(_numbers, None)))


def _numbers() -> list[int]:
    return [word >> 18 for (word,) in struct.iter_unpack(">Q", os.urandom(2048))]


class Link:
    """One connection. Belongs to one loop.

    Attributes:
        revision: The revision that is spoken, or None as long as it is not known.
        face: What the server said of itself.
        peer: The debts of both sides.
        alive: Whether calls can be made.
        mute: Whether nothing can be sent over it any more, though answers may still come.
        generation: How often the session became another one.
        deaf: Why what the server says outside of calls cannot be heard, or None.
    """

    def __init__(self, party: Party) -> None:
        self.party = party
        self.settings = party.settings
        self.revision: Revision | None = None
        self.face = Face()
        self.alive = True
        self.mute = False
        self.generation = 0
        self.deaf: MCPRelayError | None = None
        self.loop = asyncio.get_running_loop()
        pending: dict[Any, Pending] = {}
        self.peer = Peer(
            ids=unguessable(pending),
            concurrent_requests=self.settings.concurrent_requests,
            depth=self.settings.depth,
            values=self.settings.response_values,
        )
        self.peer.pending = pending
        self.watch = Watch(self.peer, self.loop, self._expire)
        self.unreadable = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._serving: dict[int | str, asyncio.Task[None]] = {}
        self._asked = 0
        self._questions = 0  # since nobody was being asked
        self._owing = 0  # answers to questions that are made, and have not left
        self._refusing = 0  # bytes of refusals and answers to pings that have not left
        self._dropping = False
        self._renewal: asyncio.Future[None] | None = None

    # --- what a wire implements

    async def start(self) -> None:
        """Connect, as far as the wire has to."""

    def call(self, call: Call) -> Coroutine[Any, Any, Raw]:
        """Send a request and wait for its result.

        Raises:
            CallFailed: There is none.
        """
        raise AssertionError(f"{type(self).__name__} does not say how to call")

    def begin(self, call: Call) -> Awaitable[Raw]:
        """The same without a coroutine where the wire needs none: who stops to wait must say so (`withdraw`).

        Raises:
            CallFailed: There is no result, here or where it is waited for.
        """
        return self.call(call)

    def withdraw(self, call: Call) -> None:
        """Whoever waits for what `begin` gave was cancelled. Twice is once, and nothing where `call` has seen to it."""

    async def tell(self, message: bytes) -> None:
        """Send a notification or an answer. What cannot be sent is dropped: nobody waits for it."""

    async def aclose(self) -> None:
        """End the connection; calls that wait fail. Twice is once."""

    # --- debts

    def owe(self, call: Call) -> Pending:
        """Note that an answer to this call is owed, and watch its deadline.

        Raises:
            CallLimitExceeded: Too many calls wait already.
            DeadlineExceeded: Its deadline has passed.
        """
        peer = self.peer
        if len(peer.pending) >= self.settings.pending_calls:
            raise failure.too_many(call, "pending_calls", self.settings.pending_calls)
        deadline = call.deadline
        if deadline is not None and not call.patient and deadline <= self.loop.time():
            raise failure.expired(call, call.evidence)
        pending = peer.expect(call.method, deadline, call)
        call.request_id = pending.id
        if deadline is not None and (self.watch.due is None or deadline < self.watch.due):
            self.watch.arm(deadline)
        return pending

    def owed(self, call: Call) -> Pending | None:
        """What is owed for a call, while it is."""
        return None if call.request_id is None else self.peer.pending.get(call.request_id)

    def params_of(self, call: Call, revision: Revision) -> bytes:
        """The params of a call in a revision."""
        preamble = self.party.preambles.get(revision.name)
        if preamble is None:
            preamble = self.party.preamble(revision)
        if call.log_level is not None and revision.has(Feature.LOG_PER_REQUEST):
            preamble = b'%b,"%b":"%b"' % (preamble, LOG_LEVEL.encode(), call.log_level.encode())
        return call.encode(preamble)

    def _expire(self, event: Event) -> None:
        """The timer rang for a call."""
        if isinstance(event, Expired):
            self.expired(event.pending.slot, event.pending, event.notice)

    def expired(self, call: Call, pending: Pending, notice: bytes) -> None:
        """A call's deadline passed: the wire ends it, and tells the server."""

    def crowd(self, evidence: Evidence) -> float | None:
        """How many connections others have, where a call of this evidence has waited for one in vain."""
        most = self.settings.connections
        return most if evidence is Evidence.NOT_SENT and self._is_full(most) else None

    def _is_full(self, connections: float) -> bool:
        """Whether calls have so many connections that another one waits."""
        return False

    def stand(self) -> None:
        """Hear what the server says outside of calls, where that takes a stream of its own."""

    def finish(self, call: Call) -> None:
        """End a call as if it had been answered with an empty result."""

    @property
    def settled(self) -> bool:
        """Whether it is known what is spoken, and a request could be sent in it now."""
        return self.revision is not None

    async def until_renewed(self, generation: int) -> None:
        """Wait until the session is another one than it was in a `generation`, or may have been missed in part.

        Raises:
            CallFailed: The link ended, or nothing can be heard on it any more.
        """
        if self.alive and self.deaf is None and self.generation == generation:
            if self._renewal is None:
                self._renewal = self.loop.create_future()
            await asyncio.shield(self._renewal)
        if not self.alive:
            raise self.ended()
        if self.deaf is not None:
            raise self.deaf

    def ended(self) -> CallFailed:
        """How the link ended, for those who listen."""
        return failure.deaf("the client was closed")

    def renewed(self) -> None:
        """The session is another one, or part of what it told was missed, or the link has ended."""
        self.generation += 1
        self.deaf = None
        self._wake()

    def deafened(self, error: MCPRelayError) -> None:
        """What the server says outside of calls cannot be heard any more."""
        self.deaf = error
        self._wake()

    def _wake(self) -> None:
        renewal, self._renewal = self._renewal, None
        if renewal is not None and not renewal.done():
            renewal.set_result(None)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Work beside the calls, ended with the link."""
        _ = self.started(coroutine)

    def started(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """The same, and the task that does it."""
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("work beside the calls failed", exc_info=error)

    async def stop(self) -> None:
        """End what was spawned."""
        self.alive = False
        self.watch.close()
        self.renewed()
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self.settings.close_timeout)

    # --- what a server says without being asked

    def heard(self, event: Event, call: Call | None = None) -> None:
        """Take an event that settles none of our calls; `call` is the one whose own stream it came on, if any."""
        if isinstance(event, Notified):
            notice.take(self, event.method, event.params, call)
        elif isinstance(event, Called):
            self._serve(event, call)
        elif isinstance(event, Cancelled):
            task = self._serving.get(event.call.id)
            if task is not None:
                logger.debug("%s was cancelled by the server: %r", event.call.method, event.reason)
                task.cancel()
        elif isinstance(event, Rejected):
            self._refuse(event)

    def _refuse(self, event: Rejected) -> None:
        """What is not a message is counted. A request that cannot be taken is answered, where servers send requests."""
        self.unreadable += not event.busy
        logger.debug("not taken: %s", event.reason)
        if event.id is not None and self.revision is not None and self.revision.era is Era.HANDSHAKE:
            self._say(event.answer)

    # --- what a server asks, in the handshake era

    def _serve(self, event: Called, call: Call | None) -> None:
        if self.revision is not None and self.revision.era is Era.STATELESS:
            # stdio, "Sending Messages": in this era a client writes no responses, and servers ask by results.
            self.peer.settle(event.id, b"")
            self.unreadable += 1
            return
        if event.method == "ping":
            self._say(self.peer.answer(event.id, b"{}"))
            return
        most = self.settings.concurrent_requests
        if (owing := self.owing) and len(self.peer.in_flight) + owing > most:
            # What waits to leave is still in work: else a server could fill our memory by asking without reading.
            reason = f"too many requests at once: concurrent_requests={most:g}, counting answers not yet taken"
            refusal = jsonrpc.refusal(event.id, jsonrpc.INTERNAL_ERROR, f"{reason}; try again later")
            self._say(self.peer.settle(event.id, refusal))
            return
        task = self._serving[event.id] = self.started(self._answer(event, call or self._only_call()))
        task.add_done_callback(lambda _: self._serving.pop(event.id, None))

    @property
    def owing(self) -> int:
        """How many answers to questions are made, and have not left."""
        return self._owing

    @property
    def swamped(self) -> bool:
        """Whether the server must take refusals and answers to pings before it gets more of them.

        Answers to its questions count against `concurrent_requests` instead, and are never dropped.
        """
        return self._refusing > self.settings.refusal_bytes

    def _say(self, message: bytes) -> None:
        """Refuse a request, or answer a ping, unless the server takes no such answers: they could fill our memory."""
        if self.swamped:
            self._drop()
        elif message:
            self._refusing += len(message) + _TASK_BYTES
            self.spawn(self._said(message))

    def _drop(self) -> None:
        level = logging.DEBUG if self._dropping else logging.WARNING
        self._dropping = True
        logger.log(
            level,
            "the server asks more than it takes answers for: refusal_bytes=%d wait for it, and the answer to a ping,"
            " or a refusal, is dropped",
            self.settings.refusal_bytes,
        )

    async def _said(self, message: bytes) -> None:
        try:
            await self.tell(message)
        finally:
            self._refusing -= len(message) + _TASK_BYTES

    def _reply(self, message: bytes) -> None:
        """Give a question's answer, beside the calls. None is dropped; until it has left, the question is in work."""
        if message:
            self._owing += 1
            self.spawn(self._replied(message))

    async def _replied(self, message: bytes) -> None:
        try:
            await self.tell(message)
        finally:
            self._owing -= 1

    def _only_call(self) -> Call | None:
        """The one call that waits, which a question is for then; of several it is not known for which."""
        pending = self.peer.pending
        return next(iter(pending.values())).slot if len(pending) == 1 else None

    async def _answer(self, event: Called, call: Call | None) -> None:
        holding = self._stand_still(event.method)
        if holding:
            self.hold()
        try:
            spoken = self.revision or NEWEST
            self._check_declared(event, spoken)
            answer = self.peer.answer(event.id, await self.party.handlers.answer(event.method, event.params, spoken))
        except asyncio.CancelledError:
            if is_cancelled():
                self.peer.settle(event.id, b"")
                raise
            answer = self._unanswerable(event)
        except ProtocolError as error:
            answer = self.peer.settle(event.id, jsonrpc.refusal(event.id, error.code, error.message, error.data))
        except Exception as error:  # noqa: BLE001 - it is the user's, and the server must not wait for ever
            logger.exception("the handler of %s failed", event.method)
            if call is not None:
                call.unanswered = OPTIONS.get(event.method, event.method), error
            answer = self._unanswerable(event)
        finally:
            if holding:
                self.release()
        self._reply(answer)

    def _check_declared(self, event: Called, spoken: Revision) -> None:
        """What was not declared is not answered, whatever the handlers could (client/elicitation, "Error Handling")."""
        if spoken.method(event.method, "server") is None and self.revision is not None:
            raise ProtocolError(jsonrpc.METHOD_NOT_FOUND, f"Method not found: {event.method}")
        if lacks := self.party.undeclared(event.method, _members(event.params), spoken):
            if "." in lacks:
                raise ProtocolError(jsonrpc.INVALID_PARAMS, f"Invalid params: the client did not declare {lacks}")
            raise ProtocolError(jsonrpc.METHOD_NOT_FOUND, f"Method not found: {event.method}")

    def _unanswerable(self, event: Called) -> bytes:
        refusal = jsonrpc.refusal(event.id, jsonrpc.INTERNAL_ERROR, "The client could not answer")
        return self.peer.settle(event.id, refusal)

    def _stand_still(self, method: str) -> bool:
        """Whether default deadlines stand still for a question.

        They do where a handler answers it, and as often as in the other era: `input_rounds` times for each call, and
        for `input_requests` questions each time. Else a server could put a deadline off for ever by asking.
        """
        if not self.party.handlers.has(method):
            return False
        self._questions += 1
        if not self._asked:
            self._questions = 1
            for pending in self.peer.pending.values():
                call: Call = pending.slot
                call.rounds += 1
                if call.rounds > self.settings.input_rounds:
                    call.patient = False
        return self._questions <= self.settings.input_requests

    def hold(self) -> None:
        """A person may be asked: default deadlines stand still meanwhile, because it is us who are waited for."""
        self._asked += 1
        for pending in self.peer.pending.values():
            if pending.slot.patient:
                self.peer.extend(pending, None)

    @property
    def held(self) -> bool:
        """Whether a person is being asked."""
        return self._asked > 0

    def release(self) -> None:
        """The person has answered: default deadlines begin again."""
        self._asked -= 1
        if self._asked:
            return
        deadline = self.loop.time() + self.settings.request_timeout
        for pending in list(self.peer.pending.values()):
            if pending.slot.patient:
                self.peer.extend(pending, deadline)
        self.watch.arm(deadline)


def _members(params: Raw | UnsetType) -> dict[str, Any]:
    """The members of a question's params; none where they cannot be read, which whoever answers it says."""
    with contextlib.suppress(msgspec.DecodeError):
        members = {} if params is UNSET else msgspec.json.decode(params)
        return members if isinstance(members, dict) else {}
    return {}
