"""From a refusal to a token: discovery, registration, and the grant, one step after the other.

Knows their order. Every step that fails raises `StepFailed`. Does not know when a token is needed: `oauth` does.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from mcprelay.auth import dpop, flow, grant, interaction, registration, token
from mcprelay.auth.dpop import BoundKey
from mcprelay.auth.endpoint import REGISTRATION_STEP, TOKEN_STEP, TokenEndpoint, accept
from mcprelay.auth.failure import StepFailed, clean, shown
from mcprelay.auth.record import Record
from mcprelay.auth.registration import Registration
from mcprelay.auth.veil import Hidden
from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcprelay.auth.address import Place
    from mcprelay.auth.courier import Courier
    from mcprelay.auth.discovery import ServerMetadata
    from mcprelay.auth.interaction import Conversation
    from mcprelay.auth.record import Vault
    from mcprelay.auth.scout import Asked, Found, Scout
    from mcprelay.auth.settings import Settings

AUTHORIZATION_STEP = "authorization request"
EXCHANGE_STEP = "identity assertion exchange"


class Negotiation:
    """Ways to a token for one MCP server.

    Args:
        settings: What the user set.
        server: The MCP server.
        scout: Finds its authorization server.
        endpoint: Asks that for tokens.
        courier: Sends the other requests.
        vault: Remembers registrations.
    """

    def __init__(
        self,
        settings: Settings,
        server: Place,
        *,
        scout: Scout,
        endpoint: TokenEndpoint,
        courier: Courier,
        vault: Vault,
    ) -> None:
        self._settings = settings
        self._server = server
        self._scout = scout
        self._endpoint = endpoint
        self._courier = courier
        self._vault = vault

    async def obtain(self, asked: Asked, *, before: Record | None) -> Record:
        """Get a token.

        Args:
            asked: What the server's refusal says.
            before: The token that there was, whose scopes are kept when it is of the same issuer.
        """
        found = await self._scout.discover(asked, prefer=before.issuer if before else None)
        kept = before if before is not None and before.issuer == found.server.issuer else None
        key = self._key(found, asked, kept)
        scope = self._scope(found, asked, kept)
        try:
            client, got = await self._walk(found, scope, key, stepping_up=asked.scope != () and kept is not None)
        except StepFailed as error:
            if not found.note or error.step == interaction.STEP:
                raise
            raise StepFailed(error.step, f"{error.sentence} ({found.note})", error=error.error) from error
        return Record(
            server=self._server.url,
            issuer=found.server.issuer,
            client_id=client.client_id,
            method=client.method,
            assertion_algorithms=found.server.token_endpoint_auth_signing_alg_values_supported,
            token_endpoint=found.server.token_endpoint or "",
            revocation_endpoint=found.server.revocation_endpoint,
            resource=found.identifier,
            requested=scope,
            obtained_at=self._settings.clock.time(),
            key=key if got.scheme == "DPoP" else None,
            token=got,
            client=None if self._settings.client is not None else client,
            allowed_hosts=self._settings.allowed_hosts,
        )

    def _scope(self, found: Found, asked: Asked, kept: Record | None) -> tuple[str, ...]:
        return flow.choose_scopes(
            configured=self._settings.scopes,
            challenged=asked.scope,
            advertised=found.resource.scopes_supported if found.resource else None,
            before=kept.requested if kept else (),
            offered=found.server.scopes_supported,
            renewal="wanted" if isinstance(self._settings.grant, grant.AuthorizationCode) else "unwanted",
        )

    def _key(self, found: Found, asked: Asked, kept: Record | None) -> BoundKey | None:
        """The key to bind the token to: the one that there was, a new one, or None for a bearer token."""
        if not dpop.wanted(self._settings.dpop, schemes=asked.schemes, resource=found.resource, server=found.server):
            return None
        supported = dpop.algorithms(resource=found.resource, server=found.server)
        if kept and kept.key and (supported is None or kept.key.algorithm in supported):
            return kept.key
        made = BoundKey.new(supported)
        if made is None:
            raise StepFailed(TOKEN_STEP, f"no algorithm of {', '.join(map(clean, supported or ()))} is known for DPoP")
        return made

    # ---------------------------------------------------------------------------------------------------- grants

    async def _walk(
        self, found: Found, scope: tuple[str, ...], key: BoundKey | None, *, stepping_up: bool
    ) -> tuple[Registration, token.Token]:
        chosen = self._settings.grant
        if isinstance(chosen, grant.AuthorizationCode):
            return await self._by_code(found, scope, key, stepping_up=stepping_up)
        own = isinstance(chosen, grant.ClientCredentials)
        kind = "client_credentials" if own else token.JWT_BEARER
        client = await self._client(found.server, redirect_uri=None, grant_types=[kind], key=key)
        form = await self._unasked(chosen, found, scope)
        return client, await self._endpoint.request(found.server, client, form, key=key, asked=scope)

    async def _unasked(
        self,
        chosen: grant.ClientCredentials | grant.JwtBearer | grant.IdentityAssertion,
        found: Found,
        scope: Sequence[str],
    ) -> token.Form:
        """The form of a grant without a person."""
        if isinstance(chosen, grant.ClientCredentials):
            return token.client_credentials_form(scope=scope, resource=found.identifier)
        if isinstance(chosen, grant.JwtBearer):
            said = await grant.current(chosen.assertion, found.server.issuer)
        else:
            said = await self._identity_grant(chosen, found, scope)
        return token.jwt_bearer_form(said, scope=scope, resource=found.identifier)

    async def _identity_grant(self, identity: grant.IdentityAssertion, found: Found, scope: Sequence[str]) -> str:
        """The identity provider's grant. Its address is the user's own choice, so it may be anywhere."""
        if found.identifier is None:
            raise StepFailed(EXCHANGE_STEP, "the MCP server publishes no resource metadata, and the exchange needs it")
        form = token.identity_form(
            await grant.current(identity.assertion, identity.client_id),
            f"urn:ietf:params:oauth:token-type:{identity.assertion_type}",
            audience=found.server.issuer,
            resource=found.identifier,
            scope=scope,
        )
        form, headers = token.authenticate(form, identity.registration())
        answer = await self._courier.post_form(
            identity.token_endpoint, form, step=EXCHANGE_STEP, headers=headers, chosen="user"
        )
        accept(answer, EXCHANGE_STEP)
        try:
            return token.read_grant(answer.body)
        except ValueError as error:
            raise StepFailed(EXCHANGE_STEP, f"{shown(answer.url)} answered {error}") from error

    async def _by_code(
        self, found: Found, scope: tuple[str, ...], key: BoundKey | None, *, stepping_up: bool
    ) -> tuple[Registration, token.Token]:
        server = found.server
        await self._check_authorization_endpoint(server)
        if isinstance(self._settings.interaction, interaction.Refuse):
            raise self._settings.interaction.refusal(scope if stepping_up else ())
        known = await self._vault.registration(server.issuer, name=self._settings.client_name)
        async with self._settings.interaction.open(known.redirect_uris if known else ()) as conversation:
            if (reason := flow.redirect_refusal(conversation.redirect_uri)) is not None:
                raise ConfigurationError(
                    f"redirect_uri={conversation.redirect_uri!r} {reason}; it must be https, or http on this machine"
                )
            client = await self._client(
                server,
                redirect_uri=conversation.redirect_uri,
                grant_types=["authorization_code", "refresh_token"],
                key=key,
            )
            question = flow.ask(
                server,
                client_id=client.client_id,
                redirect_uri=conversation.redirect_uri,
                scope=scope,
                resource=found.identifier,
                state=secrets.token_urlsafe(32),
                verifier=secrets.token_urlsafe(48),
                key_thumbprint=key.signing().thumbprint() if key else None,
            )
            code = await self._answer(question, conversation)
        form = token.code_form(question, code, resource=found.identifier)
        return client, await self._endpoint.request(server, client, form, key=key, asked=scope)

    async def _check_authorization_endpoint(self, server: ServerMetadata) -> None:
        """No one is sent anywhere before it is known that the code will be safe."""
        reason = flow.pkce_refusal(server, policy=self._settings.pkce)
        if reason is None and server.authorization_endpoint is None:
            reason = "its metadata names no authorization_endpoint"
        if reason is not None:
            raise StepFailed(AUTHORIZATION_STEP, f"{server.issuer} cannot be used: {reason}")
        await self._courier.admit(server.authorization_endpoint or "", step=AUTHORIZATION_STEP)

    async def _answer(self, question: flow.Question, conversation: Conversation) -> str:
        timeout = self._settings.interaction_timeout
        try:
            async with asyncio.timeout(timeout):
                callback = Hidden(await conversation.ask(question.url))
            return flow.answer(question, callback)
        except TimeoutError as error:
            sentence = f"nobody answered at {shown(question.url)} in interaction_timeout={timeout:g} seconds"
            raise StepFailed(AUTHORIZATION_STEP, sentence) from error
        except flow.Rejected as error:
            code = error.error.error if error.error else ""
            raise StepFailed(AUTHORIZATION_STEP, f"at {shown(question.url)}, {error}", error=code) from error

    # ---------------------------------------------------------------------------------------------- registration

    async def _client(
        self, server: ServerMetadata, *, redirect_uri: str | None, grant_types: Sequence[str], key: BoundKey | None
    ) -> Registration:
        """Who this client is to the authorization server."""
        settings = self._settings
        if settings.client is not None:
            return await self._endpoint.registered(settings.client, server)
        if settings.client_document and (known := registration.from_document(settings.client_document, server)):
            return known
        stored = await self._vault.registration(server.issuer, name=settings.client_name)
        if stored is not None and stored.serves(redirect_uri, now=settings.clock.time()):
            return stored
        body = registration.request(
            server,
            name=settings.client_name,
            redirect_uris=[redirect_uri] if redirect_uri else [],
            grant_types=grant_types,
            dpop="bound" if key else "unbound",
            more=settings.registration,
        )
        made = await self._register(server, body)
        await self._vault.keep_registration(made, name=settings.client_name)
        return made

    async def _register(self, server: ServerMetadata, body: dict[str, object]) -> Registration:
        if server.registration_endpoint is None:
            documents = " and reads no client id metadata documents" if self._settings.client_document else ""
            raise StepFailed(
                REGISTRATION_STEP,
                f"{server.issuer} registers no clients on the spot{documents}. Register one by hand and pass "
                "client=Registered(client_id=..., issuer=...); on the command line, --client-id",
            )
        answer = await self._courier.post_json(server.registration_endpoint, body, step=REGISTRATION_STEP)
        if answer.status not in (200, 201):
            error = answer.error
            said = f" with {error}" if error else ""
            asked = (
                f" It was asked for redirect_uris={body.get('redirect_uris')} of a {body['application_type']} client"
            )
            raise StepFailed(REGISTRATION_STEP, f"{answer.summary}{said}.{asked}", error=error.error if error else "")
        try:
            return registration.read(answer.body, asked=body, metadata=server)
        except ValueError as error:
            raise StepFailed(REGISTRATION_STEP, f"{answer.summary} and {error}") from error
