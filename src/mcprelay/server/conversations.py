"""The conversations of one event loop: entered by each request, kept alive in the store, ended with their session.

Idle time is measured from the last request in flight: while one is, the session is renewed again and again, and once
more when the last one ends. Only its time is renewed, and a change is made to what the store has at that moment: other
processes may have changed the session meanwhile.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from typing import TYPE_CHECKING

from mcprelay.server.conversation import Conversation
from mcprelay.server.handshake import subject_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcprelay.ports import EventLog, Session, SessionStore
    from mcprelay.server import Server
    from mcprelay.server.call import Principal
    from mcprelay.server.stream import Pace

logger = logging.getLogger("mcprelay.server")

_REFRESHES = 4
"""How often, in the time of a session, those that are in use are renewed, and others looked at."""

_LONGEST_PAUSE = 3600.0
"""Seconds between two such looks at most, for sessions that are kept for ever."""


class Conversations:
    """See the module.

    Args:
        server: What is served.
        store: Where sessions are kept.
        log: Where events are kept, if they are.
        pace: How streams behave.
    """

    def __init__(self, server: Server, store: SessionStore, log: EventLog | None, pace: Pace) -> None:
        self._server = server
        self._store = store
        self._log = log
        self._pace = pace
        self._seconds = server.limits.session_seconds
        self._ids = (int.from_bytes(os.urandom(6), "big") for _ in itertools.count())
        self._open: dict[str, Conversation] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tending: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    async def begin(self, session: Session) -> None:
        """Keep a new session.

        Raises:
            LimitExceeded: The store keeps as many as it may.
        """
        await self._store.save(session.id, session, self._seconds)

    async def enter(self, session_id: str, principal: Principal | None) -> Conversation | None:
        """The conversation of a session, with one more request in flight; None when there is no such session, or it
        is someone else's (which is not told apart).
        """
        session = await self._store.load(session_id)
        conversation = self._open.get(session_id)
        if session is None:
            if conversation is not None:
                self._end(conversation)
            return None
        if session.principal != subject_of(principal):
            return None
        if session.revision not in self._server.served:
            return None
        if conversation is None:
            conversation = Conversation(self._server, session, self._ids, self._log, self._pace)
            self._open[session_id] = conversation
            if self._timer is None:
                self._schedule()
        else:
            conversation.refresh(session)
        conversation.guests += 1
        return conversation

    async def leave(self, conversation: Conversation) -> None:
        """One request less is in flight: from now on the session may be idle."""
        conversation.guests -= 1
        if conversation.guests == 0:
            try:
                await self._renew(conversation)
            except Exception:  # the request is answered; the session is good for as long as it was before
                logger.exception("the session store failed")
            self.tidy(conversation)

    def passing(self, session: Session) -> Conversation:
        """A conversation outside of any session, for one request."""
        return Conversation(self._server, session, self._ids, None, self._pace)

    def tidy(self, conversation: Conversation) -> None:
        """Forget a conversation in which nothing goes on."""
        if conversation.quiet:
            self._forget(conversation)

    async def _renew(self, conversation: Conversation) -> None:
        """Keep the session for its whole time again, as the store has it, unless it was ended elsewhere."""
        session = conversation.session
        if conversation.ended or not session.id:
            return
        if not await self._store.touch(session.id, self._seconds):
            self._end(conversation)

    async def amend(self, conversation: Conversation, changes: Sequence[Callable[[Session], None]]) -> None:
        """Change what the store has of the session, unless it was ended elsewhere."""
        session = conversation.session
        if conversation.ended or not session.id:
            return

        def change(session: Session) -> None:
            for each in changes:
                each(session)

        kept = await self._store.update(session.id, change, self._seconds)
        if kept is None:
            self._end(conversation)
        else:
            conversation.refresh(kept)

    async def end(self, conversation: Conversation) -> None:
        """The session is over, because its client says so."""
        self._end(conversation)
        await self._store.drop(conversation.session.id)

    def _end(self, conversation: Conversation) -> None:
        self._forget(conversation)
        conversation.end()

    def _forget(self, conversation: Conversation) -> None:
        if self._open.get(conversation.session.id) is conversation:
            del self._open[conversation.session.id]

    # --- time

    def _schedule(self) -> None:
        seconds = min(self._seconds / _REFRESHES, _LONGEST_PAUSE)
        self._timer = asyncio.get_running_loop().call_later(seconds, self._tend)

    def _tend(self) -> None:
        self._timer = None
        if self._open:
            self._tending = asyncio.get_running_loop().create_task(self.tend())
            self._schedule()

    async def tend(self) -> None:
        """Renew the sessions that are in use, and end what was left of those that are over."""
        for conversation in list(self._open.values()):
            try:
                if conversation.guests:
                    await self._renew(conversation)
                session = await self._store.load(conversation.session.id)
                if session is not None:
                    conversation.refresh(session)
                else:
                    self._end(conversation)
            except Exception:  # a store that fails now may work the next time
                logger.exception("the session store failed")
