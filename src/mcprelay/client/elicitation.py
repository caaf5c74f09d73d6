"""A server's question to a person: a form to fill in, or an address to visit.

Knows the restricted schemas of forms and their defaults (client/elicitation). Does not show anything to anybody.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from mcprelay.client.misuse import told_value
from mcprelay.types import ElicitResult
from mcprelay.wire.field import shown

_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
}

_SHOWN = 20


class Elicitation(Struct, frozen=True, rename="camel", kw_only=True):
    """What `on_elicit` gets. All of it is the server's words: untrusted.

    Attributes:
        message: Why the server asks.
        mode: `form`, or `url` for an address that the person visits after consent.
        requested_schema: The form: a flat object schema (`schema` for short).
        url: The address. Show its host, and open it only with consent.
        elicitation_id: How the server names an address (handshake revisions).
    """

    message: str = ""
    mode: Literal["form", "url"] = "form"
    requested_schema: dict[str, Any] = {}
    url: str | None = None
    elicitation_id: str | None = None

    @property
    def schema(self) -> dict[str, Any]:
        """The form's schema; empty in URL mode."""
        return self.requested_schema

    @property
    def fields(self) -> dict[str, dict[str, Any]]:
        """The form's fields by name, in the server's order."""
        properties = self.requested_schema.get("properties")
        if not isinstance(properties, dict):
            return {}
        return {name: field for name, field in properties.items() if isinstance(field, dict)}

    def defaults(self) -> dict[str, Any]:
        """The values that the form is filled in with at first."""
        return {name: field["default"] for name, field in self.fields.items() if "default" in field}

    def accept(self, content: Any = None, **values: Any) -> ElicitResult:
        """Accept: what the person submitted, over the form's defaults.

        Args:
            content: A mapping, or any dataclass, Struct or pydantic model, whose fields are the form's.
            values: The same as keywords.

        Raises:
            ValueError: The form wants something else; the text names each field.
            TypeError: `content` has no fields.
        """
        if self.mode == "url":
            return ElicitResult(action="accept")
        filled = {**self.defaults(), **_mapping(content), **values}
        faults = list(self._faults(filled))
        if faults:
            raise ValueError(f"the answer does not fit the form: {'; '.join(faults)}")
        return ElicitResult(action="accept", content=filled)

    def decline(self) -> ElicitResult:
        """The person said no."""
        return ElicitResult(action="decline")

    def cancel(self) -> ElicitResult:
        """The person made no choice."""
        return ElicitResult(action="cancel")

    def _faults(self, filled: dict[str, Any]) -> Any:
        required = self.requested_schema.get("required")
        for name in required if isinstance(required, list) else ():
            if name not in filled:
                yield f"{name!r} is required"
        for name, field in self.fields.items():
            if name in filled and not _fits(filled[name], field):
                yield f"{name!r} must be {_wanted(field)}, not {shown(filled[name])}"


def _fits(value: Any, field: dict[str, Any]) -> bool:
    kind = field.get("type")
    expected = _KINDS.get(kind) if isinstance(kind, str) else None
    if expected is not None and (not isinstance(value, expected) or (isinstance(value, bool) and kind != "boolean")):
        return False
    options = _options(field)
    if options is None:
        return True
    return all(item in options for item in value) if isinstance(value, list) else value in options


def _wanted(field: dict[str, Any]) -> str:
    """What a field wants, in words: its options, where it has them."""
    options = _options(field)
    if options is None:
        kind = field.get("type")
        return kind if isinstance(kind, str) else "something else"
    named = ", ".join(map(shown, options[:_SHOWN])) + ", …" * (len(options) > _SHOWN)
    return f"a list of some of {named}" if isinstance(field.get("items"), dict) else f"one of {named}"


def _options(field: dict[str, Any]) -> list[Any] | None:
    """The values that a field may have, where they are listed."""
    items = field.get("items")
    holder = items if isinstance(items, dict) else field
    if isinstance(holder.get("enum"), list):
        return list(holder["enum"])
    titled = holder.get("oneOf") or holder.get("anyOf")
    if isinstance(titled, list) and all(isinstance(option, dict) and "const" in option for option in titled):
        return [option["const"] for option in titled]
    return None


def _mapping(content: Any) -> dict[str, Any]:
    if content is None:
        return {}
    if hasattr(content, "model_dump"):
        content = content.model_dump(mode="json")
    plain = msgspec.to_builtins(content)
    if not isinstance(plain, dict):
        raise TypeError(f"a form is answered with a mapping or an object with fields, not {told_value(content)}")
    return plain
