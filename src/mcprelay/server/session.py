"""Sessions of the handshake era, kept in this process's memory, and what their ids are.

A session is data: what a server remembers of a client between two requests. What goes on in it at the moment is a
`Conversation`, and not kept here.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from mcprelay.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.ports import Session

SESSIONS = 10_000
_SWEEPS = 60
"""How often, in the time of a session, those that are over are swept out to make room."""


def new_session_id() -> str:
    """192 random bits in visible ASCII (transports, "Session Management")."""
    return secrets.token_urlsafe(24)


class _Kept:
    __slots__ = ("expires", "session")

    def __init__(self, session: Session, expires: float) -> None:
        self.session = session
        self.expires = expires


class MemorySessions:
    """See `mcprelay.ports.SessionStore`. A session that is loaded is the one that was saved, not a copy.

    Args:
        sessions: How many are kept.
        now: Seconds that only grow.
    """

    def __init__(self, *, sessions: int = SESSIONS, now: Callable[[], float] = time.monotonic) -> None:
        self.sessions = sessions
        self._now = now
        self._kept: dict[str, _Kept] = {}
        self._next_sweep = 0.0

    def __len__(self) -> int:
        return len(self._kept)

    def _present(self, id: str) -> _Kept | None:
        kept = self._kept.get(id)
        if kept is not None and kept.expires <= self._now():
            del self._kept[id]
            return None
        return kept

    async def load(self, id: str) -> Session | None:
        """See `SessionStore`."""
        kept = self._present(id)
        return None if kept is None else kept.session

    async def touch(self, id: str, ttl: float) -> bool:
        """See `SessionStore`."""
        kept = self._present(id)
        if kept is None:
            return False
        kept.expires = self._now() + ttl
        return True

    async def update(self, id: str, change: Callable[[Session], None], ttl: float) -> Session | None:
        """See `SessionStore`."""
        kept = self._present(id)
        if kept is None:
            return None
        change(kept.session)
        kept.expires = self._now() + ttl
        return kept.session

    async def save(self, id: str, session: Session, ttl: float) -> None:
        """See `SessionStore`.

        Raises:
            LimitExceeded: There are as many as may be (`sessions`).
        """
        now = self._now()
        kept = self._kept.get(id)
        if kept is not None:
            kept.session = session
            kept.expires = now + ttl
            return
        if now >= self._next_sweep:
            self._next_sweep = now + ttl / _SWEEPS
            self._kept = {name: kept for name, kept in self._kept.items() if kept.expires > now}
        if len(self._kept) >= self.sessions:
            raise LimitExceeded("sessions", self.sessions, what="the number of sessions")
        self._kept[id] = _Kept(session, now + ttl)

    async def drop(self, id: str) -> None:
        """See `SessionStore`."""
        self._kept.pop(id, None)
