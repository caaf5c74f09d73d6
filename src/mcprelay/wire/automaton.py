"""How large a regular expression is once it is compiled, estimated from its text alone.

Repetition is compiled by copying, so a few characters may stand for kilobytes, and repetitions inside each other
multiply. The estimate was measured against the engine that runs them; it looks at each character once.
"""

from __future__ import annotations

import re

_ALONE = 12_288
"""What any pattern takes, however short it is: the engine's own tables."""
_CHAR, _OTHER_CHAR = 128, 512
"""A character of ASCII, and any other."""
_CLASS = 160
"""A class of ASCII characters; `\\w` and `\\d` are such classes."""
_SPACE, _NEGATED, _NAMED = 1_024, 2_560, 65_536
"""`\\s`; whatever is the rest of all characters, as `.` nearly is; a class that Unicode names."""
_MOST = 1 << 40
"""Where estimating stops growing."""

_TOKEN = re.compile(
    r"(?P<named>\\[pP](?:\{[^}]{0,64}\}|.)?)|(?P<escape>\\.)"
    r"|(?P<set>\[\^?\]?(?:\\.?|[^\]\\])*+\]?)"
    r"|(?P<open>\((?:\?(?:P?<[A-Za-z_][A-Za-z0-9_]*>|[a-zA-Z-]*:|<?[=!])?)?)|(?P<close>\))"
    r"|(?P<times>\{(?P<least>\d+)(?P<range>,(?P<most>\d*))?\})|(?P<many>[*+?])|(?P<char>.)",
    re.DOTALL,
)
_ESCAPES = {"w": _CLASS, "d": _CLASS, "s": _SPACE, "W": _NEGATED, "D": _NEGATED, "S": _NEGATED}


def girth(pattern: str, *, most: int) -> int:
    """Bytes that a pattern takes once it is compiled, about; no more than `most` beside what any pattern takes."""
    outer: list[int] = []
    whole = last = 0
    for token in _TOKEN.finditer(pattern):
        kind = token.lastgroup
        if kind == "open":
            outer.append(whole + last)
            whole = last = 0
        elif kind == "close":
            last, whole = min(_MOST, whole + last + _CHAR), outer.pop() if outer else 0
        elif kind == "times":
            last = min(_MOST, last * _times(token))
        elif kind == "many":
            last += _CHAR
        else:
            whole, last = min(_MOST, whole + last), _size(token)
    return _ALONE + min(most, whole + last + sum(outer))


def _times(token: re.Match[str]) -> int:
    """How often a repetition copies what it repeats."""
    least, most = token["least"], token["most"]
    digits = most or least
    return int(digits) + (token["range"] == ",") if len(digits) < 12 else _MOST


def _size(token: re.Match[str]) -> int:
    """What one character, or one class of them, takes."""
    text = token[0]
    if token["set"]:
        return _set(text)
    if token["named"]:
        return _NAMED
    if token["escape"]:
        return _ESCAPES.get(text[1], _CHAR)
    return _NEGATED if text == "." else _CHAR if text.isascii() else _OTHER_CHAR


def _set(text: str) -> int:
    if "\\p" in text or "\\P" in text:
        return _NAMED
    sizes = [_CLASS, *(size for escape, size in _ESCAPES.items() if f"\\{escape}" in text)]
    if text.startswith("[^"):
        sizes.append(_NEGATED)
    other = not text.isascii() or "\\u" in text or "\\x" in text  # an escape may say a character of any kind
    return max(sizes) + (_OTHER_CHAR + 64 * len(text) if other else 0)
