"""Members of an object under names that were changed: where two names have become one, neither member is lost."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TypeVar

Value = TypeVar("Value")


def members(pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """An object of members, in their order. A name that is taken already has a number behind it: `name (2)`."""
    made: dict[str, Value] = {}
    numbers: dict[str, int] = {}
    for name, value in pairs:
        own = name
        if own in made:
            own, numbers[name] = _free(name, numbers.get(name, 2), made)
        made[own] = value
    return made


def _free(name: str, first: int, taken: dict[str, Value]) -> tuple[str, int]:
    """The first name with a number that is free, and the number to go on with."""
    number = next(number for number in count(first) if f"{name} ({number})" not in taken)
    return f"{name} ({number})", number + 1
