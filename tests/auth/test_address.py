import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.auth.address import (
    Kind,
    insecure,
    is_loopback,
    kind_of,
    kinds,
    parse,
    refusal,
    same_origin,
)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("javascript:alert(1)", "not an http or https URL"),
        ("file:///etc/passwd", "not an http or https URL"),
        ("ftp://example.com", "not an http or https URL"),
        ("//example.com/x", "not an http or https URL"),
        ("https://", "names no host"),
        ("https:///path", "names no host"),
        ("https://good.example@evil.example/", "carries a user name"),
        ("https://evil.example\\@good.example/", "holds a character"),
        ("https://example.com/a b", "holds a character"),
        ("https://example.com/\r\nX: y", "holds a character"),
        ('https://example.com/$(id)"', "holds a character"),
        ("https://exämple.com/", "holds a character"),
        ("https://example.com:99999/", "is not a URL"),
        ("https://example.com:x/", "is not a URL"),
        ("https://[::1/", "is not a URL"),
        ("https://example.com/#fragment", "carries a fragment"),
        ("https://example.com/#", "carries a fragment"),
        ("https://example.com/" + "a" * 9000, "longer than"),
        ("https://2130706433/", "read as another"),
        ("https://0x7f000001/", "read as another"),
        ("https://0x7f.1/", "read as another"),
        ("https://127.1/", "read as another"),
        ("https://0177.0.0.1/", "read as another"),
        ("https://127.0.0.1.1/", "read as another"),
        ("https://127%2e0%2e0%2e1/", "read as another"),
        ("https://[fe80::1%25eth0]/", "read as another"),
        ("https://./", "read as another"),
    ],
)
def test_a_url_that_could_be_read_in_two_ways_is_refused(url: str, reason: str):
    with pytest.raises(ValueError, match=reason):
        parse(url)


def test_a_url_is_taken_apart_and_kept_byte_for_byte():
    place = parse("https://MCP.Example.com:443/a/b?c=d")
    assert (place.host, place.port, place.path, place.query) == ("mcp.example.com", 443, "/a/b", "c=d")
    assert place.url == "https://MCP.Example.com:443/a/b?c=d"
    assert place.root == "https://MCP.Example.com:443"
    assert place.origin == "https://mcp.example.com"
    assert parse("http://[::1]:8000/x").origin == "http://[::1]:8000"
    assert parse("https://example.com?x=1").root == "https://example.com"


def test_origins_are_compared_by_what_they_mean():
    assert same_origin("https://example.com/a", "HTTPS://EXAMPLE.com:443/b?c")
    assert same_origin("http://example.com:80", "http://example.com./")
    assert not same_origin("https://example.com", "http://example.com")
    assert not same_origin("https://example.com", "https://example.com:8443")
    assert not same_origin("https://example.com", "https://example.com.evil.example")
    assert not same_origin("nonsense", "nonsense")


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("93.184.216.34", Kind.PUBLIC),
        ("2606:2800:220:1:248:1893:25c8:1946", Kind.PUBLIC),
        ("127.0.0.1", Kind.LOOPBACK),
        ("127.255.0.3", Kind.LOOPBACK),
        ("0.0.0.0", Kind.LOOPBACK),  # noqa: S104 - recognized, not bound
        ("::1", Kind.LOOPBACK),
        ("::", Kind.LOOPBACK),
        ("10.0.0.1", Kind.PRIVATE),
        ("172.16.0.1", Kind.PRIVATE),
        ("192.168.1.1", Kind.PRIVATE),
        ("100.64.0.1", Kind.PRIVATE),
        ("198.18.0.1", Kind.PRIVATE),
        ("fd12:3456::1", Kind.PRIVATE),
        ("169.254.1.1", Kind.LINK_LOCAL),
        ("fe80::1", Kind.LINK_LOCAL),
        ("169.254.169.254", Kind.METADATA),
        ("fd00:ec2::254", Kind.METADATA),
        ("100.100.100.200", Kind.METADATA),
        ("224.0.0.1", Kind.OTHER),
        ("255.255.255.255", Kind.OTHER),
        ("::ffff:127.0.0.1", Kind.LOOPBACK),
        ("::ffff:169.254.169.254", Kind.METADATA),
        ("2002:a9fe:a9fe::1", Kind.METADATA),
        ("64:ff9b::7f00:1", Kind.LOOPBACK),
        ("64:ff9b::a00:1", Kind.PRIVATE),
        ("::7f00:1", Kind.LOOPBACK),
        ("::ffff:0:7f00:1", Kind.LOOPBACK),
    ],
)
def test_an_address_is_what_it_leads_to_however_it_is_wrapped(address: str, kind: Kind):
    assert kind_of(ipaddress.ip_address(address)) is kind


@given(st.ip_addresses(v=4))
def test_wrapping_an_address_never_makes_it_better(address: ipaddress.IPv4Address):
    plain = kind_of(address)
    assert kind_of(ipaddress.IPv6Address(f"::ffff:{address}")) is plain
    assert kind_of(ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) | int(address))) is plain
    assert kind_of(ipaddress.IPv6Address(0x2002 << 112 | int(address) << 80)) is plain


@given(st.text())
def test_no_text_does_more_to_the_parser_than_a_value_error(text: str):
    try:
        place = parse(text)
    except ValueError:
        return
    assert place.url == text
    assert text.startswith(place.root)


@pytest.mark.parametrize("host", ["localhost", "app.localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_this_machine_is_known_by_its_names(host: str):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["localhost.example.com", "127.0.0.1.example.com", "example.com", "10.0.0.1", "localhos"]
)
def test_names_that_only_look_like_this_machine_are_not(host: str):
    assert not is_loopback(host)


def test_credentials_go_over_https_or_to_this_machine_or_where_the_user_allows_it():
    assert insecure(parse("https://example.com")) is None
    assert insecure(parse("http://127.0.0.1:8000")) is None
    assert "plain http" in (insecure(parse("http://example.com")) or "")
    assert insecure(parse("http://example.com"), allowed=["example.com"]) is None


def test_a_place_is_refused_when_any_of_its_addresses_is_inside():
    place = parse("https://as.example.com/token")
    assert refusal(place, ["93.184.216.34"]) is None
    assert "private network" in (refusal(place, ["93.184.216.34", "10.0.0.1"]) or "")
    assert "metadata service" in (refusal(parse("https://metadata.google.internal/"), []) or "")
    assert refusal(parse("https://unknown.example/"), []) is None


def test_a_server_may_name_its_own_kind_of_address():
    local = parse("http://localhost:9000/token")
    assert "this machine" in (refusal(local, ["127.0.0.1"]) or "")
    assert refusal(local, ["127.0.0.1"], server=kinds("localhost", ["127.0.0.1"])) is None
    private = parse("https://as.corp.example")
    assert refusal(private, ["10.0.0.2"], server={Kind.PRIVATE}) is None
    assert refusal(private, ["10.0.0.2"], server={Kind.LOOPBACK}) is not None
    assert refusal(private, ["10.0.0.2"], server={Kind.PRIVATE, Kind.PUBLIC}) is not None
    assert refusal(private, ["169.254.169.254"], server={Kind.METADATA}) is not None


def test_a_user_allows_hosts_addresses_and_networks():
    place = parse("https://as.corp.example")
    assert refusal(place, ["10.0.0.2"], allowed=["as.corp.example"]) is None
    assert refusal(place, ["10.0.0.2"], allowed=["10.0.0.0/8"]) is None
    assert refusal(place, ["10.0.0.2", "192.168.0.1"], allowed=["10.0.0.0/8"]) is not None
    assert refusal(place, ["10.0.0.2"], allowed=["other.corp.example", "192.168.0.0/16", "nonsense/99"]) is not None
    assert refusal(parse("https://[fd12::1]/"), [], allowed=["fd12::/16"]) is None
