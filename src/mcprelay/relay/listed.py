"""A server's list of tools as it came, and for how long it may be used again.

What is kept is raw: trust, pins and exclusions are not part of it, because they are decided anew each time.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from mcprelay.relay.kept import SIZE, Kept
from mcprelay.relay.network import way
from mcprelay.relay.settings import ServerSettings

_LONGEST = 365 * 24 * 3600.0
"""Seconds that a server may ask for at most."""


class Listed(Struct, frozen=True, kw_only=True):
    """A list of tools.

    Attributes:
        tools: Names and definitions as JSON, in the server's order. Untrusted.
        left_out: Names of what is no definition at all, each with the limit that it is over, or nothing. Untrusted.
        notes: What was wrong with the list. Untrusted.
        revision: The protocol revision that it was read in.
        read_at: When, as the clock told it.
        fresh_until: Until when it may be used again.
        private: Whether the server said that it is for one authorization alone.
    """

    tools: tuple[tuple[str, bytes], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    revision: str | None = None
    read_at: float = 0.0
    fresh_until: float = 0.0
    private: bool = False


class Hint(Struct, frozen=True):
    """What one page said of its freshness, as it said it."""

    ttl_ms: Any = None
    scope: Any = None


def lifetime(hints: list[Hint], *, setting: float | None, hintless: float) -> float:
    """Seconds that a list may be used again: the setting, or the shortest time that a page names, or `hintless`."""
    if setting is not None:
        return setting
    told = [_seconds(hint.ttl_ms) for hint in hints if hint.ttl_ms is not None]
    return min(told) if told else hintless


def _seconds(ttl_ms: Any) -> float:
    if isinstance(ttl_ms, bool) or not isinstance(ttl_ms, int | float) or not ttl_ms > 0:
        return 0.0
    return float(min(ttl_ms, 1000 * _LONGEST)) / 1000  # bounded first: a whole number may be too large for a fraction


def identity(settings: ServerSettings, *, token: str | None, key: bytes, environment: Mapping[str, str]) -> str:
    """What tells apart for whom, how, and for how long lists are kept. Secrets are in it by a keyed hash alone.

    Args:
        token: The bearer token of the one who asks.
        key: The key of the hash.
        environment: Where the values of inherited variables are.
    """
    told = [
        settings.transport,
        settings.url,
        settings.command,
        None if settings.cwd is None else str(settings.cwd),
        sorted((name, value.value) for name, value in settings.env.items()),
        [(name, environment.get(name)) for name in sorted(settings.inherit)],
        sorted((name.lower(), value.value) for name, value in settings.headers.items()),
        token,
        settings.auth,
        way(settings, environment),
        None if settings.target is None else id(settings.target),
        settings.cache,
    ]
    return hmac.new(key, msgspec.json.encode(told), hashlib.sha256).hexdigest()


class Memory:
    """Lists in this process.

    Args:
        entries: How many are kept; the one that was kept longest goes first.
        size: How many bytes their definitions have together.
        clock: The time in seconds.
    """

    def __init__(self, *, entries: int = 1024, size: int = 4 * SIZE, clock: Callable[[], float]) -> None:
        self._lists: Kept[str, Listed] = Kept(entries=entries, size=size)
        self._clock = clock

    def get(self, key: str) -> Listed | None:
        """A list that is still fresh, or None."""
        listed = self._lists.get(key)
        return listed if listed is not None and self._clock() < listed.fresh_until else None

    def put(self, key: str, listed: Listed) -> None:
        """Keep a list."""
        self._lists.put(key, listed, size=sum(len(raw) for _, raw in listed.tools))

    def drop(self, key: str) -> None:
        """Forget a list."""
        self._lists.drop(key)
