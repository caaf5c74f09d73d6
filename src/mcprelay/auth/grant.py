"""The ways to a token that a user can choose. Frozen data: `negotiation` walks them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from mcprelay.auth.registration import Registration
from mcprelay.auth.veil import Veiled

Assertion: TypeAlias = str | Callable[[str], str | Awaitable[str]]
"""A signed statement, or a function from the audience it is for (an issuer) to one, called whenever one is needed."""


class AuthorizationCode(Veiled, frozen=True, kw_only=True):
    """A person is asked, in a browser. The usual way."""


class ClientCredentials(Veiled, frozen=True, kw_only=True):
    """The program acts for itself, with credentials that were registered by hand (`client=Registered(...)`)."""


class JwtBearer(Veiled, frozen=True, kw_only=True):
    """The program's platform vouches for it: workload identity (RFC 7523).

    A refusal is final: the same assertion is not sent again, and no other grant is tried in its place.

    Args:
        assertion: What the platform signed for the authorization server.
    """

    assertion: Assertion


class IdentityAssertion(Veiled, frozen=True, kw_only=True):
    """A company's identity provider decides, and nobody is asked: enterprise-managed authorization.

    The person's identity assertion is exchanged at the identity provider for a grant at the MCP server's authorization
    server (RFC 8693), and that for a token (RFC 7523).

    Args:
        assertion: The person's identity assertion, usually an OpenID Connect id token. A function gets the identity
            provider's client identifier.
        token_endpoint: The identity provider's token endpoint.
        client_id: This client at the identity provider.
        client_secret: Its secret there, or None.
        assertion_type: What kind of assertion it is.
    """

    assertion: Assertion
    token_endpoint: str
    client_id: str
    client_secret: str | None = None
    assertion_type: Literal["id_token", "saml2"] = "id_token"

    def registration(self) -> Registration:
        """The client as the identity provider knows it."""
        return Registration(
            issuer=self.token_endpoint,
            client_id=self.client_id,
            client_secret=self.client_secret,
            method="none" if self.client_secret is None else "client_secret_post",
        )


Grant: TypeAlias = AuthorizationCode | ClientCredentials | JwtBearer | IdentityAssertion


async def current(assertion: Assertion, audience: str) -> str:
    """The assertion to use now."""
    found = assertion(audience) if callable(assertion) else assertion
    return await found if inspect.isawaitable(found) else found
