"""A message that nests too deep, without the values that do: one bad item of a list does not cost the others.

Values are judged at one level, that of an item's members: message, result, list, item, member. What nests too deep
there is replaced by a text, so that whoever reads the item finds no object where one has to be. Nothing is decoded, so
that the depth of what is left out does not matter. Knows JSON's brackets and strings, and no method.
"""

from __future__ import annotations

from mcprelay.wire.jsonrpc import BRACKETS

LEVEL = 5
LOOK = 1 << 23
"""How many brackets are looked at, since they are counted one by one. A message with more stays as it is."""
_BRACKETS = (b"{", b"[", b"}", b"]")
LEFT_OUT = b'"(left out: it nests too deep)"'
"""What stands in the place of a value. Whoever else writes it has left something out too."""


def pruned(data: bytes, depth: int) -> bytes:
    """The message without the values that take it beyond `depth`. What is shallower than `LEVEL` stays as it is."""
    if sum(map(data.count, _BRACKETS)) > LOOK:
        return data
    kept: list[bytes] = []
    end = level = deepest = start = 0
    for brackets in BRACKETS.finditer(data):
        for at, char in enumerate(brackets[1], brackets.start(1)):
            if char in b"[{":
                level += 1
                if level == LEVEL:
                    start, deepest = at, level
                deepest = max(deepest, level)
                continue
            if level == LEVEL and deepest > depth:
                kept += data[end:start], LEFT_OUT
                end = at + 1
            level -= 1
    return b"".join((*kept, data[end:]))
