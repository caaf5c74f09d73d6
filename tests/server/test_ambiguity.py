"""Unions that nobody could read are refused, and what can be read is read in a time that does not explode."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import pytest
import typing_extensions

from mcprelay.errors import DefinitionError
from mcprelay.server.report import ArgumentsInvalid
from mcprelay.server.signature import compile_call


@dataclass
class Not:
    arg: Not | Maybe | int


@dataclass
class Maybe:
    arg: Not | Maybe | int


@dataclass
class And:
    items: list[And | Or | Leaf]


@dataclass
class Or:
    items: list[And | Or | Leaf]


@dataclass
class Leaf:
    name: str


@dataclass
class TaggedAnd:
    kind: Literal["and"]
    items: list[TaggedAnd | TaggedOr]


@dataclass
class TaggedOr:
    kind: Literal["or"]
    items: list[TaggedAnd | TaggedOr]


class Add(msgspec.Struct, tag=True):
    left: Add | Mul | int


class Mul(msgspec.Struct, tag=True):
    left: Add | Mul | int


@dataclass
class Numbered:
    id: int
    next: Numbered | Lettered | None = None


@dataclass
class Lettered:
    id: str
    next: Numbered | Lettered | None = None


@dataclass
class Branch:
    children: list[Branch | Twig] = field(default_factory=list)


@dataclass
class Twig:
    leaves: list[Branch | Twig] = field(default_factory=list)


def compiled(annotation: Any) -> Any:
    def handler(x): ...

    handler.__annotations__["x"] = annotation
    return compile_call(handler)


@pytest.mark.parametrize(("annotation", "through"), [(Not | Maybe, "arg"), (And, "items"), (list[Or | None], "items")])
def test_options_that_look_alike_and_contain_each_other_are_refused(annotation, through):
    with pytest.raises(DefinitionError, match=f"through '{through}'"):
        compiled(annotation)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (TaggedAnd | TaggedOr, {"kind": "or", "items": [{"kind": "and", "items": []}]}),
        (Add | Mul, {"type": "Mul", "left": {"type": "Add", "left": 1}}),
        (Numbered | Lettered, {"id": "a", "next": {"id": 1}}),
        (Branch | Twig, {"leaves": [{"children": [{}]}]}),
        (Leaf | int, {"name": "a"}),
    ],
)
def test_options_that_can_be_told_apart_are_fine(annotation, value):
    compiled(annotation).decode(json.dumps({"x": value}).encode())


Nested = typing_extensions.TypeAliasType("Nested", "int | list[Nested] | dict[str, Nested] | None")


@pytest.mark.parametrize(
    ("annotation", "wrap"),
    [
        (Nested, lambda inner: [inner]),
        (Nested, lambda inner: {"a": inner}),
        (TaggedAnd | TaggedOr, lambda inner: {"kind": "or", "items": [inner]}),
        (Add | Mul, lambda inner: {"type": "Mul", "left": inner}),
        (Branch | Twig, lambda inner: {"leaves": [inner]}),
    ],
)
def test_a_deep_value_that_does_not_fit_is_refused_without_delay(annotation, wrap):
    value: Any = "no"
    for _ in range(60):
        value = wrap(value)
    with pytest.raises(ArgumentsInvalid):
        compiled(annotation).decode(json.dumps({"x": value}).encode())


@pytest.mark.parametrize("depth", [200, 900, 20_000])
def test_what_hides_its_depth_in_a_string_is_refused(depth):
    for text in ("[" * depth + "]" * depth, "[" * depth):
        with pytest.raises(ArgumentsInvalid):
            compiled(list[Nested]).decode(json.dumps({"x": text}).encode())
