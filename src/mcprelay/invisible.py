"""Which characters a reader does not see, or a terminal obeys: the one notion of it that the house has.

What cleaning takes from a model's texts (`relay/clean`), what a review marks (`relay/reveal`) and what an error writes
as an escape (`errors`) go by it. It knows single characters; which of them belong to a registered emoji is known to
`relay/emoji` alone.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

HIDDEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"  # controls but tab and what separates lines
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # bidirectional controls
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u2060-\u2065\u3164\uffa0"  # without width
    "\ufe00-\ufe0f\ufeff"  # variation selectors, byte order mark
    "\ufdd0-\ufdef\ufff0-\ufffb\ufffe\uffff"  # annotations and noncharacters
)
"""All but joiners, of the first 65,536 characters. Kept to these, the class is a bitmap and searching is quick."""
ASTRAL = "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
"""The others, but tags."""
TAGS = "\U000e0000-\U000e0fff"
"""Tag characters, and the variation selectors among them."""
BREAKS = "\r\x0b\x0c\x85\u2028\u2029"
"""What separates lines, but the line feed."""
JOINER = "\u200d"
_BLANK = "\xa0\u1680\u2000-\u200a\u202f\u205f\u2800"
"""Spaces that are not the space: readers see them, and take them for it."""


@cache
def _unseen() -> re.Pattern[str]:
    return re.compile(f"[{HIDDEN}{ASTRAL}{TAGS}{BREAKS}{JOINER}{_BLANK}]")


@lru_cache(maxsize=4096)
def is_invisible(char: str) -> bool:
    """Whether a reader does not see a character for what it is. A line feed and a tab are nothing to see, either."""
    if char.isascii():
        return not char.isprintable()
    if "\U0001f000" <= char <= "\U0001faff" or char == "\u3000":
        return False  # pictures, some of them newer than this Python's tables, and the space of Chinese and Japanese
    return not char.isprintable() or _unseen().match(char) is not None


def escaped(text: str) -> str:
    """The text with everything visible: what is not is written as an escape of Python's."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(char) if is_invisible(char) else char for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode()
