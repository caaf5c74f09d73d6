"""The part of JSON Schema that Gemini takes. What it cannot say is told in the description, never lost in silence.

It knows keywords only; the names of members are `dialect`'s business.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mcprelay.wire.change import Changes
from mcprelay.wire.reference import Node, mapped
from mcprelay.wire.strict import DEMANDS

SAYS = frozenset(
    [
        *("type", "format", "title", "description", "enum", "$ref", "$defs", "anyOf", "oneOf"),
        *("properties", "required", "additionalProperties"),
        *("items", "prefixItems", "minItems", "maxItems", "minimum", "maximum"),
    ]
)
"""Keywords that Gemini takes."""
_TOLD = DEMANDS | {"pattern", "multipleOf", "exclusiveMinimum", "exclusiveMaximum", "const", "default", "enum"}
"""Keywords that are told in words where they cannot stand; any other one demands nothing and is left out."""
_GROWING = frozenset(["properties", "required"])
"""Keywords that two schemas may both have and that join."""
_LONGEST = 200
"""Characters of one demand told in words."""


def reduced(node: Any, where: str, changes: Changes) -> Any:
    """The schema in Gemini's keywords; `changes` is appended to."""
    if not isinstance(node, dict):
        return node
    made = _constant(_bounds(_merged(node, where, changes), where, changes), where, changes)
    told = {keyword: value for keyword, value in made.items() if not _stands(keyword, value)}
    made = {keyword: value for keyword, value in made.items() if keyword not in told}
    words = []
    for keyword, value in told.items():
        changes.append(f"{where}: {keyword} {'told in the description' if keyword in _TOLD else 'left out'}")
        if keyword in _TOLD:
            words.append(f"{keyword}: {_words(value)}")
    if words:
        before = made.get("description", "")
        made["description"] = f"{before} ({'; '.join(words)})" if before else f"({'; '.join(words)})"
    return _spelled(mapped(made, where, lambda inner, place: reduced(inner, place, changes)))


def _stands(keyword: str, value: Any) -> bool:
    """Whether a keyword can stay as it is: of constants Gemini takes texts and numbers only."""
    if keyword == "enum":
        return all(isinstance(option, str | int | float) and not isinstance(option, bool) for option in value)
    return keyword in SAYS


def _words(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _merged(node: Node, where: str, changes: Changes) -> Node:
    """`allOf` taken into the schema around it, as far as no keyword is said twice."""
    made = dict(node)
    parts, left = made.pop("allOf", []), []
    for keyword in _GROWING & made.keys():
        made[keyword] = made[keyword].copy()  # once, and not once for each part that is taken in
    for inner in parts:
        if isinstance(inner, dict) and _join(made, inner):
            changes.append(f"{where}: a part of allOf taken into the schema")
        else:
            left.append(inner)
    if "required" in made and parts:
        made["required"] = list(dict.fromkeys(made["required"]))
    return {**made, "allOf": [*made.get("allOf", ()), *left]} if left else made


def _join(made: Node, other: Node) -> bool:
    """Take a schema that also applies into one that is made, or leave both as they are: where that is not plain."""
    twice = {keyword for keyword in other if keyword in made and made[keyword] != other[keyword]}
    if (
        not twice <= {"properties", "required", "description", "title"}
        or ("additionalProperties" in made) != ("additionalProperties" in other)
        or ("properties" in twice and not made["properties"].keys().isdisjoint(other["properties"]))
    ):
        return False
    for keyword, value in other.items():
        if keyword not in made:
            made[keyword] = value.copy() if keyword in _GROWING else value
    if "properties" in twice:
        made["properties"].update(other["properties"])
    if "required" in twice:
        made["required"].extend(other["required"])
    return True


def _bounds(node: Node, where: str, changes: Changes) -> Node:
    """Exclusive bounds of whole numbers as inclusive ones."""
    if node.get("type") != "integer":
        return node
    made = dict(node)
    for exclusive, inclusive, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
        bound = made.get(exclusive)
        if isinstance(bound, int) and not isinstance(bound, bool) and inclusive not in made:
            made[inclusive] = made.pop(exclusive) + step
            changes.append(f"{where}: {exclusive} as {inclusive}")
    return made


def _constant(node: Node, where: str, changes: Changes) -> Node:
    """A constant as an enumeration of one."""
    if "const" not in node or "enum" in node or not _stands("enum", [node["const"]]):
        return node
    changes.append(f"{where}: const as enum")
    return {**{keyword: value for keyword, value in node.items() if keyword != "const"}, "enum": [node["const"]]}


def _spelled(made: Node) -> Node:
    """Boolean schemas written out: true as the empty schema; what is false is not there."""
    if isinstance(made.get("properties"), dict):
        spelled = {name: {} if inner is True else inner for name, inner in made["properties"].items()}
        made["properties"] = {name: inner for name, inner in spelled.items() if inner is not False}
    for keyword in ("anyOf", "oneOf", "prefixItems"):
        if keyword in made:
            made[keyword] = [inner if isinstance(inner, dict) else {} for inner in made[keyword] if inner is not False]
    if isinstance(made.get("items"), bool):
        del made["items"]
    if isinstance(made.get("items"), list):
        made["prefixItems"] = made.pop("items")
    return made
