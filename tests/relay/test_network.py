"""Servers behind proxies and with certificates of their own: settings do what a client's options do."""

import re

import pytest

from mcprelay.relay import Relay, ServerUnreachable, SettingWrong
from mcprelay.relay.dial import has_secrets
from mcprelay.relay.listed import identity
from mcprelay.relay.network import network
from mcprelay.relay.settings import Secret, ServerSettings
from tests.clauses.script import complete
from tests.client import test_network as wire
from tests.relay.far import SEARCH

certificates = wire.certificates


async def lists(exchange):
    await exchange.result(complete(tools=[SEARCH]))


async def offered(url, **settings):
    async with Relay(servers={"far": {"url": url, "allow": "*", "timeout": 10, **settings}}) as relay:
        return [tool.tool for tool in await relay.tools()]


async def test_an_authority_of_ones_own_is_trusted_where_it_is_named_and_only_there(certificates):
    async with wire.tls(wire.served(certificates), lists) as (url, http):
        assert await offered(url, ca_file=str(certificates / "ca.pem")) == ["search"]
        assert await offered(url, ca_file=certificates / "ca.pem") == ["search"]
        with pytest.raises(ServerUnreachable) as refused:
            await offered(url)
        assert re.search(
            r"cannot be reached\. The system says: the certificate is not trusted: [a-z -]+\. An authority of one's own"
            r" is trusted by ca_file in its settings\.$",
            str(refused.value),
        )
        assert any("is not trusted (" in note for note in refused.value.__notes__)
        assert len(http.exchanges) == 2


async def test_a_server_that_asks_for_a_certificate_is_shown_one(certificates):
    settings = {"ca_file": str(certificates / "ca.pem")}
    async with wire.tls(wire.served(certificates, asks=True), lists) as (url, _):
        assert await offered(url, **settings, client_cert=str(certificates / "client.pem")) == ["search"]
        both = {name: str(certificates / "client.pem") for name in ("client_cert", "client_key")}
        assert await offered(url, **settings, **both) == ["search"]
        with pytest.raises(ServerUnreachable, match="The connection to the server was lost"):  # reset, or ended
            await offered(url, **settings)


async def test_a_certificate_for_another_name_is_told(certificates):
    async with wire.tls(wire.served(certificates), lists) as (url, _):
        with pytest.raises(ServerUnreachable, match="certificate is not valid for 'localhost'"):
            await offered(url.replace("127.0.0.1", "localhost"), ca_file=certificates / "ca.pem")


async def test_a_server_is_reached_through_the_proxy_of_its_settings(certificates):
    async with wire.tls(wire.served(certificates), lists) as (url, _), wire.Tunnel() as proxy:
        with_secret = proxy.url.replace("http://", "http://user:SECRET@")
        assert await offered(url, ca_file=certificates / "ca.pem", proxy=with_secret) == ["search"]
        assert proxy.asked[0].startswith("CONNECT 127.0.0.1:")
    async with wire.Tunnel(502) as proxy:
        with pytest.raises(ServerUnreachable, match="It is reached through the proxy of its settings") as refused:
            await offered("https://far.invalid/mcp", proxy=proxy.url)
        assert any("HTTP 502" in note for note in refused.value.__notes__)


async def test_the_proxies_of_the_environment_are_used_where_that_is_said(certificates, monkeypatch):
    async with wire.tls(wire.served(certificates), lists) as (url, _), wire.Tunnel() as proxy:
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("https_proxy", proxy.url)
        assert await offered(url, ca_file=certificates / "ca.pem") == ["search"]
        assert proxy.asked == []
        assert await offered(url, ca_file=certificates / "ca.pem", trust_env=True) == ["search"]
        assert len(proxy.asked) == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"ca_file": "gone.pem"},
            r"^settings in code: servers\.far\.ca_file: gone\.pem cannot be used: No such file or directory$",
        ),
        ({"ca_file": __file__}, r"servers\.far\.ca_file: .*py cannot be used: it holds no certificate, or no key that"),
        ({"client_cert": "gone.pem"}, r"client_cert: gone\.pem cannot be used: No such file"),
        ({"client_cert": __file__}, r"client_cert: .*py cannot be used: it holds no certificate"),
        ({"client_cert": __file__, "client_key": "gone.pem"}, r"client_key: gone\.pem cannot be used: "),
        ({"client_cert": "a.pem", "client_key": "gone.pem"}, r"client_cert: a\.pem cannot be used: No such file"),
    ],
)
async def test_a_file_that_cannot_be_used_is_told_with_its_key(settings, said):
    with pytest.raises(SettingWrong, match=said) as wrong:
        await offered("https://far.example/mcp", **settings)
    assert wrong.value.server == "far"


async def test_a_key_with_a_password_asks_nobody_for_it(certificates, tmp_path):
    from cryptography.hazmat.primitives import serialization

    plain = (certificates / "client.pem").read_bytes()
    key = serialization.load_pem_private_key(plain, None)
    locked = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    (tmp_path / "key.pem").write_bytes(locked)
    with pytest.raises(SettingWrong, match="no key that fits it and needs no password"):
        await offered("https://h/mcp", client_cert=certificates / "client.pem", client_key=tmp_path / "key.pem")


def settings(**more):
    return ServerSettings(name="a", transport="http", url="https://a.example/mcp", **more)


def test_whatever_decides_over_the_way_is_part_of_what_lists_are_kept_by(tmp_path):
    environment = {"https_proxy": "http://p:1", "HTTPS_PROXY": "http://q:1", "other": "x"}

    def key(one, environment=environment):
        return identity(one, token=None, key=b"k", environment=environment)

    ways = [
        settings(),
        settings(proxy=Secret("http://p:1")),
        settings(proxy=Secret("http://u:SECRET@p:1")),
        settings(trust_env=True),
        settings(ca_file=tmp_path / "a"),
        settings(client_cert=tmp_path / "a"),
        settings(client_cert=tmp_path / "a", client_key=tmp_path / "b"),
        settings(allow_plaintext=True),
    ]
    assert len({key(one) for one in ways}) == len(ways)
    assert not any("SECRET" in key(one) + repr(one) for one in ways)
    assert key(ways[3]) != key(ways[3], {"https_proxy": "http://q:1"})
    assert key(ways[3]) == key(ways[3], {**environment, "other": "y"})
    assert key(ways[0]) == key(ways[0], {})


def test_a_certificate_that_is_shown_says_who_calls(tmp_path):
    assert has_secrets(settings(client_cert=tmp_path / "a"))
    assert not has_secrets(settings(ca_file=tmp_path / "a", proxy=Secret("http://p:1")))


def test_without_settings_nothing_is_said_to_a_client():
    assert network(settings()) == {}


# --- credentials that others could read on the way


PLAIN = {"url": "http://far.example/mcp", "allow": "*", "timeout": 1}


@pytest.mark.parametrize("secret", [{"token": "t"}, {"token": lambda: "t"}, {"auth": "oauth"}])
def test_credentials_over_plain_http_are_refused_where_they_are_read(secret):
    with pytest.raises(SettingWrong) as wrong:
        Relay(servers={"far": {**PLAIN, **secret}})
    assert str(wrong.value) == (
        f"settings in code: servers.far.{next(iter(secret))}: would go over plain HTTP to another machine"
        " (far.example): use https, or set allow_plaintext = true for the server where nobody can listen"
    )
    Relay(servers={"far": {**PLAIN, **secret, "url": "http://127.0.0.1/mcp"}})
    Relay(servers={"far": {**PLAIN, **secret, "allow_plaintext": True}})


async def test_a_users_token_over_plain_http_is_refused_before_anything_is_sent():
    async with Relay(servers={"far": PLAIN}) as relay:
        with pytest.raises(
            SettingWrong, match=r"the token for the server 'far' would go over plain HTTP to another"
        ) as wrong:
            await relay.with_token("t").tools()
        assert wrong.value.server == "far"
        with pytest.raises(SettingWrong, match="plain HTTP"):
            relay.with_tokens({"far": "t"})


async def test_a_header_that_looks_like_a_secret_is_refused_with_its_server():
    async with Relay(servers={"far": {**PLAIN, "headers": {"X-Api-Key": "SECRET"}}}) as relay:
        with pytest.raises(SettingWrong) as wrong:
            await relay.tools()
    assert str(wrong.value).startswith("settings in code: servers.far: the header 'X-Api-Key' would go over plain HTTP")
    assert "set allow_plaintext = true for the server" in str(wrong.value)
    assert "SECRET" not in str(wrong.value)


async def test_where_nobody_can_listen_plain_http_carries_a_token():
    async with wire.Tunnel(503) as proxy:
        with pytest.raises(
            ServerUnreachable, match=r"with HTTP status 503\. The server is not ready: try again later\.\n"
        ):
            await offered("http://far.invalid/mcp", token="t", allow_plaintext=True, proxy=proxy.url)
        assert "authorization: bearer t" in proxy.asked[0].lower()
