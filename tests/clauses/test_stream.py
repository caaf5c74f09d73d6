"""basic/patterns: progress, cancellation and subscriptions; and server/utilities/logging."""

import asyncio
import logging
from typing import Any

import pytest

from mcprelay import Server
from tests.clauses.house import Workshop
from tests.clauses.http import PREFIX, Answer, HttpWire
from tests.server.rawclient import RawClient
from tests.wire_schema import validate_message

ALL = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
SUBSCRIPTION = PREFIX + "subscriptionId"


def subscription_of(message: dict[str, Any] | None) -> Any:
    assert message is not None
    holder = message.get("params") or message["result"]
    return holder["_meta"][SUBSCRIPTION]


async def listening(http: HttpWire, **wanted: Any) -> tuple[Answer, int]:
    """An open stream, past its acknowledgement."""
    message = http.message("subscriptions/listen", {"notifications": wanted})
    answer = http.post(message)
    acknowledged = await answer.next()
    assert acknowledged is not None
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    return answer, message["id"]


async def extra() -> str:
    """Exist for a while."""
    return "here"


# ------------------------------------------------------------------------------------------------------- progress, logs


@pytest.mark.clause("progress.increases", "progress.active-token", "progress.stops", "progress.tracked")
@pytest.mark.parametrize("token", ["t", 7, 0, ""])
async def test_progress_names_its_token_and_grows_until_the_answer(wire: Any, token: Any):
    await wire.result("tools/call", {"name": "chatty"}, progressToken=token)
    heard = [message["params"] for message in wire.notices if message["method"] == "notifications/progress"]
    assert [params["progress"] for params in heard] == [1, 2, 3]
    assert [(type(p["progressToken"]), p["progressToken"]) for p in heard] == [(type(token), token)] * 3


@pytest.mark.clause("progress.active-token")
async def test_without_a_token_there_is_no_progress(wire: Any):
    await wire.result("tools/call", {"name": "chatty"})
    assert wire.notices == []


@pytest.mark.clause("logging.opt-in", "logging.own-stream")
async def test_only_a_request_that_names_a_level_gets_messages_of_that_level(wire: Any):
    await wire.result("tools/call", {"name": "chatty"})
    assert wire.notices == []
    await wire.result("tools/call", {"name": "chatty"}, **{PREFIX + "logLevel": "info"})
    [message] = wire.notices
    assert message["params"] == {"level": "warning", "logger": "workshop", "data": {"loud": True}}


@pytest.mark.clause("logging.invalid-level")
async def test_a_level_that_does_not_exist_is_refused(http: HttpWire, workshop: Workshop):
    message = http.message("tools/call", {"name": "echo", "arguments": {"text": "a"}}, **{PREFIX + "logLevel": "loud"})
    assert (await http.answer(message))["error"]["code"] == -32602
    assert workshop.runs == 0


@pytest.mark.clause("logging.capability")
async def test_a_server_that_may_log_says_so(wire: Any):
    assert "logging" in (await wire.result("server/discover"))["capabilities"]


@pytest.mark.clause("logging.own-stream")
async def test_a_listen_stream_carries_no_log_messages(http: HttpWire, server: Server):
    answer, _ = await listening(http, toolsListChanged=True)
    await http.result("tools/call", {"name": "chatty"}, **{PREFIX + "logLevel": "debug"})
    server.add_tool(extra)
    assert (await answer.next() or {})["method"] == "notifications/tools/list_changed"
    await answer.hang_up()


# --------------------------------------------------------------------------------------------------------- cancellation


@pytest.mark.clause("stdio.cancelled-stops", "stdio.cancelled-silent", "cancellation.stop-and-free")
async def test_a_cancelled_call_stops_and_is_never_answered(channel: RawClient, workshop: Workshop):
    request = await channel.request("tools/call", {"name": "slow"})
    await asyncio.wait_for(workshop.started.wait(), 10)
    await channel.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}})
    await asyncio.wait_for(workshop.stopped.wait(), 10)
    answer = await channel.ask("tools/call", {"name": "echo", "arguments": {"text": "a"}})
    assert answer["id"] != request
    assert channel.notices == []


@pytest.mark.clause("cancellation.reason-logged")
async def test_why_a_call_was_cancelled_is_logged_in_one_line(
    channel: RawClient, workshop: Workshop, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, "mcprelay")
    request = await channel.request("tools/call", {"name": "slow"})
    await asyncio.wait_for(workshop.started.wait(), 10)
    params = {"requestId": request, "reason": "lost\ninterest"}
    await channel.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    await asyncio.wait_for(workshop.stopped.wait(), 10)
    [line] = [record.getMessage() for record in caplog.records if "cancelled by" in record.getMessage()]
    assert "lost" in line
    assert "interest" in line
    assert "\n" not in line


@pytest.mark.clause("cancellation.races", "cancellation.invalid-ignored")
@pytest.mark.parametrize("params", [{"requestId": 1}, {"requestId": "1"}, {"requestId": 99}, {}, {"requestId": None}])
async def test_a_cancellation_of_what_is_done_unknown_or_malformed_is_ignored(
    channel: RawClient, params: dict[str, Any]
):
    echo = {"name": "echo", "arguments": {"text": "a"}}
    await channel.result("tools/call", echo)
    await channel.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    assert (await channel.result("tools/call", echo))["content"][0]["text"] == "a"


async def test_a_call_that_another_client_cancels_goes_on(server: Server, channel: RawClient, workshop: Workshop):
    request = await channel.request("tools/call", {"name": "slow"})
    await asyncio.wait_for(workshop.started.wait(), 10)
    other = server.connect()
    stranger = RawClient(other)
    await stranger.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}})
    await stranger.result("tools/list")
    workshop.finish.set()
    assert (await channel.receive())["result"]["content"][0]["text"] == "done"
    await other.aclose()


# -------------------------------------------------------------------------------------------------------- subscriptions


@pytest.mark.clause("subscriptions.acknowledged-first", "subscriptions.nothing-before", "index.subscription-id")
async def test_the_acknowledgement_comes_first_and_says_what_is_honored(http: HttpWire):
    wanted = {**ALL, "resourceSubscriptions": ["work://text"]}
    message = http.message("subscriptions/listen", {"notifications": wanted})
    answer = http.post(message)
    first = await answer.next()
    assert first is not None
    validate_message("2026-07-28", first, sender="server")
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["notifications"] == wanted
    assert subscription_of(first) == message["id"]
    await answer.hang_up()


@pytest.mark.clause(
    "subscriptions.only-requested", "tools.list-changed", "prompts.list-changed", "resources.list-changed"
)
@pytest.mark.parametrize(
    ("wanted", "heard"),
    [
        ({"toolsListChanged": True}, {"notifications/tools/list_changed"}),
        ({"promptsListChanged": True}, {"notifications/prompts/list_changed"}),
        ({"resourcesListChanged": True}, {"notifications/resources/list_changed"}),
        ({"resourceSubscriptions": ["work://text"]}, {"notifications/resources/updated"}),
        ({"toolsListChanged": False, "promptsListChanged": True}, {"notifications/prompts/list_changed"}),
    ],
)
async def test_only_what_was_asked_for_is_told(http: HttpWire, server: Server, wanted: dict[str, Any], heard: set[str]):
    answer, id = await listening(http, **wanted)
    server.add_tool(extra, name="extra_tool")
    server.add_prompt(extra, name="extra_prompt")
    server.add_resource("work://extra", extra)
    await server.resource_updated("work://bytes")
    await server.resource_updated("work://text")
    await server.stop()
    *told, _ = await answer.all()
    assert {message["method"] for message in told} == heard
    assert {subscription_of(message) for message in told} == {id}


@pytest.mark.clause("subscriptions.graceful-result", "index.subscription-id")
async def test_a_stream_that_the_server_ends_is_ended_by_a_result(http: HttpWire, server: Server):
    answer, id = await listening(http, toolsListChanged=True)
    await server.stop()
    [last] = await answer.all()
    validate_message("2026-07-28", last, sender="server", request_method="subscriptions/listen")
    assert (last["id"], subscription_of(last)) == (id, id)


@pytest.mark.clause(
    "cancellation.server-listen", "cancellation.server-references-listen", "cancellation.server-only-listen"
)
async def test_on_a_channel_the_end_of_a_subscription_is_also_a_cancellation(channel: RawClient, server: Server):
    id = await channel.request("subscriptions/listen", {"notifications": ALL})
    assert (await channel.receive())["method"] == "notifications/subscriptions/acknowledged"
    await server.stop()
    result, cancelled = await channel.receive(), await channel.receive()
    assert (result["id"], subscription_of(result)) == (id, id)
    assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", id)


@pytest.mark.clause("index.subscription-id")
async def test_several_subscriptions_on_one_channel_are_told_apart_by_their_ids(channel: RawClient, server: Server):
    tools = await channel.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    prompts = await channel.request("subscriptions/listen", {"notifications": {"promptsListChanged": True}})
    acknowledged = [await channel.receive(), await channel.receive()]
    assert {subscription_of(message) for message in acknowledged} == {tools, prompts}
    server.add_tool(extra, name="extra_tool")
    server.add_prompt(extra, name="extra_prompt")
    told = [await channel.receive(), await channel.receive()]
    assert {message["method"]: subscription_of(message) for message in told} == {
        "notifications/tools/list_changed": tools,
        "notifications/prompts/list_changed": prompts,
    }


@pytest.mark.clause("subscriptions.only-requested", "cancellation.stop-and-free")
async def test_a_cancelled_subscription_hears_nothing_more(channel: RawClient, server: Server):
    id = await channel.request("subscriptions/listen", {"notifications": ALL})
    await channel.receive()
    await channel.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
    await channel.result("tools/list")
    server.add_tool(extra, name="extra_tool")
    await channel.result("tools/list")
    assert channel.notices == []
