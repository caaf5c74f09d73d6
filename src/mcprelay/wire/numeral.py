"""What it takes a validator to compare numbers: those of a schema with those of a value, and these with each other.

Integers of a machine's word cost nothing worth counting. Any other number is compared as an exact fraction, whose
digits grow with its exponent: microseconds, and tens of them for the smallest and the largest. The prices were measured
against the engine that compares; like those of patterns they are in steps of about an eighth of a microsecond.
"""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from mcprelay.wire.reference import Node

WORD = 1 << 63
"""Integers on this side of it are compared in no time."""
_FRACTION = 16
"""Steps for a number that is none of these, however near to 1 it is."""
_BITS = 6
"""How many bits of an exponent, or of an integer, make one step more."""
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_CONSTANTS = ("const", "enum")
_FEW = 15
"""Up to so many items are compared each with each to see that they are unique; of more, only what has no hash."""


class Rarity(Struct, frozen=True):
    """What the numbers of a value take that are not integers of a machine's word.

    Attributes:
        steps: All of them, for being compared with one number each.
        large: The share of the integers among them, which have no hash.
    """

    steps: int = 0
    large: int = 0


class Numerals(Struct, frozen=True):
    """The numbers of a schema, and where it compares those of a value with each other.

    Attributes:
        bounds: How many there are.
        steps: What they take for being compared once each.
        inside: How many of them lie inside of constants that are lists or objects.
        unique: How many schemas say that items are unique.
    """

    bounds: int = 0
    steps: int = 0
    inside: int = 0
    unique: int = 0

    def __mul__(self, times: int) -> Numerals:
        return Numerals(self.bounds * times, self.steps * times, self.inside * times, self.unique * times)

    def __add__(self, other: Numerals) -> Numerals:
        return Numerals(
            self.bounds + other.bounds,
            self.steps + other.steps,
            self.inside + other.inside,
            self.unique + other.unique,
        )

    def at_most(self, rarity: Rarity, *, values: int, depth: int) -> int:
        """Upper bound of the steps on any place of a value: it has so many values, and so many layers."""
        deep = self.inside * rarity.steps + self.unique * (_FEW * rarity.steps + rarity.large * values)
        return self.steps * values + self.bounds * rarity.steps + deep * depth

    def on(self, at: Any, whole: Rarity) -> int:
        """The steps on one place of a value. What lies deeper inside of it is taken for all that the `whole` has."""
        if isinstance(at, (list, dict)):
            steps = self.steps + self.inside * whole.steps if self.inside else 0
            return steps + (_unique(at, whole) if self.unique and isinstance(at, list) else 0)
        if isinstance(at, (int, float)) and not isinstance(at, bool):
            return self.steps + self.bounds * price(at)
        return 0


def price(number: float) -> int:
    """Steps that a number takes for being compared with another one, beside what that one takes."""
    if isinstance(number, int):
        return 0 if -WORD < number < WORD else _FRACTION + number.bit_length() // _BITS
    return _FRACTION + abs(math.frexp(number)[1]) // _BITS if math.isfinite(number) else 0


DEAREST = price(5e-324)
"""The price of a number that takes longest."""


def numerals(node: Node) -> Numerals:
    """The numbers that one schema has of its own, without those of the schemas inside it."""
    bounds = steps = inside = 0
    waiting = [(node[name], False) for name in _BOUNDS if name in node]
    waiting += [(node["const"], False)] if "const" in node else []
    waiting += [(one, False) for one in listed] if isinstance(listed := node.get("enum"), list) else []
    while waiting:
        value, deep = waiting.pop()
        if isinstance(value, (list, dict)):
            waiting += [(one, True) for one in (value.values() if isinstance(value, dict) else value)]
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            bounds, steps, inside = bounds + 1, steps + price(value), inside + deep
    return Numerals(bounds, steps, inside, unique=int(node.get("uniqueItems") is True))


READERS = frozenset((*_BOUNDS, *_CONSTANTS, "uniqueItems"))
"""Keywords of a schema without any of which it compares no numbers."""


def _unique(items: list[Any], whole: Rarity) -> int:
    """What it takes to see that these are unique, as far as numbers are compared for it."""
    if any(isinstance(item, (list, dict)) for item in items):
        return _FEW * whole.steps + whole.large * len(items)
    steps = large = 0
    for item in items:
        if isinstance(item, (int, float)):
            steps += (one := price(item))
            large += one if isinstance(item, int) else 0
    return (len(items) if len(items) <= _FEW else 1) * steps + large * len(items)
