"""Bearer protection of a server: who may send a request, decided before its body is read.

The application supplies a verifier, which says what a token is worth; this module decides whether that is enough:
first the token, then for whom it was issued, then its scopes. Refusals are RFC 6750 challenges that point to the
RFC 9728 document. A token is never kept, shown or logged.

Nothing here does I/O, and nothing here knows ASGI.
"""

from __future__ import annotations

import functools
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from mcprelay.auth.principal import Principal
from mcprelay.errors import ConfigurationError, MCPRelayError

logger = logging.getLogger("mcprelay.auth")

WELL_KNOWN = "/.well-known/oauth-protected-resource"
_CREDENTIALS = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*) *", re.IGNORECASE)
_SCOPE = re.compile(r"[!#-\[\]-~]+")


class TokenRejected(MCPRelayError):  # what a verifier says, not an error of this side
    """A verifier raises this for a token that is not valid: unknown, expired, badly signed."""


class VerifierUnavailable(MCPRelayError):
    """A verifier raises this when it cannot tell at the moment. The client is told 503, and keeps its token."""


class Attestation(Struct, frozen=True, kw_only=True):
    """What a verifier knows of a valid token.

    Attributes:
        subject: Who it stands for.
        audiences: For which resources it was issued, byte for byte as the token says.
        scopes: What it allows.
        client_id: Which client application it was issued to.
        claims: Everything else, for handlers (`ctx.principal.claims`).
    """

    subject: str
    audiences: tuple[str, ...] = ()
    scopes: frozenset[str] = frozenset()
    client_id: str | None = None
    claims: dict[str, Any] = {}


Reason: TypeAlias = Literal[
    "missing_token", "invalid_token", "wrong_resource", "insufficient_scope", "verifier_unavailable"
]


Run: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
Verifier: TypeAlias = Callable[[str], Attestation | Awaitable[Attestation]]


class Denied(Struct, frozen=True):
    """A request that is not admitted.

    Attributes:
        reason: What is counted.
        status: The HTTP status.
        message: A sentence for the client.
        challenge: The value of `WWW-Authenticate`, if there is one.
    """

    reason: Reason
    status: int
    message: str
    challenge: str | None = None


def _is_async(verify: Any) -> bool:
    call = getattr(type(verify), "__call__", None)  # noqa: B004 - asked is of what kind it is, not whether there is one
    return inspect.iscoroutinefunction(verify) or inspect.iscoroutinefunction(call)


class Bearer:
    """Admits requests that carry a token for this resource.

    Args:
        verify: `verify(token)`, sync or async, gives an `Attestation`, or raises `TokenRejected` or
            `VerifierUnavailable`. A server calls a plain one in a worker thread, so it may block. See
            `mcprelay.auth.verifier` for some that are made. One that holds connections may have an async `aclose()`,
            which is called when the server stops.
        resource: The server's own address, exactly as tokens name it (RFC 8707): absolute, without a fragment.
        scopes: What every request needs.
        authorization_servers: The issuers that give tokens for it, as the metadata says. Clients that get their tokens
            by OAuth need at least one (authorization, "Authorization Server Discovery"); none is for tokens that are
            handed out by hand.
        documentation: Where people read about it.
        shared_audiences: Whether a token may be for other resources besides this one. It could be used there by
            whoever runs this server, and here by whoever runs those.

    Raises:
        ConfigurationError: A setting will not do.
    """

    def __init__(
        self,
        verify: Verifier,
        *,
        resource: str,
        scopes: Sequence[str] = (),
        authorization_servers: Sequence[str] = (),
        documentation: str | None = None,
        shared_audiences: bool = False,
    ) -> None:
        parts = urlsplit(resource)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment:
            msg = f"resource: {resource!r} is no absolute http(s) URL without a fragment"
            raise ConfigurationError(msg)
        if isinstance(scopes, str) or not all(_SCOPE.fullmatch(scope) for scope in scopes):
            msg = f"scopes: a list of scope names, each without spaces and quotes, and not {scopes!r}"
            raise ConfigurationError(msg)
        if "offline_access" in scopes:
            msg = "scopes: offline_access is between clients and their authorization server; no request here needs it"
            raise ConfigurationError(msg)
        if isinstance(authorization_servers, str):
            msg = f"authorization_servers: a list of issuers, and not {authorization_servers!r}"
            raise ConfigurationError(msg)
        self._verify = verify
        self._may_block = getattr(verify, "blocks", True) and not _is_async(verify)
        self._resource = resource
        self._scopes = tuple(scopes)
        self._shared = shared_audiences
        path = parts.path if parts.path != "/" else ""
        self.metadata_path = WELL_KNOWN + path
        self.metadata_url = f"{parts.scheme}://{parts.netloc}{self.metadata_path}"
        document: dict[str, Any] = {
            "resource": resource,
            "bearer_methods_supported": ["header"],
        }
        if authorization_servers:
            document["authorization_servers"] = list(authorization_servers)
        if self._scopes:
            document["scopes_supported"] = list(self._scopes)
        if documentation is not None:
            document["resource_documentation"] = documentation
        self.metadata = msgspec.json.encode(document)
        """The RFC 9728 document."""

    async def aclose(self) -> None:
        """The server stops: close what the verifier holds, if it says how (an `aclose` of its own)."""
        close = getattr(self._verify, "aclose", None)
        if close is not None:
            await close()

    async def admit(self, authorization: str | None, *, run: Run | None = None) -> Principal | Denied:
        """Whether the bearer of this `Authorization` header may go on, and who it is. Raises nothing.

        A token that is refused leaves its reason in the log, without the token. A request without one leaves nothing:
        so a client asks where to get one.

        Args:
            authorization: The header's value.
            run: Runs a plain `verify`, which may block, where it does not stop others; on the loop unless given.
        """
        found = _CREDENTIALS.fullmatch(authorization) if authorization is not None else None
        if found is None:
            return Denied(
                "missing_token", 401, "This server needs a bearer token in the Authorization header.", self._challenge()
            )
        judged = await self._judged(found[1], run)
        if isinstance(judged, Denied) and judged.reason != "verifier_unavailable":
            said = _quotable(judged.message.replace(found[1], "..."))  # a verifier may quote the token
            logger.warning("a token was refused (%s): %s", judged.reason, said)
        return judged

    async def _judged(self, token: str, run: Run | None) -> Principal | Denied:
        attested = await self._attested(token, run)
        if isinstance(attested, Denied):
            return attested
        if self._resource not in attested.audiences or (len(attested.audiences) > 1 and not self._shared):
            return self._invalid("the token was issued for another resource", "wrong_resource")
        missing = [scope for scope in self._scopes if scope not in attested.scopes]
        if missing:
            return self.insufficient(missing)
        return Principal(attested.subject, attested.scopes, attested.client_id, attested.claims)

    async def _attested(self, token: str, run: Run | None) -> Attestation | Denied:
        try:
            if run is None or not self._may_block:
                attested = self._verify(token)
            else:
                attested = await run(functools.partial(self._verify, token))
            return await attested if inspect.isawaitable(attested) else attested
        except TokenRejected as error:
            return self._invalid(str(error) or "the token is not valid")
        except Exception as error:
            if not isinstance(error, VerifierUnavailable):
                logger.exception("the token verifier failed")
            return Denied("verifier_unavailable", 503, "The token cannot be verified at the moment; try again later.")

    def insufficient(self, missing: Sequence[str]) -> Denied:
        """The refusal of a token that lacks scopes. It names all that are needed, so that the client asks once."""
        needed = " ".join(dict.fromkeys((*self._scopes, *missing)))
        message = f"The token lacks the scope {' '.join(missing)}."
        return Denied("insufficient_scope", 403, message, self._challenge(error="insufficient_scope", scope=needed))

    def _invalid(self, why: str, reason: Reason = "invalid_token") -> Denied:
        return Denied(
            reason, 401, f"Invalid token: {why}.", self._challenge(error="invalid_token", error_description=why)
        )

    def _challenge(self, **members: str) -> str:
        members["resource_metadata"] = self.metadata_url
        if "scope" not in members and "error" not in members and self._scopes:
            members["scope"] = " ".join(self._scopes)
        return "Bearer " + ", ".join(f'{name}="{_quotable(value)}"' for name, value in members.items())


def _quotable(value: str) -> str:
    """A text as the inside of a quoted string (RFC 6750: no quotes, no backslash, printable ASCII)."""
    return "".join(char if " " <= char <= "~" and char not in '"\\' else "'" for char in value)
