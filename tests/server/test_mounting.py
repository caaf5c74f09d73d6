"""One server in another: its names outside, the way in and back, and what changes later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest

from mcprelay import (
    Complete,
    ConfigurationError,
    Context,
    EmbeddedResource,
    ProtocolError,
    ResourceContents,
    ResourceLink,
    ResourceNotFound,
    Server,
    ToolError,
)
from mcprelay.server.call import Principal
from tests.server.ask import call, connected, error, names, result


def inner_server(name: str = "inner", **options: Any) -> Server:
    server = Server(name, **options)

    @server.tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @server.tool
    def links() -> list[ResourceLink | EmbeddedResource]:
        return [
            ResourceLink(uri="config://app", name="own"),
            ResourceLink(uri="https://example.com/x", name="foreign"),
            EmbeddedResource(ResourceContents(uri="user://ada", text="x")),
        ]

    @server.tool
    def fails(kind: str) -> str:
        if kind == "tool":
            raise ToolError("no")
        raise ProtocolError(-31000, "protocol", {"a": 1})

    @server.resource("config://app", mime_type="text/plain")
    def config(uri: str) -> str:
        return f"config at {uri}"

    @server.resource("user://{name}")
    def user(name: Annotated[str, Complete(["ada", "bob"])], uri: str) -> str:
        if name == "nobody":
            raise ResourceNotFound(uri)
        return f"{name} at {uri}"

    @server.prompt
    def review(tone: Annotated[str, Complete(["kind", "harsh"])]) -> Any:
        return [EmbeddedResource(ResourceContents(uri="config://app", text=tone))]

    return server


@pytest.fixture
def inner() -> Server:
    return inner_server()


@pytest.fixture
def outer(inner: Server) -> Server:
    server = Server("outer")

    @server.tool
    def own() -> str:
        return "own"

    server.mount("in_side", inner)
    return server


async def test_names_have_the_prefix_and_addresses_have_it_before_their_scheme(outer: Server):
    assert await names(outer) == ["own", "in_side_add", "in_side_links", "in_side_fails"]
    assert await names(outer, "prompts") == ["in_side_review"]
    assert await names(outer, "resources") == ["in-side+config://app"]
    assert await names(outer, "templates") == ["in-side+user://{name}"]
    [_, tool, *_] = (await result(outer, "tools/list"))["tools"]
    assert tool["description"] == "Add."
    assert tool["inputSchema"]["required"] == ["a", "b"]


async def test_calls_find_their_way_in_and_their_outcomes_the_way_back(outer: Server):
    assert await call(outer, "in_side_add", {"a": 1, "b": 2}) == 3
    assert await call(outer, "own") == "own"
    [contents] = (await result(outer, "resources/read", {"uri": "in-side+config://app"}))["contents"]
    assert contents == {"uri": "in-side+config://app", "mimeType": "text/plain", "text": "config at config://app"}
    [contents] = (await result(outer, "resources/read", {"uri": "in-side+user://ada"}))["contents"]
    assert (contents["uri"], contents["text"]) == ("in-side+user://ada", "ada at user://ada")
    got = await result(outer, "prompts/get", {"name": "in_side_review", "arguments": {"tone": "kind"}})
    assert got["messages"][0]["content"]["resource"] == {"uri": "in-side+config://app", "text": "kind"}


async def test_what_a_result_points_to_can_be_read_outside_and_what_is_elsewhere_stays_there(outer: Server):
    content = (await result(outer, "tools/call", {"name": "in_side_links", "arguments": {}}))["content"]
    assert [block.get("uri") or block["resource"]["uri"] for block in content] == [
        "in-side+config://app",
        "https://example.com/x",
        "in-side+user://ada",
    ]


async def test_errors_come_out_as_they_went_in_with_addresses_of_outside(outer: Server):
    assert await call(outer, "in_side_fails", {"kind": "tool"}) == "error: no"
    wrong = await error(outer, "tools/call", {"name": "in_side_fails", "arguments": {"kind": "p"}})
    assert wrong == {"code": -31000, "message": "protocol", "data": {"a": 1}}
    assert (await call(outer, "in_side_add", {"a": "x"})).startswith("error:")
    missing = await error(outer, "resources/read", {"uri": "in-side+user://nobody"})
    assert missing["data"] == {"uri": "in-side+user://nobody"}
    assert missing["message"] == "Resource not found: in-side+user://nobody"
    for method, params in (
        ("tools/call", {"name": "add", "arguments": {}}),
        ("resources/read", {"uri": "config://app"}),
        ("prompts/get", {"name": "review"}),
    ):
        assert (await error(outer, method, params))["code"] == -32602


async def test_completions_are_the_mounted_servers(outer: Server):
    async def complete(ref: dict[str, str], name: str, value: str) -> Any:
        params = {"ref": ref, "argument": {"name": name, "value": value}}
        return (await result(outer, "completion/complete", params))["completion"]["values"]

    assert await complete({"type": "ref/prompt", "name": "in_side_review"}, "tone", "k") == ["kind"]
    assert await complete({"type": "ref/resource", "uri": "in-side+user://{name}"}, "name", "b") == ["bob"]


async def test_what_changes_inside_is_heard_outside(outer: Server, inner: Server):
    async with connected(outer) as client:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["in-side+config://app"]}
        await client.request("subscriptions/listen", {"notifications": wanted})
        await client.receive()

        inner.add_tool(lambda: "x", name="late")
        assert (await client.receive())["method"] == "notifications/tools/list_changed"
        assert "in_side_late" in [tool["name"] for tool in (await client.result("tools/list"))["tools"]]

        inner.disable("add")
        assert (await client.receive())["method"] == "notifications/tools/list_changed"
        assert "in_side_add" not in [tool["name"] for tool in (await client.result("tools/list"))["tools"]]

        await inner.resource_updated("config://app")
        told = await client.receive()
        assert (told["method"], told["params"]["uri"]) == ("notifications/resources/updated", "in-side+config://app")


async def test_what_is_registered_outside_wins_and_a_mounted_server_can_be_let_go(outer: Server):
    outer.add_tool(lambda: "mine", name="in_side_add")
    assert await call(outer, "in_side_add") == "mine"
    outer.remove_tool("in_side_add")
    with pytest.raises(KeyError, match="it belongs to a mounted server"):
        outer.remove_tool("in_side_add")

    outer.unmount("in_side")

    assert await names(outer) == ["own"]
    assert await names(outer, "resources") == []
    with pytest.raises(KeyError, match="no server is mounted as 'in_side'"):
        outer.unmount("in_side")


async def test_parts_of_a_mounted_server_are_switched_off_outside_alone(outer: Server, inner: Server):
    inner.add_tool(lambda: "x", name="tagged", tags=["t"])
    outer.disable("in_side_add", tags=["t"])
    assert await names(outer) == ["own", "in_side_links", "in_side_fails"]
    assert await call(inner, "add", {"a": 1, "b": 2}) == 3
    inner.add_tool(lambda: "x", name="later")
    assert "in_side_add" not in await names(outer), "it stays off whatever else changes"
    outer.enable("in_side_add")
    assert await call(outer, "in_side_add", {"a": 1, "b": 2}) == 3


async def test_who_may_not_see_something_inside_may_not_see_it_outside(outer: Server, inner: Server):
    inner.add_tool(lambda: "x", name="scoped", requires=["admin"])
    admin = Principal("a", frozenset({"admin"}))
    assert "in_side_scoped" not in await names(outer)
    assert "in_side_scoped" in await names(outer, principal=admin)
    assert (await error(outer, "tools/call", {"name": "in_side_scoped"}))["message"] == "Unknown tool: in_side_scoped"


async def test_middleware_of_both_is_around_a_call_the_outers_outside(outer: Server, inner: Server):
    order: list[str] = []

    def layer(name: str) -> Any:
        async def around(call: Any, call_next: Any) -> Any:
            order.append(f"{name} {call.target}")
            outcome = await call_next(call)
            order.append(f"{name} {call.target}")
            return outcome

        return around

    outer.middleware(layer("outer"))
    inner.middleware(layer("inner"))
    await call(outer, "in_side_add", {"a": 1, "b": 2})
    assert order == ["outer in_side_add", "inner add", "inner add", "outer in_side_add"]


async def test_mounted_servers_live_as_long_as_the_outer_one_and_keep_their_own_values():
    events: list[str] = []

    async def living(server: Server) -> AsyncIterator[str]:
        events.append(f"{server.info.name} entered")
        yield f"value of {server.info.name}"
        events.append(f"{server.info.name} left")

    def value(ctx: Context) -> str:
        return f"{ctx.lifespan} {ctx.server.info.name} {ctx.state}"

    inner = Server("inner", lifespan=living)
    inner.add_tool(value)
    late = Server("late", lifespan=living)
    late.add_tool(value)
    outer = Server("outer", lifespan=living)
    outer.mount("a", inner)
    async with connected(outer, state="state") as client:
        call_a = {"name": "a_value", "arguments": {}}
        text = (await client.result("tools/call", call_a))["content"][0]["text"]
        assert text == "value of inner inner state"
        outer.mount("b", late)
        text = (await client.result("tools/call", {"name": "b_value", "arguments": {}}))["content"][0]["text"]
        assert text == "value of late late state"
    assert events == [
        "inner entered",
        "outer entered",
        "late entered",
        "late left",
        "outer left",
        "inner left",
    ]


async def test_servers_are_mounted_in_mounted_servers(outer: Server):
    top = Server("top")
    top.mount("a", outer)
    assert "a_in_side_add" in await names(top)
    assert await call(top, "a_in_side_add", {"a": 1, "b": 2}) == 3
    [contents] = (await result(top, "resources/read", {"uri": "a+in-side+config://app"}))["contents"]
    assert (contents["uri"], contents["text"]) == ("a+in-side+config://app", "config at config://app")


async def test_one_server_may_be_mounted_in_several_places(inner: Server):
    one, two = Server("one"), Server("two")
    one.mount("x", inner)
    one.mount("y", inner)
    two.mount("", inner)
    assert await names(one) == ["x_add", "x_links", "x_fails", "y_add", "y_links", "y_fails"]
    assert await call(one, "y_add", {"a": 1, "b": 2}) == 3
    assert await call(two, "add", {"a": 1, "b": 2}) == 3
    assert await names(two, "resources") == ["config://app"]


async def test_questions_of_a_mounted_tool_are_sealed_by_the_outer_server():
    keys = ["the same secret everywhere"]

    def built() -> Server:
        inner = Server("inner")

        @inner.tool
        async def ask(ctx: Context) -> str:
            answer = await ctx.elicit("Which?", str, key="k")
            return f"{answer.value} in round {ctx.round}"

        outer = Server("outer", state_keys=keys)
        outer.mount("m", inner)
        return outer

    capabilities = {"elicitation": {"form": {}}}
    asked = await result(built(), "tools/call", {"name": "m_ask", "arguments": {}}, capabilities=capabilities)
    assert asked["resultType"] == "input_required"
    answered = await result(
        built(),
        "tools/call",
        {
            "name": "m_ask",
            "arguments": {},
            "requestState": asked["requestState"],
            "inputResponses": {"k": {"action": "accept", "content": {"value": "blue"}}},
        },
        capabilities=capabilities,
    )
    assert answered["content"][0]["text"] == "blue in round 2"


async def test_a_call_that_is_cancelled_outside_is_cancelled_inside():
    entered, ended = asyncio.Event(), asyncio.Event()
    inner = Server("inner")

    @inner.tool
    async def wait() -> str:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    outer = Server("outer")
    outer.mount("m", inner)
    async with connected(outer) as client:
        request_id = await client.request("tools/call", {"name": "m_wait", "arguments": {}})
        await entered.wait()
        await client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}})
        await ended.wait()


@pytest.mark.parametrize("prefix", ["1a", "a b", "_a", "a.b", "ä"])
def test_a_prefix_that_is_none_is_refused(prefix: str):
    with pytest.raises(ConfigurationError, match="is no prefix: it begins with a letter"):
        Server("s").mount(prefix, Server("t"))


def test_servers_do_not_hold_each_other_and_prefixes_are_not_shared(outer: Server, inner: Server):
    with pytest.raises(ConfigurationError, match="which is mounted in it"):
        inner.mount("x", outer)
    with pytest.raises(ConfigurationError, match="which is mounted in it"):
        inner.mount("x", inner)
    with pytest.raises(ConfigurationError, match="the prefix 'IN-SIDE' is taken"):
        outer.mount("IN-SIDE", Server("t"))
