"""HTTP header fields as MCP uses them: a view of those received, and the codec of a mirrored value.

Knows what a field value may hold (RFC 9110 section 5.5) and the Base64 sentinel that carries everything else
(Streamable HTTP, "Value Encoding"). Does not know which header mirrors which part of a message: that is `header` for
the standard ones and `mirror` for those of a tool's parameters.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from typing import TYPE_CHECKING

from mcprelay.errors import MCPRelayError
from mcprelay.invisible import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SAFE_INTEGER = 2**53 - 1
"""The largest integer that a header may mirror; the smallest is its negative."""

_PREFIX = "=?base64?"
_SUFFIX = "?="
_SHORTEST = len(_PREFIX) + len(_SUFFIX)
_SHOWN = 100
_OWS = " \t"
_not_in_value = re.compile(r"[^\t\x20-\x7e]").search
_not_in_base64 = re.compile(r"[^A-Za-z0-9+/]").search


class HeaderInvalid(MCPRelayError, ValueError):
    """A value cannot be carried in a header, or a header holds what none may hold. The text says which and why."""


class Headers(dict[bytes, bytes]):
    """Header fields by lower-cased name; a name that came several times has its values joined.

    Attributes:
        conflicts: The names of `Mcp-*` headers that came more than once with different values. Whoever reads one of
            the values and whoever reads another would act on different requests, so none of them is to be trusted.
    """

    conflicts: Sequence[bytes] = ()

    @classmethod
    def of(cls, raw: Sequence[tuple[bytes, bytes]]) -> Headers:
        """The view of an ASGI scope's `headers`, whose names are in lower case already."""
        headers = cls(raw)
        if len(headers) != len(raw):
            headers._join(raw)
        return headers

    @classmethod
    def lowered(cls, pairs: Iterable[tuple[bytes | str, bytes | str]]) -> Headers:
        """The view of pairs whose names are spelled in any case, as an HTTP client hands them over."""
        return cls.of([(_octets(name).lower(), _octets(value)) for name, value in pairs])

    def text(self, name: bytes) -> str | None:
        """The value without surrounding whitespace, each octet one character; None where the header is absent."""
        value = self.get(name)
        return None if value is None else value.decode("latin-1").strip(_OWS)

    def _join(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        several: dict[bytes, list[bytes]] = {}
        for name, value in raw:
            several.setdefault(name, []).append(value.strip(b" \t"))
        conflicts: list[bytes] = []
        for name, values in several.items():
            if name.startswith(b"mcp-"):
                if len(set(values)) > 1:
                    conflicts.append(name)
                self[name] = values[0]
            else:
                self[name] = (b"; " if name == b"cookie" else b", ").join(values)
        self.conflicts = tuple(conflicts)


def _octets(text: bytes | str) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def encode(value: str | int | bool) -> str:  # noqa: FBT001 - a boolean is a value here
    """The header value that carries a string, an integer or a boolean.

    Visible ASCII with spaces inside stands as it is. Anything else, whitespace at an end, control characters (the tab
    too, because intermediaries rewrite it) and what looks like the sentinel itself, is wrapped in Base64
    (Streamable HTTP, "Value Encoding").

    Raises:
        HeaderInvalid: The integer is outside ±(2^53 - 1), or the string has a lone surrogate, which UTF-8 has not.
    """
    if isinstance(value, str):
        return value if _is_plain(value) else _wrap(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if not -SAFE_INTEGER <= value <= SAFE_INTEGER:
        raise HeaderInvalid(
            f"the integer {shown(value)} cannot be mirrored in a header: it is outside the range ±{SAFE_INTEGER} "
            "that every implementation reads exactly. Pass a smaller one, or make the parameter a string."
        )
    return format(value, "d")


def decode(text: str) -> str:
    """The value that a header carries: unwrapped where the Base64 sentinel is complete, else literally.

    Whitespace around the value is not part of it (RFC 9110 section 5.5). The sentinel is case-sensitive, and half of
    it is an ordinary value.

    Raises:
        HeaderInvalid: The wrapped text is not canonical padded Base64 of UTF-8, or a literal value has a character
            other than visible ASCII, space and tab.
    """
    text = text.strip(_OWS)
    if len(text) >= _SHORTEST and text.startswith(_PREFIX) and text.endswith(_SUFFIX):
        return _unwrap(text[len(_PREFIX) : -len(_SUFFIX)])
    bad = _not_in_value(text)
    if bad is not None:
        raise HeaderInvalid(
            f"character {bad.group()!r} at position {bad.start()} is not visible ASCII, space or tab; "
            f"such a value is sent as {_PREFIX}...{_SUFFIX}"
        )
    return text


def shown(value: object) -> str:
    """A value as a message shows it: quoted, and cut where a peer made it long."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > _SHOWN:
        return f"of {value.bit_length()} bits"
    text = escaped(repr(value[: _SHOWN + 1] if isinstance(value, str) else value))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_plain(text: str) -> bool:
    """Printable ASCII (which excludes the tab), no space at an end, and not what a reader would unwrap."""
    return (
        text.isascii()
        and text.isprintable()
        and text[:1] != " "
        and text[-1:] != " "
        and not (text.startswith(_PREFIX) and text.endswith(_SUFFIX))
    )


def _wrap(text: str) -> str:
    try:
        octets = text.encode()
    except UnicodeEncodeError as error:
        raise HeaderInvalid(
            f"the string {shown(text)} cannot be mirrored in a header: it has a lone surrogate at position "
            f"{error.start}, which UTF-8 cannot encode."
        ) from None
    return f"{_PREFIX}{b2a_base64(octets, newline=False).decode()}{_SUFFIX}"


def _unwrap(wrapped: str) -> str:
    bad = _not_in_base64(wrapped.rstrip("="))
    if bad is not None:
        raise HeaderInvalid(f"character {bad.group()!r} in {shown(wrapped)} is not in the Base64 alphabet")
    try:
        octets = a2b_base64(wrapped, strict_mode=True)
    except ValueError:
        octets = None
    if octets is None or len(wrapped) % 4 or b2a_base64(octets, newline=False).decode() != wrapped:
        raise HeaderInvalid(f"{shown(wrapped)} is not canonical Base64: its padding or its last character is wrong")
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise HeaderInvalid(f"the Base64 {shown(wrapped)} does not decode to UTF-8: {error.reason}") from None
