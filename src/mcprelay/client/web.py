"""A connection over HTTP: each call its own request, each answer a body or a stream.

Nothing is sent before the first call; what comes back says what the server is (`ladder`). In the handshake era a lost
session is renewed once for all who need it: those that lost it, and those that come while it is renewed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from mcprelay.client import failure, handshake, ladder
from mcprelay.client.call import Call
from mcprelay.client.courier import Courier, Refusal
from mcprelay.client.deadline import Scope, is_cancelled
from mcprelay.client.link import Link
from mcprelay.client.progress import logger
from mcprelay.client.stream import Reading
from mcprelay.core import probe
from mcprelay.core.dialer import Addressed, Dialer
from mcprelay.core.probe import Step
from mcprelay.errors import ANSWERED, MAYBE_SENT, NOT_SENT, CallFailed, Evidence
from mcprelay.revisions import Era, Feature
from mcprelay.wire import jsonrpc
from mcprelay.wire.field import HeaderInvalid
from mcprelay.wire.mirror import mirror

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from mcprelay.client.line import Line
    from mcprelay.client.party import Party
    from mcprelay.core.peer import Pending
    from mcprelay.ports import Reply, Request
    from mcprelay.revisions import Revision


class Web(Link):
    """The link over HTTP.

    Args:
        url: The endpoint.
        courier: Sends the requests.
        party: Who we are.
        remembered: The era that the server is known to be of, or None.
    """

    def __init__(self, url: str, courier: Courier, party: Party, *, remembered: Era | None = None) -> None:
        super().__init__(party)
        self.dialer = Dialer(url)
        self.courier = courier
        self.remembered = remembered
        self.pair: Line | None = None
        self.wondering: asyncio.Task[None] | None = None  # asks what the server is, beside calls it is silent on
        self._joint: asyncio.Task[None] | None = None
        self._lost = False  # the session: hands must be shaken before anything else is sent
        self._standing: asyncio.Task[None] | None = None
        self._closing: asyncio.Future[None] | None = None

    # --- calling

    def call(self, call: Call) -> Coroutine[Any, Any, Raw]:
        """See `Link`."""
        return self._called(call)

    async def _called(self, call: Call, *, repeated: bool = False) -> Raw:
        """Send a call over what the server speaks; `repeated` when it is sent again because its session was lost."""
        revision = self.revision
        if revision is not None and revision.era is Era.STATELESS:
            answer = await self.post(call, revision)
            return answer if isinstance(answer, Raw) else await ladder.reconsider(self, call, revision, answer)
        if self.pair is not None and self.pair.alive:
            return Raw(b"{}") if call.method == handshake.DISCOVER else await self.pair.call(call)
        if self.pair is not None:
            self.pair, self.remembered = None, Era.HANDSHAKE  # its stream ended: open another
            self.revision = revision = None
        if revision is None:
            return await ladder.climb(self, call)
        if self.renewing:
            await self.join(call, revision)
            return await self._called(call, repeated=repeated)
        if call.method == handshake.DISCOVER:
            return Raw(b"{}")  # the handshake has told what there is to tell
        return await self._in_session(call, revision, repeated=repeated)

    # --- the handshake era

    async def _in_session(self, call: Call, revision: Revision, *, repeated: bool) -> Raw:
        """A call in a session; one that is lost is renewed, once (handshake transports, "Session Management")."""
        session = self.dialer.session
        answer = await self.post(call, revision)
        if isinstance(answer, Raw):
            return answer
        if repeated or session is None or answer.status != 404:
            raise self.failed(call, answer)
        self.lose(session)
        call.refused = True  # a server that does not know the session carries nothing out in it
        return await self._called(call, repeated=True)

    def lose(self, session: str) -> None:
        """The server does not know this session any more. Whoever lost it later than others finds the next one."""
        if self.dialer.session == session:
            self.dialer.forget()
            self._lost = True

    @property
    def renewing(self) -> bool:
        """Whether hands are being shaken, or must be before anything else is sent in a session."""
        return self._lost or (self._joint is not None and not self._joint.done())

    @property
    def settled(self) -> bool:
        """See `Link`."""
        return self.revision is not None and not self.renewing and (self.pair is None or self.pair.alive)

    def due(self) -> float:
        """Until when a connection that is begun now must stand."""
        return self.loop.time() + self.settings.connect_timeout

    async def join(self, call: Call, proposed: Revision, *, due: float | None = None) -> None:
        """Connect, once for everybody who needs it at the same time, until `due`.

        Raises:
            CallFailed: There is no connection, or not within the call's deadline. Nothing of the call was sent.
        """
        joint = self._joint
        if joint is None or joint.done():
            joint = self._joint = self.loop.create_task(self._connect(proposed, self.due() if due is None else due))
            joint.add_done_callback(_seen)
        # A default deadline stands still while a person may be asked for consent: connecting has a limit of its own.
        limit = asyncio.timeout_at(None if call.patient else call.deadline)
        try:
            async with limit:
                await asyncio.shield(joint)
        except asyncio.CancelledError:
            if joint.cancelled() and not is_cancelled():
                raise failure.lost(call, NOT_SENT, "the client was closed") from None
            raise
        except TimeoutError as error:
            if limit.expired():
                raise failure.expired(call, NOT_SENT) from None
            raise failure.unconnected(call, f"there is no connection ({error})") from error
        except CallFailed as error:
            if error.evidence is ANSWERED:
                raise failure.unmet(error) from error
            raise failure.unconnected(call, f"there is no connection ({error})") from error
        if call.patient:
            call.deadline = self.loop.time() + self.settings.request_timeout

    async def rejoin(self) -> None:
        """Shake hands anew on behalf of whoever hears the server outside of calls.

        Raises:
            CallFailed: There is no new session.
        """
        proposed = self.revision or self.party.offered[-1]
        await self.join(handshake.initialize_call(self.party, proposed, deadline=self.due()), proposed)

    async def _connect(self, proposed: Revision, due: float) -> None:
        """Shake hands, or open the HTTP+SSE pair where that is refused.

        Until this has succeeded nothing else is sent in a session; when it fails, whoever comes next begins anew.
        """
        call = handshake.initialize_call(self.party, proposed, deadline=due)
        reading = Reading(self, call, proposed)
        answer = await self.post(call, None, reading)
        if isinstance(answer, Refusal):
            await self._refused(call, proposed, answer, due)
        else:
            await self._agree(call, answer, reading, due)

    async def _agree(self, call: Call, answer: Raw, reading: Reading, due: float) -> None:
        agreed = handshake.agree(self, answer, call)
        self.dialer.opened(agreed, reading.headers)
        renewed, self._lost = self._lost, False
        self.peer.batches = agreed.has(Feature.BATCH)
        await self.tell(handshake.initialized_notice(), due=due)
        level = handshake.set_level(self.party, self)
        if level is not None:
            self.spawn(self._quietly(level))
        self.renewed()
        if self._sit() or self.party.hears:
            self.stand(renewed=renewed)

    async def _refused(self, call: Call, proposed: Revision, refusal: Refusal, due: float) -> None:
        step = probe.after_initialize_refused(
            refusal.error, status=refusal.status, proposed=proposed, offered=self.party.offered
        )
        if step.step is Step.HANDSHAKE and step.revision is not None:
            await self._connect(step.revision, due)
        elif step.step is Step.REPEAT and step.revision is not None:
            handshake.speak(self, step.revision)
            self._leave_session()
        elif step.step is Step.UNSUPPORTED:
            raise failure.unsupported(call, step.supported, [revision.name for revision in self.party.offered])
        elif step.step is Step.PAIR:
            await self._open_pair(call, refusal, due)
        else:
            raise self.failed(call, refusal)

    async def _open_pair(self, call: Call, refusal: Refusal, due: float) -> None:
        from mcprelay.client.pair import PairChannel
        from mcprelay.client.posting import PairLine

        try:
            channel = await PairChannel.open(
                self.dialer.url, self.courier, settings=self.settings, failed=self.failed, due=due
            )
        except CallFailed as error:
            raise self.failed(call, refusal, hint=f" (and no HTTP+SSE stream: {error})") from error
        pair = PairLine(channel, self.party, due=due)
        await pair.start()
        self.pair, self.face, self.revision = pair, pair.face, pair.revision
        self._leave_session()
        self.spawn(self._outlive(pair))

    def _leave_session(self) -> None:
        """The server turned out to be one that is spoken with in another way."""
        self._lost = False
        self._sit()
        self.renewed()

    async def _outlive(self, pair: Line) -> None:
        """Whoever listens to the pair hears of its end. The next call opens another one."""
        try:
            while True:
                await pair.until_renewed(pair.generation)
        except CallFailed as error:
            self.deafened(error)

    async def _quietly(self, call: Call) -> None:
        try:
            await self.call(call)
        except CallFailed as error:
            logger.debug("%s", error)

    def _sit(self) -> bool:
        """Give up the server's own stream, and say whether there was one."""
        standing, self._standing = self._standing, None
        if standing is not None:
            standing.cancel()
        return standing is not None

    def stand(self, *, renewed: bool = False) -> None:
        """See `Link` (transports of the handshake era, "Listening for Messages from the Server")."""
        from mcprelay.client.standing import stand

        revision = self.revision
        if revision is None or not revision.http.sessions or self.pair is not None:
            return
        if self.deaf is not None:  # it waits for a time at which to try again, or has given up: try again now
            self._sit()
            self.deaf = None
        if self._standing is None or self._standing.done():
            self._standing = self.started(stand(self, renewed=renewed))

    # --- one request

    async def post(self, call: Call, revision: Revision | None, reading: Reading | None = None) -> Raw | Refusal:
        """Send a call once. `revision` is None for `initialize`, which is sent before there is one.

        Raises:
            CallFailed: There is no complete answer.
        """
        if not self.alive:
            raise failure.lost(call, NOT_SENT, "the client was closed")
        call.evidence = NOT_SENT
        pending = self.owe(call)
        params = call.encode(b"") if revision is None else self.params_of(call, revision)
        reading = reading or Reading(self, call, revision)
        try:
            request = self._addressed(call, revision, jsonrpc.request(pending.id, call.method, params))
            call.request = request
            call.scope = scope = Scope(self.loop)
            with scope:
                return await reading.of(request)
        except asyncio.CancelledError as error:
            if not is_cancelled():  # not ours and not the caller's: an HTTP client may be anybody's
                raise failure.lost(call, self._evidence(call), "the HTTP client gave up") from error
            self._give_up(call, pending, "the caller gave up")
            raise
        finally:
            call.evidence = self._evidence(call)
            call.scope = None
            self.peer.pending.pop(pending.id, None)

    def _addressed(self, call: Call, revision: Revision | None, body: bytes) -> Request:
        try:
            mirrored = mirror(call.params, msgspec.json.decode(call.arguments)) if call.params else ()
            return self.dialer.post(Addressed(body, call.method, call.name, mirrored), revision=revision)
        except HeaderInvalid as error:
            raise failure.unconnected(call, f"it cannot be sent over HTTP: {error}", lasting=True) from error

    def _evidence(self, call: Call) -> Evidence:
        request: Request | None = call.request
        return call.evidence if call.evidence is ANSWERED or request is None else request.evidence

    def expired(self, call: Call, pending: Pending, notice: bytes) -> None:
        """See `Link`."""
        if call.scope is not None:
            evidence = self._evidence(call)
            self._give_up(call, pending, "the deadline passed")
            call.scope.end(failure.expired(call, evidence, crowd=self.crowd(evidence)))

    def _is_full(self, connections: float) -> bool:
        return len(self.peer.pending) >= connections

    def _give_up(self, call: Call, pending: Pending, reason: str) -> None:
        """In the older era a closed stream is no cancellation, so the server is told."""
        revision = self.revision
        if revision is None or revision.era is Era.STATELESS or not self.alive or call.method in failure.GREETINGS:
            return
        if self._evidence(call) is MAYBE_SENT:
            notice = jsonrpc.encode({"requestId": pending.id, "reason": reason})
            self.spawn(self.tell(jsonrpc.notification("notifications/cancelled", notice)))

    async def tell(self, message: bytes, *, due: float | None = None) -> None:
        """See `Link`. It is given as long as a connection may take, or until `due`."""
        if not message or not self.alive or self._lost:
            return  # what was to be said in a session that is lost interests nobody
        if self.pair is not None:
            await self.pair.tell(message)
            return
        request = self.dialer.post(Addressed(message), revision=self.revision)
        try:
            async with asyncio.timeout_at(self.due() if due is None else due):
                refusal = await self.courier.deliver(request, _nothing)
        except (CallFailed, TimeoutError) as error:
            logger.debug("a message to the server was lost: %s", error)
        else:
            if refusal is not None:
                logger.debug("the server refused a message: HTTP %d", refusal.status)

    def failed(self, call: Call, refusal: Refusal, *, hint: str = "") -> CallFailed:
        """A refusal as the failure of its call."""
        call.evidence = ANSWERED
        busy = refusal.anonymous and (refusal.status == 429 or refusal.status >= 500)
        if refusal.error is not None and refusal.status not in (401, 403) and not busy:
            return failure.remote(call, refusal.error, status=refusal.status, headers=refusal.headers)
        status, headers, body = refusal.status, refusal.headers, refusal.body
        return failure.http(call, status, headers, body, hint=hint, vouched=refusal.vouched)

    # --- ending

    async def aclose(self) -> None:
        """See `Link`."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self.alive = False
        for pending in list(self.peer.pending.values()):
            call: Call = pending.slot
            if call.scope is not None:
                call.scope.end(failure.lost(call, self._evidence(call), "the client was closed"))
        joint = self._joint
        if joint is not None and not joint.done():
            joint.cancel()
            await asyncio.wait([joint], timeout=self.settings.close_timeout)
        await self.stop()
        if self.pair is not None:
            await self.pair.aclose()
        elif self.dialer.session is not None:
            await self._end_session()
        await self.courier.aclose()

    async def _end_session(self) -> None:
        """A server may refuse, and need not answer; that is its own business."""
        try:
            async with asyncio.timeout(self.settings.close_timeout):
                await self.courier.deliver(self.dialer.delete(), _nothing)
        except (CallFailed, TimeoutError) as error:
            logger.debug("the session was not ended: %s", error)


def _seen(task: asyncio.Task[None]) -> None:
    """Whoever waited for the connection may have given up meanwhile."""
    if not task.cancelled():
        task.exception()


async def _nothing(reply: Reply) -> None:
    """A reply whose body says nothing."""
