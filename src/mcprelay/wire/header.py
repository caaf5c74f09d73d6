"""Which standard header mirrors which part of a message, for the side that emits and the side that checks.

Knows `Mcp-Method`, `Mcp-Name` and `MCP-Protocol-Version` (Streamable HTTP, "Request Metadata"), and gathers the codec
(`field`) and the headers of a tool's parameters (`mirror`), so that either side needs this one door. Does not know
which methods have a name, or which revisions ask for these headers: its callers do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcprelay.wire.field import HeaderInvalid, Headers, decode, encode, shown
from mcprelay.wire.mirror import HeaderParam, HeaderSchemaInvalid, disagreement, mirror, params_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

__all__ = [
    "METHOD",
    "METHOD_KEY",
    "NAME",
    "NAME_KEY",
    "PROTOCOL_VERSION",
    "PROTOCOL_VERSION_KEY",
    "HeaderInvalid",
    "HeaderParam",
    "HeaderSchemaInvalid",
    "Headers",
    "decode",
    "disagreement",
    "encode",
    "method_disagreement",
    "mirror",
    "params_of",
    "standard",
    "version_disagreement",
]

METHOD: Final = "Mcp-Method"
NAME: Final = "Mcp-Name"
PROTOCOL_VERSION: Final = "MCP-Protocol-Version"
METHOD_KEY: Final = b"mcp-method"
NAME_KEY: Final = b"mcp-name"
PROTOCOL_VERSION_KEY: Final = b"mcp-protocol-version"


def standard(method: str, name: str | None = None, *, version: str | None = None) -> list[tuple[str, str]]:
    """The standard headers of a request, ready to send.

    Args:
        method: The JSON-RPC method. It is sent literally, because only names and parameters may be wrapped.
        name: What `Mcp-Name` mirrors (the tool, the prompt or the URI), or None for a method that has no such thing.
        version: The protocol revision of the request, or None to leave `MCP-Protocol-Version` to the caller.

    Raises:
        HeaderInvalid: The method is not printable ASCII and can therefore not be sent over HTTP.
    """
    if not (method.isascii() and method.isprintable()) or method != method.strip():
        raise HeaderInvalid(f"method {shown(method)} cannot be sent over HTTP: {METHOD} takes printable ASCII only.")
    headers = [(METHOD, method)]
    if name is not None:
        headers.append((NAME, encode(name)))
    if version is not None:
        headers.append((PROTOCOL_VERSION, version))
    return headers


def method_disagreement(headers: Mapping[bytes, bytes], method: str, name: str | None = None) -> str | None:
    """Why `Mcp-Method` and `Mcp-Name` do not say what the body says, or None when they agree.

    The sentence is the part after "Header mismatch: " of the error that is owed.

    Values are compared with their case and without surrounding whitespace; a wrapped `Mcp-Name` is unwrapped first
    (Streamable HTTP, "Server Validation").

    Args:
        headers: The request's `Headers`, or another mapping of lower-cased names that joins repeated ones.
        method: The method in the body.
        name: What `Mcp-Name` must mirror, or None for a method that has no such thing; then the header is ignored.
    """
    conflicts = getattr(headers, "conflicts", ())
    if conflicts:
        return _conflict(conflicts[0])
    found = headers.get(METHOD_KEY)
    if found is None:
        return _missing(METHOD, method)
    if found.decode("latin-1") != method or not (method.isascii() and method.isprintable()):
        reason = _literal_disagreement(METHOD, found, method)
        if reason is not None:
            return reason
    if name is None:
        return None
    found = headers.get(NAME_KEY)
    if found is None:
        return _missing(NAME, name)
    if found.decode("latin-1") == name and name.isascii() and name.isprintable() and name[:2] != "=?":
        return None  # equal, and it can mean nothing but itself
    return _name_disagreement(found, name)


def version_disagreement(headers: Mapping[bytes, bytes], version: str) -> str | None:
    """Why `MCP-Protocol-Version` does not say what the body's `_meta` says, or None when they agree.

    Args:
        headers: The request's `Headers`, or another mapping of lower-cased names that joins repeated ones.
        version: The protocol revision that the body names.
    """
    conflicts = getattr(headers, "conflicts", ())
    if conflicts:
        return _conflict(conflicts[0])
    found = headers.get(PROTOCOL_VERSION_KEY)
    if found is None:
        return _missing(PROTOCOL_VERSION, version)
    if found.decode("latin-1") == version and version.isascii() and version.isprintable():
        return None
    return _literal_disagreement(PROTOCOL_VERSION, found, version)


def _literal_disagreement(header: str, found: bytes, wanted: str) -> str | None:
    text = found.decode("latin-1").strip(" \t")
    if text != wanted:
        return _mismatch(header, text, wanted)
    if not (text.isascii() and text.isprintable()):
        return f"{header} header value {shown(text)} has a character that is not printable ASCII"
    return None


def _name_disagreement(found: bytes, wanted: str) -> str | None:
    try:
        value = decode(found.decode("latin-1"))
    except HeaderInvalid as error:
        return f"{NAME} header value is invalid: {error}"
    return None if value == wanted else _mismatch(NAME, value, wanted)


def _mismatch(header: str, value: str, wanted: str) -> str:
    return f"{header} header value {shown(value)} does not match body value {shown(wanted)}"


def _missing(header: str, wanted: str) -> str:
    return f"{header} header is missing; it must say what the body says, {shown(wanted)}"


def _conflict(key: bytes) -> str:
    return f"{key.decode('latin-1')} header came more than once with different values"
