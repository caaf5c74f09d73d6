"""Everything that does not fit is told at once: where, what was expected, what came."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from mcprelay.errors import DefinitionError, MCPRelayError
from mcprelay.server.report import ArgumentsInvalid, refusal
from mcprelay.server.schema import Schema
from mcprelay.server.signature import compile_call
from mcprelay.server.validator import Validator
from mcprelay.server.words import describe, place


@dataclass
class Seat:
    row: Annotated[int, Schema(minimum=1, maximum=9)]
    kind: Literal["window", "aisle"] = "aisle"
    tags: list[str] = field(default_factory=list)


def refused(function: Any, arguments: bytes) -> ArgumentsInvalid:
    with pytest.raises(ArgumentsInvalid) as caught:
        compile_call(function).decode(arguments)
    return caught.value


def test_all_errors_come_at_once_in_words_and_in_data():
    def book(name: str, seats: list[Seat], count: int = 1): ...

    error = refused(book, b'{"seats":[{"row":0,"kind":"isle"},{"row":"x","tgas":[]}],"count":null,"nme":"a"}')
    assert str(error).splitlines()[0] == "Invalid arguments for book:"
    assert {item.path: (item.expected, item.got) for item in error.errors} == {
        "/seats/0/row": ("an integer of at least 1 and of at most 9", "the number 0"),
        "/seats/0/kind": ('one of "window", "aisle"', 'the string "isle"'),
        "/seats/1/row": ("an integer of at least 1 and of at most 9", 'the string "x"'),
        "/seats/1/tgas": ('one of "row", "kind", "tags"', "an array of 0"),
        "/count": ("an integer", "null"),
        "/nme": ('one of "name", "seats", "count"', 'the string "a"'),
        "/name": ("a string", None),
    }
    assert "- seats[0].row: expected an integer of at least 1 and of at most 9, got the number 0" in str(error)
    assert "- name: is missing, expected a string" in str(error)
    assert "- nme: there is no such argument; did you mean 'name'?" in str(error)
    assert error.data()[0].keys() == {"path", "expected", "got", "message"}
    assert isinstance(error, MCPRelayError)


def test_what_types_refuse_is_told_together_with_what_schemas_refuse():
    import datetime as dt

    def plan(day: dt.date, at: dt.time, n: int): ...

    error = refused(plan, b'{"day":"tomorrow","at":"noon","n":"x"}')
    assert {item.path for item in error.errors} == {"/day", "/at", "/n"}


def test_a_long_report_is_cut_in_words_and_whole_in_data():
    def total(numbers: list[int]): ...

    error = refused(total, b'{"numbers":[' + b",".join([b'"x"'] * 50) + b"]}")
    assert len(error.errors) == 50
    assert len(str(error).splitlines()) == 22
    assert str(error).endswith("- … and 30 more")


def test_an_argument_that_differs_in_case_only_is_suggested():
    def handler(userId: int): ...  # noqa: N803 - the point

    assert "did you mean 'userId'" in str(refused(handler, b'{"USERID":1,"userId":1}'))


def test_without_anything_alike_the_known_names_are_listed():
    def handler(a: int, b: int): ...

    assert 'known are "a", "b"' in str(refused(handler, b'{"zzz":1,"a":1,"b":1}'))


def test_paths_are_json_pointers():
    def handler(x: dict[str, dict[str, int]]): ...

    assert refused(handler, b'{"x":{"a/b":{"c~d":"e"}}}').errors[0].path == "/x/a~1b/c~0d"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a", 'the string "a"'),
        ("x" * 100, f'the string "{"x" * 57}…"'),
        (3.5, "the number 3.5"),
        (True, "true"),
        (None, "null"),
        ([], "an array of 0"),
        ({}, "an empty object"),
        ({"a": 1}, 'an object with "a"'),
    ],
)
def test_values_are_described_in_a_few_words(value, words):
    assert describe(value) == words


def test_places_are_written_as_people_write_them():
    assert place([]) == "arguments"
    assert place(["a", 0, "b"]) == "a[0].b"


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": ["integer", "null"]}, "a", "an integer or null"),
        ({"const": 3}, 4, "3"),
        ({"multipleOf": 2}, 3, "a multiple of 2"),
        (
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            2,
            "a number of more than 0 and of less than 1",
        ),
        (
            {"type": "string", "minLength": 2, "maxLength": 3},
            "a",
            "a string of at least 2 characters and of at most 3 characters",
        ),
        ({"type": "string", "format": "email"}, "a", "a string in the format email"),
        ({"type": "array", "uniqueItems": True}, [1, 1], "an array without repetitions"),
        ({"type": "object", "maxProperties": 0}, {"a": 1}, "an object with at most 0 properties"),
        ({"not": {}}, 1, "a value that meets 'not'"),
        (
            {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/n"}], "$defs": {"n": {"type": "null"}}},
            1,
            "a string or null",
        ),
        ({"enum": []}, 1, "one of "),
    ],
)
def test_what_is_expected_is_said_in_words(schema, value, expected):
    (error,) = refusal("f", Validator(schema).misfits(value), value).errors
    assert error.expected == expected


def test_of_a_union_of_objects_the_nearest_one_is_told():
    schema = {
        "anyOf": [
            {
                "type": "object",
                "properties": {"kind": {"enum": ["a"]}, "x": {"type": "integer"}},
                "required": ["kind", "x"],
            },
            {
                "type": "object",
                "properties": {"kind": {"enum": ["b"]}, "y": {"type": "integer"}},
                "required": ["kind", "y"],
            },
            {"type": "null"},
        ]
    }
    (misfit,) = Validator(schema).misfits({"kind": "b", "y": "z"})
    assert (misfit.path, misfit.reason) == (("y",), 'expected an integer, got the string "z"')
    (misfit,) = Validator(schema).misfits(3)
    assert misfit.reason == "expected an object or null, got the number 3"


def test_a_schema_that_is_none_is_a_definition_error():
    with pytest.raises(DefinitionError, match="type"):
        Validator({"type": "strnig"})
    with pytest.raises(DefinitionError):
        Validator({"$ref": "http://127.0.0.1:9/never-fetched"})
