"""A call that has no result, in words for a model: our sentence, and beside it what the server itself said.

Our sentence holds local words and numbers only. What the server said (the message of a JSON-RPC error, the body of an
HTTP error, the content of a tool's error) is told apart, so that the funnel can frame it. Texts of other exceptions
hold both mixed, so they are not told at all: they are for the program and its log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from mcprelay.client.certificate import fault_of
from mcprelay.errors import (
    AuthorizationRequired,
    CallFailed,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    Evidence,
    HttpError,
    LimitExceeded,
    NeedsInput,
    RemoteError,
    ResponseInvalid,
    RevisionUnsupported,
    ToolError,
)
from mcprelay.relay.budget import NAMES
from mcprelay.relay.errors import CallDenied, RelayError, TokenFailed
from mcprelay.types import Text, ToolResult

_UNAUTHORIZED = 401
_LARGEST_CODE = 1 << 31
"""Of the errors of JSON-RPC and of everybody who adds to them, with room to spare."""
_UNSENT = " Nothing was sent, so the call can be made again."
_MAYBE = " It may have been carried out all the same: look before it is made again."
_SENTENCES: tuple[tuple[type[Exception], str], ...] = (
    (AuthorizationRequired, "The server does not accept the credentials of this application."),
    (DeadlineExceeded, "The call was not answered in time."),
    (ConnectFailed, "The server cannot be reached."),
    (ResponseInvalid, "The server answered with something that is not the protocol."),
    (RevisionUnsupported, "The server speaks no revision of the protocol that this application speaks."),
    (CallFailed, "The connection to the server was lost."),
)


_NOBODY = "The server asks for input before it goes on, and this application has nobody to answer it."
_ANSWERABLE = frozenset(["elicitation", "sampling"])
"""What a relay can declare where it has a handler for it."""
_RAISE = {
    "message_depth": "Raise message_depth to allow more. None of the list can be read, because the message holds too"
    " many lists and objects, or is not formed well enough, for leaving out only what nests deeper."
}
"""What to do about a limit that ends a list, where raising it is not all there is to say."""
_SCOPE = re.compile(r"[!#-\[\]-~]{1,100}")
"""A scope (RFC 6749, 3.3) that is not too long to be read."""
_MOST_SCOPES = 50
CERTIFICATE = "the certificate"
"""What begins what TLS says of one."""
_CHAIN = 8
"""How many causes are looked at."""


class Told(Struct, frozen=True, kw_only=True):
    """A failure in words.

    Attributes:
        local: Our sentence.
        remote: What the server said, raw.
        answer: A tool's error as the result that it was, in place of both.
        code: A stable name for the kind of failure.
    """

    local: str = ""
    remote: str = ""
    answer: ToolResult | None = None
    code: str = "transport"


def limit_of(error: LimitExceeded) -> str:
    """The name of the relay's setting that a limit is."""
    return NAMES.get(error.limit, error.limit)


def scopes_of(error: Exception | None) -> tuple[str, ...]:
    """The scopes that a server says it takes, where it says so in a challenge."""
    challenge = getattr(error, "challenge", None)
    said = "" if challenge is None else challenge.params.get("scope", "")
    return tuple(word for word in said.split()[:_MOST_SCOPES] if _SCOPE.fullmatch(word))


def tell(error: Exception, *, acts: bool = True) -> Told:
    """Tell a failure. Whatever the exception is, there is a sentence for it.

    Args:
        error: What failed.
        acts: Whether it is told what became of the request. A listing does nothing, so that there it does not matter.
    """
    if isinstance(error, ToolError):
        return Told(answer=_answer(error), code="tool_failed")
    if isinstance(error, NeedsInput) or _asks(error):
        return Told(local=_NOBODY, code="needs_input")
    if isinstance(error, RemoteError):
        return Told(local=_answered(error.code) + _sent(error, acts=acts), remote=_said(error), code="tool_failed")
    if isinstance(error, HttpError) and not isinstance(error, AuthorizationRequired):
        local = f"The server answered with HTTP status {error.status}.{_sent(error, acts=acts)}"
        return Told(local=local, remote=error.body)
    if isinstance(error, RelayError):
        return Told(local=_refused(error), code=error.code)
    if isinstance(error, LimitExceeded):
        name = limit_of(error)
        what = "The call or its answer is" if acts else "The list, or a message of it, is"
        then = "Nothing of it is shown. Ask for less." if acts else _RAISE.get(name, f"Raise {name} to allow more.")
        return Told(
            local=f"{what} over a limit of this application: {name}={int(error.allowed):,}. {then}", code="too_large"
        )
    if isinstance(error, AuthorizationRequired) and error.status != _UNAUTHORIZED:
        return Told(local="The credentials of this application do not reach for this.", code="authorization")
    if isinstance(error, (ConnectFailed, ConnectionLost)) and error.exit_code is not None:
        sent = _sent(error, acts=acts)
        return Told(local=f"The server's process exited with code {error.exit_code} before it answered.{sent}")
    if type(error) is CallFailed:  # what a handler made of the server's question
        local = "This application could not answer what the server asked, and gave the call up."
        return Told(local=local + _MAYBE, code="failed")
    for kind, sentence in _SENTENCES:
        if isinstance(error, kind):
            sent = _sent(error, acts=acts) if isinstance(error, CallFailed) else ""
            code = "authorization" if kind is AuthorizationRequired else "transport"
            return Told(local=sentence + sent, code=code)
    return Told(local=f"The call failed in this application.{_MAYBE if acts else ''}", code="failed")


def _sent(error: CallFailed, *, acts: bool) -> str:
    """What became of the request, as far as that leaves something to do."""
    if not acts:
        return ""
    return _UNSENT if error.evidence is Evidence.NOT_SENT else _MAYBE if error.may_have_run else ""


def _asks(error: Exception) -> bool:
    """Whether a server has refused because it would have to ask, and nobody here answers: in any revision."""
    data: Any = error.data if isinstance(error, RemoteError) else None
    wanted = data.get("requiredCapabilities") if isinstance(data, dict) else None
    return isinstance(wanted, dict) and not _ANSWERABLE.isdisjoint(wanted)


def system_reason(error: BaseException) -> str:
    """What the operating system or TLS says of a failure, nobody's words but theirs; empty where they say nothing."""
    import ssl

    found = [each for each in chain(error) if isinstance(each, OSError)]
    for each in found:  # first: whoever wraps an error of TLS takes over its number, which means something else there
        verified = getattr(each, "verify_message", None)
        if isinstance(each, ssl.SSLCertVerificationError) and verified:
            return f"{CERTIFICATE} {fault_of(each).what}: {verified}".rstrip(".")
        reason = getattr(each, "reason", None)
        if isinstance(each, ssl.SSLError) and isinstance(reason, str):
            return reason.replace("_", " ").lower()
    for each in found:
        if isinstance(each, ssl.SSLError):
            return "TLS failed"
        if isinstance(each.errno, int):
            return os.strerror(each.errno) if each.errno > 0 else str(each.strerror or "")
    return ""


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes, as far as they matter."""
    seen: BaseException | None = error
    for _ in range(_CHAIN):
        if seen is None:
            break
        yield seen
        seen = seen.__cause__ or seen.__context__


def _refused(error: RelayError) -> str:
    """Our sentence on what this application itself refused, or could not do."""
    if isinstance(error, CallDenied):
        return f"This application does not allow the call: {error.reason}"
    if isinstance(error, TokenFailed):
        return f"This application has no token for the server now.{_UNSENT}"
    return f"This application refused the call ({error.code})."


def _answer(error: ToolError) -> ToolResult:
    """A tool's error as a result. On the client it came as one; one that was raised here may have a text only."""
    if isinstance(error.result, ToolResult):
        return error.result
    content = error.content or ((Text(error.message),) if error.message else ())
    structured = UNSET if error.structured is None else error.structured
    return ToolResult(content=content, structured_content=structured, is_error=True)


def _answered(code: Any) -> str:
    """Our sentence on a JSON-RPC error. Its code is the server's word too, and enough digits say whatever one likes."""
    if isinstance(code, int) and abs(code) <= _LARGEST_CODE:
        return f"The server answered with error {code:d}."
    return "The server answered with an error whose code is out of range."


def _said(error: RemoteError) -> str:
    data: Any = error.data
    return error.message if data is None else f"{error.message}\n{msgspec.json.encode(data).decode()}"
