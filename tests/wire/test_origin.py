import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.errors import ConfigurationError
from mcprelay.wire.origin import HostRules, Refused

EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing is bound
LOCAL = HostRules.from_bind("127.0.0.1", 8000)
ANYWHERE = HostRules.from_bind(EVERYWHERE, 8000)
PUBLIC = HostRules.from_bind(EVERYWHERE, 8000, public_url="https://my.example/mcp")

TRICKS = [
    "evil.example",
    "localhost.",
    "localhost@evil.example",
    "evil.example@localhost",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "localhost,evil.example",
    "localhost evil.example",
    "localhost:8000:8000",
    "localhost:",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "[::ffff:127.0.0.1]",
    "::1",
    "",
]


@pytest.mark.parametrize("bind", ["127.0.0.1", "localhost", "::1", "[::1]", "127.0.0.9"])
@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8000", "localhost:8000", "localhost", "LOCALHOST", "[::1]", "[::1]:8000", "127.0.0.1:9", "[0::1]"],
)
def test_a_loopback_bind_answers_to_every_loopback_name_with_any_port(bind, host):
    rules = HostRules.from_bind(bind, 8000)
    assert rules.host_allowed(host)
    assert rules.refusal(host.encode(), None) is None


def test_a_loopback_bind_answers_to_its_own_address():
    assert HostRules.from_bind("127.0.0.9", 1).host_allowed("127.0.0.9:1")
    assert not LOCAL.host_allowed("127.0.0.9:1")


@pytest.mark.parametrize("host", TRICKS)
def test_a_loopback_bind_answers_to_nothing_else(host):
    assert not LOCAL.host_allowed(host)
    assert LOCAL.refusal(host.encode(), None).status == 421


def test_the_refusal_of_a_host_names_the_settings():
    refused = LOCAL.refusal(b"evil.example", None)
    assert refused == Refused(421, refused.message)
    assert "'evil.example'" in refused.message
    assert "public_url" in refused.message
    assert "allowed_hosts" in refused.message


def test_a_request_without_a_host_is_refused_where_hosts_are_checked():
    assert "no Host header" in LOCAL.refusal(None, None).message
    assert not LOCAL.host_allowed(None)
    assert ANYWHERE.refusal(None, None) is None


def test_the_refusal_of_an_origin_names_the_settings():
    refused = LOCAL.refusal(b"localhost:8000", b"http://evil.example")
    assert refused.status == 403
    assert "'http://evil.example'" in refused.message
    assert "allowed_origins" in refused.message
    assert "public_url" in refused.message


def test_the_host_is_looked_at_before_the_origin():
    assert LOCAL.refusal(b"evil.example", b"http://evil.example").status == 421


@pytest.mark.parametrize(
    "origin",
    [None, "http://localhost:6274", "http://127.0.0.1", "https://localhost", "http://[::1]:5173", "HTTP://LOCALHOST"],
)
def test_a_loopback_bind_answers_pages_of_this_machine_and_programs(origin):
    assert LOCAL.origin_allowed(origin, "localhost:8000")
    assert LOCAL.refusal(b"localhost:8000", None if origin is None else origin.encode()) is None


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://",
        "localhost",
        "http:localhost",
        "http://localhost/",
        "http://localhost/path",
        "http://localhost?x",
        "http://localhost#x",
        "http://user@localhost",
        "http://localhost@evil.example",
        "http://localhost.",
        "http://localhost:",
        "http://localhost:99999",
        "http://localhost http://evil.example",
        " http://localhost",
        "ftp://localhost",
        "file://",
        "http://evil.example",
        "http://localhost.evil.example",
        "http://lоcalhost",  # the first o is Cyrillic
    ],
)
def test_every_other_origin_is_refused(origin):
    assert not LOCAL.origin_allowed(origin, "localhost:8000")


@given(st.text())
def test_no_text_makes_the_decision_fail(text):
    assert LOCAL.host_allowed(text) in (True, False)
    assert LOCAL.origin_allowed(text, text) in (True, False)
    assert ANYWHERE.origin_allowed(text, text) in (True, False)


@given(st.binary(), st.binary())
def test_no_octets_make_the_decision_fail(host, origin):
    for rules in (LOCAL, ANYWHERE, PUBLIC):
        refused = rules.refusal(host, origin)
        assert refused is None or refused.status in (403, 421)


@pytest.mark.parametrize("host", ["my.example", "MY.example", "my.example:443", "my.example:8000", "localhost:8000"])
def test_a_public_url_is_answered_with_no_other_setting(host):
    assert PUBLIC.refusal(host.encode(), None) is None


@pytest.mark.parametrize("host", ["my.example.", "evil.my.example", "my.example.evil", "192.168.1.5:8000"])
def test_a_public_url_allows_no_other_host(host):
    assert PUBLIC.refusal(host.encode(), None).status == 421


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://my.example", True),
        ("https://my.example:443", True),
        ("http://my.example", False),
        ("https://my.example:8443", False),
        ("http://localhost:8000", False),
        ("https://evil.my.example", False),
    ],
)
def test_a_public_url_allows_its_own_origin_alone(origin, allowed):
    assert PUBLIC.origin_allowed(origin, "my.example") == allowed


def test_a_public_url_adds_to_the_names_of_a_loopback_bind():
    rules = HostRules.from_bind("127.0.0.1", 8000, public_url="https://my.example:8443/mcp")
    for host in ("my.example", "my.example:8443", "localhost:8000"):
        assert rules.host_allowed(host)
    assert rules.origin_allowed("https://my.example:8443", "my.example:8443")
    assert not rules.origin_allowed("https://my.example", "my.example:8443")


@pytest.mark.parametrize(
    "rules", [ANYWHERE, HostRules.from_bind("192.168.1.5", 8000), HostRules(), HostRules.from_bind("/run/x.sock")]
)
def test_a_server_that_cannot_know_its_names_takes_any_host_and_the_origin_of_that_host(rules):
    assert rules.refusal(b"whatever.example:8000", None) is None
    assert rules.origin_allowed("http://whatever.example:8000", "whatever.example:8000")
    assert rules.origin_allowed("https://whatever.example", "whatever.example")
    assert not rules.origin_allowed("http://whatever.example", "whatever.example:8000")
    assert not rules.origin_allowed("http://evil.example", "whatever.example:8000")
    assert not rules.origin_allowed("http://evil.example", None)
    assert not rules.origin_allowed("null", "whatever.example:8000")


@pytest.mark.parametrize(
    ("entry", "host", "allowed"),
    [
        ("my.example", "my.example", True),
        ("my.example", "my.example:1234", True),
        ("My.Example", "my.example", True),
        ("my.example:*", "my.example:1234", True),
        ("my.example:8443", "my.example:8443", True),
        ("my.example:8443", "my.example", False),
        ("my.example:8443", "my.example:8444", False),
        ("my.example:443", "my.example", True),
        ("*.my.example", "a.my.example", True),
        ("*.my.example", "a.b.my.example:9", True),
        ("*.my.example", "my.example", False),
        ("*.my.example", "evilmy.example", False),
        ("*.my.example:8443", "a.my.example:8443", True),
        ("*.my.example:8443", "a.my.example", False),
        ("[2001:db8::1]", "[2001:db8:0::1]:80", True),
        ("2001:db8::1", "[2001:db8::1]", True),
        ("bücher.example", "xn--bcher-kva.example", True),
        ("straße.example:8443", "xn--strae-oqa.example:8443", True),
        ("straße.example", "strasse.example", False),
        ("*", "evil.example", True),
        ("*", "not a host", True),
    ],
)
def test_an_entry_of_allowed_hosts_means_what_it_says(entry, host, allowed):
    rules = HostRules.from_bind(EVERYWHERE, 8000, allowed_hosts=[entry])
    assert rules.host_allowed(host) == allowed
    assert (rules.refusal(host.encode(), None) is None) == allowed


def test_an_origin_at_an_allowed_host_is_allowed():
    rules = HostRules.from_bind(EVERYWHERE, 8000, allowed_hosts=["my.example", "a.example:8443"])
    assert rules.origin_allowed("https://my.example", "my.example")
    assert rules.origin_allowed("http://my.example:5000", "my.example")
    assert rules.origin_allowed("https://a.example:8443", "a.example:8443")
    assert not rules.origin_allowed("https://a.example", "a.example:8443")
    assert not rules.origin_allowed("app://my.example", "my.example")


def test_any_host_allowed_still_means_no_foreign_origin():
    rules = HostRules.from_bind("127.0.0.1", 8000, allowed_hosts=["*"])
    assert rules.origin_allowed("http://localhost:1", "my.example")
    assert rules.origin_allowed("http://my.example", "my.example")
    assert not rules.origin_allowed("http://evil.example", "my.example")


@pytest.mark.parametrize(
    ("entry", "origin", "allowed"),
    [
        ("https://app.example", "https://app.example", True),
        ("https://app.example/", "https://app.example:443", True),
        ("https://app.example", "http://app.example", False),
        ("https://app.example", "https://app.example:8443", False),
        ("https://app.example:8443", "https://app.example:8443", True),
        ("http://app.example:*", "http://app.example:5173", True),
        ("https://*.app.example", "https://a.app.example", True),
        ("https://*.app.example", "https://app.example", False),
        ("https://bücher.example", "https://xn--bcher-kva.example", True),
        ("vscode-webview://1q2w3e", "vscode-webview://1q2w3e", True),
        ("vscode-webview://1q2w3e", "vscode-webview://other", False),
        ("null", "null", True),
        ("null", "http://evil.example", False),
        ("*", "null", True),
        ("*", "http://evil.example", True),
        ("*", "whatever", True),
    ],
)
def test_an_entry_of_allowed_origins_means_what_it_says(entry, origin, allowed):
    rules = HostRules.from_bind("127.0.0.1", 8000, allowed_origins=[entry])
    assert rules.origin_allowed(origin, "localhost:8000") == allowed
    assert rules.origin_allowed("http://localhost:8000", "localhost:8000")


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("allowed_hosts", "my.example", "allowed_hosts is a list"),
        ("allowed_hosts", ["https://my.example"], "allowed_hosts: 'https://my.example' is not a host"),
        ("allowed_hosts", ["my.example."], "is not a host"),
        ("allowed_hosts", ["user@my.example"], "is not a host"),
        ("allowed_hosts", ["a.*.example"], "is not a host"),
        ("allowed_hosts", [""], "is not a host"),
        ("allowed_hosts", ["\u2028.example"], "cannot be sent as a host"),
        ("allowed_origins", "https://a.example", "allowed_origins is a list"),
        ("allowed_origins", ["a.example"], "allowed_origins: 'a.example' is not an origin"),
        ("allowed_origins", ["https://a.example/path"], "is not an origin"),
        ("allowed_origins", ["https://a.example."], "is not a host"),
        ("public_url", "my.example", "public_url: 'my.example' is not an http or https URL"),
        ("public_url", "ftp://my.example", "is not an http or https URL"),
        ("public_url", "https://my.example/mcp#x", "is not an http or https URL"),
        ("public_url", "https://user@my.example/mcp", "public_url: 'user@my.example' is not a host"),
    ],
)
def test_a_setting_that_is_not_what_it_says_is_told_at_once(setting, value, said):
    with pytest.raises(ConfigurationError) as caught:
        HostRules.from_bind("127.0.0.1", 8000, **{setting: value})
    assert said in str(caught.value)


def test_a_name_outside_ascii_needs_its_translator_or_its_sent_form(monkeypatch):
    monkeypatch.setitem(sys.modules, "idna", None)
    with pytest.raises(ConfigurationError, match="Write the form with 'xn--'"):
        HostRules(allowed_hosts=["bücher.example"])
    assert HostRules(allowed_hosts=["xn--bcher-kva.example"]).host_allowed("xn--bcher-kva.example")


def test_a_long_header_is_not_repeated_in_full():
    assert len(LOCAL.refusal(b"x" * 10_000, None).message) < 500
    assert len(LOCAL.refusal(b"localhost", b"http://" + b"x" * 10_000).message) < 500
