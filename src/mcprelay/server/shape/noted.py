"""A shape with something said about it: descriptions, constraints, formats, predicates.

Where a constraint is one that msgspec enforces while it decodes, it goes there. A bound on a type that JSON has no
numbers for (dates, lengths of bytes) is checked on the value. Every other keyword that constrains is enforced by a
validator of just these keywords, before the value is read.
"""

# ruff: noqa: D102 - the methods of a shape are described once, in `Shape`

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Raw

from mcprelay.errors import DefinitionError
from mcprelay.server.schema import HEADER
from mcprelay.server.shape import EVERY_KIND, JsonSchema, Kind, Misfit, Mode, Publisher, Reader, Shape, together
from mcprelay.server.shape.collection import Array, Map
from mcprelay.server.shape.record import Record
from mcprelay.server.shape.scalar import ANYTHING, INTEGER, NUMBER, STRING
from mcprelay.server.shape.union import OneOf
from mcprelay.server.validator import Validator
from mcprelay.server.words import clipped

REMARKS = frozenset({
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment",
    "contentMediaType", "contentEncoding", "contentSchema",
})  # fmt: skip
"""Keywords that say something and refuse nothing. So do keywords that begin with `x-`."""

_NUMERIC: frozenset[Kind] = frozenset({"integer", "number"})
_CONCERNS: dict[str, frozenset[Kind]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _NUMERIC),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), frozenset[Kind]({"string"})),
    **dict.fromkeys(
        ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"),
        frozenset[Kind]({"array"}),
    ),
    **dict.fromkeys(
        ("properties", "required", "additionalProperties", "minProperties", "maxProperties", "propertyNames",
         "patternProperties", "dependentRequired"),
        frozenset[Kind]({"object"}),
    ),
}  # fmt: skip
"""Which kinds of value a keyword is about. A keyword that is not listed is about all."""

_BOUNDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}
_LENGTHS = {"minLength": "min_length", "maxLength": "max_length"}
_SIZES = {"minItems": "min_length", "maxItems": "max_length"}
_COUNTS = {"minProperties": "min_length", "maxProperties": "max_length"}


class Check(NamedTuple):
    """A test of the Python value, and the words for what is expected of it."""

    test: Callable[[Any], Any]
    expected: str


class Noted(Shape):
    """A shape and what is said about it. `keywords` are published over what the shape itself says."""

    def __init__(self, inner: Shape, keywords: JsonSchema, checks: Sequence[Check] = ()) -> None:
        self.inner = inner
        self.keywords = keywords
        self.checks = tuple(checks)
        self.kinds = inner.kinds
        self.python = inner.python
        self._validator: Validator | None = None

    def schema(self, to: Publisher) -> JsonSchema:
        return self._over(self.inner.schema(to), to)

    def body(self, to: Publisher) -> JsonSchema:
        return self._over(self.inner.body(to), to)

    def _over(self, inner: JsonSchema, to: Publisher) -> JsonSchema:
        """What is said here over what the shape says; of two notes that constrain the same, both."""
        to.stated |= bool(self._shares()[1])
        said = self._said(to)
        if not isinstance(self.inner, Noted):
            return inner | said
        both = {key: value for key, value in self.inner.keywords.items() if key in said and not is_remark(key)}
        return inner | said | {"allOf": [both]} if both else inner | said

    def _said(self, to: Publisher) -> JsonSchema:
        """What is said here; that a header mirrors an argument is not said of results."""
        if to.mode == "output" and HEADER in self.keywords:
            return {keyword: value for keyword, value in self.keywords.items() if keyword != HEADER}
        return self.keywords

    def reader(self, mode: Mode) -> Reader:
        meta, others = self._shares()
        if others:
            lift = self._validating(mode)
            return Reader(Raw, self._checked(lift) if self.checks and mode == "input" else lift)
        inner = self.inner.reader(mode)
        wire = Annotated[inner.type, msgspec.Meta(**meta)] if meta else inner.type
        return Reader(wire, self._checked(inner.lift) if self.checks and mode == "input" else inner.lift)

    def _shares(self) -> tuple[dict[str, Any], JsonSchema]:
        """The constraints that msgspec takes over, and those that it leaves."""
        names = _taken_over(self.inner)
        meta: dict[str, Any] = {}
        others: JsonSchema = {}
        for keyword, value in self.keywords.items():
            if is_remark(keyword):
                continue
            if keyword in names and _is_native(self.inner, keyword, value):
                meta[names[keyword]] = value
            else:
                others[keyword] = value
        if others:  # then they are all looked at together
            others = {keyword: value for keyword, value in self.keywords.items() if not is_remark(keyword)}
        return meta, others

    def _validating(self, mode: Mode) -> Callable[[Raw], Any]:
        """Hold a value against the keywords that no decoder enforces, then read it as the shape inside."""
        validator, inner = self.validator(), self.inner

        def lift(raw: Raw) -> Any:
            value = msgspec.json.decode(raw)
            if not validator.accepts(value):
                raise together(validator.misfits(value))
            return inner.read(raw, mode)

        return lift

    def validator(self) -> Validator:
        """What holds values against the keywords.

        Raises:
            DefinitionError: They are no JSON Schema.
        """
        if self._validator is None:
            self._validator = Validator(self._shares()[1])
        return self._validator

    def _checked(self, lift: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
        checks = self.checks

        def lift_and_check(value: Any) -> Any:
            made = value if lift is None else lift(value)
            for test, expected in checks:
                if not _passes(test, made):
                    raise Misfit(f"expected {expected}, got {clipped(repr(made))}")
            return made

        return lift_and_check

    def explain(self, value: Any, mode: Mode) -> list[Misfit]:
        inside = self.inner.explain(value, mode)
        if inside:
            plain = self.inner.unmet(value, mode).reason
            return [self.unmet(value, mode) if misfit.reason == plain else misfit for misfit in inside]
        refused = [] if not self._shares()[1] else self.validator().misfits(value)
        if refused:
            return [misfit if misfit.path or misfit.expected else self.unmet(value, mode) for misfit in refused]
        return super().explain(value, mode)

    def refusals(self, misfit: Misfit, value: Any, mode: Mode) -> list[Misfit]:
        own = not isinstance(misfit.__cause__, msgspec.DecodeError)
        return [misfit] if own else [self.unmet(value, mode)]

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        return self.inner.writer(careful=careful)

    def parts(self) -> Sequence[Shape]:
        return (self.inner,)


class Defined(Shape):
    """A shape whose schema the user wrote whole. `inner` still makes the Python value, where there is one to make."""

    def __init__(self, definition: JsonSchema, inner: Shape) -> None:
        self.definition = definition
        self.inner = inner
        self.kinds = inner.kinds
        self.python = inner.python
        self._validator: Validator | None = None

    def schema(self, to: Publisher) -> JsonSchema:
        to.stated = True
        return dict(self.definition)

    def reader(self, mode: Mode) -> Reader:
        validator = self.validator()

        def lift(raw: Raw) -> Any:
            value = msgspec.json.decode(raw)
            if not validator.accepts(value):
                raise together(validator.misfits(value))
            return self.inner.read(raw, mode)

        return Reader(Raw, lift)

    def validator(self) -> Validator:
        """What holds values against the definition.

        Raises:
            DefinitionError: It is no JSON Schema.
        """
        if self._validator is None:
            self._validator = Validator(self.definition)
        return self._validator

    def explain(self, value: Any, mode: Mode) -> list[Misfit]:
        return self.validator().misfits(value) or self.inner.explain(value, mode)

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        return self.inner.writer(careful=careful)


def is_remark(keyword: str) -> bool:
    """Whether a keyword refuses nothing."""
    return keyword in REMARKS or keyword.startswith("x-")


def note(shape: Shape, keywords: JsonSchema, checks: Sequence[Check] = ()) -> Shape:
    """A shape with keywords and checks. What constrains one option of a union is said of that option.

    Raises:
        DefinitionError: A keyword says nothing about such values, so it could never be enforced.
    """
    for keyword in keywords:
        if not is_remark(keyword) and not _concerns(keyword, shape):
            kinds = " or ".join(sorted(shape.kinds))
            raise DefinitionError(f"{keyword} says nothing about a value that is {kinds} in JSON")
    if isinstance(shape, Record) and "additionalProperties" in keywords:
        keywords = dict(keywords)
        others = keywords.pop("additionalProperties")
        shape = shape if others is False else shape.opened(ANYTHING if others is True else Defined(others, ANYTHING))
    if not isinstance(shape, OneOf):
        return _merged(shape, keywords, checks) if keywords or checks else shape
    outside = {keyword: value for keyword, value in keywords.items() if is_remark(keyword)}
    inside = {keyword: value for keyword, value in keywords.items() if keyword not in outside}
    if inside or checks:
        options = [_note_option(option, inside, checks) for option in shape.options]
        shape = OneOf(options)
    return Noted(shape, outside) if outside else shape


def _merged(shape: Shape, keywords: JsonSchema, checks: Sequence[Check]) -> Noted:
    """Notes on notes are one set of notes, unless both constrain the same: then both hold."""
    if not isinstance(shape, Noted) or any(key in shape.keywords for key in keywords if not is_remark(key)):
        return Noted(shape, keywords, checks)
    return Noted(shape.inner, shape.keywords | keywords, (*shape.checks, *checks))


def _note_option(option: Shape, keywords: JsonSchema, checks: Sequence[Check]) -> Shape:
    if option.kinds == frozenset({"null"}):
        return option
    return note(option, {key: value for key, value in keywords.items() if _concerns(key, option)}, checks)


def _concerns(keyword: str, option: Shape) -> bool:
    return bool(_CONCERNS.get(keyword, EVERY_KIND - {"null"}) & option.kinds)


def _taken_over(shape: Shape) -> dict[str, str]:
    """The keywords that msgspec enforces on this shape, by its own name for them."""
    if shape in {INTEGER, NUMBER}:
        return _BOUNDS
    if shape is STRING:
        return _LENGTHS
    if isinstance(shape, Array):
        return _SIZES
    return _COUNTS if isinstance(shape, Map) else {}


def _is_native(shape: Shape, keyword: str, value: Any) -> bool:
    """Whether msgspec enforces it just as JSON Schema means it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if shape is NUMBER:
        return keyword != "multipleOf"
    return isinstance(value, int) and abs(value) < 2**62


def _passes(test: Callable[[Any], Any], value: Any) -> bool:
    try:
        return bool(test(value))
    except (ValueError, TypeError, AssertionError, ArithmeticError):
        return False
