"""basic/transports/streamable-http: what a server says to each kind of HTTP request."""

import asyncio
import base64
import json
from typing import Any

import pytest

from mcprelay import Server
from tests.clauses.house import Workshop
from tests.clauses.http import PREFIX, Answer, HttpWire, headers_of

ECHO = {"name": "echo", "arguments": {"text": "a"}}
MISMATCH = (400, -32020)


async def outcome(answer: Answer) -> tuple[int, int | None]:
    """Status and error code."""
    [message] = await answer.all()
    return answer.status, message.get("error", {}).get("code")


@pytest.mark.clause("http.endpoint", "http.answer-types")
async def test_a_request_is_a_post_and_its_answer_json(http: HttpWire):
    answer = http.post(http.message("tools/call", ECHO))
    [message] = await answer.all()
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert message["result"]["content"][0]["text"] == "a"


@pytest.mark.clause("http.answer-types", "http.no-buffering-header", "http.response-ends-stream", "http.stream-related")
async def test_with_notifications_before_it_the_answer_ends_an_event_stream(http: HttpWire):
    answer = http.post(http.message("tools/call", {"name": "chatty"}, progressToken="t"))
    messages = await answer.all()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"
    assert [message.get("method", "answer") for message in messages] == ["notifications/progress"] * 3 + ["answer"]
    assert {message["params"]["progressToken"] for message in messages[:-1]} == {"t"}


@pytest.mark.clause("http.origin-validated", "http.origin-403")
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "https://127.0.0.1.evil.example", "null", "http://localhost.evil"]
)
async def test_a_foreign_origin_is_refused_with_403(http: HttpWire, workshop: Workshop, origin: str):
    answer = http.post(http.message("tools/call", ECHO), {"origin": origin})
    [message] = await answer.all()
    assert answer.status == 403
    assert message.get("id") is None
    assert workshop.runs == 0


@pytest.mark.clause("http.origin-validated")
@pytest.mark.parametrize("verb", ["GET", "DELETE", "OPTIONS", "POST"])
async def test_the_origin_is_checked_whatever_the_method(http: HttpWire, verb: str):
    answer = http.post(http.message("tools/list"), {"origin": "http://evil.example"}, verb=verb)
    await answer.all()
    assert answer.status == 403


@pytest.mark.clause("http.notification-202")
async def test_an_accepted_notification_gets_202_and_no_body(http: HttpWire):
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    answer = http.post(message)
    assert await answer.all() == []
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.clause("http.notification-refused")
async def test_a_notification_that_cannot_be_read_gets_an_error_status(http: HttpWire):
    answer = http.post({"jsonrpc": "1.0", "method": "notifications/cancelled"})
    await answer.all()
    assert answer.status == 400


@pytest.mark.clause("http.single-message")
async def test_a_body_of_several_messages_is_refused(http: HttpWire, workshop: Workshop):
    batch = json.dumps([http.message("tools/call", ECHO), http.message("tools/call", ECHO)]).encode()
    assert await outcome(http.post(batch)) == (400, -32600)
    assert workshop.runs == 0


@pytest.mark.clause("http.no-responses-posted")
async def test_a_posted_response_is_refused(http: HttpWire):
    answer = http.post({"jsonrpc": "2.0", "id": 1, "result": {}})
    await answer.all()
    assert answer.status == 400


@pytest.mark.clause("http.version-unsupported")
async def test_a_version_that_is_not_spoken_gets_400_and_the_list(http: HttpWire):
    error = await http.error("tools/list", **{PREFIX + "protocolVersion": "v999"})
    assert (http.status, error["code"]) == (400, -32022)
    assert error["data"]["supported"]


@pytest.mark.clause("http.method-unknown-404")
@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such", ""])
async def test_a_method_that_is_not_there_gets_404_and_an_error(http: HttpWire, method: str):
    message = http.message("tools/list") | {"method": method}
    assert await outcome(http.post(message)) == (404, -32601)


@pytest.mark.clause("http.version-header-matches", "http.headers-match-body", "http.header-error")
async def test_a_version_header_that_contradicts_the_body_is_refused(http: HttpWire, workshop: Workshop):
    answer = http.post(http.message("tools/call", ECHO), {"mcp-protocol-version": "2025-11-25"})
    assert await outcome(answer) == MISMATCH
    assert workshop.runs == 0


@pytest.mark.clause("http.version-header-missing", "http.header-error", "http.standard-headers")
@pytest.mark.parametrize("header", ["mcp-protocol-version", "mcp-method", "mcp-name"])
async def test_a_missing_standard_header_is_refused(http: HttpWire, workshop: Workshop, header: str):
    assert await outcome(http.post(http.message("tools/call", ECHO), {header: None})) == MISMATCH
    assert workshop.runs == 0


@pytest.mark.clause("http.headers-match-body", "http.header-error")
@pytest.mark.parametrize(
    ("header", "value"),
    [("mcp-method", "tools/list"), ("mcp-method", "Tools/Call"), ("mcp-name", "other"), ("mcp-name", "Echo")],
)
async def test_a_header_that_contradicts_the_body_is_refused(
    http: HttpWire, workshop: Workshop, header: str, value: str
):
    assert await outcome(http.post(http.message("tools/call", ECHO), {header: value})) == MISMATCH
    assert workshop.runs == 0


@pytest.mark.clause("http.headers-match-body")
@pytest.mark.parametrize(
    ("method", "params", "value"),
    [
        ("resources/read", {"uri": "work://text"}, "work://bytes"),
        ("prompts/get", {"name": "gallery"}, "review"),
    ],
)
async def test_the_name_header_is_checked_for_resources_and_prompts(
    http: HttpWire, method: str, params: dict[str, Any], value: str
):
    assert await outcome(http.post(http.message(method, params), {"mcp-name": value})) == MISMATCH
    assert await outcome(http.post(http.message(method, params))) == (200, None)


@pytest.mark.clause("http.header-names-any-case", "http.bind-loopback")
@pytest.mark.parametrize("case", [str.upper, str.lower, str.title])
async def test_header_names_are_read_in_any_case(server: Server, case: Any):
    message = HttpWire(None).message("tools/call", ECHO)
    body = json.dumps(message).encode()
    async with server.serve("http", port=0) as running:
        port = int(running.url.rsplit(":", 1)[1].split("/")[0])
        headers = headers_of(message) | {"host": f"127.0.0.1:{port}", "content-length": str(len(body))}
        lines = ["POST /mcp HTTP/1.1", *(f"{case(name)}: {value}" for name, value in headers.items()), "", ""]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write("\r\n".join(lines).encode() + body)
        assert (await asyncio.wait_for(reader.readline(), 10)).split()[1] == b"200"
        writer.close()
        await writer.wait_closed()


@pytest.mark.clause("http.value-decoded", "http.value-markers")
async def test_an_encoded_name_is_decoded_before_it_is_compared(http: HttpWire):
    coded = base64.b64encode(b"echo").decode()
    message = http.message("tools/call", ECHO)
    assert await outcome(http.post(message, {"mcp-name": f"=?base64?{coded}?="})) == (200, None)
    for wrong in (f"=?BASE64?{coded}?=", f"=?base64?{coded}", f"=?base64?{coded[:-1]}?=", "=?base64?%%%?="):
        assert await outcome(http.post(message, {"mcp-name": wrong})) == MISMATCH


# ----------------------------------------------------------------------------------------------------- mirrored headers


def mirrored(http: HttpWire, arguments: dict[str, Any], headers: dict[str, str | None]) -> Answer:
    """A call of the tool that has its arguments in headers."""
    return http.post(http.message("tools/call", {"name": "mirrored", "arguments": arguments}), headers)


REGION, COUNT, LOUD = "mcp-param-region", "mcp-param-count", "mcp-param-loud"


@pytest.mark.clause("http.mirror-matches", "http.integer-compared-as-number", "http.value-decoded")
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {REGION: "eu"}),
        ({"region": "Hello, 世界"}, {REGION: "=?base64?SGVsbG8sIOS4lueVjA==?="}),
        ({"region": " padded "}, {REGION: "=?base64?IHBhZGRlZCA=?="}),
        ({"region": "=?base64?literal?="}, {REGION: "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}),
        ({"region": ""}, {REGION: ""}),
        ({"count": 42}, {COUNT: "42"}),
        ({"count": 42}, {COUNT: "42.0"}),
        ({"count": -7}, {COUNT: "-7"}),
        ({"loud": True}, {LOUD: "true"}),
        ({"loud": False}, {LOUD: "false"}),
        ({"region": "eu", "count": 1, "loud": True}, {REGION: "eu", COUNT: "1", LOUD: "true"}),
    ],
)
async def test_a_mirrored_header_that_says_the_argument_is_accepted(
    http: HttpWire, arguments: dict[str, Any], headers: dict[str, str | None]
):
    assert await outcome(mirrored(http, arguments, headers)) == (200, None)


@pytest.mark.clause("http.mirror-mismatch", "http.mirror-omitted-refused", "http.mirror-invalid-characters")
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {REGION: "us"}),
        ({"region": "eu"}, {REGION: "EU"}),
        ({"region": "eu"}, {}),
        ({"region": "eu"}, {REGION: "=?base64?!!!?="}),
        ({"region": "eu"}, {REGION: "=?base64?ZXU?="}),
        ({"region": "ü"}, {REGION: "ü"}),
        ({"region": "é"}, {REGION: "=?base64?6Q==?="}),
        ({"count": 42}, {COUNT: "43"}),
        ({"count": 42}, {COUNT: "forty-two"}),
        ({"loud": True}, {LOUD: "True"}),
        ({"loud": True}, {LOUD: "false"}),
        ({"loud": True}, {}),
    ],
)
async def test_a_mirrored_header_that_says_something_else_is_refused(
    http: HttpWire, arguments: dict[str, Any], headers: dict[str, str | None]
):
    assert await outcome(mirrored(http, arguments, headers)) == MISMATCH


@pytest.mark.clause("http.mirror-null-not-expected")
@pytest.mark.parametrize("arguments", [{}, {"region": None}])
async def test_no_header_is_expected_for_an_argument_that_is_null_or_absent(http: HttpWire, arguments: dict[str, Any]):
    assert await outcome(mirrored(http, arguments, {})) == (200, None)


# ------------------------------------------------------------------------------------------------ streams and their end


@pytest.mark.clause("http.close-cancels", "http.close-stops-work", "cancellation.disconnect")
async def test_hanging_up_cancels_the_request(http: HttpWire, workshop: Workshop):
    answer = http.post(http.message("tools/call", {"name": "slow"}))
    await asyncio.wait_for(workshop.started.wait(), 10)
    await answer.hang_up()
    assert workshop.stopped.is_set()


@pytest.mark.clause("http.close-silences")
async def test_nothing_is_sent_after_the_client_hung_up(http: HttpWire, workshop: Workshop):
    answer = http.post(http.message("tools/call", {"name": "slow"}, progressToken=1))
    await asyncio.wait_for(workshop.started.wait(), 10)
    assert (await answer.next() or {})["method"] == "notifications/progress"
    await answer.hang_up()
    assert await answer.next() is None


@pytest.mark.clause("http.stream-no-requests", "patterns.no-server-requests")
async def test_a_question_is_a_result_and_never_a_request_on_the_stream(http: HttpWire):
    messages = await http.post(http.message("tools/call", {"name": "ask_all"}, progressToken=1)).all()
    assert [message for message in messages if "method" in message and "id" in message] == []
    assert messages[-1]["result"]["resultType"] == "input_required"


@pytest.mark.clause("http.old-methods-405")
@pytest.mark.parametrize("verb", ["GET", "DELETE", "PUT", "HEAD"])
async def test_other_methods_get_405(verb: str):
    new_only = Workshop(among=["2026-07-28"])
    http = HttpWire(new_only.server.asgi())
    answer = http.post(b"", {"mcp-method": None}, verb=verb)
    await answer.begun()
    assert answer.status == 405
    assert "POST" in answer.headers["allow"]


@pytest.mark.clause("http.old-methods-405")
async def test_session_and_event_ids_of_older_clients_are_ignored(http: HttpWire):
    old = {"mcp-session-id": "abc", "last-event-id": "7"}
    answer = http.post(http.message("tools/call", ECHO), old)
    assert await outcome(answer) == (200, None)
    assert "mcp-session-id" not in answer.headers
