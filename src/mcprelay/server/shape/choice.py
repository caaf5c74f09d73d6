"""Shapes of one of several values: `Literal` and `Enum`.

An enum whose values are all strings or all integers is its values in JSON; any other enum is its names. Values come in
the author's order, and aliases of an enum's member are not listed twice.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, Literal

from mcprelay.errors import DefinitionError
from mcprelay.server.shape import JsonSchema, Kind, Misfit, Mode, Publisher, Reader, Shape

_KINDS: dict[type, Kind] = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


class Choice(Shape):
    """One of several values. `members` maps each JSON value to the Python value it stands for, or is None where JSON's
    own value is meant.
    """

    def __init__(
        self,
        values: tuple[Any, ...],
        *,
        wire: Any,
        members: Mapping[Any, Any] | None = None,
        python: tuple[type, ...] = (),
        names: dict[Any, str] | None = None,
    ) -> None:
        self.values = values
        self.names = names
        self.python = python
        self.kinds = frozenset(_KINDS[type(value)] for value in values)
        self._wire = wire
        self._members = members
        self._out: dict[int, Any] | None = None if members is None else {id(m): v for v, m in members.items()}

    def schema(self, to: Publisher) -> JsonSchema:
        kinds = list(dict.fromkeys(_KINDS[type(value)] for value in self.values))
        return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": list(self.values)}

    def reader(self, mode: Mode) -> Reader:
        return Reader(self._wire, self._member if self._members is not None and mode == "input" else None)

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        return None if self._out is None else self._value

    def _member(self, value: Any) -> Any:
        try:
            return self._members[value]  # type: ignore[index]  # only asked for where there are members
        except KeyError:  # pragma: no cover - msgspec refused it before
            raise Misfit(f"there is no such choice as {value!r}") from None

    def _value(self, member: Any) -> Any:
        return self._out.get(id(member), member)  # type: ignore[union-attr]  # only asked for where there are members


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
            plain = tuple(base(value) for value in values)
            return Choice(
                plain, wire=type, python=(type,), names={v: m.name for v, m in zip(plain, members, strict=True)}
            )
    by_name = {member.name: member for member in members}
    return Choice(tuple(by_name), wire=Literal[tuple(by_name)], members=by_name, python=(type,))


def literal_shape(values: tuple[Any, ...]) -> Choice:
    """The shape of a `Literal`.

    Raises:
        DefinitionError: A value has no JSON form.
    """
    members: dict[Any, Any] = {}
    for value in values:
        plain = value.value if isinstance(value, enum.Enum) else value
        if type(plain) not in _KINDS:
            raise DefinitionError(f"Literal[{value!r}] has no JSON form; use strings, integers, True, False or None.")
        members[plain] = value
    mapped = members if any(isinstance(value, enum.Enum) for value in values) else None
    plain_values = tuple(dict.fromkeys((type(v), v) for v in members))
    listed = tuple(value for _, value in plain_values)
    return Choice(listed, wire=Literal[listed], members=mapped)
