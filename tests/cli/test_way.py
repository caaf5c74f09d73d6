"""Logging in at servers that are reached as `mcprelay.toml` says: through a proxy, with authorities of one's own, with
headers, over plain HTTP."""

import urllib.request
from pathlib import Path

import pytest

from mcprelay.cli import account, calling
from mcprelay.cli.exit import Exit, explain
from mcprelay.cli.option import Options
from mcprelay.errors import AuthorizationRequired, ConfigurationError, ConnectFailed, MCPRelayError
from mcprelay.relay import Relay
from tests.auth.site import METADATA, SERVER_METADATA, reply, site
from tests.client import test_network as wire

certificates = wire.certificates


@pytest.fixture(autouse=True)
def _person(certificates, tmp_path, monkeypatch):
    """Somebody with an empty home, whose browser trusts the authority and agrees to everything."""

    def launch(url):
        context = wire.trusting(certificates, shows=True)
        straight = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        urllib.request.build_opener(*straight).open(url, timeout=20).close()
        return True

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("mcprelay.auth.interaction.open_browser", launch)


@pytest.fixture
def secured(certificates):
    """A site over https whose certificate is of an authority of its own."""
    return site(tls=wire.served(certificates))


def table(url, *lines, auth="oauth"):
    said = [] if auth is None else [f'auth = "{auth}"']
    Path("mcprelay.toml").write_text("\n".join(["[servers.far]", f'url = "{url}"', *said, *lines]))


def trusted(certificates):
    return f'ca_file = "{certificates / "ca.pem"}"'


async def test_a_login_goes_the_way_of_the_servers_table_and_so_does_what_is_stored(certificates, secured, capsys):
    async with secured as far, wire.Tunnel() as proxy:
        far.metadata["revocation_endpoint"] = f"{far.origin}/revoke"
        far.over["/revoke"] = reply(200)
        table(far.url, trusted(certificates), f'proxy = "{proxy.url}"')
        await account.login("far")
        at = far.origin.removeprefix("https://")
        assert {head.split("\r\n")[0] for head in proxy.asked} == {f"CONNECT {at} HTTP/1.1"}
        assert [each.form["grant_type"] for each in far.asked("/token")] == ["authorization_code"]
        before = len(proxy.asked)
        await calling.tools("far", Options())
        assert far.log[-1].token == "access-1"
        through = len(proxy.asked)
        assert through > before
        await account.logout("far")
        assert [each.form["token"] for each in far.asked("/revoke")] == ["refresh-1", "access-1"]
        assert len(proxy.asked) > through
    assert "logged in at" in capsys.readouterr().err


async def test_a_login_shows_the_certificate_of_the_servers_table(certificates, capsys):
    async with site(tls=wire.served(certificates, asks=True)) as far:
        table(far.url, trusted(certificates))
        with pytest.raises(MCPRelayError):
            await account.login("far")
        assert far.log == []
        table(far.url, trusted(certificates), f'client_cert = "{certificates / "client.pem"}"')
        await account.login("far")
    assert "logged in at" in capsys.readouterr().err


async def test_a_login_uses_the_proxies_of_the_environment_where_the_table_says_so(
    certificates, secured, monkeypatch, capsys
):
    async with secured as far, wire.Tunnel() as proxy:
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("https_proxy", proxy.url)
        table(far.url, trusted(certificates))
        await account.login("far")
        assert proxy.asked == []
        table(far.url, trusted(certificates), "trust_env = true")
        await account.login("far")
        assert proxy.asked
    assert "logged in at" in capsys.readouterr().err


async def test_an_authority_that_is_not_trusted_is_told_with_the_setting_that_names_it(secured):
    async with secured as far:
        table(far.url)
        for work in (account.login, lambda target: calling.tools(target, Options())):
            with pytest.raises(ConnectFailed) as untrusted:
                await work("far")
            failure = explain(untrusted.value)
            assert failure.code is Exit.UNREACHED
            assert "is not trusted" in failure.sentence
            assert "ca_file" in failure.sentence


async def test_a_file_that_cannot_be_used_is_told_with_its_key():
    table("https://far.example/mcp", 'ca_file = "gone.pem"')
    for work in (account.login, account.logout):
        with pytest.raises(ConfigurationError, match=r"servers\.far\.ca_file: .*gone\.pem cannot be used"):
            await work("far")


def test_what_a_login_is_for():
    url, server = account.meant("https://a.example/mcp")
    assert (url, server.name) == ("https://a.example/mcp", url)
    with pytest.raises(ConfigurationError, match=r"no mcprelay\.toml here"):
        account.meant("far")
    table("https://far.example/mcp", "[servers.files]", 'command = ["x"]')
    url, server = account.meant("far")
    assert (url, server.auth) == ("https://far.example/mcp", "oauth")
    with pytest.raises(ConfigurationError, match="nowhere to log in"):
        account.meant("files")


# --- headers that the server wants


def gated(asked):
    """What a gateway before the server answers to who does not show that it may pass; None to who does."""
    return None if asked.headers.get("x-gate") == "s3same" else reply(404)


async def test_the_headers_of_the_servers_table_go_to_the_server_and_to_nobody_else(capsys):
    async with site() as far:
        far.over["/mcp"] = far.over[METADATA] = gated
        table(far.url)
        with pytest.raises(MCPRelayError):
            await account.login("far")
        far.log.clear()
        table(far.url, 'headers = { X-Gate = "s3same" }')
        await account.login("far")
        shown = {each.path for each in far.log if "x-gate" in each.headers}
        assert shown == {"/mcp", METADATA}
        assert {each.path for each in far.log} - shown == {SERVER_METADATA, "/register", "/authorize", "/token"}
        far.log.clear()
        far.accepts = lambda token: token == "access-2"  # as after an hour: it is renewed on the way
        await calling.tools("far", Options())
        assert {each.path for each in far.log if "x-gate" in each.headers} == {"/mcp", METADATA}
        assert [each.path for each in far.log if "x-gate" not in each.headers] == ["/token"]
    assert "logged in at" in capsys.readouterr().err


async def test_no_header_goes_to_another_origin_that_the_server_names(capsys):
    async with site() as far, site() as other:
        far.over["/mcp"] = lambda asked: gated(asked) and reply(403)
        far.challenge = f'Bearer resource_metadata="{other.origin}{METADATA}"'
        other.resource = {"resource": far.url}
        table(far.url, 'headers = { X-Gate = "s3same" }')
        await account.login("far")
        assert other.asked(METADATA)
        assert not any("x-gate" in each.headers for each in other.log)
    assert "logged in at" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["Authorization", "authorization"])
async def test_a_header_that_says_who_calls_is_none_to_log_in_with(name):
    async with site() as far:
        table(far.url, f'headers = {{ {name} = "Bearer s3same" }}')
        with pytest.raises(ConfigurationError) as wrong:
            await account.login("far")
        assert far.log == []
    assert explain(wrong.value).sentence.startswith(
        f"headers in mcprelay.toml: {name!r} says who calls, and so does the token that a login gets: take it out"
    )
    assert "s3same" not in str(wrong.value)


# --- plain HTTP to another machine


PLAIN = "http://mcp.corp.example/mcp"


@pytest.fixture
async def corp():
    """A server on another machine that is reached over plain HTTP: the site is the proxy on the way to it, too."""
    async with site() as far:
        far.challenge = f'Bearer resource_metadata="http://mcp.corp.example{METADATA}"'
        far.resource = {"resource": PLAIN}
        yield far


NEAR = account.Wishes(allowed_hosts=("127.0.0.1",))
"""The authorization server is on this machine, where plain HTTP is safe, but the server is not the one to say so."""


async def test_a_token_is_got_and_shown_over_plain_http_where_the_table_says_so(corp, capsys):
    table(PLAIN, f'proxy = "{corp.origin}"', "allow_plaintext = true", 'allow = "*"')
    await account.login("far", NEAR)
    await calling.tools("far", Options())
    assert corp.log[-1].token == "access-1"
    async with Relay.load() as relay:
        await relay.tools("far")
        assert corp.log[-1].token == "access-1"
        corp.accepts = lambda token: token == "access-2"
    async with Relay.load() as relay:
        await relay.tools("far")
        assert corp.asked("/token")[-1].form["grant_type"] == "refresh_token"
        assert corp.log[-1].token == "access-2"
    await account.logout("far")
    assert "logged in at" in capsys.readouterr().err


async def test_a_refusal_over_plain_http_says_which_command_logs_in(corp):
    table(PLAIN, f'proxy = "{corp.origin}"', "allow_plaintext = true")
    with pytest.raises(AuthorizationRequired, match="run: mcprelay login far"):
        await calling.tools("far", Options())
    table(PLAIN, f'proxy = "{corp.origin}"', "allow_plaintext = true", 'token = "t"', auth=None)
    with pytest.raises(AuthorizationRequired, match='set auth = "oauth" for it in mcprelay.toml'):
        await calling.tools("far", Options())


async def test_an_authorization_server_is_never_reached_over_plain_http_on_another_machine(corp):
    corp.resource["authorization_servers"] = ["http://as.corp.example"]
    table(PLAIN, f'proxy = "{corp.origin}"', "allow_plaintext = true")
    with pytest.raises(AuthorizationRequired) as refused:
        await account.login("far", account.Wishes(allowed_hosts=("as.corp.example",)))
    assert "allow_plaintext is for the MCP server itself. Only https will do" in explain(refused.value).sentence
    assert {each.path for each in corp.log} == {"/mcp", METADATA}


async def test_without_the_setting_no_login_goes_over_plain_http(corp):
    table(PLAIN, f'proxy = "{corp.origin}"', auth=None)
    for work in (account.login, account.logout):
        with pytest.raises(ConfigurationError) as refused:
            await work("far")
        assert "set allow_plaintext = true for the server in mcprelay.toml" in explain(refused.value).sentence
    assert corp.log == []
