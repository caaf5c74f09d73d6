"""What a client says over Streamable HTTP, and how it reads the answers."""

import asyncio
import base64
import logging
from typing import Any

import pytest

from mcprelay import CallFailed
from tests.clauses.http import REVISION
from tests.clauses.script import (
    Error,
    Stream,
    cacheable,
    complete,
    over_http,
    text,
    tool,
    tools,
)

CALL = {"tools/call": text("done")}


@pytest.mark.clause("http.message-per-post", "http.accept-header", "http.metadata-headers", "http.version-header")
async def test_every_message_is_a_post_of_its_own_with_its_headers():
    server, client = over_http({**CALL, "tools/list": tools()})
    async with client:
        await client.list_tools()
        await client.call_tool("t", {"a": 1})
    assert [request.method for request in server.sent] == ["POST", "POST"]
    for number, message in enumerate(server.requests):
        headers = server.headers(number)
        assert {part.strip() for part in headers["accept"].split(",")} >= {"application/json", "text/event-stream"}
        assert headers["content-type"] == "application/json"
        assert headers["mcp-protocol-version"] == REVISION
        assert headers["mcp-method"] == message["method"]
    assert server.headers()["mcp-name"] == "t"


@pytest.mark.clause("http.standard-headers", "http.single-message", "http.call-headers")
async def test_calls_reads_and_prompts_say_their_name_in_a_header():
    server, client = over_http(
        {**CALL, "resources/read": cacheable(contents=[]), "prompts/get": complete(messages=[]), "tools/list": tools()}
    )
    async with client:
        await client.call_tool("a tool")
        await client.read_resource("a://b/c?d=%20")
        await client.get_prompt("p")
        await client.list_tools()
    names = [server.headers(number).get("mcp-name") for number in range(4)]
    assert names == ["a tool", "a://b/c?d=%20", "p", None]


@pytest.mark.clause("http.name-encoded", "http.value-base64", "http.value-markers", "http.value-sentinel")
@pytest.mark.parametrize("name", ["ü", " a", "a ", "a\nb", "a\tb", "=?base64?YQ==?=", "世界", "\x7f"])
async def test_a_name_that_is_not_safe_in_a_header_is_sent_in_the_base64_form(name: str):
    server, client = over_http(CALL)
    async with client:
        await client.call_tool(name)
    value = server.headers()["mcp-name"]
    assert value.startswith("=?base64?")
    assert value.endswith("?=")
    assert base64.b64decode(value[9:-2], validate=True).decode() == name


MIRRORED = tool(
    "mirrored",
    region={"type": "string", "x-mcp-header": "Region"},
    count={"type": "integer", "x-mcp-header": "Count"},
    loud={"type": "boolean", "x-mcp-header": "Loud"},
    where={"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
    plain={"type": "string"},
)


@pytest.mark.clause(
    "http.mirror-supported",
    "http.value-encoded",
    "http.value-base64",
    "http.value-sentinel",
    "http.mirror-null-omitted",
)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"region": "us-west1"}, {"region": "us-west1"}),
        ({"region": "Hello, 世界"}, {"region": "=?base64?SGVsbG8sIOS4lueVjA==?="}),
        ({"region": " padded "}, {"region": "=?base64?IHBhZGRlZCA=?="}),
        ({"region": "line1\nline2"}, {"region": "=?base64?bGluZTEKbGluZTI=?="}),
        ({"region": "=?base64?literal?="}, {"region": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}),
        ({"count": 42}, {"count": "42"}),
        ({"count": -7}, {"count": "-7"}),
        ({"loud": True}, {"loud": "true"}),
        ({"loud": False}, {"loud": "false"}),
        ({"where": {"zone": "z"}}, {"zone": "z"}),
        ({"region": None, "plain": "p"}, {}),
        ({}, {}),
        ({"where": {}}, {}),
    ],
)
async def test_marked_arguments_are_mirrored_and_no_others(arguments: dict[str, Any], expected: dict[str, str]):
    server, client = over_http({**CALL, "tools/list": tools(MIRRORED)})
    async with client:
        await client.list_tools()
        await client.call_tool("mirrored", arguments)
    prefix = "mcp-param-"
    sent = {name[len(prefix) :]: value for name, value in server.headers().items() if name.startswith(prefix)}
    assert sent == expected


@pytest.mark.clause("http.mirror-safe-integer")
async def test_an_integer_that_a_double_cannot_hold_is_not_sent_in_a_header():
    server, client = over_http({**CALL, "tools/list": tools(MIRRORED)})
    async with client:
        await client.list_tools()
        for count in (2**53, -(2**53)):
            with pytest.raises(CallFailed, match=str(2**53)):
                await client.call_tool("mirrored", {"count": count})
        await client.call_tool("mirrored", {"count": 2**53 - 1})
    assert server.headers()["mcp-param-count"] == str(2**53 - 1)
    assert len(server.of("tools/call")) == 1


@pytest.mark.clause(
    "http.mirror-invalid-excluded", "http.mirror-invalid-logged", "tools.mirror-rejected", "tools.mirror-warning"
)
@pytest.mark.parametrize(
    "property",
    [
        {"type": "string", "x-mcp-header": ""},
        {"type": "string", "x-mcp-header": "a b"},
        {"type": "string", "x-mcp-header": "a:b"},
        {"type": "string", "x-mcp-header": "a\r\nX-Evil: 1"},
        {"type": "string", "x-mcp-header": "ü"},
        {"type": "number", "x-mcp-header": "A"},
        {"type": "object", "x-mcp-header": "A"},
        {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}},
        {"oneOf": [{"type": "string", "x-mcp-header": "A"}]},
    ],
)
async def test_a_tool_with_an_impossible_mirror_is_left_out_with_a_warning(
    property: dict[str, Any], caplog: pytest.LogCaptureFixture
):
    _, client = over_http({"tools/list": tools(tool("bad_one", p=property), tool("good"))})
    with caplog.at_level(logging.WARNING):
        async with client:
            assert [found.name for found in await client.list_tools()] == ["good"]
    assert "bad_one" in caplog.text


@pytest.mark.clause("http.mismatch-refresh")
async def test_after_a_refusal_for_headers_the_list_is_read_again_and_the_call_repeated_once():
    refused = Error(-32020, "header", status=400)
    server, client = over_http({"tools/list": tools(MIRRORED), "tools/call": [refused, text("done")]})
    async with client:
        assert (await client.call_tool("mirrored", {"region": "eu"})).text == "done"
    assert server.methods == ["tools/call", "tools/list", "tools/call"]
    assert server.headers()["mcp-param-region"] == "eu"


@pytest.mark.clause("http.answer-types-both", "http.comment-ignored")
async def test_json_and_event_streams_are_understood_and_comments_ignored():
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 0, "progress": 1}}
    stream = Stream(": hello\n\n", ":\r\n\r\n", progress, ": again\n\n", text("streamed"))
    _, client = over_http({"tools/call": [stream, text("plain")]})
    async with client:
        assert (await client.call_tool("t")).text == "streamed"
        assert (await client.call_tool("t")).text == "plain"


@pytest.mark.clause("cancellation.client-sends", "cancellation.timeout-cancels", "cancellation.timeouts")
async def test_over_http_a_call_that_is_given_up_closes_its_stream():
    server, client = over_http({"tools/call": Stream(": wait\n\n", open=True)})
    async with client:
        call = asyncio.ensure_future(client.call_tool("t"))
        await server.heard("tools/call")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert server.closed == [0]
        with pytest.raises(TimeoutError):
            await client.call_tool("t", timeout=0.01)
        assert server.closed == [0, 1]
    assert server.notifications == []
