"""The way back: arguments that a model made for a rewritten schema, as arguments for the original schema.

A value is walked along every schema that may describe it (through references, `allOf`, `anyOf`, `oneOf`, `if`), so
that nothing has to be guessed about which alternative was meant. Nothing is validated here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from mcprelay.wire.reference import Document, Node, Schema

_DEEPEST = 128
_WIDEST = 256
"""How many schemas are looked at for one value."""
_BESIDE = ("allOf", "anyOf", "oneOf")
_BRANCHES = ("then", "else")

_Step: TypeAlias = Callable[[dict[str, Any], list[Node]], dict[str, Any]]


def without_fill(arguments: dict[str, Any], schema: Node) -> dict[str, Any]:
    """Drop each null that stands for a member left out: the schema does not require it and does not take null."""
    document = Document(schema)
    return dict(_walk(arguments, [schema], document, lambda value, schemas: _unfilled(value, schemas, document), 0))


def without_names(arguments: dict[str, Any], schema: Node, rule: re.Pattern[str]) -> dict[str, Any]:
    """Give members back the names that they have in the schema."""
    document = Document(schema)
    return dict(_walk(arguments, [schema], document, lambda value, schemas: _unnamed(value, schemas, rule), 0))


def member_names(names: Iterable[str], rule: re.Pattern[str]) -> dict[str, str]:
    """For each member name the one that keeps the rule. Names that keep it stay; no two become one."""
    listed = list(names)
    taken = {name for name in listed if rule.fullmatch(name)}
    made: dict[str, str] = {}
    for name in listed:
        if name in taken:
            made[name] = name
            continue
        folded = re.sub(r"[^A-Za-z0-9_]", "_", name)[:56]
        folded = folded if folded[:1].isalpha() or folded[:1] == "_" else f"_{folded}"
        free = next(f"{folded}{end}" for end in ("", *range(2, len(listed) + 3)) if f"{folded}{end}" not in taken)
        taken.add(free)
        made[name] = free
    return made


def accepts_null(schema: Schema, document: Document, *, depth: int = 0) -> bool:
    """Whether null may fit a schema, as far as types, constants and alternatives say. In doubt it may."""
    if isinstance(schema, bool) or depth > _DEEPEST:
        return schema is not False
    types = schema.get("type", "null")
    if types != "null" and not (isinstance(types, list) and "null" in types):
        return False
    options = schema.get("enum")
    if schema.get("const") is not None or (isinstance(options, list) and None not in options):
        return False
    every = [*_listed(schema, "allOf"), *document.references(schema)]
    if not all(accepts_null(inner, document, depth=depth + 1) for inner in every):
        return False
    return all(
        any(accepts_null(inner, document, depth=depth + 1) for inner in _listed(schema, keyword))
        for keyword in ("anyOf", "oneOf")
        if _listed(schema, keyword)
    )


def _listed(schema: Node, keyword: str) -> list[Schema]:
    value = schema.get(keyword)
    return [inner for inner in value if isinstance(inner, dict | bool)] if isinstance(value, list) else []


def _walk(value: Any, schemas: list[Node], document: Document, step: _Step, depth: int) -> Any:
    """The value with `step` taken on each object in it that a schema describes, outer ones first."""
    if depth > _DEEPEST or not schemas or not isinstance(value, dict | list):
        return value
    spread = _spread(schemas, document)
    if isinstance(value, list):
        return [_walk(item, _element(spread, index), document, step, depth + 1) for index, item in enumerate(value)]
    stepped = step(value, spread)
    return {name: _walk(inner, _member(spread, name), document, step, depth + 1) for name, inner in stepped.items()}


def _spread(schemas: list[Node], document: Document) -> list[Node]:
    """These schemas and all that apply to the same value."""
    found: dict[int, Node] = {}
    waiting: list[Schema] = list(schemas)
    while waiting and len(found) < _WIDEST:
        node = waiting.pop()
        if isinstance(node, dict) and id(node) not in found:
            found[id(node)] = node
            waiting.extend(inner for keyword in _BESIDE for inner in _listed(node, keyword))
            waiting.extend(node[keyword] for keyword in _BRANCHES if keyword in node)
            waiting.extend(document.references(node))
    return list(found.values())


def _properties(node: Node) -> dict[str, Any]:
    found = node.get("properties")
    return found if isinstance(found, dict) else {}


def _member(schemas: list[Node], name: str) -> list[Node]:
    """The schemas that may describe a member."""
    found: list[Any] = []
    for node in schemas:
        properties = _properties(node)
        found.append(properties[name] if name in properties else node.get("additionalProperties"))
    return [inner for inner in found if isinstance(inner, dict)]


def _element(schemas: list[Node], index: int) -> list[Node]:
    """The schemas that may describe an item."""
    found: list[Any] = []
    for node in schemas:
        first = _listed(node, "prefixItems")
        found.append(first[index] if index < len(first) else node.get("items"))
    return [inner for inner in found if isinstance(inner, dict)]


def _unfilled(value: dict[str, Any], schemas: list[Node], document: Document) -> dict[str, Any]:
    return {name: inner for name, inner in value.items() if inner is not None or not _fill(name, schemas, document)}


def _fill(name: str, schemas: list[Node], document: Document) -> bool:
    """Whether a null in this place can only mean that the member is left out."""
    holders = [node for node in schemas if name in _properties(node)]
    required = [isinstance(node.get("required"), list) and name in node["required"] for node in holders]
    declared = [_properties(node)[name] for node in holders]
    return bool(holders) and not all(required) and not any(accepts_null(inner, document) for inner in declared)


def _unnamed(value: dict[str, Any], schemas: list[Node], rule: re.Pattern[str]) -> dict[str, Any]:
    original: dict[str, str] = {}
    for node in schemas:
        for name, shown in member_names(_properties(node), rule).items():
            original.setdefault(shown, name)
    return {original.get(name, name): inner for name, inner in value.items()}
