"""Words for what a schema expects and for what came: sentences that a person or a model can act on.

They are made of JSON Schema and of plain JSON values; nothing here knows Python types, or decides what fits.
"""

# JSON values are narrowed by looking at them:
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from mcprelay.server.coercion import target_of
from mcprelay.wire.spelling import closest

_NOUNS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "an array",
    "object": "an object",
}
_LIMITS = {
    "minimum": "of at least {}",
    "exclusiveMinimum": "of more than {}",
    "maximum": "of at most {}",
    "exclusiveMaximum": "of less than {}",
    "multipleOf": "that is a multiple of {}",
    "minLength": "of at least {} characters",
    "maxLength": "of at most {} characters",
    "pattern": "that matches {}",
    "format": "in the format {}",
    "contentEncoding": "in {}",
    "minItems": "of at least {} items",
    "maxItems": "of at most {} items",
    "minProperties": "with at least {} properties",
    "maxProperties": "with at most {} properties",
}


def expectation(schema: Any, root: Any = None, keyword: str | None = None) -> str:
    """What a schema wants. Its own description is for the model's first reading, not for this.

    Args:
        schema: The schema.
        root: The schema that its references point into, where they are not its own.
        keyword: The keyword that was not met, in case nothing better can be said.
    """
    root = schema if root is None else root
    schema = target_of(schema, root)
    if not isinstance(schema, dict) or not schema:
        return "any value" if schema is not False else "nothing"
    if keyword == "multipleOf":
        return f"a multiple of {schema['multipleOf']}"
    if "enum" in schema:
        return f"one of {listed(schema['enum'])}" if len(schema["enum"]) != 1 else quoted(schema["enum"][0])
    if "const" in schema:
        return quoted(schema["const"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(dict.fromkeys(expectation(option, root) for option in schema[union]))
    return _with_limits(schema, keyword)


def _with_limits(schema: dict[str, Any], keyword: str | None) -> str:
    kinds = schema.get("type", [])
    noun = " or ".join(_NOUNS.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)) or "a value"
    words = [text.format(schema[name]) for name, text in _LIMITS.items() if name in schema]
    if schema.get("uniqueItems"):
        words.append("without repetitions")
    if not words and keyword not in {None, "type", "properties", "items"}:
        words.append(f"that meets {keyword!r}")
    return " ".join([noun, " and ".join(words)]).strip()


def describe(value: Any) -> str:
    """A JSON value in a few words."""
    if isinstance(value, str):
        return f"the string {quoted(clipped(value))}"
    if isinstance(value, dict):
        return f"an object with {listed([clipped(key) for key in value])}" if value else "an empty object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if value is None or isinstance(value, bool):
        return str(msgspec.json.encode(value), "ascii")
    return f"the number {str(value)[:60]}"


def clipped(text: str, most: int = 60) -> str:
    """As much of a text as is needed to know it again: what came may be megabytes long."""
    return text if len(text) <= most else f"{text[: most - 3]}…"


def hint(name: str, known: Sequence[str]) -> str:
    """Which of the known names was probably meant; where none is like it, which there are."""
    near = closest(name, known) or next((key for key in known if key.lower() == name.lower()), None)
    if near:
        return f"did you mean {near!r}?"
    return f"known are {listed(known)}" if known else "none is taken here"


def listed(values: Sequence[Any], most: int = 12) -> str:
    """Several values, as many as can be read."""
    shown = [quoted(value) for value in values[:most]]
    return ", ".join(shown) + (", …" if len(values) > most else "")


def quoted(value: Any) -> str:
    """A value as JSON writes it."""
    try:
        return str(msgspec.json.encode(value), "utf-8")
    except (TypeError, UnicodeEncodeError):
        return repr(value)


def place(path: Sequence[str | int], whole: str = "arguments") -> str:
    """A path as people write it: `seats[2].row`; of nothing, the word for the whole."""
    if not path:
        return whole
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def pointer(path: Sequence[str | int]) -> str:
    """A path as a JSON Pointer (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
