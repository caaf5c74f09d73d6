"""From the text that a template captured to the value of a variable.

Knows how lists and parameters are split, that values are percent-decoded after the split, and which values are refused
wherever they stand: those that climb out of the place that the template names. A variable of one path segment is never
`.` or `..` and holds no slash, no backslash and no NUL, encoded or not; a path has no segment that is `.` or `..`; a
query parameter has none that is `..`.

Does not know where a variable ends: that is `section`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mcprelay.wire import percent
from mcprelay.wire.expression import Variable

Matched: TypeAlias = dict[str, str | list[str]]
Judge: TypeAlias = Callable[[str], bool]
"""Whether a decoded value is allowed where it stands."""
Taker: TypeAlias = Callable[[str, Matched], bool]
"""Puts the value of a captured text among what matched; False where it has none, or another one came before."""

_has_dot_segment = re.compile(r"(?:\A|[/\\])\.\.?(?:[/\\]|\Z)").search
_climbs = re.compile(r"(?:\A|[/\\])\.\.(?:[/\\]|\Z)").search


def in_segment(value: str) -> bool:
    """Whether a value stays in its path segment."""
    return value not in {".", ".."} and "/" not in value and "\\" not in value and "\0" not in value


def in_path(value: str) -> bool:
    """Whether a value of several path segments stays below what stands before it."""
    return not _has_dot_segment(value) and "\0" not in value


def in_path_after_slash(value: str) -> bool:
    """The same, and it does not begin anew at the root, as `//etc` would once it is joined to a folder."""
    return value[:1] not in {"/", "\\"} and in_path(value)


def in_query(value: str) -> bool:
    """Whether a parameter may be what a path is made of."""
    return not _climbs(value) and "\0" not in value


def one(variable: Variable, judge: Judge) -> Taker:
    """A single value; a list where the variable is exploded."""
    if variable.explode:
        return several([variable], ",", judge)
    key, prefix = variable.key, variable.prefix

    def take(text: str, matched: Matched) -> bool:
        value = percent.decode(text) if "%" in text else text
        if value is None or not judge(value) or (prefix is not None and len(value) > prefix):
            return False
        return matched.setdefault(key, value) == value

    return take


def several(variables: Sequence[Variable], separator: str, judge: Judge) -> Taker:
    """Values between separators: a list for one exploded variable, else one each for the first of the variables."""
    exploded = variables[0].explode
    takers = [one(Variable(variable.name, prefix=variable.prefix), judge) for variable in variables]

    def take(text: str, matched: Matched) -> bool:
        texts = text.split(separator)
        if not exploded:
            return len(texts) <= len(takers) and all(
                take(part, matched) for take, part in zip(takers, texts, strict=False)
            )
        items: list[str] = []
        for part in texts:
            item = percent.decode(part)
            if item is None or not judge(item):
                return False
            items.append(item)
        return matched.setdefault(variables[0].key, items) == items

    return take


def led(taker: Taker) -> Taker:
    """What begins with its separator, or is empty and then says nothing."""
    return lambda text, matched: not text or taker(text[1:], matched)


def pairs(variables: Sequence[Variable], separator: str, judge: Judge) -> Taker:
    """Parameters by name, in any order, each at most once unless it is exploded; an unknown name is no match."""
    known = {variable.name: variable for variable in variables}

    def take(text: str, matched: Matched) -> bool:
        seen: dict[str, list[str]] = {}
        for pair in text[1:].split(separator) if len(text) > 1 else ():
            name, _, raw = pair.partition("=")
            variable, value = known.get(name), percent.decode(raw)
            if variable is None or value is None or not judge(value):
                return False
            if variable.prefix is not None and len(value) > variable.prefix:
                return False
            items = seen.setdefault(name, [])
            if items and not variable.explode:
                return False
            items.append(value)
        found = {known[name].key: items if known[name].explode else items[0] for name, items in seen.items()}
        return all(matched.setdefault(key, value) == value for key, value in found.items())

    return take


def trailing(pattern: re.Pattern[str], takers: Sequence[Taker], taker: Taker) -> Taker:
    """A value of any length with further variables behind it, which `pattern` finds in the reversed text."""

    def take(text: str, matched: Matched) -> bool:
        found = pattern.match(text[::-1])
        if found is None or found.end() == len(text):
            return False
        for behind, part in zip(takers, found.groups(), strict=True):
            if part is not None and not behind(part[::-1], matched):
                return False
        return taker(text[: len(text) - found.end()], matched)

    return take
