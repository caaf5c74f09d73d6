import pytest

from mcprelay.auth import FileStore, Headless, MemoryStore
from mcprelay.auth.login import Account, account, login, logout, stored
from mcprelay.errors import AuthorizationRequired, ConfigurationError, ConnectFailed, MCPRelayError
from tests.auth.world import ISSUER, MCP, Issuer, Resource, World, answer, call, form, header, world


async def test_logging_in_gets_a_token_that_later_calls_show(make, clock):
    network, _, issuer = world(Resource(scopes_supported=["mcp"]))
    store = MemoryStore()
    found = await login(MCP, auth=make(network, store=store), sender=network)
    assert found == Account(
        server=MCP,
        issuer=ISSUER,
        client_id="client-1",
        scope=("mcp",),
        expires_at=clock.now + 3600,
        renewable=True,
        bound=False,
    )
    assert (await call(make(network, store=store).bind(MCP, sender=network), network)).attempts == 1
    assert len(issuer.questions) == 1


async def test_logging_in_follows_the_challenge_of_the_server(make):
    resource = Resource()
    resource.places = ["/odd/place"]
    resource.challenge = 'Bearer resource_metadata="https://mcp.example.com/odd/place", scope="a b"'
    network, _, issuer = world(resource)
    await login(MCP, auth=make(network), sender=network)
    assert issuer.questions[0]["scope"] == "a b"


async def test_logging_in_again_asks_again(make):
    network, _, issuer = world()
    auth = make(network)
    await login(MCP, auth=auth, sender=network)
    await login(MCP, auth=auth, sender=network)
    assert len(issuer.questions) == 2
    assert len(issuer.registrations) == 1


async def test_a_server_that_asks_for_nothing_says_so(make):
    network = World()
    network.add("https://mcp.example.com", lambda request: answer(404) if "well-known" in request.url else answer(200))
    with pytest.raises(ConfigurationError, match=r"mcp asks for no authorization \(it answered 200\)"):
        await login(MCP, auth=make(network), sender=network)


async def test_a_server_that_only_publishes_metadata_can_be_logged_in_to(make):
    network, resource, _ = world()

    def lenient(request):
        found = resource(request)
        return answer(200) if found.status == 401 else found

    network.add(resource.origin, lenient)
    assert (await login(MCP, auth=make(network), sender=network)).issuer == ISSUER


async def test_a_server_that_cannot_be_reached_is_an_error_of_its_own(make):
    with pytest.raises(ConnectFailed):
        await login(MCP, auth=make(World()), sender=World())


async def test_a_failed_login_names_the_step(make):
    network, _, issuer = world()
    issuer.refuse = [answer(400, {"error": "invalid_grant"})]
    with pytest.raises(AuthorizationRequired, match=r"Token request failed: .*invalid_grant"):
        await login(MCP, auth=make(network), sender=network)


async def test_logging_out_revokes_forgets_and_needs_a_new_registration(make):
    network, _, issuer = world()
    auth = make(network)
    await login(MCP, auth=auth, sender=network)
    assert await logout(MCP, auth=auth, sender=network) == "revoked"
    assert issuer.revoked == [
        {"token": "refresh", "token_type_hint": "refresh_token", "client_id": "client-1"},
        {"token": "token-1", "token_type_hint": "access_token", "client_id": "client-1"},
    ]
    assert await account(MCP, auth=auth, sender=network) is None
    assert await logout(MCP, auth=auth, sender=network) == "none"
    await login(MCP, auth=auth, sender=network)
    assert len(issuer.registrations) == 2


async def test_logging_out_where_nothing_can_be_revoked_only_forgets(make):
    network, _, _ = world(None, Issuer(revocation_endpoint=None))
    auth = make(network)
    await login(MCP, auth=auth, sender=network)
    assert await logout(MCP, auth=auth, sender=network) == "not offered"
    assert await account(MCP, auth=auth, sender=network) is None


async def test_a_revocation_that_fails_forgets_all_the_same(make):
    network, _, issuer = world()
    auth = make(network)
    await login(MCP, auth=auth, sender=network)
    issuer.revoke = lambda request: answer(503)
    with pytest.raises(MCPRelayError, match=r"token revocation failed: https://as\.example\.com/revoke answered 503"):
        await logout(MCP, auth=auth, sender=network)
    assert await account(MCP, auth=auth, sender=network) is None


async def test_the_account_is_known_without_its_secrets(make):
    network, _, _ = world()
    auth = make(network)
    await login(MCP, auth=auth, sender=network)
    found = await account(MCP, auth=auth, sender=network)
    assert "token-1" not in repr(found)
    assert "refresh'" not in repr(found)


async def test_what_was_stored_is_used_and_nobody_is_asked(tmp_path, make, clock):
    network, resource, issuer = world()
    settings = {
        "store": FileStore(tmp_path / "tokens.json"),
        "clock": clock,
        "resolver": make(network).settings.resolver,
    }
    await login(MCP, auth=stored("work", interaction=Headless(network), **settings), sender=network)
    credentials = stored("work", **settings).bind(MCP, sender=network)
    assert (await call(credentials, network)).attempts == 1
    clock.now += 4000
    assert (await call(credentials, network)).attempts == 1
    assert form(network.sent_to("/token")[-1])["grant_type"] == "refresh_token"
    resource.accepts = lambda token: False
    issuer.refresh_token = "gone"
    with pytest.raises(AuthorizationRequired, match="run: mcprelay login work"):
        await call(credentials, network)


async def test_an_address_that_credentials_may_not_go_to_is_refused(make):
    for url in ("http://mcp.example.com/mcp", "ftp://x", "nonsense"):
        with pytest.raises(ConfigurationError):
            await login(url, auth=make(World()), sender=World())


async def test_the_headers_that_a_server_wants_go_to_it_and_to_nobody_else(make):
    network, _, _ = world()
    await login(MCP, auth=make(network), sender=network, headers={"X-Gate": "s3same"})
    got = [request.url for request in network.requests if header(request, "x-gate") == "s3same"]
    assert got == [MCP, "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"]


async def test_a_server_that_refuses_nobody_is_asked_for_its_metadata_with_the_headers(make):
    network, resource, _ = world()
    network.add(resource.origin, lambda request: answer(200) if request.url == MCP else resource(request))
    await login(MCP, auth=make(network), sender=network, headers={"X-Gate": "s3same"})
    assert header(network.sent_to("oauth-protected-resource")[0], "x-gate") == "s3same"


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"AUTHORIZATION": "Bearer x"}, "'AUTHORIZATION' says who calls, and so does the token"),
        ({"DPoP": "x"}, "'DPoP' says who calls"),
        ({"Accept": "x"}, "'Accept' is the protocol's own"),
        ({"X-Gate": "a\nb"}, "not printable"),
    ],
)
async def test_a_header_that_cannot_go_with_a_login_is_refused_before_anything_is_sent(make, headers, said):
    network, _, _ = world()
    with pytest.raises(ConfigurationError, match=said):
        await login(MCP, auth=make(network), sender=network, headers=headers)
    assert network.requests == []
