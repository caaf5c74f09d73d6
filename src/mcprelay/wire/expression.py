"""The grammar of URI templates and their expansion (RFC 6570, all four levels).

Knows what stands between braces and what it expands to. Does not know how to read a URI back: that is `matcher`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from mcprelay.errors import DefinitionError
from mcprelay.wire import percent

Scalar: TypeAlias = str | int | float | bool
Value: TypeAlias = Scalar | Sequence[Scalar | None] | Mapping[str, Scalar | None] | None
"""What a variable can be: a text or number, a list, an association; None is "not defined"."""

_expression = re.compile(r"([+#./;?&=,!@|]?)([^{}]*)\Z").match
_variable = re.compile(
    r"((?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*)(?:(\*)|:([1-9][0-9]{0,3}))?"
).fullmatch
_not_literal = re.compile(r"%(?![0-9A-Fa-f]{2})|[\x00-\x20\"<>\\^`{|}\x7f-\x9f\ud800-\udfff]").search


class TemplateInvalid(DefinitionError):
    """A text is not a URI template, or one that cannot do what it is used for.

    Attributes:
        template: The text.
        position: Where the fault is, in characters from the start.
    """

    def __init__(self, template: str, position: int, reason: str) -> None:
        super().__init__(f"URI template {template!r}, position {position}: {reason}")
        self.template = template
        self.position = position


class Operator(Struct, frozen=True):
    """How an expression expands (RFC 6570, appendix A)."""

    symbol: str
    first: str
    separator: str
    named: bool
    if_empty: str
    keeps_reserved: bool


OPERATORS = {
    operator.symbol: operator
    for operator in (
        Operator("", "", ",", False, "", False),
        Operator("+", "", ",", False, "", True),
        Operator("#", "#", ",", False, "", True),
        Operator(".", ".", ".", False, "", False),
        Operator("/", "/", "/", False, "", False),
        Operator(";", ";", ";", True, "", False),
        Operator("?", "?", "&", True, "=", False),
        Operator("&", "&", "&", True, "=", False),
    )
}


class Variable(Struct, frozen=True):
    """A variable as an expression mentions it: its name, `*`, or the length of a prefix."""

    name: str
    explode: bool = False
    prefix: int | None = None

    @property
    def key(self) -> str:
        """The name, with the length of a prefix, which is another value than the whole."""
        return self.name if self.prefix is None else f"{self.name}:{self.prefix}"

    def __str__(self) -> str:
        return self.name + ("*" if self.explode else "" if self.prefix is None else f":{self.prefix}")


class Literal(Struct, frozen=True):
    """Text that stands for itself."""

    text: str
    position: int = 0

    def expand(self, values: Mapping[str, Value]) -> str:
        """The text, with what no URI holds percent-encoded."""
        return percent.encode_keeping_reserved(self.text)


class Expression(Struct, frozen=True):
    """What stands between braces."""

    operator: Operator
    variables: tuple[Variable, ...]
    position: int = 0

    def __str__(self) -> str:
        return "{" + self.operator.symbol + ",".join(map(str, self.variables)) + "}"

    def expand(self, values: Mapping[str, Value]) -> str:
        """The text that these values give; undefined variables leave nothing."""
        parts = [part for variable in self.variables for part in self._expand(variable, values.get(variable.name))]
        return self.operator.first + self.operator.separator.join(parts) if parts else ""

    def _expand(self, variable: Variable, value: Value) -> list[str]:
        if value is None:
            return []
        if isinstance(value, (str, int, float)):
            text = _text(value)
            if variable.prefix is not None:
                text = self._cut(text, variable.prefix)
            return [self._named(variable.name, self._encode(text))]
        if variable.prefix is not None:
            raise ValueError(f"{variable}: a prefix is taken of a text, not of {value!r} (RFC 6570, section 2.4.1)")
        return self._expand_many(variable, value)

    def _expand_many(
        self, variable: Variable, value: Sequence[Scalar | None] | Mapping[str, Scalar | None]
    ) -> list[str]:
        pairs = _pairs(value)
        if not variable.explode:
            flat = ",".join(self._encode(text) for key, item in pairs for text in (key, item) if text is not None)
            return [self._named(variable.name, flat)] if pairs else []
        if self.operator.named:
            return [
                self._named(variable.name if key is None else self._encode(key), self._encode(item))
                for key, item in pairs
            ]
        return [
            self._encode(item) if key is None else f"{self._encode(key)}={self._encode(item)}" for key, item in pairs
        ]

    def _cut(self, text: str, length: int) -> str:
        return percent.first_characters(text, length) if self.operator.keeps_reserved else text[:length]

    def _named(self, name: str, encoded: str) -> str:
        if not self.operator.named:
            return encoded
        return f"{name}={encoded}" if encoded else name + self.operator.if_empty

    def _encode(self, text: str) -> str:
        return percent.encode_keeping_reserved(text) if self.operator.keeps_reserved else percent.encode(text)


def parse(template: str) -> tuple[Literal | Expression, ...]:
    """The parts of a template.

    Raises:
        TemplateInvalid: It breaks the grammar; the error says where.
    """
    return tuple(_parts(template))


def _parts(template: str) -> Iterable[Literal | Expression]:
    place = 0
    while place < len(template):
        opened = template.find("{", place)
        end = len(template) if opened < 0 else opened
        if end > place:
            yield Literal(_checked_literal(template, place, end), place)
        if opened < 0:
            return
        closed = template.find("}", opened)
        if closed < 0:
            raise TemplateInvalid(template, opened, "this brace is never closed")
        yield _parse_expression(template, opened, closed)
        place = closed + 1


def _checked_literal(template: str, start: int, end: int) -> str:
    text = template[start:end]
    bad = _not_literal(text)
    if bad is not None:
        what = (
            "a brace that nothing opened" if bad.group() == "}" else f"{bad.group()!r}, which must be percent-encoded"
        )
        raise TemplateInvalid(template, start + bad.start(), what)
    return text


def _parse_expression(template: str, opened: int, closed: int) -> Expression:
    found = _expression(template[opened + 1 : closed])
    if found is None:
        raise TemplateInvalid(template, opened, "a brace inside of braces")
    symbol, names = found.groups()
    operator = OPERATORS.get(symbol)
    if operator is None:
        raise TemplateInvalid(template, opened + 1, f"the operator {symbol!r} is reserved and means nothing yet")
    variables: list[Variable] = []
    place = opened + 1 + len(symbol)
    for text in names.split(","):
        variables.append(_parse_variable(template, place, text))
        place += len(text) + 1
    return Expression(operator, tuple(variables), opened)


def _parse_variable(template: str, place: int, text: str) -> Variable:
    found = _variable(text)
    if found is None:
        what = f"{text!r} is not a variable" if text else "a variable's name is missing"
        raise TemplateInvalid(
            template, place, f"{what}; write a name of letters, digits, _ and inner dots, then nothing, * or :length"
        )
    name, star, length = found.groups()
    return Variable(name, star is not None, None if length is None else int(length))


def _text(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def _pairs(value: Sequence[Scalar | None] | Mapping[str, Scalar | None]) -> list[tuple[str | None, str]]:
    """The members that are defined; a list's have no key."""
    if isinstance(value, Mapping):
        return [(str(key), _text(item)) for key, item in value.items() if item is not None]
    return [(None, _text(item)) for item in value if item is not None]
