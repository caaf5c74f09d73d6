"""How a JSON Schema document hangs together: where schemas lie inside it, and which of them a `$ref` means.

It knows the keywords that hold schemas, `$id`, anchors and JSON pointers. It does not know what the keywords demand,
and it never leaves the document: a reference that points elsewhere is refused, not fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from mcprelay.errors import MCPRelayError
from mcprelay.wire.change import inside

Schema: TypeAlias = dict[str, Any] | bool
Node: TypeAlias = dict[str, Any]

ONE = frozenset(
    [
        "not",
        "if",
        "then",
        "else",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "items",
        "contains",
        "unevaluatedItems",
        "additionalItems",
        "contentSchema",
    ]
)
"""Keywords whose value is a schema (`items` and `dependencies` have a second form in older drafts)."""
MANY = frozenset(("allOf", "anyOf", "oneOf", "prefixItems", "items"))
"""Keywords whose value is a list of schemas."""
NAMED = frozenset(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"])
"""Keywords whose value maps names to schemas: the names are data, never keywords."""
_GATHERING = MANY | NAMED
SAME_PLACE = frozenset(["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"])
"""Keywords whose schemas apply to the very value that their parent applies to."""
SHELVES = frozenset(("$defs", "definitions"))
"""Keywords whose schemas apply to nothing until a reference names them."""
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_LONGEST_BASE = 2_048
"""Characters of an address that other addresses are resolved against: each of them repeats it."""


class SchemaRefused(MCPRelayError):
    """A schema cannot be used here.

    Attributes:
        reason: What is wrong with it. Holds words of the schema: untrusted text where the schema is.
        limit: The name of the setting that was exceeded, or None when it was no limit.
    """

    def __init__(self, reason: str, *, limit: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.limit = limit


def subschemas(node: Node) -> Iterator[tuple[str, str | int | None, Schema]]:
    """Every schema directly inside a schema, as `(keyword, name or index or None, schema)`, in document order."""
    for keyword, value in node.items():
        if isinstance(value, dict):
            if keyword in NAMED:
                for name, inner in value.items():
                    if isinstance(inner, dict | bool):
                        yield keyword, name, inner
            elif keyword in ONE:
                yield keyword, None, value
        elif isinstance(value, list):
            if keyword in MANY:
                for index, inner in enumerate(value):
                    if isinstance(inner, dict | bool):
                        yield keyword, index, inner
        elif isinstance(value, bool) and keyword in ONE:
            yield keyword, None, value


def mapped(node: Node, where: str, change: Callable[[Schema, str], Any]) -> Node:
    """A copy of a schema with each schema directly inside it changed; `change` gets it and its place."""
    made = dict(node)
    for keyword, value in node.items():
        if keyword in _GATHERING and isinstance(value, dict | list):
            made[keyword] = value.copy()
    for keyword, name, inner in subschemas(node):
        if name is None:
            made[keyword] = change(inner, inside(where, keyword))
        else:
            made[keyword][name] = change(inner, inside(where, keyword, name))
    return made


class Document:
    """One schema document, and the references within it. The schema is only read, and kept alive."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self._resources: dict[str, Schema] = {"": root}
        self._anchors: dict[tuple[str, str], Node] = {}
        self._bases: dict[int, str] = {}
        self._indexed = False

    def target(self, node: Node, reference: str) -> Schema:
        """The schema that `reference`, standing in `node`, means.

        Raises:
            SchemaRefused: It points outside of the document, at nothing, or at something that is no schema.
        """
        self._index()
        base, fragment = self._split(node, reference)
        resource = self._resources.get(base)
        if resource is None:
            raise SchemaRefused(f"the reference {reference!r} points outside of the schema; nothing is fetched")
        found = self._anchors.get((base, fragment)) if fragment[:1] not in {"", "/"} else pointed(resource, fragment)
        if not isinstance(found, dict | bool):
            raise SchemaRefused(f"the reference {reference!r} points at no schema")
        return found

    def references(self, node: Node) -> Iterator[Schema]:
        """The schemas that the references standing directly in `node` mean."""
        for keyword in REFERENCES:
            reference = node.get(keyword)
            if isinstance(reference, str):
                yield self.target(node, reference)

    def edges(self, node: Node) -> Iterator[tuple[bool, Node]]:
        """The schemas that apply because `node` does, as `(to the same value?, schema)`."""
        for keyword, _, inner in subschemas(node):
            if isinstance(inner, dict) and keyword not in SHELVES:
                yield keyword in SAME_PLACE, inner
        for inner in self.references(node):
            if isinstance(inner, dict):
                yield True, inner

    def _split(self, node: Node, reference: str) -> tuple[str, str]:
        from urllib.parse import unquote

        base = self._bases.get(id(node), self._bases.get(id(self.root), ""))
        if not base and reference[:1] == "#" and reference.isascii() and reference.isprintable():
            return base, unquote(reference[1:])  # what most of them are, told without taking an address apart
        address, fragment = absolute(base, reference)
        return address or base, unquote(fragment)

    def _index(self) -> None:
        """Find every `$id` and anchor, once."""
        if self._indexed:
            return
        self._indexed = True
        waiting: list[tuple[Schema, str]] = [(self.root, "")]
        while waiting:
            node, base = waiting.pop()
            if isinstance(node, dict) and id(node) not in self._bases:
                inside = self._enter(node, base)
                waiting.extend((inner, inside) for _, _, inner in subschemas(node))

    def _enter(self, node: Node, base: str) -> str:
        """Note what `node` is called, and give the base that holds inside it."""
        own = node.get("$id")
        if isinstance(own, str):
            address, fragment = absolute(base, own)
            if fragment and address in {"", base}:
                self._anchors.setdefault((base, fragment), node)  # how older drafts write an anchor
            else:
                base = address
                self._resources.setdefault(base, node)
        for keyword in ("$anchor", "$dynamicAnchor"):
            name = node.get(keyword)
            if isinstance(name, str):
                self._anchors.setdefault((base, name), node)
        self._bases[id(node)] = base
        return base


def require_short(root: Schema) -> None:
    """See that no address in a schema is so long that all those resolved against it would fill the memory.

    Raises:
        SchemaRefused: One may be.
    """
    waiting: list[tuple[Schema, int]] = [(root, 0)]
    while waiting:
        node, length = waiting.pop()
        if isinstance(node, dict):
            own = node.get("$id", node.get("id"))  # `id` is what the oldest draft calls it
            length += len(own) if isinstance(own, str) else 0
            if length > _LONGEST_BASE:
                raise SchemaRefused(f"an $id in the schema is an address of more than {_LONGEST_BASE} characters")
            waiting.extend((inner, length) for _, _, inner in subschemas(node))


def absolute(base: str, reference: str) -> tuple[str, str]:
    """A reference resolved against a base, as `(address, fragment)`."""
    from urllib.parse import urldefrag, urljoin

    try:
        found = urldefrag(urljoin(base, reference) if base else reference)
    except ValueError:
        raise SchemaRefused(f"{reference!r} is no URI reference") from None
    return found.url, found.fragment


def pointed(resource: Schema, pointer: str) -> Any:
    """What an RFC 6901 pointer means inside of a resource, or None."""
    return walked(resource, (step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]))


def walked(root: Any, steps: Iterable[str | int]) -> Any:
    """What lies at the end of these member names and indexes, or None."""
    found = root
    for step in steps:
        name = str(step)
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isascii() and name.isdigit() and len(name) < 9 and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found
