"""Shapes of what JSON has itself: strings, numbers, truth values, null, and anything at all."""

# ruff: noqa: D102 - the methods of a shape are described once, in `Shape`

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcprelay.server.shape import JsonSchema, Kind, Misfit, Mode, Publisher, Reader, Shape, construct


class Scalar(Shape):
    """A type that is one JSON type, which msgspec reads and writes alone."""

    def __init__(self, type: type, keyword: Kind, *kinds: Kind) -> None:
        self.type = type
        self.keyword = keyword
        self.kinds = frozenset({keyword, *kinds})
        self.python = (type,)

    def schema(self, to: Publisher) -> JsonSchema:
        return {"type": self.keyword}

    def reader(self, mode: Mode) -> Reader:
        return Reader(self.type)


class Subtype(Shape):
    """A user's subclass of `str`, `int` or `float`: the JSON of the base, and its constructor on the way in."""

    def __init__(self, type: type, base: Scalar) -> None:
        self.type = type
        self.base = base
        self.kinds = base.kinds
        self.python = (type,)

    def schema(self, to: Publisher) -> JsonSchema:
        return self.base.schema(to)

    def reader(self, mode: Mode) -> Reader:
        return Reader(self.base.type, None if mode == "output" else self._make)

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        return self.base.type

    def refusals(self, misfit: Misfit, value: Any, mode: Mode) -> list[Misfit]:
        return [misfit]

    def _make(self, value: Any) -> Any:
        return construct(self.type, value)


class Anything(Shape):
    """`Any`, `object`, or no annotation: every JSON value, as it comes."""

    def schema(self, to: Publisher) -> JsonSchema:
        return {}

    def reader(self, mode: Mode) -> Reader:
        return Reader(Any)


STRING = Scalar(str, "string")
INTEGER = Scalar(int, "integer")
NUMBER = Scalar(float, "number", "integer")
BOOLEAN = Scalar(bool, "boolean")
NULL = Scalar(type(None), "null")
ANYTHING = Anything()
