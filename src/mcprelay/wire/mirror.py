"""Parameters of a tool that travel in `Mcp-Param-*` headers beside the body.

Knows the `x-mcp-header` annotation: what a schema may say with it, what the client sends for it, and when a server
must refuse what came (Streamable HTTP, "Custom Headers from Tool Parameters"). A schema is compiled once; a tool
without annotations costs nothing on a call. Does not validate arguments: a value of the wrong type is the schema
validator's business, and is compared here as what it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from msgspec import Struct

from mcprelay.errors import DefinitionError
from mcprelay.wire.field import SAFE_INTEGER, HeaderInvalid, decode, encode, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ANNOTATION = "x-mcp-header"
PREFIX = "Mcp-Param-"

_PRIMITIVES = ("string", "integer", "boolean")
_DATA_KEYWORDS = frozenset({"const", "enum", "default", "example", "examples"})
"""Keywords whose values are data, in which an annotation's name means nothing."""

_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose members have names of the author's, which are not keywords themselves."""

_not_in_token = re.compile(r"[^!#$%&'*+\-.^_`|~0-9A-Za-z]").search
_is_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?").fullmatch
_LONGEST_NUMBER = 64


class HeaderSchemaInvalid(DefinitionError):
    """An `x-mcp-header` annotation breaks a rule, so the tool cannot be offered over HTTP.

    Attributes:
        where: The place of the annotation in the schema, as keywords joined by dots.
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{ANNOTATION} at {where or 'the root of the schema'}: {reason}")
        self.where = where


class HeaderParam(Struct, frozen=True, kw_only=True):
    """One parameter that is mirrored.

    Attributes:
        header: The header's name as it is sent, `Mcp-Param-Region`.
        key: The same in lower case, as received headers are looked up.
        path: The names of the properties that lead to the value.
        type: The type that the schema gives the parameter.
    """

    header: str
    key: bytes
    path: tuple[str, ...]
    type: Literal["string", "integer", "boolean"]

    def value_in(self, arguments: Mapping[str, Any]) -> Any:
        """The value at the parameter's exact path, or None where there is none (null counts as none)."""
        value: Any = arguments
        for name in self.path:
            if not _is_mapping(value):
                return None
            value = value.get(name)
        return value


def may_mirror(definition: bytes) -> bool:
    """Whether a definition, as JSON, may hold an annotation: told without decoding it, so that most cost nothing more.

    A name may be written in escapes; then its characters are ASCII, and their escapes begin alike.
    """
    return ANNOTATION.encode() in definition or b"\\u00" in definition


def params_of(schema: Mapping[str, Any]) -> tuple[HeaderParam, ...]:
    """The mirrored parameters that a tool's `inputSchema` declares, in the schema's order.

    Raises:
        HeaderSchemaInvalid: An annotation is not a header name, is not unique, stands on something that is not a
            string, integer or boolean, or stands where a chain of `properties` alone does not lead.
    """
    found: dict[bytes, HeaderParam] = {}
    for where, path, annotated in _annotations(schema):
        param = _compiled(where, path, annotated)
        if param.key in found:
            raise HeaderSchemaInvalid(
                where,
                f"the name {shown(annotated[ANNOTATION])} is also given to {'.'.join(found[param.key].path)}; "
                "header names do not differ by case, so choose another",
            )
        found[param.key] = param
    return tuple(found.values())


def mirror(params: Sequence[HeaderParam], arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The `Mcp-Param-*` headers of a call, ready to send.

    A parameter that is absent or null has no header. Neither has an array or an object given where the schema says
    otherwise: the server's validation tells what is wrong with it.

    Raises:
        HeaderInvalid: An integer is outside ±(2^53 - 1), or a string cannot be encoded as UTF-8.
    """
    headers: list[tuple[str, str]] = []
    for param in params:
        value = param.value_in(arguments)
        if isinstance(value, (str, int)):
            headers.append((param.header, encode(value)))
        elif isinstance(value, float) and isfinite(value):
            headers.append((param.header, encode(int(value)) if value.is_integer() else repr(value)))
    return headers


def disagreement(
    params: Sequence[HeaderParam], arguments: Mapping[str, Any] | None, headers: Mapping[bytes, bytes]
) -> str | None:
    """Why the `Mcp-Param-*` headers do not say what the arguments say, or None when they agree.

    The sentence is the part after "Header mismatch: " of the error that is owed.

    Wrapped values are unwrapped first, and numbers are compared as numbers. A header must be there when its value is,
    and must not be when the value is absent or null. Headers that the tool does not declare are ignored
    (Streamable HTTP, "Server Behavior for Custom Headers").
    """
    if not params:
        return None
    conflicts = getattr(headers, "conflicts", ())
    for param in params:
        value = param.value_in(arguments or {})
        found = headers.get(param.key)
        if param.key in conflicts:
            return f"{param.header} header came more than once with different values"
        if found is None:
            if isinstance(value, (str, int, float)):
                return f"{param.header} header is missing; {_in_body(param, value)}"
        else:
            reason = _value_disagreement(param, found, value)
            if reason is not None:
                return f"{param.header} header {reason}"
    return None


def _value_disagreement(param: HeaderParam, found: bytes, value: Any) -> str | None:
    try:
        text = decode(found.decode("latin-1"))
    except HeaderInvalid as error:
        return f"value is invalid: {error}"
    if value is None:
        return f"is present, but the body has no value at {'.'.join(param.path)}; leave the header out"
    return None if _agree(text, value) else f"value {shown(text)} does not match; {_in_body(param, value)}"


def _agree(text: str, value: Any) -> bool:
    if isinstance(value, str):
        return text == value
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int):
        return -SAFE_INTEGER <= value <= SAFE_INTEGER and (text == str(value) or _equal_number(text, value))
    return isinstance(value, float) and _equal_number(text, value)


def _equal_number(text: str, value: float) -> bool:
    """Whether both are the same number, exactly: `42.0` is 42, and no rounding makes neighbors equal."""
    if len(text) > _LONGEST_NUMBER or not _is_number(text):
        return False
    from decimal import Decimal

    return Decimal(text) == Decimal(repr(value))


def _in_body(param: HeaderParam, value: Any) -> str:
    return f"the body has {shown(value)} at {'.'.join(param.path)}"


def _compiled(where: str, path: tuple[str, ...] | None, annotated: Mapping[str, Any]) -> HeaderParam:
    name = annotated[ANNOTATION]
    if path is None:
        raise HeaderSchemaInvalid(
            where,
            "only a property that a chain of `properties` leads to from the root can be mirrored; "
            "move the parameter there, or remove the annotation",
        )
    if not isinstance(name, str) or not name:
        raise HeaderSchemaInvalid(where, f"it must be a header name, a string that is not empty, not {shown(name)}")
    bad = _not_in_token(name)
    if bad is not None:
        raise HeaderSchemaInvalid(
            where,
            f"the name {shown(name)} has {shown(bad.group())}; a header name is made of letters, digits "
            "and !#$%&'*+-.^_`|~ (RFC 9110, token)",
        )
    header = PREFIX + name
    return HeaderParam(header=header, key=header.lower().encode(), path=path, type=_primitive(where, annotated))


def _primitive(where: str, annotated: Mapping[str, Any]) -> Literal["string", "integer", "boolean"]:
    stated = annotated.get("type")
    kinds = [kind for kind in stated if kind != "null"] if _is_list(stated) else [stated]
    for primitive in _PRIMITIVES:
        if kinds == [primitive]:
            return primitive  # type: ignore[return-value]  # a member of a tuple of these literals
    what = "the parameter states no type" if stated is None else f"the parameter's type is {shown(stated)}"
    raise HeaderSchemaInvalid(where, f"{what}; only string, integer and boolean can be mirrored (number cannot)")


def _annotations(schema: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...] | None, Mapping[str, Any]]]:
    """Every annotated schema: its place, and its property path or None where `properties` alone do not lead there.

    A stack of its own, so that a schema nested without end is not a `RecursionError`; it holds places still to visit,
    last first, so that they come in the schema's order.
    """
    stack: list[tuple[str, tuple[str, ...] | None, Any]] = [("", (), schema)]
    while stack:
        where, path, node = stack.pop()
        if _is_list(node):
            stack.extend((f"{where}.{index}", None, node[index]) for index in reversed(range(len(node))))
        elif _is_mapping(node):
            if ANNOTATION in node:
                yield where, path or None, node
            stack.extend(reversed(list(_below(where, path, node))))


def _below(
    where: str, path: tuple[str, ...] | None, schema: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[str, ...] | None, Any]]:
    dot = f"{where}." if where else ""
    for keyword, value in schema.items():
        if keyword in _NAMED_SCHEMAS and _is_mapping(value):
            for name, member in value.items():
                inner = (*path, name) if keyword == "properties" and path is not None else None
                yield f"{dot}{keyword}.{name}", inner, member
        elif keyword not in _DATA_KEYWORDS and isinstance(value, (Mapping, list)):
            yield f"{dot}{keyword}", None, value


def _is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
