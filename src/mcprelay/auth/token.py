"""The token endpoint: what is sent there for each grant, how a client shows who it is, and what comes back.

Pure: forms and headers out, a token or a reason in. Knows the grants of OAuth 2.1, the JWT bearer grant (RFC 7523) and
token exchange for an identity assertion (RFC 8693).
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import msgspec

from mcprelay.auth.failure import clean
from mcprelay.auth.flow import Question, scopes
from mcprelay.auth.registration import Registration
from mcprelay.auth.veil import Hidden, Veiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcprelay.auth.jws import SigningKey

Form = dict[str, str]
"""Parameters of a request body, in order."""

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105 - the name of a grant
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
_JWT_CLIENT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

ASSERTION_LIFETIME = 60
"""Seconds for which a client's own assertion is good. It is made for one request."""


class Token(Veiled, frozen=True, kw_only=True):
    """What a token endpoint gave.

    Attributes:
        access_token: The token.
        scheme: How it is shown: `Bearer` or `DPoP`.
        expires_at: When it expires, in seconds since the epoch; None when the server does not say.
        refresh_token: The refresh token, or None.
        scope: What was granted: what the server says, or what was asked when it says nothing.
    """

    access_token: str
    scheme: Literal["Bearer", "DPoP"]
    expires_at: float | None = None
    refresh_token: str | None = None
    scope: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------------------------------- grants


def code_form(question: Question, code: str, *, resource: str | None) -> Form:
    """Trade a code for a token."""
    form = {
        "grant_type": "authorization_code",
        "code": Hidden(code),
        "redirect_uri": question.redirect_uri,
        "code_verifier": Hidden(question.verifier),
    }
    return form | _resource(resource)


def refresh_form(refresh_token: str, *, resource: str | None) -> Form:
    """Renew a token. The scope is left out, which asks for what was granted."""
    return {"grant_type": "refresh_token", "refresh_token": Hidden(refresh_token)} | _resource(resource)


def client_credentials_form(*, scope: Sequence[str], resource: str | None) -> Form:
    """Ask for a token of one's own."""
    return {"grant_type": "client_credentials"} | _resource(resource) | _scope(scope)


def jwt_bearer_form(assertion: str, *, scope: Sequence[str], resource: str | None) -> Form:
    """Trade an assertion of someone whom the authorization server trusts for a token."""
    return {"grant_type": JWT_BEARER, "assertion": Hidden(assertion)} | _resource(resource) | _scope(scope)


def identity_form(
    subject_token: str, subject_token_type: str, *, audience: str, resource: str, scope: Sequence[str]
) -> Form:
    """Ask an identity provider for a grant (ID-JAG) at another authorization server.

    Args:
        subject_token: The identity assertion.
        subject_token_type: Its type, a `urn:ietf:params:oauth:token-type:`.
        audience: The issuer of the MCP server's authorization server.
        resource: The MCP server's resource identifier.
        scope: What the token is to be good for.
    """
    return {
        "grant_type": TOKEN_EXCHANGE,
        "requested_token_type": ID_JAG,
        "audience": audience,
        "resource": resource,
        "subject_token": Hidden(subject_token),
        "subject_token_type": subject_token_type,
    } | _scope(scope)


def revocation_form(token: str, kind: Literal["access_token", "refresh_token"]) -> Form:
    """Make a token worthless (RFC 7009)."""
    return {"token": Hidden(token), "token_type_hint": kind}


def _resource(resource: str | None) -> Form:
    return {} if resource is None else {"resource": resource}


def _scope(scope: Sequence[str]) -> Form:
    return {"scope": " ".join(scope)} if scope else {}


# --------------------------------------------------------------------------------------------- who the client is


def authenticate(form: Form, client: Registration, *, assertion: str | None = None) -> tuple[Form, dict[str, str]]:
    """The form and the headers with which a client shows who it is.

    Args:
        form: What it asks.
        client: Who it is to this issuer.
        assertion: The signed assertion, for `private_key_jwt`.
    """
    if client.method == "private_key_jwt":
        # RFC 7523: the client is named by the assertion's subject.
        return form | {"client_assertion_type": _JWT_CLIENT, "client_assertion": Hidden(assertion or "")}, {}
    if client.method == "client_secret_basic":
        # RFC 6749, section 2.3.1: both halves are form-encoded before they are put together. A space becomes %20, which
        # every decoder understands, where a plus sign is left alone by some.
        pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret or '', safe='')}"
        # The identifier stands in the form as well: authorization servers made with the official SDK look for it there.
        basic = base64.b64encode(pair.encode("ascii")).decode("ascii")
        return form | {"client_id": client.client_id}, {"Authorization": Hidden(f"Basic {basic}")}
    if client.method == "client_secret_post":
        return form | {"client_id": client.client_id, "client_secret": Hidden(client.client_secret or "")}, {}
    return form | {"client_id": client.client_id}, {}


def client_assertion(
    key: SigningKey, *, client_id: str, audience: str, supported: Sequence[str] | None, now: float, unique: str
) -> str:
    """A client's statement of who it is (RFC 7523, section 3).

    Args:
        key: The client's private key.
        client_id: Issuer and subject of the assertion.
        audience: The issuer of the authorization server.
        supported: The algorithms that it verifies, or None when it does not say.
        now: Seconds since the epoch.
        unique: The `jti`, never used before.

    Raises:
        ConfigurationError: The key signs with none of the supported algorithms.
    """
    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": audience,
        "jti": unique,
        "iat": int(now),
        "exp": int(now) + ASSERTION_LIFETIME,
    }
    return key.sign({"typ": "JWT"}, claims, algorithm=key.choose(supported))


# ---------------------------------------------------------------------------------------------------------- responses


def read_token(body: bytes, *, asked: Sequence[str], now: float) -> Token:
    """The token in a successful answer.

    Args:
        body: The answer.
        asked: The scope asked for.
        now: When the answer came, in seconds since the epoch.

    Raises:
        ValueError: It holds no token that this client can show; the message names the member.
    """
    found = _object(body)
    if found is None:
        raise ValueError("no JSON object")
    access = _visible(found, "access_token")
    if access is None:
        raise ValueError("a JSON object without an access_token")
    kind = found.get("token_type")
    scheme = {"bearer": "Bearer", "dpop": "DPoP"}.get(kind.lower() if isinstance(kind, str) else "")
    if scheme is None:
        raise ValueError(f"a token of the type {clean(kind)!r}, and only Bearer and DPoP can be shown")
    granted = found.get("scope")
    return Token(
        access_token=access,
        scheme="DPoP" if scheme == "DPoP" else "Bearer",
        expires_at=_expiry(found.get("expires_in"), now),
        refresh_token=_visible(found, "refresh_token"),
        scope=scopes(granted) if isinstance(granted, str) and granted.strip() else tuple(asked),
    )


def read_grant(body: bytes) -> str:
    """The identity assertion grant in the answer to a token exchange.

    Raises:
        ValueError: It is something else.
    """
    found = _object(body)
    if found is None:
        raise ValueError("no JSON object")
    if (kind := found.get("issued_token_type")) != ID_JAG:
        raise ValueError(f"a token of the type {clean(kind)!r} instead of {ID_JAG}")
    grant = _visible(found, "access_token")
    if grant is None:
        raise ValueError("a JSON object without an access_token")
    return grant


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _visible(found: dict[str, Any], name: str) -> str | None:
    """A member that is a text of printable ASCII, None when it is absent or empty.

    A token goes into a header, where a line break would begin another field.
    """
    value = found.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not all("!" <= letter <= "~" for letter in value):
        raise ValueError(f"under {name} a text that no header can carry")
    return value


def _expiry(seconds: Any, now: float) -> float | None:
    """When something expires. Numbers come as text from some servers; nonsense counts as not said."""
    try:
        value = float(seconds)
    except (TypeError, ValueError, OverflowError):
        return None
    return now + value if 0 <= value < 1e10 else None
