"""What is remembered of servers from one connection to the next: the era that each turned out to be of.

The era is a property of the server, not of a request (versioning, "Backward Compatibility"). It is kept for as long as
the process lives, and given up when it turns out to be wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from mcprelay.revisions import Era

_SERVERS = 1024


class Memory:
    """The eras of servers. Clients share one unless they are given their own."""

    def __init__(self) -> None:
        self._eras: dict[Hashable, Era] = {}

    def recall(self, server: Hashable) -> Era | None:
        """The era that a server was of, or None."""
        return self._eras.get(server)

    def keep(self, server: Hashable, era: Era) -> None:
        """Remember the era of a server."""
        if server not in self._eras and len(self._eras) >= _SERVERS:
            del self._eras[next(iter(self._eras))]
        self._eras[server] = era

    def forget(self, server: Hashable) -> None:
        """What was known of a server is not so any more."""
        self._eras.pop(server, None)


SHARED = Memory()
"""The memory of this process."""
