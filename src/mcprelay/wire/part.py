"""Parts of a regular expression as figures, and what becomes of these where parts are put together.

A long pattern is slow where many of its places are at work at once, because a text may have reached each of them. Where
a part began at one place of the text alone, as after `^`, its copies are at work one after the other; so it is told for
each part how far its ends may lie from each other. It knows figures, not how a pattern is written.
"""

from __future__ import annotations

from msgspec import Struct

MOST = 1 << 40
"""Where counting stops growing."""


class Part(Struct, frozen=True):
    """A part of a pattern.

    Attributes:
        size: Bytes that it takes.
        loose: Bytes of it that are at work at once, wherever in the text it may have begun.
        single: The same where it began at one place of the text alone.
        least: Characters that it matches at least.
        most: Characters that it matches at most.
        spread: How far from each other, in characters, it may end where it began at one place.
    """

    size: int = 0
    loose: int = 0
    single: int = 0
    least: int = 0
    most: int = 0
    spread: int = 0

    @property
    def is_steady(self) -> bool:
        """Whether it takes characters, and ends at one place if it began at one."""
        return self.least > 0 and self.spread == 0

    def times(self, least: int, most: int | None) -> Part:
        """Copies of this part, any number of them where `most` is None."""
        copies = least + 1 if most is None else most
        reach = MOST if most is None else self.most * most
        loose = self.loose * copies
        single = self.single if self.is_steady else loose
        spread = self.spread * least if least == most else max(0, reach - self.least * least)
        figures = self.size * copies, loose, single, self.least * least, reach, spread
        return Part(*(min(MOST, figure) for figure in figures))

    def looped(self, sign: int, *, least: int) -> Part:
        """This part over and over, and a sign that takes so much."""
        single = self.single if self.is_steady else self.loose
        return Part(self.size + sign, self.loose + sign, single + sign, self.least * least, MOST, MOST)

    def left_out(self, sign: int) -> Part:
        """This part or nothing, and a sign that takes so much."""
        return Part(self.size + sign, self.loose + sign, self.single + sign, 0, self.most, self.most)

    def signed(self, sign: int) -> Part:
        """This part with a sign that takes so much, and no character."""
        return Part(self.size + sign, self.loose + sign, self.single + sign, self.least, self.most, self.spread)


NOTHING = Part()


class Sequence:
    """Parts one after the other, as they are read.

    Attributes:
        spread: How far from each other the places may lie where the next part begins.
    """

    __slots__ = ("_before", "_least", "_loose", "_most", "_single", "_size", "_spread_before", "_turns", "spread")

    def __init__(self) -> None:
        self._before: Part | None = None  # what stands before a start of the text
        self._size = self._loose = self._single = self._least = self._most = 0
        self._turns = 0  # bytes of parts that are at work one after the other
        self._spread_before = self.spread = 0

    def add(self, part: Part) -> None:
        """Read a part."""
        spread = self._spread_before = self.spread
        if spread == 0 == part.spread and part.least > 0:
            self._turns = max(self._turns, part.single)
        else:
            self._single += min(part.loose, part.single * (spread + 1))
            strays = spread > 0 and part.spread < part.most - part.least  # it ends far from where it began
            self.spread = MOST if strays else min(MOST, spread + part.spread)
        self._size += part.size
        self._loose += part.loose
        self._least += part.least
        self._most += part.most

    def add_end(self, part: Part) -> None:
        """Read a part that ends what the last part repeats: from one place there is one way to it."""
        if self._spread_before == 0:
            self.spread = 0
        self.add(part)

    def start(self) -> None:
        """Read that the text begins here, so there is one place where the next part begins."""
        self._before = self.whole()
        self._size = self._loose = self._single = self._turns = 0
        self._spread_before = self.spread = 0

    def whole(self) -> Part:
        """All that was read."""
        single = self._single + self._turns
        if self._before is None:
            return Part(self._size, self._loose, single, self._least, self._most, self.spread)
        size, loose = self._before.size + self._size, self._before.loose + single
        return Part(size, loose, self._before.single + single, self._least, self._most, self.spread)


def either(ways: list[Part]) -> Part:
    """One of several parts."""
    if len(ways) == 1:
        return ways[0]
    least, most = min(way.least for way in ways), max(way.most for way in ways)
    strays = any(way.spread < way.most - way.least for way in ways)
    costs = (sum(way.size for way in ways), sum(way.loose for way in ways), sum(way.single for way in ways))
    return Part(*costs, least, most, MOST if strays else min(MOST, most - least))
