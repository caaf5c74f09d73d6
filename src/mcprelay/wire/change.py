"""What was changed in somebody else's schema, told within a bound: the schema decides how much there is to tell."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 1_000
"""How many changes are told one by one."""
_LONGEST = 300
"""Characters of one change."""
_DEEP = 200
"""Characters of a place beyond which no further steps are named."""
_STEP = 64
"""Characters of one step."""


class Changes:
    """Changes in their order, each once; `told` is what is said of them. Words of the schema: untrusted."""

    def __init__(self) -> None:
        self._told: dict[str, None] = {}
        self._others = 0

    def append(self, change: str) -> None:
        """Tell of a change."""
        said = change if len(change) <= _LONGEST else f"{change[:_LONGEST]}…"
        if len(self._told) < MOST or said in self._told:
            self._told[said] = None
        else:
            self._others += 1

    def extend(self, changes: Iterable[str]) -> None:
        """Tell of several changes."""
        for change in changes:
            self.append(change)

    @property
    def told(self) -> tuple[str, ...]:
        """The changes, and how many there are beside those that are told."""
        return (*self._told, *([f"#: and {self._others} other changes"] if self._others else []))


def inside(where: str, *steps: str | int) -> str:
    """The place of what lies inside a place: a long name is not repeated for all that it holds."""
    for step in steps:
        if len(where) > _DEEP:
            return where if where.endswith("/…") else f"{where}/…"
        name = str(step)
        where = f"{where}/{name}" if len(name) <= _STEP else f"{where}/{name[:_STEP]}…"
    return where
