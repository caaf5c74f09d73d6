"""What a length or a bound says of a shape: keywords where JSON Schema can say it, else checks of the value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from mcprelay.server.shape import Shape
from mcprelay.server.shape.noted import Check
from mcprelay.server.shape.notes import Notes
from mcprelay.server.shape.text import Text


def sizes(notes: Notes, shape: Shape) -> dict[str, int]:
    """The keywords for a length, by what it is the length of; nothing where only the value knows."""
    if not notes.sizes or isinstance(shape, Text):
        return {}
    kinds = shape.kinds - {"null"}
    unit = "Items" if kinds <= {"array"} else "Properties" if kinds <= {"object"} else "Length"
    return {f"{end}{unit}": size for end, size in notes.sizes.items()}


def bounds(notes: Notes, shape: Shape) -> list[Check]:
    """The checks that a value gets because JSON Schema cannot say them of its string."""
    if not isinstance(shape, Text):
        return notes.bounds
    checks = list(notes.bounds)
    least, most = notes.sizes.get("min"), notes.sizes.get("max")
    if least is not None:
        checks.append(Check(lambda value: len(value) >= least, f"a length of at least {least}"))
    if most is not None:
        checks.append(Check(lambda value: len(value) <= most, f"a length of at most {most}"))
    return checks + _numeric_bounds(notes, shape)


_NUMERIC: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "minimum": (operator.ge, "at least"),
    "maximum": (operator.le, "at most"),
    "exclusiveMinimum": (operator.gt, "more than"),
    "exclusiveMaximum": (operator.lt, "less than"),
}


def _numeric_bounds(notes: Notes, shape: Text) -> list[Check]:
    """A bound on a decimal holds for the digits in a string as well as for a number."""
    if "number" not in shape.kinds:
        return []
    stated = [(keyword, notes.keywords[keyword]) for keyword in _NUMERIC if keyword in notes.keywords]
    return [_numeric_bound(keyword, bound) for keyword, bound in stated]


def _numeric_bound(keyword: str, bound: Any) -> Check:
    compare, words = _NUMERIC[keyword]
    return Check(lambda value: compare(value, bound), f"{words} {bound}")
