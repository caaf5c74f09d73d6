"""Percent-encoding (RFC 3986, section 2), in UTF-8.

Knows which characters a URI holds as they are. Does not know the parts of a URI: what is decoded has been split before.
"""

from __future__ import annotations

import re

RESERVED = ":/?#[]@!$&'()*+,;="

_unsafe = re.compile(r"[^A-Za-z0-9\-._~]+").sub
_unsafe_or_triplet = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]").sub
_triplets = re.compile(r"(?:%[0-9A-Fa-f]{2})+").sub
_bad_triplet = re.compile(r"%(?![0-9A-Fa-f]{2})").search
_character = re.compile(r"%[0-9A-Fa-f]{2}|.", re.DOTALL).findall


def encode(text: str) -> str:
    """Every character but the unreserved ones as triplets."""
    return _unsafe(_octets, text)


def encode_keeping_reserved(text: str) -> str:
    """The same, but reserved characters and triplets that are there already stay (RFC 6570, section 1.5)."""
    return _unsafe_or_triplet(lambda found: found.group() if len(found.group()) == 3 else _octets(found), text)


def decode(text: str) -> str | None:
    """The text with its triplets decoded, or None where a `%` begins none or they are not UTF-8."""
    if "%" not in text:
        return text
    if _bad_triplet(text):
        return None
    try:
        return _triplets(lambda found: bytes.fromhex(found.group().replace("%", "")).decode(), text)
    except UnicodeDecodeError:
        return None


def first_characters(text: str, count: int) -> str:
    """The beginning of a text in which a triplet counts as one character and is never cut."""
    return "".join(_character(text)[:count])


def _octets(found: re.Match[str]) -> str:
    return "".join(f"%{octet:02X}" for octet in found.group().encode())
