"""What of a pinned definition a model is shown: its texts cleaned, or a reason why it is not shown at all.

A text that explains may be cleaned. A name or a constant may not, because the server compares it: where one holds what
a reader cannot see, there is no honest way to show the tool. The digest was taken before, of what the server sent.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from mcprelay.relay.budget import Limits
from mcprelay.relay.clean import clean
from mcprelay.relay.errors import DefinitionRefused
from mcprelay.relay.pins import Definition

_EXPLAINING = frozenset(["description", "title", "$comment"])
_SUSPECT = re.compile(rb"[^\x00-\x7f]|\\[bfru]")
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
        size, allowed = len(definition.canonical), limits.definition_bytes
        raise DefinitionRefused(f"its definition has {size:,} bytes: definition_bytes={allowed:,}")
    schema = definition.input_schema
    form = definition.canonical
    if (b"\\" in form or not form.isascii()) and _SUSPECT.search(form):
        schema = _cleaned(schema, "")
    return Presented(description=clean(definition.description), schema=schema)


def _cleaned(value: Any, keyword: str) -> Any:
    if isinstance(value, str):
        text = clean(value)
        if text != value and keyword not in _EXPLAINING:
            raise DefinitionRefused("a constant in its schema holds characters that a reader cannot see")
        return text
    if isinstance(value, list):
        return [_cleaned(item, keyword) for item in value]
    if not isinstance(value, dict):
        return value
    if any(clean(name) != name for name in value):
        raise DefinitionRefused("a name in its schema holds characters that a reader cannot see")
    return {name: _cleaned(inner, name) for name, inner in value.items()}
