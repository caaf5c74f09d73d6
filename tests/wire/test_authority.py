import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.wire.authority import Authority, is_loopback


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("localhost", "localhost", None),
        ("LocalHost:8000", "localhost", 8000),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("my-host_1.example:65535", "my-host_1.example", 65535),
        ("[::1]", "::1", None),
        ("[0:0:0:0:0:0:0:1]:80", "::1", 80),
        ("[2001:DB8::A]", "2001:db8::a", None),
        ("xn--bcher-kva.example", "xn--bcher-kva.example", None),
    ],
)
def test_a_host_is_read_in_one_spelling(text, host, port):
    authority = Authority.read(text)
    assert (authority.host, authority.port) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "localhost.",
        ".localhost",
        "local..host",
        "localhost:",
        "localhost:65536",
        "localhost:123456",
        "localhost:-1",
        "localhost:８０",
        "localhost:80:80",
        "localhost@evil.example",
        "user:pw@localhost",
        "evil.example#@localhost",
        "localhost/evil",
        "localhost\\evil",
        "localhost?x",
        "local host",
        "localhost,evil.example",
        "localhost\r\nX: 1",
        "localhost\0",
        "local%68ost",
        "bücher.example",
        "ⓛocalhost",
        "[::1",
        "::1",
        "[::1]x",
        "[fe80::1%eth0]",
        "[127.0.0.1]",
        "[:::1]",
        "[localhost]",
        "http://localhost",
        "-localhost",
        "a" * 254,
    ],
)
def test_what_readers_could_take_differently_is_no_host(text):
    assert Authority.read(text) is None


@given(st.text(max_size=30))
def test_what_is_read_reads_the_same_again(text):
    authority = Authority.read(text)
    if authority is not None:
        again = f"[{authority.host}]" if ":" in authority.host else authority.host
        assert Authority.read(again) == Authority(authority.host)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST",
        "127.0.0.1",
        "127.1.2.3",
        "127.255.255.255",
        "::1",
        "[::1]",
        "0:0::1",
        "::ffff:127.0.0.1",
    ],
)
def test_loopback_is_this_machine_for_sure(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "0.0.0.0",  # noqa: S104 - nothing is bound
        "::",
        "127.0.0.1.evil.example",
        "127.evil.example",
        "127.1",
        "127.0.0.256",
        "127.0.0.1.",
        "127.0.0.01",
        "localhost.evil.example",
        "localhost.",
        "10.0.0.1",
        "::2",
        "::ffff:10.0.0.1",
        ":",
        "evil.example",
    ],
)
def test_what_only_looks_like_loopback_is_not(host):
    assert not is_loopback(host)
