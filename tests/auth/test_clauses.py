"""What the specification asks of a client and no other test tells in one piece."""

import sys
from urllib.parse import parse_qs, urlsplit

import pytest

from mcprelay import Client
from mcprelay.auth import Application, Registered
from mcprelay.errors import AuthorizationRequired, ConfigurationError
from tests.auth.world import MCP, Issuer, Resource, call, header, world

DOCUMENT = "https://app.example.com/client.json"


@pytest.mark.clause("auth-registration.order", "auth.client-id")
async def test_a_client_is_known_by_hand_then_by_its_document_then_on_the_spot_then_not_at_all(make):
    async def asked_as(issuer: Issuer, **settings) -> str:
        network, _, _ = world(None, issuer)
        await call(make(network, **settings).bind(MCP, sender=network), network)
        return issuer.questions[0]["client_id"]

    every = {"client_id_metadata_document_supported": True}
    by_hand = Registered(client_id="by-hand")
    assert await asked_as(Issuer(**every), client=by_hand, client_document=DOCUMENT) == "by-hand"
    assert await asked_as(Issuer(**every), client_document=DOCUMENT) == DOCUMENT
    assert await asked_as(Issuer(**every)) == "client-1"
    assert await asked_as(Issuer(), client_document=DOCUMENT) == "client-1"
    with pytest.raises(AuthorizationRequired, match="Register one by hand"):
        await asked_as(Issuer(registration_endpoint=None), client_document=DOCUMENT)


@pytest.mark.clause("auth.stdio", "auth.other-transports")
async def test_credentials_belong_to_http_and_to_nothing_else():
    with pytest.raises(ConfigurationError, match="auth belongs to an address"):
        Client([sys.executable, "-c", ""], auth="token")


@pytest.mark.clause("auth.iss-validated", "auth.issuer-recorded")
@pytest.mark.parametrize("iss", ["https://evil.example", "https://as.example.com/"])
async def test_a_code_of_another_issuer_is_never_sent_anywhere(make, iss):
    network, _, issuer = world()
    issuer.iss = iss
    with pytest.raises(AuthorizationRequired, match="comes from the issuer"):
        await call(make(network).bind(MCP, sender=network), network)
    assert len(issuer.questions) == 1
    assert issuer.token_requests == []


@pytest.mark.clause("auth.token-header", "auth.token-every-request", "auth.token-not-in-query")
async def test_a_token_is_in_the_header_of_every_request_and_in_no_address(make):
    network, resource, _ = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    for method in ("POST", "GET", "DELETE"):
        await call(credentials, network, method=method)
        assert header(resource.calls[-1], "authorization") == "Bearer token-1"
    assert not any("token-1" in request.url for request in network.requests)


@pytest.mark.clause("auth.resource-slash", "auth.resource-target")
async def test_no_slash_is_added_to_the_resource_of_a_server_at_the_root(make):
    url = "https://mcp.example.com"
    resource = Resource(url)
    resource.places = ["/.well-known/oauth-protected-resource"]
    resource.challenge = "Bearer"
    network, _, issuer = world(resource)
    await call(make(network).bind(url, sender=network), network, url)
    assert issuer.questions[0]["resource"] == url
    assert issuer.token_requests[0]["resource"] == url


@pytest.mark.clause("auth.both-metadata", "auth-security.pkce-oidc", "auth-security.pkce-metadata")
@pytest.mark.parametrize(
    "place",
    [
        "/.well-known/oauth-authorization-server/tenant1",
        "/.well-known/openid-configuration/tenant1",
        "/tenant1/.well-known/openid-configuration",
    ],
)
@pytest.mark.parametrize("methods", [["S256"], None])
async def test_metadata_of_each_kind_are_understood_and_must_speak_of_pkce(make, place, methods):
    issuer = Issuer("https://as.example.com/tenant1", code_challenge_methods_supported=methods)
    issuer.places = [place]
    network, _, _ = world(Resource(issuer=issuer.url), issuer)
    credentials = make(network).bind(MCP, sender=network)
    if methods:
        assert (await call(credentials, network)).status == 200
    else:
        with pytest.raises(AuthorizationRequired, match="code_challenge_methods_supported is missing"):
            await call(credentials, network)
        assert issuer.questions == []


@pytest.mark.clause("auth-security.redirect-https")
@pytest.mark.parametrize("uri", ["http://app.example.com/cb", "com.example.app:/cb", "https://u:p@app.example.com/cb"])
async def test_nobody_is_sent_back_over_plain_http_or_to_a_place_that_is_none(make, uri):
    network, _, issuer = world()

    async def ask(url: str) -> str:
        raise AssertionError(url)

    with pytest.raises(ConfigurationError, match="it must be https, or http on this machine"):
        await call(make(network, interaction=Application(uri, ask)).bind(MCP, sender=network), network)
    assert issuer.registrations == []


@pytest.mark.clause("auth-security.redirect-registered", "auth-security.pkce", "auth-security.s256")
async def test_the_redirect_uri_is_registered_and_each_request_has_a_challenge_of_its_own(make):
    network, resource, issuer = world()
    issuer.grants = {}
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    resource.accepts = lambda token: token == "token-2"
    await call(credentials, network)
    for question in issuer.questions:
        assert question["redirect_uri"] in issuer.registrations[0]["redirect_uris"]
        assert question["code_challenge_method"] == "S256"
    for name in ("code_challenge", "state"):
        assert len({question[name] for question in issuer.questions}) == 2
    verifiers = {sent["code_verifier"] for sent in issuer.token_requests}
    assert len(verifiers) == 2
    assert all(43 <= len(verifier) <= 128 for verifier in verifiers)


@pytest.mark.clause("auth.scope-authoritative", "auth.scope-sets", "auth.least-privilege")
async def test_the_challenge_decides_what_is_asked_for_whatever_the_metadata_offer(make):
    resource = Resource(scopes_supported=["profile", "admin"])
    resource.challenge = 'Bearer scope="files:read"'
    network, _, issuer = world(resource)
    await call(make(network).bind(MCP, sender=network), network)
    asked = parse_qs(urlsplit(network.sent_to("/authorize")[0].url).query)
    assert asked["scope"] == ["files:read"]
    assert issuer.questions[0]["scope"] == "files:read"
