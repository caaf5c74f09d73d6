"""The form of a schema that OpenAI enforces while a model writes: every object closed, every member required.

It knows what that form can say. A member that may be left out is widened to take null. Where the form cannot say what
the schema says, `Lost` is raised and nothing is weakened in silence.
"""

from __future__ import annotations

from typing import Any

from mcprelay.wire.change import Changes, inside
from mcprelay.wire.inline import ANNOTATIONS
from mcprelay.wire.reference import Document, Node, Schema
from mcprelay.wire.restore import Nulls

SAYS = frozenset(
    [
        *("type", "enum", "const", "anyOf", "$ref", "$defs", "title", "description"),
        *("properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
        *("pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    ]
)
"""Keywords of the strict form."""
DEMANDS = frozenset(
    [
        *("allOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies"),
        *("patternProperties", "propertyNames", "unevaluatedProperties", "minProperties", "maxProperties"),
        *("prefixItems", "additionalItems", "contains", "minContains", "maxContains", "uniqueItems"),
        *("unevaluatedItems", "minLength", "maxLength", "contentSchema", "contentEncoding", "contentMediaType"),
    ]
)
"""Keywords that matter and that it does not have. Any other keyword demands nothing and is left out."""
FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])
MAX_DEPTH, MAX_MEMBERS, MAX_OPTIONS, MAX_CHARS = 10, 5_000, 1_000, 120_000


class Lost(Exception):
    """The strict form cannot say what the schema says."""


class Strict:
    """One schema on its way into the strict form. `changes` is appended to."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._members = self._options = self._chars = 0
        self._nulls = Nulls(Document({}))

    def root(self, schema: Node) -> Node:
        """The strict form of an object schema that is well formed and whose references stand alone.

        Raises:
            Lost: The meaning would change, or a bound of the form would be exceeded.
        """
        self._nulls = Nulls(Document(schema))
        if "anyOf" in schema or "$ref" in schema:
            raise Lost
        made = self._node(schema, "#", 1)
        if isinstance(shelf := schema.get("$defs"), dict):
            made["$defs"] = {name: self._schema(inner, inside("#", "$defs", name), 1) for name, inner in shelf.items()}
        return made

    def _schema(self, schema: Any, where: str, depth: int) -> Node:
        if not isinstance(schema, dict):
            raise Lost  # true and false are no schemas there
        return self._node(schema, where, depth)

    def _node(self, node: Node, where: str, depth: int) -> Node:
        if depth > MAX_DEPTH or not DEMANDS.isdisjoint(node):
            raise Lost
        made = {keyword: value for keyword, value in node.items() if self._keeps(keyword, value, where)}
        made.pop("$defs", None)
        self._typed(made)
        if "anyOf" in made:
            made["anyOf"] = self._alternatives(made, where, depth)
        if "properties" in made or _is(made, "object"):
            self._object(made, where, depth)
        if "items" in made or _is(made, "array"):
            made["items"] = self._schema(made.get("items"), inside(where, "items"), depth + 1)
        return made

    def _keeps(self, keyword: str, value: Any, where: str) -> bool:
        kept = keyword in SAYS and (keyword != "format" or value in FORMATS)
        if not kept:
            self._changes.append(f"{where}: {keyword} left out")
        return kept

    def _typed(self, made: Node) -> None:
        """See that the schema says what it is, and count what it lists."""
        if made.keys().isdisjoint(("type", "enum", "const", "anyOf", "$ref")):
            raise Lost  # a value of any kind goes: the form has no such schema
        options = made.get("enum", ())
        self._options += len(options)
        self._chars += sum(len(option) for option in options if isinstance(option, str))
        if self._options > MAX_OPTIONS or self._chars > MAX_CHARS:
            raise Lost

    def _alternatives(self, made: Node, where: str, depth: int) -> list[Node]:
        if made.keys() - ANNOTATIONS - {"anyOf"}:
            raise Lost  # demands beside alternatives
        return [self._schema(inner, inside(where, "anyOf", at), depth) for at, inner in enumerate(made["anyOf"])]

    def _object(self, made: Node, where: str, depth: int) -> None:
        """Close an object and require all its members."""
        properties = made.get("properties", {})
        required = frozenset(made.get("required", ()))
        if made.get("additionalProperties", False) is not False or ("properties" not in made and where != "#"):
            raise Lost  # members of any name are part of the meaning
        if not properties.keys() >= required:
            raise Lost
        if "additionalProperties" not in made:
            self._changes.append(f"{where}: closed to other members")
        self._members += len(properties)
        self._chars += sum(map(len, properties))
        if self._members > MAX_MEMBERS:
            raise Lost
        made["properties"] = {
            name: self._member(inner, inside(where, "properties", name), depth + 1, optional=name not in required)
            for name, inner in properties.items()
        }
        made["required"] = list(properties)
        made["additionalProperties"] = False

    def _member(self, inner: Schema, where: str, depth: int, *, optional: bool) -> Node:
        made = self._schema(inner, where, depth)
        if not optional or self._nulls.fit(inner):
            return made
        self._changes.append(f"{where}: takes null for left out")
        return _or_null(made)


def _is(made: Node, name: str) -> bool:
    types = made.get("type")
    return types == name or (isinstance(types, list) and name in types)


def _or_null(made: Node) -> Node:
    """A schema that also takes null."""
    if "type" not in made or "const" in made:
        return {"anyOf": [made, {"type": "null"}]}
    types = made["type"]
    widened = {**made, "type": [*types, "null"] if isinstance(types, list) else [types, "null"]}
    if "enum" in made:
        widened["enum"] = [*made["enum"], None]
    return widened
