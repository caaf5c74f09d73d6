"""Why a server gave no answer, or no list, as an error for the application.

Its sentence holds local words only: what the system says, what the settings say, what to do. What the client made of
the failure may hold the server's words; they are notes of the error, made visible and bounded, and raw in `__cause__`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mcprelay.client import certificate
from mcprelay.client.failure import ADVICE_FOR, PLAIN, PROXY_AUTH
from mcprelay.errors import (
    AuthorizationRequired,
    CallFailed,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    HttpError,
    LimitExceeded,
    RemoteError,
    ResponseInvalid,
    RevisionUnsupported,
    told,
)
from mcprelay.relay.dial import shows_credentials
from mcprelay.relay.errors import DefinitionRefused, RelayError, ServerUnreachable, Unauthorized
from mcprelay.relay.failure import CERTIFICATE, chain, scopes_of, system_reason, tell
from mcprelay.relay.settings import Secret

if TYPE_CHECKING:
    from typing import TypeVar

    from mcprelay.relay.settings import ServerSettings

    Kind = TypeVar("Kind", bound=RelayError)

_LONGEST_NOTE = 1000
_UNAUTHORIZED = 401
_UNREACHED = frozenset(["unreachable", "lost", "timeout", "http"])
"""Kinds of failures that say nothing of the list that was asked for."""
_LOOK = "Look at the server's log, and at the notes of this error."
_NOTED = "The notes of this error have what it said."
_ELSEWHERE = "is there an MCP endpoint at this address? If not, correct url"
_ADVICE = {
    **ADVICE_FOR,
    403: "it does not allow this to the credentials that it got: set others, as token or headers",
    404: _ELSEWHERE,
    405: _ELSEWHERE,
    PROXY_AUTH: "the proxy wants credentials: put them into the address of proxy",
}
"""What to do about an HTTP status, by the names of the relay's settings."""
_MOVED = (
    "Redirects are not followed: the notes of this error have where it leads; if that is to be trusted, set url to it."
)
_REMEDIES: tuple[tuple[type[Exception], str], ...] = (
    (ResponseInvalid, f"Is it an MCP server? {_NOTED}"),
    (RevisionUnsupported, "Update the older one of the two: the notes of this error have the revisions of both."),
    (RemoteError, _NOTED),
    (CallFailed, _LOOK),
)


def unreached(error: CallFailed, settings: ServerSettings, *, by_token: bool = False) -> RelayError | None:
    """A call that failed as an error of the relay, where it says why the server gave no answer; None elsewhere.

    Args:
        by_token: Whether a token was sent, be it the configured one or a user's own.
    """
    return _unreached(error, settings, by_token=by_token, acts=True)


def refused(error: CallFailed, settings: ServerSettings, *, by_token: bool = False) -> RelayError:
    """A failure to list as an error of the relay; see `unreached`."""
    found = None
    if error.kind in _UNREACHED or isinstance(error, AuthorizationRequired):
        found = _unreached(error, settings, by_token=by_token, acts=False)
    if found is not None:
        return found
    sentence = f"the tools of {_place(settings)} cannot be listed: {_told(error, settings, acts=False)}"
    withdrawn = (
        "The server's list of tools cannot be had now, so nothing says whether this tool is still what was offered, and"
        " the call was not made."
    )
    return noted(DefinitionRefused(sentence, server=settings.name, withdrawn=withdrawn), error)


def _unreached(error: CallFailed, settings: ServerSettings, *, by_token: bool, acts: bool) -> RelayError | None:
    where = _place(settings)
    if isinstance(error, AuthorizationRequired):
        return noted(_unauthorized(error, settings, where, by_token=by_token), error)
    if tell(error, acts=acts).code != "transport":
        return None
    sentence = f"{where}: {_told(error, settings, acts=acts)}"
    return noted(ServerUnreachable(sentence, server=settings.name, stderr=error.stderr), error)


def noted(made: Kind, cause: CallFailed) -> Kind:
    """An error with what the client said of its cause, and a process with its last breath, as notes."""
    made.add_note(f"the client says, perhaps in words of the server: {told(str(cause), most=_LONGEST_NOTE)}")
    for note in getattr(cause, "__notes__", ()):
        made.add_note(note)
    made.__cause__ = cause
    return made


def _place(settings: ServerSettings) -> str:
    return f"the server {settings.name!r} ({settings.address})"


def _told(error: CallFailed, settings: ServerSettings, *, acts: bool) -> str:
    """What happened, why, and what to do next."""
    return " ".join([tell(error, acts=acts).local, *_more(error, settings)])


def _more(error: CallFailed, settings: ServerSettings) -> Iterator[str]:
    """What is known here beside the sentence, and what to do, in sentences."""
    if isinstance(error, HttpError):
        yield _about(error.status, settings)
        return
    why = system_reason(error)
    if unstarted := _unstarted(error, settings):
        yield f"{unstarted} Its settings say command and cwd."
    else:
        if why:
            yield f"The system says: {why}."
        if remedy := _remedy(error, settings, why):
            yield remedy
    if settings.proxy is not None:
        yield "It is reached through the proxy of its settings."
    if error.stderr.strip():
        yield "What its process wrote last is in `stderr` of this error."


def _about(status: int, settings: ServerSettings) -> str:
    """What to do about an HTTP status."""
    if status == PROXY_AUTH and "@" in _plain(settings.proxy):
        return "The proxy does not accept the credentials in the address of proxy."
    if 300 <= status < 400:
        return _MOVED
    if status in _ADVICE:
        return _sentence(_ADVICE[status])
    return f"{_NOTED} The server's log may say more." if status >= 500 else _NOTED


def _plain(address: Secret | str | None) -> str:
    return address.value if isinstance(address, Secret) else address or ""


def _remedy(error: CallFailed, settings: ServerSettings, why: str) -> str:
    """What to do about a server that was not reached, or did not answer with what was asked for; it may be told."""
    if isinstance(error, LimitExceeded) or (error.exit_code is not None and error.stderr.strip()):
        return ""
    if error.exit_code is not None:
        return "Run its command in a terminal to see why."
    if why in PLAIN:
        return "Does it speak HTTP without TLS? Then its url begins with http://."
    if why.startswith(CERTIFICATE):
        return _unverified(why, settings)
    if isinstance(error, DeadlineExceeded):
        return f"It has timeout={settings.timeout:g} seconds: raise timeout, if it only takes longer."
    if isinstance(error, ConnectFailed):
        key = "url" if settings.url else "command" if settings.command else "target"
        return f"Is it running, and is {key} in its settings right?"
    if isinstance(error, ConnectionLost) and (settings.url or "").startswith("http://"):
        return f"{_LOOK} If it speaks TLS, its url begins with https://."
    return next(remedy for kind, remedy in _REMEDIES if isinstance(error, kind))


def _unverified(why: str, settings: ServerSettings) -> str:
    """What to do about a certificate that is not accepted."""
    for fault in (certificate.EARLY, certificate.LATE, certificate.OTHER):
        if why.startswith(f"{CERTIFICATE} {fault.what}"):
            return _sentence(fault.then)
    own = "An authority of one's own is trusted by ca_file in its settings."
    return own if settings.ca_file is None else "ca_file in its settings has other authorities."


def _unstarted(error: CallFailed, settings: ServerSettings) -> str:
    """Why a process did not start, where it did not; the system names a file then."""
    if not settings.command or error.exit_code is not None:
        return ""
    from mcprelay.stdio.process import unstarted

    for each in chain(error):
        if isinstance(each, OSError) and each.filename is not None:
            return _sentence(unstarted(settings.command, settings.cwd, each))
    return ""


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}{'' if words[-1] == '?' else '.'}"


def _unauthorized(
    error: AuthorizationRequired, settings: ServerSettings, where: str, *, by_token: bool
) -> Unauthorized:
    name, scopes = settings.name, scopes_of(error)
    login = f"`mcprelay login {name}{' --scope …' if scopes else ''}` gets new ones"
    if error.status == _UNAUTHORIZED and not by_token and not shows_credentials(settings):
        return Unauthorized(
            f'{where} asks for credentials, and none are configured: give it a token, or auth = "oauth" and then'
            f" `mcprelay login {name}`",
            server=name,
            scopes=scopes,
        )
    by_login = settings.auth is not None and not by_token
    if error.status == _UNAUTHORIZED:
        then = login if by_login else "give it another token, or other headers"
        return Unauthorized(f"{where} does not accept the credentials: {then}", server=name, scopes=scopes)
    then = login if by_login else "give it a token, or headers, that reach further"
    more = "; the error's scopes names what it takes" if scopes else ""
    return Unauthorized(f"{where} says that the credentials do not reach: {then}{more}", server=name, scopes=scopes)
