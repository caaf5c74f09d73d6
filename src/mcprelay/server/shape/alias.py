"""The shape of a type alias that has a name (`type Json = …`), which may contain itself."""

# ruff: noqa: D102 - the methods of a shape are described once, in `Shape`

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Raw

from mcprelay.server.shape import JsonSchema, Misfit, Mode, Publisher, Reader, Shape
from mcprelay.server.shape.record import later


class Named(Shape):
    """A type alias with a name (`type Json = …`), which may contain itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.target = Shape()
        self._open: set[Mode] = set()
        self._writing = False

    def settle(self, target: Shape) -> None:
        """Say what it stands for."""
        self.target = target
        self.kinds = target.kinds
        self.python = target.python

    def schema(self, to: Publisher) -> JsonSchema:
        return to.refer(self, self.name, lambda: self.body(to))

    def body(self, to: Publisher) -> JsonSchema:
        return self.target.body(to)

    def reader(self, mode: Mode) -> Reader:
        if mode in self._open:
            return Reader(Raw, lambda raw: self.read(raw, mode))
        self._open.add(mode)
        try:
            return self.target.reader(mode)
        finally:
            self._open.discard(mode)

    def explain(self, value: Any, mode: Mode) -> list[Misfit]:
        return self.target.explain(value, mode)

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        if self._writing:
            return later(self, careful=careful)
        self._writing = True
        try:
            return self.target.writer(careful=careful)
        finally:
            self._writing = False

    def parts(self) -> Sequence[Shape]:
        return (self.target,)
