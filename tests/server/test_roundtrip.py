"""What a published schema accepts is read, what it refuses is refused, and what is written it accepts."""

from __future__ import annotations

import datetime as dt
import enum
import json
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import annotated_types
import jsonschema
import jsonschema_rs
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprelay.server.report import ArgumentsInvalid
from mcprelay.server.schema import Schema
from mcprelay.server.signature import compile_call

calm = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], max_examples=150
)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    PAIR = (1, 2)
    OTHER = "o"


@dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.5


@dataclass
class Node:
    value: int
    children: list[Node] = field(default_factory=list)
    left: Node | None = None


class Movie(TypedDict, total=False):
    title: str
    level: Level


class Pair(NamedTuple):
    first: Color
    second: dt.date


class Cat(msgspec.Struct, tag="cat", rename="camel"):
    lives_left: Annotated[int, msgspec.Meta(ge=0)] = 9


class Dog(msgspec.Struct, tag="dog"):
    names: list[str]


finite = st.floats(allow_nan=False, allow_infinity=False)
aware = st.datetimes(timezones=st.just(dt.UTC))

LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=6),
    int: st.integers(),
    float: finite,
    bool: st.booleans(),
    dt.datetime: aware,
    dt.date: st.dates(),
    dt.time: st.times(),
    dt.timedelta: st.timedeltas(dt.timedelta(-9), dt.timedelta(9)),
    uuid.UUID: st.uuids(),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False),
    bytes: st.binary(max_size=5),
    Color: st.sampled_from(Color),
    Level: st.sampled_from(Level),
    Mixed: st.sampled_from(Mixed),
    Literal["a", 1, True, None]: st.sampled_from(["a", 1, True, None]),  # noqa: PYI061
    Annotated[int, annotated_types.Interval(ge=-3, lt=9)]: st.integers(-3, 8),
    Annotated[str, Schema(pattern="^[ab]+$", max_length=4)]: st.text("ab", min_size=1, max_size=4),
    Annotated[float, annotated_types.MultipleOf(0.5)]: st.integers(-9, 9).map(lambda n: n / 2),
    Point: st.builds(Point, st.integers(), finite),
    Movie: st.fixed_dictionaries({}, optional={"title": st.text(max_size=3), "level": st.sampled_from(Level)}),
    Pair: st.builds(Pair, st.sampled_from(Color), st.dates()),
    Cat: st.builds(Cat, st.integers(0)),
    Cat | Dog: st.builds(Cat, st.integers(0)) | st.builds(Dog, st.lists(st.text(max_size=2), max_size=2)),
    Node: st.recursive(
        st.builds(Node, st.integers()),
        lambda inner: st.builds(Node, st.integers(), st.lists(inner, max_size=2), st.none() | inner),
        max_leaves=4,
    ),
}


def nested(inner: st.SearchStrategy[tuple[Any, Any]]) -> st.SearchStrategy[tuple[Any, Any]]:
    """Types made of types, each with the strategy of its values."""
    return st.one_of(
        inner.map(lambda pair: (list[pair[0]], st.lists(pair[1], max_size=3))),
        inner.map(lambda pair: (tuple[pair[0], ...], st.lists(pair[1], max_size=3).map(tuple))),
        inner.map(lambda pair: (pair[0] | None if not isinstance(pair[0], str) else pair[0], st.none() | pair[1])),
        inner.map(lambda pair: (dict[str, pair[0]], st.dictionaries(st.text(max_size=3), pair[1], max_size=3))),
        inner.map(lambda pair: (dict[Color, pair[0]], st.dictionaries(st.sampled_from(Color), pair[1], max_size=2))),
        st.tuples(inner, inner).map(lambda two: (tuple[two[0][0], two[1][0]], st.tuples(two[0][1], two[1][1]))),
    )


kinds = st.recursive(st.sampled_from(list(LEAVES.items())), nested, max_leaves=3)


def compiled(annotation: Any, **options: Any) -> Any:
    def handler(x): ...

    handler.__annotations__["x"] = annotation
    handler.__annotations__["return"] = dict[str, annotation]
    return compile_call(handler, **options)


def accepts(schema: dict[str, Any], value: Any) -> bool:
    if not jsonschema.Draft202012Validator(schema).is_valid(value):
        return False
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True).is_valid(value)


@given(data=st.data())
@calm
def test_what_is_written_is_accepted_by_what_was_published_and_reads_as_it_was(data):
    annotation, values = data.draw(kinds)
    value = data.draw(values)
    made = compiled(annotation)
    sent = msgspec.json.decode(made.output.result({"x": value}).structured_content)
    assert accepts(made.output_schema, sent)
    assert jsonschema.Draft202012Validator(made.input_schema).is_valid(sent)  # but for formats that want an offset
    assert made.decode(json.dumps(sent).encode()) == (value,)


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | finite
    | st.text(max_size=3)
    | st.sampled_from(["red", "a", "cat", "2026-01-31"])
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["x", "y", "value", "children", "type", "livesLeft", "title", "red"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@given(data=st.data())
@calm
def test_what_the_schema_accepts_is_read(data):
    leaves = st.sampled_from([pair for pair in LEAVES.items() if pair[0] is not bytes])  # base64 is a remark to schemas
    annotation, values = data.draw(st.recursive(leaves, nested, max_leaves=3))
    made = compiled(annotation)
    written = msgspec.json.decode(made.output.result({"x": data.draw(values)}).structured_content)
    value = data.draw(st.just(written) | altered(written) | anything.map(lambda item: {"x": item}))
    if accepts(made.input_schema, value):
        made.decode(json.dumps(value).encode())


EXACT = [
    annotation
    for annotation in LEAVES
    if annotation not in {dt.datetime, dt.date, dt.time, dt.timedelta, uuid.UUID, Decimal, bytes, Pair}
]


@given(data=st.data())
@calm
def test_what_the_schema_refuses_is_refused(data):
    leaves = st.sampled_from([(annotation, LEAVES[annotation]) for annotation in EXACT])
    annotation, values = data.draw(st.recursive(leaves, nested, max_leaves=3))
    made = compiled(annotation, strict=True)
    written = msgspec.json.decode(made.output.result({"x": data.draw(values)}).structured_content)
    value = data.draw(altered(written) | anything.map(lambda item: {"x": item}))
    try:
        made.decode(json.dumps(value).encode())
    except ArgumentsInvalid as error:
        assert error.errors  # noqa: PT017
        assert not accepts(made.input_schema, value)
    else:
        assert accepts(made.input_schema, value)


@st.composite
def altered(draw: st.DrawFn, value: Any) -> Any:
    """A value with one part of it, somewhere, exchanged."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: draw(altered(value[key]))}
    if isinstance(value, list) and value and draw(st.booleans()):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], draw(altered(value[at])), *value[at + 1 :]]
    return draw(scalars | st.just({}) | st.just([]))
