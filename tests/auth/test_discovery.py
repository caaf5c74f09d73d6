import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.auth.address import parse
from mcprelay.auth.discovery import (
    Finding,
    covers,
    fallback_metadata,
    finding,
    is_document,
    read_fallback,
    read_resource,
    read_server,
    resource_places,
    server_places,
)
from mcprelay.errors import AuthorizationRequired
from tests.auth.world import ISSUER, MCP, Issuer, Resource, answer, call, header, world


def encoded(**members) -> bytes:
    return json.dumps(members).encode()


@pytest.mark.clause("auth-discovery.both-mechanisms", "auth.discovery")
@pytest.mark.parametrize(
    ("url", "places"),
    [
        (
            "https://example.com/public/mcp",
            [
                "https://example.com/.well-known/oauth-protected-resource/public/mcp",
                "https://example.com/.well-known/oauth-protected-resource",
            ],
        ),
        ("https://example.com", ["https://example.com/.well-known/oauth-protected-resource"]),
        ("https://example.com/", ["https://example.com/.well-known/oauth-protected-resource"]),
        (
            "https://example.com:8443/mcp/?tenant=a",
            [
                "https://example.com:8443/.well-known/oauth-protected-resource/mcp/?tenant=a",
                "https://example.com:8443/.well-known/oauth-protected-resource",
            ],
        ),
    ],
)
def test_resource_metadata_is_looked_for_at_the_path_and_then_at_the_root(url: str, places: list[str]):
    assert list(resource_places(parse(url))) == places


def test_the_place_that_the_challenge_names_comes_first_and_once():
    first, *rest = resource_places(parse(MCP), named="https://mcp.example.com/custom")
    assert first == "https://mcp.example.com/custom"
    assert len(rest) == 2
    named = "https://mcp.example.com/.well-known/oauth-protected-resource"
    assert resource_places(parse(MCP), named=named) == (named, named + "/mcp")


@pytest.mark.clause(
    "auth-discovery.many-endpoints", "auth-discovery.order-with-path", "auth-discovery.order-without-path"
)
@pytest.mark.parametrize(
    ("issuer", "places"),
    [
        (
            "https://as.example.com",
            [
                "https://as.example.com/.well-known/oauth-authorization-server",
                "https://as.example.com/.well-known/openid-configuration",
            ],
        ),
        (
            "https://as.example.com/",
            [
                "https://as.example.com/.well-known/oauth-authorization-server",
                "https://as.example.com/.well-known/openid-configuration",
            ],
        ),
        (
            "https://as.example.com/tenant1",
            [
                "https://as.example.com/.well-known/oauth-authorization-server/tenant1",
                "https://as.example.com/.well-known/openid-configuration/tenant1",
                "https://as.example.com/tenant1/.well-known/openid-configuration",
            ],
        ),
        (
            "https://as.example.com/realms/x/",
            [
                "https://as.example.com/.well-known/oauth-authorization-server/realms/x",
                "https://as.example.com/.well-known/openid-configuration/realms/x",
                "https://as.example.com/realms/x/.well-known/openid-configuration",
            ],
        ),
    ],
)
def test_server_metadata_is_looked_for_in_the_specified_places_and_no_others(issuer: str, places: list[str]):
    assert list(server_places(parse(issuer))) == places


@pytest.mark.parametrize(
    ("status", "found"),
    [
        (200, Finding.HERE),
        (301, Finding.ELSEWHERE),
        (400, Finding.ELSEWHERE),
        (401, Finding.ELSEWHERE),
        (403, Finding.ELSEWHERE),
        (404, Finding.ELSEWHERE),
        (405, Finding.ELSEWHERE),
        (408, Finding.BROKEN),
        (429, Finding.BROKEN),
        (500, Finding.BROKEN),
        (503, Finding.BROKEN),
    ],
)
def test_a_closed_place_means_the_next_and_a_failing_server_means_an_error(status: int, found: Finding):
    assert finding(status) is found


@pytest.mark.parametrize(
    "resource",
    [
        "https://mcp.example.com/v1/mcp",
        "https://mcp.example.com/v1/",
        "https://mcp.example.com/v1",
        "https://mcp.example.com/",
        "https://mcp.example.com",
    ],
)
def test_a_resource_identifier_is_the_url_or_what_the_url_lies_below(resource: str):
    assert covers(resource, parse("https://mcp.example.com/v1/mcp"))


@pytest.mark.parametrize(
    "resource",
    [
        "https://mcp.example.com/v1/mcp/",
        "https://mcp.example.com/v1/mcp/more",
        "https://mcp.example.com/v1/m",
        "https://mcp.example.com/v2",
        "https://mcp.example.com/V1/mcp",
        "https://MCP.example.com/v1/mcp",
        "https://mcp.example.com:443/v1/mcp",
        "http://mcp.example.com/v1/mcp",
        "https://mcp.example.com/v1/%6dcp",
        "https://evil.example.com/v1/mcp",
        "https://mcp.example.com.evil.example/v1/mcp",
        "https://mcp.example.com/v1/../v1/mcp",
        "",
    ],
)
def test_every_other_identifier_is_refused_however_little_it_differs(resource: str):
    assert not covers(resource, parse("https://mcp.example.com/v1/mcp"))


def test_an_identifier_that_the_user_sets_is_the_only_one():
    body = encoded(resource="https://mcp.example.com/mcp/", authorization_servers=[ISSUER])
    server = parse(MCP)
    assert read_resource(body, server=server, expected="https://mcp.example.com/mcp/").resource.endswith("/mcp/")
    with pytest.raises(ValueError, match="resource='https://other' was set"):
        read_resource(body, server=server, expected="https://other")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (encoded(resource=MCP), "authorization_servers"),
        (encoded(resource=MCP, authorization_servers=[]), "names no authorization server"),
        (encoded(authorization_servers=[ISSUER]), "resource"),
        (encoded(resource=1, authorization_servers=[ISSUER]), "resource"),
        (encoded(resource=MCP, authorization_servers=[ISSUER], scopes_supported="mcp"), "scopes_supported"),
        (b"{", "not the metadata"),
        (b"\xff{}", "not the metadata"),
    ],
)
def test_resource_metadata_without_what_it_must_hold_is_refused_with_the_reason(body: bytes, reason: str):
    with pytest.raises(ValueError, match=reason):
        read_resource(body, server=parse(MCP))


def test_members_that_are_null_count_as_absent():
    body = encoded(resource=MCP, authorization_servers=[ISSUER], scopes_supported=None, unknown={"a": [1]})
    assert read_resource(body, server=parse(MCP)).scopes_supported is None


@pytest.mark.clause("auth-discovery.issuer-identical", "auth-discovery.issuer-mismatch-rejected")
@pytest.mark.parametrize("issuer", [ISSUER + "/", ISSUER.upper(), ISSUER + ":443", "http://as.example.com", "x"])
def test_an_issuer_is_compared_byte_for_byte(issuer: str):
    body = encoded(issuer=issuer)
    with pytest.raises(ValueError, match="is that of the issuer"):
        read_server(body, issuer=ISSUER)
    assert read_server(body, issuer=issuer).issuer == issuer


@pytest.mark.clause("auth-discovery.metadata-validated")
@pytest.mark.parametrize(
    "endpoint", ["javascript:alert(1)", "/relative", "https://a.example/ b", "https://u@a.example/"]
)
def test_an_endpoint_that_is_no_plain_url_spoils_the_metadata(endpoint: str):
    with pytest.raises(ValueError, match="has the authorization_endpoint"):
        read_server(encoded(issuer=ISSUER, authorization_endpoint=endpoint), issuer=ISSUER)


@pytest.mark.clause("handshake.first-auth.base-url", "handshake.first-auth.fallback")
def test_the_fallback_is_the_root_of_the_server_whatever_its_path():
    metadata = fallback_metadata(parse("https://api.example.com/v1/mcp"))
    assert metadata.authorization_endpoint == "https://api.example.com/authorize"
    assert metadata.token_endpoint == "https://api.example.com/token"
    assert metadata.registration_endpoint == "https://api.example.com/register"
    server = parse("https://api.example.com/v1/mcp")
    assert read_fallback(encoded(issuer="https://api.example.com/"), server=server).issuer.endswith("/")
    assert read_fallback(encoded(issuer="https://api.example.com"), server=server).issuer.endswith("com")
    with pytest.raises(ValueError, match="is that of the issuer"):
        read_fallback(encoded(issuer="https://evil.example"), server=server)


@given(st.binary(max_size=300))
def test_no_bytes_do_more_to_the_readers_than_a_value_error(body: bytes):
    is_document(body)
    for read in (lambda: read_resource(body, server=parse(MCP)), lambda: read_server(body, issuer=ISSUER)):
        with pytest.raises(ValueError):
            read()


def test_a_page_is_no_document():
    assert not is_document(b"<!doctype html>")
    assert not is_document(b"[]")
    assert not is_document(b"[" * 100_000)
    assert is_document(b"{}")


# ---------------------------------------------------------------------------------------------- with requests


@pytest.mark.clause("auth-discovery.both-mechanisms", "auth-discovery.www-authenticate")
async def test_the_place_in_the_challenge_is_the_only_one_asked_when_it_is_good(make):
    resource = Resource()
    resource.places = ["/custom/metadata.json"]
    resource.challenge = 'Bearer resource_metadata="https://mcp.example.com/custom/metadata.json"'
    network, _, _ = world(resource)
    await call(make(network).bind(MCP, sender=network), network)
    assert network.sent_to("/.well-known/oauth-protected-resource") == []


@pytest.mark.clause("auth-discovery.both-mechanisms")
async def test_without_a_place_in_the_challenge_the_path_is_asked_and_the_root_left_alone(make):
    resource = Resource()
    resource.challenge = "Bearer"
    network, _, _ = world(resource)
    await call(make(network).bind(MCP, sender=network), network)
    assert [url for url in network.urls if "protected-resource" in url] == [
        "GET https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
    ]


@pytest.mark.clause("auth-discovery.www-authenticate")
@pytest.mark.parametrize("challenge", [None, "Bearer", 'Bearer realm="x"', "Negotiate, Bearer", "%%% nonsense"])
async def test_the_root_is_asked_last(make, challenge):
    resource = Resource(resource="https://mcp.example.com")
    resource.places = ["/.well-known/oauth-protected-resource"]
    resource.challenge = challenge
    network, _, issuer = world(resource)
    assert (await call(make(network).bind(MCP, sender=network), network)).status == 200
    assert issuer.questions[0]["resource"] == "https://mcp.example.com"


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_place_that_is_closed_means_the_next(make, status):
    resource = Resource(resource="https://mcp.example.com")
    resource.places = ["/.well-known/oauth-protected-resource"]
    network, _, _ = world(resource)

    def closed(request):
        if request.url.endswith("/.well-known/oauth-protected-resource/mcp"):
            return answer(status)
        return resource(request)

    network.add(resource.origin, closed)
    assert (await call(make(network).bind(MCP, sender=network), network)).status == 200


@pytest.mark.parametrize("status", [500, 502, 503, 429])
async def test_a_place_that_is_broken_is_an_error_that_names_it(make, status):
    network, resource, _ = world()

    def broken(request):
        return answer(status) if "/.well-known/" in request.url else resource(request)

    network.add(resource.origin, broken)
    with pytest.raises(
        AuthorizationRequired,
        match=rf"Resource metadata discovery failed: \S+/\.well-known/oauth-protected-resource/mcp answered {status}",
    ):
        await call(make(network).bind(MCP, sender=network), network)
    assert len(network.sent_to("/.well-known/")) == 1


async def test_a_page_that_a_server_answers_for_every_path_is_passed_over(make):
    issuer = Issuer()
    issuer.places = ["/.well-known/openid-configuration"]
    network, _, _ = world(None, issuer)

    def application(request):
        found = issuer(request)
        return answer(200) if found.status == 404 else found

    network.add(issuer.origin, application)
    assert (await call(make(network).bind(MCP, sender=network), network)).status == 200


@pytest.mark.clause("auth-discovery.issuer-mismatch-unused")
async def test_metadata_of_another_issuer_is_passed_over_and_never_used(make):
    issuer = Issuer("https://as.example.com/tenant1")
    issuer.places = ["/tenant1/.well-known/openid-configuration"]
    network, _, _ = world(Resource(issuer=issuer.url), issuer)
    trap = Issuer("https://evil.example")

    def crowded(request):
        if "/.well-known/oauth-authorization-server/tenant1" in request.url:
            return answer(200, trap.metadata)
        return issuer(request)

    network.add(issuer.origin, crowded)
    assert (await call(make(network).bind(MCP, sender=network), network)).status == 200
    assert network.sent_to("evil.example") == []
    assert "https://as.example.com/.well-known/oauth-authorization-server" not in {
        request.url for request in network.requests
    }


async def test_resource_metadata_for_another_resource_ends_it_there(make):
    network, _, _issuer = world(Resource(resource="https://evil.example.com/mcp"))
    with pytest.raises(AuthorizationRequired, match=r"is for 'https://evil\.example\.com/mcp', which is not"):
        await call(make(network).bind(MCP, sender=network), network)
    assert network.sent_to("as.example.com") == []
    assert network.sent_to("/authorize") == []


@pytest.mark.clause(
    "handshake.first-auth.metadata",
    "handshake.first-auth.metadata-first",
    "handshake.first-auth.metadata-place",
    "handshake.first-auth.version-header",
)
async def test_a_server_without_metadata_is_its_own_authorization_server(make):
    both = Issuer("https://mcp.example.com", registration_endpoint="https://mcp.example.com/oauth/register")
    resource = Resource()
    resource.metadata = None
    resource.challenge = None
    network, _, _ = world(resource)

    def one_host(request):
        if request.url.endswith("/oauth/register"):
            return both.register(request)
        found = resource(request)
        return both(request) if found.status == 404 else found

    network.add(resource.origin, one_host)
    assert (await call(make(network).bind(MCP, sender=network), network, version="2025-03-26")).status == 200
    assert "resource" not in both.questions[0]
    assert "resource" not in both.token_requests[0]
    found = [request for request in network.requests if "/.well-known/" in request.url]
    assert [header(request, "mcp-protocol-version") for request in found] == ["2025-03-26"] * 3


@pytest.mark.clause("handshake.first-auth.fallback")
async def test_a_server_that_publishes_nothing_has_its_endpoints_at_fixed_paths(make):
    both = Issuer("https://mcp.example.com")
    both.places = []
    resource = Resource()
    resource.metadata = None
    resource.challenge = "Bearer"
    network, _, _ = world(resource)

    def one_host(request):
        found = resource(request)
        return both(request) if found.status == 404 else found

    network.add(resource.origin, one_host)
    assert (await call(make(network).bind(MCP, sender=network), network)).status == 200
    with pytest.raises(AuthorizationRequired, match="oauth-protected-resource answered 404"):
        await call(make(network, fallback="refuse").bind(MCP, sender=network), network)


async def test_a_failure_after_the_fallback_says_that_it_was_a_guess(make):
    resource = Resource()
    resource.metadata = None
    resource.challenge = None
    network, _, _ = world(resource)
    with pytest.raises(
        AuthorizationRequired,
        match=r"/register answered 404.*publishes no resource metadata.*taken for its own authorization server",
    ):
        await call(make(network).bind(MCP, sender=network), network)


async def test_a_server_that_wants_something_other_than_a_token_is_not_guessed_about(make):
    resource = Resource()
    resource.metadata = None
    resource.challenge = 'Basic realm="staff"'
    network, _, _ = world(resource)
    with pytest.raises(AuthorizationRequired, match="Resource metadata discovery failed"):
        await call(make(network).bind(MCP, sender=network), network)
    assert network.sent_to("/register") == []


async def test_the_version_header_is_shown_to_the_server_and_to_nobody_else(make):
    network, _, _ = world()
    await call(make(network).bind(MCP, sender=network), network, version="2025-11-25")
    assert {header(request, "mcp-protocol-version") for request in network.sent_to("as.example.com")} == {None}


async def test_an_issuer_with_credentials_goes_before_the_first_in_the_list(make):
    other = Issuer("https://other.example.com")
    network, resource, issuer = world(None, Issuer(), other)
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    resource.metadata = {"resource": MCP, "authorization_servers": [other.url, ISSUER]}
    resource.accepts = lambda token: token == "token-9"
    issuer.issued = 8
    assert (await call(credentials, network)).status == 200
    assert other.questions == []


async def test_an_answer_that_is_too_long_names_the_setting(make):
    network, _, _ = world(Resource(scopes_supported=["x" * 1000]))
    with pytest.raises(AuthorizationRequired, match="more than answer_bytes=500 bytes"):
        await call(make(network, answer_bytes=500).bind(MCP, sender=network), network)


async def test_a_host_that_cannot_be_reached_is_named(make):
    network, _, _ = world(Resource(issuer="https://gone.example.com"))
    with pytest.raises(
        AuthorizationRequired,
        match=r"Authorization server discovery failed: https://gone\.example\.com/\S+ could not be reached",
    ):
        await call(make(network).bind(MCP, sender=network), network)
