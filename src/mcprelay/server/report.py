"""What does not fit, told so that whoever sent it can mend it: where, what was expected, what came. All of it at once,
up to what anybody reads.

Reports are made of misfits; they know no Python type, no schema and no protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from mcprelay.errors import MCPRelayError
from mcprelay.server.shape import MOST, Misfit
from mcprelay.server.words import describe, place, pointer

SHOWN = 20
"""How many misfits the text of one report lists."""
LISTED = 100
"""How many misfits the data of one report lists: what one caller sends wrong a thousand times is told often enough."""


class ArgumentError(Struct, frozen=True):
    """One thing that does not fit.

    Attributes:
        path: A JSON Pointer (RFC 6901) into the arguments; the arguments themselves are the empty string.
        expected: What would fit, in words.
        got: What came, in words; None where nothing came.
        message: A sentence that says all of it.
    """

    path: str
    expected: str
    got: str | None
    message: str


class ArgumentsInvalid(MCPRelayError, ValueError):
    """Arguments do not fit what was published. The handler did not run.

    Attributes:
        errors: Everything that does not fit, at most `LISTED`.
    """

    def __init__(self, name: str, errors: Sequence[ArgumentError], *, more: int = 0) -> None:
        lines = [f"- {error.message}" for error in errors[:SHOWN]]
        more += len(errors[SHOWN:])
        if more:
            lines.append(f"- … and {more if more < MOST - LISTED else 'many'} more")
        super().__init__("\n".join([f"Invalid arguments for {name}:", *lines]))
        self.errors = tuple(errors)

    def data(self) -> list[dict[str, Any]]:
        """The errors as JSON values."""
        plain: list[dict[str, Any]] = msgspec.to_builtins(self.errors)
        return plain


def refusal(name: str, misfits: Sequence[Misfit], value: Any) -> ArgumentsInvalid:
    """The report of what in a value does not fit; two misfits that say the same are told once."""
    errors: dict[str, ArgumentError] = {}
    rest = iter(misfits)
    for misfit in rest:
        error = _error(misfit, value)
        errors[error.message] = error
        if len(errors) == LISTED:
            break
    return ArgumentsInvalid(name, list(errors.values()), more=sum(1 for _ in rest))


def _error(misfit: Misfit, value: Any) -> ArgumentError:
    expected = misfit.expected or misfit.reason.partition(", got ")[0].removeprefix("expected ")
    got = None if misfit.absent else describe(_at(value, misfit.path))
    return ArgumentError(pointer(misfit.path), expected, got, f"{place(misfit.path)}: {misfit.reason}")


def _at(value: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value
