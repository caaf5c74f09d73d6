"""What a failed call raises in a program that asks for it: the error tree from a framed answer.

The sentences hold local words only, and names. What the server said is in `error.framed`, made visible in the notes of
the error, and raw in `error.__cause__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcprelay.errors import LimitExceeded
from mcprelay.relay.errors import CallRefused, RelayError, ResultTooLarge, ToolFailed
from mcprelay.relay.failure import limit_of

if TYPE_CHECKING:
    from mcprelay.relay.frame import Framed

_NEXT = {
    "arguments": "`framed.text` of this error says what is wrong with them.",
    "needs_input": "Relay(on_elicit=…) answers questions to a person, and Relay(on_sample=…) those to a model.",
    "unknown_tool": "`report()` of the set says what became of others.",
    "withheld": "`__cause__` of this error, and the log, say which one.",
    "failed": "`__cause__` of this error says why.",
}
"""What to do about a refusal that has no class of its own; the sentence before it is the model's."""


def error_of(framed: Framed) -> RelayError:
    """The error that a failed answer stands for."""
    cause = framed.cause
    error = cause if isinstance(cause, RelayError) else _made(framed, cause)
    if error is not cause and error.__cause__ is None:
        error.__cause__ = cause
    error.framed = framed
    return error


def _made(framed: Framed, cause: Exception | None) -> RelayError:
    server, code = framed.server, framed.code or "failed"
    if code == "tool_failed":
        sentence = f"the server {server!r} answered that the call failed; `framed.text` of this error has its words"
        return ToolFailed(sentence, server=server)
    if isinstance(cause, LimitExceeded):
        allowed = int(cause.allowed)
        actual = allowed + 1 if cause.actual is None else int(cause.actual)
        return ResultTooLarge(limit_of(cause), allowed=allowed, actual=actual, server=server)
    whose = f"the server {server!r}: " if server else ""
    sentence = f"{whose}{framed.local} {_NEXT.get(code, _NEXT['failed'])}"
    return CallRefused(sentence, code=code, server=server or None)
