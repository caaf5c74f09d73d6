"""Logging in at servers that are reached as `mcprelay.toml` says: through a proxy, with authorities of one's own."""

import urllib.request
from pathlib import Path

import pytest

from mcprelay.cli import account, calling
from mcprelay.cli.exit import Exit, explain
from mcprelay.cli.option import Options
from mcprelay.errors import ConfigurationError, ConnectFailed, MCPRelayError
from tests.auth.site import reply, site
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


def table(url, *lines):
    Path("mcprelay.toml").write_text("\n".join(["[servers.far]", f'url = "{url}"', 'auth = "oauth"', *lines]))


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
