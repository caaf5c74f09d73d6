"""Which parameters of a tool make its answer smaller: a guess from their names, told where an answer is too large.

It is told outside of any frame, so only names are told whose every word is in the list below: a name with a word of the
server's own is left out.
"""

from __future__ import annotations

import re
from typing import Any

_SIZING = re.compile(
    r"limit|count|max|top|first|last|take|size|pages?|pagesize|cursor|offset|skip|start|end|since|until|before|after"
    r"|from|to|range|lines|head|tail|depth|fields|filter|columns"
)
_BESIDE = re.compile(
    r"per|number|index|length|results|items|rows|entries|records|bytes|chars|characters|tokens?|date|time|days?|at|in|by"
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PLAIN = re.compile(r"[A-Za-z]+(?:[_-][A-Za-z]+)*")
_LONGEST = 40
_MOST_WORDS = 3
_MOST = 5


def narrowing(schema: dict[str, Any]) -> tuple[str, ...]:
    """At most five parameters, in the schema's order, whose names are made of our words alone and speak of size."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return ()
    return tuple(name for _, name in zip(range(_MOST), filter(_narrows, properties), strict=False))


def _narrows(name: str) -> bool:
    if len(name) > _LONGEST or not _PLAIN.fullmatch(name):
        return False
    words = [word.lower() for word in _WORDS.findall(name)]
    others = [word for word in words if not _SIZING.fullmatch(word)]
    return len(others) < len(words) <= _MOST_WORDS and all(map(_BESIDE.fullmatch, others))
