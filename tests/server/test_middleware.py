"""Middleware: what it sees, what it may put in the place of it, and how it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mcprelay import ProtocolError, Server, Text, ToolError, ToolResult
from mcprelay.types import GetPromptResult, ListToolsResult, PromptMessage, ReadResourceResult
from tests.server.ask import call, connected, error, names, result


@pytest.fixture
def server() -> Server:
    server = Server("s")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    def echo(text: str) -> str:
        return text

    server.add_resource("a://b", lambda: "text", name="r")
    server.add_prompt(lambda x: x, name="p")
    return server


async def test_the_first_registered_is_the_outermost(server: Server):
    order: list[str] = []

    def layer(name: str) -> Any:
        async def around(call: Any, call_next: Any) -> Any:
            order.append(f"{name} in")
            outcome = await call_next(call)
            order.append(f"{name} out")
            return outcome

        return around

    assert server.middleware(layer("one")) is not None
    server.middleware(layer("two"))
    await call(server, "add", {"a": 1, "b": 2})

    assert order == ["one in", "two in", "two out", "one out"]


async def test_it_sees_the_typed_call_and_the_typed_outcome_of_every_method(server: Server):
    seen: list[tuple[str, str | None, str]] = []

    @server.middleware
    async def look(call: Any, call_next: Any) -> Any:
        outcome = await call_next(call)
        seen.append((call.method.name, call.target, type(outcome).__name__))
        return outcome

    async with connected(server) as client:
        await client.result("server/discover")
        await client.result("tools/list")
        await client.result("resources/list")
        await client.result("resources/templates/list")
        await client.result("prompts/list")
        await client.result("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        await client.result("resources/read", {"uri": "a://b"})
        await client.result("prompts/get", {"name": "p", "arguments": {"x": "y"}})
        ref = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": ""}}
        await client.result("completion/complete", ref)

    assert seen == [
        ("server/discover", None, "DiscoverResult"),
        ("tools/list", None, "ListToolsResult"),
        ("resources/list", None, "ListResourcesResult"),
        ("resources/templates/list", None, "ListResourceTemplatesResult"),
        ("prompts/list", None, "ListPromptsResult"),
        ("tools/call", "add", "ToolResult"),
        ("resources/read", "a://b", "ReadResourceResult"),
        ("prompts/get", "p", "GetPromptResult"),
        ("completion/complete", None, "CompleteResult"),
    ]


async def test_what_it_lets_pass_is_what_would_have_been_answered_without_it(server: Server):
    async def lists() -> list[dict[str, Any]]:
        methods = ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover")
        return [await result(server, method) for method in methods]

    before = await lists()
    server.middleware(lambda call, call_next: call_next(call))

    assert await lists() == before


async def test_it_may_put_other_arguments_in_their_place(server: Server):
    @server.middleware
    async def double(call: Any, call_next: Any) -> Any:
        if call.arguments:
            call.with_arguments({name: value * 2 for name, value in call.arguments.items()})
        return await call_next(call)

    assert await call(server, "add", {"a": 1, "b": 2}) == 6
    got = await result(server, "prompts/get", {"name": "p", "arguments": {"x": "ab"}})
    assert got["messages"][0]["content"]["text"] == "abab"


async def test_it_may_put_other_params_in_their_place(server: Server):
    @server.middleware
    async def rename(call: Any, call_next: Any) -> Any:
        if call.method.name == "tools/call":
            call.params = replace(call.params, name=call.params.name.removeprefix("old_"))
        return await call_next(call)

    assert await call(server, "old_add", {"a": 1, "b": 2}) == 3


async def test_it_may_put_another_outcome_in_its_place(server: Server):
    @server.middleware
    async def change(call: Any, call_next: Any) -> Any:
        outcome = await call_next(call)
        if isinstance(outcome, ToolResult):
            return replace(outcome, content=(Text("changed"),), meta={"a": 1})
        if isinstance(outcome, ReadResourceResult):
            return replace(outcome, contents=tuple(replace(one, text="changed") for one in outcome.contents))
        if isinstance(outcome, GetPromptResult):
            return replace(outcome, messages=(PromptMessage.user("changed"),))
        return outcome

    got = await result(server, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    assert (got["content"], got["structuredContent"], got["_meta"]["a"]) == (
        [{"type": "text", "text": "changed"}],
        3,
        1,
    )
    assert "io.modelcontextprotocol/serverInfo" in got["_meta"]
    assert (await result(server, "resources/read", {"uri": "a://b"}))["contents"][0]["text"] == "changed"
    got = await result(server, "prompts/get", {"name": "p", "arguments": {"x": "y"}})
    assert got["messages"][0]["content"]["text"] == "changed"


async def test_it_may_change_a_list_and_what_comes_after_is_shaped_as_ever(server: Server):
    server.ttl_ms = 7

    @server.middleware
    async def fewer(call: Any, call_next: Any) -> Any:
        outcome = await call_next(call)
        if isinstance(outcome, ListToolsResult):
            tools = tuple(replace(tool, title="T") for tool in outcome.tools if tool.name != "echo")
            return replace(outcome, tools=tools)
        return outcome

    listed = await result(server, "tools/list")

    assert [(tool["name"], tool["title"]) for tool in listed["tools"]] == [("add", "T")]
    assert (listed["ttlMs"], listed["cacheScope"], listed["resultType"]) == (7, "private", "complete")
    assert await names(server) == ["add"]


async def test_a_changed_list_is_shaped_for_an_older_revision():
    from mcprelay.revisions import ALL

    server = Server("s")
    server.add_tool(lambda: [1], name="f", title="T")

    @server.middleware
    async def change(call: Any, call_next: Any) -> Any:
        outcome = await call_next(call)
        return replace(outcome, tools=outcome.tools) if isinstance(outcome, ListToolsResult) else outcome

    oldest = list(ALL)[-1]
    async with connected(server) as client:
        hello = {"protocolVersion": oldest, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        await client.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        await client.receive()
        await client.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}})
        [tool] = (await client.receive())["result"]["tools"]
    assert set(tool) == {"name", "inputSchema"}


async def test_it_may_answer_by_itself(server: Server):
    @server.middleware
    async def answer(call: Any, call_next: Any) -> Any:
        if call.target == "made_up":
            return ToolResult(content=(Text("by itself"),))
        return await call_next(call)

    assert await call(server, "made_up") == "by itself"
    assert await call(server, "add", {"a": 1, "b": 2}) == 3


async def test_it_refuses_by_a_protocol_error_or_for_a_tool_by_a_tool_error(server: Server):
    @server.middleware
    async def refuse(call: Any, call_next: Any) -> Any:
        if call.target == "echo":
            raise ToolError("not today")
        if call.method.name == "prompts/list":
            raise ProtocolError(-31000, "no lists", {"a": 1})
        return await call_next(call)

    assert await call(server, "echo", {"text": "x"}) == "error: not today"
    assert await error(server, "prompts/list") == {"code": -31000, "message": "no lists", "data": {"a": 1}}


async def test_what_else_it_raises_is_an_internal_error_that_says_nothing(server: Server, caplog):
    @server.middleware
    async def broken(call: Any, call_next: Any) -> Any:
        raise RuntimeError("secret")

    answer = await error(server, "tools/list")
    assert (answer["code"], "secret" in answer["message"]) == (-32603, False)
    assert "secret" in caplog.text


async def test_it_sees_listening_from_its_beginning_to_its_end_and_may_refuse_it(server: Server):
    seen: list[str] = []

    @server.middleware
    async def watch(call: Any, call_next: Any) -> Any:
        if call.method.name != "subscriptions/listen":
            return await call_next(call)
        if call.params.notifications.prompts_list_changed:
            raise ProtocolError(-32602, "not prompts")
        seen.append("begun")
        try:
            return await call_next(call)
        finally:
            seen.append("ended")

    async with connected(server) as client:
        await client.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        assert (await client.receive())["method"] == "notifications/subscriptions/acknowledged"
        assert seen == ["begun"]
        refused = await client.ask("subscriptions/listen", {"notifications": {"promptsListChanged": True}})
        assert refused["error"]["message"] == "not prompts"
    assert seen == ["begun", "ended"]


async def test_pages_keep_their_cursors_behind_middleware(server: Server):
    from mcprelay import Limits

    paged = Server("s", limits=Limits(page_size=2))
    for number in range(5):
        paged.add_tool(lambda: "", name=f"t{number}")
    paged.middleware(lambda call, call_next: call_next(call))

    found, cursor = [], None
    while True:
        page = await result(paged, "tools/list", {"cursor": cursor} if cursor else {})
        found += [tool["name"] for tool in page["tools"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    assert found == [f"t{number}" for number in range(5)]
