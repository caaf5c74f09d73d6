"""Defaults as they are published: what JSON can say of them, and whether the caller could send the same."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from mcprelay.server.coercion import kind_of
from mcprelay.server.shape import JsonSchema, Shape

_SIMPLE = frozenset(("type", "enum", "title", "description"))


def plain_json(shape: Shape, value: Any) -> Any:
    """A Python value as plain JSON values, as this shape writes it.

    Raises:
        TypeError, ValueError: It has no JSON form.
    """
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} has no JSON form")
    write = shape.writer(careful=True)
    data = msgspec.json.encode(value if write is None else write(value))
    return msgspec.json.decode(data)


def is_taken(shape: Shape, schema: JsonSchema, value: Any) -> bool:
    """Whether a value may be sent where that is published. What a type and an enum say is seen without any decoder."""
    if value is None:
        return _says_null(schema)
    if schema.keys() <= _SIMPLE:
        return kind_of(value) in shape.kinds and value in schema.get("enum", (value,))
    return not shape.explain(value, "input")


def _says_null(schema: JsonSchema) -> bool:
    if "anyOf" in schema:
        return any(_says_null(option) for option in schema["anyOf"])
    kind = schema.get("type", "null")
    return "$ref" not in schema and (kind == "null" or "null" in kind) and None in schema.get("enum", (None,))
