"""What a program gives to the relay, looked at where it is given: what is wrong is told there, and not at some call.

Knows how each function is called, and what is right in its place. What files say is read by `entry`.
"""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mcprelay.client.misuse import meant, told_value
from mcprelay.relay.errors import SettingWrong


def rule(error: BaseException) -> str:
    """What is right, where it is one of these functions that raised; empty for any other error.

    It is the beginning of their sentence, without the value, which may be anything and belongs into no log.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = isinstance(error, SettingWrong) and frames[-1].f_globals.get("__name__") == __name__
    return str(error).partition(", and ")[0] if ours else ""


def known(owner: str, options: Iterable[str], *, of: Callable[..., Any] | tuple[Callable[..., Any], ...]) -> None:
    """Refuse an option that there is not, and say which one was meant.

    Args:
        owner: What it was given to, as one writes it.
        of: What takes it, by names alone.

    Raises:
        SettingWrong: There is one.
    """
    for option in options:  # mostly there is none, and nothing is looked up
        takers = of if isinstance(of, tuple) else (of,)
        there = {each for taker in takers for each in _options(taker)}
        if option not in there:
            raise SettingWrong(f"{owner} has no option {option!r}; {meant(option, there)}")


def _options(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]


def function(name: str, value: Any, *takes: str) -> None:
    """Refuse what cannot be called as it will be.

    Args:
        name: What the setting is called.
        takes: What it will be called with, one word for each argument.

    Raises:
        SettingWrong: It is no function, or takes something else.
    """
    wanted = f"{name} is a function of {len(takes)} argument{'' if len(takes) == 1 else 's'} ({', '.join(takes)})"
    if not takes:
        wanted = f"{name} is a function without arguments"
    if not callable(value):
        raise SettingWrong(f"{wanted}, and not {told_value(value)}")
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):  # what is written in C may have none to look at
        return
    try:
        signature.bind(*takes)
    except TypeError as error:
        called = getattr(value, "__qualname__", None) or type(value).__qualname__
        raise SettingWrong(f"{wanted}, and {called}{signature} is not: {error}") from None


def functions(name: str, value: Any, *takes: str) -> tuple[Any, ...]:
    """Several functions; see `function`."""
    if callable(value):
        raise SettingWrong(f"{name} is a list of functions, and not one of them: write {name}=[…]")
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise SettingWrong(f"{name} is a list of functions, and not {told_value(value)}")
    found = tuple(value)
    for number, one in enumerate(found):
        function(f"{name}[{number}]", one, *takes)
    return found


def mapping(name: str, value: Any, *, of: str) -> Mapping[Any, Any]:
    """A mapping.

    Args:
        of: What it holds, in words.

    Raises:
        SettingWrong: It is none. Its value is not shown: it may be a secret.
    """
    if not isinstance(value, Mapping):
        raise SettingWrong(f"{name} is a mapping of {of}, and no {type(value).__qualname__}")
    return value


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Some texts, and not one, which would be read letter by letter.

    Raises:
        SettingWrong: They are none.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise SettingWrong(f"{name} is a list of texts, and not {told_value(value)}")
    found = tuple(value)
    for one in found:
        text(f"each of {name}", one)
    return found


def text(name: str, value: Any) -> str:
    """A text.

    Raises:
        SettingWrong: It is none.
    """
    if not isinstance(value, str):
        raise SettingWrong(f"{name} is a text, and not {told_value(value)}")
    return value


def path(name: str, value: Any) -> None:
    """Refuse what is no path.

    Raises:
        SettingWrong: It is none.
    """
    if not isinstance(value, str | os.PathLike) or not value:
        raise SettingWrong(f"{name} is the path of a file, and not {told_value(value)}")


def seconds(name: str, value: Any) -> None:
    """Refuse what is no time.

    Raises:
        SettingWrong: It is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise SettingWrong(f"{name} is a number of seconds, and not {told_value(value)}")


def whole(name: str, value: Any) -> None:
    """Refuse what is no whole number of at least one.

    Raises:
        SettingWrong: It is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingWrong(f"{name} is a whole number of at least 1, and not {told_value(value)}")


def flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False.

    Raises:
        SettingWrong: It is.
    """
    if not isinstance(value, bool):
        raise SettingWrong(f"{name} is True or False, and not {told_value(value)}")


def instance(name: str, value: Any, *kinds: type, like: str) -> None:
    """Refuse what is of none of these types.

    Args:
        like: What is right, as one writes it.

    Raises:
        SettingWrong: It is.
    """
    if not isinstance(value, kinds):
        kind = type(value)
        raise SettingWrong(f"{name} is {like}, and no {kind.__module__}.{kind.__qualname__}")


def instances(name: str, value: Any, kind: type, *, like: str) -> tuple[Any, ...]:
    """Several values of a type; see `instance`."""
    instance(name, value, Iterable, like=like)
    found = tuple(value)
    for one in found:
        instance(f"each of {name}", one, kind, like=f"of {like}")
    return found
