"""What goes on in one session at the moment, on one event loop: calls, questions, streams.

The session itself is data in the store. A conversation exists while something goes on: while a request is in flight, a
call runs on although its client let go, or changes are remembered for a GET stream that was open and may come back. So
a session that is idle costs no more than its entry in the store.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING

from mcprelay.core.peer import Cancelled, Lost, Peer, Refused, Replied
from mcprelay.server.question import settle
from mcprelay.server.stream import Pace, Stream, Track
from mcprelay.server.subscription import SessionListener

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcprelay.core.peer import Event
    from mcprelay.ports import EventLog, Session
    from mcprelay.revisions import Revision
    from mcprelay.server import Server
    from mcprelay.server.call import Call
    from mcprelay.types import RequestId

logger = logging.getLogger("mcprelay.server")

STANDING = "0"
"""The name of the stream that is read by GET and belongs to no request."""
MARK = "~"
"""Stands between the name of a stream and the log's own id in the ids that readers see."""


class Conversation:
    """What goes on in one session.

    Args:
        server: What is served.
        session: The session.
        ids: The ids of our requests.
        log: Where events are kept, if they are.
        pace: How streams behave.
    """

    __slots__ = (
        "_log", "_pace", "_server", "calls", "ended", "guests", "listener", "peer", "revision", "session",
        "standing", "streams",
    )  # fmt: skip

    def __init__(
        self, server: Server, session: Session, ids: Iterator[RequestId], log: EventLog | None, pace: Pace
    ) -> None:
        self._server = server
        self._log = log
        self._pace = pace
        self.session = session
        self.revision: Revision = server.served[session.revision]
        limits = server.limits
        at_once = limits.concurrent_requests + limits.detached_calls
        self.peer = Peer(ids=ids, concurrent_requests=at_once, depth=limits.depth)
        self.calls: dict[RequestId, tuple[asyncio.Task[None], Call]] = {}
        self.streams: dict[str, Stream] = {}
        self.standing: Stream | None = None
        self.listener: SessionListener | None = None
        self.guests = 0
        self.ended = False

    @property
    def quiet(self) -> bool:
        """Whether nothing goes on, so that nothing is lost with this value."""
        return self.guests == 0 and not self.calls and not self.streams and self.listener is None

    def refresh(self, session: Session) -> None:
        """The session as the store has it, which another process may have changed."""
        if session is not self.session:
            self.session.log_level = session.log_level
            self.session.subscriptions = session.subscriptions
            self.session.initialized = session.initialized

    # --- what the client sends

    def settle(self, event: Event) -> None:
        """Take what is owed no answer."""
        if isinstance(event, (Replied, Refused)):
            settle(event)
        elif isinstance(event, Cancelled):
            self.cancel(event.call.id, f"by the client: {event.reason}")

    def cancel(self, request_id: RequestId, why: str) -> None:
        """End a call, if it is worked on."""
        task, call = self.calls.get(request_id, (None, None))
        if task is not None and call is not None and not call.cancelled:
            logger.debug("%s was cancelled %s", call.method.name, why)
            call.cancelled = True
            task.cancel()

    # --- streams

    def track(self, name: str) -> Track | None:
        """Where the events of a stream of this session are kept; None where they are not, or cannot be resumed."""
        rules = self.revision.http
        if self._log is None or not rules.resumable:
            return None
        return Track(self._log, f"{self.session.id}/{name}", f"{name}{MARK}", rules.polling)

    def next_name(self) -> str:
        """A name for a stream, which no other of this session has or had, in any process."""
        return os.urandom(6).hex()

    def stand(self) -> Stream:
        """The stream that belongs to no request. From now on, what changes is remembered for it."""
        if self.standing is None or self.standing.ended:
            self.listener = SessionListener(self.session, capabilities=lambda: self._server.capabilities)
            self.standing = Stream(self._pace, track=self.track(STANDING), source=self.listener.take)
            self.listener.stirred = self.standing.wake
            self._server.changes.add(self.listener)
        return self.standing

    # --- the end

    def end(self) -> None:
        """The session is over: calls are cancelled, questions get no answer, streams end."""
        self.ended = True
        for event in self.peer.lost():
            if isinstance(event, Lost):
                settle(event)
        for task, call in self.calls.values():
            call.cancelled = True
            task.cancel()
        if self.listener is not None:
            self._server.changes.discard(self.listener)
            self.listener.close()
