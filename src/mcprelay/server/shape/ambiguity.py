"""Unions that nobody could read: options that look alike in JSON and contain each other.

Where two options take the same keys, the first is always the one that is read, and the second is dead. If they also
contain each other, every level of a value that fits neither is tried twice by every reader and every validator: a few
dozen levels then take years, and whoever calls chooses the levels. So this is an error when a callable is compiled.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from mcprelay.errors import DefinitionError
from mcprelay.server.shape import Shape
from mcprelay.server.shape.choice import Choice
from mcprelay.server.shape.noted import Noted
from mcprelay.server.shape.record import Record
from mcprelay.server.shape.union import OneOf


def refuse_ambiguous(unions: Iterable[OneOf]) -> None:
    """Look at every union of a callable.

    Raises:
        DefinitionError: Two options of one look alike and contain each other.
    """
    for union in unions:
        records = [option for option in union.options if isinstance(option, Record)]
        for first, second in itertools.combinations(records, 2):
            key = _shared_way_back(first, second, union)
            if key is not None:
                raise DefinitionError(
                    f"{first.name} and {second.name} look alike in JSON and contain each other (through {key!r}), so "
                    f"that {second.name} would never be read. Give each a field that tells it from the other, such as "
                    f"kind: Literal['{first.name.lower()}']."
                )


def _shared_way_back(first: Record, second: Record, union: OneOf) -> str | None:
    """The key that both options have and that leads back to the union, where nothing else tells them apart."""
    ones = {field.key: field for field in first.fields if field.in_mode("input")}
    others = {field.key: field for field in second.fields if field.in_mode("input")}
    if first.tag != second.tag:
        return None
    needed = {field.key for field in (*ones.values(), *others.values()) if field.required}
    if not needed <= ones.keys() & others.keys():
        return None
    if any(_apart(ones[key].shape, others[key].shape) for key in needed if ones[key].required and others[key].required):
        return None
    shared = (key for key in ones if key in others)
    return next(
        (key for key in shared if _leads_to(ones[key].shape, union) and _leads_to(others[key].shape, union)), None
    )


def _apart(first: Shape, second: Shape) -> bool:
    """Whether no JSON value is of both shapes, as far as it can be seen from outside."""
    one, other = _bare(first), _bare(second)
    if isinstance(one, Choice) and isinstance(other, Choice):
        return not {(type(value), value) for value in one.values} & {(type(value), value) for value in other.values}
    return not one.kinds & other.kinds


def _bare(shape: Shape) -> Shape:
    while isinstance(shape, Noted):
        shape = shape.inner
    return shape


def _leads_to(shape: Shape, goal: Shape) -> bool:
    """Whether a value of a shape may hold values of another."""
    seen: set[int] = set()
    left = [shape]
    while left:
        here = left.pop()
        if here is goal or set(getattr(here, "options", ())) >= set(getattr(goal, "options", (None,))):
            return True
        if id(here) not in seen:
            seen.add(id(here))
            left.extend(here.parts())
    return False
