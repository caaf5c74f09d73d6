"""Shapes of arrays and free-form objects: lists, sets, tuples, mappings."""

# ruff: noqa: D102 - the methods of a shape are described once, in `Shape`
# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from mcprelay.errors import DefinitionError
from mcprelay.server.shape import MOST, JsonSchema, Misfit, Mode, Publisher, Reader, Shape, construct, together
from mcprelay.server.shape.scalar import ANYTHING, STRING
from mcprelay.server.words import clipped, expectation, quoted


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
            return Reader(_list(item.type), None if item.lift is None else _each(item.lift, None))
        if self._wire is not None and (item.lift is None or self._wire is list):
            arguments = (item.type, ...) if self._wire is tuple else item.type
            return Reader(
                self._wire.__class_getitem__(arguments), None if item.lift is None else _each(item.lift, None)
            )
        return Reader(_list(item.type), _each(item.lift, self._build))

    def explain(self, value: Any, mode: Mode) -> list[Misfit]:
        if not isinstance(value, list):
            return [self.unmet(value, mode)]
        inside = (misfit.below(at) for at, item in enumerate(value) for misfit in self.item.explain(item, mode))
        return list(islice(inside, MOST)) or super().explain(value, mode)

    def refusals(self, misfit: Misfit, value: Any, mode: Mode) -> list[Misfit]:
        return [misfit]

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
        return Reader(wire, _at(lifts) if lifts else None)

    def explain(self, value: Any, mode: Mode) -> list[Misfit]:
        if not isinstance(value, list) or len(value) != len(self.items):
            return [self.unmet(value, mode)]
        pairs = enumerate(zip(self.items, value, strict=True))
        return [misfit.below(at) for at, (item, part) in pairs for misfit in item.explain(part, mode)]

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
        build = None if self._build is dict or mode == "output" else self._build
        lifted = key.lift or value.lift or build
        wire: Any = dict.__class_getitem__((key.type, value.type))
        return Reader(wire, _entries(key.lift, value.lift, build) if lifted else None)

    def explain(self, value: Any, mode: Mode) -> list[Misfit]:
        if not isinstance(value, dict):
            return [self.unmet(value, mode)]
        inside = (misfit.below(key) for key, item in value.items() for misfit in self.value.explain(item, mode))
        return [*islice(inside, MOST), *islice(self._explain_keys(value, mode), MOST)] or super().explain(value, mode)

    def _explain_keys(self, value: dict[str, Any], mode: Mode) -> Iterator[Misfit]:
        if self.key is STRING:
            return
        bare = Map(self.key, ANYTHING, build=dict, python=(dict,))
        expected = expectation(self._names(Publisher(mode)))
        for key in value:
            try:
                bare.read(msgspec.json.encode({key: None}), mode)
            except Misfit as misfit:
                said = f"expected a key that is {expected}, got the key {quoted(clipped(key))}"
                yield Misfit(misfit.reason if misfit.path else said, (key,), expected=expected)

    def refusals(self, misfit: Misfit, value: Any, mode: Mode) -> list[Misfit]:
        return [misfit]

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        write_key = self.key.writer(careful=careful)
        write = self.value.writer(careful=careful)
        if write is None and write_key is None:
            return None
        return lambda value: _written(value, write_key, write)

    def parts(self) -> Sequence[Shape]:
        return (self.key, self.value)


def _list(item: Any) -> Any:
    """`list` of a type that is made at run time."""
    return list.__class_getitem__(item)


def _each(lift: Callable[[Any], Any] | None, build: Callable[[list[Any]], Any] | None) -> Callable[[Any], Any]:
    """Lift each item, once: what contains itself would be lifted again and again at every level."""

    def lift_all(values: list[Any]) -> Any:
        if lift is not None:
            made: list[Any] = []
            misfits: list[Misfit] = []
            for at, value in enumerate(values):
                try:
                    made.append(lift(value))
                except Misfit as misfit:
                    misfits.append(misfit.below(at))
                    if len(misfits) == MOST:
                        break
            if misfits:
                raise together(misfits)
            values = made
        return values if build is None else construct(build, values)

    return lift_all


def _at(lifts: list[tuple[int, Callable[[Any], Any]]]) -> Callable[[Any], Any]:
    def lift_some(values: tuple[Any, ...]) -> Any:
        made = list(values)
        misfits: list[Misfit] = []
        for at, lift in lifts:
            try:
                made[at] = lift(made[at])
            except Misfit as misfit:
                misfits.append(misfit.below(at))
        if misfits:
            raise together(misfits)
        return tuple(made)

    return lift_some


def _entries(
    lift_key: Callable[[Any], Any] | None,
    lift: Callable[[Any], Any] | None,
    build: Callable[[dict[Any, Any]], Any] | None,
) -> Callable[[Any], Any]:
    def lift_entries(values: dict[Any, Any]) -> Any:
        made: dict[Any, Any] = {}
        misfits: list[Misfit] = []
        for key, value in values.items():
            try:
                made[lift_key(key) if lift_key else key] = lift(value) if lift else value
            except Misfit as misfit:
                misfits.append(misfit.below(str(key)))
                if len(misfits) == MOST:
                    break
        if misfits:
            raise together(misfits)
        return made if build is None else construct(build, made)

    return lift_entries


def _is_array(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, bytearray, Mapping))


def _written(value: Any, write_key: Callable[[Any], Any] | None, write: Callable[[Any], Any] | None) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {write_key(k) if write_key else k: write(v) if write else v for k, v in value.items()}
