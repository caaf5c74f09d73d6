"""Proof of possession (RFC 9449): a token that is worthless to whoever steals it without its key.

Knows what a proof says, when a client asks for a bound token, and which nonce a server wants. Pure: time and chance are
arguments.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from mcprelay.auth.address import Place
from mcprelay.auth.discovery import ResourceMetadata, ServerMetadata
from mcprelay.auth.jws import SigningKey, digest, new_key
from mcprelay.auth.veil import Veiled

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Policy = Literal["auto", "always", "never"]
"""When to ask for bound tokens. `auto`: where both the MCP server and its authorization server say that they take them.
`always`: everywhere, and a bearer token is refused. `never`: nowhere."""

NONCE_HEADER = "dpop-nonce"
USE_NONCE = "use_dpop_nonce"


class BoundKey(Veiled, frozen=True, kw_only=True):
    """The private key that a token is bound to, in a form that can be kept.

    Attributes:
        pem: The private key.
        algorithm: What it signs with.
    """

    pem: str
    algorithm: str

    @classmethod
    def new(cls, supported: Collection[str] | None) -> BoundKey | None:
        """A fresh key for one of the algorithms supported (None: not known which), or None when there is none."""
        made = new_key(supported)
        return None if made is None else cls(pem=made[0], algorithm=made[1])

    def signing(self) -> SigningKey:
        """The key, ready to sign. Reading it takes longer than signing, so keep what this returns."""
        return SigningKey(self.pem, algorithm=self.algorithm)


def wanted(
    policy: Policy, *, schemes: Collection[str], resource: ResourceMetadata | None, server: ServerMetadata
) -> bool:
    """Whether to ask for a bound token.

    Many authorization servers advertise DPoP for all that they serve, while the MCP server behind them knows bearer
    tokens only; so on `auto` the MCP server itself has to speak of it, in its challenge or its metadata.

    Args:
        policy: What the user wants.
        schemes: The schemes in the MCP server's challenges, in lower case.
        resource: The MCP server's metadata, where there is any.
        server: The authorization server.
    """
    if policy != "auto":
        return policy == "always"
    offered = "dpop" in schemes or (resource is not None and resource.speaks_dpop)
    demanded = ("dpop" in schemes and "bearer" not in schemes) or (
        resource is not None and bool(resource.dpop_bound_access_tokens_required)
    )
    return offered and (demanded or bool(server.dpop_signing_alg_values_supported))


def algorithms(*, resource: ResourceMetadata | None, server: ServerMetadata) -> tuple[str, ...] | None:
    """The algorithms that everyone involved verifies, or None when nobody says."""
    lists = [
        values
        for values in (
            server.dpop_signing_alg_values_supported,
            resource.dpop_signing_alg_values_supported if resource else None,
        )
        if values
    ]
    if not lists:
        return None
    return tuple(value for value in lists[0] if all(value in other for other in lists[1:]))


def proof(
    key: SigningKey,
    *,
    method: str,
    place: Place,
    now: float,
    unique: str,
    nonce: str | None = None,
    access_token: str | None = None,
) -> str:
    """A proof for one request.

    Args:
        key: The key that the token is bound to.
        method: The request's method.
        place: Where it goes; the proof names it "without query and fragment parts".
        now: Seconds since the epoch.
        unique: The `jti`, never used before.
        nonce: What the server asked to be told, or None.
        access_token: The token that goes with it; None at a token endpoint.
    """
    claims: dict[str, Any] = {"jti": unique, "htm": method, "htu": place.root + (place.path or "/"), "iat": int(now)}
    if access_token is not None:
        claims["ath"] = digest(access_token)
    if nonce is not None:
        claims["nonce"] = nonce
    return key.sign({"typ": "dpop+jwt", "jwk": key.public()}, claims, algorithm=key.algorithms[0])


def nonce_in(proof: str) -> str | None:
    """The nonce in a proof of our own, None when it has none."""
    try:
        payload = proof.split(".")[1]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=dict[str, Any])
    except (IndexError, binascii.Error, msgspec.DecodeError, ValueError):
        return None
    nonce = claims.get("nonce")
    return nonce if isinstance(nonce, str) else None


def nonce_from(headers: Mapping[str, str]) -> str | None:
    """The nonce that a server hands out, None when it does not or when no proof could carry it."""
    nonce = headers.get(NONCE_HEADER)
    return nonce if nonce and len(nonce) <= 1024 and all("!" <= letter <= "~" for letter in nonce) else None
