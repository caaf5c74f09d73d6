"""A schema document without its references: each is replaced by what it means, within a budget.

It knows references, recursion and what may be left out because it asserts nothing (`$schema`, `$comment`, `x-…`). The
input is never changed. What cannot be replaced (recursion, or a document that would grow too large) stays a reference
into `$defs`, and its target stays with it. Where all references stay, each schema is copied once: the targets of
references are all on the shelf then, and where one of them stood inside of another schema there is a reference, too.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mcprelay.wire.change import Changes, inside
from mcprelay.wire.reference import MANY, NAMED, ONE, REFERENCES, SHELVES, Document, Node, Schema

ANNOTATIONS = frozenset(["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"])
"""Keywords that say something and demand nothing."""
_IDENTITY = frozenset(["$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$comment", "$vocabulary"])
_MARKS = (b'"$', b'"x-', b'"definitions"')
"""Where a document's JSON has none of them, nothing is replaced or left out: it is copied in one go."""
_DEEPEST = 100


class _Outgrown(Exception):
    """Replacing every reference would take more than the budget."""


def inlined(schema: Node, *, growth: int) -> tuple[Node, Changes]:
    """The schema with its references replaced, and what was changed.

    Args:
        growth: Bytes that the schema may grow by; beyond it every reference stays one.

    Raises:
        SchemaRefused: A reference points outside of the document or at nothing.
    """
    encoded = msgspec.json.encode(schema)
    if not any(mark in encoded for mark in _MARKS):
        return msgspec.json.decode(encoded), Changes()
    try:
        return _Copy(schema, budget=2 * len(encoded) + growth).made()
    except _Outgrown:
        made, changes = _Copy(schema, budget=None).made()
        changes.append("#: references stay, because the schema without them would be too large")
        return made, changes


class _Copy:
    """One walk through a document. Without a budget it replaces no reference."""

    def __init__(self, root: Node, *, budget: int | None) -> None:
        self._document = Document(root)
        self._root = root
        self._left = budget
        self._open: set[int] = set()
        self._names: dict[int, str] = {}
        self._kept: list[Node] = []
        self._targets = frozenset() if budget is not None else _targets(root, self._document)
        self._changes = Changes()

    def made(self) -> tuple[Node, Changes]:
        made = self._node(self._root, "#")
        shelf: Node = {}
        while self._kept:
            target = self._kept.pop()
            name = self._names[id(target)]
            shelf[name] = self._node(target, inside("#", "$defs", name))
        if shelf:
            made["$defs"] = dict(sorted(shelf.items()))
        return made, self._changes

    def _schema(self, schema: Schema, where: str) -> Schema:
        return self._node(schema, where) if isinstance(schema, dict) else schema

    def _node(self, node: Node, where: str) -> Node:
        self._spend(0)
        self._open.add(id(node))
        made: Node = {}
        for keyword, value in node.items():
            if keyword in _IDENTITY or keyword.startswith("x-"):
                self._changes.append(f"{where}: {keyword} left out")
            elif keyword not in SHELVES and keyword not in REFERENCES:
                self._spend(len(keyword))
                made[keyword] = self._value(keyword, value, inside(where, keyword))
        for target in self._document.references(node):
            made = self._referred(target, made, where)
        self._open.discard(id(node))
        return made

    def _value(self, keyword: str, value: Any, where: str) -> Any:
        if keyword in NAMED and isinstance(value, dict):
            self._spend(sum(map(len, value)))
            return {name: self._member(inner, inside(where, name)) for name, inner in value.items()}
        if keyword in MANY and isinstance(value, list):
            return [self._member(inner, inside(where, index)) for index, inner in enumerate(value)]
        if keyword in ONE:
            return self._member(value, where)
        encoded = msgspec.json.encode(value)
        self._spend(len(encoded))
        return msgspec.json.decode(encoded)  # a copy: an SDK that changes what it is given changes nothing of ours

    def _member(self, value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            return value
        if id(value) in self._targets or id(value) in self._open:  # the latter: a reference led to the inside of this
            return {"$ref": self._address(value)}
        return self._node(value, where)

    def _referred(self, target: Schema, made: Node, where: str) -> Node:
        """`made` with the demands of a reference's target."""
        if self._left is not None and not (isinstance(target, dict) and id(target) in self._open):
            self._changes.append(f"{where}: $ref replaced by what it means")
            found = self._schema(target, where)
        else:
            found = {"$ref": self._address(target)} if isinstance(target, dict) else target
        if isinstance(found, bool):
            return made if found else {**made, "not": {}}
        if ANNOTATIONS.issuperset(made):
            return {**found, **made}
        return {**made, "allOf": [*made.get("allOf", []), found]}

    def _address(self, target: Node) -> str:
        """What a target that stays on the shelf is called."""
        if target is self._root:
            return "#"
        if id(target) not in self._names:
            name = f"schema{len(self._names) + 1}"
            self._names[id(target)] = name
            self._kept.append(target)
        return f"#/$defs/{self._names[id(target)]}"

    def _spend(self, size: int) -> None:
        """Account for a node and `size` bytes in it."""
        if self._left is not None:
            self._left -= size + 8
            if self._left < 0 or len(self._open) > _DEEPEST:
                raise _Outgrown


def _targets(root: Node, document: Document) -> frozenset[int]:
    """Every schema that a reference which can be reached means, by identity."""
    seen: set[int] = set()
    found: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            found.update(id(target) for target in document.references(node) if isinstance(target, dict))
            waiting.extend(inner for _, inner in document.edges(node))
    return frozenset(found)
