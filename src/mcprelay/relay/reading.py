"""What is known of a definition by its digest alone: what a model is shown, and how arguments are checked.

Both follow from the definition and the limits, so they are worked out once. Whether a tool may be used does not, and is
decided elsewhere each time.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

from msgspec import Struct, field
from msgspec.structs import astuple

from mcprelay.relay.budget import Limits, over
from mcprelay.relay.errors import DefinitionRefused
from mcprelay.relay.kept import SIZE, Kept, memory
from mcprelay.relay.narrowing import narrowing
from mcprelay.relay.pins import Definition, define
from mcprelay.relay.presentation import Presented, presented
from mcprelay.relay.settings import ServerSettings
from mcprelay.wire.reference import SchemaRefused
from mcprelay.wire.schema import Validator

_Bounds: TypeAlias = tuple[int, ...]
_Place: TypeAlias = tuple[str, _Bounds]
Made = TypeVar("Made")
_SERVERS = 256
"""Servers whose last list is kept."""
_REFERENCE = 32
"""Values that take as long to be rewritten as one reference: what it means is looked for, and copied."""
_REFERENCES = (b'"$ref"', b'"$dynamicRef"', b'"$recursiveRef"')


class Reading(Struct, frozen=True, kw_only=True):
    """A definition that can be offered.

    Attributes:
        presented: What a model is shown.
        validator: Checks arguments.
        narrower: Parameters that make an answer smaller.
        memory: Bytes that all of it takes, about, once the validator has compiled its patterns.
        work: What it costs to make a provider's form of the schema: values, and `_REFERENCE` for each reference.
        forms: The forms that were made, by what made them. They last as long as this does.
    """

    presented: Presented
    validator: Validator
    narrower: tuple[str, ...]
    memory: int
    work: int
    forms: dict[Any, Any] = field(default_factory=dict)

    @property
    def required(self) -> tuple[str, ...]:
        """The members that arguments must have, in the schema's order."""
        required: Any = self.presented.schema.get("required")
        return tuple(name for name in required if isinstance(name, str)) if isinstance(required, list) else ()


class Read(Struct):
    """What one server's list was read to: definitions, and what they take, by their JSON; and readings by digest."""

    definitions: dict[bytes, tuple[Definition | str, int]] = {}
    readings: dict[_Place, Reading | str] = {}


class Readings:
    """Definitions by their JSON, and readings by digest, for as long as there is room (`kept`).

    Beside that, what the last list of each server was read to is kept whole: among others, a list that is only a little
    larger than the room for all would be gone through from its beginning to its end without finding anything.
    """

    def __init__(self, *, entries: int = 10_000) -> None:
        self._known: Kept[_Place, Reading | str] = Kept(entries=entries, size=2 * SIZE)
        self._defined: Kept[bytes, Definition | str] = Kept(entries=entries, size=2 * SIZE)
        self._last: Kept[str, Read] = Kept(entries=_SERVERS, size=16 * SIZE)

    def last(self, server: str) -> Read:
        """What a server's last list was read to."""
        return self._last.get(server) or Read()

    def keep(self, server: str, read: Read, *, size: int) -> None:
        """Keep what a server's list was read to, in place of what was kept before."""
        self._last.put(server, read, size=size)

    def defined(self, raw: bytes) -> Definition | str:
        """The definition that a tool's own JSON says, once for the same bytes; or why it is none."""
        known = self._defined.get(raw)
        if known is None:
            known = _defined(raw)
            self._defined.put(raw, known, size=memory(raw))
        return known

    def of(self, definition: Definition, place: _Place, limits: Limits) -> Reading | str:
        """The reading of a definition, kept by its place; or why it cannot be offered, without a word of the server."""
        known = self._known.get(place)
        if known is None:
            known = _read(definition, limits)
            self._known.put(place, known, size=known.memory if isinstance(known, Reading) else 0)
        return known


class Room:
    """Reads one server's list, as long as it takes no more memory (`tools_bytes`) and work (`tools_work`) than it may.

    What a definition takes is told by its length before anything of it is decoded, since what is decoded in vain takes
    its time, too, and again with each list.
    """

    def __init__(self, readings: Readings, settings: ServerSettings) -> None:
        self._readings = readings
        self._server = settings.name
        self._limits = settings.limits
        self._left = self._limits.tools_bytes
        self._work = self._limits.tools_work
        self._before = readings.last(settings.name)
        self._now = Read()
        self._bounds = _bounds(self._limits)
        self._takes = 0

    def define(self, raw: bytes) -> Definition:
        """The definition that the next tool's own JSON says.

        Raises:
            DefinitionRefused: It is none, or is too long, or there is no room for it any more.
        """
        if len(raw) > self._limits.definition_bytes:
            raise DefinitionRefused(too_long(self._limits))
        known = self._before.definitions.get(raw)
        takes = memory(raw) if known is None else known[1]
        self._spend(takes)
        known = self._now.definitions[raw] = known or (self._readings.defined(raw), takes)
        self._takes = takes
        return _settled(known[0])

    def read(self, definition: Definition) -> Reading:
        """The reading of what was defined last.

        Raises:
            DefinitionRefused: It cannot be offered, or there is no room for it any more.
        """
        place = (definition.digest, self._bounds)
        known = self._before.readings.get(place)
        known = self._now.readings[place] = known or self._readings.of(definition, place, self._limits)
        reading = _settled(known)
        self._spend(reading.memory - self._takes)
        self._work -= reading.work
        if self._work < 0:
            allowed = self._limits.tools_work
            raise DefinitionRefused(
                f"its schema, and those of the tools before it, take too much work: {over('tools_work', allowed)}"
            )
        return reading

    def close(self) -> None:
        """Keep what was read for the server's next list."""
        self._readings.keep(self._server, self._now, size=self._limits.tools_bytes - self._left)

    def _spend(self, size: int) -> None:
        """Take memory, or see that there is none left; then nothing more is looked at: the list may be long."""
        if self._left <= 0 or size > self._left:
            self._left = 0
            allowed = self._limits.tools_bytes
            raise DefinitionRefused(f"it and the tools before it take too much memory: {over('tools_bytes', allowed)}")
        self._left -= size


def too_long(limits: Limits) -> str:
    """Why a definition is not looked at."""
    return f"its definition is too long: {over('definition_bytes', limits.definition_bytes)}"


def _settled(found: Made | str) -> Made:
    """What was found, unless it is the reason why there is nothing.

    Raises:
        DefinitionRefused: It is.
    """
    if isinstance(found, str):
        raise DefinitionRefused(found)
    return found


def _bounds(limits: Limits) -> _Bounds:
    """What a reading depends on."""
    return (limits.definition_bytes, *astuple(limits.schema))


def _defined(raw: bytes) -> Definition | str:
    try:
        return define(raw)
    except DefinitionRefused as refused:
        return str(refused)


def _read(definition: Definition, limits: Limits) -> Reading | str:
    try:
        shown = presented(definition, limits=limits)
        validator = Validator(definition.input_schema, limits=limits.schema)
    except DefinitionRefused as refused:
        return str(refused)
    except SchemaRefused as refused:
        if refused.limit is None:
            return "its input schema is no valid schema"  # the reason holds words of the server
        return f"its input schema is over a limit: {over(refused.limit, getattr(limits.schema, refused.limit))}"
    narrower = narrowing(definition.input_schema)
    references = sum(map(definition.canonical.count, _REFERENCES))
    return Reading(
        presented=shown,
        validator=validator,
        narrower=narrower,
        memory=validator.weight.memory + 2 * len(definition.canonical),
        work=validator.weight.nodes + _REFERENCE * references,
    )
