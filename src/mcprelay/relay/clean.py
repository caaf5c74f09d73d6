"""Text without what a reader cannot see.

Removed are controls, bidirectional controls, zero-width and other ignorable characters, variation selectors, joiners
and tag characters; what separates lines becomes a line feed, half a surrogate pair U+FFFD. The sequences of registered
emoji stay whole. Cleaning repeats until nothing changes any more, so cleaning twice is cleaning once, and what removal
brought together has been looked at too.

A digest is never taken of cleaned text: what was hidden must be part of what was pinned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcprelay.invisible import ASTRAL, BREAKS, HIDDEN, JOINER, TAGS
from mcprelay.relay.emoji import CHAIN, FLAGGED, JOINED, VARIED, joined

_ASTRAL_START = re.compile(b"\xf0[\x93\x9b\x9d]")
"""How the characters of `ASTRAL` begin in UTF-8, which emoji do not."""

_SUSPECT = re.compile(f"[{HIDDEN}{BREAKS}{JOINER}]")
_REMOVED = re.compile(f"[{HIDDEN}](?<![{VARIED}][\ufe0e\ufe0f])(?<![0-9#*]\ufe0f(?=\u20e3))")
_ASTRAL_REMOVED = re.compile(f"[{ASTRAL}]")
_BROKEN = re.compile(f"[{BREAKS}]")
_TAGGED = re.compile(f"({FLAGGED})|[{TAGS}]")
_HALF = re.compile("[\ud800-\udfff]")

_ASCII_REMOVED = bytes([*range(9), *range(0x0E, 0x20), 0x7F])
_ASCII_BROKEN = bytes.maketrans(b"\r\x0b\x0c", b"\n\n\n")
_ASCII_MARKED = bytes.maketrans(_ASCII_REMOVED + b"\r\x0b\x0c", b" " * (len(_ASCII_REMOVED) + 3))


def clean(text: str) -> str:
    """The text without what a reader cannot see. Never longer, in characters and in bytes, but for U+FFFD."""
    return measured(text)[0]


def measured(text: str) -> tuple[str, int]:
    """The text without what a reader cannot see, and its bytes in UTF-8, which cleaning counts anyway."""
    if text.isascii():
        plain = text.encode()
        if plain.translate(_ASCII_MARKED) == plain:  # most texts are clean, and marking is quicker than removing
            return text, len(plain)
        kept = plain.replace(b"\r\n", b"\n").translate(_ASCII_BROKEN, _ASCII_REMOVED)
        return kept.decode(), len(kept)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    while True:
        try:
            encoded = text.encode()
        except UnicodeEncodeError:
            text = _HALF.sub("\ufffd", text)
            continue
        cleaner = _once(text, encoded)
        if cleaner == text:
            return text, len(encoded)
        text = cleaner


def _once(text: str, encoded: bytes) -> str:
    """One round of cleaning a text that is not ASCII."""
    if b"\xf3" in encoded:
        text = _TAGGED.sub(lambda match: match[1] or "", text)
    if b"\xf0" in encoded and _ASTRAL_START.search(encoded):
        text = _ASTRAL_REMOVED.sub("", text)
    if _SUSPECT.search(text) is None:
        return text
    if any(separator in text for separator in BREAKS):
        text = _BROKEN.sub("\n", text)
    text = _REMOVED.sub("", text)
    return _joiners(text) if JOINER in text else text


def _joiners(text: str) -> str:
    """The text without joiners outside of registered sequences."""
    chains = CHAIN.findall(text)
    if "".join(chains).count(JOINER) == text.count(JOINER) and all(map(joined, set(chains))):
        return text
    return "".join(_kept(text))


def _kept(text: str) -> Iterator[str]:
    end = 0
    for match in JOINED.finditer(text):
        yield text[end : match.start()].replace(JOINER, "")
        yield match[0]
        end = match.end()
    yield text[end:].replace(JOINER, "")
