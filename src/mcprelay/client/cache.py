"""Results that a server called fresh, for as long as it did (utilities/caching).

A key is the server as it is reached, the method and the parameters that matter; each page of a list is kept by itself.
A private result belongs to one authorization. Nothing is kept without a time to live, a change notice drops what it is
about, and what was asked for before such a notice is not kept after it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from msgspec import Raw, Struct

if TYPE_CHECKING:
    from collections.abc import Callable

_DROPPED_BY = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}
UPDATED = "notifications/resources/updated"
READ = "resources/read"
_LONGEST_MS = 365 * 24 * 3600 * 1000


class Entry(Struct, frozen=True):
    """A result and until when it is fresh, on the clock of the cache."""

    result: Raw
    fresh_until: float


class Reading(Struct, eq=False, weakref=True):
    """What is being asked for, or walked through.

    Attributes:
        server: Of whom, as in `Cache`.
        method: The method.
        key: The parameter that matters.
        stale: Whether the server said meanwhile that it changed, so that the answer may be of before.
    """

    server: str
    method: str
    key: str | None
    stale: bool = False


class Cache:
    """Fresh results. One may be shared by clients of the same loop: private results do not cross authorizations.

    Clients share what they keep of a server where it is known that it answers them alike: the same address with the
    same headers and settings, or the same command in the same folder with the same variables. Private results are
    shared only with the same credentials. A client of a `Server` or a `Channel`, and one with an `ssl=` or `sender=` of
    its own, shares nothing.

    Args:
        entries: How many are kept; the one that was kept longest goes first.
        size: How many bytes they may have together. A result that is longer than that by itself is not kept.
        now: The clock, in seconds that only grow.
    """

    def __init__(self, *, entries: int = 1024, size: int = 64 * 2**20, now: Callable[[], float]) -> None:
        self._entries: dict[tuple[Any, ...], Entry] = {}
        self._owners: Counter[tuple[Any, ...]] = Counter()
        self._readings: WeakSet[Reading] = WeakSet()
        self._most = entries
        self._size = size
        self._held = 0
        self._now = now

    def __len__(self) -> int:
        return len(self._entries)

    def holds(self, server: str, method: str, key: str | None) -> bool:
        """Whether there is such a result, of anybody's."""
        return (server, method, key) in self._owners

    def get(self, server: str, method: str, key: str | None, *, authorization: Any = None) -> Raw | None:
        """A fresh result, or None. Without an authorization, one that is everybody's."""
        for scope in (authorization, None) if authorization is not None else (None,):
            place = (server, method, key, scope)
            entry = self._entries.get(place)
            if entry is not None:
                if self._now() < entry.fresh_until:
                    return entry.result
                self._forget(place)
        return None

    def put(
        self,
        server: str,
        method: str,
        key: str | None,
        result: Raw,
        *,
        ttl_ms: Any,
        scope: Any = None,
        authorization: Any = None,
    ) -> None:
        """Keep a result that has just been received, if the server called it fresh for any time at all.

        It takes the place of what was kept before, also where it is not kept itself.
        """
        for whose in {authorization, None}:
            if (server, method, key, whose) in self._entries:
                self._forget((server, method, key, whose))
        if isinstance(ttl_ms, bool) or not isinstance(ttl_ms, (int, float)) or not ttl_ms > 0:
            return
        data = bytes(result)
        if self._most <= 0 or len(data) > self._size:
            return
        while len(self._entries) >= self._most or self._held + len(data) > self._size:
            self._forget(next(iter(self._entries)))
        fresh_until = self._now() + min(ttl_ms, _LONGEST_MS) / 1000
        self._entries[server, method, key, None if scope == "public" else authorization] = Entry(Raw(data), fresh_until)
        self._owners[server, method, key] += 1
        self._held += len(data)

    def _forget(self, place: tuple[Any, ...]) -> None:
        self._held -= len(bytes(self._entries.pop(place).result))
        self._owners[place[:3]] -= 1
        if not self._owners[place[:3]]:
            del self._owners[place[:3]]

    def begin(self, server: str, method: str, key: str | None) -> Reading:
        """What is asked for from now on, and goes stale when it changes."""
        reading = Reading(server, method, key)
        self._readings.add(reading)
        return reading

    def interrupt(self, server: str, notice: str, uri: str | None) -> None:
        """Mark what is being asked for and may be answered with what it was before a change notice."""
        for reading in self._readings:
            if reading.server == server and _is_about(notice, uri, reading.method, reading.key):
                reading.stale = True

    def changed(self, server: str, notice: str, uri: str | None) -> None:
        """Drop what a change notice is about."""
        self._drop(lambda place: place[0] == server and _is_about(notice, uri, place[1], place[2]))

    def drop(self, server: str, method: str) -> None:
        """Drop every result of a method."""
        self._drop(lambda place: place[0] == server and place[1] == method)

    def _drop(self, gone: Callable[[tuple[Any, ...]], bool]) -> None:
        for place in [place for place in self._entries if gone(place)]:
            self._forget(place)


def _is_about(notice: str, uri: str | None, method: str, key: str | None) -> bool:
    """Whether a change notice says that what a method gives is another now."""
    if notice == UPDATED:
        return method == READ and _touches(key, uri)
    return method in _DROPPED_BY.get(notice, ())


def _touches(read: str | None, updated: str | None) -> bool:
    """Whether an update of one resource is about another: the same, or one lies below the other."""
    if read is None or updated is None:
        return True
    return read == updated or read.startswith(updated.rstrip("/") + "/") or updated.startswith(read.rstrip("/") + "/")
