"""Text made visible for a person who reviews it: nothing hidden, nothing that a terminal obeys, nothing ambiguous.

Whatever `clean` takes from what a model reads is marked here, so that nobody reviews less than was pinned. A hidden
character is shown by its number and name; a letter that passes for another one is followed by its own. The marks cannot
be imitated, because their brackets are marked themselves. The output holds no control but line feed and tab, so it may
go to a terminal, a log or a file; markup of the terminal's library is its caller's to escape.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from mcprelay.invisible import is_invisible
from mcprelay.relay.confusable import LOOKALIKES, varies
from mcprelay.relay.emoji import FLAGGED, JOINED, VARIED

_TAGS = "\U000e0020-\U000e007e"
_KEYCAP = "\ufe0f\u20e3"
"""What makes a keycap of a digit, which is no part of a word then."""
_PIECES = re.compile(
    f"(?P<emoji>{FLAGGED}|{JOINED.pattern}|[{VARIED}][\ufe0e\ufe0f]|[0-9#*]{_KEYCAP})"
    f"|(?P<tags>[{_TAGS}]+)|(?P<word>(?:(?![0-9]{_KEYCAP})\\w)+)|(?P<char>.)",
    re.DOTALL,
)
_OURS = "⟨⟩"
"""The brackets of marks."""
_UNNAMED = "(unnamed)"


def reveal(text: str, *, of: Literal["text", "name"] = "text") -> str:
    """The text with everything visible.

    Args:
        of: In a `"text"` lines and tabs stay, and words of another script may look as they do. A `"name"` is one line,
            and every letter that passes for a Latin one is marked.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(text, keep="\n\t" if of == "text" else "", name=of == "name"))


def legible(text: str, *, longest: int = 120) -> str:
    """A name of somebody else's for a message or a log: one line, visible, not much longer than `longest`.

    Controls become one space, as they come from accident more often than from malice; what is cut is marked.
    """
    spaced = re.sub(r"[\x00-\x1f\x7f]+", " ", text[: longest + 1]).strip(" ")
    shown = reveal(spaced, of="name") or _UNNAMED
    return shown if len(shown) <= longest and len(text) <= longest else shown[:longest] + "…"


def escaped(json: str) -> str:
    """A JSON text with everything visible that still says the same: what `reveal` marks is written as an escape."""
    return re.sub("[^\n -~]", lambda match: _as_escape(match[0]), json)


def _as_escape(char: str) -> str:
    """A character as it may stand in a JSON string."""
    if not hidden(char):
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def hidden(text: str) -> bool:
    """Whether a text holds something that `reveal` marks."""
    return reveal(text) != text


def _shown(text: str, *, keep: str, name: bool) -> Iterator[str]:
    latin = _mostly_latin(text)
    for match in _PIECES.finditer(text):
        piece = match[0]
        if match.lastgroup == "emoji" or piece in keep:
            yield piece
        elif match.lastgroup == "tags":
            yield f"⟨tag characters {''.join(chr(ord(char) - 0xE0000) for char in piece)!r}⟩"
        elif match.lastgroup == "word":
            yield from _word(piece, latin=latin, name=name)
        else:
            yield _mark(piece) if _is_hidden(piece) else piece


def _word(word: str, *, latin: bool, name: bool) -> Iterator[str]:
    """A word, with the letters marked that are not what they seem."""
    if word.isascii():
        yield word
        return
    letters = [char for char in word if char.isalpha()]
    mixed = name or any(_is_latin(char) for char in letters)
    posing = latin and not mixed and len(letters) > 1 and all(char in LOOKALIKES for char in letters)
    for char in word:
        if _is_hidden(char):
            yield _mark(char)
        elif (char in LOOKALIKES and (posing or mixed)) or varies(char):
            yield f"{char}{_mark(char)}"
        else:
            yield char


def _mostly_latin(text: str) -> bool:
    letters = [char for char in text if char.isalpha()]
    return sum(char.isascii() for char in letters) * 2 > len(letters)


def _is_latin(char: str) -> bool:
    return char.isascii() or unicodedata.name(char, "").startswith("LATIN")


def _is_hidden(char: str) -> bool:
    return is_invisible(char) or char in _OURS


def _mark(char: str) -> str:
    name = unicodedata.name(char, "")
    return f"⟨U+{ord(char):04X}{' ' if name else ''}{name}⟩"
