"""What of a tool is pinned, and the digest that stands for it.

Pinned is what a model reads: name, title, description and input schema, and nothing else. The canonical form is the
JSON object of these four, always all of them, with members sorted by code point at every depth, no spaces, UTF-8, and
every number in one form. Two definitions have one digest if and only if they say the same; `{}` and `[]` never do.

The form is the one of the published corpus, whose 128 bits are accepted as a pin. It differs in two places, on purpose:
whole numbers are exact whatever their size, and what JSON does not have (NaN, infinities, half a surrogate pair, a
member twice) is refused, where others give one digest to all such tools.

Nothing here cleans a text. A digest of cleaned text would pin what nobody sent.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
from collections.abc import Mapping
from json.encoder import encode_basestring as _quoted
from typing import Any

import msgspec
from msgspec import Raw, Struct

from mcprelay.relay.errors import DefinitionRefused, SettingWrong
from mcprelay.types import Tool
from mcprelay.wire.jsonrpc import too_deep

_PIN = re.compile(r"sha256:(?:[0-9a-f]{32}|[0-9a-f]{64})")


class Definition(Struct, frozen=True, kw_only=True):
    """A tool as it is pinned. Made by `define`; equal where the canonical forms are.

    Attributes:
        name: As the server writes it.
        title: As the server writes it, or None.
        description: As the server writes it; empty where it writes none.
        input_schema: As the server writes it; empty where it writes none.
        canonical: The canonical form.
        digest: `sha256:` and the 64 hexadecimal digits of its SHA-256.
    """

    name: str
    title: str | None
    description: str
    input_schema: dict[str, Any]
    canonical: bytes
    digest: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Definition) and self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)


def define(tool: Tool | Mapping[str, Any] | bytes | Raw) -> Definition:
    """What of a tool is pinned.

    Args:
        tool: The tool's own JSON (the best form, because it still has what decoding loses), a decoded object of it, or
            a `Tool`, whose `.raw` is taken where it has one.

    Raises:
        DefinitionRefused: It is no definition: no name, a schema that is no object, a member twice, or what JSON does
            not have. The sentence holds no word of the server.
    """
    if isinstance(tool, Tool):
        tool = tool.raw if tool.raw is not None else _fields(tool)
    if isinstance(tool, bytes | Raw):
        payload, exact = _parsed(bytes(tool))
    else:
        payload, exact = tool, False
    if not isinstance(payload, Mapping):
        raise DefinitionRefused("a tool's definition is no object")
    material = _material(payload)
    form = msgspec.json.encode(material, order="sorted") if exact else canonical(material)
    digest = "sha256:" + hashlib.sha256(form).hexdigest()
    return Definition(
        name=material["name"],
        title=material["title"],
        description=material["description"],
        input_schema=material["inputSchema"],
        canonical=form,
        digest=digest,
    )


def canonical(value: Any) -> bytes:
    """The canonical form of any JSON value.

    Raises:
        DefinitionRefused: It holds what JSON does not have, or nests too deep.
    """
    try:
        return "".join(_written(value)).encode()
    except UnicodeEncodeError:
        raise DefinitionRefused("a text in the definition holds half of a surrogate pair") from None
    except RecursionError:
        raise DefinitionRefused("the definition nests too deep") from None
    except ValueError:
        raise DefinitionRefused("a number in the definition has too many digits") from None


def matches(pin: object, digest: str) -> bool:
    """Whether a digest is the pinned one. A pin of 128 bits matches the beginning of the digest.

    Raises:
        SettingWrong: The pin is none.
    """
    if not isinstance(pin, str) or not _PIN.fullmatch(pin):
        raise SettingWrong(f"a pin is sha256: and 64 (or 32) hexadecimal digits, not {pin!r}")
    return hmac.compare_digest(pin, digest[: len(pin)])


def _fields(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
    }


def _material(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The four members that are pinned."""
    name, title, description = payload.get("name"), payload.get("title"), payload.get("description")
    schema = payload.get("inputSchema")
    if not isinstance(name, str) or not name.strip():
        raise DefinitionRefused("a tool without a name")
    if schema is None or schema == []:
        schema = {}
    if not isinstance(schema, dict):
        raise DefinitionRefused("a tool whose input schema is no object")
    return {
        "name": name,
        "title": title if isinstance(title, str) else None,
        "description": description if isinstance(description, str) else "",
        "inputSchema": schema,
    }


# --- reading JSON without losing anything -----------------------------------------------------------------------------


class _Inexact(Exception):
    """The quick decoder met what it cannot keep exactly."""


def _fraction(text: str) -> float | int:
    """A number written with a point or an exponent, if the quick encoder writes it as the canonical form does."""
    value = float(text)
    if value.is_integer() and abs(value) < _PLAIN:
        return int(value)
    if 1e-4 <= abs(value) < _PLAIN:
        return value
    raise _Inexact(text)


_PLAIN = 1e15
"""Below it, and from 1e-4 on, every writer does without an exponent."""
_DEEPEST = 500
"""How deep a definition may nest. Parsers stop somewhere, each version of Python elsewhere; one digest is for all."""
_quick = msgspec.json.Decoder(float_hook=_fraction)


def _parsed(raw: bytes) -> tuple[Any, bool]:
    """A JSON text, and whether its canonical form can be written by the quick encoder.

    The quick decoder drops a member that comes twice. It is told by the quotation marks: a dropped member takes two at
    least with it, and nothing else changes their number but an escaped one.
    """
    if too_deep(raw, _DEEPEST):
        raise DefinitionRefused("the definition nests too deep")
    try:
        value = _quick.decode(raw)
        if b"\\u0022" not in raw and msgspec.json.encode(value).count(b'"') == raw.count(b'"'):
            return value, True
    except _Inexact:
        pass
    except (msgspec.DecodeError, RecursionError):
        raise DefinitionRefused("a tool's definition is no JSON, or holds what JSON does not have") from None
    return _slowly(raw), False


def _slowly(raw: bytes) -> Any:
    try:
        value = json.loads(raw, object_pairs_hook=_members, parse_float=_finite, parse_constant=_finite)
        msgspec.json.encode(value)  # finds half a surrogate pair in any text
        return value
    except (ValueError, RecursionError):
        raise DefinitionRefused("a tool's definition is no JSON, or holds what JSON does not have") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise DefinitionRefused("an object in the definition has a member twice")
    return members


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise DefinitionRefused("a number in the definition is not finite")
    return value


# --- writing the canonical form ---------------------------------------------------------------------------------------


def _written(value: Any) -> Any:
    """The pieces of the canonical form."""
    if isinstance(value, str):
        yield _quoted(value)
    elif isinstance(value, Mapping):
        yield from _object(value)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield "," if index else "["
            yield from _written(item)
        yield "]" if value else "[]"
    elif value is None or isinstance(value, bool):
        yield {None: "null", True: "true", False: "false"}[value]
    elif isinstance(value, int):
        yield str(value)
    elif isinstance(value, float):
        yield _number(value)
    else:
        raise DefinitionRefused(f"a {type(value).__name__} in the definition is no JSON")


def _object(value: Mapping[str, Any]) -> Any:
    if not all(isinstance(name, str) for name in value):
        raise DefinitionRefused("a member name in the definition is no text")
    for index, name in enumerate(sorted(value)):
        yield "," if index else "{"
        yield f"{_quoted(name)}:"
        yield from _written(value[name])
    yield "}" if value else "{}"


def _number(value: float) -> str:
    """A fraction in the one form that the corpus has: shortest digits, an exponent below 1e-4 and from 1e17 on."""
    from decimal import Decimal

    if not math.isfinite(value):
        raise DefinitionRefused("a number in the definition is not finite")
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(digits) + int(exponent)  # where the decimal point stands, counted from the first digit
    minus = "-" if sign and value else ""  # a zero has no sign, or reading the form again would lose it
    if value == 0 or -3 <= point <= 17:
        return f"{minus}{Decimal(text).scaleb(int(exponent)):f}"
    return f"{minus}{text[0]}.{text[1:] or '0'}e{point - 1:+d}"
