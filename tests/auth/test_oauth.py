"""The way to a token, whole: what is asked where, in which order, and with what."""

import asyncio

import pytest

from mcprelay.auth import ClientCredentials, Headless, MemoryStore, OAuth, Registered
from mcprelay.errors import AuthorizationRequired, ConfigurationError
from mcprelay.ports import Request
from tests.auth.world import ISSUER, MCP, Issuer, Resource, World, answer, call, form, header, world


@pytest.mark.clause("auth.http", "auth.resource-metadata-used")
async def test_a_refused_call_is_sent_again_with_a_token(make):
    network, resource, _issuer = world()
    outcome = await call(make(network).bind(MCP, sender=network), network)
    assert outcome.status == 200
    assert header(resource.calls[-1], "authorization") == "Bearer token-1"
    assert network.urls[:4] == [
        f"POST {MCP}",
        "GET https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
        "GET https://as.example.com/.well-known/oauth-authorization-server",
        "POST https://as.example.com/register",
    ]
    assert len(network.requests) == 7


async def test_nothing_is_asked_before_the_server_asks(make):
    network, resource, _ = world()
    resource.accepts = lambda token: True
    network.add("https://mcp.example.com", lambda request: answer(200))
    assert (await call(make(network).bind(MCP, sender=network), network)).status == 200
    assert network.urls == [f"POST {MCP}"]


async def test_the_next_call_shows_the_token_at_once(make):
    network, _resource, _issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    before = len(network.requests)
    assert (await call(credentials, network)).attempts == 1
    assert len(network.requests) == before + 1


@pytest.mark.clause(
    "auth.resource-indicator",
    "auth.resource-both",
    "auth.resource-canonical",
    "auth.resource-specific",
    "auth.resource-case",
    "auth-security.resource",
    "auth-security.resource-used",
)
async def test_resource_is_sent_byte_for_byte_in_both_requests(make):
    odd = "https://MCP.example.com:443/mcp"
    network = World()
    resource = Resource(odd)
    resource.places = ["/custom/place.json"]
    resource.challenge = f'Bearer resource_metadata="{odd.removesuffix("/mcp")}/custom/place.json"'
    issuer = Issuer()
    network.add("https://MCP.example.com:443", resource)
    network.add(issuer.origin, issuer)
    await call(make(network).bind(odd, sender=network), network, odd)
    assert issuer.questions[0]["resource"] == odd
    assert issuer.token_requests[0]["resource"] == odd


@pytest.mark.clause(
    "auth-registration.application-type",
    "auth-registration.native",
    "auth.refresh-grant",
    "handshake.auth.registration",
    "handshake.first-auth.registration",
)
async def test_the_registration_says_native_and_asks_for_refresh_tokens(make):
    network, _, issuer = world()
    await call(
        make(network, client_name="Ada's agent", registration={"client_uri": "https://ada.example"}).bind(
            MCP, sender=network
        ),
        network,
    )
    (body,) = issuer.registrations
    assert body["application_type"] == "native"
    assert body["grant_types"] == ["authorization_code", "refresh_token"]
    assert body["client_name"] == "Ada's agent"
    assert body["client_uri"] == "https://ada.example"
    assert body["token_endpoint_auth_method"] == "none"


async def test_several_refused_calls_make_one_login(make):
    network, _resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    outcomes = await asyncio.gather(*(call(credentials, network) for _ in range(8)))
    assert {outcome.status for outcome in outcomes} == {200}
    assert len(issuer.questions) == 1
    assert len(issuer.token_requests) == 1


async def test_two_clients_of_one_oauth_share_the_login(make):
    network, _, issuer = world()
    auth = make(network)
    await asyncio.gather(*(call(auth.bind(MCP, sender=network), network) for _ in range(3)))
    assert len(issuer.questions) == 1


# ------------------------------------------------------------------------------------------------------------ renewal


@pytest.mark.clause("auth.resource-always", "auth.token-rules")
async def test_a_token_about_to_expire_is_renewed_before_it_is_shown(make, clock):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    clock.now += 3600 - 29
    outcome = await call(credentials, network)
    assert outcome.attempts == 1
    assert header(resource.calls[-1], "authorization") == "Bearer token-2"
    assert issuer.token_requests[-1] == {
        "grant_type": "refresh_token",
        "refresh_token": "refresh",
        "resource": MCP,
        "client_id": "client-1",
    }
    assert len(issuer.questions) == 1


async def test_a_short_lived_token_is_not_renewed_all_the_time(make, clock):
    network, _resource, issuer = world()
    issuer.grants["expires_in"] = 20
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    clock.now += 10
    await call(credentials, network)
    assert len(issuer.token_requests) == 1


async def test_a_refused_token_is_refreshed_before_a_person_is_asked(make):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    resource.accepts = lambda token: token == "token-2"
    assert (await call(credentials, network)).status == 200
    assert len(issuer.questions) == 1


async def test_several_calls_refused_at_once_make_one_refresh(make):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    resource.accepts = lambda token: token == "token-2"
    outcomes = await asyncio.gather(*(call(credentials, network) for _ in range(10)))
    assert {outcome.status for outcome in outcomes} == {200}
    assert len(issuer.token_requests) == 2


async def test_several_calls_with_an_expired_token_make_one_refresh(make, clock):
    network, _resource, issuer = world()
    issuer.rotating = True
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    clock.now += 4000
    await asyncio.gather(*(call(credentials, network) for _ in range(10)))
    assert len(issuer.token_requests) == 2
    clock.now += 4000
    await call(credentials, network)
    assert [request.get("refresh_token") for request in issuer.token_requests] == [None, "refresh-1", "refresh-2"]


async def test_a_refresh_works_after_a_restart_without_discovery_or_a_person(make, clock):
    network, _resource, _issuer = world()
    store = MemoryStore()
    await call(make(network, store=store).bind(MCP, sender=network), network)
    clock.now += 4000
    network.requests.clear()
    assert (await call(make(network, store=store).bind(MCP, sender=network), network)).attempts == 1
    assert network.urls == ["POST https://as.example.com/token", f"POST {MCP}"]


async def test_a_confidential_client_refreshes_after_a_restart_with_its_secret(make, clock):
    issuer = Issuer(token_endpoint_auth_methods_supported=["client_secret_post"])
    issuer.registered = {"client_secret": "hush-hush"}
    network, _resource, _ = world(None, issuer)
    store = MemoryStore()
    await call(make(network, store=store).bind(MCP, sender=network), network)
    clock.now += 4000
    await call(make(network, store=store).bind(MCP, sender=network), network)
    assert issuer.token_requests[-1]["grant_type"] == "refresh_token"
    assert issuer.token_requests[-1]["client_secret"] == "hush-hush"


async def test_a_refresh_token_that_is_good_for_nothing_means_asking_anew(make, clock):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    issuer.refresh_token = "another"
    resource.accepts = lambda token: token == "token-2"
    assert (await call(credentials, network)).status == 200
    assert len(issuer.questions) == 2


async def test_an_authorization_server_that_is_down_costs_no_login(make, clock):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    issuer.refuse = [answer(503)]
    resource.accepts = lambda token: token == "token-2"
    with pytest.raises(
        AuthorizationRequired, match=r"Token refresh failed: https://as\.example\.com/token answered 503"
    ):
        await call(credentials, network)
    assert len(issuer.questions) == 1
    assert (await call(credentials, network)).status == 200
    assert len(issuer.questions) == 1


async def test_a_failed_early_renewal_shows_the_token_that_there_is(make, clock):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    clock.now += 3600 - 5
    issuer.refuse = [answer(503), answer(503)]
    assert (await call(credentials, network)).status == 200
    assert header(resource.calls[-1], "authorization") == "Bearer token-1"
    await call(credentials, network)
    assert len(issuer.token_requests) == 2, "an early renewal that failed rests for a while"


async def test_a_token_that_another_process_has_renewed_is_taken_over(make, clock):
    network, _resource, issuer = world()
    issuer.rotating = True
    store = MemoryStore()
    one, other = (make(network, store=store).bind(MCP, sender=network) for _ in range(2))
    await call(one, network)
    await call(other, network)
    clock.now += 4000
    await call(one, network)
    await call(other, network)
    assert len(issuer.token_requests) == 2
    assert len(issuer.questions) == 1


async def test_a_call_that_is_cancelled_does_not_lose_the_renewed_token(make, clock):
    network, _resource, issuer = world()
    issuer.rotating = True
    auth = make(network)
    credentials = auth.bind(MCP, sender=network)
    await call(credentials, network)
    clock.now += 4000
    asked, go = asyncio.Event(), asyncio.Event()
    load = auth._vault._store.load

    async def slow(key: str) -> str | None:
        asked.set()
        await go.wait()
        return await load(key)

    auth._vault._store.load = slow
    waiting = asyncio.ensure_future(call(credentials, network))
    await asked.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go.set()
    assert (await call(credentials, network)).attempts == 1
    assert len(issuer.token_requests) == 2


async def test_a_token_that_was_just_issued_and_is_refused_asks_nobody_again(make, clock):
    network, resource, issuer = world()
    resource.accepts = lambda token: False
    credentials = make(network).bind(MCP, sender=network)
    with pytest.raises(AuthorizationRequired, match="does not accept the token that was just issued"):
        await call(credentials, network)
    with pytest.raises(AuthorizationRequired, match="does not accept the token that was just issued"):
        await call(credentials, network)
    assert len(issuer.questions) == 1
    clock.now += 601
    with pytest.raises(AuthorizationRequired):
        await call(credentials, network)
    assert len(issuer.questions) == 2


async def test_a_refreshed_token_that_is_refused_means_asking_anew(make):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    resource.accepts = lambda token: token == "token-3"
    assert (await call(credentials, network)).attempts == 3
    assert len(issuer.questions) == 2


# ------------------------------------------------------------------------------------------------ whose credentials


@pytest.mark.clause(
    "auth-discovery.separate-state",
    "auth-registration.not-reused",
    "auth-registration.registered-again",
    "auth.token-foreign",
)
async def test_another_authorization_server_gets_a_registration_of_its_own(make):
    old, new = Issuer(), Issuer("https://new.example.com")
    network, resource, _ = world(None, old, new)
    new.grants = {"expires_in": 60}
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    resource.metadata = {"resource": MCP, "authorization_servers": [new.url]}
    resource.accepts = lambda token: new.issued > 0
    assert (await call(credentials, network)).status == 200
    assert len(new.registrations) == 1
    assert len(old.token_requests) == 1, "the old server's refresh token was of no use"
    for request in network.sent_to("new.example.com"):
        assert "refresh_token=" not in (request.body or b"").decode()


async def test_registrations_of_two_servers_with_one_issuer_are_one(make):
    network, _, issuer = world()
    other = Resource("https://other.example.com/mcp")
    network.add(other.origin, other)
    auth = make(network)
    await call(auth.bind(MCP, sender=network), network)
    await call(auth.bind(other.url, sender=network), network, other.url)
    assert len(issuer.registrations) == 1


@pytest.mark.clause("auth-registration.static")
async def test_credentials_registered_by_hand_are_used_and_nothing_is_registered(make):
    issuer = Issuer(token_endpoint_auth_methods_supported=["client_secret_basic"])
    network, _, _ = world(None, issuer)
    client = Registered(client_id="by hand", client_secret="se:cret/+", issuer=ISSUER)
    await call(make(network, client=client).bind(MCP, sender=network), network)
    assert issuer.registrations == []
    assert header(network.sent_to("/token")[0], "authorization") == "Basic YnklMjBoYW5kOnNlJTNBY3JldCUyRiUyQg=="


@pytest.mark.clause("auth-discovery.no-shared-credentials", "auth-registration.mismatch-error")
async def test_credentials_of_another_issuer_are_refused_before_they_are_shown(make):
    network, _, issuer = world()
    client = Registered(client_id="by hand", client_secret="s3cr3t-text", issuer="https://elsewhere.example")
    with pytest.raises(AuthorizationRequired, match=r"registered with 'https://elsewhere\.example'"):
        await call(make(network, client=client).bind(MCP, sender=network), network)
    assert issuer.questions == []


@pytest.mark.clause("auth-registration.bound")
async def test_credentials_without_an_issuer_stay_with_the_first_one(make):
    old, new = Issuer(), Issuer("https://new.example.com")
    network, resource, _ = world(None, old, new)
    store = MemoryStore()
    client = Registered(client_id="by hand")
    await call(make(network, client=client, store=store).bind(MCP, sender=network), network)
    resource.metadata = {"resource": MCP, "authorization_servers": [new.url]}
    resource.accepts = lambda token: False
    with pytest.raises(AuthorizationRequired, match="credentials of one are never shown to the other"):
        await call(make(network, client=client, store=store).bind(MCP, sender=network), network)
    assert new.questions == []
    assert new.token_requests == []


@pytest.mark.clause(
    "auth-registration.cimd", "auth-registration.cimd-rules", "auth-registration.cimd-advertised", "auth.cimd"
)
async def test_a_client_document_is_used_where_it_is_read_and_only_there(make):
    document = "https://app.example.com/client.json"
    reads = Issuer(client_id_metadata_document_supported=True)
    network, _, _ = world(None, reads)
    await call(make(network, client_document=document).bind(MCP, sender=network), network)
    assert reads.registrations == []
    assert reads.questions[0]["client_id"] == document

    network, _, registers = world()
    await call(make(network, client_document=document).bind(MCP, sender=network), network)
    assert registers.questions[0]["client_id"] == "client-1"


async def test_a_client_that_the_issuer_has_forgotten_is_registered_anew(make, clock):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    issuer.refuse = [answer(401, {"error": "invalid_client"})]
    resource.accepts = lambda token: token == "token-2"
    assert (await call(credentials, network)).status == 200
    assert len(issuer.registrations) == 2


async def test_an_expired_client_secret_means_registering_anew(make, clock):
    issuer = Issuer(token_endpoint_auth_methods_supported=["client_secret_post"])
    issuer.registered = {"client_secret": "hush-hush", "client_secret_expires_at": clock.now + 100}
    issuer.grants = {}
    network, resource, _ = world(None, issuer)
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    clock.now += 1000
    resource.accepts = lambda token: token == "token-2"
    await call(credentials, network)
    assert len(issuer.registrations) == 2


async def test_two_accounts_in_one_store_do_not_share_tokens(make):
    network, _, issuer = world()
    store = MemoryStore()
    await call(make(network, store=store, account="ada").bind(MCP, sender=network), network)
    await call(make(network, store=store, account="bob").bind(MCP, sender=network), network)
    assert len(issuer.questions) == 2


# -------------------------------------------------------------------------------------------------------------- scope


def insufficient(scope: str, status: int = 403):
    return answer(status, {}, www_authenticate=f'Bearer error="insufficient_scope", scope="{scope}"')


@pytest.mark.clause("auth.scope-union", "auth.step-up", "auth.step-up-user")
async def test_a_step_up_asks_for_the_union_of_scopes(make):
    network, resource, issuer = world()
    resource.challenge = 'Bearer scope="files:read"'
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    resource.refusals = [insufficient("files:write")]
    assert (await call(credentials, network)).status == 200
    assert [question["scope"] for question in issuer.questions] == ["files:read", "files:read files:write"]


async def test_the_union_survives_a_restart(make):
    network, resource, issuer = world()
    store = MemoryStore()
    resource.challenge = 'Bearer scope="files:read"'
    await call(make(network, store=store).bind(MCP, sender=network), network)
    resource.refusals = [insufficient("files:write")]
    await call(make(network, store=store).bind(MCP, sender=network), network)
    assert issuer.questions[-1]["scope"] == "files:read files:write"


@pytest.mark.clause("auth.step-up-limit", "auth.step-up-tracked")
async def test_step_up_ends_after_three_attempts_and_stays_ended_for_a_while(make, clock):
    network, resource, issuer = world()
    resource.challenge = 'Bearer scope="admin"'
    resource.refusals = [insufficient("admin") for _ in range(20)]
    credentials = make(network).bind(MCP, sender=network)
    with pytest.raises(AuthorizationRequired, match="attempts=3"):
        await call(credentials, network)
    assert len(issuer.questions) == 3
    with pytest.raises(AuthorizationRequired, match="the scope admin was asked for 3 times"):
        await call(credentials, network)
    assert len(issuer.questions) == 3
    clock.now += 601
    resource.refusals.clear()
    assert (await call(credentials, network)).status == 200


async def test_a_403_that_is_not_about_scope_is_not_ours(make):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    resource.refusals = [answer(403)]
    assert (await call(credentials, network)).status == 403
    resource.refusals = [answer(403, {}, www_authenticate='Bearer error="invalid_token"')]
    assert (await call(credentials, network)).status == 403
    assert len(issuer.questions) == 1


async def test_offline_access_is_asked_for_only_where_it_is_offered(make):
    offers = Issuer(scopes_supported=["mcp", "offline_access"])
    network, _, _ = world(Resource(scopes_supported=["mcp"]), offers)
    await call(make(network).bind(MCP, sender=network), network)
    assert offers.questions[0]["scope"] == "mcp offline_access"
    assert offers.questions[0]["prompt"] == "consent"

    silent = Issuer()
    network, _, _ = world(Resource(scopes_supported=["mcp", "offline_access"]), silent)
    await call(make(network).bind(MCP, sender=network), network)
    assert silent.questions[0]["scope"] == "mcp"
    assert "prompt" not in silent.questions[0]


async def test_scope_is_left_out_when_nobody_names_any(make):
    network, _, issuer = world()
    await call(make(network).bind(MCP, sender=network), network)
    assert "scope" not in issuer.questions[0]


async def test_scopes_that_an_issuer_no_longer_knows_are_forgotten(make):
    network, resource, issuer = world()
    resource.challenge = 'Bearer scope="old"'
    credentials = make(network).bind(MCP, sender=network)
    issuer.grants = {}
    await call(credentials, network)
    resource.challenge = 'Bearer scope="new"'
    resource.accepts = lambda token: token == "token-2"
    issuer.refuse = [answer(400, {"error": "invalid_scope"})]
    with pytest.raises(AuthorizationRequired, match="invalid_scope"):
        await call(credentials, network)
    await call(credentials, network)
    assert [question["scope"] for question in issuer.questions] == ["old", "old new", "new"]


# ------------------------------------------------------------------------------------------------- where tokens may go


@pytest.mark.clause("auth-security.communication")
async def test_plain_http_to_another_machine_is_refused_when_the_client_is_made(make):
    with pytest.raises(ConfigurationError, match=r"insecure_hosts=\['mcp\.example\.com'\]"):
        make(World()).bind("http://mcp.example.com/mcp", sender=World())
    make(World(), insecure_hosts=["mcp.example.com"]).bind("http://mcp.example.com/mcp", sender=World())
    make(World()).bind("http://localhost:8000/mcp", sender=World())


PLAIN = "http://mcp.example.com/mcp"


@pytest.mark.clause("auth-security.communication")
async def test_where_the_user_allows_it_a_token_goes_to_the_server_over_plain_http(make):
    network, resource, issuer = world(Resource(PLAIN))
    auth = make(network)
    credentials = auth.over_plaintext(PLAIN).bind(PLAIN, sender=network)
    assert (await call(credentials, network, PLAIN)).status == 200
    assert header(resource.calls[-1], "authorization") == "Bearer token-1"
    assert issuer.token_requests[0]["resource"] == PLAIN
    assert all(request.url.startswith(("http://mcp.example.com/", "https://")) for request in network.requests)
    other = auth.over_plaintext(PLAIN).bind(PLAIN, sender=network)
    assert (await call(other, network, PLAIN)).attempts == 1  # what is known of a server is known to each of them
    for elsewhere in (PLAIN + "2", "http://as.example.com/mcp"):
        with pytest.raises(ConfigurationError, match="plain http to another machine"):
            auth.over_plaintext(PLAIN).bind(elsewhere, sender=network)
    with pytest.raises(ConfigurationError, match="plain http to another machine"):
        auth.bind(PLAIN, sender=network)


@pytest.mark.clause("auth-security.communication")
@pytest.mark.parametrize(
    ("metadata", "refused"),
    [
        ({"authorization_endpoint": "http://as.example.com/authorize"}, "http://as.example.com/authorize"),
        ({"token_endpoint": "http://as.example.com/token"}, "http://as.example.com/token"),
        ({"token_endpoint": "http://mcp.example.com/token"}, "http://mcp.example.com/token"),
        ({"registration_endpoint": "http://as.example.com/register"}, "http://as.example.com/register"),
    ],
)
async def test_a_server_over_plain_http_leaves_what_gives_tokens_to_https(make, metadata, refused):
    network, _, _ = world(Resource(PLAIN), Issuer(**metadata))
    network.add("http://as.example.com", network.servers["https://as.example.com"])
    with pytest.raises(AuthorizationRequired) as caught:
        await call(make(network).over_plaintext(PLAIN).bind(PLAIN, sender=network), network, PLAIN)
    assert f"the address {refused} is plain http to another machine" in str(caught.value)
    assert "allow_plaintext is for the MCP server itself" in str(caught.value)
    assert f"GET {refused}" not in network.urls
    assert f"POST {refused}" not in network.urls


@pytest.mark.clause("auth-security.communication")
@pytest.mark.parametrize("named", ["http://mcp.example.com", "http://as.example.com", None])
async def test_no_authorization_server_is_asked_over_plain_http_not_even_where_the_server_is_its_own(make, named):
    resource = Resource(PLAIN)
    if named is None:
        resource.metadata = resource.challenge = None
    else:
        resource.metadata["authorization_servers"] = [named]
    network, _, _ = world(resource, Issuer("http://as.example.com"))
    with pytest.raises(AuthorizationRequired, match="What gives tokens is reached over https"):
        await call(make(network).over_plaintext(PLAIN).bind(PLAIN, sender=network), network, PLAIN)
    assert not [url for url in network.urls if "authorization-server" in url or "openid" in url]


async def test_metadata_of_another_origin_is_not_read_over_plain_http(make):
    resource = Resource(PLAIN)
    resource.challenge = 'Bearer resource_metadata="http://mcp.example.com:8080/metadata"'
    network, _, _ = world(resource)
    with pytest.raises(AuthorizationRequired, match=r"http://mcp\.example\.com:8080/metadata is plain http"):
        await call(make(network).over_plaintext(PLAIN).bind(PLAIN, sender=network), network, PLAIN)
    assert network.urls == [f"POST {PLAIN}"]


# ---------------------------------------------------------------------------------------------- headers of the user's


async def called_with(credentials, network, own):
    """One call of a client that has headers of its own."""
    request = Request(url=MCP, headers=[("Accept", "x"), ("MCP-Protocol-Version", "y"), *own], body=b"{}")
    attempt = 0
    while True:
        sent = Request(url=MCP, headers=[*request.headers, *await credentials.headers(request)], body=b"{}")
        async with network.send(sent) as reply:
            status, headers = reply.status, reply.headers
        if status == 200:
            return
        attempt += 1
        assert await credentials.challenged(sent, status, headers, attempt=attempt)


def who_got(network, name):
    return [request.url for request in network.requests if header(request, name) is not None]


async def test_the_users_headers_go_with_what_asks_the_server_itself_and_nowhere_else(make):
    network, _, _ = world()
    await called_with(make(network).bind(MCP, sender=network), network, [("X-Gate", "s3same")])
    place = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
    assert who_got(network, "x-gate") == [MCP, place, MCP]
    assert "token-1" not in str(network.sent_to(place)[0].headers)
    assert header(network.sent_to(place)[0], "accept") == "application/json"


async def test_an_authorization_server_at_the_servers_own_origin_gets_none_of_them(make):
    resource = Resource(issuer="https://mcp.example.com")
    issuer = Issuer("https://mcp.example.com")
    network = World()
    network.add(
        resource.origin, lambda request: issuer(request) if resource(request).status == 404 else resource(request)
    )
    await called_with(make(network).bind(MCP, sender=network), network, [("X-Gate", "s3same")])
    assert issuer.issued == 1
    assert set(who_got(network, "x-gate")) == {MCP, "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"}


async def test_a_server_that_is_its_own_authorization_server_gets_none_of_them_as_such(make):
    """As one of the first revision with authorization is, which publishes nothing about itself."""
    resource, issuer = Resource(), Issuer("https://mcp.example.com")
    resource.metadata = resource.challenge = None
    network = World()
    network.add(resource.origin, lambda request: resource(request) if request.url == MCP else issuer(request))
    await called_with(make(network).bind(MCP, sender=network), network, [("X-Gate", "s3same")])
    assert issuer.issued == 1
    assert {url for url in who_got(network, "x-gate") if "oauth-protected-resource" not in url} == {MCP}


async def test_metadata_at_another_origin_gets_none_of_them(make):
    resource = Resource()
    resource.challenge = 'Bearer resource_metadata="https://elsewhere.example/metadata"'
    network, _, _ = world(resource)
    network.add("https://elsewhere.example", lambda _: answer(200, resource.metadata))
    await called_with(make(network).bind(MCP, sender=network), network, [("X-Gate", "s3same")])
    assert set(who_got(network, "x-gate")) == {MCP}


async def test_a_token_that_is_renewed_before_it_expires_is_got_with_them_too(make, clock):
    network, resource, issuer = world(None, Issuer(token_endpoint_auth_methods_supported=["client_secret_basic"]))
    issuer.grants = {"expires_in": 3600}
    auth = make(network, grant=ClientCredentials(), client=Registered(client_id="c", client_secret="s", issuer=ISSUER))
    credentials = auth.bind(MCP, sender=network)
    await called_with(credentials, network, [("X-Gate", "s3same")])
    network.requests.clear()
    clock.now += 3590
    await called_with(credentials, network, [("X-Gate", "s3same")])
    assert issuer.issued == 2
    assert who_got(network, "x-gate") == [f"{resource.origin}{resource.places[0]}", MCP]


async def test_a_token_is_not_sent_to_another_origin(make):
    network, _, _ = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    for other in ["https://evil.example/mcp", "http://mcp.example.com/mcp", "https://mcp.example.com:8443/mcp"]:
        with pytest.raises(ConfigurationError, match="are not sent to"):
            await call(credentials, network, other)
    assert header(network.requests[-1], "authorization") == "Bearer token-1"
    same = Request(url="https://mcp.example.com:443/messages?session=1")
    assert await credentials.headers(same) == [("Authorization", "Bearer token-1")]


async def test_a_redirect_of_the_token_endpoint_is_not_followed(make):
    network, _, issuer = world()
    issuer.refuse = [answer(307, None, location="https://evil.example/token?x=1")]
    with pytest.raises(
        AuthorizationRequired, match=r"a redirect to https://evil\.example/token, which is not followed"
    ):
        await call(make(network).bind(MCP, sender=network), network)
    assert network.sent_to("evil.example") == []


@pytest.mark.clause("auth-security.https-endpoints")
async def test_an_issuer_over_plain_http_is_refused(make):
    network, _, _ = world(Resource(issuer="http://as.example.com"))
    with pytest.raises(AuthorizationRequired, match="plain http to another machine"):
        await call(make(network).bind(MCP, sender=network), network)


@pytest.mark.clause("auth.security", "auth-security.considered", "auth-security.best-practices")
@pytest.mark.parametrize(
    ("address", "leads_to"),
    [
        ("127.0.0.1", "this machine"),
        ("10.1.2.3", "a private network"),
        ("169.254.169.254", "a cloud's metadata service"),
        ("169.254.7.7", "the local link"),
    ],
)
async def test_addresses_that_are_not_public_are_refused_wherever_metadata_names_them(make, address, leads_to):
    async def resolver(host: str, port: int) -> list[str]:
        return [address] if host == "inside.example" else ["93.184.216.34"]

    network, _, _ = world(Resource(issuer="https://inside.example"))
    with pytest.raises(AuthorizationRequired, match=leads_to):
        await call(make(network, resolver=resolver).bind(MCP, sender=network), network)
    for name in ("token_endpoint", "registration_endpoint", "authorization_endpoint"):
        network, _, _issuer = world(None, Issuer(**{name: "https://inside.example/x"}))
        with pytest.raises(AuthorizationRequired, match=leads_to):
            await call(make(network, resolver=resolver).bind(MCP, sender=network), network)
        assert network.sent_to("inside.example") == []
    resource = Resource()
    resource.challenge = 'Bearer resource_metadata="https://inside.example/prm"'
    network, _, _ = world(resource)
    with pytest.raises(AuthorizationRequired, match=leads_to):
        await call(make(network, resolver=resolver).bind(MCP, sender=network), network)


# ------------------------------------------------------------------------------------------------------------ secrets


@pytest.mark.clause("auth.refresh-confidential")
async def test_no_secret_is_in_any_repr_or_error(make, clock):
    issuer = Issuer(token_endpoint_auth_methods_supported=["client_secret_post"])
    network, resource, _ = world(None, issuer)
    issuer.refresh_token = issuer.grants["refresh_token"] = "refresh-token-one"
    client = Registered(client_id="id", client_secret="hush-hush", issuer=ISSUER)
    auth = make(network, client=client)
    credentials = auth.bound(MCP, sender=network)
    await call(credentials, network)
    record = await credentials.record()
    texts = [
        repr(thing) for thing in (auth, credentials, auth.settings, client, record, record.token, auth._vault._store)
    ]

    def parrot(request):
        return answer(503, {"error": "server_error", "error_description": (request.body or b"").decode()})

    issuer.token = parrot
    resource.accepts = lambda token: False
    with pytest.raises(AuthorizationRequired, match=r"client_secret=\[redacted\]") as caught:
        await call(credentials, network)
    error: BaseException | None = caught.value
    while error is not None:
        texts += [str(error), repr(error), repr(vars(error))]
        error = error.__cause__ or error.__context__
    for text in texts:
        for secret in ("hush-hush", "token-1", "refresh-token-one"):
            assert secret not in text


def test_settings_that_do_not_go_together_are_refused():
    with pytest.raises(ConfigurationError, match="needs client=Registered"):
        OAuth(grant=ClientCredentials())
    with pytest.raises(ConfigurationError, match="attempts=0"):
        OAuth(attempts=0)
    with pytest.raises(ConfigurationError, match="https URL with a path"):
        OAuth(client_document="https://app.example.com")


async def test_the_error_carries_the_challenge_and_names_step_url_and_answer(make):
    network, resource, issuer = world()
    resource.challenge = 'Bearer error="invalid_token", scope="files", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"'
    issuer.refuse = [answer(400, {"error": "invalid_grant", "error_description": "code\nexpired"})]
    with pytest.raises(AuthorizationRequired) as caught:
        await call(make(network).bind(MCP, sender=network), network)
    assert caught.value.status == 401
    assert caught.value.challenge.params["scope"] == "files"
    assert str(caught.value) == (
        'https://mcp.example.com/mcp answered 401, asking for Bearer error="invalid_token" scope="files". '
        "Token request failed: https://as.example.com/token answered 400 with invalid_grant: code expired."
    )
    assert form(network.sent_to("/token")[0])["code"] == "code-1"


async def test_what_was_allowed_at_a_login_is_allowed_when_its_token_is_renewed(make, clock):
    async def resolver(host: str, port: int) -> list[str]:
        return ["10.0.0.5"] if host == "as.example.com" else ["93.184.216.34"]

    network, _, issuer = world()
    inner = {"store": MemoryStore(), "resolver": resolver}
    with pytest.raises(AuthorizationRequired, match=r"allow it with allowed_hosts=\['as\.example\.com'\]"):
        await call(make(network, **inner).bind(MCP, sender=network), network)
    allowing = make(network, **inner, allowed_hosts=["10.0.0.0/8"])
    assert (await call(allowing.bind(MCP, sender=network), network)).status == 200
    clock.now += 4000
    assert (await call(make(network, **inner).bind(MCP, sender=network), network)).status == 200
    assert [sent["grant_type"] for sent in issuer.token_requests] == ["authorization_code", "refresh_token"]


async def test_a_clock_that_is_set_back_does_not_make_an_old_token_a_new_one(make, clock):
    network, resource, issuer = world()
    resource.accepts = lambda token: False
    credentials = make(network).bind(MCP, sender=network)
    with pytest.raises(AuthorizationRequired, match="that was just issued"):
        await call(credentials, network)
    clock.now -= 1_000_000
    resource.accepts = lambda token: token == "token-2"
    assert (await call(credentials, network)).status == 200
    assert len(issuer.questions) == 2


async def test_a_client_that_is_gone_takes_no_other_registration_with_it(make, clock):
    """Of two servers with one issuer, the second was registered anew; the first one's client is forgotten there."""
    other = Resource("https://other.example.com/mcp")
    network, resource, issuer = world()
    network.add(other.origin, other)
    store = MemoryStore()
    for url, redirect_uri in ((MCP, "http://127.0.0.1:1/callback"), (other.url, "http://127.0.0.1:2/callback")):
        auth = make(network, store=store, interaction=Headless(network, redirect_uri=redirect_uri))
        assert (await call(auth.bind(url, sender=network), network, url)).status == 200
    assert len(issuer.registrations) == 2
    clock.now += 4000
    issuer.refuse = [answer(401, {"error": "invalid_client"})]
    resource.accepts = lambda token: token == "token-3"
    auth = make(network, store=store, interaction=Headless(network, redirect_uri="http://127.0.0.1:2/callback"))
    assert (await call(auth.bind(MCP, sender=network), network)).status == 200
    assert len(issuer.registrations) == 2
