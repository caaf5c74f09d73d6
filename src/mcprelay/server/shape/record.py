"""Shapes of objects with named fields: the arguments of a call, dataclasses, TypedDicts, NamedTuples, Structs, attrs.

Whatever the class, JSON is decoded into a Struct made for the purpose, which refuses unknown keys and holds the fields'
constraints, and the value is built from that by the class's own constructor. So every flavor is refused, coerced and
reported alike, and what the user's constructor says still counts.
"""

# ruff: noqa: D102 - the methods of a shape are described once, in `Shape`
# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import NODEFAULT, Raw, Struct

from mcprelay.server.shape import (
    MOST,
    REFUSALS,
    JsonSchema,
    Misfit,
    Mode,
    Publisher,
    Reader,
    Shape,
    construct,
    together,
)
from mcprelay.server.shape.default import is_taken, plain_json
from mcprelay.server.validator import missing, unknowns
from mcprelay.server.words import describe, expectation, quoted

ABSENT: Any = object()
"""Stands in the decoded Struct for a field that did not come."""

_IMMUTABLE = (str, int, float, bool, type(None), bytes, enum.Enum)


class Field(NamedTuple):
    """One field.

    Attributes:
        name: The attribute or parameter.
        key: The key in JSON.
        shape: What its values are.
        default, default_factory: What it is when it does not come; `NODEFAULT` twice means that it must come.
        optional: It may be left out, and is then left out of the value too (TypedDict's `NotRequired`).
        flow: Whether it is part of both directions, or only of one: fields that the constructor does not take are
            output, and parameters of the constructor that are no fields (`InitVar`) are input.
        omitted: It may be missing from output.
        by_name: The constructor takes it by keyword only.
    """

    name: str
    key: str
    shape: Shape
    default: Any = NODEFAULT
    default_factory: Any = NODEFAULT
    optional: bool = False
    flow: Literal["both", "input", "output"] = "both"
    omitted: bool = False
    by_name: bool = False

    @property
    def required(self) -> bool:
        """Whether input must have it."""
        return not self.optional and self.default is NODEFAULT and self.default_factory is NODEFAULT

    def in_mode(self, mode: Mode) -> bool:
        """Whether it is part of this direction."""
        return self.flow in {"both", mode}

    def initial(self) -> Any:
        """The default, made anew where a factory makes it."""
        return self.default if self.default_factory is NODEFAULT else self.default_factory()


class Record(Shape):
    """An object with named fields.

    Attributes:
        fields: In the author's order. Set after construction, since a class may contain itself.
        extra: The shape of values under any other key, or None where other keys are refused.
        reserved: Keys that are refused even then.
        tag: The key and the value that every such object has, or None.
        native: Whether msgspec writes such a value just as it is published.
        build: Makes the value from the fields' values, in order; `ABSENT` stands for an optional one that did not come.
    """

    kinds = frozenset({"object"})

    def __init__(
        self,
        name: str,
        *,
        build: Callable[[Sequence[Any]], Any],
        python: tuple[type, ...] = (),
        description: str | None = None,
        tag: tuple[str, str | int] | None = None,
    ) -> None:
        self.name = name
        self.fields: tuple[Field, ...] = ()
        self.extra: Shape | None = None
        self.reserved: frozenset[str] = frozenset()
        self.description = description
        self.python = python
        self._build = build
        self.tag = tag
        self.native = False
        self._readers: dict[Mode, Reader] = {}
        self._open: set[Mode] = set()
        self._writing = False

    def opened(self, extra: Shape) -> Record:
        """The same, where other keys are welcome. A mapping keeps them, any other class has no place for them."""

        def build(values: Sequence[Any]) -> Any:
            *own, others = values
            made = self._build(own)
            return {**made, **others} if isinstance(made, dict) else made

        record = Record(self.name, build=build, python=self.python, description=self.description, tag=self.tag)
        record.fields, record.native, record.extra = self.fields, self.native, extra
        return record

    def schema(self, to: Publisher) -> JsonSchema:
        return to.refer(self, self.name, lambda: self.body(to))

    def body(self, to: Publisher) -> JsonSchema:
        mode = to.mode
        fields = [field for field in self.fields if field.in_mode(mode)]
        schema: JsonSchema = {"type": "object"}
        if self.description:
            schema["description"] = self.description
        properties: JsonSchema = {}
        if self.tag is not None:
            key, tag = self.tag
            properties[key] = {"type": "string" if isinstance(tag, str) else "integer", "enum": [tag]}
        schema["properties"] = properties | {field.key: self._property(field, to) for field in fields}
        required = [field.key for field in fields if _is_required(field, mode)]
        if self.tag is not None:
            required.insert(0, self.tag[0])
        if required:
            schema["required"] = required
        if to.mode == "input":
            schema["additionalProperties"] = False if self.extra is None else self.extra.schema(to) or True
        if self.reserved:
            schema["propertyNames"] = {"not": {"enum": sorted(self.reserved)}}
        return schema

    def _property(self, field: Field, to: Publisher) -> JsonSchema:
        schema = field.shape.schema(to)
        if to.mode == "input" and field.default is not NODEFAULT and "default" not in schema:
            try:
                default = plain_json(field.shape, field.default)
            except (TypeError, ValueError):
                return schema  # a default that JSON cannot say is not published; it still holds
            if is_taken(field.shape, schema, default):  # nor one that the caller could not send, such as a sentinel
                return {**schema, "default": default}
        return schema

    def reader(self, mode: Mode) -> Reader:
        if mode not in self._readers:
            if mode in self._open:  # it contains itself: the inner one is left raw and read when it is met
                return Reader(Raw, lambda raw: self.read(raw, mode))
            self._open.add(mode)
            try:
                self._readers[mode] = self._make_reader(mode)
            finally:
                self._open.discard(mode)
        return self._readers[mode]

    def _make_reader(self, mode: Mode) -> Reader:
        fields = [field for field in self.fields if field.in_mode(mode)]
        readers = [field.shape.reader(mode) for field in fields]
        if mode == "input" and self.extra is not None:
            return Reader(dict[str, Raw], self._lift_open(fields, self.extra))
        mirror = self._mirror(mode, fields, readers)
        if mode == "input":
            return Reader(mirror, self.lifting(fields, readers))
        lifts = _lifts(fields, readers)
        return Reader(mirror, _lifted_values(lifts, 0 if self.tag is None else 1) if lifts else None)

    def _mirror(self, mode: Mode, fields: list[Field], readers: list[Reader]) -> type[Struct]:
        """The Struct that JSON is decoded into. Its own field names are numbered, so that no name can clash with it."""
        members: list[Any] = []
        keys: dict[str, str] = {}
        if self.tag is not None:
            members.append(("tag", Literal[self.tag[1]]))
            keys["tag"] = self.tag[0]
        for at, (field, reader) in enumerate(zip(fields, readers, strict=True)):
            keys[f"p{at}"] = field.key
            members.append((f"p{at}", reader.type, *_default(field, mode, lifted=reader.lift is not None)))
        closed = mode == "input"
        return msgspec.defstruct(
            self.name, members, rename=keys, forbid_unknown_fields=closed, kw_only=True, frozen=True, gc=False
        )

    def lifting(self, fields: Sequence[Field], readers: Sequence[Reader]) -> Callable[[Any], Any]:
        """From the decoded Struct to the value."""
        lifts = _lifts(fields, readers)
        build, values_of = self._build, msgspec.structs.astuple
        if build is tuple:
            return _lifted_values(lifts, 0) if lifts else values_of  # the arguments of a call, ready as they are
        skip = 0 if self.tag is None else 1
        if lifts or skip:
            values_of = _lifted_values(lifts, skip)

        def lift(mirror: Any) -> Any:
            try:
                return build(values_of(mirror))
            except Misfit:
                raise
            except REFUSALS as error:
                raise Misfit(str(error) or type(error).__name__) from error

        return lift

    def _lift_open(self, fields: Sequence[Field], extra: Shape) -> Callable[[Any], Any]:
        """The same for an object that takes other keys: field by field, and the rest as a mapping at the end."""

        def lift(members: dict[str, Raw]) -> Any:
            rest = dict(members)
            values = [_read_member(field, rest) for field in fields]
            if rest.keys() & self.reserved:
                raise Misfit("holds an argument that there is not")
            others = {key: _located(extra.read, raw, key) for key, raw in rest.items()}
            return construct(self._build, [*values, others])

        return lift

    def explain(self, value: Any, mode: Mode) -> list[Misfit]:
        if not isinstance(value, dict):
            return [self.unmet(value, mode)]
        fields = [field for field in self.fields if field.in_mode(mode)]
        misfits = [*self._explain_tag(value), *_explain_fields(fields, value, mode), *self._explain_others(value, mode)]
        return misfits or super().explain(value, mode)

    def refusals(self, misfit: Misfit, value: Any, mode: Mode) -> list[Misfit]:
        return list(misfit.every())

    def _explain_tag(self, value: dict[str, Any]) -> list[Misfit]:
        if self.tag is None:
            return []
        key, tag = self.tag
        if key not in value:
            return [missing(key, quoted(tag))]
        known = value[key] == tag and not isinstance(value[key], bool)
        return [] if known else [Misfit(f"expected {quoted(tag)}, got {describe(value[key])}", (key,))]

    def _explain_others(self, value: dict[str, Any], mode: Mode) -> list[Misfit]:
        """What is wrong with keys that no field has."""
        if mode == "output":
            return []
        known = [field.key for field in self.fields if field.in_mode(mode)] + (
            [] if self.tag is None else [self.tag[0]]
        )
        others = [key for key in value if key not in known]
        if self.extra is None:
            return unknowns(others, known)
        reserved = unknowns([key for key in others if key in self.reserved], known)
        free = [key for key in others if key not in self.reserved]
        free_ones = (misfit.below(key) for key in free for misfit in self.extra.explain(value[key], mode))
        return reserved + list(islice(free_ones, MOST))

    @property
    def _names(self) -> set[str]:
        return {field.name for field in self.fields}

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        if self._writing:
            return later(self, careful=careful)
        self._writing = True
        try:
            fields = [field for field in self.fields if field.in_mode("output")]
            writes = [(field, field.shape.writer(careful=careful)) for field in fields]
        finally:
            self._writing = False
        if self.native and not careful and not any(write for _, write in writes):
            return None
        return lambda value: self._written(value, writes)

    def _written(self, value: Any, writes: list[tuple[Field, Callable[[Any], Any] | None]]) -> Any:
        if self.python and not isinstance(value, self.python):
            return value
        written: dict[str, Any] = {} if self.tag is None else {self.tag[0]: self.tag[1]}
        is_mapping = isinstance(value, Mapping)
        if is_mapping:  # a mapping may have keys beyond those declared, and keeps them
            written |= {key: item for key, item in value.items() if key not in self._names}
        for field, write in writes:
            member = value.get(field.name, ABSENT) if is_mapping else getattr(value, field.name, ABSENT)
            if member is not ABSENT and member is not msgspec.UNSET:
                written[field.key] = member if write is None else _located(write, member, field.name)
        return written

    def parts(self) -> Sequence[Shape]:
        shapes = tuple(field.shape for field in self.fields)
        return shapes if self.extra is None else (*shapes, self.extra)


def later(shape: Shape, *, careful: bool) -> Callable[[Any], Any]:
    """The writer of a shape inside itself, looked up when a value is there."""

    def write(value: Any) -> Any:
        inner = shape.writer(careful=careful)
        return value if inner is None else inner(value)

    return write


def _explain_fields(fields: Sequence[Field], value: dict[str, Any], mode: Mode) -> Iterator[Misfit]:
    for field in fields:
        if field.key in value:
            yield from (misfit.below(field.key) for misfit in field.shape.explain(value[field.key], mode))
        elif _is_required(field, mode):
            yield missing(field.key, expectation(field.shape.published(mode)))


def _is_required(field: Field, mode: Mode) -> bool:
    return field.required if mode == "input" else not (field.optional or field.omitted)


def _default(field: Field, mode: Mode, *, lifted: bool) -> tuple[Any, ...]:
    if _is_required(field, mode):
        return ()
    if lifted or field.optional or mode == "output":
        return (ABSENT,)
    if field.default_factory is not NODEFAULT:
        return (msgspec.field(default_factory=field.default_factory),)
    if isinstance(field.default, _IMMUTABLE):
        return (field.default,)
    return (msgspec.field(default_factory=field.initial),)


def _lifts(fields: Sequence[Field], readers: Sequence[Reader]) -> list[tuple[int, Field, Callable[[Any], Any]]]:
    """Which fields are lifted, and how."""
    pairs = enumerate(zip(fields, readers, strict=True))
    return [(at, field, reader.lift) for at, (field, reader) in pairs if reader.lift is not None]


def _lifted_values(lifts: Sequence[tuple[int, Field, Callable[[Any], Any]]], skip: int) -> Callable[[Any], Any]:
    """The values of a decoded Struct with those lifted that need it, all misfits among them told at once."""
    values_of = msgspec.structs.astuple

    def lift(mirror: Any) -> tuple[Any, ...]:
        values = list(values_of(mirror)[skip:])
        misfits: list[Misfit] = []
        for at, field, lift_field in lifts:
            value = values[at]
            if value is ABSENT:
                values[at] = ABSENT if field.optional else field.initial()
                continue
            try:
                values[at] = lift_field(value)
            except Misfit as misfit:
                misfits.append(misfit.below(field.key))
        if misfits:
            raise together(misfits)
        return tuple(values)

    return lift


def _read_member(field: Field, members: dict[str, Raw]) -> Any:
    raw = members.pop(field.key, None)
    if raw is not None:
        return _located(field.shape.read, raw, field.key)
    if field.required:
        raise Misfit("is missing", (field.key,), absent=True)
    return ABSENT if field.optional else field.initial()


def _located(step: Callable[[Any], Any], value: Any, key: str | int) -> Any:
    try:
        return step(value)
    except Misfit as misfit:
        raise misfit.below(key) from misfit
