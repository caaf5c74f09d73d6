"""OAuth on the client: what a user gives to `Client(url, auth=OAuth(...))`.

Knows the settings. When a token is shown, renewed or asked for, `credentials` knows; how it is had, `negotiation`.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from mcprelay.auth import Credentials, bearer
from mcprelay.auth.courier import resolve
from mcprelay.auth.credentials import OAuthCredentials, State
from mcprelay.auth.dpop import Policy
from mcprelay.auth.flow import scopes as parse_scopes
from mcprelay.auth.grant import AuthorizationCode, ClientCredentials, Grant
from mcprelay.auth.interaction import Browser, Interaction
from mcprelay.auth.record import Vault
from mcprelay.auth.registration import Registered, check_document_url
from mcprelay.auth.settings import Settings
from mcprelay.auth.store import MemoryStore
from mcprelay.errors import ConfigurationError
from mcprelay.ports import Clock, Sender, TokenStore


class OAuth:
    """Gets a token from whatever authorization server stands behind an MCP server, keeps it and renews it.

    Nothing happens before the server asks. Then the authorization server is found, the client registered, the person
    asked (or not, depending on `grant`), and the refused request sent again. Tokens go to the server that they are for
    and nowhere else, and over plain http to this machine alone; `allow_plaintext=True` of a client lets them go to its
    server so, and leaves all that gives tokens to https.

    Args:
        grant: The way to a token: `AuthorizationCode()`, `ClientCredentials()`, `JwtBearer(...)` or
            `IdentityAssertion(...)`.
        client: Credentials that were registered by hand; they go before the other ways to be known.
        client_document: The https URL of this client's metadata document, for servers that read such documents.
        client_name: What a person reads when asked for consent, where the client is registered on the spot.
        registration: Members to add to such a registration, or to replace: `{"client_uri": …}`.
        scopes: Scopes to ask for in any case, beside those that the server wants.
        resource: The server's resource identifier, when it differs from its URL.
        store: Where credentials are kept: `MemoryStore()` (the default), `FileStore()`, `KeyringStore()`, your own.
        account: Whose credentials these are, when one store holds those of several users.
        interaction: How the person is asked: `Browser()` (the default), `Loopback()`, `Paste()`, `Application(...)`,
            `Refuse()`.
        dpop: `auto`, `always` or `never` (see `mcprelay.auth.dpop`).
        pkce: `assumed` uses authorization servers whose metadata does not mention PKCE. When they do not support it, a
            stolen code is worth a token.
        fallback: `refuse` does not take a server without metadata for its own authorization server, as the first
            revision with authorization did.
        allowed_hosts: Hosts, addresses and networks that a server may name although they are not public.
        insecure_hosts: Hosts to which plain http is allowed, even to an authorization server there. No server may have
            its endpoints so by the specification: for a network of your own, where nobody can listen.
        attempts: How often one request, and one set of scopes, is asked authorization for.
        leeway: Seconds before its expiry at which a token is renewed.
        request_timeout: Seconds for each request on the way to a token.
        interaction_timeout: Seconds for the person to answer.
        answer_bytes: Bytes that an answer on the way to a token may have.
        clock: Tells the time.
        resolver: Gives the addresses of a host and a port.

    Raises:
        ConfigurationError: A setting is wrong, or two do not go together.
    """

    def __init__(
        self,
        *,
        grant: Grant | None = None,
        client: Registered | None = None,
        client_document: str | None = None,
        client_name: str = "mcprelay",
        registration: dict[str, Any] | None = None,
        scopes: str | Sequence[str] = (),
        resource: str | None = None,
        store: TokenStore | None = None,
        account: str = "",
        interaction: Interaction | None = None,
        dpop: Policy = "auto",
        pkce: Literal["advertised", "assumed"] = "advertised",
        fallback: Literal["allow", "refuse"] = "allow",
        allowed_hosts: Sequence[str] = (),
        insecure_hosts: Sequence[str] = (),
        attempts: int = 3,
        leeway: float = 30.0,
        request_timeout: float = 30.0,
        interaction_timeout: float = 300.0,
        answer_bytes: int = 262_144,
        clock: Clock = time,
        resolver: Callable[[str, int], Awaitable[Sequence[str]]] = resolve,
    ) -> None:
        grant = AuthorizationCode() if grant is None else grant
        if client_document is not None:
            check_document_url(client_document)
        if isinstance(grant, ClientCredentials) and client is None:
            raise ConfigurationError(
                "ClientCredentials() needs client=Registered(client_id=..., client_secret=... or private_key=...)"
            )
        if attempts < 1:
            raise ConfigurationError(f"attempts={attempts} must be 1 or more")
        self.settings = Settings(
            grant=grant,
            client=client,
            client_document=client_document,
            client_name=client_name,
            registration=registration,
            scopes=parse_scopes(scopes),
            resource=resource,
            interaction=Browser() if interaction is None else interaction,
            dpop=dpop,
            pkce=pkce,
            fallback=fallback,
            allowed_hosts=tuple(allowed_hosts),
            insecure_hosts=tuple(insecure_hosts),
            attempts=attempts,
            leeway=leeway,
            request_timeout=request_timeout,
            interaction_timeout=interaction_timeout,
            answer_bytes=answer_bytes,
            clock=clock,
            resolver=resolver,
        )
        self._vault = Vault(MemoryStore() if store is None else store, account=account)
        self._states: dict[str, State] = {}
        self._plain: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"OAuth({type(self.settings.grant).__name__})"

    def over_plaintext(self, url: str) -> OAuth:
        """The same credentials, whose tokens may go to `url` although that is plain http on another machine.

        What the server there publishes about itself is read over plain http, too. Authorization servers stay where they
        are safe: "All authorization server endpoints MUST be served over HTTPS".
        """
        made = copy.copy(self)
        made._plain = self._plain | {url}  # noqa: SLF001 - one of us
        return made

    def bind(self, url: str, *, sender: Sender) -> Credentials:
        """The credentials for the MCP server at `url`.

        Raises:
            ConfigurationError: `url` is plain http on another machine, and neither `over_plaintext` nor
                `insecure_hosts` allows it.
        """
        return self.bound(url, sender=sender)

    def bound(self, url: str, *, sender: Sender) -> OAuthCredentials:
        """As `bind`, with what logging in and out needs besides."""
        server = bearer.home(url, insecure_hosts=self.settings.insecure_hosts, plain=self._plain)
        state = self._states.setdefault(server.url, State())
        return OAuthCredentials(self.settings, server, state=state, vault=self._vault, sender=sender)
