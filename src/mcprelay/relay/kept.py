"""What can be worked out or asked for again, kept for as long as there is room: so many values, of so many bytes.

How large they are is what a server decides, so their number alone bounds nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

SIZE = 32 << 20
"""Bytes of everything that is kept in one place, unless told otherwise."""


def memory(text: bytes) -> int:
    """Bytes that what a JSON text says takes as Python's own objects, about, and the text beside it."""
    return 2 * len(text) + 100 * sum(map(text.count, _MARKS))


_MARKS = (b",", b":", b"{", b"[")
"""One of them stands before nearly every value."""


class Kept(Generic[Key, Value]):
    """Values by key. What was put first goes first.

    Args:
        entries: How many values are kept.
        size: How many bytes they have together. A larger one is not kept at all.
    """

    def __init__(self, *, entries: int, size: int = SIZE) -> None:
        self._values: dict[Key, tuple[Value, int]] = {}
        self._most = entries
        self._room = size

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """A value, or None."""
        found = self._values.get(key)
        return None if found is None else found[0]

    def put(self, key: Key, value: Value, *, size: int) -> None:
        """Keep a value of so many bytes."""
        self.drop(key)
        while self._values and (len(self._values) >= self._most or size > self._room):
            self.drop(next(iter(self._values)))
        if size <= self._room:
            self._values[key] = (value, size)
            self._room -= size

    def drop(self, key: Key) -> None:
        """Forget a value."""
        found = self._values.pop(key, None)
        if found is not None:
            self._room += found[1]
