"""JSON Schema 2020-12 for schemas and values that nobody here wrote: offline, masked and bounded in work.

A schema is measured before it is compiled, a value before it is checked. No reference is fetched; regular expressions
run in linear time or not at all; error texts name places and expectations, and hold none of the value unless asked to.

The module knows nothing of MCP or of models: `dialect` rewrites schemas for these.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mcprelay.wire.numeral import DEAREST, WORD, Rarity, price
from mcprelay.wire.pattern import Loosened, engine, expense, patterns, plainly, runnable
from mcprelay.wire.reference import Document, Schema, SchemaRefused, require_short
from mcprelay.wire.violation import Violation, violations
from mcprelay.wire.workload import MAX_CHAIN, Load, appraise, count

_NODE = 512
"""Bytes for each value of a schema: Python's own objects, its compiled form, and what is known of where it lies."""
_ITEMIZED = 5_000
"""Steps up to which errors are told one by one: each costs some 25 µs, in places where a mere no costs nanoseconds."""
_REPEATED = 20_000_000
"""Characters up to which they are: each error has a copy of the value that it is about, at some 3 ns a character."""
_PER_PAIR = 32
"""Steps that counting a pair stands for: it takes some 5 µs."""
_FARTHEST = 10**309
"""Beyond it no reader of JSON holds a number, and reckoning with digits by the thousand takes its time."""


_State: TypeAlias = tuple[tuple[str, ...], Any]
"""What of a schema is not checked, and the rest of it compiled."""


class SchemaLimits(Struct, frozen=True, kw_only=True):
    """Bounds on somebody else's schema, and on the work of checking a value against it.

    Attributes:
        schema_bytes: Size of the schema as JSON text.
        schema_nodes: JSON values inside the schema, itself included.
        schema_depth: Nesting of the schema.
        schema_patterns: Regular expressions inside the schema.
        schema_pattern_bytes: What they take once they have run, as estimated from their texts.
        schema_work: Steps for one value; a step takes some ten nanoseconds, and a hundred where patterns are run.
        value_depth: Nesting of a value that is checked.
        errors: Violations that are told for one value.
    """

    schema_bytes: int = 262_144
    schema_nodes: int = 20_000
    schema_depth: int = 64
    schema_patterns: int = 256
    schema_pattern_bytes: int = 8 << 20
    schema_work: int = 2_000_000
    value_depth: int = 128
    errors: int = 20


DEFAULT_LIMITS = SchemaLimits()


class Weight(Struct, frozen=True, kw_only=True):
    """What a JSON value is made of.

    Attributes:
        nodes: Values inside it, itself included.
        chars: Characters of its strings.
        depth: Nesting.
        rarity: What its numbers take for being compared.
        patterns: Where it is a schema, bytes that its regular expressions take once they have run, about.
    """

    nodes: int
    chars: int
    depth: int
    rarity: Rarity = Rarity()
    patterns: int = 0

    @property
    def memory(self) -> int:
        """Bytes that a schema takes with all that is made of it, about."""
        return self.nodes * _NODE + 2 * self.chars + self.patterns


class Validator:
    """Checks values against one schema.

    Patterns are compiled when the first value is checked: most schemas are seen far more often than they are used.

    Attributes:
        weight: What the schema is made of.

    Args:
        schema: An object or boolean schema. It is not changed.
        limits: Bounds on the schema and on the work.
        values: `"hidden"` keeps every value that is checked out of every message; `"shown"` quotes them, shortened.

    Raises:
        SchemaRefused: The schema is over a limit, is no valid schema, or refers to something outside of itself.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        limits: SchemaLimits = DEFAULT_LIMITS,
        values: Literal["hidden", "shown"] = "hidden",
    ) -> None:
        self._limits = limits
        self._depth = ("value_depth", limits.value_depth)
        self._values = values
        self._document, self._load, self.weight = _appraised(schema, limits)
        self._steps({})  # what even this value is too much for can never be checked
        self._light = _light(self._load, limits)
        self._state: _State | None = None
        if not self.weight.patterns or not _has_form(schema):
            self._state = self._compiled()

    @property
    def changes(self) -> tuple[str, ...]:
        """What of the schema is not checked here, each with its place. Words of the schema: untrusted."""
        return self._ready()[0]

    def _ready(self) -> _State:
        if self._state is None:
            try:
                self._state = self._compiled()
            except SchemaRefused:  # it has the form of a schema, and not without the patterns that cannot run
                self._state = (
                    ("#: no value is taken, because the schema cannot be compiled here",),
                    _built(schema=False),
                )
        return self._state

    def _compiled(self) -> _State:
        """As the function of this name. What patterns would take that are not run is not counted any more."""
        changes, built, unfit = _compiled(self._document.root)
        if unfit:
            self._load = appraise(self._document, without=unfit)
        return changes, built

    def accepts(self, value: Any) -> bool:
        """Whether the value fits; false also where finding out would take more work than allowed. Never raises."""
        _, built = self._ready()
        try:
            self._steps(value)
        except SchemaRefused:
            return False
        return bool(built.is_valid(value))

    def check(self, value: Any, *, size: int | None = None) -> list[Violation]:
        """What is wrong with a value, at most `limits.errors` entries; empty when it fits. Never raises.

        Args:
            value: The value.
            size: How many bytes of JSON it has just been read from. Where so few cannot hold more work than is allowed,
                the value is not measured first.
        """
        _, built = self._state or self._ready()
        if size is not None and size <= self._light and built.is_valid(value):
            return []
        try:
            steps, weight = self._steps(value)
        except SchemaRefused as refused:
            return [Violation(path="", expected="a JSON value within the limits", message=refused.reason)]
        if built.is_valid(value):
            return []
        if steps > _ITEMIZED or steps * weight.chars > _REPEATED:
            text = "the value does not fit the schema, which is too involved to say where"
            return [Violation(path="", expected="a value that fits the schema", message=text)]
        errors = built.iter_errors(value)
        return violations(errors, self._document, most=self._limits.errors, shown=self._values == "shown")

    def _steps(self, value: Any) -> tuple[int, Weight]:
        """Upper bound of the steps that checking this value takes, and what the value is made of.

        Raises:
            SchemaRefused: It is no JSON value, lies too deep, or would take more steps than allowed.
        """
        most = self._limits.schema_work
        weight = weigh(value, depth=self._depth)
        load = self._load
        if load.steps is not None:
            steps = load.steps * weight.nodes + load.toll.steps(texts=weight.nodes, chars=weight.chars)
            if load.numerals is not None:
                steps += load.numerals.at_most(weight.rarity, values=weight.nodes, depth=weight.depth)
            if steps <= most:
                return steps, weight
        counted = count(self._document, value, pairs=most // _PER_PAIR, tolls=load.tolls, rarity=weight.rarity)
        if counted is None or counted.steps > most or counted.chain > MAX_CHAIN:
            reason = f"checking the value takes more work than schema_work={most} allows"
            raise SchemaRefused(reason, limit="schema_work")
        return counted.steps, weight


def _light(load: Load, limits: SchemaLimits) -> int:
    """Bytes of JSON that cannot hold more work than is allowed, nor nest deeper."""
    if load.steps is None:
        return 0
    # As if each byte were a value and a character, and a number of the kind that takes longest.
    each = load.steps + load.toll.patterns + load.toll.strain // 64 + 1
    if (numbers := load.numerals) is not None:
        if numbers.unique:
            return 0
        each += numbers.at_most(Rarity(DEAREST), values=1, depth=limits.value_depth)
    return min(limits.schema_work // each, 2 * limits.value_depth)


def inspect(schema: Schema, *, limits: SchemaLimits = DEFAULT_LIMITS) -> Weight:
    """Measure a schema.

    Raises:
        SchemaRefused: It is no JSON value, neither an object nor a boolean, or over a limit, which is named.
    """
    if not isinstance(schema, dict | bool):
        raise SchemaRefused("a schema is an object or a boolean")
    weight = weigh(schema, depth=("schema_depth", limits.schema_depth), nodes=("schema_nodes", limits.schema_nodes))
    text = msgspec.json.encode(schema)
    if len(text) > limits.schema_bytes:
        raise _over("schema_bytes", limits.schema_bytes, f"the schema has {len(text)} bytes")
    if b'"$id"' in text or b"/draft-04/" in text:
        require_short(schema)
    number = sum(1 for _ in islice(patterns(schema), limits.schema_patterns + 1))
    if number > limits.schema_patterns:
        raise _over("schema_patterns", limits.schema_patterns, "the schema has more regular expressions")
    size = expense(schema, most=limits.schema_pattern_bytes) if number else 0
    if size > limits.schema_pattern_bytes:
        raise _over("schema_pattern_bytes", limits.schema_pattern_bytes, "the schema's regular expressions take more")
    return replace(weight, patterns=size)


def well_formed(schema: Schema, *, limits: SchemaLimits = DEFAULT_LIMITS) -> None:
    """See that a schema is within the limits and keeps the form of its draft.

    Raises:
        SchemaRefused: It does not, or names a draft that is unknown here.
    """
    _appraised(schema, limits)
    if not _has_form(schema):
        _compiled(schema)


def weigh(value: Any, *, depth: tuple[str, int], nodes: tuple[str, float] = ("", math.inf)) -> Weight:
    """Measure a JSON value, without recursion.

    Args:
        depth: A setting's name and how deep the value may nest.
        nodes: A setting's name and how many values it may hold.

    Raises:
        SchemaRefused: It is over a limit, or holds what JSON does not have: NaN, infinities, lone surrogates, member
            names that are no strings, values of other types.
    """
    level: list[Any] = [value]
    seen = chars = layers = rare = large = 0
    while level:
        layers += 1
        seen += len(level)
        if layers > depth[1]:
            raise _over(depth[0], depth[1], "the value nests deeper")
        if seen > nodes[1]:
            raise _over(nodes[0], int(nodes[1]), "the value holds more values")
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is str and item.isascii():
                chars += len(item)
            elif kind is dict:
                below.extend(item.values())
                for name in item:
                    chars += len(name) if type(name) is str and name.isascii() else _length(name)
            elif kind is int:
                if not -WORD < item < WORD:
                    large += _price(item)
            elif kind is float or isinstance(item, float):
                rare += _price(item)
            elif kind not in _SINGLE and not isinstance(item, int):
                chars += _enter(item, below)
        level = below
    return Weight(nodes=seen, chars=chars, depth=layers, rarity=Rarity(rare + large, large))


def _price(number: float) -> int:
    """What an unusual number takes for being compared.

    Raises:
        SchemaRefused: It is none that JSON has.
    """
    if not -_FARTHEST < number < _FARTHEST:
        if isinstance(number, float):
            raise SchemaRefused(f"{number} is no JSON value")
        raise SchemaRefused("an integer is larger than numbers are in JSON")
    return price(number)


_SINGLE = frozenset([bool, type(None)])
"""Types of values that weigh nothing more than themselves."""


def _enter(item: Any, below: list[Any]) -> int:
    """Check one value of the less usual types, put what lies in it onto `below`, and give the characters it has."""
    if isinstance(item, str):
        return _length(item)
    if isinstance(item, dict):
        below.extend(item.values())
        return sum(map(_length, item))
    if isinstance(item, list):
        below.extend(item)
    else:
        raise SchemaRefused(f"a {type(item).__name__} is no JSON value")
    return 0


def _length(text: Any) -> int:
    if not isinstance(text, str):
        raise SchemaRefused("a member name is no string")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise SchemaRefused("a text holds half of a surrogate pair") from None
    return len(text)


def _appraised(schema: Schema, limits: SchemaLimits) -> tuple[Document, Load, Weight]:
    """The schema as a document, measured in every way that needs no value."""
    weight = inspect(schema, limits=limits)
    document = Document(schema)
    load = appraise(document)
    if load.building > limits.schema_work:
        raise _over("schema_work", limits.schema_work, "compiling the schema takes more work")
    return document, load, weight


def _over(limit: str, allowed: int, what: str) -> SchemaRefused:
    return SchemaRefused(f"{what}: {limit}={allowed}. Raise {limit} to allow more.", limit=limit)


def _has_form(schema: Schema) -> bool:
    """Whether a schema is valid whatever its patterns are. None of them is compiled for that."""
    try:
        _built(plainly(schema))  # not `jsonschema_rs.meta`, which fetches whatever `$schema` names
    except ValueError:
        return False  # perhaps because a reference leads through a pattern that is another one there
    return True


def _compiled(schema: Schema) -> tuple[tuple[str, ...], Any, frozenset[str]]:
    """The compiled schema, without the patterns that cannot run here; before it what that changes, behind it these.

    Raises:
        SchemaRefused: It is no valid schema.
    """
    try:
        return (), _built(schema), frozenset()
    except ValueError as error:
        unfit = frozenset(pattern for pattern in set(patterns(schema)) if not runnable(pattern))
        if not unfit:
            raise SchemaRefused(f"not a valid schema: {_first_line(error)}") from None
    loosened = Loosened(schema, without=unfit)
    try:
        return loosened.changes, _built(loosened.schema), unfit
    except ValueError as error:
        raise SchemaRefused(f"not a valid schema: {_first_line(error)}") from None


def _built(schema: Schema) -> Any:
    from jsonschema_rs import validator_for

    return validator_for(schema, offline=True, mask="…", validate_formats=False, pattern_options=engine())


def _first_line(error: ValueError) -> str:
    return str(error).partition("\n")[0]
