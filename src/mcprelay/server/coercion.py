"""Lax reading: what a model meant, where its JSON says it a little differently.

Arguments are first decoded as they are. Only what does not decode comes here, and is mended where the published schema
leaves no doubt:

| the schema wants | and got | becomes |
|---|---|---|
| an integer | `3.0` | `3` (with `strict=True` too: to JSON Schema it is an integer) |
| an integer | `"3"`, `"-3"`, `"3.0"` | `3`, `-3`, `3` |
| a number | `"3.5"`, `"1e3"` | `3.5`, `1000.0`; never `"nan"`, `"inf"`, `"1_000"` or `" 1"` |
| a boolean | `"true"`, `"False"`, `"1"`, `"0"`, `1`, `0` | `true`, `false` … |
| an array or an object | a string that is the JSON of one | that array or object |
| anything, nested | | the same, inside |

JSON inside a string nests no deeper than messages do (`wire.jsonrpc.DEPTH`).

A string is never touched where a string may stand, null is never made nor replaced, and a value that already has a
type that the schema allows stays as it is. Nothing here raises: what cannot be mended is left for `report`.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from mcprelay.wire.jsonrpc import DEPTH, too_deep

_INTEGER = re.compile(r"[+-]?\d+(\.0*)?\Z", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z", re.ASCII)
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
Above: TypeAlias = frozenset[tuple[int, int]]
"""The schemas and values, by identity, that are being mended around this one."""

_HOPS = 100
"""How many references are followed from one to the next; a schema that needs more goes in circles."""


class Mender:
    """Mends values by one schema. `strict` leaves only what is the same number spelled differently."""

    def __init__(self, schema: dict[str, Any], *, strict: bool) -> None:
        self._root = schema
        self._strict = strict

    def mend(self, value: Any) -> Any:
        """The value with everything mended that can be. The value itself is left as it was."""
        return self._mend(value, self._root, frozenset())

    def _mend(self, value: Any, schema: Any, above: Above) -> Any:
        schema = self._target(schema)
        if not isinstance(schema, dict) or not schema:
            return value
        here = (id(schema), id(value))
        if here in above:  # a schema that refers to itself for the same value
            return value
        above |= {here}
        for key in ("anyOf", "oneOf"):
            if key in schema:
                value = self._mend_option(value, schema[key], above)
        for option in schema.get("allOf", ()):
            value = self._mend(value, option, above)
        kinds = _kinds_of(schema)
        if kinds and kind_of(value) not in kinds:
            value = self._convert(value, kinds)
        if isinstance(value, dict):
            return self._mend_object(value, schema, above)
        return self._mend_array(value, schema, above) if isinstance(value, list) else value

    def _target(self, schema: Any) -> Any:
        """The schema that a chain of local references ends at."""
        return target_of(schema, self._root)

    def _mend_option(self, value: Any, options: Sequence[Any], above: Above) -> Any:
        """By the option that the value is already of the kind of, else by the first that makes something of it."""
        targets = [self._target(option) for option in options]
        kind = kind_of(value)
        fitting = [target for target in targets if not (kinds := _kinds_of(target)) or kind in kinds]
        if fitting:
            return self._mend(value, max(fitting, key=lambda target: likeness(value, target)), above)
        for target in targets:
            mended = self._mend(value, target, above)
            if mended is not value:
                return mended
        return value

    def _convert(self, value: Any, kinds: frozenset[str]) -> Any:
        if isinstance(value, float) and "integer" in kinds and value.is_integer():
            return int(value)
        if self._strict:
            return value
        if "boolean" in kinds and not {"integer", "number"} & kinds and type(value) is int and value in {0, 1}:
            return bool(value)
        return _from_string(value, kinds) if isinstance(value, str) and "string" not in kinds else value

    def _mend_object(self, value: dict[str, Any], schema: dict[str, Any], above: Above) -> dict[str, Any]:
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties")
        mended = {key: self._mend(item, properties.get(key, others), above) for key, item in value.items()}
        return value if all(mended[key] is item for key, item in value.items()) else mended

    def _mend_array(self, value: list[Any], schema: dict[str, Any], above: Above) -> list[Any]:
        first, rest = schema.get("prefixItems", ()), schema.get("items")
        mended = [self._mend(item, first[at] if at < len(first) else rest, above) for at, item in enumerate(value)]
        return value if all(new is old for new, old in zip(mended, value, strict=True)) else mended


def _from_string(text: str, kinds: frozenset[str]) -> Any:
    """What a string stands for where no string may stand; the string itself where that is not plain."""
    if "integer" in kinds and _INTEGER.match(text) and len(text) < 4000:
        return int(text.partition(".")[0])
    if "number" in kinds and _NUMBER.match(text) and math.isfinite(number := float(text)):
        return number
    if "boolean" in kinds and len(text) <= 5 and text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    if text[:1] in {"[", "{"} and {"array", "object"} & kinds:
        try:
            data = text.encode()
            value = text if too_deep(data, DEPTH) else msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            return text
        return value if kind_of(value) in kinds else text
    return text


def kind_of(value: Any) -> str:
    """The JSON type of a value; a whole number is an integer only where it is written as one."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


def _kinds_of(schema: Any) -> frozenset[str]:
    """The JSON types that a schema names, a number being one that an integer is too; empty where it names none."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind is None:
        return frozenset()
    kinds = frozenset((kind,) if isinstance(kind, str) else kind)
    return kinds | {"integer"} if "number" in kinds else kinds


def likeness(value: Any, schema: Any) -> int:
    """How much an object looks like a schema: its keys, and the fixed values of its tags."""
    if not isinstance(value, dict) or not isinstance(schema, dict):
        return 0
    known: dict[str, Any] = schema.get("properties", {})
    tags = sum(
        1 if value[key] in part["enum"] else -10
        for key, part in known.items()
        if isinstance(part, dict) and key in value and isinstance(part.get("enum"), list)
    )
    missing = sum(key not in value for key in schema.get("required", ()))
    return tags + sum(1 if key in known else -1 for key in value) - missing


def target_of(schema: Any, root: Any) -> Any:
    """The schema that a chain of local references ends at, or None where it ends nowhere."""
    for _ in range(_HOPS):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            return schema
        schema = _follow(root, schema["$ref"])
    return None


def _follow(root: Any, reference: str) -> Any:
    """What a local reference points at, or None."""
    node = root
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if isinstance(node, dict) else None
    return node if reference.startswith("#") else None
