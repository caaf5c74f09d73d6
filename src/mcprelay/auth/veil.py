"""Secrets that do not show themselves: not in a `repr`, nor among the variables of a traceback that a tool records.

Whoever asks for the value gets it. Knows nothing of what the secrets are.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Veiled(Struct, frozen=True, kw_only=True):
    """A struct that holds secrets: its `repr` shows none of them."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class Hidden(str):
    """A text whose `repr` does not show it. For variables that live while something else may fail."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Hidden(…)"
