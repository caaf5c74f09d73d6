"""A shape: what a Python type says about JSON, and the way between the two.

Every shape knows five things:

- its JSON Schema (`schema`), as input or as output;
- which kinds of JSON value it may be (`kinds`);
- how it is read (`reader`): the type that msgspec decodes to, and what is then made of it. As output, reading is only
  a check of what was written. A reader takes nothing that the published schema refuses, apart from other spellings of
  the same: that is how every constraint that is published is enforced;
- how it is written (`writer`): what is done to a value before msgspec encodes it, nothing for most types;
- what is wrong with a value that it does not read (`explain`): everything, each with its place.

Reading and explaining look at each part of a value once for each type that it may be, however deep it is.

Shapes know no function and no protocol. `mcprelay.server.shape.walk` makes them from annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from mcprelay.server.coercion import kind_of
from mcprelay.server.words import describe, expectation

Mode: TypeAlias = Literal["input", "output"]
Purpose: TypeAlias = Literal["publish", "mend"]
JsonSchema: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal["string", "integer", "number", "boolean", "null", "array", "object"]

EVERY_KIND: frozenset[Kind] = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})

REFUSALS = (ValueError, TypeError, AssertionError)
"""What a user's own constructor raises to say that a value is no good (`msgspec.ValidationError` is a ValueError)."""


class Misfit(ValueError):
    """A value does not fit its shape.

    Attributes:
        path: Where, from the outside in: keys and indexes.
        reason: What is wrong, as the rest of a sentence that begins with the path.
        expected: What would fit, where the reason does not say it as "expected …, got …".
        absent: Whether there is nothing at that place.
        also: What else does not fit, where several things were looked at.
    """

    def __init__(
        self,
        reason: str,
        path: tuple[str | int, ...] = (),
        *,
        expected: str | None = None,
        absent: bool = False,
        also: tuple[Misfit, ...] = (),
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.expected = expected
        self.absent = absent
        self.also = also

    def under(self, path: tuple[str | int, ...]) -> Misfit:
        """The same misfit, seen from further out."""
        also = tuple(other.under(path) for other in self.also)
        return Misfit(self.reason, (*path, *self.path), expected=self.expected, absent=self.absent, also=also)

    def below(self, step: str | int) -> Misfit:
        """The same misfit, seen from one level further out."""
        return self.under((step,))

    def every(self) -> Iterator[Misfit]:
        """This misfit and the others, one by one."""
        yield self
        for other in self.also:
            yield from other.every()


MOST = 500
"""How many misfits are looked for in one value. Megabytes of them cost time, and tell no more."""


def together(misfits: Sequence[Misfit]) -> Misfit:
    """Several misfits as one, none of them lost."""
    first, *others = misfits
    if not others:
        return first
    also = (*first.also, *others)
    return Misfit(first.reason, first.path, expected=first.expected, absent=first.absent, also=also)


class Reader(NamedTuple):
    """How a shape is read: decode as `type`, then `lift`."""

    type: Any
    lift: Callable[[Any], Any] | None = None


class Publisher:
    """Writes one schema and gathers what is said once and referred to: `$defs`.

    A named shape is written in place unless it is used twice or contains itself. The fewer references a schema has, the
    more clients and models get it right, and an `x-mcp-header` may not lie behind one.

    Attributes:
        mode: Which way the values go.
        purpose: `publish`, or `mend`, for our own use on input, which leaves to pydantic how its types are mended.
        stated: Whether keywords of the user's own were met, which may turn out to be no JSON Schema.
        defs: The schemas that are referred to, by name.
        foreign: Those of them that another library wrote: its name for each, our name, and what it said.
    """

    def __init__(self, mode: Mode, *, purpose: Purpose = "publish") -> None:
        self.mode: Mode = mode
        self.purpose: Purpose = purpose
        self.stated = False
        self.defs: dict[str, JsonSchema] = {}
        self.foreign: dict[str, tuple[str, JsonSchema]] = {}
        self._uses: dict[int, int] = {}
        self._names: dict[int, str] = {}

    def publish(self, shape: Shape) -> JsonSchema:
        """The whole schema of a shape, with its `$defs`."""
        self._count(shape, set())
        schema = shape.body(self)
        return {**schema, "$defs": self.defs} if self.defs else schema

    def refer(self, shape: Shape, name: str, body: Callable[[], JsonSchema]) -> JsonSchema:
        """The schema of a named shape: a reference where it is shared, else the body itself."""
        key = id(shape)
        if self._uses.get(key, 0) < 2:
            return body()
        if key not in self._names:
            self._names[key] = self.reserve(name)
            self.defs[self._names[key]] = body()
        return {"$ref": f"#/$defs/{self._names[key]}"}

    def reserve(self, name: str) -> str:
        """A name in `$defs` that is free, as near to `name` as can be; it is taken from now on."""
        plain = "".join(char if char.isalnum() or char in "_.-" else "_" for char in name).strip("_") or "Type"
        free, number = plain, 2
        while free in self.defs:
            free, number = f"{plain}{number}", number + 1
        self.defs[free] = {}
        return free

    def _count(self, shape: Shape, above: set[int]) -> None:
        """Count uses; a shape met inside itself counts twice, since it must be referred to."""
        key = id(shape)
        parts = shape.parts()
        if not parts:
            return
        self._uses[key] = self._uses.get(key, 0) + (2 if key in above else 1)
        if key in above or self._uses[key] > 1:
            return
        above.add(key)
        for part in parts:
            self._count(part, above)
        above.discard(key)


class Shape:
    """What a type says about JSON. Subclasses override what differs from a plain value that msgspec handles alone."""

    kinds: frozenset[Kind] = EVERY_KIND
    python: tuple[type, ...] = ()
    """The classes of the values, where `isinstance` can tell; empty where it cannot."""
    _published: dict[Mode, JsonSchema] | None = None
    _reads: dict[Mode, tuple[Callable[[Raw | bytes], Any], Callable[[Any], Any] | None]] | None = None

    def schema(self, to: Publisher) -> JsonSchema:
        """The JSON Schema, in the publisher's mode."""
        raise TypeError(f"{type(self).__name__} has no schema yet")

    def body(self, to: Publisher) -> JsonSchema:
        """The same written out, even where the shape is referred to elsewhere: the root of a schema is no reference."""
        return self.schema(to)

    def reader(self, mode: Mode) -> Reader:
        """How JSON becomes the value; as output, how what was written is checked."""
        raise TypeError(f"{type(self).__name__} has no reader yet")

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        """What to do to a value before msgspec encodes it, or None for nothing.

        `careful` writers are the second attempt, when what was written did not pass: they look at each part.
        """
        return None

    def parts(self) -> Sequence[Shape]:
        """The shapes that this one is made of."""
        return ()

    def read(self, data: Raw | bytes, mode: Mode = "input") -> Any:
        """The value that this JSON is.

        Raises:
            Misfit: It is not of this shape.
        """
        if self._reads is None:
            self._reads = {}
        if mode not in self._reads:
            reader = self.reader(mode)
            self._reads[mode] = (msgspec.json.Decoder(reader.type).decode, reader.lift)
        decode, lift = self._reads[mode]
        try:
            value = decode(data)
        except msgspec.DecodeError as error:
            raise Misfit(str(error)) from error
        return value if lift is None else lift(value)

    def explain(self, value: Any, mode: Mode) -> list[Misfit]:
        """Everything that keeps a plain JSON value from being read, nothing where it can be."""
        if kind_of(value) not in self.kinds:
            return [self.unmet(value, mode)]
        try:
            self.read(msgspec.json.encode(value), mode)
        except Misfit as misfit:
            return self.refusals(misfit, value, mode)
        return []

    def refusals(self, misfit: Misfit, value: Any, mode: Mode) -> list[Misfit]:
        """What is told of a value of the right kind that was not read: what the schema wants, or better."""
        return [self.unmet(value, mode)]

    def unmet(self, value: Any, mode: Mode) -> Misfit:
        """The misfit of a value that is nothing of what the schema wants."""
        return Misfit(f"expected {expectation(self.published(mode))}, got {describe(value)}")

    def published(self, mode: Mode) -> JsonSchema:
        """The whole schema, as it stands alone; made once, when it is first asked for."""
        if self._published is None:
            self._published = {}
        if mode not in self._published:
            self._published[mode] = Publisher(mode).publish(self)
        return self._published[mode]


def construct(build: Callable[..., Any], *arguments: Any) -> Any:
    """Call a user's constructor; its refusal is a misfit, anything else is the user's own fault and passes.

    Raises:
        Misfit: The constructor said no.
    """
    try:
        return build(*arguments)
    except Misfit:
        raise
    except REFUSALS as error:
        raise Misfit(str(error) or type(error).__name__) from error
