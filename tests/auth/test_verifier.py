"""Verifiers: fixed tokens, signed tokens with keys that rotate, and tokens that the server explains."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import urllib.parse
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from mcprelay import Server
from mcprelay.auth.resource import Attestation, Bearer, TokenRejected, VerifierUnavailable
from mcprelay.auth.verifier import Introspection, JwtVerifier, StaticTokens
from mcprelay.errors import ConfigurationError, NotSent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcprelay.ports import Request

jwt = pytest.importorskip("jwt")
ISSUER = "https://as.example"
RESOURCE = "http://127.0.0.1:8000/mcp"


class Canned:
    """A sender that gives one answer, and counts."""

    def __init__(self, answer: Any, status: int = 200) -> None:
        self.answer = answer
        self.status = status
        self.requests: list[Request] = []

    @contextlib.asynccontextmanager
    async def send(self, request: Request) -> AsyncIterator[Canned]:
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        yield self

    async def read(self, limit: int) -> bytes:
        assert limit > 0
        return json.dumps(self.answer).encode()


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def key_pair(key_id: str) -> tuple[Any, dict[str, Any]]:
    private = ec.generate_private_key(ec.SECP256R1())
    public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(private.public_key()))
    return private, {**public, "kid": key_id, "alg": "ES256", "use": "sig"}


def signed(private: Any, key_id: str | None = "k1", **claims: Any) -> str:
    whole = {"iss": ISSUER, "sub": "ada", "aud": ["r"], "scope": "a b", "exp": 4_000_000_000, **claims}
    headers = {} if key_id is None else {"kid": key_id}
    return str(
        jwt.encode({name: value for name, value in whole.items() if value is not None}, private, "ES256", headers)
    )


def verifier(sender: Canned, clock: Clock) -> JwtVerifier:
    return JwtVerifier(issuer=ISSUER, jwks_url="https://as.example/keys", sender=sender, now=clock)


def test_a_fixed_token_stands_for_what_was_said_and_no_other_does() -> None:
    tokens = StaticTokens({"one": Attestation(subject="ada"), "two": Attestation(subject="bob")})

    assert tokens("two").subject == "bob"
    with pytest.raises(TokenRejected):
        tokens("three")
    assert "one" not in repr(tokens)


def test_an_empty_token_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError):
        StaticTokens({"": Attestation(subject="ada")})


def test_a_token_that_stands_for_no_attestation_is_a_mistake_that_is_told_without_the_token() -> None:
    with pytest.raises(ConfigurationError, match=r"Attestation\(subject=.*not a str") as caught:
        StaticTokens({"s3cret": "ada"})  # type: ignore[dict-item]
    assert "s3cret" not in str(caught.value)


async def test_a_signed_token_says_who_for_whom_and_what() -> None:
    private, public = key_pair("k1")
    attested = await verifier(Canned({"keys": [public]}), Clock())(signed(private, azp="app"))

    assert attested.subject == "ada"
    assert attested.audiences == ("r",)
    assert attested.scopes == {"a", "b"}
    assert attested.client_id == "app"


@pytest.mark.parametrize(
    "claims",
    [{"iss": "https://as.example/"}, {"exp": 1}, {"exp": None}, {"nbf": 4_000_000_000}, {"sub": None}, {"sub": 7}],
)
async def test_a_token_of_another_issuer_or_time_or_of_nobody_is_rejected(claims: dict[str, Any]) -> None:
    private, public = key_pair("k1")

    with pytest.raises(TokenRejected):
        await verifier(Canned({"keys": [public]}), Clock())(signed(private, **claims))


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "eyJhbGciOiJub25lIn0.e30."])
async def test_what_is_no_token_is_rejected(token: str) -> None:
    _, public = key_pair("k1")

    with pytest.raises(TokenRejected):
        await verifier(Canned({"keys": [public]}), Clock())(token)


async def test_a_forged_signature_is_rejected() -> None:
    _, public = key_pair("k1")
    forger, _ = key_pair("k1")

    with pytest.raises(TokenRejected):
        await verifier(Canned({"keys": [public]}), Clock())(signed(forger))


async def test_keys_are_fetched_once_and_again_when_they_rotate_but_not_at_anybodys_will() -> None:
    (old, old_public), (new, new_public) = key_pair("k1"), key_pair("k2")
    sender, clock = Canned({"keys": [old_public]}), Clock()
    check = verifier(sender, clock)
    await check(signed(old))
    await check(signed(old))
    assert len(sender.requests) == 1

    sender.answer = {"keys": [new_public]}
    with pytest.raises(TokenRejected):
        await check(signed(new, "k2"))
    assert len(sender.requests) == 1
    clock.now += 31
    assert (await check(signed(new, "k2"))).subject == "ada"
    for _ in range(50):
        with pytest.raises(TokenRejected):
            await check(signed(new, "k9"))
    assert len(sender.requests) == 2


async def test_a_token_without_a_key_id_is_checked_with_the_only_key() -> None:
    private, public = key_pair("k1")

    assert (await verifier(Canned({"keys": [public]}), Clock())(signed(private, None))).subject == "ada"


@pytest.mark.parametrize(
    "sender", [Canned({}, 500), Canned([]), Canned({"keys": "x"}), Canned(NotSent("down")), Canned({"keys": []})]
)
async def test_keys_that_cannot_be_had_are_no_verdict_on_the_token(sender: Canned) -> None:
    private, _ = key_pair("k1")

    with pytest.raises(VerifierUnavailable):
        await verifier(sender, Clock())(signed(private))


@pytest.mark.parametrize("algorithm", ["HS256", "none"])
def test_algorithms_that_prove_nothing_are_refused(algorithm: str) -> None:
    with pytest.raises(ConfigurationError):
        JwtVerifier(issuer=ISSUER, jwks_url="https://x.example", algorithms=[algorithm])


def introspection(sender: Canned, clock: Clock, **options: Any) -> Introspection:
    return Introspection(
        "https://as.example/introspect", client_id="me:1", client_secret="s3cret", sender=sender, now=clock, **options
    )


async def test_the_server_explains_a_token_to_whom_it_knows() -> None:
    sender = Canned({"active": True, "sub": "ada", "aud": "r", "scope": "a", "client_id": "app"})
    attested = await introspection(sender, Clock())("tok/en")

    assert attested == Attestation(
        subject="ada", audiences=("r",), scopes=frozenset({"a"}), client_id="app", claims=sender.answer
    )
    (request,) = sender.requests
    assert dict(urllib.parse.parse_qsl(request.body.decode()))["token"] == "tok/en"
    credentials = dict(request.headers)["Authorization"].removeprefix("Basic ")
    assert base64.b64decode(credentials) == b"me%3A1:s3cret"


async def test_an_explanation_is_kept_for_a_while_and_never_longer_than_the_token() -> None:
    clock = Clock()
    sender = Canned({"active": True, "sub": "ada", "exp": clock.now + 10})
    check = introspection(sender, clock)
    await check("t")
    await check("t")
    assert len(sender.requests) == 1
    clock.now += 11
    await check("t")
    assert len(sender.requests) == 2


async def test_a_token_that_is_not_active_is_rejected_and_forgotten() -> None:
    clock = Clock()
    sender = Canned({"active": False})

    with pytest.raises(TokenRejected):
        await introspection(sender, clock)("t")


async def test_the_kept_explanations_are_bounded() -> None:
    check = introspection(Canned({"active": True, "sub": "ada"}), Clock(), cache_size=3)
    for number in range(10):
        await check(f"t{number}")

    assert len(check._cache) == 3
    assert "s3cret" not in repr(check)


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"exp": 1}, "the token has expired"),
        ({"exp": None}, "the token says no exp"),
        ({"nbf": 4_000_000_000}, "the token is not valid yet"),
        ({"iss": "https://as.example/"}, "the token is not one of the issuer's"),
    ],
)
async def test_why_a_token_is_refused_is_told_apart(claims: dict[str, Any], said: str) -> None:
    private, public = key_pair("k1")
    with pytest.raises(TokenRejected, match=said):
        await verifier(Canned({"keys": [public]}), Clock())(signed(private, **claims))


@pytest.mark.parametrize("kind", ["keys", "introspection"])
async def test_connections_of_its_own_are_closed_when_the_server_stops(kind: str) -> None:
    private, public = key_pair("k1")
    answer = {"keys": [public]} if kind == "keys" else {"active": True, "sub": "ada", "aud": RESOURCE}
    open_connections: set[asyncio.StreamWriter] = set()
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_connections.add(writer)
        await reader.readuntil(b"\r\n\r\n")
        body = json.dumps(answer).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        while await reader.read(2**16):  # the rest of a form, then the end
            pass
        writer.close()
        ended.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
        verify: Any = JwtVerifier(issuer=ISSUER, jwks_url=url)
        if kind == "introspection":
            verify = Introspection(url, client_id="me", client_secret="s")
        server = Server("protected", auth=Bearer(verify, resource=RESOURCE))
        await server.start()
        assert (await verify(signed(private))).subject == "ada"
        assert open_connections
        assert not ended.is_set()
        await server.stop()
        async with asyncio.timeout(10):
            await ended.wait()


async def test_a_verifier_that_holds_nothing_stops_with_its_server() -> None:
    server = Server("protected", auth=Bearer(StaticTokens({"t": Attestation(subject="ada")}), resource=RESOURCE))
    await server.start()
    assert server.started
    await server.stop()
    assert not server.started
