"""The part of JSON Schema that Gemini takes. What it cannot say is told in the description, never lost in silence.

It knows keywords only; the names of members are `dialect`'s business.
"""

from __future__ import annotations

from typing import Any

import msgspec

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
_LONGEST = 200
"""Characters of one demand told in words."""


def reduced(node: Any, where: str, changes: list[str]) -> Any:
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


def _merged(node: Node, where: str, changes: list[str]) -> Node:
    """`allOf` taken into the schema around it, as far as no keyword is said twice."""
    made = dict(node)
    left = []
    for inner in made.pop("allOf", []):
        joined = _joined(made, inner) if isinstance(inner, dict) else None
        if joined is None:
            left.append(inner)
        else:
            made = joined
            changes.append(f"{where}: a part of allOf taken into the schema")
    return {**made, "allOf": left} if left else made


def _joined(one: Node, other: Node) -> Node | None:
    """Two schemas that both apply as one, or None where that is not plainly possible."""
    twice = {keyword for keyword in one.keys() & other.keys() if one[keyword] != other[keyword]}
    if (
        not twice <= {"properties", "required", "description", "title"}
        or "additionalProperties" in one.keys() ^ other.keys()
    ):
        return None
    made = {**other, **one}
    if "properties" in twice:
        if not one["properties"].keys().isdisjoint(other["properties"]):
            return None
        made["properties"] = {**one["properties"], **other["properties"]}
    if "required" in twice:
        made["required"] = list(dict.fromkeys([*one["required"], *other["required"]]))
    return made


def _bounds(node: Node, where: str, changes: list[str]) -> Node:
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


def _constant(node: Node, where: str, changes: list[str]) -> Node:
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
