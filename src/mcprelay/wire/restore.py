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
_LOOK = 8
"""Steps that looking at one schema, or at the name of one member, takes."""
_BESIDE = ("allOf", "anyOf", "oneOf")
_BRANCHES = ("then", "else")

_Step: TypeAlias = "Callable[[_Way, dict[str, Any], _Place], dict[str, Any]]"


def without_fill(arguments: dict[str, Any], schema: Node, *, work: int) -> dict[str, Any]:
    """Drop each null that stands for a member left out: the schema does not require it and does not take null.

    Args:
        work: Steps, as `schema_work` bounds them. What they do not suffice for stays as it is.
    """
    return _Way(schema, lambda way, value, place: way.unfilled(value, place), work=work).back(arguments)


def without_names(arguments: dict[str, Any], schema: Node, rule: re.Pattern[str], *, work: int) -> dict[str, Any]:
    """Give members back the names that they have in the schema; `work` as for `without_fill`."""
    return _Way(schema, lambda way, value, place: way.unnamed(value, place, rule), work=work).back(arguments)


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


class _Place:
    """A place of a value: the schemas that may describe it, and what was found out about what lies inside of it."""

    __slots__ = ("elements", "fills", "listed", "members", "names", "schemas")

    def __init__(self, schemas: list[Node]) -> None:
        self.schemas = schemas
        self.listed = max((len(_first(node)) for node in schemas), default=0)
        self.members: dict[str, _Place] = {}
        self.elements: dict[int, _Place] = {}
        self.fills: dict[str, bool] = {}
        self.names: dict[str, str] | None = None


class _Way:
    """One walk along arguments and what may describe them. What is found out about a place is found out once.

    Finding out is counted, since the schema decides how many places there are and how many schemas apply to each. What
    is reached after `work` steps stays as it is: whoever checks it afterwards has the same limit, and names it.

    Args:
        schema: The original schema.
        step: Taken on each object that a schema describes, outer ones first.
        work: Steps; a value takes one.
    """

    def __init__(self, schema: Node, step: _Step, *, work: int) -> None:
        self._schema = schema
        self._step = step
        self._left = work
        self._document = Document(schema)
        self._nulls = Nulls(self._document)
        self._places: dict[tuple[int, ...], _Place] = {}
        self._neighbors: dict[int, list[Schema]] = {}
        self._required: dict[int, frozenset[Any]] = {}

    def back(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments for the original schema."""
        return dict(self._walk(arguments, self._place([self._schema]), 0))

    def _walk(self, value: Any, place: _Place, depth: int) -> Any:
        if depth > _DEEPEST or not place.schemas or not isinstance(value, dict | list) or self._left < 0:
            return value
        self._left -= len(value)
        if isinstance(value, list):
            return [self._walk(item, self._element(place, index), depth + 1) for index, item in enumerate(value)]
        stepped = self._step(self, value, place)
        return {name: self._walk(inner, self._member(place, name), depth + 1) for name, inner in stepped.items()}

    def _member(self, place: _Place, name: str) -> _Place:
        """The place of a member."""
        found = place.members.get(name)
        if found is None:
            self._left -= _LOOK * len(place.schemas)
            found = place.members[name] = self._place(_member(place.schemas, name))
        return found

    def _element(self, place: _Place, index: int) -> _Place:
        """The place of an item; those behind all that are listed one by one are alike."""
        index = min(index, place.listed)
        found = place.elements.get(index)
        if found is None:
            self._left -= _LOOK * len(place.schemas)
            found = place.elements[index] = self._place(_element(place.schemas, index))
        return found

    def _place(self, schemas: list[Node]) -> _Place:
        """The place that these schemas and all that apply beside them describe."""
        key = tuple(map(id, schemas))
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = _Place(self._applying(schemas))
        return known

    def _applying(self, schemas: list[Node]) -> list[Node]:
        found: dict[int, Node] = {}
        waiting: list[Iterator[Schema]] = [iter(schemas)]
        while waiting and len(found) < _WIDEST and self._left >= 0:
            self._left -= _LOOK
            node = next(waiting[-1], None)
            if node is None:
                waiting.pop()
            elif isinstance(node, dict) and id(node) not in found:
                found[id(node)] = node
                waiting.append(iter(self._beside(node)))
        return list(found.values())

    def _beside(self, node: Node) -> list[Schema]:
        if id(node) not in self._neighbors:
            parts = [inner for keyword in _BESIDE for inner in _listed(node, keyword)]
            branches = (node.get(keyword, True) for keyword in _BRANCHES)
            self._neighbors[id(node)] = [*parts, *branches, *self._document.references(node)]
        return self._neighbors[id(node)]

    def unfilled(self, value: dict[str, Any], place: _Place) -> dict[str, Any]:
        """An object without the nulls that stand for a member left out."""
        return {name: inner for name, inner in value.items() if inner is not None or not self._fill(name, place)}

    def _fill(self, name: str, place: _Place) -> bool:
        """Whether a null in this place can only mean that the member is left out."""
        if name not in place.fills:
            self._left -= _LOOK * len(place.schemas)
            place.fills[name] = self._left >= 0 and self._fills(name, place.schemas)
        return place.fills[name]

    def _fills(self, name: str, schemas: list[Node]) -> bool:
        holders = [node for node in schemas if name in _properties(node)]
        if not holders or all(name in self._requires(node) for node in holders):
            return False
        return not any(self._nulls.fit(_properties(node)[name]) for node in holders)

    def _requires(self, node: Node) -> frozenset[Any]:
        if id(node) not in self._required:
            required = node.get("required")
            self._required[id(node)] = frozenset(required if isinstance(required, list) else ())
        return self._required[id(node)]

    def unnamed(self, value: dict[str, Any], place: _Place, rule: re.Pattern[str]) -> dict[str, Any]:
        """An object whose members have the names of the schema again."""
        if place.names is None:
            place.names = {}
            for node in place.schemas:
                self._left -= _LOOK * len(_properties(node))
                for name, shown in member_names(_properties(node), rule).items() if self._left >= 0 else ():
                    place.names.setdefault(shown, name)
        return {place.names.get(name, name): inner for name, inner in value.items()}


def _properties(node: Node) -> dict[str, Any]:
    found = node.get("properties")
    return found if isinstance(found, dict) else {}


def _first(node: Node) -> list[Any]:
    found = node.get("prefixItems")
    return found if isinstance(found, list) else []


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
        first = _first(node)
        found.append(first[index] if index < len(first) else node.get("items"))
    return [inner for inner in found if isinstance(inner, dict)]
