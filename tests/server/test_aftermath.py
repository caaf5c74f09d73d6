"""What a handler leaves behind: what still asks or tells, results that JSON cannot say, errors of another kind."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from mcprelay import Client, Context, MCPRelayError, ResourceNotFound, Server, Text, ToolError, revisions
from mcprelay.errors import PromptError, RemoteError, ResourceError


async def person(_: Any) -> dict[str, bool]:
    return {"value": True}


async def test_a_question_after_the_call_is_an_error_and_no_wait_without_end():
    server, kept = Server("s"), []

    @server.tool
    async def keep(ctx: Context) -> str:
        kept.append(ctx)
        return "kept"

    async with Client(server, on_elicit=person) as client:
        await client.call_tool("keep")
        with pytest.raises(MCPRelayError, match="the call is over: ask before the handler returns"):
            await kept[0].elicit("Now?", bool)


async def test_a_task_that_asked_and_was_left_behind_ends_with_its_call():
    server, tasks = Server("s"), []

    @server.tool
    async def leave(ctx: Context) -> str:
        tasks.append(asyncio.create_task(ctx.elicit("Well?", bool, key="q")))
        await asyncio.sleep(0)
        return "left"

    async with Client(server, on_elicit=person) as client:
        assert (await client.call_tool("leave")).text == "left"
        done, waiting = await asyncio.wait(tasks, timeout=5)
    assert len(done) == 2
    assert not waiting


async def test_progress_stops_when_the_call_is_over():
    server, kept = Server("s"), []

    @server.tool
    async def keep(ctx: Context) -> str:
        ctx.progress(1, message=("the first call", "the second call")[len(kept)])
        kept.append(ctx)
        return "kept"

    meta = {
        "io.modelcontextprotocol/protocolVersion": next(iter(revisions.ALL)),
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "keep", "_meta": {**meta, "progressToken": 7}}}
    channel = server.connect()

    async def told() -> Any:
        return msgspec.json.decode(await channel.receive())

    await channel.send(msgspec.json.encode({**call, "id": 1}))
    assert [(await told()).get("method"), (await told()).get("id")] == ["notifications/progress", 1]
    kept[0].progress(2)
    await channel.send(msgspec.json.encode({**call, "id": 2}))
    assert (await told())["params"]["message"] == "the second call"
    assert (await told())["id"] == 2
    await channel.aclose()


@pytest.mark.parametrize("value", ["\ud800", {"a": "\ud800"}, Text("\ud800"), [Text("\ud800")]])
async def test_a_text_that_utf8_cannot_say_is_the_tools_failure(value: Any):
    server = Server("s")

    @server.tool
    def broken() -> Any:
        return value

    async with Client(server) as client:
        with pytest.raises(ToolError, match="Internal error while answering tools/call broken"):
            await client.call_tool("broken")


@pytest.mark.parametrize("value", [{(1, 2): 3}, {None: 1}, [{"a": {frozenset(): 1}}]])
async def test_a_key_that_is_no_string_is_named_in_the_log(value: Any, caplog: pytest.LogCaptureFixture):
    server = Server("s")

    @server.tool
    def broken() -> Any:
        return value

    async with Client(server) as client:
        with pytest.raises(ToolError):
            await client.call_tool("broken")
    assert any("keys of a JSON object are strings, and not" in str(record.exc_info) for record in caplog.records)


@pytest.mark.parametrize("error", [ResourceError("gone"), ResourceNotFound("gone"), PromptError("gone")])
async def test_a_tool_may_raise_what_the_code_it_shares_raises(error: Exception):
    server = Server("s")

    @server.tool
    def shared() -> str:
        raise error

    async with Client(server) as client:
        with pytest.raises(ToolError, match="gone"):
            await client.call_tool("shared")


async def test_a_coroutine_that_raises_generator_exit_ends_its_call_alone():
    server = Server("s")

    @server.tool
    async def fall() -> str:
        raise GeneratorExit

    @server.tool
    async def stand() -> str:
        return "here"

    async with Client(server) as client:
        with pytest.raises(RemoteError, match="Internal error"):
            await client.call_tool("fall")
        assert (await client.call_tool("stand")).text == "here"


@pytest.mark.parametrize("outcome", [None, "text", {"tools": []}])
async def test_middleware_that_gives_no_result_is_told_what_to_return(outcome: Any, caplog: pytest.LogCaptureFixture):
    server = Server("s")

    @server.middleware
    async def forgetful(call: Any, call_next: Any) -> Any:
        given = await call_next(call)
        return outcome if call.method.name == "tools/list" else given

    @server.tool
    def a() -> str:
        return ""

    async with Client(server) as client:
        with pytest.raises(RemoteError, match="Internal error"):
            await client.list_tools()
    assert any("it returns what `await call_next(call)` gave" in str(record.exc_info) for record in caplog.records)
