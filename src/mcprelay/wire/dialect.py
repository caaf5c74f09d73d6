"""Schemas of tools rewritten for what the providers of models take.

Each function is pure and gives the rewritten schema, every change it made, and the way back: what the model sends for
the rewritten schema as arguments for the original one. Whatever a model is shown, arguments are validated against the
original. The module knows the providers' rules; it does not know their SDKs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mcprelay.wire.change import Changes
from mcprelay.wire.gemini import reduced
from mcprelay.wire.inline import inlined
from mcprelay.wire.reference import Node, Schema, mapped
from mcprelay.wire.restore import member_names, without_fill, without_names
from mcprelay.wire.schema import DEFAULT_LIMITS, SchemaLimits, well_formed
from mcprelay.wire.strict import Lost, Strict

MemberRule = Literal["any", "anthropic", "gemini"]
"""Whose rule for the names of an object's members is kept."""
Formed = Literal["known", "unknown"]
"""Whether a schema is known to be within its limits and of the form of its draft, as one with a `Validator` is."""
RULES: dict[MemberRule, re.Pattern[str]] = {
    "any": re.compile(r"(?s:.*)"),
    "anthropic": re.compile(r"[A-Za-z0-9_.-]{1,64}"),
    "gemini": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}"),
}


class Rewritten(Struct, frozen=True):
    """A schema for a provider.

    Attributes:
        text: The rewritten schema as JSON, an object schema with `properties`.
        changes: What was changed, each with its place. Words of the original: untrusted.
        restore: Turns arguments for `schema` into arguments for the original. They are still to be validated.
    """

    text: bytes
    changes: tuple[str, ...]
    restore: Callable[[dict[str, Any]], dict[str, Any]]

    @property
    def schema(self) -> Node:
        """The rewritten schema, another one each time: who is given it may change it."""
        return msgspec.json.decode(self.text)  # type: ignore[no-any-return]


def plain(
    schema: Node, *, members: MemberRule = "any", limits: SchemaLimits = DEFAULT_LIMITS, formed: Formed = "unknown"
) -> Rewritten:
    """The same demands without references, `$schema`, comments and `x-…`: for providers that take JSON Schema 2020-12.

    Raises:
        SchemaRefused: The schema is over a limit, is no valid schema, or refers to something outside of itself.
    """
    made, changes = _prepared(schema, limits, formed)
    rule = RULES[members]
    if members == "any":
        return Rewritten(msgspec.json.encode(made), changes.told, dict)
    renamed = _renamed(made, rule, "#", changes)
    return Rewritten(
        msgspec.json.encode(renamed),
        changes.told,
        lambda given: without_names(given, schema, rule, work=limits.schema_work),
    )


def openai_strict(
    schema: Node, *, limits: SchemaLimits = DEFAULT_LIMITS, formed: Formed = "unknown"
) -> Rewritten | None:
    """The form that OpenAI enforces while the model writes, or None where the meaning would change.

    Every member is required there; one that may be left out takes null instead, and the way back removes that null. A
    null that the original allows stays.

    Raises:
        SchemaRefused: The schema is over a limit, is no valid schema, or refers to something outside of itself.
    """
    made, changes = _prepared(schema, limits, formed)
    try:
        strict = Strict(changes).root(made)
    except Lost:
        return None
    return Rewritten(
        msgspec.json.encode(strict), changes.told, lambda given: without_fill(given, schema, work=limits.schema_work)
    )


def gemini(schema: Node, *, limits: SchemaLimits = DEFAULT_LIMITS, formed: Formed = "unknown") -> Rewritten:
    """The keywords that Gemini takes; demands that it cannot express move into the description.

    Raises:
        SchemaRefused: The schema is over a limit, is no valid schema, or refers to something outside of itself.
    """
    made, changes = _prepared(schema, limits, formed)
    rule = RULES["gemini"]
    made = reduced(_renamed(made, rule, "#", changes), "#", changes)
    return Rewritten(
        msgspec.json.encode(made),
        changes.told,
        lambda given: without_names(given, schema, rule, work=limits.schema_work),
    )


def _prepared(schema: Node, limits: SchemaLimits, formed: Formed) -> tuple[Node, Changes]:
    """The schema without references, as an object schema with `properties`, since arguments are always an object."""
    if formed == "unknown":
        well_formed(schema, limits=limits)
    made, changes = inlined(schema, growth=limits.schema_bytes // 4)
    if made.get("type") != "object":
        made = {"type": "object", **{keyword: value for keyword, value in made.items() if keyword != "type"}}
        changes.append("#: type set to object, as arguments are")
    if not isinstance(made.get("properties"), dict):
        made["properties"] = {}
        changes.append("#: empty properties added")
    return made, changes


def _renamed(node: Schema, rule: re.Pattern[str], where: str, changes: Changes) -> Any:
    """Members renamed wherever the rule forbids their name, in `properties` and `required` alike."""
    if isinstance(node, bool):
        return node
    made = mapped(node, where, lambda inner, place: _renamed(inner, rule, place, changes))
    properties, required = made.get("properties"), made.get("required")
    names = member_names(properties if isinstance(properties, dict) else (), rule)
    changes.extend(f"{where}: member {old!r} shown as {new!r}" for old, new in names.items() if old != new)
    if names:
        made["properties"] = {names[name]: inner for name, inner in made["properties"].items()}
    if isinstance(required, list):
        made["required"] = [names.get(name) or member_names([name], rule)[name] for name in required]
    return made
