"""The authorization code flow: what is asked, how the question is put, and when an answer counts.

Knows scopes, PKCE, `state` and `iss`. Pure: the random parts come in as arguments, and no browser is known here.
"""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct

from mcprelay.auth.address import insecure, parse
from mcprelay.auth.discovery import ServerMetadata
from mcprelay.auth.failure import OAuthError, clean, shown
from mcprelay.auth.jws import digest
from mcprelay.auth.veil import Hidden

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OFFLINE = "offline_access"

_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


class Rejected(ValueError):
    """An authorization response that must not be used.

    Attributes:
        error: The OAuth error that the server sent, when the response is known to be its own.
    """

    def __init__(self, reason: str, *, error: OAuthError | None = None) -> None:
        super().__init__(reason)
        self.error = error


# ------------------------------------------------------------------------------------------------------------- scopes


def scopes(text: str | Iterable[str] | None) -> tuple[str, ...]:
    """The scopes in a text, or in several, once each and in order; what is no scope is left out."""
    words = (text or "").split() if text is None or isinstance(text, str) else " ".join(text).split()
    return tuple(dict.fromkeys(word for word in words if _SCOPE.fullmatch(word)))


def choose_scopes(
    *,
    configured: Sequence[str] = (),
    challenged: Sequence[str] = (),
    advertised: Sequence[str] | None = None,
    before: Sequence[str] = (),
    offered: Sequence[str] | None = None,
    renewal: Literal["wanted", "unwanted"] = "wanted",
) -> tuple[str, ...]:
    """The scopes to ask for; none means that the parameter is left out.

    The scopes of the challenge are what the request at hand needs. Without a challenge, and with nothing configured or
    asked before, all that the resource advertises. What was asked before is kept, so that one step up does not take
    away the one before it.

    Args:
        configured: What the user wants in any case.
        challenged: The `scope` of the server's challenge.
        advertised: `scopes_supported` of the resource.
        before: What was asked for before.
        offered: `scopes_supported` of the authorization server.
        renewal: Whether a refresh token is wanted; `offline_access` is asked for then, where it is offered.
    """
    found = scopes([*configured, *before, *challenged]) or scopes(advertised)
    if OFFLINE not in (offered or ()):
        return tuple(scope for scope in found if scope != OFFLINE)
    if found and renewal == "wanted":
        return scopes([*found, OFFLINE])
    return found


# --------------------------------------------------------------------------------------------------------------- PKCE


def pkce_refusal(metadata: ServerMetadata, *, policy: Literal["advertised", "assumed"]) -> str | None:
    """Why the flow may not begin, or None when it may.

    "If `code_challenge_methods_supported` is absent, the authorization server does not support PKCE and MCP clients
    MUST refuse to proceed." A user who knows better says `pkce="assumed"`.
    """
    methods = metadata.code_challenge_methods_supported
    if "S256" in (methods or ()) or (methods is None and policy == "assumed"):
        return None
    if methods is None:
        return (
            "its metadata does not say that it supports PKCE (code_challenge_methods_supported is missing); when you "
            'know that it does, set pkce="assumed"'
        )
    return f"it supports PKCE by {', '.join(map(clean, methods)) or 'no method'} only, and S256 is required"


# ------------------------------------------------------------------------------------------------------- the question


def redirect_refusal(uri: str) -> str | None:
    """Why nobody may be sent back to a URI, or None when they may.

    "All redirect URIs MUST be either `localhost` or use HTTPS."
    """
    try:
        reason = insecure(parse(uri))
    except ValueError as error:
        reason = str(error)
    return reason


class Question(Struct, frozen=True, kw_only=True):
    """One authorization request, with all that its answer is checked against.

    Attributes:
        url: What the person opens.
        state: Ties the answer to this question.
        verifier: Proves to the token endpoint that the question was ours.
        redirect_uri: Where the answer goes.
        issuer: Whose answer it must be: recorded from validated metadata before anyone was sent anywhere.
        iss: Whether the issuer names itself in each answer.
    """

    url: str
    state: str
    verifier: str
    redirect_uri: str
    issuer: str
    iss: Literal["required", "optional"]

    def __repr__(self) -> str:
        return "Question(…)"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return []


def ask(
    metadata: ServerMetadata,
    *,
    client_id: str,
    redirect_uri: str,
    scope: Sequence[str],
    resource: str | None,
    state: str,
    verifier: str,
    key_thumbprint: str | None = None,
) -> Question:
    """The authorization request.

    Args:
        metadata: The authorization server; it has an authorization endpoint.
        client_id: Who asks.
        redirect_uri: Where the answer goes.
        scope: What is asked for; left out when empty.
        resource: The resource identifier, byte for byte; None for a server of a revision that knew none.
        state: Unguessable, new for each request.
        verifier: Unguessable, 43 to 128 unreserved characters, new for each request.
        key_thumbprint: Binds the code to a DPoP key (RFC 9449, section 10).
    """
    endpoint = metadata.authorization_endpoint or ""
    parameters = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": digest(verifier),
        "code_challenge_method": "S256",
        "resource": resource,
        "scope": " ".join(scope) or None,
        "dpop_jkt": key_thumbprint,
        # OpenID Connect gives a refresh token for this scope only to one who asks for consent.
        "prompt": "consent" if OFFLINE in scope else None,
    }
    query = urlencode({name: value for name, value in parameters.items() if value is not None})
    return Question(
        url=f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{query}",
        state=state,
        verifier=verifier,
        redirect_uri=redirect_uri,
        issuer=metadata.issuer,
        iss="required" if metadata.authorization_response_iss_parameter_supported else "optional",
    )


# --------------------------------------------------------------------------------------------------------- the answer


def answer(question: Question, callback: str) -> str:
    """The authorization code in the URL to which the person was sent back.

    The issuer is checked before anything else is looked at, in error responses too: "on mismatch the client MUST NOT
    act on or display `error`, `error_description`, or `error_uri`".

    Raises:
        Rejected: The response must not be used.
    """
    given = _parameters(callback)
    _check_issuer(question, given.get("iss"))
    if not hmac.compare_digest(given.get("state", "").encode(), question.state.encode()):
        raise Rejected("the answer does not belong to this request (state is missing or another)")
    if "error" in given:
        error = OAuthError(clean(given["error"], limit=60), clean(given.get("error_description", "")))
        raise Rejected(f"the authorization server answered {error}", error=error)
    if not given.get("code"):
        raise Rejected("the answer holds no code")
    return given["code"]


def _parameters(callback: str) -> dict[str, str]:
    """The parameters of a callback URL. One that comes twice could be read in two ways, so it counts as neither."""
    try:
        pairs = parse_qsl(urlsplit(callback).query, keep_blank_values=True, max_num_fields=100)
    except ValueError as error:
        raise Rejected("the answer cannot be read") from error
    given: dict[str, str] = {name: Hidden(value) for name, value in pairs}
    if len(given) != len(pairs):
        raise Rejected("the answer holds a parameter twice")
    return given


def _check_issuer(question: Question, iss: str | None) -> None:
    """RFC 9207 with the specification's table: simple string comparison, whether or not it was advertised."""
    if iss is None:
        if question.iss == "required":
            raise Rejected("the answer does not say which server it comes from (iss is missing, though advertised)")
        return
    if iss != question.issuer:
        raise Rejected(f"the answer comes from the issuer {clean(iss)!r}, and {question.issuer!r} was asked")


def state_of(url: str) -> str | None:
    """The `state` in a URL, or None. For a callback server that waits for its own answer and no other."""
    try:
        return dict(parse_qsl(urlsplit(url).query)).get("state")
    except ValueError:
        return None


def same_redirect(callback: str, redirect_uri: str) -> bool:
    """Whether a callback URL is the redirect URI with parameters added."""
    return shown(callback) == shown(redirect_uri)
