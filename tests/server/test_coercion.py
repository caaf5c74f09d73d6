"""What a model meant is understood where the schema leaves no doubt, and nothing else is touched."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.server.coercion import Mender
from mcprelay.server.report import ArgumentsInvalid
from mcprelay.server.schema import Schema
from mcprelay.server.signature import compile_call

STRINGS = ["123", "007", "1e5", "true", "null", '{"k":1}', "[1]", "3fa85f64-5717-4562-b3fc-2c963f66afa6", "nan", " 1"]


class Level(enum.IntEnum):
    LOW = 1


@dataclass
class Point:
    x: int
    label: str = ""


def read(annotation: Any, value: Any, *, strict: bool = False) -> Any:
    def handler(x): ...

    handler.__annotations__["x"] = annotation
    (made,) = compile_call(handler, strict=strict).decode(json.dumps({"x": value}).encode())
    return made


@pytest.mark.parametrize(
    "annotation", [str, str | None, Annotated[str, Schema("text")], Any, str | int, int | str, list[str] | str]
)
@pytest.mark.parametrize("text", STRINGS)
def test_strings_stay_strings_wherever_a_string_may_stand(annotation, text):
    assert read(annotation, text) == text


@pytest.mark.parametrize(
    ("annotation", "sent", "made"),
    [
        (int, 3.0, 3),
        (int, "3", 3),
        (int, "-3", -3),
        (int, "+3", 3),
        (int, "3.0", 3),
        (int, "9" * 40, int("9" * 40)),
        (float, "3.5", 3.5),
        (float, "1e3", 1000.0),
        (float, ".5", 0.5),
        (float, "3", 3.0),
        (bool, "true", True),
        (bool, "False", False),
        (bool, "1", True),
        (bool, 0, False),
        (int | None, "3", 3),
        (bool | None, "true", True),
        (Literal[1, 2], "2", 2),
        (Level, "1", Level.LOW),
        (Annotated[int, Schema(minimum=2)], "3", 3),
        (list[int], ["1", 2.0], [1, 2]),
        (list[int], "[1, 2]", [1, 2]),
        (list[int] | None, "[1]", [1]),
        (dict[str, int], '{"a": "1"}', {"a": 1}),
        (dict[str, bool], {"a": "true"}, {"a": True}),
        (tuple[int, str], ["1", "2"], (1, "2")),
        (Point, {"x": "1", "label": "2"}, Point(1, "2")),
        (Point, '{"x": 1}', Point(1)),
        (Point | None, {"x": "1"}, Point(1)),
        (list[Point], [{"x": "1"}], [Point(1)]),
        (int | bool, "true", True),
    ],
    ids=repr,
)
def test_a_value_that_leaves_no_doubt_is_understood(annotation, sent, made):
    assert read(annotation, sent) == made


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [
        (int, 3.5),
        (int, "3.5"),
        (int, "three"),
        (int, " 3"),
        (int, "1_000"),
        (int, "0x10"),
        (int, "٣"),
        (int, True),
        (int, None),
        (int, "null"),
        (int, ""),
        (int, "9" * 5000),
        (float, "nan"),
        (float, "inf"),
        (float, "-Infinity"),
        (float, "1e999"),
        (float, True),
        (bool, "yes"),
        (bool, 2),
        (bool, "null"),
        (str, 3),
        (str, True),
        (str, None),
        (int | None, "null"),
        (list[int], 1),
        (list[int], "1,2"),
        (list[int], '{"a":1}'),
        (list[int], "[1"),
        (Point, "[1]"),
        (Point, "[" * 3000),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_anything_else_is_refused(annotation, sent):
    with pytest.raises(ArgumentsInvalid):
        read(annotation, sent)


def test_strict_leaves_only_the_spelling_of_a_number():
    assert read(int, 3.0, strict=True) == 3
    assert read(list[int], [3.0], strict=True) == [3]
    for annotation, sent in [(int, "3"), (bool, "true"), (bool, 1), (list[int], "[1]"), (float, "1.5")]:
        with pytest.raises(ArgumentsInvalid):
            read(annotation, sent, strict=True)


def test_numbers_that_json_does_not_have_are_refused_as_they_stand():
    def handler(x: Any): ...

    compiled = compile_call(handler)
    for wrong in (b'{"x":NaN}', b'{"x":Infinity}', b'{"x":1e999}', b'{"x":-1e999}'):
        with pytest.raises(ArgumentsInvalid):
            compiled.decode(wrong)


@pytest.mark.parametrize("wrong", [b"", b"[1]", b'"a"', b"3", b"{", b'{"x":1}}', b'{"x":"\xff"}', b"[" * 100_000])
def test_arguments_that_are_no_object_are_refused_and_nothing_else_happens(wrong):
    def handler(x: Any): ...

    with pytest.raises(ArgumentsInvalid):
        compile_call(handler).decode(wrong)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
schemas = st.recursive(
    st.sampled_from(
        [
            {},
            True,
            False,
            {"type": "integer"},
            {"type": "number"},
            {"type": "boolean"},
            {"type": "string"},
            {"type": "null"},
            {"type": ["integer", "null"]},
            {"enum": [1, "a"]},
            {"$ref": "#"},
            {"$ref": "#/nowhere"},
            {"$ref": "https://example.com"},
        ]
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["array", "object"]),
            "items": inner,
            "prefixItems": st.lists(inner, max_size=2),
            "properties": st.dictionaries(st.text(max_size=4), inner, max_size=2),
            "additionalProperties": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, max_size=2),
        },
    ),
    max_leaves=6,
)


@given(value=json_values)
def test_mending_leaves_alone_what_has_no_schema(value):
    assert Mender({}, strict=False).mend(value) is value


@given(schema=schemas, value=json_values)
def test_mending_never_fails_and_never_changes_the_value_it_was_given(schema, value):
    if not isinstance(schema, dict) or "$ref" in schema:
        schema = {"properties": {"a": schema}}
    before = msgspec.json.encode(value)
    mended = Mender(schema, strict=False).mend(value)
    assert msgspec.json.encode(value) == before
    msgspec.json.encode(mended)


def test_a_schema_that_goes_in_circles_ends():
    schema = {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        "properties": {"x": {"$ref": "#/$defs/a"}},
    }
    assert Mender(schema, strict=False).mend({"x": "1"}) == {"x": "1"}


def test_the_option_that_an_object_looks_most_like_mends_it():
    schema = {
        "anyOf": [
            {"type": "object", "properties": {"kind": {"enum": ["a"]}, "n": {"type": "string"}}},
            {"type": "object", "properties": {"kind": {"enum": ["b"]}, "n": {"type": "integer"}}},
        ]
    }
    assert Mender(schema, strict=False).mend({"kind": "b", "n": "1"}) == {"kind": "b", "n": 1}
    assert Mender(schema, strict=False).mend({"kind": "a", "n": "1"}) == {"kind": "a", "n": "1"}
