"""Whether a JSON text holds more values than may be made of it, told without making any.

A value takes some hundred bytes once it is read, however few it has on the wire: `[0,0,0,…]` grows fifty-fold. Counted
are commas and opening brackets outside of strings: one for each value but the first, and one more for what is empty.
"""

from __future__ import annotations

import re

_STRING = re.compile(rb'"[^"]*+"?')


def is_crowded(text: bytes, values: float) -> bool:
    """Whether the text of a JSON value holds more than so many values, itself included; empty ones may count twice."""
    if len(text) <= 2 * values:  # a value takes a byte, and what parts it from the next another one
        return False
    if _marks(text) < values:
        return False
    bare = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    if bare.count(b'"') > 4 * values:  # each string is a value, or the name of one
        return True
    return _marks(_STRING.sub(b"", bare)) >= values


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")
