"""Who asked whom what, and what is still owed.

One `Peer` stands at each end of a channel, or of a session. It is symmetric: it does not know whether it is client or
server. Bytes go into `receive` and come out as events; requests, answers and notifications come out as bytes to send.
Time is an argument, and ids come from an iterator, so that the other side cannot guess them and tests can.

Rules:

1. `receive` never raises. The peer's nonsense is an event, with the answer that is owed for it.
2. A request is owed one answer. After it was cancelled it is owed none, and `answer` gives no bytes.
3. An answer settles the request of the same id, in type and value, or it is late (its request was given up) or stray
   (it was never asked for); both are counted and dropped. One that cannot be read settles it too, if its id can.
4. What `Pending.evidence` says is true at every moment: it is `NOT_SENT` until the driver says otherwise.
5. Misuse by this side raises `LocalFault`.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcprelay.errors import ANSWERED, NOT_SENT, Evidence, LocalFault
from mcprelay.wire import jsonrpc
from mcprelay.wire.params import CancelledParams
from mcprelay.wire.prune import pruned
from mcprelay.wire.salvage import of_ends

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcprelay.types import RequestId

CANCELLED = "notifications/cancelled"
CONCURRENT_REQUESTS = 1024
_REMEMBERED = 1024
_IDLE_REMINDERS = 64

_decode_cancelled = msgspec.json.Decoder(CancelledParams).decode


class Called(Struct, frozen=True):
    """The peer sent a request; it is owed an answer."""

    id: int | str
    method: str
    params: Raw | UnsetType


class Notified(Struct, frozen=True):
    """The peer sent a notification."""

    method: str
    params: Raw | UnsetType


class Cancelled(Struct, frozen=True):
    """The peer gave up a request of its own that is being worked on."""

    call: Called
    reason: str | None


class Pending(Struct, eq=False):
    """A request of ours that is owed an answer. `slot` belongs to the driver."""

    id: int | str
    method: str
    deadline: float | None = None
    evidence: Evidence = NOT_SENT
    slot: Any = None


class Replied(Struct, frozen=True):
    """A request of ours was answered with a result."""

    pending: Pending
    result: Raw


class Refused(Struct, frozen=True):
    """A request of ours was answered with an error."""

    pending: Pending
    error: jsonrpc.ErrorObject


class Garbled(Refused, frozen=True):
    """A request of ours was answered, but nobody can read it: `error` says why. Else the same as refused.

    `deep` says that it nests deeper than `Peer.depth`, `crowded` that it holds more than `Peer.values`.
    """

    deep: bool = False
    crowded: bool = False


class Expired(Struct, frozen=True):
    """The deadline of a request of ours passed. `notice` is what tells the peer, or empty when nothing was sent."""

    pending: Pending
    notice: bytes


class Lost(Struct, frozen=True):
    """The wire is gone, and with it the answer to a request of ours."""

    pending: Pending


class Rejected(Struct, frozen=True):
    """What came is not a message that can be taken; `answer` is owed for it, under `id` if it is a request with one.

    `busy` says that nothing is wrong with it but that it is one too many.
    """

    reason: str
    answer: bytes
    id: int | str | None = None
    busy: bool = False


class Dropped(Struct, frozen=True):
    """An answer that nobody waits for. `late` when its request was given up, else it was never asked for."""

    id: int | str | None
    late: bool


Event: TypeAlias = Called | Notified | Cancelled | Replied | Refused | Expired | Lost | Rejected | Dropped


class Peer:
    """One end of a conversation.

    Args:
        ids: Where the ids of our requests come from. They must not repeat while a request is pending.
        concurrent_requests: How many requests of the peer may be worked on at once.
        depth: How deep a message may nest.
        values: How many values a message may hold; None for as many as there are.
        batches: Whether a JSON-RPC batch is a message.
    """

    __slots__ = (
        "_abandoned",
        "_ids",
        "_reminders",
        "_unnoted",
        "batches",
        "concurrent_requests",
        "depth",
        "dropped",
        "in_flight",
        "pending",
        "rejected",
        "values",
    )

    def __init__(
        self,
        *,
        ids: Iterator[RequestId],
        concurrent_requests: int = CONCURRENT_REQUESTS,
        depth: int = jsonrpc.DEPTH,
        values: float | None = None,
        batches: bool = False,
    ) -> None:
        self._ids = ids
        self.concurrent_requests = concurrent_requests
        self.depth = depth
        self.values = values
        self.batches = batches
        self.in_flight: dict[RequestId, Called] = {}
        self.pending: dict[RequestId, Pending] = {}
        self.dropped = 0
        self.rejected = 0
        self._abandoned: dict[RequestId, None] = {}
        self._reminders: list[tuple[float, int, RequestId]] = []  # a heap
        self._unnoted = math.inf

    # --- what comes in

    def receive(self, data: bytes) -> list[Event]:
        """Take what came, one message or a batch, and say what it means."""
        message = jsonrpc.parse(data, depth=self.depth, values=self.values)
        if type(message) is jsonrpc.Envelope:
            return [self.take(message)]
        if self.batches and jsonrpc.is_batch(data):
            messages = jsonrpc.parse_batch(data, depth=self.depth, values=self.values)
            return list(map(self.take, messages)) if isinstance(messages, list) else [self.take(messages)]
        return [self.take(message)]

    def unread(self, head: bytes, tail: bytes, reason: str) -> Event:
        """Say what a message means of which only the ends were kept, because it was too much to read."""
        found = of_ends(head, tail)
        return self._reject(jsonrpc.Malformed(jsonrpc.INVALID_REQUEST, reason, found.id, found.role))

    def take(self, message: jsonrpc.Message) -> Event:
        """Take one parsed message."""
        if type(message) is not jsonrpc.Envelope:
            return self._reject(message)
        method, request_id = message.method, message.id
        if method is UNSET:
            return self._answered(message)
        if request_id is not UNSET:
            return self._called(request_id, method, message.params)
        return self._cancelled(message.params) if method == CANCELLED else Notified(method, message.params)

    def _called(self, request_id: RequestId, method: str, params: Raw | UnsetType) -> Event:
        if request_id in self.in_flight:
            reason = f"the id {request_id!r} is in use"
            return self._reject(jsonrpc.Malformed(jsonrpc.INVALID_REQUEST, reason, request_id, "request"))
        if len(self.in_flight) >= self.concurrent_requests:
            reason = f"too many requests at once: concurrent_requests={self.concurrent_requests}; try again later"
            self.rejected += 1
            return Rejected(reason, jsonrpc.refusal(request_id, jsonrpc.INTERNAL_ERROR, reason), request_id, busy=True)
        call = Called(request_id, method, params)
        self.in_flight[request_id] = call
        return call

    def _cancelled(self, params: Raw | UnsetType) -> Event:
        """What is unknown, finished or malformed is ignored (patterns/cancellation, "Error Handling")."""
        try:
            notice = _decode_cancelled(b"{}" if params is UNSET else params)
        except msgspec.DecodeError:
            return Notified(CANCELLED, params)
        call = None if notice.request_id is None else self.in_flight.pop(notice.request_id, None)
        return Notified(CANCELLED, params) if call is None else Cancelled(call, notice.reason)

    def replied(self, message: jsonrpc.Envelope) -> Pending | None:
        """The request of ours that a message settles with a result, or None: then it is for `take`."""
        if message.result is UNSET:
            return None
        pending = self.pending.pop(message.id, None)  # type: ignore[arg-type]  # a result has the id of its request
        if pending is not None:
            pending.evidence = ANSWERED
        return pending

    def _answered(self, message: jsonrpc.Envelope) -> Event:
        request_id = message.id
        pending = None if request_id is UNSET else self.pending.pop(request_id, None)
        if pending is None:
            return self._drop(None if request_id is UNSET else request_id)
        pending.evidence = ANSWERED
        if message.error is not UNSET:
            return Refused(pending, message.error)
        return Replied(pending, message.result)  # type: ignore[arg-type]  # a response without error has a result

    def _drop(self, request_id: RequestId | None) -> Event:
        self.dropped += 1
        late = request_id in self._abandoned
        self._abandoned.pop(request_id, None)  # type: ignore[arg-type]
        return Dropped(request_id, late)

    def _reject(self, message: jsonrpc.Malformed) -> Event:
        self.rejected += 1
        if message.id is not None and message.role != "request" and message.id in self.pending:
            page = self._page(message)
            if page is not None:
                return self._answered(page)
            pending = self.pending.pop(message.id)
            pending.evidence = ANSWERED
            error = jsonrpc.ErrorObject(message.code, message.reason)
            return Garbled(pending, error, deep=bool(message.deep), crowded=message.crowded)
        if message.id in self.in_flight:  # an error under this id would be taken for the answer to the other request
            return Rejected(message.reason, jsonrpc.refusal(None, message.code, message.reason))
        return Rejected(message.reason, message.answer(), None if message.role == "response" else message.id)

    def _page(self, message: jsonrpc.Malformed) -> jsonrpc.Envelope | None:
        """A page of a list that nests too deep, without what does, if anything can be read of it then."""
        if not message.deep or not self.pending[message.id].method.endswith("/list"):  # type: ignore[index]
            return None
        page = jsonrpc.parse(pruned(message.deep, self.depth), depth=self.depth)
        return page if isinstance(page, jsonrpc.Envelope) and page.is_response and page.id == message.id else None

    # --- what goes out

    def request(self, method: str, params: bytes, *, deadline: float | None = None) -> tuple[Pending, bytes]:
        """A request of ours: the debt, and the bytes to send. The driver sets `Pending.evidence` as it sends them."""
        pending = self.expect(method, deadline=deadline)
        return pending, jsonrpc.request(pending.id, method, params)

    def expect(self, method: str, deadline: float | None = None, slot: Any = None) -> Pending:
        """Allocate an id and record that an answer to it is owed. `slot` is the driver's own."""
        request_id = next(self._ids)
        if request_id in self.pending:
            msg = f"the id {request_id!r} is still pending"
            raise LocalFault(msg)
        pending = self.pending[request_id] = Pending(request_id, method, deadline, slot=slot)
        if deadline is not None and deadline < self._unnoted:
            self._remind(deadline, pending)
        return pending

    def extend(self, pending: Pending, deadline: float | None) -> None:
        """Move the deadline of a request of ours, or take it away. What is settled already is left alone."""
        pending.deadline = deadline
        if deadline is not None and self.pending.get(pending.id) is pending:
            self._remind(deadline, pending)

    def _remind(self, deadline: float, pending: Pending) -> None:
        """Note when to look at a request again.

        One whose deadline is not the nearest is not noted by itself: `_unnoted` is when to look for those at last.
        So a request that is answered in time, as most are, costs no place in the heap, and nothing keeps its answer.
        """
        reminders = self._reminders
        if reminders and deadline >= reminders[0][0]:
            if deadline < self._unnoted:  # noqa: PLR1730 - of every call, where each step counts
                self._unnoted = deadline
        elif len(reminders) > _IDLE_REMINDERS and len(reminders) > 4 * len(self.pending):
            self._note_all()
        else:
            heapq.heappush(reminders, (deadline, id(pending), pending.id))

    def _note_all(self) -> None:
        self._reminders = [
            (each.deadline, id(each), each.id) for each in self.pending.values() if each.deadline is not None
        ]
        heapq.heapify(self._reminders)
        self._unnoted = math.inf

    def _is_due(self, entry: tuple[float, int, RequestId]) -> bool:
        """Whether a reminder still stands: its request is owed an answer, and its deadline has not been moved."""
        deadline, _, request_id = entry
        pending = self.pending.get(request_id)
        return pending is not None and pending.deadline == deadline

    def answer(self, request_id: RequestId, result: bytes) -> bytes:
        """The answer to a request of the peer's; no bytes when it was cancelled meanwhile."""
        if self.in_flight.pop(request_id, None) is None:
            return b""
        return jsonrpc.response(request_id, result)

    def settle(self, request_id: RequestId, answer: bytes) -> bytes:
        """The same, for an answer or a refusal that is encoded already."""
        return b"" if self.in_flight.pop(request_id, None) is None else answer

    def abandon(self, pending: Pending, reason: str | None = None) -> bytes:
        """Give up a request of ours: the notice for the peer, or no bytes when nothing was sent or it is settled."""
        if self.pending.pop(pending.id, None) is None:
            return b""
        if pending.evidence is NOT_SENT:
            return b""
        self._remember(pending.id)
        notice = {"requestId": pending.id} if reason is None else {"requestId": pending.id, "reason": reason}
        return jsonrpc.notification(CANCELLED, jsonrpc.encode(notice))

    def _remember(self, request_id: RequestId) -> None:
        self._abandoned[request_id] = None
        if len(self._abandoned) > _REMEMBERED:
            del self._abandoned[next(iter(self._abandoned))]

    # --- time, and the end

    @property
    def next_deadline(self) -> float | None:
        """When `tick` has something to say, at the earliest."""
        while self._reminders and not self._is_due(self._reminders[0]):
            heapq.heappop(self._reminders)
        if self._unnoted < math.inf and (not self._reminders or self._unnoted < self._reminders[0][0]):
            self._note_all()
        return self._reminders[0][0] if self._reminders else None

    def tick(self, now: float) -> list[Event]:
        """The requests of ours whose deadline has passed."""
        events: list[Event] = []
        while (due := self.next_deadline) is not None and due <= now:
            pending = self.pending[heapq.heappop(self._reminders)[2]]
            events.append(Expired(pending, self.abandon(pending, "the deadline passed")))
        return events

    def lost(self) -> list[Event]:
        """The wire is gone: every debt is settled, each with the evidence that it has. The peer's calls are void."""
        events: list[Event] = [Lost(pending) for pending in self.pending.values()]
        self.pending.clear()
        self._reminders.clear()
        self.in_flight.clear()
        return events
