"""What changed between two definitions of a tool, member by member, for a person who decides about it.

Members are compared by their canonical form, so that what says the same is no change. The texts are raw; `lines` shows
them with everything visible.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from mcprelay.relay.pins import Definition, canonical
from mcprelay.relay.reveal import reveal
from mcprelay.wire.violation import path_of

_AROUND = 30
"""Characters of unchanged text shown on each side of a change."""
_LONGEST = 4_000
"""Characters of one side of a change that are shown; beyond them their number is."""


class FieldChange(Struct, frozen=True, kw_only=True):
    """One member that is not what it was.

    Attributes:
        path: Where, as `inputSchema.properties.limit.maximum`.
        before: What it was, or `msgspec.UNSET` where it was not there.
        after: What it is, or `msgspec.UNSET` where it is gone.
    """

    path: str
    before: Any
    after: Any

    def lines(self) -> tuple[str, ...]:
        """The change for a terminal: the place, then what went and what came. Everything visible, no color."""
        before, after = self.before, self.after
        if isinstance(before, str) and isinstance(after, str):
            before, after = _apart(before, after)
        sides = ((sign, _value(value)) for sign, value in (("-", before), ("+", after)) if value is not UNSET)
        # Each line has its sign, or a text of several lines could pass for changes that are none.
        return (
            reveal(self.path, of="name"),
            *(f"  {sign} {line}" for sign, text in sides for line in text.split("\n")),
        )


def differences(before: Definition, after: Definition) -> list[FieldChange]:
    """What changed, in the order name, title, description, input schema. Empty if and only if the digests are equal."""
    changes: list[FieldChange] = []
    for name, old, new in (
        ("name", before.name, after.name),
        ("title", before.title, after.title),
        ("description", before.description, after.description),
        ("inputSchema", before.input_schema, after.input_schema),
    ):
        changes.extend(_between(old, new, (name,)))
    return changes


def _between(old: Any, new: Any, path: tuple[str | int, ...]) -> Iterator[FieldChange]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from _between(old.get(name, UNSET), new.get(name, UNSET), (*path, name))
    elif isinstance(old, list) and isinstance(new, list) and _nested(old) and _nested(new):
        for index in range(max(len(old), len(new))):
            yield from _between(_at(old, index), _at(new, index), (*path, index))
    elif old is UNSET or new is UNSET or canonical(old) != canonical(new):
        yield FieldChange(path=path_of(path), before=old, after=new)


def _nested(items: list[Any]) -> bool:
    """Whether a list holds objects or lists, which are compared one by one; names and numbers are compared together."""
    return any(isinstance(item, dict | list) for item in items)


def _at(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else UNSET


def _apart(before: str, after: str) -> tuple[str, str]:
    """Two texts without what they have in common at both ends, but for a little around the change."""
    start = 0
    shortest = min(len(before), len(after))
    while start < shortest and before[start] == after[start]:
        start += 1
    end = 0
    while end < shortest - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return _middle(before, start, end), _middle(after, start, end)


def _middle(text: str, start: int, end: int) -> str:
    first, last = max(0, start - _AROUND), min(len(text), len(text) - end + _AROUND)
    return ("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()
    more = f"… and {len(text) - _LONGEST:,} characters more" if len(text) > _LONGEST else ""
    return reveal(text[:_LONGEST]) + more
