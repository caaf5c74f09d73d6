"""What of a pinned definition a model is shown: its texts cleaned, or a reason why it is not shown at all.

A text that explains may be cleaned. A name or a constant may not, because the server compares it: where one holds what
a reader cannot see, there is no honest way to show the tool. A text explains where a schema says so: inside of a
constant, a default or an example `description` is a name like any other. The digest was taken before, of what the
server sent.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from mcprelay.relay.budget import Limits, over
from mcprelay.relay.clean import clean
from mcprelay.relay.errors import DefinitionRefused
from mcprelay.relay.pins import Definition
from mcprelay.wire.reference import MANY, NAMED, ONE

_EXPLAINING = frozenset(["description", "title", "$comment"])
_SUSPECT = re.compile(rb"[^\x00-\x7e]|\\[bfru]")
"""Where the canonical form has none of these, there is nothing to clean in the schema."""


class Presented(Struct, frozen=True, kw_only=True):
    """What a model is shown: the description, and the schema with cleaned texts."""

    description: str
    schema: dict[str, Any]


def presented(definition: Definition, *, limits: Limits) -> Presented:
    """What a model is shown of a definition.

    Raises:
        DefinitionRefused: It is too large, or a name or a constant in it cannot be seen whole. The sentence holds no
            word of the server.
    """
    if len(definition.canonical) > limits.definition_bytes:
        more = over("definition_bytes", limits.definition_bytes)
        raise DefinitionRefused(f"its definition has {len(definition.canonical):,} bytes: {more}")
    schema = definition.input_schema
    form = definition.canonical
    if (b"\\" in form or b"\x7f" in form or not form.isascii()) and _SUSPECT.search(form):
        schema = _schema(schema)
    return Presented(description=clean(definition.description), schema=schema)


def _schema(node: Any) -> Any:
    """A schema with the texts that explain it cleaned."""
    if not isinstance(node, dict):
        return _data(node)
    return {_name(keyword): _keyword(keyword, value) for keyword, value in node.items()}


def _keyword(keyword: str, value: Any) -> Any:
    """What a schema says under a keyword."""
    if keyword in _EXPLAINING and isinstance(value, str):
        return clean(value)
    if keyword in NAMED and isinstance(value, dict):
        return {_name(name): _schema(inner) for name, inner in value.items()}
    if keyword in MANY and isinstance(value, list):
        return [_schema(inner) for inner in value]
    return _schema(value) if keyword in ONE else _data(value)


def _data(value: Any) -> Any:
    """A value that the server compares, as it is."""
    if isinstance(value, str) and clean(value) != value:
        raise DefinitionRefused("a constant in its schema holds characters that a reader cannot see")
    if isinstance(value, list):
        return [_data(item) for item in value]
    return {_name(name): _data(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def _name(name: str) -> str:
    if clean(name) != name:
        raise DefinitionRefused("a name in its schema holds characters that a reader cannot see")
    return name
