"""The way back: arguments that a model made for a rewritten schema, as arguments for the original schema.

A value is walked along every schema that may describe it (through references, `allOf`, `anyOf`, `oneOf`, `if`), so
that nothing has to be guessed about which alternative was meant. Nothing is validated here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any, TypeAlias

from mcprelay.wire.reference import Document, Node, Schema

_DEEPEST = 128
_WIDEST = 256
"""How many schemas are looked at for one value."""
_BESIDE = ("allOf", "anyOf", "oneOf")
_BRANCHES = ("then", "else")

_Step: TypeAlias = "Callable[[_Way, dict[str, Any], list[Node]], dict[str, Any]]"


def without_fill(arguments: dict[str, Any], schema: Node) -> dict[str, Any]:
    """Drop each null that stands for a member left out: the schema does not require it and does not take null."""
    return _Way(schema, lambda way, value, schemas: way.unfilled(value, schemas)).back(arguments)


def without_names(arguments: dict[str, Any], schema: Node, rule: re.Pattern[str]) -> dict[str, Any]:
    """Give members back the names that they have in the schema."""
    return _Way(schema, lambda way, value, schemas: way.unnamed(value, schemas, rule)).back(arguments)


def member_names(names: Iterable[str], rule: re.Pattern[str]) -> dict[str, str]:
    """For each member name the one that keeps the rule. Names that keep it stay; no two become one."""
    listed = list(names)
    taken = {name for name in listed if rule.fullmatch(name)}
    made: dict[str, str] = {}
    numbers: dict[str, Iterator[int]] = {}  # for each folded form: a thousand alike are not tried a million times
    for name in listed:
        if name in taken:
            made[name] = name
            continue
        folded = free = _folded(name)
        while free in taken:
            if folded not in numbers:
                numbers[folded] = count(2)
            free = f"{folded}{next(numbers[folded])}"
        taken.add(free)
        made[name] = free
    return made


def _folded(name: str) -> str:
    folded = re.sub(r"[^A-Za-z0-9_]", "_", name[:56])
    return folded if folded[:1].isalpha() or folded[:1] == "_" else f"_{folded}"


class Nulls:
    """Which schemas of a document null may fit, each looked at once however many references lead to it."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known: dict[int, bool] = {}

    def fit(self, schema: Schema) -> bool:
        """Whether null may fit a schema, as far as types, constants and alternatives say. In doubt it may."""
        if isinstance(schema, bool):
            return schema
        stack: list[tuple[Node, bool]] = [(schema, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                self._known[id(node)] = self._decided(node)
            elif id(node) not in self._known:
                self._known[id(node)] = own = _own(node)  # what leads back to itself is in doubt
                if own:
                    stack.append((node, True))
                    stack.extend((inner, False) for inner in self._beside(node) if isinstance(inner, dict))
        return self._known[id(schema)]

    def _beside(self, node: Node) -> Iterator[Schema]:
        for keyword in _BESIDE:
            yield from _listed(node, keyword)
        yield from self._document.references(node)

    def _decided(self, node: Node) -> bool:
        """Whether null may fit a schema, once that is known of those beside it."""
        some = all(
            any(map(self._found, _listed(node, keyword))) for keyword in ("anyOf", "oneOf") if _listed(node, keyword)
        )
        return some and all(map(self._found, (*_listed(node, "allOf"), *self._document.references(node))))

    def _found(self, schema: Schema) -> bool:
        return schema if isinstance(schema, bool) else self._known[id(schema)]


def _own(node: Node) -> bool:
    """Whether a schema's own type and constants let null through."""
    types, options = node.get("type", "null"), node.get("enum")
    if types != "null" and not (isinstance(types, list) and "null" in types):
        return False
    return node.get("const") is None and not (isinstance(options, list) and None not in options)


def _listed(schema: Node, keyword: str) -> list[Schema]:
    value = schema.get(keyword)
    return [inner for inner in value if isinstance(inner, dict | bool)] if isinstance(value, list) else []


class _Way:
    """One walk along arguments and what may describe them. What is found out about a schema is found out once.

    Args:
        schema: The original schema.
        step: Taken on each object that a schema describes, outer ones first.
    """

    def __init__(self, schema: Node, step: _Step) -> None:
        self._schema = schema
        self._step = step
        self._document = Document(schema)
        self._nulls = Nulls(self._document)
        self._spreads: dict[tuple[int, ...], list[Node]] = {}
        self._required: dict[int, frozenset[Any]] = {}
        self._names: dict[int, dict[str, str]] = {}

    def back(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments for the original schema."""
        return dict(self._walk(arguments, [self._schema], 0))

    def _walk(self, value: Any, schemas: list[Node], depth: int) -> Any:
        if depth > _DEEPEST or not schemas or not isinstance(value, dict | list):
            return value
        spread = self._spread(schemas)
        if isinstance(value, list):
            return [self._walk(item, _element(spread, index), depth + 1) for index, item in enumerate(value)]
        stepped = self._step(self, value, spread)
        return {name: self._walk(inner, _member(spread, name), depth + 1) for name, inner in stepped.items()}

    def _spread(self, schemas: list[Node]) -> list[Node]:
        """These schemas and all that apply to the same value."""
        place = tuple(map(id, schemas))
        known = self._spreads.get(place)
        if known is None:
            known = self._spreads[place] = self._applying(schemas)
        return known

    def _applying(self, schemas: list[Node]) -> list[Node]:
        found: dict[int, Node] = {}
        waiting: list[Iterator[Schema]] = [iter(schemas)]
        while waiting and len(found) < _WIDEST:
            node = next(waiting[-1], None)
            if node is None:
                waiting.pop()
            elif isinstance(node, dict) and id(node) not in found:
                found[id(node)] = node
                waiting.append(self._beside(node))
        return list(found.values())

    def _beside(self, node: Node) -> Iterator[Schema]:
        for keyword in _BESIDE:
            yield from _listed(node, keyword)
        for keyword in _BRANCHES:
            yield node.get(keyword, True)
        yield from self._document.references(node)

    def unfilled(self, value: dict[str, Any], schemas: list[Node]) -> dict[str, Any]:
        """An object without the nulls that stand for a member left out."""
        return {name: inner for name, inner in value.items() if inner is not None or not self._fill(name, schemas)}

    def _fill(self, name: str, schemas: list[Node]) -> bool:
        """Whether a null in this place can only mean that the member is left out."""
        holders = [node for node in schemas if name in _properties(node)]
        if not holders or all(name in self._requires(node) for node in holders):
            return False
        return not any(self._nulls.fit(_properties(node)[name]) for node in holders)

    def _requires(self, node: Node) -> frozenset[Any]:
        if id(node) not in self._required:
            required = node.get("required")
            self._required[id(node)] = frozenset(required if isinstance(required, list) else ())
        return self._required[id(node)]

    def unnamed(self, value: dict[str, Any], schemas: list[Node], rule: re.Pattern[str]) -> dict[str, Any]:
        """An object whose members have the names of the schema again."""
        original: dict[str, str] = {}
        for node in schemas:
            for shown, name in self._shown(node, rule).items():
                original.setdefault(shown, name)
        return {original.get(name, name): inner for name, inner in value.items()}

    def _shown(self, node: Node, rule: re.Pattern[str]) -> dict[str, str]:
        """The names of a schema's members by those that are shown for them, where they differ."""
        if id(node) not in self._names:
            names = member_names(_properties(node), rule)
            self._names[id(node)] = {shown: name for name, shown in names.items()}
        return self._names[id(node)]


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
        first = node.get("prefixItems")
        found.append(first[index] if isinstance(first, list) and index < len(first) else node.get("items"))
    return [inner for inner in found if isinstance(inner, dict)]
