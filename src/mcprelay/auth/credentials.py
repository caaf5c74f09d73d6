"""The token of one server: when it is shown, renewed, replaced, or asked for.

For each server there is one `State`, shared by every client of one `OAuth`. Whatever changes the token runs as one task
that all callers wait for, so that ten refused calls make one refresh and open one browser. The task is not the
callers': a deadline that ends a call does not end the login that the call began, nor lose a refresh token between two
answers. It ends by its own timeouts.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from mcprelay.auth import bearer, dpop, interaction
from mcprelay.auth.courier import Courier
from mcprelay.auth.endpoint import TokenEndpoint
from mcprelay.auth.failure import StepFailed, required, shown
from mcprelay.auth.grant import AuthorizationCode
from mcprelay.auth.negotiation import Negotiation
from mcprelay.auth.registration import Registration
from mcprelay.auth.scout import Asked, Scout, asked_by, fields_of, understood
from mcprelay.errors import ConfigurationError
from mcprelay.wire import challenge as wire

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from mcprelay.auth.address import Place
    from mcprelay.auth.jws import SigningKey
    from mcprelay.auth.record import Record, Vault
    from mcprelay.auth.settings import Settings
    from mcprelay.ports import Request, Sender
    from mcprelay.wire.challenge import Challenge

_log = logging.getLogger("mcprelay.auth")

FORGIVEN = 600.0
"""Seconds after which something that was refused too often may be tried again."""

REST = 10.0
"""Seconds without another early renewal after one has failed. The server's refusal starts one in any case."""

AUTHORIZATION = "authorization"
STEP_UP = "step-up authorization"

Unproven = Literal["", "refreshed", "obtained"]
"""How the present token was had, until the server accepts it once."""


class State:
    """What is known of one server, between all clients of one `OAuth`."""

    def __init__(self) -> None:
        self.loaded = False
        self.record: Record | None = None
        self.key: SigningKey | None = None
        self.unproven: Unproven = ""
        self.rest_until = 0.0
        self.nonces: dict[str, str] = {}
        self.asked: dict[frozenset[str], tuple[int, float]] = {}
        """How often a set of scopes was asked for, and when last."""
        self.task: asyncio.Task[None] | None = None
        self.unsaved: ConfigurationError | None = None
        """Why the store does not have the present token."""

    def adopt(self, record: Record | None, *, unproven: Unproven = "") -> None:
        """Make this the present token, or have none."""
        self.loaded = True
        self.record = record
        self.key = record.key.signing() if record is not None and record.key is not None else None
        self.unproven = unproven


class OAuthCredentials:
    """What `OAuth` shows to one server. Made by `OAuth.bind`."""

    def __init__(self, settings: Settings, server: Place, *, state: State, vault: Vault, sender: Sender) -> None:
        self._settings = settings
        self._server = self._place = server
        self._state = state
        self._vault = vault
        courier = Courier(
            sender,
            server,
            allowed=settings.allowed_hosts,
            insecure_hosts=settings.insecure_hosts,
            limit=settings.answer_bytes,
            timeout=settings.request_timeout,
            resolver=settings.resolver,
        )
        self._scout = Scout(settings, server, courier=courier)
        self._endpoint = TokenEndpoint(settings, courier=courier, vault=vault, nonces=state.nonces)
        self._negotiation = Negotiation(
            settings, server, scout=self._scout, endpoint=self._endpoint, courier=courier, vault=vault
        )

    def __repr__(self) -> str:
        return f"OAuth for {self._server.origin}"

    # ------------------------------------------------------------------------------------------- showing a token

    async def headers(self, request: Request) -> list[tuple[str, str]]:
        """See `Credentials.headers`. A token that cannot be renewed is shown as it is: the server's answer decides."""
        if request.url != self._place.url:
            self._place = bearer.check_origin(request.url, self._server)
        place, state = self._place, self._state
        if not state.loaded:
            await self._load()
        record = state.record
        if record is None:
            return []
        if record.stale(self._settings.clock.time(), leeway=self._settings.leeway) and self._silent(record):
            await self._try_renewal(record, Asked(refused=False, fields=fields_of(request)))
            record = state.record
            if record is None:
                return []
        return self._show(record, request.method, place)

    def _show(self, record: Record, method: str, place: Place) -> list[tuple[str, str]]:
        token = record.token.access_token
        key = self._state.key
        if key is None:
            return [("Authorization", f"Bearer {token}")]
        proof = dpop.proof(
            key,
            method=method,
            place=place,
            now=self._settings.clock.time(),
            unique=secrets.token_urlsafe(16),
            nonce=self._state.nonces.get(place.origin),
            access_token=token,
        )
        return [("Authorization", f"DPoP {token}"), ("DPoP", proof)]

    def answered(self, request: Request, status: int, headers: Mapping[str, str]) -> None:
        """See `Credentials.answered`."""
        state = self._state
        if state.key is not None and (nonce := dpop.nonce_from(headers)) is not None:
            state.nonces[self._server.origin] = nonce
        if not state.unproven or status in (401, 403) or state.record is None:
            return
        if bearer.token_in(request) == state.record.token.access_token:
            state.unproven = ""

    # ------------------------------------------------------------------------------------------ getting a better one

    async def challenged(self, request: Request, status: int, headers: Mapping[str, str], *, attempt: int) -> bool:
        """See `Credentials.challenged`."""
        self.answered(request, status, headers)  # a nonce that came with the refusal counts, whoever calls
        challenges = wire.parse(headers.get("www-authenticate", ""))
        challenge = understood(challenges)
        used = bearer.token_in(request)
        if status == 403 and not bearer.insufficient(challenge) and (used is not None or challenge is None):
            return False
        try:
            return await self._answer(request, challenges, challenge, used, attempt=attempt)
        except StepFailed as error:
            raise required(request, status, headers, said=self._advised(error), challenge=challenge) from error

    def _advised(self, error: StepFailed) -> str:
        """What failed; and where nobody can be asked, what a person can do about it elsewhere."""
        chosen, said = self._settings.interaction, str(error)
        if error.step == interaction.STEP or not isinstance(chosen, interaction.Refuse):
            return said
        return f"{said}; to log in anew, {chosen.advice()}"

    async def _answer(
        self,
        request: Request,
        challenges: Sequence[Challenge],
        challenge: Challenge | None,
        used: str | None,
        *,
        attempt: int,
    ) -> bool:
        if attempt > self._settings.attempts:
            raise StepFailed(AUTHORIZATION, f"the server still refuses after attempts={self._settings.attempts}")
        state = self._state
        if not state.loaded:
            await self._load()
        if state.record is not None and state.record.token.access_token != used:
            return True  # another call has got one in the meantime
        if self._owed_nonce(request, challenge):
            return True
        asked = asked_by(request, challenges)
        if used is not None and bearer.insufficient(challenge):
            self._count(asked.scope, limit=self._settings.attempts)
            await self._single(lambda: self._obtain(asked))
        elif used is None:
            self._count(asked.scope)
            await self._single(lambda: self._obtain(asked))
        else:
            await self._single(lambda: self._replace(used, asked))
        return True

    def _owed_nonce(self, request: Request, challenge: Challenge | None) -> bool:
        """Whether the refusal only asks for a nonce that the proof did not have. `answered` has noted it by now."""
        if challenge is None or challenge.params.get("error") != dpop.USE_NONCE:
            return False
        sent = next((value for name, value in request.headers if name.lower() == "dpop"), None)
        return sent is not None and dpop.nonce_in(sent) != self._state.nonces.get(self._server.origin)

    def _count(self, scope: tuple[str, ...], *, limit: int | None = None) -> None:
        """Count how often scopes are asked for. A server that never has enough is not asked for ever."""
        now = self._settings.clock.monotonic()
        key = frozenset(scope)
        count, last = self._state.asked.get(key, (0, now))
        if now - last > FORGIVEN:
            count = 0
        if limit is not None and count >= limit:
            raise StepFailed(
                STEP_UP,
                f"the scope {' '.join(scope) or '(none named)'} was asked for {count} times (attempts={limit}), and "
                "the server still wants it",
            )
        self._state.asked[key] = (count + 1, now)

    # ------------------------------------------------------------------------------------------------- the one task

    async def _single(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `work`, or wait for what another call is running already, whatever it is: the caller looks again."""
        state = self._state
        task = state.task
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = state.task = asyncio.create_task(work(), name=f"mcprelay authorization for {self._server.origin}")
            task.add_done_callback(_retrieve)
        await asyncio.shield(task)

    async def _load(self) -> None:
        record = await self._vault.record(self._server)
        if not self._state.loaded:
            self._state.adopt(record)

    def _silent(self, record: Record) -> bool:
        """Whether a new token can be had without asking anyone."""
        return record.token.refresh_token is not None or not isinstance(self._settings.grant, AuthorizationCode)

    async def _try_renewal(self, record: Record, asked: Asked) -> None:
        now = self._settings.clock.monotonic
        if now() < self._state.rest_until:
            return
        try:
            await self._single(lambda: self._renew(record, asked))
        except StepFailed:
            self._state.rest_until = now() + REST

    async def _renew(self, record: Record, asked: Asked) -> None:
        """Renew a token that is about to expire."""
        if await self._adopt_stored(record.token.access_token):
            return
        if record.token.refresh_token is not None and await self._refreshed(record):
            return
        if not isinstance(self._settings.grant, AuthorizationCode):
            await self._obtain(asked)

    async def _replace(self, used: str, asked: Asked) -> None:
        """Replace a token that the server does not accept: by a refresh, or by asking anew when that is too little."""
        if await self._adopt_stored(used):
            return
        state, record = self._state, self._state.record
        if record is not None and state.unproven == "obtained":
            if abs(self._settings.clock.time() - record.obtained_at) < FORGIVEN:  # a clock can be set back
                raise StepFailed(AUTHORIZATION, "the server does not accept the token that was just issued for it")
        elif (
            record is not None
            and state.unproven == ""
            and record.token.refresh_token is not None
            and await self._still_issuer(record, asked)
            and await self._refreshed(record)
        ):
            return
        await self._obtain(asked)

    async def _still_issuer(self, record: Record, asked: Asked) -> bool:
        """Whether the server still names the issuer of the token. When it cannot be asked now, it is believed to."""
        try:
            resource = await self._scout.resource(asked)
        except StepFailed:
            return True
        return resource is None or record.issuer in resource.authorization_servers

    async def _adopt_stored(self, used: str) -> bool:
        """Take a token that another process has stored in the meantime."""
        stored = await self._vault.record(self._server)
        if stored is None or stored.token.access_token == used:
            return False
        if stored.stale(self._settings.clock.time(), leeway=self._settings.leeway):
            return False
        self._state.adopt(stored)
        return True

    async def _refreshed(self, record: Record) -> bool:
        """Refresh; False when the refresh token is good for nothing any more, so that a person has to be asked."""
        async with self._vault.alone(self._server):
            if await self._adopt_stored(record.token.access_token):
                return True  # another process was faster, and the server takes each refresh token once
            try:
                await self._refresh(record)
            except StepFailed as error:
                if error.verdict == "for now":
                    raise
                return await self._spent(record, error)
        return True

    async def _spent(self, record: Record, error: StepFailed) -> bool:
        """After a refresh that failed: whether another process has got a token all the same."""
        if await self._adopt_stored(record.token.access_token):
            return True  # the store cannot keep others out
        if error.verdict == "final":
            spent = msgspec.structs.replace(record.token, refresh_token=None)
            await self._keep(msgspec.structs.replace(record, token=spent), unproven="")
        else:  # it was not the authorization server that answered, so the refresh token may be as good as before
            self._state.rest_until = self._settings.clock.monotonic() + REST
        return False

    async def _refresh(self, record: Record) -> None:
        await self._keep(await self._endpoint.refresh(record), unproven="refreshed")

    async def _obtain(self, asked: Asked) -> None:
        before = self._state.record
        try:
            record = await self._negotiation.obtain(asked, before=before)
        except StepFailed as error:
            if error.error == "invalid_scope" and before is not None and before.requested:
                # What was asked for before may be gone; without this every later login would ask for it again.
                await self._forget()
            raise
        await self._keep(record, unproven="obtained")

    async def _keep(self, record: Record, *, unproven: Unproven) -> None:
        """Make it the present token, and remember it. It is good for this process even where it cannot be kept."""
        self._state.adopt(record, unproven=unproven)
        self._state.unsaved = None
        try:
            await self._vault.keep(self._server, record)
        except ConfigurationError as error:
            self._state.unsaved = error
            _log.warning("the token for %s is good until this process ends: %s", shown(self._server.url), error)

    async def _forget(self) -> None:
        self._state.adopt(None)
        await self._vault.forget(self._server)

    # ------------------------------------------------------------------------------------------- logging in and out

    async def record(self) -> Record | None:
        """The token that there is, or None."""
        await self._load()
        return self._state.record

    async def login(self, asked: Asked) -> Record:
        """Get a token now, whether or not there is one.

        Raises:
            StepFailed: It could not be had.
            ConfigurationError: It could not be kept.
        """
        await self._load()
        await self._single(lambda: self._obtain(asked))
        assert self._state.record is not None  # noqa: S101 - `_obtain` keeps one or raises
        if self._state.unsaved is not None:
            raise self._state.unsaved
        return self._state.record

    async def remember_client(self, record: Record) -> None:
        """Keep the client that the user gave, with its secret, as one that was registered on the spot is kept.

        A private key is not kept.
        """
        given = self._settings.client
        if given is None or given.private_key is not None:
            return
        known = Registration(
            issuer=record.issuer, client_id=given.client_id, client_secret=given.client_secret, method=record.method
        )
        await self._vault.keep_registration(known, name=self._settings.client_name)

    async def logout(self) -> Literal["revoked", "not offered", "none"]:
        """Forget the token and this client's registration, and have the token made worthless where that is offered.

        They are forgotten even when the authorization server cannot be reached.

        Raises:
            StepFailed: The authorization server did not confirm.
        """
        record = await self._vault.record(self._server)
        if record is None:
            self._state.adopt(None)
            return "none"
        try:
            return await self._endpoint.revoke(record)
        finally:
            await self._forget()
            await self._vault.forget_registration(record.issuer, name=self._settings.client_name)


def _retrieve(task: asyncio.Task[None]) -> None:
    """Whoever waited has the error; when nobody waits any more, it is not worth a warning."""
    if not task.cancelled():
        task.exception()
