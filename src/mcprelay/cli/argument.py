"""`key=value` words as the arguments of a tool, with the types that its schema says.

Knows JSON Schema as far as a command line needs it: what is not covered is left to the server, which validates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mcprelay.errors import ConfigurationError
from mcprelay.wire.spelling import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Schema = dict[str, Any]
_KINDS: dict[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
_REFERENCES = 32
_WRITTEN = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list in JSON, or the word once for each item",
    "object": "an object in JSON",
    "string": "a text",
}


def words_to_strings(words: Iterable[str]) -> dict[str, str]:
    """The arguments of a prompt, which are strings.

    Raises:
        ConfigurationError: A word is not `key=value`, or a key comes twice.
    """
    made: dict[str, str] = {}
    for key, value in map(_split, words):
        if key in made:
            raise ConfigurationError(f"{key} is given twice")
        made[key] = value
    return made


def words_to_arguments(words: Iterable[str], schema: Schema) -> dict[str, Any]:
    """The arguments of a tool. A word that comes several times is a list.

    Raises:
        ConfigurationError: A word is not `key=value`, or its value is not what the schema says: all of them at once.
    """
    values: dict[str, list[str]] = {}
    for key, value in map(_split, words):
        values.setdefault(key, []).append(value)
    made: dict[str, Any] = {}
    wrong: list[str] = []
    for key, given in values.items():
        try:
            made[key] = _argument(key, given, schema)
        except ConfigurationError as error:
            wrong.append(str(error))
    if wrong:
        raise ConfigurationError("; ".join(wrong))
    return made


def _split(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise ConfigurationError(f"{word!r}: an argument is written key=value")
    return key, value


def _argument(key: str, given: list[str], schema: Schema) -> Any:
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    if key not in known and schema.get("additionalProperties") is False:
        raise ConfigurationError(f"the tool has no argument {key!r}{_meant(key, known)}")
    wanted = _resolved(known.get(key, True), schema)
    if len(given) == 1 and not _is_list_of(wanted, given[0], schema):
        return _value(key, given[0], wanted, schema)
    if "array" not in _kinds(wanted, schema):
        raise ConfigurationError(f"{key} is given twice, and it is no list")
    items = _resolved(wanted.get("items", True), schema)
    return [_value(key, each, items, schema) for each in given]


def _is_list_of(wanted: Schema, text: str, schema: Schema) -> bool:
    """Whether a single word is the only item of a list, rather than the list in JSON."""
    return _kinds(wanted, schema) == {"array"} and not isinstance(_parsed(text), list)


def _value(key: str, text: str, wanted: Schema, schema: Schema) -> Any:
    parsed = _parsed(text)
    options = wanted.get("enum", [wanted["const"]] if "const" in wanted else None)
    if isinstance(options, list):
        for each in (parsed, text):
            if any(each == option and type(each) is type(option) for option in options):
                return each
        raise ConfigurationError(f"{key} is one of {', '.join(map(str, options))}, and not {text!r}")
    kinds = _kinds(wanted, schema)
    if parsed is not msgspec.UNSET and any(_is(parsed, kind) for kind in kinds - {"string"}):
        return parsed
    if not kinds:
        return text if parsed is msgspec.UNSET else parsed
    if "string" in kinds:
        return text
    raise ConfigurationError(f"{key} is {' or '.join(_WRITTEN[kind] for kind in sorted(kinds))}, and not {text!r}")


def _is(value: Any, kind: str) -> bool:
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _kinds(wanted: Schema, schema: Schema) -> set[str]:
    """The types that a schema allows; none if it does not say."""
    said = wanted.get("type")
    kinds = {kind for kind in (said if isinstance(said, list) else [said]) if kind in _WRITTEN}
    for word in ("anyOf", "oneOf", "allOf"):
        branches = wanted.get(word)
        for branch in branches if isinstance(branches, list) else ():
            kinds |= _kinds(_resolved(branch, schema), schema)
    return kinds


def _resolved(wanted: Any, schema: Schema) -> Schema:
    """A subschema behind its local references."""
    for _ in range(_REFERENCES):
        if not isinstance(wanted, dict):
            return {}
        reference = wanted.get("$ref")
        if not isinstance(reference, str):
            return wanted
        wanted = _at(reference, schema)
    return {}


def _at(reference: str, schema: Schema) -> Any:
    found: Any = schema
    for part in reference.removeprefix("#").split("/")[1:]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found if reference.startswith("#") else None


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return msgspec.UNSET


def _meant(key: str, known: Mapping[str, Any]) -> str:
    close = closest(key, known)
    if close:
        return f"; did you mean {close}?"
    return f"; it has {', '.join(known)}" if known else "; it has none"
