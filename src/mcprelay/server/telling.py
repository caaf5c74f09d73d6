"""Telling a session on a channel what changes, from the very message on that ends its handshake.

What changes before anything runs that could tell it is remembered: changes are level triggers.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mcprelay.server.observation import listening_in
from mcprelay.server.subscription import SessionListener, notice

if TYPE_CHECKING:
    from mcprelay.ports import Session
    from mcprelay.server import Server
    from mcprelay.server.call import Link


class Telling:
    """Remembers what changes for a session, from now on until it is closed.

    Args:
        server: What is served.
        session: Who is told.
    """

    __slots__ = ("_changes", "_listener", "_observed")

    def __init__(self, server: Server, session: Session) -> None:
        self._changes = server.changes
        self._listener = SessionListener(session, capabilities=lambda: server.capabilities)
        self._changes.add(self._listener)
        events = server.events
        observed = events.observers or events.logged(logging.INFO)
        self._observed = listening_in(events, session, server.capabilities) if observed else None

    async def tell(self, link: Link) -> None:
        """Tell the client, as fast as it reads, until the server ends it."""
        while changed := await self._listener.changes():
            for change in changed:
                link.notify(notice(change))
            await link.drain()

    def close(self) -> None:
        """Remember nothing any more. Closing twice is closing once."""
        self._changes.discard(self._listener)
        if self._observed is not None:
            self._observed.close()
            self._observed = None
