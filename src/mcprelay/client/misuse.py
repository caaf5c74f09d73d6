"""What is wrong with how a client is used, told where it is given and in the words of whoever wrote it.

Knows options and their types. Knows no wire: what is found here has never been sent.
"""

from __future__ import annotations

import math
import typing
from typing import TYPE_CHECKING, Any

from mcprelay.errors import ConfigurationError
from mcprelay.types import LOG_LEVELS
from mcprelay.wire.field import shown
from mcprelay.wire.spelling import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_YEAR = 365.25 * 86400
_DECADES = 20 * _YEAR
"""A deadline that is further away was read from another clock."""


def named(kind: Any) -> str:
    """A type as people write it: `int`, `list[int]`, `Receipt | None`."""
    if isinstance(kind, type) and typing.get_origin(kind) is None:
        return kind.__qualname__
    return str(kind).replace("typing.", "")


def told_value(value: Any) -> str:
    """A value that is the wrong one: itself, and its type where that is what is wrong with it."""
    if isinstance(value, type):
        return f"the type {named(value)}"
    return f"{shown(value)} ({named(type(value))})"


def meant(word: str, known: Iterable[str]) -> str:
    """What ends a sentence about a word that is not known: what it is here, a question, or all the words that are."""
    from mcprelay.client import elsewhere  # a mistake pays for it, not everyone

    known = sorted(known)
    told = elsewhere.ours(word, known)
    if told is not None:
        return told
    close = closest(word, known)
    return f"did you mean {close!r}?" if close else f"there are {', '.join(known)}"


def seconds(name: str, value: Any) -> float:
    """A time that somebody gave.

    Raises:
        ConfigurationError: It is not a number.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise ConfigurationError(f"{name} is a number of seconds, and not {told_value(value)}")
    return value


def duration(name: str, value: Any) -> float:
    """A time that something may take.

    Raises:
        ConfigurationError: It is not a number, or none that anything could be done in.
    """
    if seconds(name, value) <= 0:
        raise ConfigurationError(f"{name} is a number of seconds above 0, and not {told_value(value)}")
    return value  # type: ignore[no-any-return]


def number(name: str, value: Any, *, least: float = 0, most: float = math.inf, whole: bool = False) -> None:
    """Refuse a number that is none, or not in its bounds. Where it counts something it is whole, or `math.inf`.

    Raises:
        ConfigurationError: It is.
    """
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most
    if fits and not (whole and math.isfinite(value) and value != int(value)):
        return
    kind = "a whole number" if whole else "a number"
    if most == math.inf:
        kind += " that is not negative" if least == 0 else f" of at least {least:g}"
    else:
        kind += f" from {least:g} to {most:g}"
    raise ConfigurationError(f"{name} is {kind}, and not {told_value(value)}")


def moment(name: str, value: Any, *, now: float) -> float:
    """A time on the loop's clock that somebody gave.

    Raises:
        ConfigurationError: It is not a number, or a time on the wall's clock: it would never come.
    """
    at = seconds(name, value)
    if _DECADES < at - now < math.inf:
        raise ConfigurationError(
            f"{name} is a time on the loop's clock, asyncio.get_running_loop().time() + seconds, and {at:.0f} is "
            f"{(at - now) / _YEAR:.0f} years from now: time.time() is another clock"
        )
    return at


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Strings that somebody gave.

    Raises:
        ConfigurationError: It is one string, or not all of them are strings.
    """
    if isinstance(value, str):
        raise ConfigurationError(f"{name} is a list of strings, and not one string: [{value!r}]")
    try:
        found = tuple(value)
    except TypeError:
        raise ConfigurationError(f"{name} is a list of strings, and not {told_value(value)}") from None
    for one in found:
        if not isinstance(one, str):
            raise ConfigurationError(f"{name} is a list of strings, and {told_value(one)} is none")
    return found


def statuses(name: str, value: Any) -> None:
    """Refuse a collection of HTTP statuses that is given and is none.

    Raises:
        ConfigurationError: It is.
    """
    if isinstance(value, (tuple, list, set, frozenset)):
        wrong = [one for one in value if isinstance(one, bool) or not isinstance(one, int) or not 100 <= one <= 599]
        if not wrong:
            return
        raise ConfigurationError(f"{name} holds HTTP statuses, and {told_value(wrong[0])} is none")
    raise ConfigurationError(f"{name} is a tuple of HTTP statuses such as (429, 503), and not {told_value(value)}")


def switch(name: str, value: Any) -> None:
    """Refuse what is neither True nor False.

    Raises:
        ConfigurationError: It is.
    """
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} is True or False, and not {told_value(value)}")


def of_type(name: str, value: Any, *kinds: type) -> None:
    """Refuse an option that is given and of none of these types.

    Raises:
        ConfigurationError: It is.
    """
    if value is not None and not isinstance(value, kinds):
        wanted = " or ".join(named(kind) for kind in kinds)
        raise ConfigurationError(f"{name} is a value of the type {wanted}, and not {told_value(value)}")


def function(name: str, value: Any) -> None:
    """Refuse a callback that is given and cannot be called.

    Raises:
        ConfigurationError: It is.
    """
    if value is not None and not callable(value):
        raise ConfigurationError(f"{name} is a function or a coroutine function, and not {told_value(value)}")


def level(value: Any) -> None:
    """Refuse a log level that is given and is none.

    Raises:
        ConfigurationError: It is.
    """
    if value is not None and value not in LOG_LEVELS:
        raise ConfigurationError(f"log_level is one of {', '.join(LOG_LEVELS)}, and not {told_value(value)}")


def variables(name: str, value: Any) -> None:
    """Refuse a mapping of strings that is given and is none.

    Raises:
        ConfigurationError: It is.
    """
    if value is None:
        return
    items: Mapping[Any, Any] = value if hasattr(value, "items") else {None: value}
    for key, one in items.items():
        if not isinstance(key, str) or not isinstance(one, str):
            wrong = told_value(value) if key is None else f"{shown(key)} to {named(type(one))}"  # it may be a secret
            raise ConfigurationError(f"{name} maps names to strings, and not {wrong}")


def environment(name: str, value: Any) -> None:
    """Refuse variables that are given and that no process can have. Values are not shown: they may be secrets.

    Raises:
        ConfigurationError: They are.
    """
    variables(name, value)
    for key, one in (value or {}).items():
        if not key or "=" in key or "\0" in key:
            raise ConfigurationError(f"{name}: {shown(key)} is not the name of a variable")
        if "\0" in one:
            raise ConfigurationError(f"{name}: the value of {shown(key)} holds a null character")
