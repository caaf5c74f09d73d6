"""Defaults: what is published as one, the caller may send; `None` is a value that may be sent wherever it is one."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import itertools
import uuid
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypedDict

import annotated_types
import attrs
import jsonschema_rs
import msgspec
import pydantic
import pytest

from mcprelay import Schema, Server
from mcprelay.errors import DefinitionError
from mcprelay.server.signature import compile_call
from tests.server.ask import call

if TYPE_CHECKING:
    from collections.abc import Iterator


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Plain:
    x: int = 1
    y: int = None  # type: ignore[assignment]


class Native(msgspec.Struct):
    x: Annotated[int, Schema(minimum=3)] = 3
    y: str = None  # type: ignore[assignment]


class Sentinel(msgspec.Struct):
    x: Annotated[int, Schema(minimum=3)] = 0


class Named(NamedTuple):
    x: int = None  # type: ignore[assignment]


@attrs.define
class Attr:
    x: list[int] = None  # type: ignore[assignment]


class Model(pydantic.BaseModel):
    x: int = None  # type: ignore[assignment]
    inner: Plain | None = None


class Typed(TypedDict, total=False):
    x: int


TYPES: list[Any] = [
    bool, int, float, str, bytes, None, Any, object, list, dict, list[int], set[str], tuple[int, str], dict[str, int],
    int | None, int | str, list[int] | None, Color, Level, Literal["a", 1], Literal["a"] | None,
    dt.date, dt.datetime, dt.timedelta, decimal.Decimal, uuid.UUID,
    Plain, Native, Sentinel, Named, Attr, Model, Typed, Plain | None, list[Plain],
    Annotated[int, annotated_types.Ge(1)], Annotated[int, Schema("what", title="t")],
    Annotated[str, Schema(pattern="^a")],
    Annotated[str, msgspec.Meta(min_length=2)], Annotated[int, pydantic.Field(ge=1)],
    Annotated[str, Schema(definition={"type": "string"})], Annotated[list[int], annotated_types.MinLen(1)],
]  # fmt: skip

DEFAULTS: list[Any] = [
    None, True, 0, 1, -1.5, float("nan"), "", "a", b"x", [], [1], ["a"], (), (1, "a"), {"a"}, {}, {"a": 1},
    Color.RED, Level.LOW, dt.date(2020, 1, 1), dt.timedelta(1), decimal.Decimal("1.5"), uuid.UUID(int=1),
    Plain(), Native(), Sentinel(), Named(), Attr(), Model(), Model(inner=Plain()),
]  # fmt: skip


def compiled(annotation: Any, default: Any) -> Any:
    def f(value: Any) -> Any:
        return value

    f.__annotations__ = {"value": annotation}
    f.__defaults__ = (default,)
    return compile_call(f)


def published(schema: Any, root: Any) -> Iterator[tuple[Any, Any]]:
    """Every default in a schema, with the schema that it stands in."""
    if isinstance(schema, dict):
        if "default" in schema:
            yield schema["default"], {"$defs": root.get("$defs", {}), **schema}
        for key, inner in schema.items():
            if key not in {"default", "enum", "const"}:
                yield from published(inner, root)
    elif isinstance(schema, list):
        for inner in schema:
            yield from published(inner, root)


@pytest.mark.parametrize("annotation", TYPES, ids=str)
def test_every_published_default_is_what_its_own_schema_takes(annotation: Any) -> None:
    made = 0
    for default in DEFAULTS:
        try:
            schema = compiled(annotation, default).input_schema
        except DefinitionError:
            continue
        made += 1
        assert "value" not in schema.get("required", ())
        for value, said in published(schema, schema):
            assert jsonschema_rs.Draft202012Validator(said).is_valid(value), (default, value, said)
    assert made > 5


@pytest.mark.parametrize("annotation", TYPES, ids=str)
def test_a_default_of_none_is_published_and_null_is_taken(annotation: Any) -> None:
    target = compiled(annotation, None)
    said = target.input_schema["properties"]["value"]
    assert list(target.decode(msgspec.Raw(b"{}"))) == [None]
    if said == {"type": "string"}:  # a whole definition is what its author says
        return
    assert said["default"] is None
    assert list(target.decode(msgspec.Raw(b'{"value":null}'))) == [None]


@pytest.mark.parametrize("made", list(itertools.product([Plain, Native, Named, Attr], [True, False])), ids=str)
async def test_a_field_whose_default_is_none_may_be_null_both_ways(made: Any) -> None:
    kind, returned = made
    server = Server("null")

    def give() -> Any:
        return kind()

    give.__annotations__ = {"return": kind}

    def take(value: Any) -> str:
        return "taken"

    take.__annotations__ = {"value": kind, "return": str}
    server.add_tool(give)
    server.add_tool(take)
    name = "x" if kind in (Named, Attr) else "y"
    if returned:
        assert (await call(server, "give"))[name] is None
    else:
        assert await call(server, "take", {"value": {name: None}}) == "taken"
        assert (await call(server, "take", {"value": {name: {}}})).startswith("error:")


async def test_a_default_outside_of_the_bounds_holds_and_is_not_published() -> None:
    server = Server("sentinel")

    @server.tool
    def take(limit: Annotated[int, Schema(minimum=1)] = 0) -> int:
        return limit

    entry = server.catalog.tools.get("take", None)
    assert entry is not None
    assert entry.definition.input_schema["properties"] == {"limit": {"type": "integer", "minimum": 1}}  # type: ignore[union-attr]
    assert await call(server, "take") == 0
    assert (await call(server, "take", {"limit": 0})).startswith("error:")
