"""A server's question to a person: a form to fill in, or an address to visit.

Knows the restricted schemas of forms and their defaults (client/elicitation). Does not show anything to anybody.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from mcprelay.client.misuse import told_value
from mcprelay.errors import AnswerInvalid
from mcprelay.types import ElicitResult
from mcprelay.wire.field import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
}

_SHOWN = 20

ACTIONS = ("accept", "decline", "cancel")
"""What a person can do with a question."""


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

    def __post_init__(self) -> None:
        if self.mode == "url" and not _is_address(self.url or ""):
            raise ValueError("a question in the mode `url` has a valid URL as its `url`")  # "URL Mode"

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
            AnswerInvalid: The form wants something else: a `ValueError` whose `fields` say of each what is wrong.
            TypeError: `content` has no fields.
        """
        if self.mode == "url":
            return ElicitResult(action="accept")
        filled = {**self.defaults(), **_mapping(content), **values}
        self._check(filled)
        return ElicitResult(action="accept", content=filled)

    def decline(self) -> ElicitResult:
        """The person said no."""
        return ElicitResult(action="decline")

    def cancel(self) -> ElicitResult:
        """The person made no choice."""
        return ElicitResult(action="cancel")

    def answered(self, result: ElicitResult) -> ElicitResult:
        """A result that somebody made, ready to send. Defaults are not filled in: it says everything itself.

        Raises:
            AnswerInvalid: It does not fit the question; the text says what would.
            TypeError: Its content has no fields.
        """
        if result.action not in ACTIONS:
            raise AnswerInvalid(f"the action is {', '.join(map(repr, ACTIONS))}, and not {told_value(result.action)}")
        content = result.content
        if result.action != "accept" or self.mode == "url":
            if content:
                raise AnswerInvalid("content belongs to a form that is accepted: leave it out")
            return msgspec.structs.replace(result, content=None)
        if content is None and self.fields:
            named = ", ".join(map(shown, list(self.fields)[:_SHOWN]))
            raise AnswerInvalid(f"a form is accepted with its content: a mapping of {named}; None declines it")
        plain = _mapping(content)
        self._check(plain)
        return msgspec.structs.replace(result, content=plain)

    def _check(self, filled: dict[str, Any]) -> None:
        faults = dict(self._faults(filled))
        if not faults:
            return
        said = [f"{shown(name)} {fault}" for name, fault in faults.items()]
        unknown = [shown(name) for name in filled if name not in self.fields]
        if unknown and self.fields:
            said.append(f"the form has no {', '.join(unknown[:_SHOWN])}")
        raise AnswerInvalid(f"the answer does not fit the form: {'; '.join(said)}", fields=faults)

    def _faults(self, filled: dict[str, Any]) -> Iterator[tuple[str, str]]:
        required = self.requested_schema.get("required")
        for name in required if isinstance(required, list) else ():
            if isinstance(name, str) and name not in filled:
                yield name, "is required"
        for name, field in self.fields.items():
            if name not in filled:
                continue
            wanted = _bound(filled[name], field) if _fits(filled[name], field) else _wanted(field)
            if wanted:
                yield name, f"must be {wanted}, not {shown(filled[name])}"


def _is_address(url: str) -> bool:
    """Whether it can be an address at all; whether it is one to open, a person decides."""
    scheme, colon, rest = url.partition(":")
    return scheme.isascii() and scheme[:1].isalpha() and bool(colon and rest) and url.isprintable() and " " not in url


def _fits(value: Any, field: dict[str, Any]) -> bool:
    kind = field.get("type")
    expected = _KINDS.get(kind) if isinstance(kind, str) else None
    if expected is not None and (not isinstance(value, expected) or (isinstance(value, bool) and kind != "boolean")):
        return False
    options = choices(field)
    if options is None:
        return True
    return all(item in options for item in value) if isinstance(value, list) else value in options


def _bound(value: Any, field: dict[str, Any]) -> str | None:
    """The bound of a field that a value is beyond, in words, or None."""
    if isinstance(value, bool) or not isinstance(value, (str, list, int, float)):
        return None
    if isinstance(value, (int, float)):
        size, least, most, unit = value, "minimum", "maximum", ""
        if not math.isfinite(value):
            return "a finite number"
    else:
        size = len(value)
        least, most = ("minLength", "maxLength") if isinstance(value, str) else ("minItems", "maxItems")
        unit = " characters long" if isinstance(value, str) else " items long"
    low, high = _number(field.get(least)), _number(field.get(most))
    if low is not None and size < low:
        return f"at least {low}{unit}"
    return f"at most {high}{unit}" if high is not None and size > high else None


def _number(value: Any) -> int | float | None:
    """A bound, where it is one: a schema is the server's, and may hold anything."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _wanted(field: dict[str, Any]) -> str:
    """What a field wants, in words: its options, where it has them."""
    options = choices(field)
    if options is None:
        kind = field.get("type")
        return kind if isinstance(kind, str) else "something else"
    named = ", ".join(map(shown, options[:_SHOWN])) + ", …" * (len(options) > _SHOWN)
    return f"a list of some of {named}" if isinstance(field.get("items"), dict) else f"one of {named}"


def choices(field: dict[str, Any]) -> list[Any] | None:
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
