"""What is remembered of servers from one connection to the next: the era that each turned out to be of.

The era is a property of the server, not of a request (versioning, "Backward Compatibility"). But what a client finds
out about it also depends on the client: on the revisions that it may speak, on how long it waits for an answer to a
probe, and on whom the server takes it for. So it is remembered for clients that would find out the same, and for no
others. It is kept for as long as the process lives, and given up when it turns out to be wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcprelay.client import identity

if TYPE_CHECKING:
    from collections.abc import Hashable

    from mcprelay.client.party import Party
    from mcprelay.client.target import Target
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


class Acquaintance:
    """What one client, and each that would find out the same, knows of its server.

    Args:
        memory: Where that is kept.
        target: The server, and how it is reached. One whose `reach` is None is not remembered.
        party: What decides, beside that, what a client finds out.
    """

    def __init__(self, memory: Memory, target: Target, party: Party) -> None:
        self._memory = memory
        self._target = target
        self._party = party

    @property
    def _server(self) -> str | None:
        reach = self._target.reach
        if reach is None:
            return None
        settings = self._party.settings
        limits = settings.probe_timeout, settings.connect_timeout, settings.response_bytes
        return identity.digest([reach, *self._party.manner, *limits])

    def recall(self) -> Era | None:
        """The era that the server was of, or None."""
        server = self._server
        return None if server is None else self._memory.recall(server)

    def keep(self, era: Era) -> None:
        """Remember the era of the server."""
        server = self._server
        if server is not None:
            self._memory.keep(server, era)

    def forget(self) -> None:
        """What was known of the server is not so any more."""
        server = self._server
        if server is not None:
            self._memory.forget(server)


SHARED = Memory()
"""The memory of this process."""
