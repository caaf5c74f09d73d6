"""What is remembered between two runs of a program: tokens for a server, registrations with an issuer.

Knows the shape of each entry and the key under which it lies. Registrations lie under the issuer that gave them, so
that none is ever found for another. What a store gives back and nobody can read counts as nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from mcprelay.auth.address import Place
from mcprelay.auth.dpop import BoundKey
from mcprelay.auth.registration import Method, Registration
from mcprelay.auth.token import Token
from mcprelay.auth.veil import Veiled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcprelay.ports import TokenStore

Entry = TypeVar("Entry")


class Record(Veiled, frozen=True, kw_only=True):
    """A token for one server, with all that it takes to renew it after a restart.

    Attributes:
        server: The MCP server's URL, as the user named it.
        issuer: The authorization server that issued the token.
        client_id: The client that it was issued to.
        token_endpoint: Where it is renewed.
        revocation_endpoint: Where it is made worthless, or None.
        resource: The `resource` parameter, byte for byte; None where none is sent.
        requested: The scope that was asked for, which a step up adds to.
        obtained_at: When it was issued, in seconds since the epoch.
        method: How that client authenticates.
        assertion_algorithms: The algorithms that the issuer verifies assertions with, or None when it does not say.
        key: The key that the token is bound to, or None for a bearer token.
        token: The token.
        client: That client with its secret, so that another registration with the same issuer, or its end, does not
            end this token's renewal. None for one that was registered by hand, whose secret the user gives.
        allowed_hosts: What the user allowed when the token was got, so that it can be renewed there.
    """

    server: str
    issuer: str
    client_id: str
    token_endpoint: str
    revocation_endpoint: str | None = None
    resource: str | None = None
    requested: tuple[str, ...] = ()
    obtained_at: float = 0.0
    method: Method = "none"
    assertion_algorithms: tuple[str, ...] | None = None
    key: BoundKey | None = None
    token: Token
    client: Registration | None = None
    allowed_hosts: tuple[str, ...] = ()

    def stale(self, now: float, *, leeway: float) -> bool:
        """Whether the token is about to expire: in `leeway` seconds, or a tenth of its life where that is less."""
        if self.token.expires_at is None:
            return False
        life = self.token.expires_at - self.obtained_at
        return now >= self.token.expires_at - min(leeway, max(life, 0.0) / 10)


class Vault:
    """Typed access to a store.

    Args:
        store: Where texts are kept.
        account: Whose credentials these are, when one store holds those of several users.
    """

    def __init__(self, store: TokenStore, *, account: str = "") -> None:
        self._store = store
        self._account = account

    async def record(self, server: Place) -> Record | None:
        """The token for a server, or None."""
        found = await self._load(self._token_key(server), Record)
        return found if found is not None and found.server == server.url else None

    async def keep(self, server: Place, record: Record) -> None:
        """Remember the token for a server."""
        await self._save(self._token_key(server), record)

    async def forget(self, server: Place) -> None:
        """Forget the token for a server."""
        await self._store.drop(self._token_key(server))

    @contextlib.asynccontextmanager
    async def alone(self, server: Place) -> AsyncGenerator[None]:
        """Renew the token for a server while no other process does, where the store can see to that."""
        hold = getattr(self._store, "alone", None)
        if hold is None:
            yield
            return
        async with hold(self._token_key(server)):
            yield

    async def registration(self, issuer: str, *, name: str) -> Registration | None:
        """What the client of this name is to an issuer, or None."""
        found = await self._load(self._client_key(issuer, name), Registration)
        return found if found is not None and found.issuer == issuer else None

    async def keep_registration(self, registration: Registration, *, name: str) -> None:
        """Remember a registration, under its issuer."""
        await self._save(self._client_key(registration.issuer, name), registration)

    async def forget_registration(self, issuer: str, *, name: str) -> None:
        """Forget what the client is to an issuer."""
        await self._store.drop(self._client_key(issuer, name))

    async def owner(self, client_id: str) -> str | None:
        """The issuer that credentials registered by hand were first used with, or None."""
        return await self._load(self._owner_key(client_id), str)

    async def keep_owner(self, client_id: str, issuer: str) -> None:
        """Remember whose credentials these are."""
        await self._save(self._owner_key(client_id), issuer)

    def _token_key(self, server: Place) -> str:
        return self._key("token", server.origin + server.path, server.url)

    def _client_key(self, issuer: str, name: str) -> str:
        return self._key("client", issuer, name)

    def _owner_key(self, client_id: str) -> str:
        return self._key("owner", client_id)

    def _key(self, kind: Literal["token", "client", "owner"], readable: str, *more: str) -> str:
        """A key that a person can read, made unique by what a person should not: queries can hold secrets."""
        whole = "\0".join((self._account, readable, *more))
        return f"{kind} {readable} {hashlib.sha256(whole.encode('utf-8')).hexdigest()[:16]}"

    async def _load(self, key: str, kind: type[Entry]) -> Entry | None:
        text = await self._store.load(key)
        try:
            return None if text is None else msgspec.json.decode(text, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    async def _save(self, key: str, value: object) -> None:
        await self._store.save(key, msgspec.json.encode(value).decode("utf-8"))
