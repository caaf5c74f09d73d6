"""Media of an answer that its text repeats as base64: a model must not read a picture as text.

Each form of a medium is found wherever it stands, in time that grows with the text alone. Whatever is at least twice as
long as a window covers one of the windows, side by side, that the text is cut into: so only these are looked up, and
what a window belongs to is compared there. A text may be made so that many windows belong to much; therefore each look
is counted, and too many refuse the answer (`media_steps`).

Knows nothing of frames; what stands for a medium is its number alone.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, TypeAlias

from mcprelay.relay.errors import ResultTooLarge
from mcprelay.relay.media import Media
from mcprelay.relay.member import members

_SHORTEST = 32
"""Characters of base64 below which a medium may stand in text."""
_WIDEST = 32
"""Characters of a window at most."""
_TAIL = 16
"""Characters at a form's end that are looked at before the whole of it is."""
_STEP = 128
"""Characters that are compared whole in one step."""

_FOR_ADDRESSES = bytes.maketrans(b"+/", b"-_")

_Ending: TypeAlias = dict[str, None]
_Place: TypeAlias = tuple[int, int]
"""Where in a form a window begins, and how long the form is."""


class Repeats:
    """The media of one answer, as they may be written.

    Args:
        media: In the order of their numbers, from 1.
        steps: How many looks are allowed.

    Attributes:
        room: Characters that a text may have on top of what is allowed, because they are replaced: all media, once.
    """

    def __init__(self, media: Sequence[Media], *, steps: int) -> None:
        self._media = media
        self._allowed = steps
        self._left = steps
        # All forms are at least as long as the plain one without padding.
        lengths = [length for medium in media if (length := _length(medium.data)) >= _SHORTEST]
        self._shortest = min(lengths, default=0)
        self._width = min((self._shortest + 1) // 2, _WIDEST)
        self._forms: dict[str, str] = {}
        self._windows: dict[str, dict[_Place, _Ending]] | None = None
        self.room = sum(length + length // 16 for length in lengths)

    def without(self, value: Any) -> Any:
        """A copy of a text, or of all texts of a JSON value, in which `[attachment n]` stands for what repeats one.

        Members whose names are one then have numbers.

        Raises:
            ResultTooLarge: That takes more looks than are allowed.
        """
        if isinstance(value, str):
            return self._text(value) if 0 < self._shortest <= len(value) else value
        if isinstance(value, dict):
            return members((self.without(name), self.without(inner)) for name, inner in value.items())
        if isinstance(value, list | tuple):
            return [self.without(inner) for inner in value]
        return value

    def _text(self, text: str) -> str:
        windows = self._windows
        if windows is None:
            windows = self._windows = self._cut()
        width = self._width
        starts = range(0, len(text) - width + 1, width)
        self._take(1 + len(starts) // 4)  # these are the cheapest looks
        known = [at for at in starts if text[at : at + width] in windows]
        parts: list[str] = []
        end = 0
        for at in known:
            found = self._found(text, at, windows[text[at : at + width]], end) if at >= end else None
            if found is not None:
                start, stop = found
                parts += (text[end:start], self._forms[text[start:stop]])
                end = _padded(text, stop)
        return "".join((*parts, text[end:])) if parts else text

    def _found(self, text: str, at: int, places: dict[_Place, _Ending], end: int) -> tuple[int, int] | None:
        """Where the first and longest form stands that a window belongs to, not before `end`; None for none."""
        self._take(len(places))
        for (offset, length), endings in places.items():
            start, stop = at - offset, at - offset + length
            if start < end or text[stop - _TAIL : stop] not in endings:
                continue
            self._take(length // _STEP)
            if text[start:stop] in self._forms:
                return start, stop
        return None

    def _cut(self) -> dict[str, dict[_Place, _Ending]]:
        """The windows that one of those in a text must be, if a form stands there."""
        for number, medium in enumerate(self._media, 1):
            if _length(medium.data) >= _SHORTEST:
                for form in _forms(medium.data):
                    self._forms.setdefault(form, f"[attachment {number}]")
        windows: dict[str, dict[_Place, _Ending]] = {}
        forms = sorted(self._forms, key=len, reverse=True)
        for offset in reversed(range(self._width)):  # what begins first comes first, and of that the longest
            for form in forms:
                window = form[offset : offset + self._width]
                windows.setdefault(window, {}).setdefault((offset, len(form)), {})[form[-_TAIL:]] = None
        return windows

    def _take(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise ResultTooLarge("media_steps", allowed=self._allowed, actual=self._allowed - self._left)


def _length(data: bytes) -> int:
    """Characters of data in base64, without padding."""
    return (len(data) * 4 + 2) // 3


def _forms(data: bytes) -> set[str]:
    """How data may be written, without padding."""
    plain = b64encode(data).rstrip(b"=")
    return {form.decode() for form in (plain, plain.replace(b"/", b"\\/"), plain.translate(_FOR_ADDRESSES))}


def _padded(text: str, stop: int) -> int:
    """Where a form ends that may be padded."""
    for _ in range(2):
        if text.startswith("=", stop):
            stop += 1
    return stop
