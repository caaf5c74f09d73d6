"""What a regular expression costs once it is compiled and while it runs, estimated from its text alone.

Repetition is compiled by copying, so a few characters may stand for kilobytes, and repetitions inside each other
multiply. How long a character of the text takes follows from how many of these copies may be at work at once: where
every way to a place is equally long, as after `^`, only one of them is. The estimates were measured against the engine
that runs the patterns; they look at each character of a pattern once.
"""

from __future__ import annotations

import re
from functools import lru_cache

from mcprelay.wire.part import MOST, NOTHING, Part, Sequence, either

_ALONE = 18_432
"""What any pattern takes, however short it is: the engine's own tables."""
_CHAR, _OTHER_CHAR = 128, 512
"""A character of ASCII, and any other."""
_CLASS = 160
"""A class of ASCII characters; `\\w` and `\\d` are such classes."""
_SPACE, _NEGATED, _NAMED = 1_024, 2_560, 65_536
"""`\\s`; whatever is the rest of all characters, as `.` nearly is; a class that Unicode names."""
_ANY_CASE = 320
"""What a class, or a letter with a third form, takes beside that where case does not matter."""
_AT_WORK = 384
"""The most of a character or class that is at work at once: its first bytes are told apart, the others follow."""
_CACHE, _CALM, _TRACE = 1 << 17, 1_536, 256
"""What the engine keeps of the states it was in, at most; what may be at work without leaving many of them; and what
each byte at work beyond that leaves."""
_ONE_PASS = 1 << 20
"""What the engine's table of a pattern with groups or borders of words takes at most."""
_AT_A_STEP, _KEPT = 12, 512
"""Bytes at work that make a step of each 64 characters, and bytes of a pattern whose states have to be made anew."""

_TOKEN = re.compile(
    r"(?P<named>\\[pP](?:\{[^}]*+\}?|.)?)"
    r"|(?P<coded>\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[xuU]\{[0-9A-Fa-f]+\}|c[A-Za-z]))"
    r"|(?P<border>\\[bB](?:\{[a-z-]+\})?|\$)|(?P<start>\^)|(?P<escape>\\.)"
    r"|(?P<set>\[\^?\]?(?:\\.?|[^\]\\])*+\]?)"
    r"|(?P<flags>\(\?[a-zA-Z-]+\))"
    r"|(?P<open>\((?:\?(?:P?<[A-Za-z_][A-Za-z0-9_]*>|[a-zA-Z-]*:|<?[=!])?)?)|(?P<close>\))|(?P<other>\|)"
    r"|(?P<times>\{(?P<least>\d+)(?P<range>,(?P<most>\d*))?\})|(?P<many>[*+?])|(?P<char>.)",
    re.DOTALL,
)
_FLAGS = re.compile(r"\(\?([a-zA-Z-]+)[:)]")
_KEEPS = re.compile(r"\((?!\?)|\(\?P?<(?![=!])|\\[bB]")
"""What makes the engine build its table of one pass."""
_WIDE = re.compile(r"\\[pPxuUcWDS]|[^\x00-\x7f]")
"""What may stand for bytes of any kind."""
_SEPARATOR = re.compile(r"\\?[ !-/:-@\[-`{-~]")
_SIMPLE = re.compile(r"\[\^?(?:(?!--|&&|~~|\|\|)[ -Z^-~]|\\[dws.+*/@:-])+\]|\\[dw]")
"""A class that Python reads as the engine does."""
_LEGIBLE = 100
"""Characters of a class that is read."""
_FOLDING = frozenset(["k", "K", "s", "S", "\\w"])
"""What has a third form, far from ASCII, where case does not matter; a class is taken to have one."""
_ESCAPES = {"w": _CLASS, "d": _CLASS, "s": _SPACE, "W": _NEGATED, "D": _NEGATED, "S": _NEGATED}


_SIGN = NOTHING.signed(_CHAR)
"""What takes as much as a character, and matches none."""
_PLAIN = Part(_CHAR, _CHAR, _CHAR, 1, 1)
_LONGEST = 8_192
"""Characters of a pattern that is looked at: the engine takes hardly any longer one."""
_UNTOLD = Part(MOST, MOST, MOST)
"""A pattern that is taken for the largest there is."""


def girth(pattern: str, *, most: int) -> int:
    """Bytes that a pattern takes once it has run, about.

    Args:
        most: No more than that is counted for the pattern and the states it was in, beside the engine's own tables.
    """
    whole = _measured(pattern)
    kept = min(_CACHE, max(whole.size // 2, _TRACE * (whole.loose - _CALM)))
    table = min(_ONE_PASS, min(most, whole.size) * _alphabet(pattern) // 32) if _KEEPS.search(pattern) else 0
    return _ALONE + min(most, whole.size + kept) + table


def strain(pattern: str, *, most: int) -> int:
    """Steps that running a pattern takes for each 64 characters of a text; `most` as for `girth`."""
    whole = _measured(pattern)
    return 1 + min(most, whole.loose) // _AT_A_STEP + min(most, whole.size) // _KEPT


class _Group:
    """A group that is open, or the whole pattern: what was read of it."""

    def __init__(self, *, outer: _Group | None = None) -> None:
        self.outer = outer
        self._ways: list[Part] = []
        self._way = Sequence()
        self._last = self._enough = NOTHING  # the last part; and as much of it as suffices where nothing follows
        self._single = self._loop = ""  # the one character or class that the last part is; that the one before repeats
        self._is_loop = False

    def add(self, part: Part, *, single: str = "") -> None:
        """Another part comes, and the one before stands."""
        if self._loop and not self._is_loop and _stops(self._loop, at=self._single):
            self._way.add_end(self._last)
        else:
            self._way.add(self._last)
        self._loop = self._single if self._is_loop else ""
        self._last, self._enough, self._single, self._is_loop = part, part, single, False

    def repeat(self, token: re.Match[str]) -> None:
        """The last part is repeated."""
        last, sign = self._last, token[0]
        if token["times"]:
            least, most = _bounds(token)
            self._last, self._enough = last.times(least, most), self._enough.times(least, least)
        elif sign == "?":
            self._last = self._enough = last.left_out(_CHAR)
        else:
            self._last = self._enough = last.looped(_CHAR, least=sign == "+")
        self._is_loop = True

    def start(self) -> None:
        """The text begins here."""
        self.add(NOTHING)
        self._way.start()

    def turn(self) -> None:
        """Another way begins, or none."""
        if self.outer is None:  # nothing follows, so the engine looks no further than it must
            last, enough = self._last, self._enough
            self._last = Part(last.size, enough.loose, enough.single, last.least, last.most, last.spread)
        self.add(NOTHING)
        self._ways.append(self._way.whole())
        self._way = Sequence()

    def whole(self) -> Part:
        """All that was read."""
        self.turn()
        return either(self._ways)

    def closed(self) -> _Group:
        """The group around this one, which ends; one that was never opened is no pattern, and ends nothing."""
        if self.outer is None:
            return self
        self.outer.add(self.whole().signed(_CHAR))
        return self.outer


def _stops(loop: str, *, at: str) -> bool:
    """Whether what repeats a class must end where a character comes, because the class does not have it."""
    character = at[-1:]
    if not _SEPARATOR.fullmatch(at) or len(loop) > _LEGIBLE or not _SIMPLE.fullmatch(loop):
        return False
    try:
        return re.match(loop, character, re.ASCII) is None
    except re.error:
        return False  # no class for the engine either


def _measured(pattern: str) -> Part:
    """The whole pattern."""
    return _read(pattern) if len(pattern) <= _LONGEST else _UNTOLD


@lru_cache(maxsize=512)  # what is measured when a schema is weighed is asked for again when its work is counted
def _read(pattern: str) -> Part:
    flags = "".join(_FLAGS.findall(pattern)) if "(?" in pattern else ""
    if "x" in flags:  # spaces and comments mean nothing there, which is not worth telling apart
        return _UNTOLD
    group = _Group()
    for token in _TOKEN.finditer(pattern):
        group = _after(token, group, flags)
    while group.outer is not None:
        group = group.closed()
    return group.whole()


def _after(token: re.Match[str], group: _Group, flags: str) -> _Group:
    """The innermost group that is open once this was read."""
    kind = token.lastgroup
    if kind == "char":
        text = token[0]
        common = text.isascii() and text != "." and not ("i" in flags and text in _FOLDING)
        group.add(_PLAIN if common else _single(token, any_case="i" in flags), single=text)
        return group
    if kind == "open":
        return _Group(outer=group)
    if kind == "close":
        return group.closed()
    if kind in {"times", "many"}:
        group.repeat(token)
    elif kind == "other":
        group.turn()
        group.add(_SIGN)
    elif kind == "border" or (kind == "start" and "m" in flags):
        group.add(_SIGN)
    elif kind == "start":
        group.add(_SIGN)
        group.start()
    elif kind != "flags":
        group.add(_single(token, any_case="i" in flags), single=token[0])
    return group


def _bounds(token: re.Match[str]) -> tuple[int, int | None]:
    """How often a repetition repeats, at least and at most."""
    least = _number(token["least"])
    if token["range"] is None:
        return least, least
    return least, _number(token["most"]) if token["most"] else None


def _number(digits: str) -> int:
    return int(digits) if len(digits) < 12 else MOST


def _single(token: re.Match[str], *, any_case: bool) -> Part:
    """One character, or one class of them."""
    text = token[0]
    size = _size(token) + (_ANY_CASE if any_case and (token["set"] or text in _FOLDING) else 0)
    work = min(size, _AT_WORK)
    return Part(size, work, work, 1, 1)


def _size(token: re.Match[str]) -> int:
    """What one character, or one class of them, takes."""
    text = token[0]
    if token["set"]:
        return _set(text)
    if token["named"]:
        return _NAMED
    if token["coded"]:
        return _OTHER_CHAR
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


def _alphabet(pattern: str) -> int:
    """How many kinds of bytes a pattern tells apart, about."""
    kinds = 2 * len(set(pattern)) + (64 if "." in pattern or "[^" in pattern else 0)
    return 256 if _WIDE.search(pattern) else min(256, 1 << kinds.bit_length())
