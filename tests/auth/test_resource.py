"""Bearer protection: who is admitted, what a refusal says, and that nothing gives a token away."""

from __future__ import annotations

import json
import logging

import pytest

from mcprelay.auth.principal import Principal
from mcprelay.auth.resource import Attestation, Bearer, Denied, TokenRejected, VerifierUnavailable
from mcprelay.errors import ConfigurationError

RESOURCE = "https://api.example.com/mcp"


def attest(**changes: object) -> Attestation:
    return Attestation(**{"subject": "ada", "audiences": (RESOURCE,), "scopes": frozenset({"read"}), **changes})


def bearer(outcome: object = None, **options: object) -> Bearer:
    async def verify(token: str) -> Attestation:
        assert token == "secret-token"
        if isinstance(outcome, Exception):
            raise outcome
        return outcome or attest()

    return Bearer(verify, **{"resource": RESOURCE, "scopes": ["read"], **options})


async def denied(guard: Bearer, authorization: str | None = "Bearer secret-token") -> Denied:
    result = await guard.admit(authorization)
    assert isinstance(result, Denied)
    return result


async def test_a_good_token_is_admitted_with_all_that_it_allows() -> None:
    guard = bearer(attest(scopes=frozenset({"read", "write"}), client_id="app", claims={"x": 1}))

    assert await guard.admit("bearer  secret-token") == Principal("ada", frozenset({"read", "write"}), "app", {"x": 1})


async def test_a_verifier_may_be_a_plain_function() -> None:
    guard = Bearer(lambda _: attest(), resource=RESOURCE)

    assert isinstance(await guard.admit("Bearer x"), Principal)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (TokenRejected("secret-token\nhas expired"), "(invalid_token): Invalid token: ...'has expired."),
        (attest(audiences=("https://other.example",)), "(wrong_resource): Invalid token: the token was issued for"),
        (attest(scopes=frozenset()), "(insufficient_scope): The token lacks the scope read."),
    ],
)
async def test_a_refused_token_leaves_one_line_with_the_reason_and_without_the_token(
    outcome: object, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    await denied(bearer(outcome))

    (record,) = caplog.records
    assert record.name == "mcprelay.auth"
    assert record.levelname == "WARNING"
    assert said in record.getMessage()
    assert "secret-token" not in caplog.text


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Basic abc", "Bearer a b", "Bearer ä", "Bearersecret"]
)
async def test_without_a_token_the_challenge_says_where_to_get_one_and_no_error(header: str | None) -> None:
    refusal = await denied(bearer(), header)

    assert refusal.status == 401
    assert refusal.challenge is not None
    assert "error=" not in refusal.challenge
    assert 'scope="read"' in refusal.challenge
    assert 'resource_metadata="https://api.example.com/.well-known/oauth-protected-resource/mcp"' in refusal.challenge


@pytest.mark.parametrize(
    ("outcome", "status", "error"),
    [
        (TokenRejected("it has expired"), 401, "invalid_token"),
        (attest(audiences=()), 401, "invalid_token"),
        (attest(audiences=(RESOURCE + "/",)), 401, "invalid_token"),
        (attest(audiences=("https://other.example",)), 401, "invalid_token"),
        (attest(audiences=(RESOURCE, "https://other.example")), 401, "invalid_token"),
        (attest(scopes=frozenset()), 403, "insufficient_scope"),
        (VerifierUnavailable("down"), 503, None),
        (RuntimeError("a bug with secret-token"), 503, None),
    ],
)
async def test_each_refusal_has_its_status_and_its_error(outcome: object, status: int, error: str | None) -> None:
    refusal = await denied(bearer(outcome))

    assert refusal.status == status
    assert (refusal.challenge is None) is (error is None)
    assert error is None or f'error="{error}"' in refusal.challenge
    assert "secret-token" not in f"{refusal}"


async def test_several_audiences_are_good_where_that_is_said() -> None:
    guard = bearer(attest(audiences=("https://other.example", RESOURCE)), shared_audiences=True)

    assert isinstance(await guard.admit("Bearer secret-token"), Principal)


async def test_a_lacking_scope_is_named_together_with_all_that_are_needed() -> None:
    refusal = await denied(bearer(attest(scopes=frozenset({"b"})), scopes=["a", "b"]))

    assert 'scope="a b"' in str(refusal.challenge)


async def test_what_a_verifier_says_cannot_end_the_header(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    refusal = await denied(bearer(TokenRejected('a"\r\nSet-Cookie: x\\')))

    assert "\r" not in str(refusal.challenge)
    assert str(refusal.challenge).count('"') == 6
    assert "secret-token" not in caplog.text


def test_the_metadata_names_the_resource_byte_for_byte() -> None:
    guard = bearer(authorization_servers=["https://as.example"], documentation="https://docs.example")

    assert json.loads(guard.metadata) == {
        "resource": RESOURCE,
        "authorization_servers": ["https://as.example"],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["read"],
        "resource_documentation": "https://docs.example",
    }
    assert guard.metadata_path == "/.well-known/oauth-protected-resource/mcp"
    assert (
        Bearer(lambda _: attest(), resource="https://x.example").metadata_path
        == "/.well-known/oauth-protected-resource"
    )


@pytest.mark.parametrize("resource", ["", "api.example.com", "ftp://x.example", "https://x.example/#f", "https://"])
def test_a_resource_that_no_token_can_name_is_a_mistake(resource: str) -> None:
    with pytest.raises(ConfigurationError, match="resource"):
        bearer(resource=resource)


@pytest.mark.parametrize("scopes", ["read", ["a b"], ['a"'], [""]])
def test_scopes_are_a_list_of_names(scopes: object) -> None:
    with pytest.raises(ConfigurationError, match="scopes"):
        bearer(scopes=scopes)


def test_metadata_names_no_authorization_servers_where_there_are_none():
    assert "authorization_servers" not in json.loads(Bearer(lambda _: None, resource=RESOURCE).metadata)


def test_offline_access_and_a_single_issuer_are_mistakes():
    with pytest.raises(ConfigurationError, match="offline_access is between clients"):
        Bearer(lambda _: None, resource=RESOURCE, scopes=["offline_access"])
    with pytest.raises(ConfigurationError, match="a list of issuers"):
        Bearer(lambda _: None, resource=RESOURCE, authorization_servers="https://issuer.example")
