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

from mcprelay.relay.emoji import CHAIN, FLAGGED, JOINED, JOINER, VARIED, joined

_HIDDEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"  # controls but tab and what separates lines
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # bidirectional controls
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u2060-\u2065\u3164\uffa0"  # without width
    "\ufe00-\ufe0f\ufeff"  # variation selectors, byte order mark
    "\ufdd0-\ufdef\ufff0-\ufffb\ufffe\uffff"  # annotations and noncharacters
)
"""All but joiners, of the first 65,536 characters. Kept to these, the class is a bitmap and searching is quick."""
_ASTRAL = "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
_ASTRAL_START = re.compile(b"\xf0[\x93\x9b\x9d]")
"""How the characters of `_ASTRAL` begin in UTF-8, which emoji do not."""
_BREAKS = "\r\x0b\x0c\x85\u2028\u2029"

_SUSPECT = re.compile(f"[{_HIDDEN}{_BREAKS}{JOINER}]")
_REMOVED = re.compile(f"[{_HIDDEN}](?<![{VARIED}][\ufe0e\ufe0f])(?<![0-9#*]\ufe0f(?=\u20e3))")
_ASTRAL_REMOVED = re.compile(f"[{_ASTRAL}]")
_BROKEN = re.compile(f"[{_BREAKS}]")
_TAGGED = re.compile(f"({FLAGGED})|[\U000e0000-\U000e0fff]")
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
    if any(separator in text for separator in _BREAKS):
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
