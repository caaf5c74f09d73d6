"""Failures of calls, each one sentence: what happened, what is known of the request, what to do next."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from mcprelay.client.retry import asked_to_wait
from mcprelay.errors import (
    AuthorizationRequired,
    CallFailed,
    CallLimitExceeded,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    Evidence,
    HttpError,
    RemoteError,
    ResponseInvalid,
    RevisionUnsupported,
    told,
)
from mcprelay.revisions import NEWEST, Fault
from mcprelay.wire import jsonrpc
from mcprelay.wire.field import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcprelay.client.call import Call
    from mcprelay.client.setting import Settings
    from mcprelay.core.peer import Garbled
    from mcprelay.wire.jsonrpc import ErrorObject

EXCERPT = 1024
"""How much of a body, in characters, an error keeps."""

GREETINGS = frozenset({"server/discover", "initialize"})
"""What asks who the server is."""

PLAIN = frozenset({"wrong version number", "record layer failure", "http request", "packet length too long"})
"""What TLS says, in words of its different versions, of a server that does not speak it."""

_ADVICE = {
    Evidence.NOT_SENT: "nothing was sent, so it is safe to try again",
    Evidence.MAYBE_SENT: "the request may have been carried out, so repeat it only if that does no harm",
    Evidence.ANSWERED: "the server had seen the request",
}
_BEFORE = f"it had been sent before, and {_ADVICE[Evidence.MAYBE_SENT]}"
_REFUSED = "the server had refused the call before and carried nothing of it out, so it is safe to try again"

PROXY_AUTH = 407
"""With which status a proxy refuses credentials, or that there are none."""
_VOUCH = "wants credentials: put them into proxy="
_DOUBTED = "refused the credentials that it was shown: those in proxy=, or in the environment's address of it"
BEGUN = "the server has begun with the call, and gets no answer, so repeat it only if that does no harm"
"""What is known of a call whose question is not answered."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BUSY = frozenset({429, 503})
_UNREAD = "the server has answered, so it was most likely carried out: repeat it only if that does no harm"
_ANSWERED = "this is the server's answer, so repeat the call only if what it says allows that"
_LOOK = "the server's log may say why"
_INTERNAL = f"{_LOOK}; {_ADVICE[Evidence.MAYBE_SENT]}"
ADVICE_FOR = {
    403: "the server does not allow this to this client: give it other credentials (auth=..., headers=...)",
    404: "is there an MCP endpoint at this address?",
    405: "is there an MCP endpoint at this address?",
    PROXY_AUTH: f"the proxy {_VOUCH}",
    413: "the request is longer than the server takes",
    429: "the server wants fewer requests: try again later",
    502: "what is in front of the server got no answer from it",
    503: "the server is not ready: try again later",
    504: "what is in front of the server gave up waiting for it",
}
"""What to do about an HTTP status, in words of our own."""
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_UNASKED = NEWEST.code(Fault.MISSING_CAPABILITY)
"""Of the era in which a question without a handler is the caller's."""
_ANSWERERS = {"elicitation": "on_elicit=", "sampling": "on_sample=", "roots": "on_roots="}
_ADVICE_FOR_CODE = {
    jsonrpc.PARSE_ERROR: "the server could not read the request, so repeating it as it is changes nothing",
    jsonrpc.INVALID_REQUEST: "the server does not take the request in this form; repeating it as it is changes nothing",
    jsonrpc.METHOD_NOT_FOUND: "the server does not offer this; client.server says what it offers",
    jsonrpc.INVALID_PARAMS: "compare the name and the arguments with what the server lists",
    jsonrpc.INTERNAL_ERROR: _INTERNAL,
}


_RESUMED = (
    f"{_ADVICE_FOR_CODE[jsonrpc.INVALID_PARAMS]}; where those are right, the server no longer knows what it asked, as "
    "after a restart (a Server of this package does with state_keys=)"
)


def _advice(call: Call | None, evidence: Evidence) -> str:
    """What to do now. A greeting does nothing, so there is nothing to say about repeating it."""
    return "" if call is None or call.method in GREETINGS else f"; {_ADVICE[evidence]}"


def known(call: Call | None) -> dict[str, Any]:
    """What every failure of this call carries."""
    if call is None:
        return {}
    return {"method": call.method, "request_id": call.request_id, "correlation_id": call.correlation_id}


def what(call: Call | None) -> str:
    """The call as a sentence names it."""
    if call is None:
        return "connecting"
    return call.method if call.name is None else f"{call.method} {shown(call.name)}"


def expired(call: Call | None, evidence: Evidence, *, crowd: float | None = None) -> DeadlineExceeded:
    """The deadline passed: which, and how long it was. `crowd` is how many connections others had, if it had none."""
    bound = None if call is None or (call.limit is not None and call.deadline == call.limit) else call.bound
    within = "before its deadline" if bound is None else f"within {bound[0]}={bound[1]:.6g} seconds"
    turn = "" if crowd is None else f" (it waited for its turn: connections={crowd:g} were open already)"
    reason = f"{what(call)}: no answer came {within}{turn}{_strays(call)}{_garbage(call)}{_advice(call, evidence)}"
    return DeadlineExceeded(reason, evidence=evidence, **known(call))


def _strays(call: Call | None) -> str:
    """What came meanwhile that nobody had asked for: it may have been meant for this call."""
    if call is None or not call.strays:
        return ""
    came = "1 answer came under an id" if call.strays == 1 else f"{call.strays} answers came under ids"
    return f" ({came} not asked for: an answer repeats the id of its request, in value and in type)"


def _garbage(call: Call | None) -> str:
    """What came meanwhile that nobody can read, which `tell_of_server` tells of greetings."""
    if call is None or not call.garbage or call.method in GREETINGS:
        return ""
    said = shown(text_of(call.garbage))
    return f" (what came meanwhile is not the protocol: {said}. Does the server print to where its answers go?)"


def note_sent(error: CallFailed, *, before: bool) -> None:
    """Say that an earlier round or attempt had sent the call, although the last one sent nothing, or was refused."""
    if before and error.evidence is Evidence.ANSWERED and not error.may_have_run:
        error.may_have_run = True
        error.args = (f"{error}; {_BEFORE}",)
    if before and error.evidence is Evidence.NOT_SENT:
        error.evidence = Evidence.MAYBE_SENT
        reason = str(error).removesuffix(f"; {_ADVICE[Evidence.NOT_SENT]}").removesuffix(".")
        error.args = (f"{reason}; nothing was sent this time, but {_BEFORE}",)


def note_refused(error: CallFailed) -> None:
    """Say that the server had refused the call before it could be sent again, and carried nothing of it out."""
    if error.evidence is Evidence.NOT_SENT:
        # What failed in the end may be a greeting: of the call itself nothing was carried out.
        error.evidence, error.may_have_run = Evidence.ANSWERED, False
        reason = str(error).removesuffix(f"; {_ADVICE[Evidence.NOT_SENT]}")
        error.args = (f"{reason}; {_REFUSED}",)


def note_earlier(error: CallFailed, call: Call) -> None:
    """Say what earlier rounds and attempts of a call came to, where the last one sent nothing."""
    if call.begun:
        note_sent(error, before=True)
    elif call.refused:
        note_refused(error)


def note_attempts(error: CallFailed, call: Call, made: int) -> None:
    """Say how often a call was sent in vain, where that was more than once."""
    if made > 1 and call.retry is not None:
        error.args = (f"{error}; it was tried {made} times (Retry: attempts={call.retry.attempts})",)


def note_cancelled(error: BaseException, call: Call) -> None:
    """Say in a cancellation what is known of the call that it ended, for programs too. Said twice, it is said once."""
    if not hasattr(error, "evidence"):
        setattr(error, "evidence", call.so_far)  # noqa: B010 - it is Python's own
    _note(error, f"{what(call)} was cancelled by its caller: ", call.so_far)


def note_asked(error: Exception, call: Call, option: str) -> None:
    """Say in what a handler raised which call asked it. Said twice, it is said once: one may raise the same again."""
    _note(
        error,
        f"{option} raised it while {what(call)} was asked something: ",
        BEGUN,
    )


def _note(error: BaseException, said: str, more: str) -> None:
    if not any(note.startswith(said) for note in getattr(error, "__notes__", ())):
        error.add_note(f"{said}{more}")


def unmet(error: CallFailed) -> CallFailed:
    """A handshake that was refused, as the failure of a call that waited for it: nothing of the call was sent."""
    mine = type(error).__new__(type(error))
    mine.args = error.args
    vars(mine).update(vars(error), evidence=Evidence.NOT_SENT)
    return mine


def exited(code: int) -> str:
    """How a process ended: by itself, or by a signal, which its exit code is the negative of."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by the signal {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by the signal {-code}"


def last_words(stderr: str, exit_code: int | None) -> str:
    """The last line that a process wrote before it ended, as the end of a sentence's part. The rest is in a note."""
    lines = stderr.rstrip().splitlines()
    return "" if exit_code is None or not lines else f"; its last words: {told(lines[-1].strip())}"


def deaf(reason: str, **process: Any) -> ConnectionLost:
    """What the server says outside of calls cannot be heard any more."""
    return ConnectionLost(f"listening: {told(reason, most=1000)}", evidence=Evidence.MAYBE_SENT, **process)


def lost(call: Call | None, evidence: Evidence, reason: str, **process: Any) -> ConnectionLost:
    """The connection ended before the answer."""
    last = last_words(process.get("stderr", ""), process.get("exit_code"))
    return ConnectionLost(
        f"{what(call)}: {told(reason)}{last}{_advice(call, evidence)}", evidence=evidence, **known(call), **process
    )


def unconnected(call: Call | None, reason: str, *, lasting: bool = False, **process: Any) -> ConnectFailed:
    """There is no connection, so nothing was sent. Where that is `lasting`, trying again brings nothing."""
    said = f"{what(call)}: {told(reason, most=1000)}"
    error = ConnectFailed(said, evidence=Evidence.NOT_SENT, **known(call), **process)
    if lasting:
        error.lasting = True
    return error


def tell_of_server(error: CallFailed, noise: bytes, *, exit_code: int | None, stderr: str) -> None:
    """Add to a greeting that failed what the server said in place of an answer, and what is known of its process."""
    if error.evidence is not Evidence.ANSWERED:
        error.exit_code, error.stderr = exit_code, stderr
        how = "" if exit_code is None else exited(exit_code)
        for more in (f"; the server's process {how}" if how else "", last_words(stderr, exit_code)):
            if more.removeprefix("; ") not in str(error):
                error.args = (f"{error}{more}",)
        if noise:
            said = shown(text_of(noise))
            error.args = (f"{error}; what the server said is not the protocol: {said}. Is it an MCP server?",)


def too_many(call: Call, limit: str, allowed: int) -> CallLimitExceeded:
    """The call was refused before anything was sent."""
    return CallLimitExceeded(
        limit, allowed, what=f"{what(call)}: the number of calls that wait", evidence=Evidence.NOT_SENT, **known(call)
    )


def too_long(
    call: Call | None, limit: str, allowed: float, *, evidence: Evidence = Evidence.ANSWERED, part: str = "the answer"
) -> CallLimitExceeded:
    """The answer, or another message in its place, is over a limit."""
    asks = call is not None and call.method not in GREETINGS and evidence is not Evidence.NOT_SENT
    what_is = f"{what(call)}: {part}"
    error = CallLimitExceeded(limit, allowed, what=what_is, evidence=evidence, may_have_run=asks, **known(call))
    if asks:
        error.args = (f"{error} Before the call is made again: {_ADVICE[Evidence.MAYBE_SENT]}.",)
    return error


def invalid(
    call: Call | None, reason: str, came: bytes | str = b"", *, raw: Raw | None = None, advice: str = _UNREAD
) -> ResponseInvalid:
    """The answer is not one.

    Args:
        call: What it is to.
        reason: What is wrong with it.
        came: What cannot be used of it.
        raw: The whole answer, where that is more.
        advice: What to do now; empty where the reason says so.
    """
    advice = "" if not advice or call is None or call.method in GREETINGS else f"; {advice}"
    whole = Raw(came.encode("utf-8", "replace") if isinstance(came, str) else came) if raw is None else raw
    reason = f"{what(call)}: {told(reason)}{advice}"
    return ResponseInvalid(reason, excerpt=text_of(came), raw=whole, **known(call))


def garbled(call: Call, event: Garbled, data: bytes, *, settings: Settings) -> CallFailed:
    """The answer cannot be read; `settings` say how deep one may nest, and how many values it may hold."""
    if event.deep:
        return too_long(call, "depth", settings.depth)
    if event.crowded:
        return too_long(call, "response_values", settings.response_values)
    return invalid(call, f"the answer is malformed: {event.error.message}", data)


def remote(
    call: Call, error: ErrorObject, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> RemoteError:
    """The server answered with an error, over HTTP with this status and these headers."""
    try:
        data = None if error.data is UNSET else msgspec.json.decode(error.data)
    except msgspec.DecodeError:  # a number that is too large, or no UTF-8: the error counts all the same
        data = None
    advice, unclear = "", False
    if call.unanswered is not None:
        advice = f"; {unanswered(call.unanswered)}"
    elif call.method not in GREETINGS:
        busy = status in _BUSY
        later = call.first is not None and error.code == jsonrpc.INVALID_PARAMS
        meant = _wanting(error.code, data) or (_RESUMED if later else _ADVICE_FOR_CODE.get(error.code, _ANSWERED))
        unclear = not busy and meant is _INTERNAL
        advice = _advised(status, headers or {}) if busy else f"; {meant}"
    http: dict[str, Any] = {} if status < 300 else {"status": status, "headers": headers}
    http["may_have_run"] = unclear
    failed = RemoteError(error.code, error.message, data, what=what(call), advice=advice, **http, **known(call))
    if call.unanswered is not None:
        failed.__cause__ = call.unanswered[1]
    return failed


def unanswered(by: tuple[str, Exception]) -> str:
    """What a handler of this client did in place of an answer."""
    option, error = by
    return f"{option} of this client failed ({raised(error)}), and the server was told that there is no answer"


def raised(error: BaseException, *, most: int = 300) -> str:
    """What a user's function raised, in one bounded line. That is the user's, too, and may fail to say what it is."""
    try:
        return told(repr(error), most=most)
    except Exception:  # noqa: BLE001 - told in place of an answer, this must not keep the call from its end
        return type(error).__name__


def _wanting(code: int, data: Any) -> str | None:
    """What to do where the server may not ask what it has to, told from the data of its error in any revision."""
    required = data.get("requiredCapabilities") if isinstance(data, dict) else None
    if not isinstance(required, dict) or not required:
        return None
    options = [option for capability, option in _ANSWERERS.items() if capability in required]
    if not options:
        return "declare that this client can do it: capabilities="
    asks = f"the server wants to ask this client, and nothing here answers: give the client {' and '.join(options)}"
    if code == _UNASKED:
        return f"{asks}, or be asked yourself by declaring capabilities="
    return f"{asks} (where it has that, the protocol revision that is spoken has no such question)"


def unsupported(call: Call | None, supported: Sequence[str], offered: Sequence[str]) -> RevisionUnsupported:
    """There is no revision in common."""
    theirs = told(", ".join(supported)) or "none that it names"
    return RevisionUnsupported(
        f"{what(call)}: no protocol revision in common; the server speaks {theirs}, this client {', '.join(offered)}",
        supported=supported,
        **known(call),
    )


def http(
    call: Call | None,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    hint: str = "",
    vouched: bool = False,
) -> HttpError:
    """The answer is an HTTP status that is not success; `vouched` is whether a proxy was shown credentials."""
    excerpt = text_of(body)
    challenges = _challenges(headers) if status in (401, 403) else ()
    said = f": {told(excerpt.strip(), most=200)}" if excerpt.strip() else ""
    advice = "" if call is None or status == 401 or challenges else _advised(status, headers)
    if advice and vouched and status == PROXY_AUTH:
        advice = f"; the proxy {proxy_refusal(vouched=vouched)}"
    for same in filter(None, (said, advice)):  # what came of a greeting may say and advise the same
        hint = hint.replace(same, "")
    sent = _advice(call, Evidence.MAYBE_SENT) if status >= 500 and status not in _BUSY else ""
    if sent:
        advice = f"{sent}{advice}" if advice.endswith("?") else f"{advice}{sent}"
    sentence = f"{what(call)}: HTTP {status}{said}{hint}{advice}"
    facts: dict[str, Any] = {"status": status, "body": excerpt, "headers": headers, **known(call)}
    facts["may_have_run"] = bool(sent)
    if status == 401 or challenges:
        sentence += "; give the client a token (auth=...)" if status == 401 else "; the token is not enough for this"
        return AuthorizationRequired(sentence, challenge=challenges[0] if challenges else None, **facts)
    return HttpError(sentence, **facts)


def _advised(status: int, headers: Mapping[str, str]) -> str:
    """What to do about a status."""
    if status in _REDIRECTS:
        where = shown(headers.get("location", "(none given)"))
        return f"; redirects are not followed: use the address {where} if you trust it"
    if status in _BUSY and asked_to_wait(headers) is not None:
        return f"; it says Retry-After: {told(headers['retry-after'], most=40)}, so try again then"
    if status not in ADVICE_FOR and media_type(headers) in _PAGES:
        return f"; it answers with a web page: {ADVICE_FOR[404]}"
    usual = _LOOK if status >= 500 else _ANSWERED if status >= 400 else ADVICE_FOR[404]
    return f"; {ADVICE_FOR.get(status, usual)}"


def proxy_refusal(*, vouched: bool) -> str:
    """What a proxy said with its status 407: of no credentials, or of those that it was shown."""
    return _DOUBTED if vouched else _VOUCH


def media_type(headers: Mapping[str, str]) -> str:
    """What a body is, without parameters; empty where nothing says so."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _challenges(headers: Mapping[str, str]) -> tuple[Any, ...]:
    from mcprelay.wire.challenge import parse

    return parse(headers.get("www-authenticate", ""))


def text_of(data: bytes | str) -> str:
    """The beginning of what a peer sent, as text. Untrusted."""
    return data[:EXCERPT] if isinstance(data, str) else data[:EXCERPT].decode("utf-8", "replace")
