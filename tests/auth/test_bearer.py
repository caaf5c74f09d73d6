import inspect

import pytest

import mcprelay.auth as public
from mcprelay.auth import Anonymous, Auth, Credentials, OAuth, StaticToken
from mcprelay.errors import AuthorizationRequired, ConfigurationError, NotSent
from mcprelay.ports import Request
from tests.auth.world import MCP, Resource, World, answer, call, header


def server(**more) -> tuple[World, Resource]:
    resource = Resource()
    network = World()
    network.add(resource.origin, resource)
    return network, resource


async def test_a_token_is_shown_with_every_request():
    network, resource = server()
    credentials = StaticToken("token-x").bind(MCP, sender=network)
    assert (await call(credentials, network)).status == 200
    assert header(resource.calls[0], "authorization") == "Bearer token-x"
    assert len(network.requests) == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_function_is_asked_for_each_request(kind):
    network, resource = server()
    tokens = iter(["token-1", "token-2"])

    def sync() -> str:
        return next(tokens)

    async def later() -> str:
        return next(tokens)

    credentials = StaticToken(sync if kind == "sync" else later).bind(MCP, sender=network)
    await call(credentials, network)
    await call(credentials, network)
    assert [header(request, "authorization") for request in resource.calls] == ["Bearer token-1", "Bearer token-2"]


async def test_a_refused_token_is_tried_again_only_when_the_function_gives_another():
    network, resource = server()
    resource.accepts = lambda token: token == "token-3"
    tokens = iter(["token-1", "token-2", "token-3"])
    assert (await call(StaticToken(lambda: next(tokens)).bind(MCP, sender=network), network)).status == 200
    with pytest.raises(AuthorizationRequired, match="no other to try"):
        await call(StaticToken(lambda: "token-1").bind(MCP, sender=network), network)


async def test_a_refused_token_is_an_error_with_the_challenge_and_without_the_token():
    network, resource = server()
    resource.challenge = 'Bearer error="invalid_token"'
    resource.accepts = lambda token: False
    with pytest.raises(AuthorizationRequired) as caught:
        await call(StaticToken("s3cr3t").bind(MCP, sender=network), network)
    assert caught.value.status == 401
    assert caught.value.challenge.params == {"error": "invalid_token"}
    assert "s3cr3t" not in str(caught.value) + repr(vars(caught.value))


async def test_a_403_is_ours_only_when_it_is_about_scope():
    network, resource = server()
    credentials = StaticToken("token-1").bind(MCP, sender=network)
    resource.refusals = [answer(403)]
    assert (await call(credentials, network)).status == 403
    resource.refusals = [answer(403, None, www_authenticate='Bearer error="insufficient_scope", scope="admin"')]
    with pytest.raises(AuthorizationRequired, match='asking for Bearer error="insufficient_scope" scope="admin"'):
        await call(credentials, network)


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX: y", "é", "Bearer x"])
def test_a_text_that_no_header_can_carry_is_refused_without_being_quoted(token):
    with pytest.raises(ConfigurationError, match="the token is empty or holds") as caught:
        StaticToken(token)
    assert "X: y" not in str(caught.value)


@pytest.mark.parametrize("token", ["", "a\nb", 5, None])
async def test_what_a_function_gives_is_looked_at_as_well(token):
    network, _ = server()
    with pytest.raises(NotSent, match="the function that gives the token gave .* so nothing was sent") as caught:
        await call(StaticToken(lambda: token).bind(MCP, sender=network), network)
    assert "a\\nb" not in str(caught.value)


async def test_a_token_stays_at_its_origin_and_off_plain_http():
    network, _ = server()
    credentials = StaticToken("token-1").bind(MCP, sender=network)
    for other in ["https://evil.example/mcp", "http://mcp.example.com/mcp", "https://mcp.example.com.evil.example/"]:
        with pytest.raises(ConfigurationError, match="are not sent to"):
            await credentials.headers(Request(url=other))
    with pytest.raises(ConfigurationError, match="plain http to another machine"):
        StaticToken("token-1").bind("http://mcp.example.com/mcp", sender=network)
    StaticToken("token-1", insecure_hosts=["mcp.example.com"]).bind("http://mcp.example.com/mcp", sender=network)
    there = StaticToken("token-1").over_plaintext("http://mcp.example.com/mcp")
    there.bind("http://mcp.example.com/mcp", sender=network)
    with pytest.raises(ConfigurationError, match="plain http to another machine"):
        there.bind("http://mcp.example.com/other", sender=network)


def test_a_token_is_in_no_repr():
    network, _ = server()
    auth = StaticToken("s3cr3t")
    assert "s3cr3t" not in repr(auth) + repr(auth.bind(MCP, sender=network))


async def test_without_credentials_the_error_says_which_to_give():
    network, _ = server()
    credentials = Anonymous().bind(MCP, sender=network)
    with pytest.raises(AuthorizationRequired, match=r"pass auth=.*run: mcprelay login https://mcp\.example\.com/mcp"):
        await call(credentials, network)
    network.add("https://mcp.example.com", lambda request: answer(403))
    assert (await call(credentials, network)).status == 403


async def test_an_address_with_a_key_in_its_query_is_shown_without_it():
    network, _ = server()
    url = MCP + "?key=s3cr3t"
    with pytest.raises(AuthorizationRequired) as caught:
        await call(Anonymous().bind(url, sender=network), network, url)
    assert "s3cr3t" not in str(caught.value)


# -------------------------------------------------------------------------------------------------------- public names


@pytest.mark.parametrize("name", [name for name in public.__all__ if name not in ("Auth", "Credentials")])
def test_every_public_name_is_there(name):
    assert getattr(public, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = public.Nonsense


@pytest.mark.parametrize("auth", [StaticToken("token-1"), Anonymous(), OAuth()])
def test_all_kinds_of_credentials_share_one_protocol(auth):
    network, _ = server()
    assert isinstance(auth, Auth)
    credentials = auth.bind(MCP, sender=network)
    assert isinstance(credentials, Credentials)
    for name in ("headers", "answered", "challenged"):
        wanted = inspect.signature(getattr(Credentials, name))
        assert inspect.signature(getattr(type(credentials), name)).parameters.keys() == wanted.parameters.keys()
