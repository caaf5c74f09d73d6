"""Every exception of the package, and `Evidence`: whether a failed request may have been carried out.

    MCPRelayError
    ├── ConfigurationError           you set something up wrongly; the message names the setting
    │   ├── DefinitionError          a tool, resource or prompt cannot be registered as written
    │   ├── AnswerInvalid            an answer does not fit the question; carries its key and the fields
    │   └── AlreadyAnswered          a question has its answer, or gets it now
    ├── LocalFault                   this program misused a protocol machine; never the peer's doing
    ├── LimitExceeded                a limit was hit; carries the setting's name
    ├── ProtocolError                a JSON-RPC error: raised by a handler, it is sent as it stands
    ├── ToolError                    a tool said no: raised by a handler, raised to a caller
    ├── ResourceError                a resource cannot be read, for a reason the client may see
    │   └── ResourceNotFound         there is no resource at that URI
    ├── PromptError                  a prompt cannot be made, for a reason the client may see
    ├── RequestRefused               `Server(context=…)` refuses an HTTP request; carries the status
    ├── NeedsInput                   a call asks something that no handler answers; carries the question
    ├── NotSent                      raised by a `Channel`: not one byte of the message left
    └── CallFailed                   a call has no result; `evidence` says whether it may have run
        ├── ConnectFailed            no connection, so nothing was sent
        ├── ConnectionLost           the connection ended before the answer
        ├── DeadlineExceeded         the caller's deadline passed (also a `TimeoutError`)
        ├── CallLimitExceeded        a limit of this client was hit (also a `LimitExceeded`)
        ├── ResponseInvalid          the peer answered with something that is not the protocol
        ├── RemoteError              the peer answered with a JSON-RPC error
        ├── HttpError                the peer answered with an HTTP status that is not success
        │   └── AuthorizationRequired    … with 401 or an insufficient-scope 403; carries the challenge
        └── RevisionUnsupported      the two sides have no protocol revision in common

The relay adds its own branch below `MCPRelayError` in `mcprelay.relay`. Nothing here does I/O.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Raw

from mcprelay.invisible import escaped


class Evidence(enum.StrEnum):
    """What is known about a request that has no result."""

    NOT_SENT = "not sent"
    """No byte of the request left this process: repeating it is safe."""

    MAYBE_SENT = "maybe sent"
    """Some or all of the request left; the peer may have carried it out."""

    ANSWERED = "answered"
    """The peer answered, so it saw the request."""


NOT_SENT, MAYBE_SENT, ANSWERED = Evidence.NOT_SENT, Evidence.MAYBE_SENT, Evidence.ANSWERED
"""The same, for what every call goes through: before Python 3.12 members of an enumeration are looked up slowly."""


class MCPRelayError(Exception):
    """The root of every exception that mcprelay raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is, for another process: its constructor may have been given more than its text.

        What it holds is told apart from what makes it, because that may lead back to it.
        """
        return _remade, (type(self), self.args), self.__dict__


def _remade(kind: type[MCPRelayError], args: tuple[Any, ...]) -> MCPRelayError:
    error = kind.__new__(kind, *args)
    error.args = args  # what is an `OSError` too, as a `TimeoutError` is, leaves this to a constructor
    return error


class ConfigurationError(MCPRelayError, ValueError):
    """A setting is wrong or missing. The message names it and says what would be right."""


class DefinitionError(ConfigurationError):
    """A tool, resource or prompt cannot be registered as it is written."""


class AnswerInvalid(ConfigurationError):
    """An answer does not fit the question that it is for: what was filled in is to be mended. Nothing was sent.

    Attributes:
        key: The question's key, where one of those asked is meant.
        fields: By the form's field, what is wrong with it, as in `{"age": "must be integer, not 'x'"}`; empty where it
            is not a field that is wrong. Names and bounds are the server's words: untrusted.
    """

    def __init__(self, message: str, *, key: str | None = None, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.fields = dict(fields or {})


class AlreadyAnswered(ConfigurationError):
    """A question was answered before, or is at this moment: what was asked for may run only once for it."""


class LocalFault(MCPRelayError, RuntimeError):
    """This program used a protocol machine in an order that the protocol does not have."""


class LimitExceeded(MCPRelayError):
    """A limit was hit.

    Attributes:
        limit: The name of the setting that holds the limit.
        allowed: The value of that setting.
        actual: What was met, where it is known.
    """

    def __init__(self, limit: str, allowed: float, *, actual: float | None = None, what: str = "the message") -> None:
        met = "" if actual is None else f" ({actual:.15g})"
        super().__init__(f"{what} is over the limit{met}: {limit}={allowed:.15g}. Raise {limit} to allow more.")
        self.limit = limit
        self.allowed = allowed
        self.actual = actual


class ProtocolError(MCPRelayError):
    """A JSON-RPC error object.

    Raised by a handler it is sent to the client exactly as it stands.

    Attributes:
        code: The JSON-RPC error code.
        message: One sentence.
        data: Any JSON value, or None for none.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ToolError(MCPRelayError):
    """A tool said no (`isError: true`).

    A handler raises it with a text, or with content blocks, that the model may read. A client raises it with what the
    server's tool answered.

    Attributes:
        content: The content blocks of the answer.
        structured: The structured content beside them, or None.
        result: On the client, the whole `ToolResult`.
    """

    def __init__(
        self, message: str = "", *, content: Sequence[Any] = (), structured: Any = None, result: Any = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.content = tuple(content)
        self.structured = structured
        self.result = result


class ResourceError(MCPRelayError):
    """A resource cannot be read, for a reason that the client may see."""


class ResourceNotFound(ResourceError):
    """There is no resource at this URI. Sent with the code that the revision has for it, and `data.uri`."""

    def __init__(self, uri: str, message: str | None = None) -> None:
        super().__init__(message or f"Resource not found: {uri}")
        self.uri = uri


class PromptError(MCPRelayError):
    """A prompt cannot be made, for a reason that the client may see."""


class RequestRefused(MCPRelayError):
    """The function of `Server(context=…)` raises it to refuse an HTTP request.

    Attributes:
        status: The HTTP status, from 400 to 599.
        message: A sentence that the client may see.
        headers: More headers of the answer, such as `{"retry-after": "5"}`.
    """

    def __init__(self, status: int, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        if not 400 <= status <= 599:
            raise ConfigurationError(f"RequestRefused: a refusal has a status from 400 to 599, and not {status}")
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


class NeedsInput(MCPRelayError):
    """The server asks something before it goes on, and no handler was registered that answers it.

    Attributes:
        question: The `InputRequired` value; `await question.answer({key: …})` goes on with the call.
    """

    def __init__(self, question: Any, message: str) -> None:
        super().__init__(message)
        self.question = question


class NotSent(MCPRelayError):
    """A `Channel` or `Sender` raises this when no byte of the message left, and nothing else does."""


_NOTHING = Raw(b"")

SENTENCE = 2000
"""How long the text of a failure is at most, in characters. What is cut from it is whole in the attributes."""


def told(text: str, *, most: int = 300) -> str:
    """A peer's words as a part of a sentence: one line, all of it visible, nothing for a terminal, and not too long."""
    line = escaped(" ".join(text[: 4 * most].split()) if "\n" in text or len(text) > most else text)
    return line if len(line) <= most else f"{line[:most]}…"


def _answered(known: dict[str, Any]) -> dict[str, Any]:
    """What is known of a call whose peer answered, unless the caller knows better."""
    return {"evidence": Evidence.ANSWERED, **known}


def _last_words(stderr: str) -> str:
    """The last lines of a process, for a traceback. What could command a terminal is shown as an escape."""
    lines = (told(line, most=1000) for line in stderr.rstrip().splitlines()[-5:])
    return "\n    ".join(["the last lines of the server's standard error:", *lines])


class CallFailed(MCPRelayError):
    """A call has no result.

    Attributes:
        kind: What went wrong, in one word, the same for every failure of this class.
        evidence: Whether the request may have been carried out.
        method: The method called, or None while connecting.
        request_id: The JSON-RPC id that the request had, or None when it never got one.
        correlation_id: The correlation id that travelled with it, or None.
        exit_code: The exit code of the server's process, where it is known.
        stderr: The tail of what the server's process wrote to stderr.
        partial: What a list had read before it failed, else None.
    """

    kind: ClassVar[str] = "failed"
    partial: Any = None
    _unclear: bool = False

    def __init__(
        self,
        message: str,
        *,
        evidence: Evidence,
        method: str | None = None,
        request_id: str | int | None = None,
        correlation_id: str | None = None,
        exit_code: int | None = None,
        stderr: str = "",
        may_have_run: bool | None = None,
    ) -> None:
        # A subclass that is also another kind of error has set that part up itself.
        Exception.__init__(self, told(message, most=SENTENCE))
        self.evidence = evidence
        self.method = method
        self.request_id = request_id
        self.correlation_id = correlation_id
        self.exit_code = exit_code
        self.stderr = stderr
        if may_have_run is not None:
            self._unclear = may_have_run
        if stderr.strip():
            self.add_note(_last_words(stderr))

    @property
    def may_have_run(self) -> bool:
        """Whether the call may have been carried out, so that it is repeated only if that does no harm.

        Always where `evidence` is `MAYBE_SENT`, and never where it is `NOT_SENT`. Of what was `ANSWERED` where the
        answer leaves it open, and the text says so: one that cannot be read or is too long, an internal error, an HTTP
        status from 500 on but for 503, and any answer to a call that had been sent before. Else the server said no, in
        words that are its own.
        """
        if self.evidence is Evidence.ANSWERED:
            return self._unclear
        return self.evidence is Evidence.MAYBE_SENT

    @may_have_run.setter
    def may_have_run(self, open_: bool) -> None:
        self._unclear = open_


class ConnectFailed(CallFailed):
    """No connection came about, so nothing of the request was carried out.

    `evidence` is `NOT_SENT`, or `ANSWERED` where a server had refused it before and it was to be sent again. (It is
    `MAYBE_SENT` only where an earlier attempt or round of the same call had been sent.)

    Attributes:
        lasting: Whether trying again as it is brings nothing, so that `Retry` does not: the client is not open, its
            channel has ended, or the call cannot be sent over this wire.
    """

    kind = "unreachable"
    lasting: bool = False


class ConnectionLost(CallFailed):
    """The connection, or the server's process, ended before the answer was complete."""

    kind = "lost"


class DeadlineExceeded(CallFailed, TimeoutError):
    """The caller's deadline passed. The work was cancelled on the server as far as the transport can say so."""

    kind = "timeout"


class CallLimitExceeded(CallFailed, LimitExceeded):
    """A limit of this client refused a call, or cut its answer short. The message names the setting."""

    kind = "limit"

    def __init__(
        self, limit: str, allowed: float, *, actual: float | None = None, what: str = "the message", **known: Any
    ) -> None:
        LimitExceeded.__init__(self, limit, allowed, actual=actual, what=what)
        CallFailed.__init__(self, str(self), **known)


class ResponseInvalid(CallFailed):
    """The peer answered, but not with a message of the protocol, or with a value that is not what was asked for.

    Attributes:
        excerpt: The beginning of what cannot be used, as text: untrusted.
        raw: The whole answer: the result's JSON, as in `Result.raw`, or what came in its place, which may be no JSON.
            Bounded by `response_bytes` or `message_bytes`, and empty where nothing came.
    """

    kind = "invalid"
    _unclear = True

    def __init__(self, message: str, *, excerpt: str = "", raw: Raw = _NOTHING, **known: Any) -> None:
        super().__init__(message, **_answered(known))
        self.excerpt = excerpt
        self.raw = raw


class RemoteError(CallFailed):
    """The peer answered with a JSON-RPC error.

    Attributes:
        code: The error code.
        message: The peer's own words, whole: untrusted text. `str(error)` has no more than their beginning, after what
            was asked (`what`, else the method).
        data: The error's data, or None.
        status: The HTTP status that it came with where that was not success, else None.
        headers: The headers of that answer, lower-cased names.
    """

    kind = "refused"

    def __init__(
        self,
        code: int,
        message: str,
        data: Any = None,
        *,
        what: str | None = None,
        advice: str = "",
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        **known: Any,
    ) -> None:
        asked = what or known.get("method")
        words = told(message)
        said = words if asked is None else f"{asked}: {words}"
        came = "" if status is None else f", HTTP {status}"
        super().__init__(f"{said} (code {code}{came}){advice}", **_answered(known))
        self.code = code
        self.message = message
        self.data = data
        self.status = status
        self.headers = dict(headers or {})


class HttpError(CallFailed):
    """The peer answered with an HTTP status that is not success and not a JSON-RPC answer.

    Attributes:
        status: The HTTP status.
        body: The beginning of the body: untrusted text.
        headers: The answer's headers, lower-cased names.
    """

    kind = "http"

    def __init__(
        self, message: str, *, status: int, body: str = "", headers: Mapping[str, str] | None = None, **known: Any
    ) -> None:
        super().__init__(message, **_answered(known))
        self.status = status
        self.body = body
        self.headers = dict(headers or {})


class AuthorizationRequired(HttpError):
    """The server refuses the call without a (better) token.

    Attributes:
        challenge: The parsed `WWW-Authenticate` challenge, or None when the server sent none.
    """

    kind = "unauthorized"

    def __init__(self, message: str, *, challenge: Any = None, **known: Any) -> None:
        super().__init__(message, **known)
        self.challenge = challenge


class RevisionUnsupported(CallFailed):
    """The two sides have no protocol revision in common.

    Attributes:
        supported: The revisions that the peer named.
    """

    kind = "revision"

    def __init__(self, message: str, *, supported: Sequence[str] = (), **known: Any) -> None:
        super().__init__(message, **_answered(known))
        self.supported = tuple(supported)
