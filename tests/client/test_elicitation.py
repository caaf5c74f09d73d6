"""Forms: fields, defaults and answers (client/elicitation)."""

import dataclasses

import pytest

from mcprelay import Elicitation, ElicitResult

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "Ada"},
        "age": {"type": "integer", "default": 36},
        "score": {"type": "number"},
        "status": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "default": []},
        "verified": {"type": "boolean", "default": False},
    },
    "required": ["name", "score"],
}


@dataclasses.dataclass
class Person:
    name: str
    score: float


def form():
    return Elicitation(message="Who?", requested_schema=FORM)


def test_the_form_is_filled_in_with_its_defaults():
    assert form().defaults() == {"name": "Ada", "age": 36, "tags": [], "verified": False}
    assert list(form().fields) == list(FORM["properties"])


@pytest.mark.parametrize("content", [{"name": "Bob", "score": 1.5}, Person("Bob", 1.5)])
def test_what_the_person_submits_lies_over_the_defaults(content):
    answer = form().accept(content, status="b")
    assert answer == ElicitResult(
        action="accept",
        content={"name": "Bob", "age": 36, "tags": [], "verified": False, "score": 1.5, "status": "b"},
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "'score' is required"),
        ({"score": "high"}, "'score' must be number"),
        ({"score": True}, "'score' must be number"),
        ({"score": 1, "age": 1.5}, "'age' must be integer"),
        ({"score": 1, "status": "c"}, "'status' must be one of 'a', 'b', not 'c'"),
        ({"score": 1, "tags": ["z"]}, "'tags' must be a list of some of 'x', 'y'"),
        ({"score": 1, "verified": 1}, "'verified' must be boolean"),
    ],
)
def test_what_does_not_fit_the_form_is_named(values, said):
    with pytest.raises(ValueError, match=said):
        form().accept(values)


def test_no_is_an_answer_and_so_is_none():
    assert form().decline().action == "decline"
    assert form().cancel().action == "cancel"


def test_an_address_is_accepted_without_content():
    question = Elicitation(message="Log in", mode="url", url="https://x.example")
    assert question.accept() == ElicitResult(action="accept")
    assert question.fields == {}


@pytest.mark.parametrize("schema", [{}, {"properties": 7}, {"properties": {"a": 7}}, {"required": "x"}])
def test_a_form_that_is_none_has_no_fields_and_crashes_nothing(schema):
    assert Elicitation(requested_schema=schema).accept({"b": 1}).content == {"b": 1}
