"""Asking the token endpoint: for a token, for a fresh one, and that one be made worthless.

Makes the requests that `token` and `dpop` describe. Works from a stored record alone, without discovery, so that a
refresh succeeds right after a restart.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Literal

import msgspec

from mcprelay.auth import dpop, registration, token
from mcprelay.auth.discovery import ServerMetadata
from mcprelay.auth.dpop import BoundKey
from mcprelay.auth.failure import StepFailed, redacted, shown
from mcprelay.auth.jws import SigningKey
from mcprelay.auth.record import Record
from mcprelay.auth.registration import Registered, Registration
from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcprelay.auth.courier import Answer, Courier
    from mcprelay.auth.record import Vault
    from mcprelay.auth.settings import Settings

TOKEN_STEP = "token request"  # noqa: S105 - the name of a step
REFRESH_STEP = "token refresh"
REVOCATION_STEP = "token revocation"
REGISTRATION_STEP = "client registration"

_PASSING = frozenset({"server_error", "slow_down", "temporarily_unavailable"})
"""Error codes that say nothing about what was asked."""

_FINAL = frozenset(
    {
        "access_denied",
        "consent_required",
        "interaction_required",
        "invalid_client",
        "invalid_grant",
        "invalid_request",
        "invalid_scope",
        "invalid_target",
        "invalid_token",
        "login_required",
        "unauthorized_client",
        "unsupported_grant_type",
    }
)
"""Error codes with which an authorization server judges what was asked."""


class TokenEndpoint:
    """Asks authorization servers for tokens.

    Args:
        settings: What the user set.
        courier: Sends the requests.
        vault: Remembers registrations.
        nonces: The DPoP nonce that each origin handed out last; shared with whoever shows the token.
    """

    def __init__(self, settings: Settings, *, courier: Courier, vault: Vault, nonces: dict[str, str]) -> None:
        self._settings = settings
        self._courier = courier
        self._vault = vault
        self._nonces = nonces

    async def request(
        self,
        server: ServerMetadata,
        client: Registration,
        form: token.Form,
        *,
        key: BoundKey | None,
        asked: Sequence[str],
        step: str = TOKEN_STEP,
    ) -> token.Token:
        """Ask for a token, twice where the server wants a nonce to be told first.

        Args:
            server: The authorization server.
            client: Who asks.
            form: The grant.
            key: The key to bind the token to, or None.
            asked: The scope asked for.
            step: The step, for errors.
        """
        answer = await self._ask(server, client, form, key=key, step=step)
        if key is not None and _wants_nonce(answer):
            answer = await self._ask(server, client, form, key=key, step=step)
        try:
            accept(answer, step)
        except StepFailed as failure:
            if failure.error == "invalid_client" and self._settings.client is None:
                await self._forget(client)
            raise
        try:
            got = token.read_token(answer.body, asked=asked, now=self._settings.clock.time())
        except ValueError as error:
            said = redacted(f"{shown(answer.url)} answered {error}", answer.secrets)
        else:
            self._check_binding(got, key, step)
            return got
        raise StepFailed(step, said, verdict="unclear")  # without a cause, which could quote what was sent

    async def _forget(self, client: Registration) -> None:
        """Forget a registration that the issuer knows nothing of, unless another has taken its place by now."""
        name = self._settings.client_name
        stored = await self._vault.registration(client.issuer, name=name)
        if stored is not None and stored.client_id == client.client_id:
            await self._vault.forget_registration(client.issuer, name=name)

    def _check_binding(self, got: token.Token, key: BoundKey | None, step: str) -> None:
        if got.scheme == "DPoP" and key is None:
            raise StepFailed(step, "a token bound to a key came back, and no key was shown")
        if got.scheme == "Bearer" and self._settings.dpop == "always":
            raise StepFailed(step, 'a bearer token came back, and dpop="always" was set')

    async def _ask(
        self, server: ServerMetadata, client: Registration, form: token.Form, *, key: BoundKey | None, step: str
    ) -> Answer:
        if server.token_endpoint is None:
            raise StepFailed(step, f"the metadata of {server.issuer} names no token_endpoint")
        place = await self._courier.admit(server.token_endpoint, step=step)
        form, headers = token.authenticate(form, client, assertion=self._assertion(client, server, step=step))
        if key is not None:
            headers["DPoP"] = dpop.proof(
                key.signing(),
                method="POST",
                place=place,
                now=self._settings.clock.time(),
                unique=secrets.token_urlsafe(16),
                nonce=self._nonces.get(place.origin),
            )
        answer = await self._courier.post_form(place.url, form, step=step, headers=headers)
        if (nonce := dpop.nonce_from(answer.headers)) is not None:
            self._nonces[place.origin] = nonce
        return answer

    def _assertion(self, client: Registration, server: ServerMetadata, *, step: str) -> str | None:
        given = self._settings.client
        if client.method != "private_key_jwt" or given is None or given.private_key is None:
            return None
        try:
            return token.client_assertion(
                SigningKey(given.private_key, algorithm=given.algorithm, key_id=given.key_id),
                client_id=client.client_id,
                audience=server.issuer,
                supported=server.token_endpoint_auth_signing_alg_values_supported,
                now=self._settings.clock.time(),
                unique=secrets.token_urlsafe(16),
            )
        except ConfigurationError as error:
            raise StepFailed(step, str(error)) from error

    # ----------------------------------------------------------------------------------- with what was remembered

    async def refresh(self, record: Record) -> Record:
        """Renew a token with its refresh token.

        "The authorization server MAY issue a new refresh token": when it does not, the old one stays.
        """
        self._courier.allow(record.allowed_hosts)
        server, client = await self._remembered(record)
        form = token.refresh_form(record.token.refresh_token or "", resource=record.resource)
        got = await self.request(server, client, form, key=record.key, asked=record.token.scope, step=REFRESH_STEP)
        if got.refresh_token is None:
            got = msgspec.structs.replace(got, refresh_token=record.token.refresh_token)
        return msgspec.structs.replace(record, token=got, obtained_at=self._settings.clock.time())

    async def revoke(self, record: Record) -> Literal["revoked", "not offered"]:
        """Make a token worthless, where its authorization server offers that (RFC 7009)."""
        if record.revocation_endpoint is None:
            return "not offered"
        self._courier.allow(record.allowed_hosts)
        server, client = await self._remembered(record)
        pairs: list[tuple[str | None, Literal["refresh_token", "access_token"]]] = [
            (record.token.refresh_token, "refresh_token"),
            (record.token.access_token, "access_token"),
        ]
        for text, kind in pairs:
            if text is not None:
                assertion = self._assertion(client, server, step=REVOCATION_STEP)
                form, headers = token.authenticate(token.revocation_form(text, kind), client, assertion=assertion)
                answer = await self._courier.post_form(
                    record.revocation_endpoint, form, step=REVOCATION_STEP, headers=headers
                )
                accept(answer, REVOCATION_STEP)
        return "revoked"

    async def _remembered(self, record: Record) -> tuple[ServerMetadata, Registration]:
        """The authorization server and the client of a token, as far as its record knows them."""
        server = ServerMetadata(
            issuer=record.issuer,
            token_endpoint=record.token_endpoint,
            token_endpoint_auth_methods_supported=(record.method,),
            token_endpoint_auth_signing_alg_values_supported=record.assertion_algorithms,
        )
        given = self._settings.client
        if given is not None and given.client_id == record.client_id:
            return server, await self.registered(given, server)
        if record.client is not None:
            return server, record.client
        stored = await self._vault.registration(record.issuer, name=self._settings.client_name)
        if stored is not None and stored.client_id == record.client_id:
            return server, stored
        return server, Registration(issuer=record.issuer, client_id=record.client_id)

    async def registered(self, client: Registered, server: ServerMetadata) -> Registration:
        """Credentials that were registered by hand, for their own issuer and no other."""
        owner = await self._vault.owner(client.client_id) if client.issuer is None else None
        try:
            found = registration.bind(client, server, pinned=owner)
        except ConfigurationError as error:
            raise StepFailed(REGISTRATION_STEP, str(error)) from error
        if client.issuer is None and owner is None:
            await self._vault.keep_owner(client.client_id, server.issuer)
        return found


def accept(answer: Answer, step: str) -> None:
    """Raise what an endpoint answered, unless it is a success. Some answer errors with 200."""
    error = answer.error
    if answer.status == 200 and error is None:
        return
    said = f" with {error}" if error else ""
    code = error.error if error else ""
    raise StepFailed(step, answer.summary + said, error=code, verdict=_verdict(answer, code))


def _verdict(answer: Answer, code: str) -> Literal["for now", "final", "unclear"]:
    if answer.passing or code in _PASSING:
        return "for now"
    return "final" if code in _FINAL else "unclear"


def _wants_nonce(answer: Answer) -> bool:
    if answer.status not in (400, 401) or dpop.nonce_from(answer.headers) is None:
        return False
    error = answer.error
    return error is not None and error.error == dpop.USE_NONCE
