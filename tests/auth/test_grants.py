"""The grants without a person: client credentials, workload identity, enterprise-managed authorization."""

import json

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from mcprelay.auth import ClientCredentials, IdentityAssertion, JwtBearer, MemoryStore, Refuse, Registered
from mcprelay.errors import AuthorizationRequired, ConfigurationError
from tests.auth.world import ISSUER, MCP, Issuer, Resource, World, answer, call, form, header, world

PRIVATE = ec.generate_private_key(ec.SECP256R1())
PEM = PRIVATE.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"


def unasked(make, network: World, **settings):
    """Credentials of a program that can ask nobody."""
    return make(network, interaction=Refuse(), **settings).bind(MCP, sender=network)


async def test_a_program_gets_a_token_with_its_secret(make):
    issuer = Issuer(token_endpoint_auth_methods_supported=["client_secret_post", "client_secret_basic"])
    network, _, _ = world(Resource(scopes_supported=["a", "b"]), issuer)
    client = Registered(client_id="job", client_secret="hush-hush")
    assert (await call(unasked(make, network, grant=ClientCredentials(), client=client), network)).status == 200
    assert issuer.token_requests == [
        {"grant_type": "client_credentials", "resource": MCP, "scope": "a b", "client_id": "job"}
    ]
    assert header(network.sent_to("/token")[0], "authorization").startswith("Basic ")
    assert issuer.registrations == []


async def test_a_program_gets_a_token_with_a_signed_assertion(make, clock):
    issuer = Issuer(
        token_endpoint_auth_methods_supported=["private_key_jwt"],
        token_endpoint_auth_signing_alg_values_supported=["RS256", "ES256"],
    )
    network, _, _ = world(None, issuer)
    client = Registered(client_id="job", private_key=PEM, key_id="k", issuer=ISSUER)
    await call(unasked(make, network, grant=ClientCredentials(), client=client), network)
    sent = issuer.token_requests[0]
    assert sent["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    options = {"verify_exp": False, "verify_iat": False}
    said = jwt.decode(
        sent["client_assertion"], PRIVATE.public_key(), algorithms=["ES256"], audience=ISSUER, options=options
    )
    assert (said["iss"], said["sub"], said["iat"], said["exp"]) == ("job", "job", int(clock.now), int(clock.now) + 60)
    assert jwt.get_unverified_header(sent["client_assertion"])["kid"] == "k"
    assert "client_id" not in sent


async def test_each_assertion_is_used_once(make, clock):
    issuer = Issuer(token_endpoint_auth_methods_supported=["private_key_jwt"])
    issuer.grants = {"expires_in": 100}
    network, _, _ = world(None, issuer)
    client = Registered(client_id="job", private_key=PEM)
    credentials = unasked(make, network, grant=ClientCredentials(), client=client)
    await call(credentials, network)
    clock.now += 200
    await call(credentials, network)
    assert len({sent["client_assertion"] for sent in issuer.token_requests}) == 2


async def test_an_algorithm_that_the_server_does_not_verify_is_an_error_before_anything_is_sent(make):
    issuer = Issuer(
        token_endpoint_auth_methods_supported=["private_key_jwt"],
        token_endpoint_auth_signing_alg_values_supported=["RS256"],
    )
    network, _, _ = world(None, issuer)
    with pytest.raises(AuthorizationRequired, match="signs ES256, and the authorization server verifies RS256 only"):
        await call(
            unasked(make, network, grant=ClientCredentials(), client=Registered(client_id="job", private_key=PEM)),
            network,
        )
    assert issuer.token_requests == []


async def test_a_way_to_authenticate_that_the_server_does_not_take_is_an_error(make):
    network, _, issuer = world(None, Issuer(token_endpoint_auth_methods_supported=["private_key_jwt"]))
    client = Registered(client_id="job", client_secret="hush-hush")
    with pytest.raises(AuthorizationRequired, match="takes private_key_jwt from a client"):
        await call(unasked(make, network, grant=ClientCredentials(), client=client), network)
    assert issuer.token_requests == []


async def test_a_token_of_ones_own_is_renewed_without_a_refresh_token(make, clock):
    network, server, issuer = world()
    issuer.grants = {"expires_in": 100}
    credentials = unasked(make, network, grant=ClientCredentials(), client=Registered(client_id="job"))
    await call(credentials, network)
    clock.now += 95
    assert (await call(credentials, network)).attempts == 1
    assert header(server.calls[-1], "authorization") == "Bearer token-2"


async def test_a_program_steps_up_by_asking_for_the_union(make):
    network, server, issuer = world()
    server.challenge = 'Bearer scope="a"'
    credentials = unasked(make, network, grant=ClientCredentials(), client=Registered(client_id="job"))
    await call(credentials, network)
    server.refusals = [answer(403, {}, www_authenticate='Bearer error="insufficient_scope", scope="b"')]
    assert (await call(credentials, network)).status == 200
    assert [sent["scope"] for sent in issuer.token_requests] == ["a", "a b"]


# ---------------------------------------------------------------------------------------------------- workload identity


async def test_a_workload_shows_the_assertion_of_its_platform(make):
    asked = []

    async def assertion(audience: str) -> str:
        asked.append(audience)
        return "plat.form.jwt"

    network, _, issuer = world(None, Issuer(registration_endpoint=None))
    client = Registered(client_id="workload")
    await call(unasked(make, network, grant=JwtBearer(assertion=assertion), client=client), network)
    assert asked == [ISSUER]
    assert issuer.token_requests == [
        {
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "assertion": "plat.form.jwt",
            "resource": MCP,
            "client_id": "workload",
        }
    ]


@pytest.mark.parametrize("error", ["invalid_grant", "invalid_scope", "unauthorized_client"])
async def test_a_refused_assertion_is_not_sent_again_nor_another_grant_tried(make, error):
    network, _, issuer = world(None, Issuer(registration_endpoint=None))
    issuer.refuse = [answer(400, {"error": error})] * 9
    with pytest.raises(AuthorizationRequired, match=error):
        await call(
            unasked(make, network, grant=JwtBearer(assertion="a.b.c"), client=Registered(client_id="workload")), network
        )
    assert len(issuer.token_requests) == 1
    assert issuer.questions == []


# ------------------------------------------------------------------------------------- enterprise-managed authorization


class Provider:
    """A company's identity provider."""

    def __init__(self, **members):
        self.requests = []
        self.answer = {"access_token": "id.jag.jwt", "issued_token_type": ID_JAG, "token_type": "N_A", **members}
        self.status = 200

    def __call__(self, request):
        self.requests.append(request)
        return answer(self.status, self.answer)


def enterprise(provider: Provider, **more):
    issuer = Issuer(token_endpoint_auth_methods_supported=["client_secret_basic"])
    network, _server, _ = world(Resource(scopes_supported=["chat"]), issuer)
    network.add("https://idp.corp.example", provider)
    grant = IdentityAssertion(
        assertion="id.token.jwt", token_endpoint="https://idp.corp.example/token", client_id="at-idp", **more
    )
    client = Registered(client_id="at-as", client_secret="hush-hush", issuer=ISSUER)
    return network, issuer, {"grant": grant, "client": client}


async def test_an_identity_assertion_becomes_a_grant_and_the_grant_a_token(make):
    provider = Provider()
    network, issuer, settings = enterprise(provider)
    assert (await call(unasked(make, network, **settings), network)).status == 200
    assert form(provider.requests[0]) == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": ID_JAG,
        "audience": ISSUER,
        "resource": MCP,
        "subject_token": "id.token.jwt",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "scope": "chat",
        "client_id": "at-idp",
    }
    assert issuer.token_requests[0]["assertion"] == "id.jag.jwt"
    assert header(network.sent_to("as.example.com/token")[0], "authorization").startswith("Basic ")


async def test_the_provider_may_know_a_secret_and_another_kind_of_assertion(make):
    provider = Provider()
    network, _, settings = enterprise(provider, client_secret="idp-hush", assertion_type="saml2")
    await call(unasked(make, network, **settings), network)
    sent = form(provider.requests[0])
    assert sent["client_secret"] == "idp-hush"
    assert sent["subject_token_type"] == "urn:ietf:params:oauth:token-type:saml2"


async def test_the_provider_may_be_inside_because_the_user_named_it(make):
    async def resolver(host: str, port: int) -> list[str]:
        return ["10.0.0.5"] if host == "idp.corp.example" else ["93.184.216.34"]

    network, _, settings = enterprise(Provider())
    assert (await call(unasked(make, network, resolver=resolver, **settings), network)).status == 200


async def test_what_the_provider_refuses_is_told_with_its_step(make):
    provider = Provider()
    provider.status, provider.answer = 400, {"error": "invalid_grant", "error_description": "audience"}
    network, issuer, settings = enterprise(provider)
    with pytest.raises(
        AuthorizationRequired,
        match=r"Identity assertion exchange failed: https://idp\.corp\.example/token answered 400 .*: audience",
    ):
        await call(unasked(make, network, **settings), network)
    assert issuer.token_requests == []


async def test_a_token_of_another_type_is_not_used_as_a_grant(make):
    network, issuer, settings = enterprise(Provider(issued_token_type="urn:ietf:params:oauth:token-type:access_token"))
    with pytest.raises(AuthorizationRequired, match="instead of urn:ietf:params:oauth:token-type:id-jag"):
        await call(unasked(make, network, **settings), network)
    assert issuer.token_requests == []


# ------------------------------------------------------------------------------------------------------------- remains


async def test_a_way_to_authenticate_is_remembered_over_a_restart(make, clock):
    issuer = Issuer(token_endpoint_auth_methods_supported=["client_secret_post"])
    network, _, _ = world(None, issuer)
    store = MemoryStore()
    client = Registered(client_id="by hand", client_secret="hush-hush")
    await call(make(network, client=client, store=store).bind(MCP, sender=network), network)
    clock.now += 4000
    await call(make(network, client=client, store=store).bind(MCP, sender=network), network)
    assert issuer.token_requests[-1]["grant_type"] == "refresh_token"
    assert issuer.token_requests[-1]["client_secret"] == "hush-hush"


async def test_a_key_that_is_none_is_a_mistake_of_the_program(make):
    network, _, _ = world(None, Issuer(token_endpoint_auth_methods_supported=["private_key_jwt"]))
    client = Registered(client_id="job", private_key="nonsense")
    with pytest.raises((AuthorizationRequired, ConfigurationError), match="not a private key in PEM form"):
        await call(unasked(make, network, grant=ClientCredentials(), client=client), network)


async def test_where_nobody_can_be_asked_the_error_says_what_to_do(make):
    network, _, _ = world()
    auth = make(network, interaction=Refuse("run: mcprelay login work"))
    with pytest.raises(AuthorizationRequired, match="no person can be asked here; run: mcprelay login work"):
        await call(auth.bind(MCP, sender=network), network)


async def test_credentials_that_cannot_be_registered_are_asked_for_by_name(make):
    network, _, _ = world(None, Issuer(registration_endpoint=None))
    with pytest.raises(AuthorizationRequired, match=r"Register one by hand and pass client=Registered"):
        await call(make(network).bind(MCP, sender=network), network)


@pytest.mark.clause("auth-registration.redirect-refused", "auth-registration.redirect-refused-error")
async def test_a_refused_registration_names_the_redirect_uri_and_the_type(make):
    network, _, issuer = world()
    issuer.register = lambda request: answer(400, {"error": "invalid_redirect_uri", "error_description": "no http"})
    with pytest.raises(
        AuthorizationRequired, match=r"invalid_redirect_uri: no http.*redirect_uris=\['http://127.*of a native client"
    ):
        await call(make(network).bind(MCP, sender=network), network)


async def test_an_answer_to_a_registration_that_makes_no_sense_is_refused(make):
    network, _, issuer = world()
    for body in (
        {},
        {"client_id": ""},
        {"client_id": 1},
        {"client_id": "x", "client_secret": "s", "token_endpoint_auth_method": "tls_client_auth"},
    ):
        issuer.register = lambda request, body=body: answer(201, body)
        with pytest.raises(AuthorizationRequired, match="Client registration failed"):
            await call(make(network).bind(MCP, sender=network), network)
    assert json.dumps(issuer.questions) == "[]"
