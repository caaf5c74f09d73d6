"""Shapes of arrays and free-form objects: lists, sets, tuples, mappings."""

# ruff: noqa: D102 - the methods of a shape are described once, in `Shape`
# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mcprelay.errors import DefinitionError
from mcprelay.server.shape import JsonSchema, Misfit, Mode, Publisher, Reader, Shape, construct, together
from mcprelay.server.shape.scalar import STRING


class Array(Shape):
    """Any number of the same: `list`, `set`, `tuple[T, ...]`, `Sequence`, `deque`.

    `wire` is msgspec's generic for it, or None where a list is decoded first and `build` makes the value.
    """

    kinds = frozenset({"array"})

    def __init__(
        self,
        item: Shape,
        *,
        wire: Any,
        build: Callable[[list[Any]], Any],
        python: tuple[type, ...],
        unique: bool = False,
    ) -> None:
        self.item = item
        self.python = python
        self._wire = wire
        self._build = build
        self._unique = unique

    def schema(self, to: Publisher) -> JsonSchema:
        schema: JsonSchema = {"type": "array", "items": self.item.schema(to)}
        return schema | {"uniqueItems": True} if self._unique else schema

    def reader(self, mode: Mode) -> Reader:
        item = self.item.reader(mode)
        if mode == "output":
            return Reader(list[item.type], exact=item.exact)  # type: ignore[name-defined]  # a type made at run time
        if self._wire is not None and (item.lift is None or self._wire is list):
            arguments = (item.type, ...) if self._wire is tuple else item.type
            wire: Any = self._wire.__class_getitem__(arguments)
            return Reader(wire, None if item.lift is None else _each(item.lift, None), item.exact)
        return Reader(list[item.type], _each(item.lift, self._build), item.exact)  # type: ignore[name-defined]

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        write = self.item.writer(careful=careful)
        if write is None:
            return None
        return lambda value: [write(item) for item in value] if _is_array(value) else value

    def parts(self) -> Sequence[Shape]:
        return (self.item,)


class Tuple(Shape):
    """A fixed number of values, each of its own shape."""

    kinds = frozenset({"array"})
    python = (tuple,)

    def __init__(self, items: tuple[Shape, ...]) -> None:
        self.items = items

    def schema(self, to: Publisher) -> JsonSchema:
        size = {"minItems": len(self.items), "maxItems": len(self.items)}
        if not self.items:
            return {"type": "array", **size}
        return {"type": "array", "prefixItems": [item.schema(to) for item in self.items], "items": False, **size}

    def reader(self, mode: Mode) -> Reader:
        items = [item.reader(mode) for item in self.items]
        wire: Any = tuple.__class_getitem__(tuple(item.type for item in items))
        lifts = [(at, item.lift) for at, item in enumerate(items) if item.lift is not None]
        return Reader(wire, _at(lifts) if lifts else None, all(item.exact for item in items))

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        writes = [item.writer(careful=careful) for item in self.items]
        if not any(writes):
            return None
        return lambda value: [w(v) if w else v for w, v in zip(writes, value)] if _is_array(value) else value  # noqa: B905

    def parts(self) -> Sequence[Shape]:
        return self.items


class Map(Shape):
    """An object with free keys: `dict[K, V]`, `Mapping`, `defaultdict`."""

    kinds = frozenset({"object"})

    def __init__(
        self, key: Shape, value: Shape, *, build: Callable[[dict[Any, Any]], Any], python: tuple[type, ...]
    ) -> None:
        if not key.kinds <= {"string", "integer", "number"}:
            raise DefinitionError("keys of a JSON object are strings: use str, an enum, a Literal, int or UUID as keys")
        self.key = key
        self.value = value
        self.python = python
        self._build = build

    def schema(self, to: Publisher) -> JsonSchema:
        schema: JsonSchema = {"type": "object"}
        if (names := self._names(to)) is not None:
            schema["propertyNames"] = names
        value = self.value.schema(to)
        return schema | {"additionalProperties": value} if value else schema

    def _names(self, to: Publisher) -> JsonSchema | None:
        if self.key is STRING:
            return None
        schema = self.key.schema(to)
        if "enum" in schema:
            return {"enum": [str(value) for value in schema["enum"]]}
        if self.key.kinds == frozenset({"integer"}):
            return {"pattern": r"^-?(0|[1-9]\d*)$"}
        return {key: value for key, value in schema.items() if key != "type"}

    def reader(self, mode: Mode) -> Reader:
        key, value = self.key.reader(mode), self.value.reader(mode)
        lift = None
        if mode == "input" and (key.lift or value.lift or self._build is not dict):
            lift = _entries(key.lift, value.lift, None if self._build is dict else self._build)
        return Reader(dict[key.type, value.type], lift, key.exact and value.exact)  # type: ignore[name-defined]

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        write_key = self.key.writer(careful=careful)
        write = self.value.writer(careful=careful)
        if write is None and write_key is None:
            return None
        return lambda value: _written(value, write_key, write)

    def parts(self) -> Sequence[Shape]:
        return (self.key, self.value)


def _each(lift: Callable[[Any], Any] | None, build: Callable[[list[Any]], Any] | None) -> Callable[[Any], Any]:
    def lift_all(values: list[Any]) -> Any:
        if lift is not None:
            try:
                values = [lift(value) for value in values]
            except Misfit:
                raise _misfits_of(values, lift) from None
        return values if build is None else construct(build, values)

    return lift_all


def _misfits_of(values: list[Any], lift: Callable[[Any], Any]) -> Misfit:
    """Every item that does not fit, now that one is known not to."""
    misfits: list[Misfit] = []
    for at, value in enumerate(values):
        try:
            lift(value)
        except Misfit as misfit:
            misfits.append(misfit.below(at))
    return together(misfits)


def _at(lifts: list[tuple[int, Callable[[Any], Any]]]) -> Callable[[Any], Any]:
    def lift_some(values: tuple[Any, ...]) -> Any:
        made = list(values)
        for at, lift in lifts:
            try:
                made[at] = lift(made[at])
            except Misfit as error:
                raise error.below(at) from error
        return tuple(made)

    return lift_some


def _entries(
    lift_key: Callable[[Any], Any] | None,
    lift: Callable[[Any], Any] | None,
    build: Callable[[dict[Any, Any]], Any] | None,
) -> Callable[[Any], Any]:
    def lift_entries(values: dict[Any, Any]) -> Any:
        made: dict[Any, Any] = {}
        for key, value in values.items():
            try:
                made[lift_key(key) if lift_key else key] = lift(value) if lift else value
            except Misfit as error:
                raise error.below(str(key)) from error
        return made if build is None else construct(build, made)

    return lift_entries


def _is_array(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, bytearray, Mapping))


def _written(value: Any, write_key: Callable[[Any], Any] | None, write: Callable[[Any], Any] | None) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {write_key(k) if write_key else k: write(v) if write else v for k, v in value.items()}
