"""Results that a server called fresh, for as long as it did (utilities/caching).

A key is the method and the parameters that matter; each page of a list is kept by itself. A private result belongs to
one authorization. Nothing is kept without a time to live, and a change notice drops what it is about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def owner(auth: Any) -> Any:
    """Whose private results are: a token's digest, so that nothing kept holds the token itself, or the `Auth`."""
    if not isinstance(auth, str):
        return auth
    import hashlib

    return hashlib.sha256(auth.encode()).hexdigest()


class Entry(Struct, frozen=True):
    """A result and until when it is fresh, on the clock of the cache."""

    result: Raw
    fresh_until: float


class Cache:
    """Fresh results. One may be shared by clients of the same loop: private results do not cross authorizations.

    Args:
        entries: How many are kept; the one that was kept longest goes first.
        size: How many bytes they may have together. A result that is longer than that by itself is not kept.
        now: The clock, in seconds that only grow.
    """

    def __init__(self, *, entries: int = 1024, size: int = 64 * 2**20, now: Callable[[], float]) -> None:
        self._entries: dict[tuple[Any, ...], Entry] = {}
        self._most = entries
        self._size = size
        self._held = 0
        self._now = now

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, server: str, method: str, key: str | None, *, authorization: Any = None) -> Raw | None:
        """A fresh result, or None."""
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
        fresh_until = self._now() + min(float(ttl_ms), _LONGEST_MS) / 1000
        self._entries[server, method, key, None if scope == "public" else authorization] = Entry(Raw(data), fresh_until)
        self._held += len(data)

    def _forget(self, place: tuple[Any, ...]) -> None:
        self._held -= len(bytes(self._entries.pop(place).result))

    def changed(self, server: str, notice: str, uri: str | None) -> None:
        """Drop what a change notice is about."""
        methods = _DROPPED_BY.get(notice, ())
        if notice == UPDATED:
            self._drop(lambda place: place[0] == server and place[1] == READ and _touches(place[2], uri))
        elif methods:
            self._drop(lambda place: place[0] == server and place[1] in methods)

    def drop(self, server: str, method: str) -> None:
        """Drop every result of a method."""
        self._drop(lambda place: place[0] == server and place[1] == method)

    def _drop(self, gone: Callable[[tuple[Any, ...]], bool]) -> None:
        for place in [place for place in self._entries if gone(place)]:
            self._forget(place)


def _touches(read: str | None, updated: str | None) -> bool:
    """Whether an update of one resource is about another: the same, or one lies below the other."""
    if read is None or updated is None:
        return True
    return read == updated or read.startswith(updated.rstrip("/") + "/") or updated.startswith(read.rstrip("/") + "/")
