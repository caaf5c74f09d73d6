"""What HTTP says on the client's side, as values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay import revisions
from mcprelay.core.dialer import Addressed, Dialer, Kind, error_in, field_fault, is_reserved, kind_of
from mcprelay.revisions import NEWEST, NEWEST_HANDSHAKE
from mcprelay.wire.field import HeaderInvalid, decode

URL = "https://host.example/mcp"


def headers(request):
    return {name.lower(): value for name, value in request.headers}


def test_in_the_newest_era_headers_mirror_the_message():
    dialer = Dialer(URL)
    request = dialer.post(Addressed(b"{}", "tools/call", "add", [("Mcp-Param-A", "1")], [("X", "y")]), revision=NEWEST)
    assert (request.method, request.url, request.body) == ("POST", URL, b"{}")
    assert headers(request) == {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "accept-encoding": "identity",
        "mcp-protocol-version": NEWEST.name,
        "mcp-method": "tools/call",
        "mcp-name": "add",
        "mcp-param-a": "1",
        "x": "y",
    }


def test_what_is_added_to_one_request_is_not_in_the_next():
    dialer = Dialer(URL)
    first = dialer.post(Addressed(b"", "tools/list"), revision=NEWEST)
    first.headers.append(("X", "y"))
    second = dialer.post(Addressed(b"", "tools/list"), revision=NEWEST)
    assert "x" not in headers(second)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_every_name_comes_back_from_its_header(name):
    dialer = Dialer(URL)
    for _ in range(2):
        value = headers(dialer.post(Addressed(b"", "tools/call", name), revision=NEWEST))["mcp-name"]
        assert value.isascii()
        assert value.isprintable()
        assert decode(value) == name


def test_a_name_that_no_header_carries_is_told():
    with pytest.raises(HeaderInvalid):
        Dialer(URL).post(Addressed(b"", "tools/call", "\ud800"), revision=NEWEST)
    with pytest.raises(HeaderInvalid):
        Dialer(URL).post(Addressed(b"", "täst"), revision=NEWEST)


def test_names_are_remembered_without_end_but_not_for_ever():
    dialer = Dialer(URL)
    for number in range(3000):
        dialer.post(Addressed(b"", "tools/call", f"n{number}"), revision=NEWEST)
    assert len(dialer._names) <= 1024


@pytest.mark.parametrize("name", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_in_the_handshake_era_headers_name_session_and_revision_once_they_are_agreed_on(name):
    revision = revisions.find(name)
    dialer = Dialer(URL)
    greeting = headers(dialer.post(Addressed(b"", "initialize"), revision=None))
    assert not [key for key in greeting if key.startswith("mcp-")]
    dialer.opened(revision, {"mcp-session-id": "abc"})
    for request in (dialer.post(Addressed(b"", "tools/call", "x"), revision=revision), dialer.get(), dialer.delete()):
        fields = headers(request)
        assert fields["mcp-session-id"] == "abc"
        assert fields.get("mcp-protocol-version") == (name if revision.http.version_header else None)
        assert "mcp-method" not in fields
    dialer.forget()
    assert dialer.session is None


@pytest.mark.parametrize("session", [None, "", "a b", "é", "a\tb"])
def test_a_session_id_is_visible_ascii(session):
    dialer = Dialer(URL)
    dialer.opened(NEWEST_HANDSHAKE, {} if session is None else {"mcp-session-id": session})
    assert dialer.session is None


def test_a_stream_is_resumed_after_an_event():
    assert headers(Dialer(URL).get(last_event_id="e1"))["last-event-id"] == "e1"
    assert "last-event-id" not in headers(Dialer(URL).get())
    assert headers(Dialer(URL).get())["accept"] == "text/event-stream"


@pytest.mark.parametrize(
    ("status", "fields", "kind"),
    [
        (200, {"content-type": "application/json"}, Kind.MESSAGE),
        (200, {"content-type": "Application/JSON; charset=utf-8"}, Kind.MESSAGE),
        (200, {"content-type": "text/event-stream;charset=utf-8"}, Kind.STREAM),
        (202, {"content-type": "text/event-stream"}, Kind.STREAM),
        (202, {}, Kind.NOTHING),
        (204, {}, Kind.NOTHING),
        (200, {"content-length": "0"}, Kind.NOTHING),
        (200, {}, Kind.FOREIGN),
        (200, {"content-type": "text/html"}, Kind.FOREIGN),
        (302, {"content-type": "application/json"}, Kind.REFUSAL),
        (400, {}, Kind.REFUSAL),
        (500, {"content-type": "application/json"}, Kind.REFUSAL),
    ],
)
def test_what_a_body_is_is_told_by_its_head(status, fields, kind):
    assert kind_of(status, fields) is kind


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"x"}}', 5),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":5,"message":"x"}}', 5),
        (b'{"jsonrpc":"2.0","error":{"code":5,"message":"x"}}', 5),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', None),
        (b'{"error":"invalid_token"}', None),
        (b"<html>", None),
        (b"", None),
        (b"[" * 500, None),
    ],
)
def test_the_error_in_a_refusals_body_is_found(body, code):
    envelope = error_in(body)
    assert (envelope and envelope.error.code) == code


@given(st.binary(max_size=200))
def test_a_refusals_body_may_be_anything(body):
    error_in(body)


@pytest.mark.parametrize(
    "name", ["Accept", "mcp-session-id", "MCP-Anything", "Content-Length", "Transfer-Encoding", "HOST", "Last-Event-ID"]
)
def test_the_protocols_headers_are_its_own(name):
    assert is_reserved(name)
    assert field_fault(name, "x")


@pytest.mark.parametrize("name", ["Authorization", "X-Tenant", "User-Agent", "traceparent"])
def test_other_headers_are_the_users(name):
    assert not is_reserved(name)
    assert field_fault(name, "x y\tz") is None


@given(st.text(), st.text())
def test_a_header_that_is_let_through_cannot_smuggle(name, value):
    if field_fault(name, value) is None:
        assert not set(name + value) & set("\r\n\0")
        assert name.isascii()
        assert value.isascii()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("X", 1, "strings"),
        (1, "x", "strings"),
        ("", "x", "header name"),
        ("a b", "x", "header name"),
        ("X", "é", "ASCII"),
    ],
)
def test_what_is_no_header_is_told(name, value, said):
    assert said in field_fault(name, value)


def test_a_greeting_without_a_revision_and_an_answer_carry_no_routing_headers():
    for revision in (None, NEWEST):
        fields = headers(Dialer(URL).post(Addressed(b"{}"), revision=revision))
        assert "mcp-method" not in fields
