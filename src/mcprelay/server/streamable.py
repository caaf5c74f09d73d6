"""The handshake era over Streamable HTTP: what is done with the work that the endpoint's rules admit.

A call of this era is not cancelled by hanging up (transports, "Disconnection SHOULD NOT be interpreted as the client
cancelling its request"): it runs on, and where its stream had begun, a GET with `Last-Event-ID` reads the rest.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec

from mcprelay.core.endpoint import answer_in
from mcprelay.core.peer import Called, Notified, Rejected
from mcprelay.core.work import EndSession, InSession, OpenStream, Refusal, request_id, single
from mcprelay.errors import LimitExceeded, ProtocolError
from mcprelay.ports import Session
from mcprelay.revisions import Fault
from mcprelay.server import event, handshake
from mcprelay.server.call import Answer
from mcprelay.server.calllink import CallLink
from mcprelay.server.conversations import Conversations
from mcprelay.server.exchange import ACCEPTED, JSON_HEADER, Hangup
from mcprelay.server.observation import listening_in
from mcprelay.server.reading import is_standing, read
from mcprelay.server.session import new_session_id
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from msgspec import Raw

    from mcprelay.core.endpoint import Endpoint
    from mcprelay.core.peer import Event
    from mcprelay.core.work import Handshake
    from mcprelay.ports import EventLog, SessionStore
    from mcprelay.server import Server
    from mcprelay.server.call import Call
    from mcprelay.server.conversation import Conversation
    from mcprelay.server.exchange import Arrival
    from mcprelay.server.stream import Pace

logger = logging.getLogger("mcprelay.server")

_ENDED = Refusal(204, b"", ())
_MISSED = (
    "Last-Event-ID is not an event of this session that is kept (any more): event_log_bytes. What was missed is not"
    " known; a GET without it begins anew"
)
_STORELESS = "the session store does not answer; try again later"
_OF_SESSIONS = frozenset(("resources/subscribe", "resources/unsubscribe"))


class Visit:
    """One request that is in flight in a conversation, until it leaves or its client has hung up."""

    __slots__ = ("_conversations", "_over", "_task", "conversation")

    def __init__(self, conversations: Conversations, conversation: Conversation) -> None:
        self._conversations = conversations
        self.conversation = conversation
        self._over = False
        self._task: asyncio.Task[None] | None = None

    def depart(self) -> None:
        """The client hung up: the session may be idle, although a call runs on."""
        if not self._over:
            self._over = True
            self._task = asyncio.get_running_loop().create_task(self._conversations.leave(self.conversation))

    async def leave(self) -> None:
        """The request is answered."""
        if self._over:
            self._conversations.tidy(self.conversation)
        else:
            self._over = True
            await self._conversations.leave(self.conversation)


class Streamable:
    """Carries out what the endpoint admits of the handshake era, on one event loop.

    Args:
        server: What is served.
        endpoint: The rules.
        store: Where sessions are kept.
        log: Where events are kept, if they are.
        pace: How streams behave.
    """

    def __init__(
        self, server: Server, endpoint: Endpoint, store: SessionStore, log: EventLog | None, pace: Pace
    ) -> None:
        self._server = server
        self._endpoint = endpoint
        self._pace = pace
        self.conversations = Conversations(server, store, log, pace)

    # --- the handshake

    async def initialize(self, work: Handshake, arrival: Arrival) -> None:
        """Begin a session. One that is refused leaves nothing behind."""
        message = work.message
        request = Called(message.id, "initialize", message.params)  # type: ignore[arg-type]
        session_id = new_session_id() if self._endpoint.has_sessions else ""
        session = handshake.begun(self._server, request, id=session_id, principal=arrival.principal)
        if isinstance(session, Answer):
            self._tell_refused(session)
            await arrival.answer(session.message)
            return
        revision = self._server.served[session.revision]
        link = _Mute()
        call = handshake.decoded(
            request, revision, link, session=session, principal=arrival.principal, http=arrival, state=arrival.state
        )
        if isinstance(call, Answer):
            self._tell_refused(call)
        answer = call if isinstance(call, Answer) else await self._server.dispatcher.handle(call)
        if answer.code or not session_id:
            await arrival.answer(answer.message if session_id or answer.code else _without_changes(answer.message))
            return
        try:
            await self.conversations.begin(session)
        except LimitExceeded as error:
            await arrival.refuse(_unavailable(str(error), request.id), limit=error)
            return
        except Exception:
            logger.exception("the session store failed")
            await self._refuse_storeless(arrival, request.id)
            return
        await arrival.answer(answer.message, (b"mcp-session-id", session_id.encode()))

    # --- in a session, or outside of any

    async def carry_out(self, work: InSession | OpenStream | EndSession, arrival: Arrival) -> None:
        """Do what is asked in a session."""
        if work.session_id is None:
            await self._plain(work, arrival)
            return
        try:
            conversation = await self.conversations.enter(work.session_id, arrival.principal)
        except Exception:
            logger.exception("the session store failed")
            await self._refuse_storeless(arrival, request_id(single(work)))
            return
        if conversation is None:
            await arrival.refuse(self._endpoint.unknown_session(work))
            return
        visit = Visit(self.conversations, conversation)
        try:
            refusal = self._endpoint.fits(work, conversation.revision)
            if refusal is not None:
                await arrival.refuse(refusal)
            elif type(work) is InSession:
                await self._post(work, arrival, visit)
            elif type(work) is OpenStream:
                await self._get(work, arrival, conversation)
            else:
                await self.conversations.end(conversation)
                await arrival.respond(_ENDED)
        finally:
            await visit.leave()

    async def _refuse_storeless(self, arrival: Arrival, request_id: int | str | None = None) -> None:
        refusal = _unavailable(_STORELESS, request_id)
        await arrival.refuse(refusal, reason="store")

    def _tell_refused(self, answer: Answer) -> None:
        self._server.events.emit(event.Refusal(reason="malformed", code=answer.code))

    async def _plain(self, work: InSession, arrival: Arrival) -> None:
        """Messages outside of any session: what a session would remember is not remembered."""
        revision = work.revision
        assert revision is not None, "the endpoint names one where there is no session"  # noqa: S101 - its promise
        session = Session(id="", revision=revision.name, log_level=handshake.LOGGED)
        await self._post(work, arrival, Visit(self.conversations, self.conversations.passing(session)))

    async def _post(self, work: InSession, arrival: Arrival, visit: Visit) -> None:
        conversation = visit.conversation
        if work.batch:
            await self._batch(work, arrival, visit)
            return
        said = conversation.peer.take(work.messages[0])
        if type(said) is Called:
            await self._call(said, arrival, visit)
        elif type(said) is Rejected:
            named = said.answer.startswith(b'{"jsonrpc":"2.0","id"')
            refusal = Refusal(200 if named else 400, answer_in(conversation.revision, said.answer))
            await arrival.refuse(refusal, reason="malformed")
        else:
            await self._told(said, conversation)
            await arrival.respond(ACCEPTED)

    async def _told(self, said: Event, conversation: Conversation) -> None:
        """Take a notification or an answer of the client's."""
        conversation.settle(said)
        if type(said) is Notified and said.method == handshake.INITIALIZED and not conversation.session.initialized:
            handshake.initialized(conversation.session)
            try:
                await self.conversations.amend(conversation, (handshake.initialized,))
            except Exception:  # it is a notification: the client is owed no answer, and the session goes on
                logger.exception("the session store failed")

    # --- calls

    async def _call(self, request: Called, arrival: Arrival, visit: Visit) -> None:
        """Answer one request."""
        conversation = visit.conversation
        link = CallLink(arrival, self._pace, conversation)
        hangup = Hangup(arrival, _departed(visit, link, arrival, (request,)), link.suspended)
        try:
            message, code = await self._work(request, arrival, link, conversation)
            hangup.close()
            await link.finish(message, conversation.revision.status_of.get(code, 200))
        finally:
            hangup.close()
            link.close()

    async def _work(
        self, request: Called, arrival: Arrival, link: CallLink, conversation: Conversation
    ) -> tuple[bytes, int]:
        """The answer to a request and its error code; no bytes when the request was cancelled."""
        peer = conversation.peer
        call = self._decoded(request, arrival, link, conversation)
        if type(call) is Answer:
            self._tell_refused(call)
            return peer.settle(request.id, call.message), call.code
        task = asyncio.current_task()
        assert task is not None, "ASGI applications run in tasks"  # noqa: S101 - asyncio's promise
        entry = conversation.calls[request.id] = (task, call)
        try:
            answer = await self._server.dispatcher.handle(call)
        except asyncio.CancelledError:
            if not call.cancelled:
                peer.settle(request.id, b"")
                raise
            answer = Answer(b"")
        finally:
            if conversation.calls.get(request.id) is entry:
                del conversation.calls[request.id]
        if call.cancelled:
            task.uncancel()
            return b"", 0
        if call.amended:
            try:
                await self.conversations.amend(conversation, call.amended)
            except Exception:  # what the client asked for is not remembered, and it is told so
                logger.exception("the session store failed")
                answer = handshake.refusal(request, conversation.revision, Fault.INTERNAL, _STORELESS)
        return peer.settle(request.id, answer.message), answer.code

    def _decoded(self, request: Called, arrival: Arrival, link: CallLink, conversation: Conversation) -> Call | Answer:
        revision, session = conversation.revision, conversation.session
        if not session.id and request.method in _OF_SESSIONS:
            why = f"Method not found: {request.method} is for a session"
            return handshake.refusal(request, revision, Fault.METHOD_NOT_FOUND, why)
        return handshake.decoded(
            request, revision, link, session=session, principal=arrival.principal, http=arrival, state=arrival.state
        )

    # --- batches

    async def _batch(self, work: InSession, arrival: Arrival, visit: Visit) -> None:
        """Answer the messages of a batch: the requests at once, their answers as one array or on one stream."""
        conversation = visit.conversation
        answers: list[bytes] = []
        calls: list[Called] = []
        for message in work.messages:
            said = conversation.peer.take(message)
            if type(said) is Called and said.method != "initialize":
                calls.append(said)
            elif type(said) is Called:
                answer = handshake.in_batch(said, conversation.revision)
                self._tell_refused(answer)
                answers.append(conversation.peer.settle(said.id, answer.message))
            elif type(said) is Rejected:
                self._server.events.emit(event.Refusal(reason="malformed"))
                answers.append(answer_in(conversation.revision, said.answer))
            else:
                await self._told(said, conversation)
        if calls or answers:
            await self._answer_batch(calls, answers, arrival, visit)
        else:
            await arrival.respond(ACCEPTED)

    async def _answer_batch(self, calls: list[Called], answers: list[bytes], arrival: Arrival, visit: Visit) -> None:
        conversation = visit.conversation
        link = CallLink(arrival, self._pace, conversation)
        hangup = Hangup(arrival, _departed(visit, link, arrival, calls), link.suspended)

        async def work(request: Called) -> None:
            message, _ = await self._work(request, arrival, link, conversation)
            if message and link.streams:
                link.notify(message)
            elif message:
                answers.append(message)

        try:
            async with asyncio.TaskGroup() as group:
                for request in calls:
                    group.create_task(work(request))
            hangup.close()
            if link.streams:
                for answer in answers:
                    link.notify(answer)
                await link.finish(b"", 200)
            else:
                await link.finish(b"[%b]" % b",".join(answers) if answers else b"", 200)
        finally:
            hangup.close()
            link.close()

    # --- streams that are read by GET

    async def _get(self, work: OpenStream, arrival: Arrival, conversation: Conversation) -> None:
        """Read a stream, from now on or after an event."""
        try:
            self._server.changes.opened()
        except LimitExceeded as error:
            await arrival.refuse(_unavailable(str(error)), limit=error)
            return
        events = self._server.events
        listening = is_standing(work.last_event_id) and (events.observers or events.logged(logging.INFO))
        told = listening_in(events, conversation.session, self._server.capabilities) if listening else None
        try:
            if not await read(conversation, arrival, work.last_event_id):
                body = answer_in(conversation.revision, jsonrpc.refusal(None, jsonrpc.INVALID_REQUEST, _MISSED))
                await arrival.refuse(Refusal(400, body))
        finally:
            self._server.changes.closed()
            if told is not None:
                told.close()


def _departed(visit: Visit, link: CallLink, arrival: Arrival, calls: Sequence[Called]) -> Callable[[], None]:
    """What a hang-up means in this era: the calls run on, unless too many do so already."""

    def departed() -> None:
        link.gone()
        visit.depart()
        if not arrival.detach():
            for request in calls:
                visit.conversation.cancel(request.id, "because too many run without a client: detached_calls")

    return departed


def _unavailable(why: str, request_id: int | str | None = None) -> Refusal:
    body = jsonrpc.refusal(request_id, jsonrpc.INTERNAL_ERROR, why)
    return Refusal(503, body, (JSON_HEADER, (b"retry-after", b"60")))


def _without_changes(answer: bytes) -> bytes:
    """The answer to `initialize` where there are no sessions, and so no stream that could tell of changes."""
    message = msgspec.json.decode(answer)
    for capability in message["result"]["capabilities"].values():
        capability.pop("listChanged", None)
        capability.pop("subscribe", None)
    return jsonrpc.encode(message)


class _Mute:
    """The way back to a client that is not in a session yet: nothing goes there but the answer."""

    __slots__ = ()

    def notify(self, message: bytes) -> None:
        """See `Link`."""

    async def drain(self) -> None:
        """See `Link`."""

    async def request(self, method: str, params: bytes) -> Raw:
        """See `Link`."""
        raise ProtocolError(jsonrpc.INTERNAL_ERROR, f"{method} cannot be asked before the session has begun")

    def close_stream(self, retry_ms: int) -> None:
        """See `Link`."""
