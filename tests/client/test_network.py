"""How HTTP is done: real TLS handshakes, proxies, and options that go with nothing."""

import asyncio
import contextlib
import datetime as dt
import ipaddress
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mcprelay import (
    CallFailed,
    Client,
    ConfigurationError,
    ConnectFailed,
    Evidence,
    HttpError,
    MCPRelayError,
    OAuth,
    Server,
)
from mcprelay.auth import StaticToken
from mcprelay.testing import ScriptedChannel, ScriptedSender
from tests.client.peer import fresh, tool_result
from tests.client.scripted_http import ScriptedHttp


async def ok(exchange):
    await exchange.result(tool_result())


# --- TLS


def _named(name):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _certificate(name, key, *, issuer, signer, authority=False, since=-1, until=1):
    now = dt.datetime.now(dt.UTC)
    host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder().subject_name(_named(name)).issuer_name(_named(issuer))
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now + dt.timedelta(hours=since))
    builder = builder.not_valid_after(now + dt.timedelta(hours=until))
    builder = builder.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    signed_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())  # which newer Pythons insist on
    builder = builder.add_extension(signed_by, critical=False)
    subject = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = builder.add_extension(subject, critical=False)
    purposes = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only",
         "decipher_only", "crl_sign"), False
    )  # fmt: skip
    usage = x509.KeyUsage(digital_signature=True, key_cert_sign=authority, **purposes)
    builder = builder.add_extension(usage, critical=True)
    return builder.add_extension(host, critical=False).sign(signer, hashes.SHA256())


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A folder with an authority, and certificates of a server and of a client that it signed, keys included."""
    folder = tmp_path_factory.mktemp("tls")
    authority = ec.generate_private_key(ec.SECP256R1())
    root = _certificate("authority", authority, issuer="authority", signer=authority, authority=True)
    (folder / "ca.pem").write_bytes(root.public_bytes(serialization.Encoding.PEM))
    times = {"server": {}, "client": {}, "expired": {"since": -2, "until": -1}, "early": {"since": 1, "until": 2}}
    for name, valid in times.items():
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(name, key, issuer="authority", signer=authority, **valid)
        plain = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (folder / f"{name}.pem").write_bytes(plain + certificate.public_bytes(serialization.Encoding.PEM))
    return folder


def served(certificates, *, version=None, asks=False, name="server"):
    """The server's side of TLS; it `asks` for a certificate of the client's, and shows the one of that `name`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / f"{name}.pem")
    if asks:
        context.load_verify_locations(certificates / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    if version is not None:
        context.maximum_version = context.minimum_version = version
    return context


def trusting(certificates, *, shows=False):
    """The client's side, which trusts the authority; it `shows` a certificate."""
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    if shows:
        context.load_cert_chain(certificates / "client.pem")
    return context


@contextlib.asynccontextmanager
async def tls(context, respond=ok):
    """A server that speaks TLS: its address, and what came."""
    http = ScriptedHttp(respond)
    async with await asyncio.start_server(http._serve, "127.0.0.1", 0, ssl=context) as server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", http


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_authority_of_the_users_is_trusted_where_it_is_named_and_only_there(certificates, version):
    async with tls(served(certificates, version=version)) as (url, http):
        async with fresh(url, ssl=trusting(certificates)) as client:
            assert (await client.call_tool("x")).value == "ok"
        async with fresh(url) as client:
            with pytest.raises(ConnectFailed, match="is not trusted") as caught:
                await client.call_tool("x")
        assert caught.value.evidence is Evidence.NOT_SENT
        assert len(http.exchanges) == 1


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_client_certificate_is_shown_to_a_server_that_asks_for_one(certificates, version):
    async with tls(served(certificates, version=version, asks=True)) as (url, http):
        async with fresh(url, ssl=trusting(certificates, shows=True)) as client:
            assert (await client.call_tool("x")).value == "ok"
        async with fresh(url, ssl=trusting(certificates)) as client:
            with pytest.raises(CallFailed):
                await client.call_tool("x", timeout=10)
        assert len(http.exchanges) == 1


async def test_a_name_that_the_certificate_does_not_have_is_not_sent_anything(certificates):
    async with tls(served(certificates)) as (url, http):
        async with fresh(url.replace("127.0.0.1", "localhost"), ssl=trusting(certificates)) as client:
            with pytest.raises(ConnectFailed) as caught:
                await client.call_tool("x")
        assert caught.value.evidence is Evidence.NOT_SENT
        assert http.exchanges == []


@pytest.mark.parametrize(
    ("name", "host", "trusts", "said"),
    [
        (
            "server",
            "127.0.0.1",
            False,
            r"is not trusted \(.*\): an authority of your own is named with ssl=, or SSL_CERT",
        ),
        ("server", "localhost", True, r"is for another host \(.*localhost.*\): use the address that it names, or give"),
        ("expired", "127.0.0.1", True, r"has expired \(.*\): see whether the clock of this machine is right; else the"),
        ("early", "127.0.0.1", True, r"is not valid yet \(.*\): see whether the clock of this machine is right"),
    ],
)
async def test_a_certificate_that_is_refused_says_why_and_what_to_do(certificates, name, host, trusts, said):
    async with tls(served(certificates, name=name)) as (url, http):
        options = {"ssl": trusting(certificates)} if trusts else {}
        async with fresh(url.replace("127.0.0.1", host), **options) as client:
            with pytest.raises(ConnectFailed, match=said) as caught:
                await client.call_tool("x")
        assert str(caught.value).startswith(f"tools/call 'x': the certificate of {host}:")
        assert ("is not trusted" in str(caught.value)) is not trusts
        assert http.exchanges == []


# --- proxies


class Tunnel:
    """A proxy that connects to wherever it is asked to, or says with which status it does not."""

    def __init__(self, status=200, *, then=None):
        self.asked = []
        self._status = status
        self._then = then

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._tasks = set()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            self.asked.append(head.decode())
            if self._status is None:
                return
            writer.write(b"HTTP/1.1 %d Status\r\ncontent-length: 0\r\n\r\n" % self._status)
            if self._status == 200 and self._then != "cut":
                host, _, port = head.split()[1].decode().rpartition(":")
                await self._between(reader, writer, *await asyncio.open_connection(host, int(port)))

    async def _between(self, reader, writer, far_reader, far_writer):
        async def carry(source, drain):
            with contextlib.suppress(ConnectionError):
                while data := await source.read(65536):
                    drain.write(data)
            drain.close()

        with contextlib.closing(far_writer):
            await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer))


async def test_through_a_proxy_tls_is_spoken_with_the_server_itself(certificates):
    async with tls(served(certificates)) as (url, http), Tunnel() as proxy:
        async with fresh(url, proxy=proxy.url, ssl=trusting(certificates), auth="t") as client:
            for _ in range(2):
                assert (await client.call_tool("x")).value == "ok"
        assert [head.split("\r\n")[0] for head in proxy.asked] == [f"CONNECT {url[8:-4]} HTTP/1.1"]
        assert "Bearer" not in proxy.asked[0]
        assert [exchange.headers["authorization"] for exchange in http.exchanges] == ["Bearer t"] * 2


async def test_a_proxy_is_given_the_credentials_of_its_address_and_the_server_is_not(certificates):
    async with tls(served(certificates)) as (url, http), Tunnel() as proxy:
        async with fresh(url, proxy=proxy.url.replace("//", "//me:pw@"), ssl=trusting(certificates)) as client:
            await client.call_tool("x")
        assert "Proxy-Authorization: Basic bWU6cHc=" in proxy.asked[0]
        assert "proxy-authorization" not in http.exchanges[0].headers


@pytest.mark.parametrize("tunnel", [{"status": 407}, {"status": 502}, {"status": None}, {"status": 200, "then": "cut"}])
async def test_nothing_was_sent_where_the_proxy_gives_no_tunnel(tunnel):
    async with Tunnel(**tunnel) as proxy:
        async with fresh("https://far.example/mcp", proxy=proxy.url) as client:
            with pytest.raises(ConnectFailed) as caught:
                await client.call_tool("x")
        assert caught.value.evidence is Evidence.NOT_SENT
        assert proxy.asked[0].startswith("CONNECT far.example:443 ")


async def test_a_proxy_that_wants_credentials_says_where_they_go():
    async def respond(exchange):
        await exchange.reply(407)

    async with ScriptedHttp(respond) as proxy:
        async with fresh("http://far.example/mcp", proxy=f"http://127.0.0.1:{proxy.port}") as client:
            with pytest.raises(HttpError, match="proxy="):
                await client.call_tool("x")


REFUSED = "refused the credentials that it was shown: those in proxy=, or in the environment's address of it"


@pytest.mark.parametrize("address", ["http://far.example/mcp", "https://far.example/mcp"])
@pytest.mark.parametrize("environment", [False, True])
async def test_a_proxy_that_refuses_its_credentials_is_not_said_to_want_some(address, environment, monkeypatch):
    async with ScriptedHttp(lambda exchange: exchange.reply(407)) as proxy:
        place = f"http://me:wrong@127.0.0.1:{proxy.port}"
        monkeypatch.setenv(f"{address.partition(':')[0]}_proxy", place)
        monkeypatch.delenv("no_proxy", raising=False)
        options = {"trust_env": True} if environment else {"proxy": place}
        async with fresh(address, **options) as client:
            with pytest.raises(CallFailed) as caught:
                await client.call_tool("x")
    assert REFUSED in str(caught.value)
    assert "wants credentials" not in str(caught.value)
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize("trusted", [True, False])
async def test_the_proxies_of_the_environment_are_used_where_it_is_trusted(trusted, monkeypatch):
    async with ScriptedHttp(ok) as proxy, ScriptedHttp(ok) as http:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        async with fresh(http.url, trust_env=trusted) as client:
            assert (await client.call_tool("x")).value == "ok"
        assert (len(proxy.exchanges), len(http.exchanges)) == ((1, 0) if trusted else (0, 1))


# --- options that cannot be


WRONG = [
    ({"ssl": "ca.pem"}, r"ssl is a value of the type SSLContext, and not 'ca.pem' \(str\): .*cafile"),
    ({"ssl": True}, "SSLContext"),
    ({"proxy": 123}, "proxy is a value of the type str"),
    ({"proxy": "socks5://127.0.0.1:1"}, "address of an HTTP proxy .* and not 'socks5'"),
    ({"proxy": "nonsense"}, r"proxy is the address of an HTTP proxy \(http://host:port\)$"),
    ({"proxy": ""}, "address of an HTTP proxy"),
    ({"proxy": "http://"}, "address of an HTTP proxy"),
    ({"proxy": "http://p:port"}, "address of an HTTP proxy"),
    ({"proxy": "http://p:1\r\nX: y"}, "address of an HTTP proxy"),
    ({"proxy": "http://[::1"}, "address of an HTTP proxy"),
    ({"trust_env": "yes"}, "trust_env"),
    ({"allow_plaintext": 1}, "allow_plaintext"),
    ({"sender": object()}, r"sender is an HTTP client with send\(\) and aclose\(\)"),
    ({"sender": ScriptedSender(), "proxy": "http://p:1"}, "proxy is for the client's own HTTP client"),
    ({"sender": ScriptedSender(), "ssl": ssl.create_default_context()}, "ssl is for the client's own HTTP client"),
    ({"sender": ScriptedSender(), "trust_env": True}, "trust_env is for the client's own HTTP client"),
    ({"auth": "t", "headers": {"authorization": "Bearer u"}}, "'Authorization' is what auth= sets"),
]


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_what_cannot_be_is_refused_where_it_is_said(options, said):
    with pytest.raises(ConfigurationError, match=said):
        Client("https://a.example/mcp", **options)


def test_what_is_wrong_with_a_proxy_is_said_without_its_credentials():
    with pytest.raises(ConfigurationError) as caught:
        Client("https://a.example/mcp", proxy="socks5://me:s3cret@p:1")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("target", [["true"], Server("s"), ScriptedChannel()], ids=["command", "server", "channel"])
@pytest.mark.parametrize(
    "options",
    [
        {"proxy": "http://p:1"},
        {"ssl": ssl.create_default_context()},
        {"trust_env": True},
        {"allow_plaintext": True},
        {"sender": ScriptedSender()},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_of_http_belong_to_addresses(target, options):
    (name,) = options
    with pytest.raises(ConfigurationError, match=f"^{name} belongs to an address"):
        Client(target, **options)


@pytest.mark.parametrize("name", ["X-Session-Id", "X-Credential", "X-Pass", "X-Signature", "X-Api-Pwd", "X-Bearer"])
def test_headers_that_look_like_credentials_do_not_go_over_plain_http_to_another_machine(name):
    with pytest.raises(ConfigurationError, match=f"'{name}' would go over plain HTTP"):
        Client("http://example.com/mcp", headers={name: "s3cret"})
    Client("http://example.com/mcp", headers={name: "s3cret"}, allow_plaintext=True)
    Client("http://127.0.0.1/mcp", headers={name: "s3cret"})


class Known:
    """Credentials of a user's own making, which note where they are bound."""

    def __init__(self):
        self.bound = []

    def bind(self, url, *, sender):
        self.bound.append(url)
        return StaticToken("own").bind("https://a.example/mcp", sender=sender)


@pytest.mark.parametrize("auth", ["t", lambda: "t", StaticToken("t"), OAuth(), Known()])
async def test_where_the_user_allows_it_credentials_of_every_kind_go_over_plain_http(auth):
    """Through a proxy, since nothing on this machine is another machine."""
    with pytest.raises(ConfigurationError, match=r"auth would go over plain HTTP .* or allow_plaintext=True where"):
        Client("http://far.invalid/mcp", auth=auth)
    async with Tunnel(404) as proxy:
        with pytest.raises(MCPRelayError) as caught:
            async with fresh("http://far.invalid/mcp", auth=auth, allow_plaintext=True, proxy=proxy.url) as client:
                await client.list_tools()
        if isinstance(auth, Known):
            assert "credentials for https://a.example are not sent to http://far.invalid" in str(caught.value)
        else:
            assert proxy.asked
            shown = {"authorization: bearer t" in head.lower() for head in proxy.asked}
            assert shown == {not isinstance(auth, OAuth)}
