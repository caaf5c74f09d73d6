"""Clauses that lie between the pages: encodings, directions, schemas and what is kept."""

import json
import math
from typing import Any

import pytest

from mcprelay import Client, ConfigurationError, ResourceNotFound, Server
from mcprelay.auth.oauth import OAuth
from mcprelay.client.cache import Cache
from mcprelay.wire.schema import Validator
from tests.clauses.house import Workshop
from tests.clauses.http import Answer, HttpWire, headers_of
from tests.clauses.script import cacheable, complete, over_http, over_lines, tool, tools
from tests.server.rawclient import RawClient


@pytest.mark.clause("transports.utf-8")
async def test_text_travels_as_utf_8(http: HttpWire):
    message = http.message("tools/call", {"name": "echo", "arguments": {"text": "世界 ü 🎈"}})
    body = json.dumps(message, ensure_ascii=False).encode()
    answer = Answer(http.app, "POST", headers_of(message), body)
    [result] = await answer.all()
    assert result["result"]["content"][0]["text"] == "世界 ü 🎈"
    assert answer.body.decode() == answer.body.decode("utf-8", "strict")


@pytest.mark.clause("transports.utf-8")
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-32"])
async def test_text_in_another_encoding_reaches_no_handler(http: HttpWire, workshop: Workshop, encoding: str):
    message = http.message("tools/call", {"name": "echo", "arguments": {"text": "ü"}})
    body = json.dumps(message, ensure_ascii=False).encode(encoding)
    answer = Answer(http.app, "POST", headers_of(message), body)
    [message] = await answer.all()
    assert "error" in message or message["result"]["isError"] is True
    assert workshop.runs == 0


@pytest.mark.clause("transports.directions", "stdio.no-server-requests")
async def test_a_server_answers_and_notifies_and_never_asks(channel: RawClient):
    seen = []
    ids = [
        await channel.request("tools/call", {"name": "ask_all"}),
        await channel.request("tools/call", {"name": "chatty"}, progressToken=1),
        await channel.request("server/discover"),
    ]
    while ids:
        message = await channel.receive()
        seen.append(message)
        if message.get("id") in ids:
            ids.remove(message["id"])
    assert [message for message in seen if "method" in message and "id" in message] == []


@pytest.mark.clause("tools.mirror-safe-integer")
@pytest.mark.parametrize("count", [2**53, -(2**53), 2**80])
async def test_a_mirrored_integer_that_a_double_cannot_hold_is_refused(http: HttpWire, count: int):
    message = http.message("tools/call", {"name": "mirrored", "arguments": {"count": count}})
    answer = await http.answer(message, {"mcp-param-count": str(count)})
    assert (http.status, answer["error"]["code"]) == (400, -32020)


@pytest.mark.clause("index.schema-dialect")
@pytest.mark.parametrize(
    ("dialect", "fits"),
    [("http://json-schema.org/draft-07/schema#", False), ("https://json-schema.org/draft/2020-12/schema", True)],
)
def test_a_schema_is_read_in_the_dialect_that_it_declares(dialect: str, fits: bool):
    """`items` with a list means positions in draft 7; `prefixItems` means nothing there."""
    older = {"$schema": dialect, "prefixItems": [{"type": "string"}]}
    assert Validator(older).accepts([5]) is not fits


@pytest.mark.clause("index.stdio-credentials")
@pytest.mark.parametrize("auth", ["token", OAuth()])
def test_over_stdio_there_is_no_authorization(auth: Any):
    with pytest.raises(ConfigurationError):
        Client(["server"], auth=auth)


@pytest.mark.clause("prompts.capabilities", "index.own-codes")
async def test_a_server_without_prompts_is_asked_for_none_in_vain():
    http = HttpWire(Server("bare").asgi())
    for method in ("prompts/list", "prompts/get", "tools/call", "resources/read", "completion/complete"):
        params = {"name": "x", "uri": "a://b", "ref": {"type": "ref/prompt", "name": "x"}}
        message = http.message(method, {**params, "argument": {"name": "x", "value": ""}})
        assert (await http.answer(message))["error"]["code"] == -32601


@pytest.mark.clause("resources.not-found")
async def test_a_handler_may_say_that_there_is_no_such_resource(server: Server, wire: Any):
    @server.resource("work://maybe/{name}")
    def maybe(name: str) -> str:
        """Not this one."""
        raise ResourceNotFound(f"work://maybe/{name}")

    assert (await wire.error("resources/read", {"uri": "work://maybe/a"}))["code"] == -32602


@pytest.mark.clause("caching.stale", "caching.no-polling", "caching.polling-jitter")
async def test_what_is_stale_is_fetched_when_it_is_needed_and_never_before():
    now = [1000.0]
    server, client = over_http({"tools/list": tools(tool("t"), ttlMs=1500)}, cache=Cache(now=lambda: now[0]))
    async with client:
        counts = []
        for step in (0.0, 1.4, 0.2, 100.0):
            now[0] += step
            await client.list_tools()
            counts.append(len(server.of("tools/list")))
    assert counts == [1, 1, 2, 3]


@pytest.mark.clause("pagination.page-size")
async def test_pages_of_any_size_make_a_list():
    pages = [
        tools(nextCursor="a"),
        tools(tool("b"), tool("c"), nextCursor="d"),
        tools(nextCursor="e"),
        tools(tool("f")),
    ]
    _, client = over_lines({"tools/list": pages})
    async with client:
        assert [found.name for found in await client.list_tools()] == ["b", "c", "f"]


@pytest.mark.clause("completion.partial")
@pytest.mark.parametrize("members", [{}, {"total": 500}, {"hasMore": True}, {"total": 0, "hasMore": False}])
async def test_a_completion_may_leave_out_how_many_there_are(members: dict[str, Any]):
    _, client = over_lines({"completion/complete": complete(completion={"values": ["a"], **members})})
    async with client:
        completion = await client.complete("prompt", "argument", "a")
    assert completion.values == ("a",)
    assert completion.total == members.get("total")


@pytest.mark.clause("discover.info-no-behavior", "discover.info-no-security", "index.info-no-behavior")
@pytest.mark.parametrize("name", ["mcprelay", "", "admin", "scripted"])
async def test_what_a_server_calls_itself_changes_nothing(name: str):
    answer = cacheable(tools=[tool("t")])
    answer["_meta"] = {"io.modelcontextprotocol/serverInfo": {"name": name, "version": "0"}}
    server, client = over_lines({"tools/list": answer})
    async with client:
        assert [found.name for found in await client.list_tools()] == ["t"]
    assert server.methods == ["server/discover", "tools/list"]


async def test_numbers_that_json_does_not_have_never_leave_a_client():
    server, client = over_lines({"tools/call": complete(content=[])})
    async with client:
        for value in (math.nan, math.inf, {"deep": [-math.inf]}):
            with pytest.raises(ConfigurationError):
                await client.call_tool("t", {"a": value})
    assert server.of("tools/call") == []
