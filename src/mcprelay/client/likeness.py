"""What tells the clients of a pool from each other: values where they can be compared, else the very object.

Knows options as values. Knows no client.
"""

from __future__ import annotations

import functools
import os
from types import BuiltinMethodType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping


class _Same:
    """A value that is only the same as itself. It is held, so that nothing else comes to be in its place."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


def key(target: Any, options: Mapping[str, Any]) -> Hashable:
    """What tells one client from another. A method is the same where its object is, whenever it was asked for."""
    return _comparable(target), _comparable(options)


def remade(target: Any, options: Mapping[str, Any]) -> Hashable | None:
    """What stays the same where nothing but functions were made anew, word for word; None where none is given."""
    names = functions(options)
    return key(target, {**options, **{name: _written(options[name]) for name in names}}) if names else None


def functions(options: Mapping[str, Any]) -> list[str]:
    """The names of the options that are functions."""
    return [name for name, value in options.items() if isinstance(value, FunctionType)]


def _written(function: FunctionType) -> tuple[Any, ...]:
    """What a function is made of: where it is written, and what it refers to."""
    refers = (*(function.__closure__ or ()), *(function.__defaults__ or ()))
    named = sorted((function.__kwdefaults__ or {}).items())
    return tuple(map(_Same, (function.__code__, function.__globals__, *refers, *(value for _, value in named))))


def _comparable(value: Any) -> tuple[str, Any]:
    if isinstance(value, (list, tuple)):
        return "list", tuple(map(_comparable, value))
    if isinstance(value, dict):
        return "dict", frozenset((str(name), _comparable(item)) for name, item in value.items())
    if isinstance(value, os.PathLike):
        return "str", repr(os.fspath(value))
    if isinstance(value, (str, int, float, bytes, bool)) or value is None:
        return type(value).__name__, repr(value)
    if isinstance(value, _Same):
        return "same", value
    if isinstance(value, MethodType):
        return "method", (_Same(value.__self__), _Same(value.__func__))
    if isinstance(value, BuiltinMethodType):
        return "method", (_Same(value.__self__), value.__name__)
    if type(value) is functools.partial:
        given = frozenset((name, _Same(one)) for name, one in value.keywords.items())
        return "partial", (_comparable(value.func), tuple(map(_Same, value.args)), given)
    return "object", _Same(value)
