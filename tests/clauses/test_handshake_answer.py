"""What a client answers to the requests that a server of the handshake era sends, and what it makes of its notices."""

import asyncio
import logging
from typing import Any

import msgspec
import pytest

from mcprelay import ClientCapabilities, NeedsInput, ProtocolError, RemoteError, ResponseInvalid, revisions
from mcprelay.revisions import Era, Feature
from mcprelay.testing import ScriptedChannel
from tests.client.peer import INITIALIZED, in_session

WITH_ADDRESSES = [one.name for one in revisions.of_era(Era.HANDSHAKE) if one.has(Feature.URL_INPUT)]
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
ADDRESS = {"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "e"}
WORDS: dict[str, Any] = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}


async def ask(channel: ScriptedChannel, method: str, params: Any = None, *, id: Any = "q") -> dict[str, Any]:
    """What the client answers."""
    channel.call(id, method, params)
    answer = await channel.expect()
    assert answer["id"] == id
    assert type(answer["id"]) is type(id)
    return answer


@pytest.mark.clause("handshake.index.client-same-id", "handshake.index.client-error")
@pytest.mark.parametrize("id", [0, 7, "7", "", "a b"])
async def test_an_answer_has_the_id_of_the_servers_request_in_type_and_value(id: Any):
    async with in_session(on_roots=["file:///work"]) as (_, channel):
        answer = await ask(channel, "roots/list", id=id)
        assert answer["result"] == {"roots": [{"uri": "file:///work"}]}
        error = (await ask(channel, "no/such", id=id))["error"]
        assert type(error["code"]) is int
        assert error["message"]


@pytest.mark.clause("handshake.ping.answered")
async def test_a_ping_is_answered_while_a_person_thinks():
    asked = asyncio.Event()

    async def elicit(_: Any) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with in_session(on_elicit=elicit) as (_, channel):
        channel.call(1, "elicitation/create", FORM)
        await asyncio.wait_for(asked.wait(), 5)
        assert (await ask(channel, "ping"))["result"] == {}


@pytest.mark.clause("handshake.index.notification-unanswered")
@pytest.mark.parametrize("method", ["notifications/message", "notifications/no/such", "tools/call"])
async def test_a_notification_is_not_answered_whatever_it_says(method: str):
    async with in_session() as (_, channel):
        channel.notify(method, {"x": [1]})
        assert (await ask(channel, "ping"))["result"] == {}


@pytest.mark.clause("handshake.index.result-or-error")
@pytest.mark.parametrize("revision", [one.name for one in revisions.of_era(Era.HANDSHAKE)])
async def test_a_response_that_is_result_and_error_at_once_is_none(revision: str):
    async with in_session(initialized={**INITIALIZED, "protocolVersion": revision}, on_roots=[]) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("t"))
        asked = await channel.expect("tools/call")
        both = {"result": {"content": []}, "error": {"code": 1, "message": "no"}}
        channel.say(msgspec.json.encode({"jsonrpc": "2.0", "id": asked["id"], **both}))
        with pytest.raises(ResponseInvalid):
            await calling
        for answer in (await ask(channel, "roots/list"), await ask(channel, "no/such")):
            assert ("result" in answer) != ("error" in answer)


# --- what was not declared


@pytest.mark.clause("handshake.elicitation.undeclared-mode", "handshake.lifecycle.only-negotiated")
@pytest.mark.parametrize(("declared", "params"), [({"form": {}}, ADDRESS), ({}, ADDRESS), ({"url": {}}, FORM)])
@pytest.mark.parametrize("revision", WITH_ADDRESSES)
async def test_a_mode_that_was_not_declared_is_refused(revision: str, declared: Any, params: Any):
    seen: list[Any] = []
    initialized = {**INITIALIZED, "protocolVersion": revision}
    options = {"on_elicit": seen.append, "capabilities": ClientCapabilities(elicitation=declared)}
    async with in_session(initialized=initialized, **options) as (_, channel):
        error = (await ask(channel, "elicitation/create", params))["error"]
        assert error["code"] == -32602
        assert "did not declare elicitation." in error["message"]
        assert seen == []


@pytest.mark.clause("handshake.sampling.tools-undeclared")
@pytest.mark.parametrize("more", [{"tools": [TOOL]}, {"tools": []}, {"toolChoice": {"mode": "auto"}}])
async def test_tools_for_a_model_are_refused_where_they_were_not_declared(more: Any):
    seen: list[Any] = []

    def sample(question: Any) -> str:
        seen.append(question)
        return "hey"

    async with in_session(on_sample=sample) as (_, channel):
        error = (await ask(channel, "sampling/createMessage", {**WORDS, **more}))["error"]
        assert (error["code"], seen) == (-32602, [])
        assert "sampling.tools" in error["message"]
        assert (await ask(channel, "sampling/createMessage", WORDS))["result"]["content"]["text"] == "hey"
    with_tools = ClientCapabilities(sampling={"tools": {}})
    async with in_session(on_sample=sample, capabilities=with_tools) as (_, channel):
        assert "result" in await ask(channel, "sampling/createMessage", {**WORDS, **more})


@pytest.mark.clause("handshake.roots.unsupported", "handshake.lifecycle.only-negotiated")
@pytest.mark.parametrize("options", [{}, {"on_roots": ["file:///work"], "capabilities": ClientCapabilities()}])
async def test_a_kind_of_question_that_was_not_declared_is_an_unknown_method(options: Any):
    async with in_session(**options) as (_, channel):
        assert (await ask(channel, "roots/list"))["error"]["code"] == -32601


@pytest.mark.clause("handshake.roots.capability", "handshake.elicitation.capability", "handshake.sampling.capability")
async def test_what_a_client_can_be_asked_is_declared_when_the_session_begins():
    def answer(_: Any) -> None:
        return None

    async with in_session(on_elicit=answer, on_sample=answer, on_roots=["file:///work"]) as (_, channel):
        declared = channel.sent[0]
        assert b'"elicitation":{"form":{},"url":{}}' in declared
        assert b'"sampling":{}' in declared
        assert b'"roots":{}' in declared  # that they change is not told, and so not promised


# --- what cannot be answered


@pytest.mark.clause("handshake.sampling.errors")
async def test_a_person_who_refuses_a_sampling_request_is_an_error_of_the_handlers_choice():
    def sample(_: Any) -> None:
        raise ProtocolError(-1, "User rejected sampling request")

    async with in_session(on_sample=sample) as (_, channel):
        error = (await ask(channel, "sampling/createMessage", WORDS))["error"]
        assert error == {"code": -1, "message": "User rejected sampling request"}


@pytest.mark.clause("handshake.sampling.errors")
@pytest.mark.parametrize("mixed", [True, False], ids=["mixed", "missing"])
async def test_a_conversation_whose_tools_and_results_are_not_in_pairs_is_invalid(mixed: bool):
    use = {"type": "tool_use", "id": "u", "name": "t", "input": {}}
    result = {"type": "tool_result", "toolUseId": "u", "content": []}
    words = {"type": "text", "text": "and this"}
    messages = [*WORDS["messages"], {"role": "assistant", "content": [use]}]
    messages.append({"role": "user", "content": [result, words] if mixed else words})
    declared = ClientCapabilities(sampling={"tools": {}})
    async with in_session(on_sample=lambda _: "hey", capabilities=declared) as (_, channel):
        params = {**WORDS, "messages": messages, "tools": [TOOL]}
        assert (await ask(channel, "sampling/createMessage", params))["error"]["code"] == -32602


@pytest.mark.clause("handshake.roots.internal-error")
async def test_roots_that_cannot_be_told_are_an_internal_error_that_gives_nothing_away():
    def roots() -> Any:
        raise OSError("/home/somebody/secret")

    async with in_session(on_roots=roots) as (_, channel):
        error = (await ask(channel, "roots/list"))["error"]
        assert error["code"] == -32603
        assert "secret" not in error["message"]


# --- notices


@pytest.mark.clause("handshake.elicitation.unknown-completion")
@pytest.mark.parametrize("params", [{"elicitationId": "unknown"}, {"elicitationId": 7}, {}])
async def test_a_completion_of_a_question_that_is_unknown_is_ignored(params: Any):
    async with in_session(on_elicit=lambda _: True) as (client, channel):
        channel.notify("notifications/elicitation/complete", params)
        assert (await ask(channel, "elicitation/create", ADDRESS))["result"] == {"action": "accept"}
        channel.notify("notifications/elicitation/complete", {"elicitationId": "e"})
        channel.notify("notifications/elicitation/complete", {"elicitationId": "e"})
        calling = asyncio.ensure_future(client.call_tool("t"))
        channel.reply(await channel.expect("tools/call"), {"content": []})
        await calling


@pytest.mark.clause("handshake.elicitation.required-error-read")
async def test_an_error_that_wants_an_address_visited_first_reaches_the_caller_with_its_list():
    async with in_session() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("t"))
        channel.refuse(await channel.expect("tools/call"), -32042, "visit first", {"elicitations": [ADDRESS]})
        with pytest.raises(RemoteError) as caught:
            await calling
        assert not isinstance(caught.value, NeedsInput)
        assert (caught.value.code, caught.value.data) == (-32042, {"elicitations": [ADDRESS]})


@pytest.mark.clause("handshake.cancellation.client-stops", "handshake.cancellation.reason-logged")
async def test_a_question_that_is_taken_back_is_stopped_not_answered_and_its_reason_logged(caplog: Any):
    asked, stopped = asyncio.Event(), asyncio.Event()

    async def elicit(_: Any) -> None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    with caplog.at_level(logging.DEBUG, "mcprelay"):
        async with in_session(on_elicit=elicit) as (_, channel):
            channel.call("q", "elicitation/create", FORM)
            await asyncio.wait_for(asked.wait(), 5)
            channel.notify("notifications/cancelled", {"requestId": "q", "reason": "the shop\nclosed"})
            await asyncio.wait_for(stopped.wait(), 5)
            assert (await ask(channel, "ping"))["result"] == {}
            assert not any(b'"id":"q"' in sent for sent in channel.sent[:-1])
    (line,) = [record.getMessage() for record in caplog.records if "the shop" in record.getMessage()]
    assert "elicitation/create" in line
    assert "\n" not in line


@pytest.mark.clause("handshake.cancellation.invalid-ignored", "handshake.cancellation.races")
@pytest.mark.parametrize("params", [{"requestId": "done"}, {"requestId": 99}, {"requestId": []}, {}, {"reason": 7}])
async def test_a_cancellation_of_what_is_done_unknown_or_malformed_is_ignored(params: Any):
    async with in_session(on_roots=[]) as (_, channel):
        await ask(channel, "roots/list", id="done")
        channel.notify("notifications/cancelled", params)
        assert (await ask(channel, "roots/list", id="next"))["result"] == {"roots": []}


# --- tasks, which the package does not declare


@pytest.mark.clause("handshake.tasks.undeclared-ignored")
async def test_a_question_that_would_be_a_task_is_answered_as_any_other():
    async with in_session(on_sample=lambda _: "hey") as (_, channel):
        answer = await ask(channel, "sampling/createMessage", {**WORDS, "task": {"ttl": 60_000}})
        assert answer["result"]["content"] == {"type": "text", "text": "hey"}
        assert b'"tasks"' not in channel.sent[0]


@pytest.mark.clause("handshake.tasks.not-attempted")
async def test_a_client_makes_no_tasks_whatever_a_server_declares():
    initialized = {**INITIALIZED, "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}}
    definition = {**TOOL, "execution": {"taskSupport": "optional"}}
    async with in_session(initialized=initialized) as (client, channel):
        listing = asyncio.ensure_future(client.list_tools())
        channel.reply(await channel.expect("tools/list"), {"tools": [definition]})
        await listing
        calling = asyncio.ensure_future(client.call_tool("t"))
        call = await channel.expect("tools/call")
        assert "task" not in call["params"]
        channel.reply(call, {"content": []})
        await calling
