"""What a failed call raises in a program that asks for it: the error tree from a framed answer.

The sentences hold local words only. What the server said is in `error.framed`, made visible in the notes of the error,
and raw in `error.__cause__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcprelay.errors import CallFailed, LimitExceeded
from mcprelay.relay.errors import (
    CallRefused,
    RelayError,
    ResultTooLarge,
    ServerUnreachable,
    ToolFailed,
    Unauthorized,
)
from mcprelay.relay.failure import limit_of, scopes_of, system_reason
from mcprelay.relay.unreached import noted

if TYPE_CHECKING:
    from mcprelay.relay.frame import Framed


def error_of(framed: Framed) -> RelayError:
    """The error that a failed answer stands for."""
    cause = framed.cause
    error = cause if isinstance(cause, RelayError) else _made(framed, cause)
    if error is not cause and error.__cause__ is None:
        error.__cause__ = cause
    error.framed = framed
    return error


def _made(framed: Framed, cause: Exception | None) -> RelayError:
    server, code = framed.server, framed.code
    if code == "tool_failed":
        return ToolFailed(f"the server {server!r} answered that the call failed; framed has its words", server=server)
    if code == "authorization":
        sentence = f"the server {server!r}: {framed.local}"
        return noted(Unauthorized(sentence, server=server, scopes=scopes_of(cause)), cause)
    if code == "transport":
        stderr = cause.stderr if isinstance(cause, CallFailed) else ""
        why = "" if cause is None else system_reason(cause)
        sentence = f"the server {server!r}: {framed.local}{f' The system says: {why}.' if why else ''}"
        return noted(ServerUnreachable(sentence, server=server, stderr=stderr), cause)
    if isinstance(cause, LimitExceeded):
        allowed = int(cause.allowed)
        actual = allowed + 1 if cause.actual is None else int(cause.actual)
        return ResultTooLarge(limit_of(cause), allowed=allowed, actual=actual, server=server)
    return CallRefused(framed.local, code=code or "failed", server=server)
