"""Values that come wrapped where structured content is an object: a declared type undoes that, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest
from msgspec import UNSET, Raw
from pydantic import BaseModel, RootModel

from mcprelay.client.answer import ToolAnswer
from mcprelay.client.output import typed
from mcprelay.types import Text


@dataclass
class Lenient:
    a: int = 0


class Model(BaseModel):
    a: int = 0


class Root(RootModel[dict[str, int]]):
    pass


class Typed(TypedDict, total=False):
    result: dict[str, int]


class Pair(NamedTuple):
    one: int
    two: int


class Row(msgspec.Struct, array_like=True):
    one: int


class Color(Enum):
    RED = "red"


def value(structured: Any, kind: Any, *, wraps: bool = True, text: str = "") -> Any:
    raw = UNSET if structured is UNSET else Raw(msgspec.json.encode(structured))
    return typed(ToolAnswer(content=(Text(text),), structured=raw), kind, wraps=wraps)


OBJECT = {"result": {"a": 1}}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Lenient, Lenient(0)),
        (Model, Model(a=0)),
        (Annotated[Lenient, "remark"], Lenient(0)),
        (dict[str, Any], OBJECT),
        (Mapping[str, Any], OBJECT),
        (Typed, OBJECT),
        (Any, OBJECT),
    ],
)
def test_a_type_of_objects_reads_what_came(kind: Any, expected: Any) -> None:
    assert value(OBJECT, kind) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Lenient | None, Lenient(1)),
        (Model | None, Model(a=1)),
        (dict[str, Any] | int, {"a": 1}),
        (Root, Root({"a": 1})),
    ],
)
def test_any_other_type_reads_what_is_inside(kind: Any, expected: Any) -> None:
    assert value(OBJECT, kind) == expected


@pytest.mark.parametrize(
    ("inside", "kind", "expected"),
    [
        ([1, 2], Pair, Pair(1, 2)),
        ([1], Row, Row(1)),
        ("red", Color, Color.RED),
        ("red", Literal["red"], "red"),
        (None, int | None, None),
    ],
)
def test_what_is_no_object_is_inside(inside: Any, kind: Any, expected: Any) -> None:
    assert value({"result": inside}, kind) == expected


def test_where_nothing_is_wrapped_what_came_goes_first() -> None:
    assert value({"result": 7}, dict[str, int] | int, wraps=False) == {"result": 7}
    assert value({"result": 7}, dict[str, int] | int) == 7
    assert value({"result": 7}, int, wraps=False) == 7, "a server that wraps all the same is understood"


def test_what_fits_neither_way_is_said_of_the_way_that_was_meant() -> None:
    with pytest.raises(ValueError, match="Expected `int"):
        value({"result": "x"}, int | None)


def test_a_string_says_itself_in_text_without_quotes() -> None:
    assert value(UNSET, Color, text="red") == Color.RED
    assert value(UNSET, str | None, text="word") == "word"
    assert value(UNSET, str | None, text="null") is None
    with pytest.raises(ValueError, match="it came as a text that is no JSON, 'word'"):
        value(UNSET, int, text="word")
