"""Every type has the schema that says what the type says, and reads what the schema says."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import ipaddress
import json
import pathlib
import re
import typing
import uuid
import zoneinfo
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import InitVar, dataclass, field, make_dataclass
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
    Union,
)

import annotated_types
import attrs
import jsonschema
import msgspec
import pytest
import typing_extensions

from mcprelay.errors import DefinitionError
from mcprelay.server.report import ArgumentsInvalid
from mcprelay.server.schema import Format, Schema
from mcprelay.server.signature import compile_call

T = TypeVar("T")


def compiled(annotation: Any) -> Any:
    def handler(x): ...

    handler.__annotations__["x"] = annotation
    return compile_call(handler)


def schema_of(annotation: Any) -> dict[str, Any]:
    published = compiled(annotation).input_schema
    jsonschema.Draft202012Validator.check_schema(published)
    return published["properties"]["x"]


def read(annotation: Any, value: Any) -> Any:
    (made,) = compiled(annotation).decode(json.dumps({"x": value}).encode())
    return made


def output_schema_of(annotation: Any) -> dict[str, Any]:
    def handler(): ...

    handler.__annotations__["return"] = annotation
    schema = compile_call(handler).output_schema
    assert schema is not None
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"
    CRIMSON = "red"  # noqa: PIE796


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    PAIR = (1, 2)
    NOTHING = None


class Fruit(enum.StrEnum):
    PEAR = enum.auto()
    APPLE = enum.auto()


class Slug(str):  # noqa: SLOT000 - as users write it
    pass


UserId = NewType("UserId", int)
Percent = NewType("Percent", Annotated[int, annotated_types.Interval(ge=0, le=100)])  # type: ignore[valid-newtype]

INTEGER = {"type": "integer"}
STRING = {"type": "string"}
BASE64 = {"type": "string", "contentEncoding": "base64"}
DATE_TIME = {"type": "string", "format": "date-time"}


@pytest.mark.parametrize(
    ("annotation", "schema", "sent", "made"),
    [
        (str, STRING, "a", "a"),
        (int, INTEGER, 3, 3),
        (int, INTEGER, 10**30, 10**30),
        (float, {"type": "number"}, 2.5, 2.5),
        (float, {"type": "number"}, 2, 2.0),
        (bool, {"type": "boolean"}, True, True),
        (None, {"type": "null"}, None, None),
        (Any, {}, [1, None], [1, None]),
        (object, {}, {"a": 1}, {"a": 1}),
        (bytes, {"type": "string", "contentEncoding": "base64"}, "aGk=", b"hi"),
        (bytearray, {"type": "string", "contentEncoding": "base64"}, "aGk=", bytearray(b"hi")),
        (
            dt.datetime,
            {"type": "string", "format": "date-time"},
            "2026-01-31T09:30:00Z",
            dt.datetime(2026, 1, 31, 9, 30, tzinfo=dt.UTC),
        ),
        (dt.datetime, {"type": "string", "format": "date-time"}, "2026-01-31 09:30", dt.datetime(2026, 1, 31, 9, 30)),  # noqa: DTZ001
        (dt.date, {"type": "string", "format": "date"}, "2026-01-31", dt.date(2026, 1, 31)),
        (dt.time, {"type": "string", "format": "time"}, "09:30", dt.time(9, 30)),
        (dt.timedelta, {"type": "string", "format": "duration"}, "P1DT2H", dt.timedelta(days=1, hours=2)),
        (dt.timedelta, {"type": "string", "format": "duration"}, "P2W", dt.timedelta(weeks=2)),
        (dt.timedelta, {"type": "string", "format": "duration"}, "-PT0.5S", dt.timedelta(seconds=-0.5)),
        (uuid.UUID, {"type": "string", "format": "uuid"}, str(uuid.UUID(int=7)), uuid.UUID(int=7)),
        (pathlib.Path, STRING, "a/b", pathlib.Path("a/b")),
        (pathlib.PurePosixPath, STRING, "a/b", pathlib.PurePosixPath("a/b")),
        (ipaddress.IPv4Address, {"type": "string", "format": "ipv4"}, "10.0.0.1", ipaddress.IPv4Address("10.0.0.1")),
        (ipaddress.IPv6Network, STRING, "::/8", ipaddress.IPv6Network("::/8")),
        (re.Pattern, {"type": "string", "format": "regex"}, "a+", re.compile("a+")),
        (re.Pattern[str], {"type": "string", "format": "regex"}, "a+", re.compile("a+")),
        (zoneinfo.ZoneInfo, STRING, "Europe/Berlin", zoneinfo.ZoneInfo("Europe/Berlin")),
        (Color, {"type": "string", "enum": ["red", "blue"]}, "blue", Color.BLUE),
        (Level, {"type": "integer", "enum": [1, 2]}, 2, Level.HIGH),
        (Level, {"type": "integer", "enum": [1, 2]}, 2.0, Level.HIGH),
        (Mixed, {"type": "string", "enum": ["PAIR", "NOTHING"]}, "PAIR", Mixed.PAIR),
        (Fruit, {"type": "string", "enum": ["pear", "apple"]}, "apple", Fruit.APPLE),
        (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}, "a", "a"),
        (Literal[1, "a", None], {"type": ["integer", "string", "null"], "enum": [1, "a", None]}, None, None),  # noqa: PYI061
        (Literal[True], {"type": "boolean", "enum": [True]}, True, True),
        (Literal[Color.RED], {"type": "string", "enum": ["red"]}, "red", Color.RED),
        (list, {"type": "array", "items": {}}, [1, "a"], [1, "a"]),
        (list[int], {"type": "array", "items": INTEGER}, [1], [1]),
        (Sequence[int], {"type": "array", "items": INTEGER}, [1], [1]),
        (Iterable[int], {"type": "array", "items": INTEGER}, [1], [1]),
        (set[str], {"type": "array", "items": STRING, "uniqueItems": True}, ["a"], {"a"}),
        (AbstractSet[str], {"type": "array", "items": STRING, "uniqueItems": True}, ["a"], {"a"}),
        (frozenset[int], {"type": "array", "items": INTEGER, "uniqueItems": True}, [1], frozenset({1})),
        (
            set[dt.date],
            {"type": "array", "items": {"type": "string", "format": "date"}, "uniqueItems": True},
            ["2026-01-31"],
            {dt.date(2026, 1, 31)},
        ),
        (tuple, {"type": "array", "items": {}}, [1, "a"], (1, "a")),
        (tuple[int, ...], {"type": "array", "items": INTEGER}, [1, 2], (1, 2)),
        (
            tuple[int, dt.date],
            {
                "type": "array",
                "prefixItems": [INTEGER, {"type": "string", "format": "date"}],
                "items": False,
                "minItems": 2,
                "maxItems": 2,
            },
            [1, "2026-01-31"],
            (1, dt.date(2026, 1, 31)),
        ),
        (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}, [], ()),
        (collections.deque[int], {"type": "array", "items": INTEGER}, [1], collections.deque([1])),
        (dict, {"type": "object"}, {"a": 1}, {"a": 1}),
        (dict[str, int], {"type": "object", "additionalProperties": INTEGER}, {"a": 1}, {"a": 1}),
        (
            Mapping[str, list[int]],
            {"type": "object", "additionalProperties": {"type": "array", "items": INTEGER}},
            {"a": [1]},
            {"a": [1]},
        ),
        (
            dict[int, str],
            {"type": "object", "propertyNames": {"pattern": r"^-?(0|[1-9]\d*)$"}, "additionalProperties": STRING},
            {"1": "a"},
            {1: "a"},
        ),
        (
            dict[Color, int],
            {"type": "object", "propertyNames": {"enum": ["red", "blue"]}, "additionalProperties": INTEGER},
            {"red": 1},
            {Color.RED: 1},
        ),
        (
            dict[uuid.UUID, int],
            {"type": "object", "propertyNames": {"format": "uuid"}, "additionalProperties": INTEGER},
            {str(uuid.UUID(int=7)): 1},
            {uuid.UUID(int=7): 1},
        ),
        (collections.Counter, {"type": "object", "additionalProperties": INTEGER}, {"a": 2}, collections.Counter("aa")),
        (
            collections.OrderedDict[str, int],
            {"type": "object", "additionalProperties": INTEGER},
            {"a": 2},
            collections.OrderedDict(a=2),
        ),
        (Optional[int], {"anyOf": [INTEGER, {"type": "null"}]}, None, None),  # noqa: UP045
        (int | None, {"anyOf": [INTEGER, {"type": "null"}]}, 3, 3),
        (int | str, {"anyOf": [INTEGER, STRING]}, "3", "3"),
        (int | float, {"anyOf": [INTEGER, {"type": "number"}]}, 2.5, 2.5),
        (
            Union[str, None, list[str]],  # noqa: UP007
            {"anyOf": [STRING, {"type": "null"}, {"type": "array", "items": STRING}]},
            ["a"],
            ["a"],
        ),
        (dt.date | int, {"anyOf": [{"type": "string", "format": "date"}, INTEGER]}, "2026-01-31", dt.date(2026, 1, 31)),
        (UserId, INTEGER, 3, 3),
        (Percent, {"type": "integer", "minimum": 0, "maximum": 100}, 3, 3),
        (Slug, STRING, "a", Slug("a")),
        (typing.AnyStr, STRING, "a", "a"),
        (typing.Final[int], INTEGER, 3, 3),
    ],
    ids=repr,
)
def test_a_type_publishes_what_it_says_and_reads_what_it_publishes(annotation, schema, sent, made):
    assert schema_of(annotation) == schema
    result = read(annotation, sent)
    assert result == made
    assert type(result) is type(made)


@pytest.mark.parametrize(
    ("annotation", "sent", "expected"),
    [
        (dt.datetime, "tomorrow", "a date and time such as"),
        (dt.date, "31.1.2026", "a date such as"),
        (dt.time, "half past nine", "a time such as"),
        (dt.timedelta, "P1Y", "a duration in weeks"),
        (dt.timedelta, "P", "a duration in weeks"),
        (dt.timedelta, "P999999999999D", "too long"),
        (uuid.UUID, "x", "a UUID"),
        (Decimal, "NaN", "a finite number"),
        (ipaddress.IPv4Address, "10.0.0.256", "an IPv4 address"),
        (re.Pattern, "(", "a regular expression"),
        (zoneinfo.ZoneInfo, "Mars/Base", "a time zone"),
        (bytes, "!", "base64"),
        (Color, "green", 'one of "red", "blue"'),
        (Literal["a"], "b", '"a"'),
        (tuple[int, int], [1], "at least 2 items"),
        (dict[int, str], {"a": "b"}, "x"),
        (dict[Color, int], {"green": 1}, "x"),
    ],
    ids=repr,
)
def test_what_is_none_of_its_type_is_refused_in_words(annotation, sent, expected):
    with pytest.raises(ArgumentsInvalid) as caught:
        read(annotation, sent)
    assert expected in str(caught.value)
    assert caught.value.errors[0].path.startswith("/x")


def test_decimals_keep_every_digit():
    digits = "0.1234567890123456789012345678901"
    assert schema_of(Decimal)["anyOf"][0] == {"type": "number"}
    (made,) = compiled(Decimal).decode(f'{{"x":{digits}}}'.encode())
    assert made == Decimal(digits)
    assert read(Decimal, digits) == Decimal(digits)
    assert output_schema_of(Decimal)["type"] == "string"


def test_an_enum_is_refused_where_json_cannot_say_it():
    class Bits(enum.Flag):
        A = 1

    class Empty(enum.Enum):
        pass

    for wrong in (Bits, Empty, Literal[b"a"], Literal[1.5]):
        with pytest.raises(DefinitionError):
            compiled(wrong)


# --- records


@dataclass
class Point:
    """A point.

    Attributes:
        x: From the left.
        y: From the top.
    """

    x: int
    y: float = 0.5
    tags: list[str] = field(default_factory=list)
    kind: ClassVar[str] = "point"
    computed: int = field(init=False, default=7)
    scale: InitVar[int] = 1

    def __post_init__(self, scale: int) -> None:
        if self.x < 0:
            raise ValueError("x is left of the margin")
        self.x *= scale


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Series(Movie, total=False):
    seasons: Required[int]
    over: bool


class Pair(NamedTuple):
    first: int
    second: str = "b"


class Cat(msgspec.Struct, tag="cat", rename="camel"):
    lives_left: int = 9


class Dog(msgspec.Struct, tag="dog", kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=2)]


@attrs.define
class Seat:
    row: int = attrs.field(validator=attrs.validators.ge(1))
    _note: str = "none"
    label: str = attrs.field(init=False, default="seat")


@dataclass
class Box(Generic[T]):
    item: T
    more: list[T] = field(default_factory=list)


@dataclass
class IntBox(Box[int]):
    size: int = 1


@dataclass
class Tree:
    value: int
    children: list[Tree] = field(default_factory=list)
    parent: Tree | None = None


def test_a_dataclass_is_a_closed_object_with_texts_from_its_docstring():
    assert schema_of(Point) == {
        "type": "object",
        "description": "A point.",
        "properties": {
            "x": {"type": "integer", "description": "From the left."},
            "y": {"type": "number", "description": "From the top.", "default": 0.5},
            "tags": {"type": "array", "items": STRING},
            "scale": {"type": "integer", "default": 1},
        },
        "required": ["x"],
        "additionalProperties": False,
    }
    assert read(Point, {"x": 2, "scale": 3}) == Point(6)
    assert "description" not in schema_of(Box[int])  # what `dataclass` writes as a docstring is none


def test_as_output_it_has_what_the_instance_has_and_is_open():
    assert output_schema_of(Point) == {
        "type": "object",
        "description": "A point.",
        "properties": {
            "x": {"type": "integer", "description": "From the left."},
            "y": {"type": "number", "description": "From the top."},
            "tags": {"type": "array", "items": STRING},
            "computed": INTEGER,
        },
        "required": ["x", "y", "tags", "computed"],
    }


def test_what_a_constructor_refuses_is_told_with_its_place():
    with pytest.raises(ArgumentsInvalid, match=r"- x\[1\].inner: x is left of the margin"):
        read(list[dict[str, Point]], [{"inner": {"x": 1}}, {"inner": {"x": -1}}])
    with pytest.raises(ArgumentsInvalid, match=r"- x: .*must be >= 1"):
        read(Seat, {"row": 0})


@pytest.mark.parametrize(
    ("annotation", "properties", "required", "sent", "made"),
    [
        (Movie, {"title": STRING, "year": INTEGER}, ["title"], {"title": "a"}, {"title": "a"}),
        (
            Series,
            {"title": STRING, "year": INTEGER, "seasons": INTEGER, "over": {"type": "boolean"}},
            ["title", "seasons"],
            {"title": "a", "seasons": 3},
            {"title": "a", "seasons": 3},
        ),
        (Pair, {"first": INTEGER, "second": {"type": "string", "default": "b"}}, ["first"], {"first": 1}, Pair(1)),
        (
            Cat,
            {"type": {"type": "string", "enum": ["cat"]}, "livesLeft": {"type": "integer", "default": 9}},
            ["type"],
            {"type": "cat", "livesLeft": 8},
            Cat(8),
        ),
        (Seat, {"row": INTEGER, "_note": {"type": "string", "default": "none"}}, ["row"], {"row": 2}, Seat(2)),
        (Box[int], {"item": INTEGER, "more": {"type": "array", "items": INTEGER}}, ["item"], {"item": 1}, Box(1)),
        (
            IntBox,
            {"item": INTEGER, "more": {"type": "array", "items": INTEGER}, "size": {"type": "integer", "default": 1}},
            ["item"],
            {"item": 1},
            IntBox(1),
        ),
        (Box, {"item": {}, "more": {"type": "array", "items": {}}}, ["item"], {"item": None}, Box(None)),
    ],
    ids=repr,
)
def test_records_of_every_flavor(annotation, properties, required, sent, made):
    schema = schema_of(annotation)
    assert schema["properties"] == properties
    assert schema["required"] == required
    assert schema["additionalProperties"] is False
    assert read(annotation, sent) == made
    with pytest.raises(ArgumentsInvalid, match="surplus"):
        read(annotation, {**sent, "surplus": 1})


def test_a_typed_dict_that_is_postponed_is_read_like_one_that_is_not():
    class Inner(TypedDict, total=False):
        must: Required[Annotated[int, Schema("Needed")]]
        may: NotRequired[str]

    class Backport(typing_extensions.TypedDict):
        must: int
        may: typing_extensions.NotRequired[typing_extensions.ReadOnly[str]]

    for annotation in (Inner, Backport):
        schema = schema_of(annotation)
        assert schema["required"] == ["must"]
        assert set(schema["properties"]) == {"must", "may"}
        assert read(annotation, {"must": 1}) == {"must": 1}


def test_nested_unknown_keys_are_refused_with_a_suggestion():
    with pytest.raises(ArgumentsInvalid) as caught:
        read(list[Movie], [{"title": "a", "yaer": 1999}])
    assert "did you mean 'year'" in str(caught.value)
    assert caught.value.errors[0].path == "/x/0/yaer"


def test_unions_of_records_are_read_by_what_fits():
    schema = schema_of(Cat | Dog)
    assert [option["properties"]["type"]["enum"] for option in schema["anyOf"]] == [["cat"], ["dog"]]
    assert read(Cat | Dog, {"type": "dog", "name": "Rex"}) == Dog(name="Rex")
    assert read(Movie | Pair | None, {"first": "3"}) == Pair(3)
    assert read(Movie | Pair | None, None) is None
    with pytest.raises(ArgumentsInvalid, match=r"x.name: expected a string of at least 2 characters"):
        read(Cat | Dog, {"type": "dog", "name": "R"})
    with pytest.raises(ArgumentsInvalid, match="x"):
        read(Cat | Dog, 3)


def test_recursive_types_are_referred_to():
    schema = compiled(Tree).input_schema
    assert schema["properties"]["x"] == {"$ref": "#/$defs/Tree"}
    assert schema["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    made = read(Tree, {"value": 1, "children": [{"value": "2"}], "parent": {"value": 3}})
    assert made == Tree(1, [Tree(2)], Tree(3))
    with pytest.raises(ArgumentsInvalid) as caught:
        read(Tree, {"value": 1, "children": [{"value": 2, "children": [{"valu": 3}]}]})
    assert {error.path for error in caught.value.errors} == {
        "/x/children/0/children/0/valu",
        "/x/children/0/children/0/value",
    }


def test_the_root_of_an_output_schema_is_written_out_even_if_it_contains_itself():
    schema = output_schema_of(Tree)
    assert schema["type"] == "object"
    assert schema["properties"]["parent"]["anyOf"][0] == {"$ref": "#/$defs/Tree"}


def test_a_type_used_once_is_written_in_place_and_a_type_used_twice_is_referred_to():
    def handler(a: Pair, b: Pair, c: Movie): ...

    schema = compile_call(handler).input_schema
    assert schema["properties"]["a"] == schema["properties"]["b"] == {"$ref": "#/$defs/Pair"}
    assert schema["properties"]["c"]["type"] == "object"
    assert list(schema["$defs"]) == ["Pair"]


def test_two_classes_of_one_name_have_two_definitions():
    first, second = make_dataclass("Same", [("value", int)]), make_dataclass("Same", [("value", str)])

    def handler(a: list[Any], b: list[Any], c: Any, d: Any): ...

    handler.__annotations__.update(a=first, b=second, c=first, d=second)
    defs = compile_call(handler).input_schema["$defs"]
    assert {name: body["properties"]["value"]["type"] for name, body in defs.items()} == {
        "Same": "integer",
        "Same2": "string",
    }


def test_aliases_with_a_name_are_followed_and_may_contain_themselves():
    Json = typing_extensions.TypeAliasType("Json", "str | int | list[Json] | dict[str, Json] | None")  # noqa: N806
    Listed = typing_extensions.TypeAliasType("Listed", list[T], type_params=(T,))  # noqa: N806
    globals()["Json"] = Json
    try:
        schema = compiled(Json).input_schema
        assert schema["properties"]["x"] == {"$ref": "#/$defs/Json"}
        assert read(Json, {"a": [1, "b", None, {"c": []}]}) == {"a": [1, "b", None, {"c": []}]}
        with pytest.raises(ArgumentsInvalid, match="x"):
            read(Json, {"a": [1.5]})
    finally:
        del globals()["Json"]
    assert schema_of(Listed[int]) == {"type": "array", "items": INTEGER}


def test_type_variables_are_their_bound_their_constraints_or_anything():
    Bound = TypeVar("Bound", bound=int)
    Constrained = TypeVar("Constrained", int, str)
    Defaulted = typing_extensions.TypeVar("Defaulted", default=str)
    assert schema_of(T) == {}
    assert schema_of(Bound) == INTEGER
    assert schema_of(Constrained) == {"anyOf": [INTEGER, STRING]}
    assert schema_of(Defaulted) == STRING


def test_a_union_with_anything_is_anything():
    assert schema_of(Any | None) == {}
    assert read(Any | None, None) is None


class Patch(msgspec.Struct):
    name: str | msgspec.UnsetType | None = msgspec.UNSET


def test_a_field_that_may_be_left_out_is_no_type_of_its_own():
    assert schema_of(Patch)["properties"] == {"name": {"anyOf": [STRING, {"type": "null"}]}}
    assert read(Patch, {}) == Patch()
    assert read(Patch, {"name": None}) == Patch(None)


def test_metadata_that_cannot_be_hashed_is_metadata_all_the_same():
    one = Annotated[int, Schema(enum=[1])]
    assert schema_of(Box[one])["properties"]["item"] == {"type": "integer", "enum": [1]}
    assert read(Box[one] | None, {"item": 1}) == Box(1)
    assert read(Box[Annotated[int, {"of": "others"}]], {"item": 1}) == Box(1)
    with pytest.raises(ArgumentsInvalid, match=r"x.item: expected 1"):
        read(Box[one], {"item": 2})


def test_an_error_in_a_field_names_the_field_and_its_class():
    @dataclass
    class Holder:
        inner: complex

    with pytest.raises(DefinitionError, match=r"parameter 'x': in field 'inner' of .*Holder: the type complex"):
        compiled(Holder)


# --- what is added to a type


@pytest.mark.parametrize(
    ("annotation", "schema", "good", "bad"),
    [
        (
            Annotated[int, Schema("How many", minimum=1)],
            {"type": "integer", "description": "How many", "minimum": 1},
            [1],
            [0],
        ),
        (Annotated[int, "How many"], {"type": "integer", "description": "How many"}, [1], []),
        (Annotated[int, typing_extensions.Doc("How many")], {"type": "integer", "description": "How many"}, [1], []),
        (
            Annotated[int, annotated_types.Ge(1), annotated_types.Lt(9)],
            {"type": "integer", "minimum": 1, "exclusiveMaximum": 9},
            [1, 8.0],
            [0, 9],
        ),
        (
            Annotated[int, annotated_types.Interval(gt=0, le=4)],
            {"type": "integer", "exclusiveMinimum": 0, "maximum": 4},
            [1, 4],
            [0, 5],
        ),
        (Annotated[int, annotated_types.MultipleOf(3)], {"type": "integer", "multipleOf": 3}, [9], [10]),
        (Annotated[float, annotated_types.MultipleOf(0.1)], {"type": "number", "multipleOf": 0.1}, [0.3], [0.35]),
        (Annotated[int, annotated_types.Ge(2**70)], {"type": "integer", "minimum": 2**70}, [2**71], [1]),
        (Annotated[int, annotated_types.Ge(0.5)], {"type": "integer", "minimum": 0.5}, [1], [0]),
        (
            Annotated[list[int], annotated_types.Len(1, 2)],
            {"type": "array", "items": INTEGER, "minItems": 1, "maxItems": 2},
            [[1]],
            [[], [1, 2, 3]],
        ),
        (Annotated[str, annotated_types.MinLen(2)], {"type": "string", "minLength": 2}, ["ab", "😀😀"], ["a", "😀"]),
        (
            Annotated[dict[str, int], annotated_types.MaxLen(1)],
            {"type": "object", "additionalProperties": INTEGER, "maxProperties": 1},
            [{"a": 1}],
            [{"a": 1, "b": 2}],
        ),
        (
            Annotated[bytes, annotated_types.MinLen(2)],
            {"type": "string", "contentEncoding": "base64"},
            ["aGk="],
            ["aA=="],
        ),
        (
            Annotated[dt.date, annotated_types.Ge(dt.date(2026, 1, 1))],
            {"type": "string", "format": "date"},
            ["2026-01-31"],
            ["2025-01-31"],
        ),
        (
            Annotated[dt.datetime, annotated_types.Timezone(...)],
            {"type": "string", "format": "date-time"},
            ["2026-01-31T00:00:00Z"],
            ["2026-01-31T00:00:00"],
        ),
        (Annotated[str, annotated_types.Predicate(str.islower)], STRING, ["a"], ["A"]),
        (Annotated[int, annotated_types.Predicate(lambda value: 1 / value > 0)], INTEGER, [1], [-1, 0]),
        (Annotated[int, annotated_types.doc("How many")], {"type": "integer", "description": "How many"}, [1], []),
        (Annotated[bytes, annotated_types.MaxLen(1)], BASE64, ["aA=="], ["aGk="]),
        (Annotated[dt.datetime, msgspec.Meta(tz=False)], DATE_TIME, ["1999-12-31T00:00:00"], ["1999-12-31T00:00:00Z"]),
        (Annotated[dt.datetime, annotated_types.Timezone(None)], DATE_TIME, ["1999-12-31"], ["1999-12-31T00:00:00Z"]),
        (Annotated[str, annotated_types.Predicate(annotated_types.Not(str.islower))], STRING, ["A"], ["a"]),
        (
            Annotated[str, msgspec.Meta(pattern="^a$", description="d")],
            {"type": "string", "pattern": "^a$", "description": "d"},
            ["a"],
            ["b", "a\n"],
        ),
        (
            Annotated[int, msgspec.Meta(ge=3, title="T", examples=[4], extra_json_schema={"x-y": 1})],
            {"type": "integer", "minimum": 3, "title": "T", "examples": [4], "x-y": 1},
            [3],
            [2],
        ),
        (Annotated[str, Schema(format=Format.EMAIL)], {"type": "string", "format": "email"}, ["a@b.de"], ["a"]),
        (Annotated[str, Schema(enum=["a", "b"])], {"type": "string", "enum": ["a", "b"]}, ["a"], ["c"]),
        (
            Annotated[list[str], Schema(unique_items=True, items=Schema(min_length=1))],
            {"type": "array", "items": {"minLength": 1}, "uniqueItems": True},
            [["a"]],
            [["a", "a"], [""]],
        ),
        (
            Annotated[str | None, Schema(min_length=3)],
            {"anyOf": [{"type": "string", "minLength": 3}, {"type": "null"}]},
            [None, "abc"],
            ["ab"],
        ),
        (
            Annotated[int | str, annotated_types.Ge(3)],
            {"anyOf": [{"type": "integer", "minimum": 3}, STRING]},
            [3, "a"],
            [2],
        ),
        (
            list[Annotated[int, annotated_types.Gt(0)]],
            {"type": "array", "items": {"type": "integer", "exclusiveMinimum": 0}},
            [[1]],
            [[1, 0]],
        ),
        (
            Annotated[Annotated[int, annotated_types.Ge(1)], annotated_types.Le(3)],
            {"type": "integer", "minimum": 1, "maximum": 3},
            [1, 3],
            [0, 4],
        ),
        (
            Annotated[Percent, annotated_types.Le(200)],
            {"type": "integer", "minimum": 0, "maximum": 200, "allOf": [{"maximum": 100}]},
            [100],
            [150],
        ),
        (
            Annotated[Decimal, annotated_types.Ge(1)],
            {
                "anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^-?\d+(\.\d+)?([eE][+-]?\d+)?$"}],
                "minimum": 1,
            },
            [1, "1.5"],
            [0, "0.5"],
        ),
        (
            Annotated[dict, Schema(properties={"a": Schema(type="integer")}, required=["a"])],
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            [{"a": 1}],
            [{}, {"a": "x"}],
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_every_constraint_that_is_stated_is_published_and_enforced(annotation, schema, good, bad):
    if schema is not None:
        assert schema_of(annotation) == schema
    for value in good:
        read(annotation, value)
    for value in bad:
        with pytest.raises(ArgumentsInvalid):
            read(annotation, value)


def test_other_keys_are_welcome_where_the_schema_says_so():
    free = Annotated[Movie, Schema(additional_properties=True)]
    assert schema_of(free)["additionalProperties"] is True
    assert read(free, {"title": "a", "more": [1]}) == {"title": "a", "more": [1]}
    typed = Annotated[Pair | None, Schema("A pair", additional_properties={"type": "integer"})]
    assert read(Annotated[Pair, Schema(additional_properties={"type": "integer"})], {"first": 1, "n": 2}) == Pair(1)
    assert read(typed, None) is None
    assert read(typed, {"first": 1, "n": 2}) == Pair(1)
    with pytest.raises(ArgumentsInvalid, match=r"x.n: expected an integer"):
        read(Annotated[Pair, Schema(additional_properties={"type": "integer"})], {"first": 1, "n": "x"})
    with pytest.raises(ArgumentsInvalid, match=r"x.n: there is no such argument"):
        read(Annotated[Pair, Schema(additional_properties=False)], {"first": 1, "n": 2})


def test_constraints_on_fields_are_enforced_too():
    @dataclass
    class Order:
        count: Annotated[int, annotated_types.Ge(1), Schema("How many")]
        code: Annotated[str, Schema(pattern="^[A-Z]+$")] = "A"

    assert schema_of(Order)["properties"] == {
        "count": {"type": "integer", "minimum": 1, "description": "How many"},
        "code": {"type": "string", "pattern": "^[A-Z]+$", "default": "A"},
    }
    with pytest.raises(ArgumentsInvalid) as caught:
        read(list[Order], [{"count": 0, "code": "a"}])
    assert {error.path for error in caught.value.errors} == {"/x/0/count", "/x/0/code"}


def test_a_definition_replaces_what_the_type_says_and_keeps_the_default():
    def handler(x: Annotated[dict, Schema(definition={"type": "object", "minProperties": 1})] = {"a": 1}): ...  # noqa: B006 - as users write it

    made = compile_call(handler)
    assert made.input_schema["properties"]["x"] == {"type": "object", "minProperties": 1, "default": {"a": 1}}
    with pytest.raises(ArgumentsInvalid, match="at least 1 properties"):
        made.decode(b'{"x":{}}')


def test_with_a_definition_any_type_will_do_and_json_comes_as_it_is():
    class Shape: ...

    assert read(Annotated[Shape, Schema(definition={"type": "array"})], [1]) == [1]


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (Annotated[list[int], Schema(min_length=1)], "minLength says nothing"),
        (Annotated[str, annotated_types.Ge(1)], "minimum says nothing"),
        (Annotated[str, Schema(pattern="(")], "no valid JSON Schema"),
        (Annotated[str, Schema(exclusive_minimum=True)], "the bound itself"),
        (Annotated[str, Schema(default=object())], "no JSON form"),
        (Annotated[str, Schema(definition={"$ref": "https://example.com/schema"})], "valid JSON Schema"),
    ],
)
def test_what_could_never_be_enforced_is_an_error_at_decoration(annotation, reason):
    with pytest.raises(DefinitionError, match=reason):
        compiled(annotation)


def test_keywords_are_json_however_they_were_written():
    schema = Schema("d", enum=(Color.RED, 1), items=Schema(format=Format.URI), extra={"if": {"const": None}})
    assert schema.keywords() == {
        "description": "d",
        "enum": ["red", 1],
        "items": {"format": "uri"},
        "if": {"const": None},
    }
    assert Schema(const=None, default=None).keywords() == {"const": None, "default": None}
