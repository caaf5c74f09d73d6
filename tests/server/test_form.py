"""Flat types are forms, everything else is refused with the part that is not flat."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest

from mcprelay.errors import DefinitionError
from mcprelay.server.form import Form, form_of
from mcprelay.server.report import ArgumentsInvalid
from mcprelay.server.schema import Schema
from tests.wire_schema import REVISIONS, schema_of

NEWEST = max(REVISIONS)


class Kind(enum.Enum):
    WINDOW = "window"
    AISLE = "aisle"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Seat:
    """Your seat.

    Attributes:
        row: Which row.
    """

    row: Annotated[int, Schema(minimum=1, exclusive_maximum=10)]
    kind: Kind = Kind.AISLE
    level: Level = Level.HIGH
    name: Annotated[str, Schema(min_length=2, max_length=9, pattern="^[A-Z]", title="Name")] = "Ada"
    mail: Annotated[str | None, Schema(format="email")] = None
    day: dt.date | None = None
    when: dt.datetime | None = None
    token: uuid.UUID | None = None
    price: Decimal = Decimal("1.5")
    ratio: Annotated[float, Schema(exclusive_minimum=0)] = 0.5
    confirm: bool = False
    extras: Annotated[list[Literal["tea", "cake"]], Schema(max_items=2)] = field(default_factory=list)
    grade: Literal["a", "b", None] = None  # noqa: PYI061


def assert_allowed(form: Form) -> None:
    params = {"mode": "form", "message": "?", "requestedSchema": form.schema}
    assert list(schema_of(NEWEST).problems("ElicitRequestFormParams", params)) == []


def test_a_flat_class_is_a_form_of_what_the_specification_allows():
    form = form_of(Seat)
    assert form.schema == {
        "type": "object",
        "properties": {
            "row": {"type": "integer", "minimum": 1, "maximum": 9, "description": "Which row."},
            "kind": {"type": "string", "enum": ["window", "aisle"], "default": "aisle"},
            "level": {"type": "string", "enum": ["1", "2"], "default": "2"},
            "name": {"type": "string", "minLength": 2, "maxLength": 9, "default": "Ada", "title": "Name"},
            "mail": {"type": "string", "format": "email"},
            "day": {"type": "string", "format": "date"},
            "when": {"type": "string", "format": "date-time"},
            "token": {"type": "string"},
            "price": {"type": "number", "default": 1.5},
            "ratio": {"type": "number", "default": 0.5},
            "confirm": {"type": "boolean", "default": False},
            "extras": {"type": "array", "items": {"type": "string", "enum": ["tea", "cake"]}, "maxItems": 2},
            "grade": {"type": "string", "enum": ["a", "b"]},
        },
        "required": ["row"],
    }
    assert_allowed(form)


def test_what_was_filled_in_becomes_the_value():
    form = form_of(Seat)
    made = form.decode({"row": 3, "level": "1", "extras": ["tea"], "day": "2026-01-31", "unasked": 1})
    assert made == Seat(3, level=Level.LOW, extras=["tea"], day=dt.date(2026, 1, 31))
    assert form.decode({"row": "3", "confirm": "true"}) == Seat(3, confirm=True)
    assert form.decode({"row": 3, "mail": None}) == Seat(3)


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({}, "/row"),
        ({"row": 10}, "/row"),
        ({"row": 1, "name": "ada"}, "/name"),
        ({"row": 1, "mail": "x"}, "/mail"),
        ({"row": 1, "ratio": 0}, "/ratio"),
        ({"row": 1, "day": "x"}, "/day"),
        ({"row": 1, "extras": ["tea", "milk"]}, "/extras/1"),
    ],
)
def test_what_a_form_cannot_say_is_checked_in_the_answer(content, path):
    with pytest.raises(ArgumentsInvalid) as caught:
        form_of(Seat).decode(content)
    assert [error.path for error in caught.value.errors] == [path]
    assert isinstance(caught.value, ValueError)


class Movie(TypedDict, total=False):
    title: str


class Pair(NamedTuple):
    first: int
    second: bool = True


class Cat(msgspec.Struct):
    lives: int = 9


class Guest(pydantic.BaseModel):
    name: str = pydantic.Field(min_length=2, description="Your name")
    kind: Kind | None = None
    age: int = pydantic.Field(default=18, gt=17)


@pytest.mark.parametrize(
    ("annotation", "content", "made"),
    [
        (Movie, {}, {}),
        (Movie, {"title": "a"}, {"title": "a"}),
        (Pair, {"first": 1}, Pair(1)),
        (Cat, {}, Cat()),
        (Guest, {"name": "Ada", "kind": "aisle"}, Guest(name="Ada", kind=Kind.AISLE)),
        (str, {"value": "a"}, "a"),
        (bool, {"value": True}, True),
        (Kind, {"value": "aisle"}, Kind.AISLE),
        (Literal["a", "b"], {"value": "b"}, "b"),
        (Annotated[int, Schema("How many", minimum=1)], {"value": 3}, 3),
        (list[Kind], {"value": ["aisle"]}, [Kind.AISLE]),
        (dt.date, {"value": "2026-01-31"}, dt.date(2026, 1, 31)),
    ],
    ids=repr,
)
def test_every_flat_type_is_a_form(annotation, content, made):
    form = form_of(annotation)
    assert_allowed(form)
    assert form.decode(content) == made


def test_a_model_of_pydantic_is_a_form_and_checks_the_answer():
    form = form_of(Guest)
    assert form.schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2, "description": "Your name"},
            "kind": {"type": "string", "enum": ["window", "aisle"]},
            "age": {"type": "integer", "minimum": 18, "default": 18},
        },
        "required": ["name"],
    }
    with pytest.raises(ArgumentsInvalid) as caught:
        form.decode({"name": "A", "age": 3})
    assert {error.path for error in caught.value.errors} == {"/name", "/age"}


def test_a_class_without_fields_is_a_form_to_confirm():
    class Confirm(TypedDict):
        pass

    form = form_of(Confirm)
    assert form.schema == {"type": "object", "properties": {}}
    assert form.decode({}) == {}


@dataclass
class Nested:
    inner: Cat


@dataclass
class Listed:
    numbers: list[int]


@dataclass
class Free:
    anything: Any


@dataclass
class Bytes:
    data: bytes


@dataclass
class Either:
    value: int | str


@pytest.mark.parametrize(
    ("annotation", "part"),
    [
        (Nested, "'inner'"),
        (Listed, "'numbers'"),
        (Free, "'anything'"),
        (Bytes, "'data'"),
        (Either, "'value'"),
        (dict[str, int], "'value'"),
        (Literal[True], "'value'"),
    ],
)
def test_what_is_not_flat_is_refused_by_name(annotation, part):
    with pytest.raises(DefinitionError, match=part):
        form_of(annotation)


def test_a_form_is_made_once():
    assert form_of(Seat) is form_of(Seat)


TITLED = [{"const": "a", "title": "The first"}, {"const": "b", "title": "The second"}]


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "string", "oneOf": TITLED},
        {"type": "string", "enum": ["a", "b"], "enumNames": ["The first", "The second"]},
        {"type": "array", "items": {"anyOf": TITLED}},
    ],
)
def test_choices_keep_the_titles_that_their_author_wrote(definition):
    kind = list[str] if definition["type"] == "array" else str
    made = form_of(Annotated[kind, Schema(definition=definition)])
    assert made.schema["properties"]["value"] == definition


def test_choices_of_which_one_has_no_title_are_not_titled_choices():
    definition = {"type": "array", "items": {"anyOf": [*TITLED, {"const": "c"}]}}
    with pytest.raises(DefinitionError):
        form_of(Annotated[list[str], Schema(definition=definition)])
