"""JSON Schemas that users wrote, enforced: every misfit in a value, by jsonschema-rs.

It serves keywords that no decoder enforces, definitions that replace what a type says, and output schemas that were
given. Nothing is ever fetched. The library is loaded for those who use any of this, and for nobody else.
"""

# jsonschema-rs says what it found in objects of its own:
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from mcprelay.errors import DefinitionError
from mcprelay.server.shape import MOST, JsonSchema, Misfit
from mcprelay.server.words import describe, expectation, hint, listed, place

_GUESSED = 20
"""For how many unknown keys it is guessed which one was meant."""


class Validator:
    """Holds values against one schema."""

    def __init__(self, schema: JsonSchema) -> None:
        """Compile.

        Raises:
            DefinitionError: It is no valid JSON Schema 2020-12.
        """
        from jsonschema_rs import Draft202012Validator, ValidationError  # 8 ms that most servers never pay

        self._schema = schema
        try:
            self._validator = Draft202012Validator(schema, validate_formats=True, offline=True)
        except ValidationError as error:
            where = place(error.instance_path, "its root")
            raise DefinitionError(f"the schema is no valid JSON Schema 2020-12, at {where}: {error.message}") from error

    def accepts(self, value: Any) -> bool:
        """Whether the schema takes the value."""
        return self._validator.is_valid(value)

    def misfits(self, value: Any) -> list[Misfit]:
        """What the schema refuses, in the order of the schema; no more than `MOST`."""
        return list(islice(self._told(self._validator.iter_errors(value)), MOST))

    def _told(self, found: Iterable[Any]) -> Iterator[Misfit]:
        for error in found:
            path = tuple(error.instance_path)
            keyword = error.kind.name
            if keyword == "required":
                yield self._missing(path, error)
            elif keyword in {"additionalProperties", "unevaluatedProperties"}:
                yield from self._unknown(path, error)
            elif keyword in {"anyOf", "oneOf"} and (inner := _best(error)) is not None:
                yield from self._told(inner)
            else:
                expected = expectation(self._parent(error), self._schema, keyword)
                yield Misfit(f"expected {expected}, got {describe(error.instance)}", path)

    def _parent(self, error: Any) -> Any:
        """The schema that holds the keyword that refused."""
        node: Any = self._schema
        for step in error.schema_path[:-1]:
            node = node[step] if isinstance(node, (dict, list)) else {}
        return node

    def _missing(self, path: tuple[Any, ...], error: Any) -> Misfit:
        name = error.kind.property
        part = self._parent(error).get("properties", {}).get(name, {})
        return missing(name, expectation(part, self._schema)).under(path)

    def _unknown(self, path: tuple[Any, ...], error: Any) -> Iterator[Misfit]:
        known = list(self._parent(error).get("properties", {}))
        return (misfit.under(path) for misfit in unknowns(error.kind.unexpected, known))


def missing(name: str, expected: str) -> Misfit:
    """A key that must be there and is not."""
    return Misfit(f"is missing, expected {expected}", (name,), expected=expected, absent=True)


def unknown(name: str, known: Sequence[str]) -> Misfit:
    """A key that is not there to be set, with the one that was probably meant."""
    expected = f"one of {listed(known)}" if known else "nothing"
    return Misfit(f"there is no such argument; {hint(name, known)}", (name,), expected=expected)


def unknowns(names: Iterable[str], known: Sequence[str]) -> list[Misfit]:
    """Keys that are not there to be set. To guess which were meant takes its time, and is done for the first ones."""
    names = list(islice(names, MOST))
    plain = [Misfit("there is no such argument", (name,)) for name in names[_GUESSED:]]
    return [unknown(name, known) for name in names[:_GUESSED]] + plain


def _best(error: Any) -> Sequence[Any] | None:
    """The refusals of the option that came nearest, where the options are objects or arrays and one of them did; else
    the union as a whole is what was not met.
    """
    options = getattr(error.kind, "context", None)
    if not options or not isinstance(error.instance, (dict, list)):
        return None
    depth = len(error.instance_path)
    looked_inside = [
        option
        for option in options
        if option and not any(len(e.instance_path) == depth and e.kind.name == "type" for e in option)
    ]
    return min(looked_inside, key=_distance, default=None)


def _distance(option: Sequence[Any]) -> tuple[bool, int]:
    """How far from fitting: a wrong tag is farther than anything else."""
    return any(error.kind.name in {"enum", "const"} for error in option), len(option)
