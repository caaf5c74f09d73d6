"""When a token is renewed, replaced, taken over or left: the cases beside the straight way."""

import asyncio
import gc

import pytest

from mcprelay.auth import Application, ClientCredentials, MemoryStore, Registered
from mcprelay.auth.courier import resolve
from mcprelay.errors import AuthorizationRequired, ConfigurationError, LocalFault
from tests.auth.world import ISSUER, MCP, Issuer, Resource, answer, call, header, world


@pytest.mark.parametrize("status", [302, 400, 404, 410])
async def test_a_token_endpoint_that_has_moved_away_means_asking_anew(make, status):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    issuer.refuse = [answer(status)]
    resource.accepts = lambda token: token == "token-2"
    assert (await call(credentials, network)).status == 200
    assert len(issuer.questions) == 2


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"access_token": "x"}'])
async def test_a_refresh_that_is_answered_with_nonsense_means_asking_anew(make, body):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    reply = answer(200)
    reply.body = body
    issuer.refuse = [reply]
    resource.accepts = lambda token: token == "token-2"
    assert (await call(credentials, network)).status == 200


@pytest.mark.parametrize("error", ["temporarily_unavailable", "server_error", "slow_down"])
async def test_an_error_that_will_pass_costs_no_login(make, error):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    issuer.refuse = [answer(400, {"error": error})]
    resource.accepts = lambda token: False
    with pytest.raises(AuthorizationRequired, match=error):
        await call(credentials, network)
    assert len(issuer.questions) == 1


class Late(MemoryStore):
    """A store that answers some questions with what it held a moment ago."""

    old: str | None = None
    times = 2

    async def load(self, key: str) -> str | None:
        if self.old is not None and self.times and key.startswith("token"):
            self.times -= 1
            return self.old
        return await super().load(key)


async def test_a_refresh_that_another_process_has_won_is_taken_over(make, clock):
    network, _, issuer = world()
    issuer.rotating = True
    store = Late()
    one, other = (make(network, store=store).bind(MCP, sender=network) for _ in range(2))
    await call(one, network)
    await call(other, network)
    (key,) = [key for key in store._values if key.startswith("token")]
    before = store._values[key]
    clock.now += 4000
    await call(one, network)
    store.old = before
    assert (await call(other, network)).status == 200
    assert len(issuer.questions) == 1
    assert [sent["grant_type"] for sent in issuer.token_requests] == [
        "authorization_code",
        "refresh_token",
        "refresh_token",
    ]


async def test_metadata_that_cannot_be_read_now_does_not_stop_a_refresh(make):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    resource.accepts = lambda token: token == "token-2"
    usual = resource.__call__
    network.add(resource.origin, lambda request: answer(503) if "/.well-known/" in request.url else usual(request))
    assert (await call(credentials, network)).status == 200
    assert issuer.token_requests[-1]["grant_type"] == "refresh_token"


@pytest.mark.clause("auth.refresh-not-assumed")
async def test_an_expired_token_without_a_refresh_token_is_left_to_the_server(make, clock):
    network, resource, issuer = world()
    issuer.grants = {"expires_in": 100}
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    clock.now += 200
    assert (await call(credentials, network)).attempts == 1, "the server still took it"
    resource.accepts = lambda token: token == "token-2"
    assert (await call(credentials, network)).status == 200
    assert len(issuer.questions) == 2


async def test_scopes_in_a_401_of_a_token_are_a_step_up_as_well(make):
    network, resource, issuer = world()
    resource.challenge = 'Bearer scope="a"'
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    resource.refusals = [answer(401, None, www_authenticate='Bearer error="insufficient_scope", scope="b"')]
    assert (await call(credentials, network)).status == 200
    assert [question["scope"] for question in issuer.questions] == ["a", "a b"]


async def test_a_403_with_a_challenge_and_no_token_asks_for_one(make):
    network, resource, _ = world()
    usual = resource.__call__

    def strict(request):
        found = usual(request)
        return answer(403, None, www_authenticate=resource.challenge) if found.status == 401 else found

    network.add(resource.origin, strict)
    assert (await call(make(network).bind(MCP, sender=network), network)).status == 200


async def test_a_step_up_that_names_no_scope_ends_like_one_that_does(make):
    network, resource, issuer = world()
    resource.refusals = [answer(403, None, www_authenticate='Bearer error="insufficient_scope"') for _ in range(9)]
    with pytest.raises(AuthorizationRequired, match="attempts=3"):
        await call(make(network).bind(MCP, sender=network), network)
    assert len(issuer.questions) == 3


async def test_one_server_may_be_asked_about_several_times_as_long_as_it_is_for_other_scopes(make):
    network, resource, issuer = world()
    credentials = make(network).bind(MCP, sender=network)
    for n in range(6):
        resource.refusals = [answer(403, None, www_authenticate=f'Bearer error="insufficient_scope", scope="s{n}"')]
        assert (await call(credentials, network)).status == 200
    assert issuer.questions[-1]["scope"] == "s0 s1 s2 s3 s4 s5"


async def test_what_a_store_gives_back_and_nobody_can_read_counts_as_nothing(make):
    network, _, issuer = world()
    store = MemoryStore()
    await call(make(network, store=store).bind(MCP, sender=network), network)
    for key in store._values:
        store._values[key] = '{"nonsense": true}'
    assert (await call(make(network, store=store).bind(MCP, sender=network), network)).status == 200
    assert len(issuer.questions) == 2
    assert len(issuer.registrations) == 2


async def test_a_record_of_another_server_is_not_taken_for_this_one(make):
    network, _, issuer = world()
    store = MemoryStore()
    await call(make(network, store=store).bind(MCP, sender=network), network)
    (key,) = [key for key in store._values if key.startswith("token")]
    store._values[key] = store._values[key].replace(MCP, "https://other.example.com/mcp")
    await call(make(network, store=store).bind(MCP, sender=network), network)
    assert len(issuer.questions) == 2


async def test_an_application_that_fails_to_ask_is_heard(make):
    network, _, _ = world()

    async def ask(url: str) -> str:
        raise LocalFault("the window was closed")

    with pytest.raises(LocalFault, match="the window was closed"):
        await call(
            make(network, interaction=Application("https://a.example/cb", ask)).bind(MCP, sender=network), network
        )


async def test_a_login_that_fails_after_everyone_has_left_is_no_warning(make, caplog):
    network, _, _ = world()
    asked, go = asyncio.Event(), asyncio.Event()

    async def ask(url: str) -> str:
        asked.set()
        await go.wait()
        return "https://a.example/cb?error=access_denied"

    credentials = make(network, interaction=Application("https://a.example/cb", ask)).bind(MCP, sender=network)
    waiting = asyncio.ensure_future(call(credentials, network))
    await asked.wait()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    task = credentials._state.task
    go.set()
    await asyncio.wait([task])
    credentials._state.task = task = None
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_two_loops_do_not_share_a_task(make):
    network, _, issuer = world()
    auth = make(network)
    await call(auth.bind(MCP, sender=network), network)

    def elsewhere() -> int:
        return asyncio.run(call(auth.bind(MCP, sender=network), network)).status

    assert await asyncio.to_thread(elsewhere) == 200
    assert len(issuer.questions) == 1


async def test_a_taken_port_is_a_mistake_of_the_program_and_told_as_one(make):
    network, _, _ = world()

    async def ask(url: str) -> str:
        raise ConfigurationError("port 1234 of 127.0.0.1 is taken")

    with pytest.raises(ConfigurationError, match="is taken"):
        await call(
            make(network, interaction=Application("https://a.example/cb", ask)).bind(MCP, sender=network), network
        )


@pytest.mark.parametrize(
    "issuer", ["nonsense", "javascript:alert(1)", "https://u:p@as.example.com", "https://as.example.com#x"]
)
async def test_an_issuer_that_is_no_plain_url_is_refused(make, issuer):
    network, _, _ = world(Resource(issuer=issuer))
    with pytest.raises(AuthorizationRequired, match="the MCP server names the issuer"):
        await call(make(network).bind(MCP, sender=network), network)


@pytest.mark.parametrize("name", ["token_endpoint", "authorization_endpoint"])
async def test_metadata_without_an_endpoint_is_an_error_that_names_it(make, name):
    network, _, _ = world(None, Issuer(**{name: None}))
    with pytest.raises(AuthorizationRequired, match=f"names no {name}"):
        await call(make(network).bind(MCP, sender=network), network)


@pytest.mark.clause("auth-security.pkce-absent", "auth-security.pkce-verified")
async def test_a_server_that_does_not_mention_pkce_is_refused_before_anyone_is_asked(make):
    network, _, issuer = world(None, Issuer(code_challenge_methods_supported=None))
    with pytest.raises(AuthorizationRequired, match=r'when you know that it does, set pkce="assumed"'):
        await call(make(network).bind(MCP, sender=network), network)
    assert issuer.registrations == issuer.questions == []
    assert (await call(make(network, pkce="assumed").bind(MCP, sender=network), network)).status == 200


async def test_an_issuer_that_is_set_must_be_among_those_that_the_server_names(make):
    other = Issuer("https://other.example.com")
    network, _, issuer = world(Resource(authorization_servers=[ISSUER, other.url]), Issuer(), other)
    client = Registered(client_id="c", issuer=other.url)
    await call(make(network, client=client).bind(MCP, sender=network), network)
    assert len(other.questions) == 1
    assert issuer.questions == []


async def test_a_renewal_of_ones_own_token_that_fails_rests_and_then_the_server_decides(make, clock):
    network, resource, issuer = world()
    issuer.grants = {"expires_in": 100}
    client = Registered(client_id="job")
    credentials = make(network, grant=ClientCredentials(), client=client).bind(MCP, sender=network)
    await call(credentials, network)
    clock.now += 200
    issuer.refuse = [answer(503)]
    assert (await call(credentials, network)).status == 200
    assert header(resource.calls[-1], "authorization") == "Bearer token-1"
    await call(credentials, network)
    assert len(issuer.token_requests) == 2
    clock.now += 11
    await call(credentials, network)
    assert header(resource.calls[-1], "authorization") == "Bearer token-2"


async def test_names_are_looked_up_by_the_system():
    assert "127.0.0.1" in await resolve("localhost", 80)
    assert await resolve("127.0.0.1", 80) == ["127.0.0.1"]
    assert await resolve("name.invalid", 80) == ()
    assert await resolve("a" * 70 + ".example", 80) == ()


async def test_a_request_that_takes_too_long_names_the_setting(make):
    network, _, issuer = world()
    send = network.send

    class Hanging:
        def __init__(self, request):
            self.request = request

        async def __aenter__(self):
            await asyncio.Event().wait()

        async def __aexit__(self, *_):
            pass

    network.send = lambda request: Hanging(request) if request.url.endswith("/token") else send(request)
    with pytest.raises(AuthorizationRequired, match=r"gave no answer in request_timeout=0\.02 seconds"):
        await call(make(network, request_timeout=0.02).bind(MCP, sender=network), network)
    assert len(issuer.questions) == 1
