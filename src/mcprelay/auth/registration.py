"""Who this client is to an authorization server: registered by hand, by a document of its own, or on the spot.

The order is the specification's: what was registered by hand, then the client id metadata document where the server
supports it, then dynamic registration. Credentials belong to the issuer that gave them; only a document's URL means
the same to every issuer. Pure: data in, data or a reason out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from mcprelay.auth.address import is_loopback, parse
from mcprelay.auth.discovery import ServerMetadata
from mcprelay.auth.failure import clean
from mcprelay.auth.veil import Veiled
from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Method = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
"""How a client shows at the token endpoint who it is."""

_WITH_SECRET: tuple[Literal["client_secret_basic"], Literal["client_secret_post"]] = (
    "client_secret_basic",
    "client_secret_post",
)
_OFFERED_WHEN_SILENT = ("client_secret_basic",)  # RFC 8414: the default when the field is omitted


class Registered(Veiled, frozen=True, kw_only=True):
    """A client that was registered with an authorization server by hand.

    Args:
        client_id: The identifier that the authorization server gave.
        client_secret: Its secret, for a confidential client.
        private_key: Its private key as PEM, for `private_key_jwt`, which goes before the secret.
        key_id: The `kid` under which the server knows the key.
        algorithm: The JWS algorithm to sign with; the key's usual one when None.
        issuer: The issuer of that authorization server, byte for byte. Name it: without it the MCP server has the
            first word in whom a secret is shown to. Only that first one is remembered, and no other one gets it.
        method: How to authenticate, when the server's metadata offers more than one way.
    """

    client_id: str
    client_secret: str | None = None
    private_key: str | None = None
    key_id: str | None = None
    algorithm: str | None = None
    issuer: str | None = None
    method: Method | None = None


class Registration(Veiled, frozen=True, kw_only=True):
    """What a client is to one issuer, ready for use and for the store.

    Attributes:
        issuer: To whom.
        client_id: The identifier.
        client_secret: The secret, or None.
        method: How to authenticate at the token endpoint.
        redirect_uris: The redirect URIs registered; empty where the client does not know them.
        expires_at: When the secret expires, in seconds since the epoch; None for never.
    """

    issuer: str
    client_id: str
    client_secret: str | None = None
    method: Method = "none"
    redirect_uris: tuple[str, ...] = ()
    expires_at: float | None = None

    def serves(self, redirect_uri: str | None, *, now: float) -> bool:
        """Whether it can be used once more, with this redirect URI."""
        alive = self.expires_at is None or self.expires_at > now
        return alive and (redirect_uri is None or not self.redirect_uris or redirect_uri in self.redirect_uris)


# ------------------------------------------------------------------------------------------- registered by hand


def bind(client: Registered, metadata: ServerMetadata, *, pinned: str | None = None) -> Registration:
    """Use credentials that were registered by hand with this authorization server.

    Args:
        client: The credentials.
        metadata: The authorization server.
        pinned: The issuer that they were used with before, when `client` names none.

    Raises:
        ConfigurationError: They belong to another issuer, or the server takes no way of showing them.
    """
    owner = client.issuer or pinned
    if owner is not None and owner != metadata.issuer:
        raise ConfigurationError(
            f"the client {client.client_id!r} is registered with {owner!r}, and the MCP server now sends to "
            f"{metadata.issuer!r}; credentials of one are never shown to the other. Register one there, and give that"
        )
    return Registration(
        issuer=metadata.issuer,
        client_id=client.client_id,
        client_secret=client.client_secret,
        method=client.method or _method_for(client, metadata),
    )


def _method_for(client: Registered, metadata: ServerMetadata) -> Method:
    offered = metadata.token_endpoint_auth_methods_supported
    if client.private_key is not None:
        usable: tuple[Method, ...] = ("private_key_jwt",)
    else:
        usable = _WITH_SECRET if client.client_secret is not None else ("none",)
    if offered is None:
        return usable[0]
    for method in usable:
        if method in offered:
            return method
    if usable == ("none",):
        return "none"  # a public client cannot do otherwise, and many servers forget to list it
    raise ConfigurationError(
        f"{metadata.issuer} takes {', '.join(map(clean, offered)) or 'nothing'} from a client, and the credentials of "
        f"{client.client_id!r} are for {' or '.join(usable)}: have it registered for one that is taken"
    )


# ------------------------------------------------------------------------------------- client id metadata documents


def check_document_url(url: str) -> None:
    """Refuse a URL that cannot be a client identifier: "MUST use the https scheme and contain a path component".

    Raises:
        ConfigurationError: It cannot.
    """
    try:
        place = parse(url)
        if place.scheme != "https":
            raise ValueError("is not https")
        if place.path in ("", "/"):
            raise ValueError("has no path")
        if {".", ".."} & set(place.path.split("/")):
            raise ValueError("has a dot segment")
    except ValueError as error:
        raise ConfigurationError(f"client_document={url!r} {error}; it must be an https URL with a path") from error


def document(url: str, *, name: str, redirect_uris: Sequence[str], **more: Any) -> dict[str, Any]:
    """The client id metadata document to publish at `url`.

    Args:
        url: Where it will lie; it becomes the client's identifier.
        name: What a person reads when asked for consent.
        redirect_uris: Every redirect URI that the client uses; for a loopback callback give the interaction a fixed
            port, unless the authorization servers allow any port.
        more: Further members, `client_uri` and `logo_uri` for instance.
    """
    check_document_url(url)
    return {
        "client_id": url,
        "client_name": name,
        "redirect_uris": list(redirect_uris),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": application_type(redirect_uris),
        **more,
    }


def from_document(url: str, metadata: ServerMetadata) -> Registration | None:
    """The registration that a document is, or None where the authorization server does not read documents."""
    if not metadata.client_id_metadata_document_supported:
        return None
    return Registration(issuer=metadata.issuer, client_id=url)


# ---------------------------------------------------------------------------------------------- dynamic registration


def application_type(redirect_uris: Iterable[str]) -> Literal["native", "web"]:
    """`web` when every redirect URI is an https one at another machine; `native` otherwise."""
    for uri in redirect_uris:
        try:
            place = parse(uri)
        except ValueError:
            return "native"  # a scheme of an application's own
        if place.scheme != "https" or is_loopback(place.host):
            return "native"
    return "web"


def request(
    metadata: ServerMetadata,
    *,
    name: str,
    redirect_uris: Sequence[str],
    grant_types: Sequence[str],
    dpop: Literal["bound", "unbound"] = "unbound",
    more: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The body of a dynamic registration (RFC 7591).

    "MCP clients MUST specify an appropriate `application_type`".

    Args:
        metadata: The authorization server.
        name: What a person reads when asked for consent.
        redirect_uris: Where answers are to be sent.
        grant_types: What the client will ask for.
        dpop: `bound` asks that every token be bound to a key.
        more: Members that override these.
    """
    body: dict[str, Any] = {
        "client_name": name,
        "grant_types": list(grant_types),
        "token_endpoint_auth_method": _method_to_ask(metadata),
        "application_type": application_type(redirect_uris),
    }
    if redirect_uris:
        body |= {"redirect_uris": list(redirect_uris), "response_types": ["code"]}
    if dpop == "bound":
        body["dpop_bound_access_tokens"] = True
    return body | (more or {})


def _method_to_ask(metadata: ServerMetadata) -> Method:
    """A client on a user's machine keeps no secret, so `none` goes first; a secret is taken where there must be one."""
    offered = metadata.token_endpoint_auth_methods_supported or _OFFERED_WHEN_SILENT
    order: tuple[Method, ...] = ("none", *_WITH_SECRET)
    usable: list[Method] = [method for method in order if method in offered]
    return usable[0] if usable else "none"


class _Response(Struct, frozen=True):
    client_id: str
    client_secret: str | None = None
    client_secret_expires_at: float | str | None = None
    token_endpoint_auth_method: str | None = None
    redirect_uris: tuple[str, ...] | None = None


def read(body: bytes, *, asked: dict[str, Any], metadata: ServerMetadata) -> Registration:
    """The registration in the answer of a registration endpoint.

    Raises:
        ValueError: It is none, or gives a client that this one cannot be.
    """
    try:
        found = msgspec.json.decode(body, type=_Response)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"gave no client ({clean(error)})") from None  # a cause may hold the body, and that a secret
    if not found.client_id:
        raise ValueError("gave a client without an identifier")
    if (lost := _lost(asked.get("redirect_uris", ()), found.redirect_uris)) is not None:
        theirs = ", ".join(map(clean, found.redirect_uris or ()))
        raise ValueError(f"gave a client that is sent back to {theirs}, where {lost} was asked for")
    return Registration(
        issuer=metadata.issuer,
        client_id=found.client_id,
        client_secret=found.client_secret,
        method=_method_given(found, asked["token_endpoint_auth_method"]),
        redirect_uris=tuple(asked.get("redirect_uris", ())),
        expires_at=_expiry(found.client_secret_expires_at),
    )


def _expiry(given: float | str | None) -> float | None:
    """When a secret expires. Zero means never; some servers write it as a text, and nonsense counts as not said."""
    try:
        moment = float(given or 0)
    except ValueError:
        return None
    return moment if moment > 0 else None


def _lost(asked: Iterable[str], given: Sequence[str] | None) -> str | None:
    """The first redirect URI that the server has replaced: a person would wait on a page that leads elsewhere.

    Of one at this machine the port does not count, which servers may leave out (RFC 8252, section 7.3).
    """
    kept = {_portless(uri) for uri in given or ()}
    return next((uri for uri in asked if kept and _portless(uri) not in kept), None)


def _portless(uri: str) -> str:
    try:
        place = parse(uri)
    except ValueError:
        return uri
    return f"{place.scheme}://{place.host}{place.path.rstrip('/')}" if is_loopback(place.host) else uri.rstrip("/")


def _method_given(found: _Response, asked: str) -> Method:
    """The server may replace what was asked; silence keeps it. Without a secret there is nothing to show."""
    wanted = found.token_endpoint_auth_method or asked
    if found.client_secret is None and (wanted == asked or wanted in _WITH_SECRET):
        return "none"
    for method in ("none", *_WITH_SECRET):
        if wanted == method:
            return method
    raise ValueError(f"gave a client that authenticates by {clean(wanted)!r}, which was not asked for")
