"""Where metadata may lie, in which order it is looked for, and when it may be used.

Knows RFC 9728 (a protected resource), RFC 8414 (an authorization server), the OpenID variants, and what servers of the
first revision with authorization had instead. Pure: URLs and bytes in, metadata or a reason out.

Identifiers are compared and kept byte for byte. "The issuer value in the document MUST be identical to the issuer
identifier used to construct the well-known URL"; no case is folded, no port or slash added or taken away.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from mcprelay.auth.address import Place, parse
from mcprelay.auth.failure import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

RESOURCE = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"

_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint")


class ResourceMetadata(Struct, frozen=True):
    """What a protected resource says of itself (RFC 9728), as far as a client uses it."""

    resource: str
    authorization_servers: tuple[str, ...]
    scopes_supported: tuple[str, ...] | None = None
    dpop_signing_alg_values_supported: tuple[str, ...] | None = None
    dpop_bound_access_tokens_required: bool | None = None

    @property
    def speaks_dpop(self) -> bool:
        """Whether the resource says that it takes tokens with a proof of possession."""
        return bool(self.dpop_bound_access_tokens_required or self.dpop_signing_alg_values_supported)


class ServerMetadata(Struct, frozen=True):
    """What an authorization server says of itself (RFC 8414), as far as a client uses it."""

    issuer: str
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    scopes_supported: tuple[str, ...] | None = None
    grant_types_supported: tuple[str, ...] | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    token_endpoint_auth_signing_alg_values_supported: tuple[str, ...] | None = None
    code_challenge_methods_supported: tuple[str, ...] | None = None
    authorization_response_iss_parameter_supported: bool | None = None
    client_id_metadata_document_supported: bool | None = None
    dpop_signing_alg_values_supported: tuple[str, ...] | None = None


Document = TypeVar("Document", ResourceMetadata, ServerMetadata)


class Finding(enum.Enum):
    """What the status of a metadata request means."""

    HERE = "here"
    ELSEWHERE = "elsewhere"
    BROKEN = "broken"


def finding(status: int) -> Finding:
    """What to do after a metadata request was answered with `status`.

    A place that is missing, or closed to us, means the next place. A server that is failing, or asks for patience, may
    have the document and just not show it: taking another instead would change where the user is sent.
    """
    if status == 200:
        return Finding.HERE
    if status >= 500 or status in (408, 425, 429):
        return Finding.BROKEN
    return Finding.ELSEWHERE


# ------------------------------------------------------------------------------------------------------------- places


def resource_places(server: Place, *, named: str | None = None) -> tuple[str, ...]:
    """Where the metadata of an MCP server may lie, in order.

    Args:
        server: The MCP server.
        named: The `resource_metadata` of its challenge, which comes first.
    """
    found = [named] if named else []
    if server.path not in ("", "/") or server.query:
        found.append(server.root + RESOURCE + server.path + (f"?{server.query}" if server.query else ""))
    found.append(server.root + RESOURCE)
    return tuple(dict.fromkeys(found))


def server_places(issuer: Place) -> tuple[str, ...]:
    """Where the metadata of an authorization server may lie, in order.

    With a path the root is not among them: another tenant's metadata may lie there.
    """
    path = issuer.path.rstrip("/")
    if not path:
        return (issuer.root + SERVER, issuer.root + OPENID)
    return (issuer.root + SERVER + path, issuer.root + OPENID + path, issuer.root + path + OPENID)


def fallback_place(server: Place) -> str:
    """Where a server without resource metadata has that of its own authorization server: the base URL's root."""
    return server.root + SERVER


def fallback_metadata(server: Place) -> ServerMetadata:
    """The endpoints of a server that publishes nothing: fixed paths at its root. PKCE is always asked for there."""
    return ServerMetadata(
        issuer=server.root,
        authorization_endpoint=server.root + "/authorize",
        token_endpoint=server.root + "/token",
        registration_endpoint=server.root + "/register",
        code_challenge_methods_supported=("S256",),
        token_endpoint_auth_methods_supported=("none", "client_secret_post", "client_secret_basic"),
    )


# ---------------------------------------------------------------------------------------------------------- documents


def is_document(body: bytes) -> bool:
    """Whether a body is a JSON object, and not the page that some servers answer for every path."""
    try:
        msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        return True
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def read_resource(body: bytes, *, server: Place, expected: str | None = None) -> ResourceMetadata:
    """The resource metadata in a body, checked against the server that it was got for.

    Args:
        body: The document.
        server: The MCP server, as the user named it.
        expected: The resource identifier that the user says it has, which then is the only one.

    Raises:
        ValueError: It may not be used; the message says why.
    """
    found = _read(body, ResourceMetadata)
    if not found.authorization_servers:
        raise ValueError("names no authorization server (authorization_servers is empty)")
    if expected is not None:
        if found.resource != expected:
            raise ValueError(f"is for {clean(found.resource)!r}, and resource={expected!r} was set")
    elif not covers(found.resource, server):
        raise ValueError(
            f"is for {clean(found.resource)!r}, which is not {server.url!r}: connect to the address that the server "
            "names, or set resource= to it when you know it to be right"
        )
    return found


def covers(resource: str, server: Place) -> bool:
    """Whether a resource identifier is that of an MCP server: its URL, or one that the URL lies below.

    Byte for byte. An identifier for more than the one endpoint is what the metadata at the root of a host describes,
    and that of a sibling (`/tenant-b` for `/tenant-a`) is refused. The bare origin may be written with its slash,
    because no request can tell the two apart.
    """
    return resource in _covering(server)


def _covering(server: Place) -> Iterator[str]:
    yield server.url
    path = server.path
    while path:
        yield server.root + path
        path = path[:-1] if path.endswith("/") else path[: path.rindex("/") + 1]
    yield server.root
    yield server.root + "/"


def read_server(body: bytes, *, issuer: str) -> ServerMetadata:
    """The authorization server's metadata in a body.

    Args:
        body: The document.
        issuer: The issuer identifier that the document's URL was made from.

    Raises:
        ValueError: It may not be used; the message says why.
    """
    found = _read(body, ServerMetadata)
    if found.issuer != issuer:
        raise ValueError(f"is that of the issuer {clean(found.issuer)!r}, not of {issuer!r}")
    absent = {name: None for name in _ENDPOINTS if getattr(found, name) == ""}
    found = msgspec.structs.replace(found, **absent)
    for name in ("authorization_endpoint", "token_endpoint"):  # the others are looked at when they are needed
        if (url := getattr(found, name)) is not None:
            try:
                parse(url)
            except ValueError as error:
                raise ValueError(f"has the {name} {clean(url)!r}, which {error}") from error
    return found


def read_fallback(body: bytes, *, server: Place) -> ServerMetadata:
    """The metadata at the base URL of a server without resource metadata. Its issuer is that base URL.

    Raises:
        ValueError: It may not be used; the message says why.
    """
    for issuer in (server.root + "/", server.root):
        try:
            return read_server(body, issuer=issuer)
        except ValueError:
            if issuer == server.root:
                raise
    raise AssertionError  # pragma: no cover - the second round returned or raised


def _read(body: bytes, kind: type[Document]) -> Document:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"is not the metadata it should be ({clean(error)})") from error
