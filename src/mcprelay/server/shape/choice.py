"""Shapes of one of several values: `Literal` and `Enum`.

An enum whose values are all strings or all integers is its values in JSON; any other enum is its names. Values come in
the author's order, and aliases of an enum's member are not listed twice.
"""

# ruff: noqa: D102 - the methods of a shape are described once, in `Shape`
# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Literal

from mcprelay.errors import DefinitionError
from mcprelay.server.shape import JsonSchema, Kind, Mode, Publisher, Reader, Shape

_KINDS: dict[type, Kind] = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


class Choice(Shape):
    """One of several values. `members` are the Python values that the JSON values stand for, one for each, where JSON's
    own value is not meant.
    """

    def __init__(
        self,
        values: tuple[Any, ...],
        *,
        wire: Any,
        members: tuple[Any, ...] | None = None,
        python: tuple[type, ...] = (),
    ) -> None:
        self.values = values
        self.python = python
        self.kinds = frozenset(_KINDS[type(value)] for value in values)
        self._wire = wire
        self._in: dict[Any, Any] = {}
        self._out: dict[int, Any] = {}
        self._stand_in = members is not None
        if members is not None:  # by type too: to Python, True is 1
            self._in = {(type(value), value): member for value, member in zip(values, members, strict=True)}
            self._out = {id(member): value for value, member in zip(values, members, strict=True)}

    def schema(self, to: Publisher) -> JsonSchema:
        kinds = list(dict.fromkeys(_KINDS[type(value)] for value in self.values))
        return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": list(self.values)}

    def reader(self, mode: Mode) -> Reader:
        return Reader(self._wire, self._member if self._stand_in and mode == "input" else None)

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        return self._value if self._stand_in else None

    def _member(self, value: Any) -> Any:
        return self._in[type(value), value]

    def _value(self, member: Any) -> Any:
        return self._out.get(id(member), member)


def enum_shape(type: type[enum.Enum]) -> Choice:
    """The shape of an enum.

    Raises:
        DefinitionError: It has no members, or its members can be combined.
    """
    members = list(type)
    if issubclass(type, enum.Flag):
        raise DefinitionError(f"{type.__name__} is a Flag, whose members combine; take a list of an Enum instead.")
    if not members:
        raise DefinitionError(f"the enum {type.__name__} has no members")
    values = tuple(member.value for member in members)
    for base in (str, int):
        if all(isinstance(value, base) and not isinstance(value, bool) for value in values):
            return Choice(tuple(base(value) for value in values), wire=type, python=(type,))
    names = tuple(member.name for member in members)
    return Choice(names, wire=Literal[names], members=tuple(members), python=(type,))


def literal_shape(values: tuple[Any, ...]) -> Choice:
    """The shape of a `Literal`.

    Raises:
        DefinitionError: A value has no JSON form.
    """
    members: dict[tuple[Any, Any], Any] = {}
    for value in values:
        plain = value.value if isinstance(value, enum.Enum) else value
        if type(plain) not in _KINDS:
            raise DefinitionError(f"Literal[{value!r}] has no JSON form; use strings, integers, True, False or None.")
        members.setdefault((type(plain), plain), value)
    listed = tuple(value for _, value in members)
    mapped = tuple(members.values()) if any(isinstance(value, enum.Enum) for value in values) else None
    return Choice(listed, wire=Literal[listed], members=mapped)
