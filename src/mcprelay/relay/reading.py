"""What is known of a definition by its digest alone: what a model is shown, and how arguments are checked.

Both follow from the definition and the limits, so they are worked out once. Whether a tool may be used does not, and is
decided elsewhere each time.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple

from mcprelay.relay.budget import Limits
from mcprelay.relay.errors import DefinitionRefused
from mcprelay.relay.kept import SIZE, Kept, memory
from mcprelay.relay.narrowing import narrowing
from mcprelay.relay.pins import Definition, define
from mcprelay.relay.presentation import Presented, presented
from mcprelay.wire.reference import SchemaRefused
from mcprelay.wire.schema import Validator

_Bounds: TypeAlias = tuple[int, ...]


class Reading(Struct, frozen=True, kw_only=True):
    """A definition that can be offered.

    Attributes:
        presented: What a model is shown.
        validator: Checks arguments.
        narrower: Parameters that make an answer smaller.
        memory: Bytes that all of it takes, about, once the validator has compiled its patterns.
    """

    presented: Presented
    validator: Validator
    narrower: tuple[str, ...]
    memory: int

    @property
    def required(self) -> tuple[str, ...]:
        """The members that arguments must have, in the schema's order."""
        required: Any = self.presented.schema.get("required")
        return tuple(name for name in required if isinstance(name, str)) if isinstance(required, list) else ()


class Readings:
    """Definitions by their JSON, and readings by digest, for as long as there is room (`kept`)."""

    def __init__(self, *, entries: int = 10_000) -> None:
        self._known: Kept[tuple[str, _Bounds], Reading | str] = Kept(entries=entries, size=2 * SIZE)
        self._defined: Kept[bytes, Definition] = Kept(entries=entries, size=2 * SIZE)
        self._limits: Limits | None = None
        self._bounds: _Bounds = ()

    def define(self, raw: bytes) -> Definition:
        """The definition that a tool's own JSON says: as `pins.define`, once for the same bytes.

        Raises:
            DefinitionRefused: It is no definition.
        """
        definition = self._defined.get(raw)
        if definition is None:
            definition = define(raw)
            self._defined.put(raw, definition, size=memory(raw))
        return definition

    def of(self, definition: Definition, *, limits: Limits) -> Reading:
        """The reading of a definition.

        Raises:
            DefinitionRefused: It cannot be offered. The sentence holds no word of the server.
        """
        place = (definition.digest, self._bounds_of(limits))
        reading = self._known.get(place)
        if reading is None:
            reading = _read(definition, limits)
            self._known.put(place, reading, size=reading.memory if isinstance(reading, Reading) else 0)
        if isinstance(reading, str):
            raise DefinitionRefused(reading)
        return reading

    def _bounds_of(self, limits: Limits) -> _Bounds:
        """What a reading depends on, worked out once for a list."""
        if limits is not self._limits:
            self._limits, self._bounds = limits, (limits.definition_bytes, *astuple(limits.schema))
        return self._bounds


class Room:
    """Reads what is offered of one server, as long as it does not take more memory than it may (`tools_bytes`)."""

    def __init__(self, readings: Readings, limits: Limits) -> None:
        self._readings = readings
        self._limits = limits
        self._left = limits.tools_bytes

    def read(self, definition: Definition) -> Reading:
        """The next definition's reading.

        Raises:
            DefinitionRefused: It cannot be offered, or there is no room for it any more.
        """
        if self._left > 0:  # else it is not even looked at: the list may be long
            reading = self._readings.of(definition, limits=self._limits)
            self._left -= reading.memory
            if self._left >= 0:
                return reading
        allowed = self._limits.tools_bytes
        raise DefinitionRefused(f"it and the tools before it take too much memory: tools_bytes={allowed:,}")


def _read(definition: Definition, limits: Limits) -> Reading | str:
    try:
        shown = presented(definition, limits=limits)
        validator = Validator(definition.input_schema, limits=limits.schema)
    except DefinitionRefused as refused:
        return str(refused)
    except SchemaRefused as refused:
        if refused.limit is None:
            return "its input schema is no valid schema"  # the reason holds words of the server
        return f"its input schema is over a limit: {refused.limit}={getattr(limits.schema, refused.limit)}"
    narrower = narrowing(definition.input_schema)
    takes = validator.weight.memory + 2 * len(definition.canonical)
    return Reading(presented=shown, validator=validator, narrower=narrower, memory=takes)
