"""Why a server's list cannot be had, as an error for the application.

Its sentence holds local words only: what the system says, what the settings say, what to do. What the client made of
the failure may hold the server's words; they are notes of the error, made visible and bounded, and raw in `__cause__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcprelay.client.failure import ADVICE_FOR
from mcprelay.errors import AuthorizationRequired, CallFailed, HttpError, told
from mcprelay.relay.dial import shows_credentials
from mcprelay.relay.errors import DefinitionRefused, RelayError, ServerUnreachable, Unauthorized
from mcprelay.relay.failure import UNTRUSTED, chain, scopes_of, system_reason, tell

if TYPE_CHECKING:
    from typing import TypeVar

    from mcprelay.relay.settings import ServerSettings

    Kind = TypeVar("Kind", bound=RelayError)

_LONGEST_NOTE = 1000
_UNAUTHORIZED = 401


def refused(error: CallFailed, settings: ServerSettings, *, by_token: bool = False) -> RelayError:
    """A failure to list as an error of the relay.

    Args:
        by_token: Whether a token was sent, be it the configured one or a user's own.
    """
    name = settings.name
    where = f"the server {name!r} ({settings.address})"
    if isinstance(error, AuthorizationRequired):
        return noted(_unauthorized(error, settings, where, by_token=by_token), error)
    said = tell(error, acts=False)
    if said.code == "transport" and error.kind in ("unreachable", "lost", "timeout", "http"):
        sentence = f"{where}: {' '.join([said.local, *_more(error, settings)])}"
        return noted(ServerUnreachable(sentence, server=name, stderr=error.stderr), error)
    return noted(DefinitionRefused(f"the tools of {where} cannot be listed: {said.local}", server=name), error)


def noted(made: Kind, cause: Exception | None) -> Kind:
    """An error with what the client said of its cause, and a process with its last breath, as notes."""
    if isinstance(cause, CallFailed):
        made.add_note(f"the client says, perhaps in words of the server: {told(str(cause), most=_LONGEST_NOTE)}")
        for note in getattr(cause, "__notes__", ()):
            made.add_note(note)
    return made


def _more(error: CallFailed, settings: ServerSettings) -> list[str]:
    """What is known here beside the sentence, in sentences."""
    if isinstance(error, HttpError):
        advice = ADVICE_FOR.get(error.status)
        return [] if advice is None else [_sentence(advice)]
    found: list[str] = []
    why = system_reason(error)
    if unstarted := _unstarted(error, settings):
        found.append(unstarted)
    elif why:
        found.append(f"The system says: {why}.")
    if settings.ca_file is None and why.startswith(UNTRUSTED):
        found.append("An authority of one's own is trusted by ca_file in its settings.")
    if settings.proxy is not None:
        found.append("It is reached through the proxy of its settings.")
    if error.stderr.strip():
        found.append("What its process wrote last is in `stderr` of this error.")
    return found


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
        then = login if by_login else "its token or headers are wrong"
        return Unauthorized(f"{where} does not accept the credentials: {then}", server=name, scopes=scopes)
    then = login if by_login else "it takes others"
    more = "; the error's scopes names what it takes" if scopes else ""
    return Unauthorized(f"{where} says that the credentials do not reach: {then}{more}", server=name, scopes=scopes)
