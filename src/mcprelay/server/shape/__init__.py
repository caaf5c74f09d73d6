"""A shape: what a Python type says about JSON, and the way between the two.

Every shape knows four things, and all of them are settled once, at decoration:

- its JSON Schema (`schema`), as input or as output;
- how it is read (`reader`): the type that msgspec decodes to, and what is then made of it;
- how it is written (`writer`): what is done to a value before msgspec encodes it, nothing for most types;
- which kinds of JSON value it may be (`kinds`).

A reader is *exact* when it takes nothing that the published schema refuses, apart from spellings that mean the same.
Where it is not, a validator of the schema goes first. That is how every constraint that is published is enforced.

Shapes know no function and no protocol. `mcprelay.server.shape.walk` makes them from annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

Mode: TypeAlias = Literal["input", "output"]
Purpose: TypeAlias = Literal["publish", "check", "mend"]
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
        also: What else does not fit, where several things were looked at.
    """

    def __init__(self, reason: str, path: tuple[str | int, ...] = (), also: tuple[Misfit, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.also = also

    def below(self, step: str | int) -> Misfit:
        """The same misfit, seen from one level further out."""
        return Misfit(self.reason, (step, *self.path), tuple(other.below(step) for other in self.also))

    def every(self) -> Iterator[Misfit]:
        """This misfit and the others, one by one."""
        yield self
        for other in self.also:
            yield from other.every()


def together(misfits: Sequence[Misfit]) -> Misfit:
    """Several misfits as one, none of them lost."""
    first, *others = misfits
    return Misfit(first.reason, first.path, (*first.also, *others))


class Reader(NamedTuple):
    """How a shape is read: decode as `type`, then `lift`; `exact` says whether the schema needs no second look."""

    type: Any
    lift: Callable[[Any], Any] | None = None
    exact: bool = True


class Publisher:
    """Writes one schema and gathers what is said once and referred to: `$defs`.

    A named shape is written in place unless it is used twice or contains itself. The fewer references a schema has, the
    more clients and models get it right, and an `x-mcp-header` may not lie behind one.

    Attributes:
        mode: Which way the values go.
        purpose: `publish`; or, for our own use on input, `check`, which leaves to a type what the type itself refuses
            (`datetime` reads more than the format that is published for it), or `mend`, which leaves to pydantic how
            its own types are mended.
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
    _decode: Callable[[Raw | bytes], Any] | None = None
    _lift: Callable[[Any], Any] | None = None

    def schema(self, to: Publisher) -> JsonSchema:
        """The JSON Schema, in the publisher's mode."""
        raise TypeError(f"{type(self).__name__} has no schema yet")

    def body(self, to: Publisher) -> JsonSchema:
        """The same written out, even where the shape is referred to elsewhere: the root of a schema is no reference."""
        return self.schema(to)

    def reader(self, mode: Mode) -> Reader:
        """How JSON becomes the value. As output it only serves to check what was written."""
        raise TypeError(f"{type(self).__name__} has no reader yet")

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        """What to do to a value before msgspec encodes it, or None for nothing.

        `careful` writers are the second attempt, when what was written did not pass: they look at each part.
        """
        return None

    def parts(self) -> Sequence[Shape]:
        """The shapes that this one is made of."""
        return ()

    def read(self, data: Raw | bytes) -> Any:
        """The value that this JSON is.

        Raises:
            Misfit: It is not of this shape.
        """
        if self._decode is None:
            reader = self.reader("input")
            self._decode, self._lift = msgspec.json.Decoder(reader.type).decode, reader.lift
        lift = self._lift
        try:
            value = self._decode(data)
        except msgspec.DecodeError as error:
            raise misfit_of(error) from error
        return value if lift is None else lift(value)


def misfit_of(error: msgspec.DecodeError) -> Misfit:
    """Msgspec's own refusal as ours: it ends with the path (`… - at `$.a[2]``)."""
    reason, _, place = str(error).rpartition(" - at `")
    if not reason:
        return Misfit(_sentence(str(error)))
    return Misfit(_sentence(reason), tuple(_steps(place.rstrip("`"))))


def _sentence(reason: str) -> str:
    return reason[:1].lower() + reason[1:]


def _steps(place: str) -> Iterator[str | int]:
    for step in place.removeprefix("$").replace("[", ".[").split("."):
        if step.startswith("["):
            inside = step[1:-1]
            yield int(inside) if inside.isdigit() else "*"
        elif step:
            yield step


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
