"""What is wrong with a value, told by place and expectation, so that whoever made the value can mend it.

The words are ours; of the value they hold names of members only (places), unless values are to be shown. Of the schema
they hold names, constants and bounds: untrusted text where the schema is somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from mcprelay.wire.reference import Document, walked
from mcprelay.wire.spelling import closest

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SHOWN = 80
"""Characters of a value, or of one constant of a schema, that a message holds."""
_OPTIONS = 12
"""Constants of an enumeration that a message holds."""


class Violation(Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a value.

    Attributes:
        path: Where, as `filters.tags[0]`; empty for the value itself.
        expected: What would be right there, as a noun phrase.
        message: The whole sentence, place included.
    """

    path: str
    expected: str
    message: str


def violations(errors: Iterable[Any], document: Document, *, most: int, shown: bool) -> list[Violation]:
    """The first `most` errors of jsonschema-rs in our words."""
    told: dict[Violation, None] = {}
    for one in (one for error in errors for one in _told(error, document, shown=shown)):
        told[one] = None
        if len(told) == most:
            break  # what nobody is told is not worked out either: looking for what was meant takes its time
    return list(told)


def path_of(steps: Iterable[str | int]) -> str:
    """A place inside a value, as `filters.tags[0]`."""
    path = ""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            path += f".{step}" if path else step
        else:
            path += f"[{shortened(step)}]"
    return path


def shortened(value: Any) -> str:
    """A JSON value as text, cut where it gets long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _told(error: Any, document: Document, *, shown: bool) -> Iterator[Violation]:
    path, kind = path_of(error.instance_path), error.kind.name
    if kind in {"additionalProperties", "unevaluatedProperties"}:
        yield from _unexpected(error, document, path)
        return
    if kind == "required":
        name = shortened(error.kind.value)
        yield _violation(path, f"a member {name}", f"the member {name} is missing")
        return
    expected = _expected(error)
    got = f", not {shortened(error.instance)}" if shown and kind not in {"contains", "propertyNames"} else ""
    yield _violation(path, expected, f"expected {expected}{got}")


def _violation(path: str, expected: str, text: str) -> Violation:
    return Violation(path=path, expected=expected, message=f"{path}: {text}" if path else text)


def _unexpected(error: Any, document: Document, path: str) -> Iterator[Violation]:
    """One violation for each member that the schema does not have, with the member that was probably meant."""
    known = _members(document, error.schema_path[:-1])
    for name in error.kind.value:
        meant = closest(name, known)
        hint = f"; did you mean {shortened(meant)}?" if meant else ""
        expected = ", ".join(["only members that the schema has", *known[:_OPTIONS]])
        yield _violation(path, expected, f"there is no member {shortened(name)}{hint}")


def _members(document: Document, steps: Iterable[str | int]) -> list[str]:
    """The members that the schema at this place of the document declares."""
    found = walked(document.root, steps)
    properties = found.get("properties") if isinstance(found, dict) else None
    return [shortened(name)[1:-1] for name in properties] if isinstance(properties, dict) else []


def _expected(error: Any) -> str:
    kind, value = error.kind.name, error.kind.value
    if kind in _BOUNDS:
        return _BOUNDS[kind].format(shortened(value))
    if kind == "type":
        return _types(value)
    if kind == "enum":
        return _one_of(value)
    if kind in {"anyOf", "oneOf"}:
        return _alternatives(value)
    return _OTHERS.get(kind, "a value that the schema allows")


def _types(types: Iterable[str]) -> str:
    return " or ".join(_ARTICLES.get(name, name) for name in sorted(types, key=lambda name: name == "null"))


def _one_of(options: list[Any]) -> str:
    if len(options) == 1:
        return shortened(options[0])
    more = f" or {len(options) - _OPTIONS} more" if len(options) > _OPTIONS else ""
    return "one of " + ", ".join(map(shortened, options[:_OPTIONS])) + more


def _alternatives(contexts: list[list[Any]]) -> str:
    """What the alternatives ask for: their types where these are what fails, else only how many there are."""
    if not all(contexts):
        return "a value that fits exactly one of the alternatives"
    first = [errors[0] for errors in contexts]
    if all(error.kind.name in {"type", "enum", "const"} for error in first):
        return " or ".join(dict.fromkeys(_expected(error) for error in first))
    return f"a value that fits one of the {len(contexts)} alternatives"


_ARTICLES = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
_BOUNDS = {
    "const": "{}",
    "exclusiveMaximum": "a number below {}",
    "exclusiveMinimum": "a number above {}",
    "maxItems": "at most {} items",
    "maxLength": "at most {} characters",
    "maxProperties": "at most {} members",
    "maximum": "a number of at most {}",
    "minItems": "at least {} items",
    "minLength": "at least {} characters",
    "minProperties": "at least {} members",
    "minimum": "a number of at least {}",
    "multipleOf": "a multiple of {}",
    "pattern": "a text that matches the pattern {}",
}
_OTHERS = {
    "contains": "an array with an item of the kind that the schema asks for",
    "falseSchema": "nothing here",
    "not": "a value other than those that the schema forbids",
    "propertyNames": "member names that the schema allows",
    "uniqueItems": "items that differ from each other",
}
