"""Suggestions come from values, enums and callables, and from the types themselves."""

from __future__ import annotations

import enum
from typing import Annotated, Literal

import pytest

from mcprelay.errors import DefinitionError
from mcprelay.server.completion import Complete
from mcprelay.server.schema import Schema
from mcprelay.server.signature import compile_call
from mcprelay.server.thread import ThreadPool

run = ThreadPool().run


class Color(enum.Enum):
    RED = "red"
    ROSE = "rose"
    NONE = (0, 0)


class Level(enum.IntEnum):
    LOW = 1


async def test_values_are_offered_as_they_begin_with_what_was_typed():
    complete = Complete(["red", "Rose", "blue", 7, True])
    assert await complete("", {}, run=run) == ["red", "Rose", "blue", "7", "true"]
    assert await complete("r", {}, run=run) == ["red", "Rose"]
    assert await complete("RO", {}, run=run) == ["Rose"]
    assert await complete("x", {}, run=run) == []


async def test_an_enum_offers_its_values_in_its_order():
    assert await Complete(Color)("", {}, run=run) == ["red", "rose", "NONE"]
    assert await Complete(Level)("", {}, run=run) == ["1"]


async def test_a_callable_gets_what_was_typed_and_the_other_arguments_if_it_takes_them():
    def plain(typed):
        return [typed + "!", Color.RED]

    async def knowing(typed, arguments):
        return [f"{typed}-{arguments['owner']}"]

    assert await Complete(plain)("a", {"owner": "o"}, run=run) == ["a!", "red"]
    assert await Complete(knowing)("a", {"owner": "o"}, run=run) == ["a-o"]
    assert await Complete(lambda *given: [str(len(given))])("a", {}, run=run) == ["2"]


@pytest.mark.parametrize("source", ["red", b"red", 3, None])
def test_what_is_no_source_is_refused(source):
    with pytest.raises(DefinitionError, match="Complete"):
        Complete(source)


async def test_parameters_have_the_completions_that_they_say_or_that_their_type_has():
    def handler(  # noqa: PLR0917
        language: Annotated[str, Complete(["python", "go"])],
        color: Color,
        size: Literal["s", "m"] | None = None,
        level: Annotated[Level, Schema("How loud")] = Level.LOW,
        code: str = "",
        other: Annotated[Color, Complete(["green"])] = Color.RED,
    ): ...

    completions = compile_call(handler, kind="prompt").completions
    offered = {key: await complete("", {}, run=run) for key, complete in completions.items()}
    assert offered == {
        "language": ["python", "go"],
        "color": ["RED", "ROSE", "NONE"],
        "size": ["s", "m"],
        "level": ["1"],
        "other": ["green"],
    }
