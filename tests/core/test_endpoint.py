"""What HTTP says on the server's side, as values: no socket, no loop."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay import revisions
from mcprelay.core.endpoint import Endpoint, form_of
from mcprelay.core.work import (
    EndSession,
    Exchange,
    Form,
    Handshake,
    Head,
    InSession,
    Notice,
    OpenStream,
    Refusal,
)
from mcprelay.revisions import NEWEST, NEWEST_HANDSHAKE, Era, Feature
from mcprelay.wire.field import Headers
from mcprelay.wire.mirror import params_of
from mcprelay.wire.origin import HostRules
from tests.wire_schema import validate_message

PREFIX = "io.modelcontextprotocol/"
META = {PREFIX + "protocolVersion": NEWEST.name, PREFIX + "clientCapabilities": {}}
HANDSHAKE = revisions.of_era(Era.HANDSHAKE)
BATCHING = next(revision for revision in HANDSHAKE if revision.has(Feature.BATCH))


def endpoint(**options: Any) -> Endpoint:
    return Endpoint(HostRules(), **options)


def head(method: str = "POST", **headers: str | None) -> Head:
    given_headers = {
        "host": "server.example",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        **{key.replace("_", "-"): value for key, value in headers.items()},
    }
    pairs = [(key, value) for key, value in given_headers.items() if value is not None]
    return Head(method, Headers.lowered(pairs))


def body(method: str | None = "ping", *, id: Any = 1, **rest: Any) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", **rest}
    if method is not None:
        message["method"] = method
    if id is not None:
        message["id"] = id
    return json.dumps(message).encode()


def modern(name: str | None = None, **headers: str | None) -> Head:
    return head(mcp_protocol_version=NEWEST.name, mcp_name=name, **{"mcp_method": "tools/call", **headers})


def error(refusal: Any) -> dict[str, Any]:
    assert isinstance(refusal, Refusal), refusal
    found: dict[str, Any] = json.loads(refusal.body)["error"]
    return found


# ------------------------------------------------------------------------------------------------------------ the head


def test_a_host_or_origin_that_is_not_served_is_refused_before_anything_else() -> None:
    rules = Endpoint(HostRules.from_bind("127.0.0.1", 8000))
    assert rules.open(head(host="127.0.0.1:8000")) is None
    assert rules.open(head("PATCH", host="evil.example")).status == 421  # type: ignore[union-attr]
    assert rules.open(head(host="localhost", origin="http://evil.example")).status == 403  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [None, "text/plain", "application/jsonp", "application/json-patch+json"])
def test_a_body_of_another_media_type_is_refused(kind: str | None) -> None:
    assert endpoint().open(head(content_type=kind)).status == 415  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON", " application/json ;x=y"])
def test_parameters_and_case_of_the_media_type_do_not_matter(kind: str) -> None:
    assert endpoint().open(head(content_type=kind)) is None


def test_a_body_that_says_it_is_too_long_is_refused_by_the_limits_name() -> None:
    rules = endpoint(body_bytes=10)
    assert rules.open(head(content_length="10")) is None
    refusal = rules.open(head(content_length="11"))
    assert refusal is not None
    assert refusal.status == 413
    assert "body_bytes=10" in error(refusal)["message"]


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, Form.EITHER),
        ("*/*", Form.EITHER),
        ("application/json, text/event-stream", Form.EITHER),
        ("text/event-stream,application/json;q=0.5", Form.EITHER),
        ("application/*, text/*", Form.EITHER),
        ("application/json", Form.JSON),
        ("application/json, text/event-stream;q=0", Form.JSON),
        ("application/json, text/event-stream; q=0.000", Form.JSON),
        ("TEXT/EVENT-STREAM", Form.STREAM),
        ("text/html", Form.NEITHER),
        ("", Form.NEITHER),
    ],
)
def test_accept_says_which_answers_a_client_takes(accept: str | None, form: Form) -> None:
    assert form_of(None if accept is None else accept.encode()) is form
    asked = head(accept=accept)
    refusal = endpoint().open(asked)
    if form is Form.NEITHER:
        assert refusal is not None
        assert refusal.status == 406
    else:
        assert refusal is None
        assert asked.form is form


@given(st.binary(max_size=200))
def test_any_accept_header_is_read(accept: bytes) -> None:
    assert form_of(accept) in Form


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "TRACE"])
def test_other_methods_are_not_served_and_told_which_are(method: str) -> None:
    refusal = endpoint().open(head(method))
    assert refusal is not None
    assert refusal.status == 405
    assert dict(refusal.headers)[b"allow"] == b"GET, POST, DELETE, OPTIONS"


def test_options_says_what_is_served() -> None:
    refusal = endpoint().open(head("OPTIONS"))
    assert refusal == Refusal(204, b"", ((b"allow", b"GET, POST, DELETE, OPTIONS"),))


@pytest.mark.parametrize("options", [{"among": [NEWEST]}, {"sessions": "off"}])
def test_without_sessions_there_is_only_post(options: Any) -> None:
    rules = endpoint(**options)
    for method in ("GET", "DELETE"):
        refusal = rules.open(head(method))
        assert refusal is not None
        assert refusal.status == 405
        assert dict(refusal.headers)[b"allow"] == b"POST, OPTIONS"


# --------------------------------------------------------------------------------------------------- the stateless era


def test_a_request_of_the_newest_revision_becomes_an_exchange() -> None:
    work = endpoint().accept(modern("echo"), body("tools/call", params={"name": "echo", "_meta": META}))
    assert type(work) is Exchange
    assert (work.revision, work.id, work.method.name, work.params.name) == (NEWEST, 1, "tools/call", "echo")


def test_a_notification_of_the_newest_revision_is_noticed() -> None:
    work = endpoint().accept(modern(), body("notifications/cancelled", id=None))
    assert type(work) is Notice
    assert work.method == "notifications/cancelled"


@pytest.mark.parametrize("name", ["echo", "=?base64?ZWNobw==?="])
def test_the_mirrored_name_may_be_wrapped(name: str) -> None:
    work = endpoint().accept(modern(name), body("tools/call", params={"name": "echo", "_meta": META}))
    assert type(work) is Exchange


@pytest.mark.parametrize(
    "headers",
    [
        {"name": "other"},
        {"name": None},
        {"name": "echo", "mcp_method": None},
        {"name": "echo", "mcp_method": "tools/list"},
        {"name": "echo", "mcp_protocol_version": NEWEST_HANDSHAKE.name},
        {"name": "echo", "mcp_protocol_version": None},
        {"name": "echo", "mcp_protocol_version": "v999"},
    ],
)
def test_headers_that_say_otherwise_than_the_body_are_a_mismatch(headers: dict[str, Any]) -> None:
    name = headers.pop("name")
    asked = head(mcp_name=name, **{"mcp_method": "tools/call", "mcp_protocol_version": NEWEST.name, **headers})
    refusal = endpoint().accept(asked, body("tools/call", params={"name": "echo", "_meta": META}))
    assert isinstance(refusal, Refusal)
    assert (refusal.status, error(refusal)["code"]) == (400, -32020)
    validate_message(NEWEST.name, json.loads(refusal.body), sender="server")


@pytest.mark.parametrize("missing", list(META))
def test_meta_without_what_it_must_say_is_invalid(missing: str) -> None:
    meta = {key: value for key, value in META.items() if key != missing}
    refusal = endpoint().accept(modern("echo"), body("tools/call", params={"name": "echo", "_meta": meta}))
    assert isinstance(refusal, Refusal)
    assert (refusal.status, error(refusal)["code"]) == (400, -32602)
    assert missing in error(refusal)["message"]


def test_an_unknown_revision_is_told_what_is_served() -> None:
    meta = {**META, PREFIX + "protocolVersion": "v999"}
    asked = head(mcp_protocol_version="v999", mcp_method="tools/list")
    refusal = endpoint().accept(asked, body("tools/list", params={"_meta": meta}))
    assert isinstance(refusal, Refusal)
    assert (refusal.status, error(refusal)["code"]) == (400, -32022)
    assert error(refusal)["data"] == {"supported": list(revisions.ALL), "requested": "v999"}


def test_an_unknown_method_is_not_found_with_the_status_that_says_so() -> None:
    refusal = endpoint().accept(modern(mcp_method="no/such"), body("no/such", params={"_meta": META}))
    assert isinstance(refusal, Refusal)
    assert (refusal.status, error(refusal)["code"]) == (404, -32601)


def test_a_response_is_not_sent_in_the_stateless_era() -> None:
    refusal = endpoint().accept(modern(), body(None, result={}))
    assert isinstance(refusal, Refusal)
    assert refusal.status == 400


def test_a_revision_with_a_handshake_named_in_meta_is_told_to_begin_with_it() -> None:
    meta = {**META, PREFIX + "protocolVersion": NEWEST_HANDSHAKE.name}
    asked = head(mcp_protocol_version=NEWEST_HANDSHAKE.name)
    refusal = endpoint().accept(asked, body("tools/list", params={"_meta": meta}))
    assert isinstance(refusal, Refusal)
    assert refusal.status == 400
    assert "initialize" in error(refusal)["message"]


def test_where_only_the_newest_is_served_a_handshake_is_unsupported() -> None:
    refusal = endpoint(among=[NEWEST]).accept(head(), body("initialize", params={}))
    assert isinstance(refusal, Refusal)
    assert (refusal.status, error(refusal)["code"]) == (400, -32022)


@pytest.mark.parametrize("params", [{"name": 7}, {}, []])
def test_params_that_do_not_fit_are_invalid_with_the_path(params: Any) -> None:
    refusal = endpoint().accept(modern("7"), body("tools/call", params=params))
    assert isinstance(refusal, Refusal)
    assert (refusal.status, error(refusal)["code"]) == (400, -32602)


def test_a_uri_is_mirrored_like_a_name() -> None:
    params = {"uri": "file:///x", "_meta": META}
    asked = modern("file:///x", mcp_method="resources/read")
    assert type(endpoint().accept(asked, body("resources/read", params=params))) is Exchange
    refusal = endpoint().accept(modern("file:///y", mcp_method="resources/read"), body("resources/read", params=params))
    assert isinstance(refusal, Refusal)
    assert error(refusal)["code"] == -32020


@pytest.mark.parametrize(
    ("arguments", "region", "agrees"),
    [
        ({"region": "eu"}, "eu", True),
        ({"region": "eu"}, "us", False),
        ({"region": "eu"}, None, False),
        (None, None, True),
        ([], None, True),
    ],
)
def test_arguments_that_a_tool_mirrors_are_held_against_their_headers(
    arguments: Any, region: str | None, agrees: bool
) -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    mirrored = params_of(schema)
    rules = endpoint(header_params=lambda name: mirrored if name == "where" else ())
    params: dict[str, Any] = {"name": "where", "_meta": META}
    if arguments is not None:
        params["arguments"] = arguments
    work = rules.accept(modern("where", mcp_param_region=region), body("tools/call", params=params))
    assert (type(work) is Exchange) is agrees
    if not agrees:
        assert error(work)["code"] == -32020


# --------------------------------------------------------------------------------------------------- the handshake era


@pytest.mark.parametrize("version", [None, "v999", NEWEST_HANDSHAKE.name])
def test_initialize_needs_no_header(version: str | None) -> None:
    assert type(endpoint().accept(head(mcp_protocol_version=version), body("initialize", params={}))) is Handshake


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_message_in_a_session_carries_what_its_header_names(revision: revisions.Revision) -> None:
    work = endpoint().accept(head(mcp_session_id="s", mcp_protocol_version=revision.name), body())
    assert type(work) is InSession
    assert (work.revision, work.session_id, work.batch, len(work.messages)) == (revision, "s", False, 1)


def test_without_the_header_the_session_knows_its_revision() -> None:
    work = endpoint().accept(head(mcp_session_id="s"), body())
    assert type(work) is InSession
    assert work.revision is None


def test_an_unknown_header_is_refused_although_the_session_may_be_known() -> None:
    refusal = endpoint().accept(head(mcp_session_id="s", mcp_protocol_version="v999"), body())
    assert isinstance(refusal, Refusal)
    assert refusal.status == 400


@pytest.mark.parametrize("message", [body(), body("notifications/initialized", id=None), body(None, result={})])
def test_a_message_without_its_session_is_refused(message: bytes) -> None:
    refusal = endpoint().accept(head(), message)
    assert isinstance(refusal, Refusal)
    assert refusal.status == 400
    assert "Mcp-Session-Id" in error(refusal)["message"]


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_the_refusal_of_a_request_answers_it_and_any_other_has_the_id_of_the_revision(
    revision: revisions.Revision,
) -> None:
    asked = head(mcp_protocol_version=revision.name)
    answered = json.loads(endpoint().accept(asked, body(id="x")).body)  # type: ignore[union-attr]
    assert answered["id"] == "x"
    validate_message(revision.name, answered, sender="server")
    unreadable = json.loads(endpoint().accept(asked, b"{").body)  # type: ignore[union-attr]
    assert unreadable["error"]["code"] == -32700
    validate_message(revision.name, unreadable, sender="server")


@pytest.mark.clause("handshake.http.version-assumed")
@pytest.mark.parametrize("mode", ["optional", "off"])
def test_where_no_session_is_needed_a_call_speaks_what_its_header_names_or_the_assumed_revision(mode: Any) -> None:
    rules = endpoint(sessions=mode)
    named = rules.accept(head(mcp_protocol_version=NEWEST_HANDSHAKE.name), body())
    assert type(named) is InSession
    assert (named.revision, named.session_id) == (NEWEST_HANDSHAKE, None)
    assumed = rules.accept(head(), body())
    assert type(assumed) is InSession
    assert assumed.revision is revisions.ASSUMED_WITHOUT_HEADER


def test_without_header_and_session_the_assumed_revision_must_be_served() -> None:
    rules = endpoint(sessions="optional", among=[NEWEST_HANDSHAKE])
    refusal = rules.accept(head(), body())
    assert isinstance(refusal, Refusal)
    assert refusal.status == 400


@pytest.mark.parametrize(
    "message",
    [
        body(None, result={"text": PREFIX + "protocolVersion"}),
        body("ping", params={"_meta": {PREFIX + "protocolVersion": 7}}),
        body("ping", params=[PREFIX + "protocolVersion"]),
        body("ping", id=PREFIX + "protocolVersion"),
    ],
)
def test_what_only_looks_like_the_other_era_is_a_message_in_a_session(message: bytes) -> None:
    assert type(endpoint().accept(head(mcp_session_id="s"), message)) is InSession


def test_an_optional_session_is_used_and_where_there_are_none_it_is_passed_over() -> None:
    asked = head(mcp_session_id="s", mcp_protocol_version=NEWEST_HANDSHAKE.name)
    assert endpoint(sessions="optional").accept(asked, body()).session_id == "s"  # type: ignore[union-attr]
    assert endpoint(sessions="off").accept(asked, body()).session_id is None  # type: ignore[union-attr]


def test_a_session_id_that_came_twice_with_different_values_is_refused() -> None:
    pairs = [("host", "h"), ("content-type", "application/json"), ("mcp-session-id", "a"), ("mcp-session-id", "b")]
    for method in ("POST", "GET", "DELETE"):
        twice = Head(method, Headers.lowered(pairs))
        rules = endpoint()
        if method == "POST":
            work: Any = rules.accept(twice, body())
        else:
            work = rules.get(twice) if method == "GET" else rules.delete(twice)
        assert isinstance(work, Refusal)
        assert work.status == 400
        assert "mcp-session-id" in error(work)["message"]


# ------------------------------------------------------------------------------------------------------------- batches


def batch(*messages: bytes) -> bytes:
    return b"[" + b",".join(messages) + b"]"


@pytest.mark.parametrize("version", [BATCHING.name, None])
def test_a_batch_is_taken_where_the_revision_may_have_them(version: str | None) -> None:
    work = endpoint().accept(head(mcp_session_id="s", mcp_protocol_version=version), batch(body(id=1), body(id=2)))
    assert type(work) is InSession
    assert (work.batch, len(work.messages)) == (True, 2)


@pytest.mark.parametrize("revision", [revision for revision in revisions.ALL.values() if revision is not BATCHING])
def test_a_batch_in_another_revision_is_refused(revision: revisions.Revision) -> None:
    refusal = endpoint().accept(head(mcp_session_id="s", mcp_protocol_version=revision.name), batch(body()))
    assert isinstance(refusal, Refusal)
    assert (refusal.status, error(refusal)["code"]) == (400, -32600)


@pytest.mark.parametrize("empty", [b"[]", b"[", b"[}"])
def test_a_batch_that_holds_nothing_is_refused(empty: bytes) -> None:
    refusal = endpoint().accept(head(mcp_session_id="s"), empty)
    assert isinstance(refusal, Refusal)
    assert refusal.status == 400


def test_a_batch_fits_only_a_session_that_has_batches() -> None:
    rules = endpoint()
    work = rules.accept(head(mcp_session_id="s"), batch(body()))
    assert type(work) is InSession
    assert rules.fits(work, BATCHING) is None
    refusal = rules.fits(work, NEWEST_HANDSHAKE)
    assert refusal is not None
    assert refusal.status == 400


# ----------------------------------------------------------------------------------------------- sessions and streams


def test_work_of_another_revision_than_the_sessions_does_not_fit() -> None:
    rules = endpoint()
    for work in (
        rules.accept(head(mcp_session_id="s", mcp_protocol_version=BATCHING.name), body()),
        rules.get(head("GET", mcp_session_id="s", mcp_protocol_version=BATCHING.name)),
        rules.delete(head("DELETE", mcp_session_id="s", mcp_protocol_version=BATCHING.name)),
    ):
        assert isinstance(work, InSession | OpenStream | EndSession)
        assert rules.fits(work, BATCHING) is None
        refusal = rules.fits(work, NEWEST_HANDSHAKE)
        assert refusal is not None
        assert refusal.status == 400
        assert BATCHING.name in error(refusal)["message"]
        assert NEWEST_HANDSHAKE.name in error(refusal)["message"]


def test_an_unknown_session_is_not_found_and_a_request_in_it_is_answered() -> None:
    rules = endpoint()
    work = rules.accept(head(mcp_session_id="s"), body(id=7))
    assert type(work) is InSession
    refusal = rules.unknown_session(work)
    assert (refusal.status, json.loads(refusal.body)["id"]) == (404, 7)


def test_a_get_opens_a_stream_of_its_session_and_may_resume_one() -> None:
    work = endpoint().get(head("GET", mcp_session_id="s", last_event_id="7"))
    assert work == OpenStream(None, "s", "7")


def test_a_delete_ends_a_session() -> None:
    assert endpoint().delete(head("DELETE", mcp_session_id="s")) == EndSession(None, "s")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"accept": "application/json", "mcp_session_id": "s"}, 406),
        ({}, 400),
        ({"mcp_session_id": "s", "mcp_protocol_version": "v999"}, 400),
        ({"mcp_session_id": "s", "mcp_protocol_version": NEWEST.name}, 405),
    ],
)
def test_a_get_that_is_not_for_a_session_is_refused(headers: dict[str, str], status: int) -> None:
    refusal = endpoint().get(head("GET", **headers))
    assert isinstance(refusal, Refusal)
    assert refusal.status == status


@given(st.binary(max_size=300), st.sampled_from([None, "v999", *revisions.ALL]))
def test_whatever_is_posted_becomes_work_or_a_refusal(data: bytes, version: str | None) -> None:
    work = endpoint().accept(head(mcp_session_id="s", mcp_protocol_version=version), data)
    assert isinstance(work, Refusal | InSession | Exchange | Notice | Handshake)
    if isinstance(work, Refusal):
        assert 400 <= work.status < 500
        assert json.loads(work.body)["jsonrpc"] == "2.0"


def test_an_answer_that_cannot_be_read_goes_to_the_session_whose_question_it_answers() -> None:
    broken = b'{"jsonrpc":"2.0","id":4,"result":{"content":NaN}}'
    in_session = head(mcp_session_id="s", mcp_protocol_version=NEWEST_HANDSHAKE.name)

    work = endpoint().accept(in_session, broken)

    assert type(work) is InSession
    assert work.session_id == "s"
    assert [message.id for message in work.messages] == [4]
    assert isinstance(endpoint().accept(modern(), broken), Refusal)


def test_a_request_that_is_no_json_is_refused_under_its_id() -> None:
    refusal = endpoint().accept(modern(), b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"x":NaN}}')

    assert isinstance(refusal, Refusal)
    assert refusal.status == 400
    assert json.loads(refusal.body)["id"] == "a"
    assert error(refusal)["code"] == -32700


@pytest.mark.parametrize(("sessions", "has"), [("required", True), ("optional", True), ("off", False)])
def test_streams_are_opened_and_sessions_ended_only_where_there_are_sessions(sessions: Any, has: bool) -> None:
    kept = endpoint(sessions=sessions)
    assert kept.has_sessions is has
    for method in ("GET", "DELETE"):
        assert (kept.open(head(method)) is None) is has
    assert not endpoint(sessions=sessions, among=[NEWEST]).has_sessions


def test_a_body_that_says_another_revision_than_its_header_is_a_mismatch() -> None:
    later = NEWEST.but("2099-01-01")
    both = endpoint(among=[NEWEST, later])
    meta = {**META, PREFIX + "protocolVersion": later.name}
    refusal = both.accept(modern(), body("tools/list", params={"_meta": meta}))
    assert isinstance(refusal, Refusal)
    assert error(refusal)["code"] == -32020
    assert later.name in error(refusal)["message"]
