"""Of which kind a value is that somebody gave for a setting or an option, whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcprelay.types import Icon


def is_text(value: Any) -> bool:
    """A string."""
    return isinstance(value, str)


def is_name(value: Any) -> bool:
    """A string that is not empty."""
    return isinstance(value, str) and bool(value)


def is_switch(value: Any) -> bool:
    """True or False."""
    return isinstance(value, bool)


def is_count(value: Any) -> bool:
    """A whole number, from 0 on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def are_icons(value: Any) -> bool:
    """A list of icons."""
    return isinstance(value, Sequence) and all(isinstance(icon, Icon) for icon in value)


def one_of(*words: str) -> tuple[Callable[[Any], bool], str]:
    """A rule for one of several words, in code and in words."""
    *others, last = map(repr, words)
    return lambda value: isinstance(value, str) and value in words, f"{', '.join(others)} or {last}"
