"""Which parameters of a tool make its answer smaller: a guess from their names, told where an answer is too large."""

from __future__ import annotations

import re
from typing import Any

_SIZING = re.compile(
    r"(?i)(?:.*_)?(?:limit|count|max|top|first|last|take|size|page|pages|per_page|page_size|pagesize|cursor|offset|skip|start|end"
    r"|since|until|before|after|from|to|range|lines|head|tail|depth|fields|filter|columns)(?:_.*)?"
)
_SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_MOST = 5


def narrowing(schema: dict[str, Any]) -> tuple[str, ...]:
    """At most five parameters, in the schema's order, whose names are plain words that speak of size."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return ()
    found = (name for name in properties if _PLAIN.fullmatch(name) and _SIZING.fullmatch(_SPLIT.sub("_", name)))
    return tuple(name for _, name in zip(range(_MOST), found, strict=False))
