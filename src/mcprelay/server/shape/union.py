"""Shapes of one type or another: `int | None`, `str | list[str]`, unions of two dataclasses.

What msgspec can tell apart, it decodes. Everything else is tried in the author's order, the options whose kind of JSON
value it cannot be left out.
"""

# ruff: noqa: D102 - the methods of a shape are described once, in `Shape`

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

import msgspec
from msgspec import Raw

from mcprelay.server.coercion import kind_of, likeness
from mcprelay.server.shape import JsonSchema, Kind, Misfit, Mode, Publisher, Reader, Shape
from mcprelay.server.shape.scalar import NULL

_BY_FIRST_BYTE: dict[int, frozenset[Kind]] = {
    ord('"'): frozenset({"string"}),
    ord("{"): frozenset({"object"}),
    ord("["): frozenset({"array"}),
    ord("t"): frozenset({"boolean"}),
    ord("f"): frozenset({"boolean"}),
    ord("n"): frozenset({"null"}),
}
_NUMBERS: frozenset[Kind] = frozenset({"integer", "number"})


class OneOf(Shape):
    """One of several shapes, tried in the author's order."""

    def __init__(self, options: Sequence[Shape]) -> None:
        self.options = tuple(options)
        self.kinds = frozenset[Kind]().union(*(option.kinds for option in self.options))
        self.python = (
            ()
            if any(not option.python for option in self.options)
            else tuple(type for option in self.options for type in option.python)
        )

    def schema(self, to: Publisher) -> JsonSchema:
        return {"anyOf": [option.schema(to) for option in self.options]}

    def reader(self, mode: Mode) -> Reader:
        readers = [option.reader(mode) for option in self.options]
        others = [reader for option, reader in zip(self.options, readers, strict=True) if option is not NULL]
        if len(others) == 1 and others[0].type is not Raw:
            lift = others[0].lift
            return Reader(others[0].type | None, None if lift is None else _unless_none(lift))
        if self._told_apart() and not any(reader.lift or reader.type is Raw for reader in readers):
            return Reader(Union[tuple(reader.type for reader in readers)])  # noqa: UP007
        return Reader(Raw, self._trying(mode))

    def _told_apart(self) -> bool:
        """Whether no two options can be the same kind of JSON value. msgspec tells `int | float` apart."""
        seen: set[Kind] = set()
        for option in self.options:
            kinds = option.kinds - {"integer"} if "number" in option.kinds else option.kinds
            if seen & kinds:
                return False
            seen |= kinds
        return True

    def _trying(self, mode: Mode) -> Callable[[Raw], Any]:
        def try_each(raw: Raw) -> Any:
            data = bytes(raw)
            kinds = _BY_FIRST_BYTE.get(data[0], _NUMBERS)
            refused: Misfit | None = None
            for option in self.options:
                if option.kinds & kinds:
                    try:
                        return option.read(data, mode)
                    except Misfit as misfit:
                        refused = misfit
            raise refused or Misfit("fits none of the types it may be")

        return try_each

    def explain(self, value: Any, mode: Mode) -> list[Misfit]:
        kind = kind_of(value)
        options = [option for option in self.options if kind in option.kinds]
        if not options:
            return [self.unmet(value, mode)]
        if len(options) == 1:
            return options[0].explain(value, mode)
        data = msgspec.json.encode(value)
        if any(_reads(option, data, mode) for option in options):
            return []
        if not isinstance(value, dict):
            return [self.unmet(value, mode)]
        nearest = max(options, key=lambda option: likeness(value, option.published(mode)))
        return nearest.explain(value, mode) or [self.unmet(value, mode)]

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        writes = [(option.python, write) for option in self.options if (write := option.writer(careful=careful))]
        return (lambda value: _write(value, writes)) if writes else None

    def parts(self) -> Sequence[Shape]:
        return self.options


def _reads(option: Shape, data: bytes, mode: Mode) -> bool:
    try:
        option.read(data, mode)
    except Misfit:
        return False
    return True


def _unless_none(lift: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else lift(value)


def _write(value: Any, writes: list[tuple[tuple[type, ...], Callable[[Any], Any]]]) -> Any:
    """Written by the first option that the value is an instance of; options that cannot be told are tried last."""
    for python, write in writes:
        if python and isinstance(value, python):
            return write(value)
    if value is None:
        return None
    for python, write in writes:
        if not python:
            return write(value)
    return value


class NullUnsaid(Shape):
    """An optional value that is published as if it were never null. Null is taken all the same."""

    def __init__(self, union: OneOf, said: Shape) -> None:
        self.union = union
        self.said = said
        self.kinds = union.kinds
        self.python = union.python

    def schema(self, to: Publisher) -> JsonSchema:
        return self.union.schema(to) if to.purpose == "mend" or to.mode == "output" else self.said.schema(to)

    def reader(self, mode: Mode) -> Reader:
        return self.union.reader(mode)

    def explain(self, value: Any, mode: Mode) -> list[Misfit]:
        return self.union.explain(value, mode)

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        return self.union.writer(careful=careful)

    def parts(self) -> Sequence[Shape]:
        return (self.union,)
