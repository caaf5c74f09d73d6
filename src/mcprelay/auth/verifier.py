"""Verifiers for `Bearer`: fixed tokens, JSON Web Tokens, and introspection.

Each is a callable that a user gives to `Bearer(verify=…)`. They know what a token says; whether that is enough is
`mcprelay.auth.resource`'s business.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote, urlencode
from weakref import WeakKeyDictionary

import msgspec

from mcprelay.auth.resource import Attestation, TokenRejected, VerifierUnavailable
from mcprelay.errors import ConfigurationError, MCPRelayError
from mcprelay.ports import Request, Sender

ANSWER_BYTES = 1 << 20
TIMEOUT = 10.0
KEYS_SECONDS = 3600.0
KEYS_RETRY_SECONDS = 30.0


class StaticTokens:
    """Tokens that are known beforehand, compared in constant time.

    Args:
        tokens: What each token stands for.

    Raises:
        ConfigurationError: A token is empty, or what it stands for is no `Attestation`.
    """

    def __init__(self, tokens: Mapping[str, Attestation]) -> None:
        if not all(tokens):
            msg = "StaticTokens: a token is empty"
            raise ConfigurationError(msg)
        given: list[Any] = list(tokens.values())  # whatever a user passed
        for each in given:
            if not isinstance(each, Attestation):
                msg = f"StaticTokens: a token is worth an Attestation(subject=...), and not a {type(each).__name__}"
                raise ConfigurationError(msg)
        self._known = [(_digest(token), attested) for token, attested in tokens.items()]

    blocks: ClassVar[bool] = False
    """It may be called on the event loop."""

    def __repr__(self) -> str:
        return f"StaticTokens({len(self._known)} tokens)"

    def __call__(self, token: str) -> Attestation:
        """What the token stands for. Every known token is looked at, so that the time says nothing."""
        digest, found = _digest(token), None
        for known, attested in self._known:
            if hmac.compare_digest(known, digest):
                found = attested
        if found is None:
            msg = "the token is unknown"
            raise TokenRejected(msg)
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """The scopes that claims name: `scope` as one string (RFC 8693), or a list (`scp`, as some issuers have it)."""
    said = claims.get("scope", claims.get("scp", ()))
    return frozenset(said.split() if isinstance(said, str) else [item for item in said if isinstance(item, str)])


def _attestation(claims: Mapping[str, Any]) -> Attestation:
    audience = claims.get("aud", ())
    subject, client = claims.get("sub"), claims.get("client_id", claims.get("azp"))
    if not isinstance(subject, str) or not subject:
        if not isinstance(client, str) or not client:
            msg = "the token names no subject"
            raise TokenRejected(msg)
        subject = client
    return Attestation(
        subject=subject,
        audiences=(audience,)
        if isinstance(audience, str)
        else tuple(item for item in audience if isinstance(item, str)),
        scopes=_scopes(claims),
        client_id=client if isinstance(client, str) else None,
        claims=dict(claims),
    )


class JwtVerifier:
    """JSON Web Tokens of one issuer, with its published keys. Needs PyJWT: `pip install 'mcprelay[jwt]'`.

    Keys are fetched when they are first needed, kept for an hour, and fetched again when a token names a key that is
    not among them (at most every 30 seconds, so that nobody can make this server hammer the issuer).

    Args:
        issuer: What `iss` must be, byte for byte.
        jwks_url: Where the issuer's keys are. https, or loopback.
        algorithms: The signature algorithms that are accepted. Symmetric ones are refused.
        leeway: Seconds that clocks may differ.
        sender: Sends the requests; the client's own by default.
        now: Seconds since the epoch.

    Raises:
        ConfigurationError: PyJWT is not installed, or an algorithm proves nothing.
    """

    def __init__(
        self,
        *,
        issuer: str,
        jwks_url: str,
        algorithms: Sequence[str] = ("RS256", "ES256", "PS256", "EdDSA"),
        leeway: float = 30.0,
        sender: Sender | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        if any(name.startswith("HS") or name.lower() == "none" for name in algorithms):
            msg = f"algorithms: {list(algorithms)} has one that proves nothing with a published key"
            raise ConfigurationError(msg)
        self._jwt = _pyjwt()
        self._issuer = issuer
        self._algorithms = list(algorithms)
        self._leeway = leeway
        self._now = now
        self._keys = _Keys(jwks_url, sender, now, jwt=self._jwt)

    async def aclose(self) -> None:
        """Close its connections on this event loop, when the server stops."""
        await self._keys.questioner.aclose()

    async def __call__(self, token: str) -> Attestation:
        """What the token says, if its issuer signed it and its time is now."""
        jwt = self._jwt
        try:
            header = jwt.get_unverified_header(token)
            key = await self._keys.find(header.get("kid"))
            claims = jwt.decode(
                token,
                key,
                algorithms=self._algorithms,
                issuer=self._issuer,
                leeway=self._leeway,
                options={"verify_aud": False, "require": ["exp", "iss"]},
            )
        except jwt.ExpiredSignatureError:
            msg = "the token has expired"
            raise TokenRejected(msg) from None
        except (jwt.ImmatureSignatureError, jwt.InvalidIssuedAtError):
            msg = "the token is not valid yet"
            raise TokenRejected(msg) from None
        except jwt.MissingRequiredClaimError as error:
            msg = f"the token says no {error.claim}"
            raise TokenRejected(msg) from None
        except jwt.PyJWTError:
            msg = "the token is not one of the issuer's"
            raise TokenRejected(msg) from None
        return _attestation(claims)


def _pyjwt() -> Any:
    """PyJWT.

    Raises:
        ConfigurationError: It is not installed. That is said where a verifier is made: each request would only be told
            that nobody can say what its token is worth.
    """
    try:
        return importlib.import_module("jwt")
    except ImportError as error:
        msg = "JwtVerifier needs the package PyJWT (pip install 'mcprelay[jwt]'); Introspection needs nothing"
        raise ConfigurationError(msg) from error


class _Keys:
    """An issuer's keys."""

    def __init__(self, url: str, sender: Sender | None, now: Callable[[], float], *, jwt: Any) -> None:
        self._url = url
        self._jwt = jwt
        self.questioner = _Questioner(sender)
        self._now = now
        self._known: dict[str | None, Any] = {}
        self._fetched = float("-inf")
        self._fetching: asyncio.Lock | None = None

    async def find(self, key_id: str | None) -> Any:
        """The key of that id; without one, the only key there is."""
        age = self._now() - self._fetched
        if age > KEYS_SECONDS or (key_id not in self._known and age > KEYS_RETRY_SECONDS):
            self._fetching = self._fetching or asyncio.Lock()
            async with self._fetching:
                if self._now() - self._fetched > KEYS_RETRY_SECONDS:
                    await self._fetch()
        if key_id is None and len(self._known) == 1:
            return next(iter(self._known.values()))
        if key_id not in self._known:
            msg = "the token is signed with a key that its issuer does not publish"
            raise TokenRejected(msg)
        return self._known[key_id]

    async def _fetch(self) -> None:
        jwt = self._jwt
        request = Request(method="GET", url=self._url, headers=[("Accept", "application/json")])
        answer = await self.questioner.ask(request)
        try:
            keys = jwt.PyJWKSet.from_dict(answer).keys
        except (jwt.PyJWTError, AttributeError) as error:
            msg = f"what {self._url} answers are no keys"
            raise VerifierUnavailable(msg) from error
        self._known = {key.key_id: key for key in keys}
        self._fetched = self._now()


class Introspection:
    """Tokens that the authorization server explains (RFC 7662). Answers are kept for `cache_seconds`, by digest.

    Args:
        url: The introspection endpoint.
        client_id: This server's name there.
        client_secret: Its secret there.
        cache_seconds: How long an answer is good; a revoked token is good for that long.
        cache_size: How many answers are kept.
        sender: Sends the requests; the client's own by default.
        now: Seconds since the epoch.
    """

    def __init__(
        self,
        url: str,
        *,
        client_id: str,
        client_secret: str,
        cache_seconds: float = 30.0,
        cache_size: int = 1024,
        sender: Sender | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._url = url
        user = f"{quote(client_id, safe='')}:{quote(client_secret, safe='')}"
        self._credentials = "Basic " + base64.b64encode(user.encode()).decode()
        self._cache_seconds = cache_seconds
        self._cache_size = cache_size
        self._questioner = _Questioner(sender)
        self._now = now
        self._cache: dict[bytes, tuple[float, Attestation]] = {}

    def __repr__(self) -> str:
        return f"Introspection({self._url!r})"

    async def aclose(self) -> None:
        """Close its connections on this event loop, when the server stops."""
        await self._questioner.aclose()

    async def __call__(self, token: str) -> Attestation:
        """What the authorization server says of the token."""
        digest = _digest(token)
        until, known = self._cache.get(digest, (0.0, None))
        if known is not None and until > self._now():
            return known
        body = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        headers = [
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Accept", "application/json"),
            ("Authorization", self._credentials),
        ]
        claims = await self._questioner.ask(Request(url=self._url, headers=headers, body=body))
        if claims.get("active") is not True:
            self._cache.pop(digest, None)
            msg = "the token is not active"
            raise TokenRejected(msg)
        attested = _attestation(claims)
        self._remember(digest, attested, claims.get("exp"))
        return attested

    def _remember(self, digest: bytes, attested: Attestation, expires: Any) -> None:
        until = self._now() + self._cache_seconds
        if isinstance(expires, (int, float)):
            until = min(until, expires)
        while len(self._cache) >= self._cache_size:
            del self._cache[next(iter(self._cache))]
        self._cache[digest] = (until, attested)


class _Questioner:
    """Asks an authorization server: with the user's sender, or with one of its own for each event loop.

    Args:
        sender: The user's, who closes it.
    """

    def __init__(self, sender: Sender | None) -> None:
        self._sender = sender
        self._own: WeakKeyDictionary[asyncio.AbstractEventLoop, Sender] = WeakKeyDictionary()

    async def ask(self, request: Request) -> dict[str, Any]:
        """The JSON object that an address answers.

        Raises:
            VerifierUnavailable: It answers anything else, or not at all.
        """
        try:
            async with asyncio.timeout(TIMEOUT):
                async with (self._sender or self._here()).send(request) as reply:
                    body = await reply.read(ANSWER_BYTES)
                    status = reply.status
            answer = msgspec.json.decode(body)
        except (MCPRelayError, OSError, TimeoutError, msgspec.DecodeError) as error:
            msg = f"{request.url} cannot be asked: {error}"
            raise VerifierUnavailable(msg) from error
        if status != 200 or not isinstance(answer, dict):
            msg = f"{request.url} answered with status {status}"
            raise VerifierUnavailable(msg)
        return answer

    def _here(self) -> Sender:
        loop = asyncio.get_running_loop()
        sender = self._own.get(loop)
        if sender is None:
            from mcprelay.client.http import HttpSender

            sender = self._own[loop] = HttpSender()
        return sender

    async def aclose(self) -> None:
        """Close what is its own on this loop. What is asked later opens it again."""
        sender = self._own.pop(asyncio.get_running_loop(), None)
        if sender is not None:
            await sender.aclose()
