"""Structured content always is what was published, and the text beside it says the same."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import json
import pathlib
import re
import types
import uuid
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Never, TypedDict

import attrs
import jsonschema
import msgspec
import pytest
import typing_extensions
from msgspec import UNSET

from mcprelay.errors import DefinitionError
from mcprelay.server.encoding import ResultInvalid
from mcprelay.server.file import File
from mcprelay.server.output import Output
from mcprelay.server.schema import Schema
from mcprelay.server.signature import compile_call
from mcprelay.types import Image, InputRequiredResult, Text, ToolResult


def output_of(annotation: Any, **options: Any) -> Output:
    def handler(): ...

    handler.__annotations__["return"] = annotation
    return compile_call(handler, **options).output


def structured(annotation: Any, value: Any) -> Any:
    """What is sent for a value; checks that it is what was published, and that the text is its JSON."""
    output = output_of(annotation)
    result = output.result(value)
    assert isinstance(result, ToolResult)
    sent = msgspec.json.decode(result.structured_content)
    jsonschema.validate(sent, output.schema, format_checker=jsonschema.FormatChecker())
    (text,) = result.content
    if isinstance(value, str):
        assert text.text == value == sent
    else:
        assert json.loads(text.text) == sent
    return sent


class Color(enum.Enum):
    RED = "red"


class Mixed(enum.Enum):
    PAIR = (1, 2)


@dataclass
class Point:
    x: int
    y: float = 0.5
    at: dt.datetime | None = None


@dataclass
class Labelled(Point):
    label: str = "l"


@dataclass
class Computed:
    x: Annotated[int, Schema(alias="X")]
    double: int = field(init=False)
    fixed: int = field(init=False, default=7)

    def __post_init__(self) -> None:
        self.double = self.x * 2


class Pair(NamedTuple):
    first: int
    second: Color = Color.RED


class Movie(TypedDict, total=False):
    title: str


class Cat(msgspec.Struct, tag="cat", rename="camel", omit_defaults=True):
    lives_left: int = 9


@attrs.define
class Seat:
    row: int
    _note: str = "n"


@dataclass
class Tree:
    value: int
    children: list[Tree] = field(default_factory=list)


class Slug(str):  # noqa: SLOT000 - as users write it
    pass


@attrs.define
class Scribble:
    row: int
    label: str = attrs.field(init=False, default=attrs.Factory(lambda self: "seat", takes_self=True))


Marks = typing_extensions.TypeAliasType("Marks", "Mixed | list[Marks]")

AWARE = dt.datetime(2026, 1, 31, 9, 30, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("annotation", "value", "sent"),
    [
        (str, "a", "a"),
        (int, 10**30, 10**30),
        (float, 2.5, 2.5),
        (float, 2, 2),
        (bool, True, True),
        (int | None, None, None),
        (list[int], [1, 2], [1, 2]),
        (list[int], (1, 2), [1, 2]),
        (Sequence[int], range(2), [0, 1]),
        (set[int], {1}, [1]),
        (tuple[int, str], (1, "a"), [1, "a"]),
        (collections.deque[int], collections.deque([1]), [1]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict[int, int], {1: 1}, {"1": 1}),
        (dict[Color, int], {Color.RED: 1}, {"red": 1}),
        (dict[str, dt.datetime], {"a": AWARE}, {"a": "2026-01-31T09:30:00Z"}),
        (dict, {"a": [1, None]}, {"a": [1, None]}),
        (dt.date, dt.date(2026, 1, 31), "2026-01-31"),
        (dt.time, dt.time(9, 30), "09:30:00"),
        (dt.timedelta, dt.timedelta(seconds=0.5), "PT0.5S"),
        (dt.timedelta, -dt.timedelta(days=1), "-P1D"),
        (dt.timedelta, dt.timedelta(0), "P0D"),
        (uuid.UUID, uuid.UUID(int=7), str(uuid.UUID(int=7))),
        (Decimal, Decimal("1.50"), "1.50"),
        (Decimal, Decimal("1E+5"), "1E+5"),
        (Color, Color.RED, "red"),
        (Mixed, Mixed.PAIR, "PAIR"),
        (Literal["a", 1], 1, 1),
        (Point, Point(1), {"x": 1, "y": 0.5, "at": None}),
        (Point | None, None, None),
        (Point | list[Point], [Point(1, at=AWARE)], [{"x": 1, "y": 0.5, "at": "2026-01-31T09:30:00Z"}]),
        (Point, Labelled(1), {"x": 1, "y": 0.5, "at": None, "label": "l"}),
        (Point, {"x": 1}, {"x": 1, "y": 0.5, "at": None}),
        (list[Point], [Point(1), {"x": 2, "y": 1}], [{"x": 1, "y": 0.5, "at": None}, {"x": 2, "y": 1, "at": None}]),
        (Computed, Computed(2), {"X": 2, "double": 4, "fixed": 7}),
        (Pair, Pair(1), {"first": 1, "second": "red"}),
        (dict[str, Pair], {"a": Pair(1)}, {"a": {"first": 1, "second": "red"}}),
        (Movie, {"title": "a"}, {"title": "a"}),
        (Movie, {"title": "a", "extra": 1}, {"title": "a", "extra": 1}),
        (Cat, Cat(), {"type": "cat"}),
        (Cat, Cat(8), {"type": "cat", "livesLeft": 8}),
        (Cat | Point, Point(1), {"x": 1, "y": 0.5, "at": None}),
        (Seat, Seat(1), {"row": 1, "_note": "n"}),
        (Tree, Tree(1, [Tree(2)]), {"value": 1, "children": [{"value": 2, "children": []}]}),
        (Slug, Slug("a"), "a"),
        (dict[str, bytes], {"a": b"hi"}, {"a": "aGk="}),
        (dict[str, pathlib.Path], {"a": pathlib.Path("b")}, {"a": "b"}),
        (
            dict[str, Any],
            {"a": pathlib.Path("b"), "b": Pair(1), "c": Color.RED},
            {"a": "b", "b": [1, "red"], "c": "red"},
        ),
        (Annotated[int, Schema("How many", minimum=1)], 3, 3),
        (Annotated[str, Schema(pattern="^a")], "ab", "ab"),
        (Awaitable[int], 3, 3),
        (Iterable[int], iter([1, 2]), [1, 2]),
        (Mapping[str, int], types.MappingProxyType({"a": 1}), {"a": 1}),
        (dict[str, Any], {"a": types.MappingProxyType({"b": 1}), "c": {1: 2}.keys()}, {"a": {"b": 1}, "c": [1]}),
        (dict[str, Any], {"a": Slug("b"), "c": re.compile("d")}, {"a": "b", "c": "d"}),
        (Decimal | Point, Decimal("1.5"), "1.5"),
        (Marks, [Mixed.PAIR, [Mixed.PAIR]], ["PAIR", ["PAIR"]]),
        (Scribble, Scribble(1), {"row": 1, "label": "seat"}),
    ],
    ids=repr,
)
def test_what_is_sent_is_what_was_published(annotation, value, sent):
    assert structured(annotation, value) == sent


def test_a_time_without_an_offset_is_local_time_as_python_says():
    naive = dt.datetime(2026, 1, 31, 9, 30)  # noqa: DTZ001 - the point
    assert dt.datetime.fromisoformat(structured(dt.datetime, naive)) == naive.astimezone()
    sent = structured(Point, Point(1, at=naive))
    assert dt.datetime.fromisoformat(sent["at"]) == naive.astimezone()


@pytest.mark.parametrize(
    ("annotation", "value", "where"),
    [
        (int, "a", "the result: expected an integer"),
        (int, 2.5, "the result: expected an integer"),
        (int, None, "the result: expected an integer, got null"),
        (float, float("nan"), "finite"),
        (float | None, float("inf"), "finite"),
        (list[float], [1.0, float("nan")], r"\[1\]: is a number that is not finite"),
        (dict[str, Any], {"a": [{"b": float("-inf")}]}, r"a\[0\].b: is a number that is not finite"),
        (Point, Point(1, y=float("nan")), "y: is a number that is not finite"),
        (Point, Point("x"), "x: expected an integer"),
        (Point, {"y": 1}, "x: is missing"),
        (list[Point], [Point(1), Point(2, y="z")], r"\[1\].y: expected a number"),
        (Decimal, Decimal("NaN"), "finite"),
        (dict[str, Decimal], {"a": Decimal("Infinity")}, "finite"),
        (Annotated[int, Schema(minimum=1)], 0, "at least 1"),
        (Annotated[str, Schema(pattern="^a")], "b", "matches"),
        (Literal["a"], "b", '"a"'),
        (dict[str, Any], {"a": object()}, "object objects are not JSON"),
        (dict[str, Any], {"a": 1j}, "complex objects are not JSON"),
        (dict[str, Any], {(1, 2): 3}, "JSON"),
        (str, "\ud800", "JSON"),
        (Cat | Point, 3, "expected an object"),
        (Iterable[int], iter([1, "x"]), r"\[1\]: expected an integer"),
        (dict[str, list[int]], {"a": iter([1])}, "only once"),
        (dict[str, Any], {"a": Cat(float("nan"))}, "a.lives_left: is a number"),
        (dict[str, Any], {"a": Seat(float("nan"))}, "a.row: is a number"),
        (Tree, Tree(1, [Tree("x")]), r"children\[0\].value: expected an integer"),
    ],
    ids=repr,
)
def test_what_was_not_published_is_an_error_that_names_the_place(annotation, value, where):
    with pytest.raises(ResultInvalid, match=where):
        output_of(annotation).result(value)


def test_a_value_that_contains_itself_is_an_error():
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ResultInvalid, match="contains itself"):
        output_of(list).result(loop)


@pytest.mark.parametrize(
    "annotation",
    [
        Any,
        object,
        Never,
        None,
        Text,
        Image,
        File,
        bytes,
        pathlib.Path,
        ToolResult,
        list[Image],
        list[str | Image],
        str | Image,
        Image | None,
        tuple[str, Image],
        Iterator[str],
        AsyncIterator[Text],
        Annotated[Image, "picture"],
        "Iterator[Text]",
    ],
    ids=repr,
)
def test_content_and_nothing_publish_no_schema(annotation):
    assert output_of(annotation).schema is None


def test_no_annotation_and_generators_publish_no_schema():
    def plain(): ...

    def generator() -> int:  # mistaken, and a generator all the same
        yield 1

    assert compile_call(plain).output_schema is None
    assert compile_call(generator).output_schema is None


def test_none_of_a_function_that_returns_nothing_is_no_content_and_any_other_none_says_so():
    def nothing() -> None: ...

    def anything(): ...

    assert compile_call(nothing).output.result(None) == ToolResult(content=())
    assert compile_call(anything).output.result(None) == ToolResult(content=(Text("(null)"),))
    assert output_of(int | None).result(None).content == (Text("null"),)


def test_the_docstring_describes_the_output_unless_the_annotation_does():
    def first() -> int:
        """F.

        Returns:
            The sum.
        """

    def second() -> Annotated[int, "Said here"]:
        """F.

        Returns:
            The sum.
        """

    assert compile_call(first).output_schema == {"type": "integer", "description": "The sum."}
    assert compile_call(second).output_schema == {"type": "integer", "description": "Said here"}


def test_a_schema_can_be_given_or_taken_away():
    schema = {"type": "object", "properties": {"mode": {"type": "string"}}, "required": ["mode"]}
    given = output_of(dict[str, Any], output_schema=schema)
    assert given.schema == schema
    assert msgspec.json.decode(given.result({"mode": "a", "b": 1}).structured_content) == {"mode": "a", "b": 1}
    with pytest.raises(ResultInvalid, match="mode: is missing"):
        given.result({})
    assert output_of(int, output_schema=None).schema is None
    with pytest.raises(DefinitionError, match="its result"):
        output_of(int, output_schema={"type": "no such type"})


def test_a_result_made_by_the_handler_is_held_against_the_schema_too():
    output = output_of(int)
    good = ToolResult(content=(Text("three"),), structured_content=3)
    assert output.result(good) is good
    failed = ToolResult(content=(Text("no"),), is_error=True)
    assert output.result(failed) is failed
    asked = InputRequiredResult(request_state="s")
    assert output.result(asked) is asked
    with pytest.raises(ResultInvalid, match="expected an integer"):
        output.result(ToolResult(content=(), structured_content="x"))
    with pytest.raises(ResultInvalid, match="structured_content"):
        output.result(ToolResult(content=(Text("three"),)))
    free = output_of(ToolResult)
    assert free.result(ToolResult(content=())).structured_content is UNSET


def test_a_header_is_no_matter_of_results():
    assert output_of(Annotated[int, Schema(header="X")]).schema == {"type": "integer"}


def test_a_result_without_json_form_is_refused_at_decoration():
    with pytest.raises(DefinitionError, match="its result: the type complex"):
        output_of(complex)
