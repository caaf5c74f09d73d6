"""A connection over a `Channel`: stdio, in process, the HTTP+SSE pair, or a user's own.

All messages share the channel: one task receives, one sends. A call waits in the outbox until the channel takes it,
and can be withdrawn for as long as it is there; that is what makes `NOT_SENT` exact.
"""

from __future__ import annotations

import asyncio
import contextlib
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from mcprelay.client import ending, failure, greeting
from mcprelay.client.call import Call
from mcprelay.client.deadline import is_cancelled
from mcprelay.client.ending import Ending
from mcprelay.client.link import Link
from mcprelay.client.misuse import told_value
from mcprelay.client.outbox import Answer, Outbox
from mcprelay.client.progress import logger
from mcprelay.core.peer import Dropped, Garbled, Lost, Refused, Rejected, Replied
from mcprelay.errors import ANSWERED, MAYBE_SENT, NOT_SENT, CallFailed, Evidence, LimitExceeded, NotSent
from mcprelay.revisions import Era
from mcprelay.stdio.line import Unended
from mcprelay.wire import jsonrpc
from mcprelay.wire.jsonrpc import Envelope

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from mcprelay.client.party import Party
    from mcprelay.core.peer import Event, Pending
    from mcprelay.ports import Channel
    from mcprelay.revisions import Revision
    from mcprelay.wire.jsonrpc import Malformed

_HASTY = ("attach", "offer", "send_nowait", "room", "congested", "handed", "lost")
"""What a channel may have beyond the port (see `mcprelay.stdio.LineChannel`): then no task stands between it and us."""

_MUTE = "the server takes no more requests, so the connection to it was closed"

_LAST_WORDS = 1.0
"""Seconds that a server has to end after it took no more: its end says why."""

_NOISE = 200

_SUSPECTS = 64
"""How many of the calls that wait an answer under a wrong id may have been meant for."""


def _no_room(_: bytes) -> int:
    """What a channel offers that is not one in a hurry."""
    return 0


class Line(Link):
    """The link over a channel.

    Args:
        channel: The other side.
        party: Who we are.
        remembered: The era that the server is known to be of, or None.
        due: Until when the connection must stand, on the loop's clock; `connect_timeout` from now when left out.

    Attributes:
        noise: The beginning of what the server said first that is not the protocol: a banner, most often.
    """

    def __init__(
        self, channel: Channel, party: Party, *, remembered: Era | None = None, due: float | None = None
    ) -> None:
        super().__init__(party)
        self.due = self.loop.time() + party.settings.connect_timeout if due is None else due
        self.noise = b""
        self.channel = channel
        self.remembered = remembered
        self._hasty = hasty = all(hasattr(channel, power) for power in _HASTY)
        self._outbox = Outbox(channel, self.peer, hasty=hasty, put=self._put_now, failed=self._untaken)
        self._offer: Callable[[bytes], int] = getattr(channel, "offer") if hasty else _no_room  # noqa: B009 - not of every channel
        self._reader: asyncio.Task[None] | None = None
        self._writer: asyncio.Task[None] | None = None
        self._closing: asyncio.Future[None] | None = None
        self._ending = Ending()

    # --- beginning

    async def start(self) -> None:
        """Find out what the server speaks, and shake hands where that is due.

        Raises:
            CallFailed: It speaks nothing that we do, or nothing at all.
        """
        self._begin()
        try:
            await greeting.agree(self)
        except CallFailed as error:
            await self._leave()
            failure.tell_of_server(error, self.noise, **self.process())
            raise
        except BaseException:
            await self.aclose()
            raise

    def _begin(self) -> None:
        """Receive and send from now on."""
        self._writer = self.loop.create_task(self._write())
        if not self._hasty:
            self._reader = self.loop.create_task(self._read())
        else:
            channel: Any = self.channel
            channel.attach(self._receive)
            if hasattr(channel, "on_mute"):
                channel.on_mute = self._muted

    def _muted(self) -> None:
        """The other side takes no more, though it may still answer what it has: the next call finds another link.

        What has not left never will. Those who wait for it are told so a moment later, when the end of it all, which
        says more, has not come by then.
        """
        self.mute = True
        self.loop.call_later(_LAST_WORDS, self._give_back)

    def _give_back(self) -> None:
        """Nothing has come after the other side took no more: what never left is told as such."""
        channel: Any = self.channel
        for pending in list(self.peer.pending.values()):
            if self._evidence(pending) is NOT_SENT:
                self._outbox.drop(pending)
                self._untaken(pending, NotSent(f"not sent: {channel.lost}"))

    async def _leave(self) -> None:
        """End a connection that did not come about. That is not waited for beyond the time that connecting had."""
        try:
            async with asyncio.timeout_at(self.due):
                await self.aclose()
        except TimeoutError:
            if self._closing is not None:
                self.party.leaving(self._closing)

    # --- calling

    def call(self, call: Call) -> Coroutine[Any, Any, Raw]:
        """See `Link`."""
        return self.ask(call, self.revision)

    async def ask(self, call: Call, revision: Revision | None) -> Raw:
        """Send a call in a revision, whether it is agreed on or not, and wait for its result.

        Raises:
            CallFailed: There is none.
        """
        try:
            return await self.begin(call, revision)
        except asyncio.CancelledError:
            self.withdraw(call)
            raise

    def begin(self, call: Call, revision: Revision | None = None) -> Awaitable[Raw]:
        """See `Link`. `revision` is the one that is agreed on unless given."""
        revision = revision or self.revision
        if not self.alive or revision is None:
            raise self._lost(call, NOT_SENT)
        pending = self.owe(call)
        call.future = future = self.loop.create_future()
        if call.evidence is not NOT_SENT:  # of an earlier sending
            call.evidence = NOT_SENT
        request = jsonrpc.request(pending.id, call.method, self.params_of(call, revision))
        if self._outbox.waiting or not self._put_now(pending, request, self._offer):
            self._outbox.add(pending, request)
        return future

    def withdraw(self, call: Call) -> None:
        """See `Link`. The server is told, unless nothing of the request left."""
        call.future = None
        pending = self.owed(call)
        if pending is None:  # how far it came was noted when it was settled
            return
        call.evidence = pending.evidence = self._evidence(pending)
        self._outbox.drop(pending)
        notice = self.peer.abandon(pending, "the caller gave up")
        if notice and call.method not in failure.GREETINGS:  # lifecycle: `initialize` is not cancelled
            self._put(notice)

    async def tell(self, message: bytes) -> None:
        """See `Link`."""
        if message and self.alive:
            self._put(message)

    @property
    def swamped(self) -> bool:
        """See `Link`."""
        return self._outbox.unsaid > self.settings.refusal_bytes

    @property
    def owing(self) -> int:
        """See `Link`."""
        return super().owing + self._outbox.answers

    def _reply(self, message: bytes) -> None:
        if message and self.alive:
            self._put(Answer(message))

    def expired(self, call: Call, pending: Pending, notice: bytes) -> None:
        """See `Link`."""
        call.evidence = self._evidence(pending)
        self._outbox.drop(pending)
        if notice and call.evidence is not NOT_SENT and call.method not in failure.GREETINGS:
            self._put(notice)
        self._fail(call, failure.expired(call, call.evidence, crowd=self.crowd(call.evidence)))

    def finish(self, call: Call) -> None:
        """See `Link`."""
        if (pending := self.owed(call)) is not None:
            del self.peer.pending[pending.id]
            self._settle(call, Raw(b"{}"))

    def _settle(self, call: Call, result: Raw) -> None:
        call.evidence = ANSWERED
        if call.future is not None:
            with contextlib.suppress(asyncio.InvalidStateError):  # whoever waited was cancelled in this turn
                call.future.set_result(result)

    def _fail(self, call: Call, error: BaseException) -> None:
        future, call.future = call.future, None  # or what failed would wait for the collector of cycles
        if future is not None:
            with contextlib.suppress(asyncio.InvalidStateError):
                future.set_exception(error)

    # --- sending

    def _put(self, data: bytes) -> None:
        """Hand over what is no call at once where the channel takes it, else put it into the outbox."""
        if self._outbox.waiting or not self._put_now(None, data, self._offer):
            self._outbox.add(None, data)

    async def _write(self) -> None:
        try:
            await self._outbox.run()
        except GeneratorExit:  # the loop was closed before the client: nobody can wait any more
            raise
        except BaseException as error:  # noqa: BLE001 - a channel may be anybody's, and any failure breaks it
            self._ending = ending.broken("sending", error)
            await self._end()

    def _put_now(self, pending: Pending | None, data: bytes, send: Callable[[bytes], int]) -> bool:
        """Send at once where the channel has room. Whether this message is settled: it was taken, or never will be."""
        try:
            number = send(data)
        except NotSent as error:
            if pending is not None:
                self._untaken(pending, error)
            return True
        if not number:
            return False
        if pending is not None:
            pending.evidence = MAYBE_SENT
            pending.slot.number = number
        return True

    def _untaken(self, pending: Pending, error: NotSent | CallFailed) -> None:
        """A request was not taken: the channel broke, or it refused this one alone and goes on."""
        if self.peer.pending.pop(pending.id, None) is None:
            return
        call: Call = pending.slot
        if isinstance(error, CallFailed):
            call.evidence = error.evidence
            self._fail(call, error)
        else:
            pending.evidence = NOT_SENT
            self._fail(call, failure.lost(call, NOT_SENT, str(error), **self.process()))

    def _evidence(self, pending: Pending) -> Evidence:
        """What is known of a request: one that a broken channel still holds will never leave."""
        number = pending.slot.number
        if not number or pending.evidence is not MAYBE_SENT:
            return pending.evidence
        channel: Any = self.channel
        broken = self._hasty and channel.lost is not None
        if broken and channel.handed < number:
            return NOT_SENT
        return MAYBE_SENT

    # --- receiving

    async def _read(self) -> None:
        while True:
            try:
                data: Any = await self.channel.receive()
            except LimitExceeded as error:
                self._oversized(error)
                continue
            except GeneratorExit:  # the loop was closed before the client: nobody can wait any more
                raise
            except BaseException as error:  # noqa: BLE001 - a channel may be anybody's, and any failure breaks it
                self._ending = ending.broken("receiving", error)
                break
            if not isinstance(data, bytes):
                wrong = f"a message is bytes, and not {told_value(data)}"
                self._ending = Ending(f"the channel broke while receiving ({wrong})")
                break
            if not data:
                self._ending = self._ended()
                break
            self._receive(data)
        await self._end()

    def _receive(self, data: bytes | LimitExceeded) -> None:
        """Take what came: a message, one that was too long, or the end."""
        if isinstance(data, LimitExceeded):
            self._oversized(data)
            return
        if not data:
            self._hung_up()
            return
        peer = self.peer
        message = jsonrpc.parse(data, depth=peer.depth, values=peer.values)
        if type(message) is not Envelope:
            self._take_apart(message, data)
        elif (pending := peer.replied(message)) is None:
            self._take(peer.take(message), data)
        else:
            call: Call = pending.slot  # the rest is `_settle`: what most calls come to is spared the frame
            call.evidence = ANSWERED
            if call.future is not None:
                try:  # to look first is not enough: a signal's handler may cancel between look and answer
                    call.future.set_result(message.result)
                except asyncio.InvalidStateError:
                    logger.debug("%s was answered when its caller had been cancelled", call.method)

    def _hung_up(self) -> None:
        if self.alive:
            self._ending = self._ended()
            self.alive = False
            self._settle_all()
            self._closing = asyncio.ensure_future(self._close())

    def _take_apart(self, message: Malformed, data: bytes) -> None:
        """What came is not one message: a batch, the beginning of one, or nonsense."""
        if self.peer.batches and jsonrpc.is_batch(data):
            for event in self.peer.receive(data):
                self._take(event, b"")
            return
        if isinstance(data, Unended):
            # The other side ended in the middle of it. Why, and how its process ended, is known when the end is told.
            self.unreadable += 1
            self.noise = self.noise or data[:_NOISE]
            return
        self._take(self.peer.take(message), data)

    def _take(self, event: Event, data: bytes) -> None:
        if isinstance(event, Replied):  # in a batch
            self._settle(event.pending.slot, event.result)
        elif isinstance(event, Refused):
            call: Call = event.pending.slot
            call.evidence = ANSWERED
            if isinstance(event, Garbled):
                self.unreadable += 1
                self._fail(call, failure.garbled(call, event, data, settings=self.settings))
            else:
                self._fail(call, failure.remote(call, event.error))
        else:
            if isinstance(event, Rejected) and not event.busy:
                self._unread(data[:_NOISE])
            elif isinstance(event, Dropped) and not event.late:
                self._strayed()
            self.heard(event)

    def _unread(self, garbage: bytes) -> None:
        """Nobody can read what came: whoever waits in vain is told, since it may have been an answer."""
        self.noise = self.noise or garbage
        for pending in islice(self.peer.pending.values(), _SUSPECTS):
            pending.slot.garbage = garbage

    def _strayed(self) -> None:
        """An answer came that was never asked for: whoever waits in vain is told, since it may have been meant."""
        for pending in islice(self.peer.pending.values(), _SUSPECTS):
            pending.slot.strays += 1

    def _oversized(self, error: LimitExceeded) -> None:
        """A message was discarded because of its size: if it was an answer, whoever waits for it is told."""
        event = self.peer.unread(getattr(error, "head", b""), getattr(error, "tail", b""), str(error))
        if isinstance(event, Garbled):
            self.unreadable += 1
            call: Call = event.pending.slot
            call.evidence = ANSWERED
            self._fail(call, failure.too_long(call, "response_bytes", error.allowed))
        else:
            self.heard(event)

    # --- ending

    def _ended(self) -> Ending:
        """Why the channel ended, once it gave `b""`."""
        return ending.of(self.channel)

    def process(self) -> dict[str, Any]:
        """What is known of the server's process, where there is one."""
        return ending.process(self.channel)

    def _lost(self, call: Call, evidence: Evidence, **process: Any) -> CallFailed:
        """The end of the connection as the failure of a call."""
        error = failure.lost(call, evidence, self._ending.reason, **(process or self.process()))
        error.__cause__ = self._ending.cause
        return error

    def ended(self) -> CallFailed:
        """See `Link`."""
        error = failure.deaf(self._ending.reason, **self.process())
        error.__cause__ = self._ending.cause
        return error

    async def _end(self) -> None:
        """The wire is gone: everybody who waits is told the truth."""
        if not self.alive:
            return
        self.alive = False
        self._settle_all()
        await self.aclose()

    def _settle_all(self) -> None:
        process = self.process()
        for event in self.peer.lost():
            if isinstance(event, Lost):
                call: Call = event.pending.slot
                call.evidence = self._evidence(event.pending)
                self._fail(call, self._lost(call, call.evidence, **process))
        self._outbox.waiting.clear()

    async def aclose(self) -> None:
        """See `Link`."""
        if self._closing is None:
            if self.alive:
                self.alive = False
                self._ending = Ending(_MUTE if self.mute else "the client was closed")
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        for task in (self._reader, self._writer):
            if task is not None:
                task.cancel()
        self._settle_all()
        await self.stop()
        try:
            await self.channel.aclose()
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            logger.debug("the channel was cancelled while it closed: %r", error)
