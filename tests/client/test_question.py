"""Questions of servers: rounds in the newest era, requests in the older one, the same handlers in both."""

import asyncio

import msgspec
import pytest

from mcprelay import (
    CallFailed,
    CallLimitExceeded,
    ClientCapabilities,
    ConfigurationError,
    ElicitResult,
    InputRequired,
    NeedsInput,
    Refused,
    ResponseInvalid,
    Root,
    SamplingResult,
    Succeeded,
    Text,
    ToolError,
)
from tests.client.peer import connected, in_session, tool_result

FORM = {
    "type": "object",
    "properties": {
        "seat": {"type": "string", "enum": ["1A", "2B"]},
        "meals": {"type": "integer", "default": 1},
        "window": {"type": "boolean", "default": True},
    },
    "required": ["seat"],
}
ELICIT = {"method": "elicitation/create", "params": {"message": "Which seat?", "requestedSchema": FORM}}
URL = {"method": "elicitation/create", "params": {"mode": "url", "message": "Log in", "url": "https://login.example"}}
SAMPLE = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9},
}
ROOTS = {"method": "roots/list"}


def asked(requests, state=b'"st\\u0061te"'):
    """A result that asks."""
    body = {"resultType": "input_required", "inputRequests": requests}
    if requests is None:
        del body["inputRequests"]
    if state is not None:
        body["requestState"] = msgspec.Raw(state)
    return body


def say(channel, request, result):
    """Answer with bytes as they are."""
    channel.say(b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (request["id"], msgspec.json.encode(result)))


async def test_a_question_is_answered_by_its_handler_and_the_call_goes_on():
    seen = []

    async def elicit(question):
        seen.append(question)
        await asyncio.sleep(0)
        return {"seat": "1A"}

    async with connected(on_elicit=elicit) as (client, channel):
        calling = asyncio.ensure_future(
            client.call_tool("book", {"d": 1}, idempotency_key="k", correlation_id="c", meta={"x": 1})
        )
        first = await channel.expect("tools/call")
        say(channel, first, asked({"seat": ELICIT}))
        second = await channel.expect("tools/call")
        assert second["id"] != first["id"]
        assert second["params"]["arguments"] == first["params"]["arguments"] == {"d": 1}
        assert second["params"]["_meta"] == first["params"]["_meta"]
        content = {"seat": "1A", "meals": 1, "window": True}
        assert second["params"]["inputResponses"] == {"seat": {"action": "accept", "content": content}}
        assert b'"requestState":"st\\u0061te"' in channel.sent[-1]  # byte for byte
        say(channel, second, asked({"seat2": ELICIT}, state=None))
        third = await channel.expect("tools/call")
        assert "requestState" not in third["params"]
        assert set(third["params"]["inputResponses"]) == {"seat2"}
        channel.reply(third, tool_result("booked"))
        assert (await calling).value == "booked"
        assert [question.message for question in seen] == ["Which seat?"] * 2


async def test_all_kinds_of_questions_in_one_round_are_answered_at_once():
    started = []
    together = asyncio.Event()

    async def both(answer):
        started.append(answer)
        if len(started) == 2:
            together.set()
        await asyncio.wait_for(together.wait(), 5)
        return answer

    async with connected(
        on_elicit=lambda question: both({"seat": "2B"}),
        on_sample=lambda question: both("hello"),
        on_roots=["/srv/data", Root("file:///x", "X")],
    ) as (client, channel):
        calling = asyncio.ensure_future(client.get_prompt("p"))
        request = await channel.expect("prompts/get")
        declared = request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        assert declared == {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
        channel.reply(request, asked({"e": ELICIT, "s": SAMPLE, "r": ROOTS}, state=None))
        request = await channel.expect("prompts/get")
        responses = request["params"]["inputResponses"]
        assert responses["e"]["content"]["seat"] == "2B"
        assert responses["s"] == {
            "role": "assistant",
            "content": {"type": "text", "text": "hello"},
            "model": "unknown",
            "stopReason": "endTurn",
        }
        assert responses["r"] == {
            "roots": [{"uri": "file:///srv/data", "name": "data"}, {"uri": "file:///x", "name": "X"}]
        }
        channel.reply(request, {"resultType": "complete", "messages": []})
        assert (await calling).messages == ()


async def test_state_without_questions_is_sent_back_as_it_came():
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.read_resource("a://b"))
        channel.reply(await channel.expect("resources/read"), asked(None))
        request = await channel.expect("resources/read")
        assert request["params"]["requestState"] == "state"
        assert "inputResponses" not in request["params"]
        channel.reply(request, {"resultType": "complete", "contents": [], "ttlMs": 60_000, "cacheScope": "private"})
        assert (await calling).contents == ()
        again = asyncio.ensure_future(client.read_resource("a://b"))  # made of a state, so it was not kept
        channel.reply(await channel.expect("resources/read"), {"contents": []})
        await again


async def test_a_question_without_a_handler_is_an_exception_that_can_be_answered():
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book", {"d": 1}, output=str))
        channel.reply(await channel.expect("tools/call"), asked({"seat": ELICIT}))
        with pytest.raises(NeedsInput, match="Which seat") as caught:
            await calling
        answering = asyncio.ensure_future(caught.value.question.answer({"seat": {"seat": "1A"}}))
        request = await channel.expect("tools/call")
        assert request["params"]["arguments"] == {"d": 1}
        channel.reply(request, tool_result("ok"))
        match await answering:
            case Succeeded(value):
                assert value == "ok"
            case other:
                pytest.fail(f"{other!r}")


async def test_a_question_is_a_value_and_may_be_followed_by_another_and_by_a_refusal():
    async with connected() as (client, channel):
        trying = asyncio.ensure_future(client.try_call_tool("book", idempotency_key="k"))
        channel.reply(await channel.expect("tools/call"), asked({"seat": ELICIT, "login": URL}))
        question = await trying
        assert isinstance(question, InputRequired)
        assert question.message == "Which seat? / Log in"
        assert question.questions["login"].url == "https://login.example"
        answers = {"seat": ElicitResult(action="decline"), "login": True}
        answering = asyncio.ensure_future(question.answer(answers))
        request = await channel.expect("tools/call")
        assert request["params"]["inputResponses"] == {"seat": {"action": "decline"}, "login": {"action": "accept"}}
        channel.reply(request, asked({"login": URL}, state=b'"two"'))
        question = await answering
        answering = asyncio.ensure_future(question.answer({"login": {"action": "cancel"}}, timeout=5))
        request = await channel.expect("tools/call")
        assert request["params"]["requestState"] == "two"
        assert request["params"]["inputResponses"] == {"login": {"action": "cancel"}}
        assert request["params"]["_meta"]["mcprelay.dev/idempotencyKey"] == "k"
        channel.reply(request, {"content": [{"type": "text", "text": "no"}], "isError": True})
        assert isinstance(await answering, Refused)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({}, "no answer for"),
        ({"seat": {"seat": "1A"}, "more": 1}, "nobody asked"),
        ({"seat": {"seat": "9Z"}}, "does not fit"),
        ({"seat": {}}, "'seat' is required"),
        ({"seat": 7}, "does not fit"),
    ],
)
async def test_answers_are_exactly_what_was_asked_or_nothing_is_sent(answers, said):
    async with connected() as (client, channel):
        trying = asyncio.ensure_future(client.try_call_tool("book"))
        channel.reply(await channel.expect("tools/call"), asked({"seat": ELICIT}))
        question = await trying
        sent = len(channel.sent)
        with pytest.raises(ConfigurationError, match=said):
            await question.answer(answers)
        assert len(channel.sent) == sent


@pytest.mark.parametrize("request_", [SAMPLE, ROOTS, {"method": "files/delete"}])
async def test_a_question_of_a_kind_that_was_not_declared_is_an_invalid_answer(request_):
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.try_call_tool("book"))
        channel.reply(await channel.expect("tools/call"), asked({"k": request_}))
        with pytest.raises(ResponseInvalid, match="did not declare"):
            await calling


async def test_what_is_declared_can_be_said_outright():
    nothing = ClientCapabilities()
    async with connected(capabilities=nothing) as (client, channel):
        calling = asyncio.ensure_future(client.try_call_tool("book"))
        request = await channel.expect("tools/call")
        assert request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] == {}
        channel.reply(request, asked({"k": ELICIT}))
        with pytest.raises(ResponseInvalid, match="did not declare"):
            await calling


async def test_an_address_is_not_asked_of_a_client_that_declared_forms_only():
    forms = ClientCapabilities(elicitation={"form": {}})
    async with connected(capabilities=forms) as (client, channel):
        calling = asyncio.ensure_future(client.try_call_tool("book"))
        channel.reply(await channel.expect("tools/call"), asked({"k": URL}))
        with pytest.raises(ResponseInvalid, match="did not declare"):
            await calling


@pytest.mark.parametrize("result", [{"resultType": "input_required"}, asked({}, state=None) | {"inputRequests": 7}])
async def test_a_question_that_is_none_is_an_invalid_answer(result):
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        channel.reply(await channel.expect("tools/call"), result)
        with pytest.raises(ResponseInvalid):
            await calling


async def test_rounds_are_bounded_by_a_named_limit():
    async with connected(on_elicit=lambda question: {"seat": "1A"}, input_rounds=3) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        for _ in range(4):
            channel.reply(await channel.expect("tools/call"), asked({"seat": ELICIT}))
        with pytest.raises(CallLimitExceeded, match="input_rounds=3"):
            await calling


async def test_a_list_cannot_be_answered_with_a_question():
    async with connected() as (client, channel):
        listing = asyncio.ensure_future(client.list_tools())
        channel.reply(await channel.expect("tools/list"), asked({"seat": ELICIT}))
        with pytest.raises(ResponseInvalid):
            await listing


async def test_what_a_handler_raises_goes_through_and_the_others_are_ended():
    ended = asyncio.Event()

    async def sample(question):
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    def elicit(question):
        raise ZeroDivisionError("mine")

    async with connected(on_elicit=elicit, on_sample=sample) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        channel.reply(await channel.expect("tools/call"), asked({"s": SAMPLE, "e": ELICIT}))
        with pytest.raises(ZeroDivisionError, match="mine"):
            await calling
        assert ended.is_set()


async def test_a_handler_that_is_cancelled_is_no_cancelled_caller():
    async def elicit(question):
        raise asyncio.CancelledError

    async with connected(on_elicit=elicit) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        channel.reply(await channel.expect("tools/call"), asked({"e": ELICIT}))
        with pytest.raises(CallFailed, match="was cancelled"):
            await calling


async def test_a_default_deadline_begins_anew_with_each_round_and_one_that_was_given_does_not(clock):
    begun, gate = asyncio.Event(), asyncio.Event()

    async def elicit(question):
        begun.set()
        await gate.wait()
        return {"seat": "1A"}

    async with connected(on_elicit=elicit, request_timeout=30) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        channel.reply(await channel.expect("tools/call"), asked({"seat": ELICIT}))
        await begun.wait()
        await clock.advance(3600)  # a person takes longer than a request may
        begun.clear()
        gate.set()
        channel.reply(await channel.expect("tools/call"), tool_result())
        assert (await calling).value == "ok"
        gate.clear()
        calling = asyncio.ensure_future(client.call_tool("book", timeout=30))
        channel.reply(await channel.expect("tools/call"), asked({"seat": ELICIT}))
        await begun.wait()
        await clock.advance(29)
        assert not calling.done()
        await clock.advance(1)
        with pytest.raises(TimeoutError):
            await calling


# --- the handshake era: the server asks by requests of its own


async def test_the_same_handlers_answer_a_server_that_asks_on_the_open_stream():
    def elicit(question):
        return question.accept(seat="2B") if question.mode == "form" else question.decline()

    async def sample(question):
        assert question.messages[0].content == Text("hi")
        return SamplingResult(role="assistant", content=Text("hey"), model="m")

    async with in_session(on_elicit=elicit, on_sample=sample, on_roots=lambda: ["/a"]) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        request = await channel.expect("tools/call")
        for number, question in enumerate((ELICIT, URL, SAMPLE, ROOTS, {"method": "ping"})):
            channel.call(f"q{number}", question["method"], question.get("params"))
        answers = {}
        for _ in range(5):
            message = await channel.expect()
            answers[message["id"]] = message["result"]
        assert answers["q0"]["content"] == {"seat": "2B", "meals": 1, "window": True}
        assert answers["q1"] == {"action": "decline"}
        assert answers["q2"]["model"] == "m"
        assert answers["q3"] == {"roots": [{"uri": "file:///a", "name": "a"}]}
        assert answers["q4"] == {}
        channel.reply(request, {"content": []})
        await calling


async def test_a_question_that_cannot_be_answered_is_refused_and_the_call_goes_on(caplog):
    def elicit(question):
        raise ZeroDivisionError("secret")

    async with in_session(on_elicit=elicit) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        request = await channel.expect("tools/call")
        channel.call(1, "elicitation/create", ELICIT["params"])
        channel.call(2, "sampling/createMessage", SAMPLE["params"])
        channel.call(3, "elicitation/create", {"message": 7})
        channel.call(4, "what/ever")
        codes = {}
        for _ in range(4):
            message = await channel.expect()
            codes[message["id"]] = message["error"]["code"]
            assert "secret" not in message["error"]["message"]
        assert codes == {1: -32603, 2: -32601, 3: -32602, 4: -32601}
        channel.reply(request, {"content": [{"type": "text", "text": "no"}], "isError": True})
        with pytest.raises(ToolError):
            await calling
    assert "secret" in caplog.text


async def test_a_question_that_the_server_takes_back_is_not_answered():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def elicit(question):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with in_session(on_elicit=elicit) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        request = await channel.expect("tools/call")
        channel.call("q", "elicitation/create", ELICIT["params"])
        await asyncio.wait_for(begun.wait(), 5)
        channel.notify("notifications/cancelled", {"requestId": "q"})
        await asyncio.wait_for(ended.wait(), 5)
        channel.reply(request, {"content": []})
        await calling
        assert not any(b'"id":"q"' in data for data in channel.sent)


async def test_a_default_deadline_stands_still_while_the_server_waits_for_us(clock):
    begun, gate = asyncio.Event(), asyncio.Event()

    async def elicit(question):
        begun.set()
        await gate.wait()
        return {"seat": "1A"}

    async with in_session(on_elicit=elicit, request_timeout=30) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        request = await channel.expect("tools/call")
        channel.call("q", "elicitation/create", ELICIT["params"])
        await begun.wait()
        await clock.advance(3600)
        gate.set()
        await channel.expect()
        channel.reply(request, {"content": []})
        await calling
        calling = asyncio.ensure_future(client.call_tool("slow"))
        await channel.expect("tools/call")
        await clock.advance(29)
        assert not calling.done()
        await clock.advance(1)
        with pytest.raises(TimeoutError):
            await calling


async def test_in_the_newest_era_requests_of_a_server_are_not_answered():
    async with connected(on_elicit=lambda question: {"seat": "1A"}) as (client, channel):
        channel.call("q", "elicitation/create", ELICIT["params"])
        channel.call("p", "ping")
        calling = asyncio.ensure_future(client.call_tool("x"))
        channel.reply(await channel.expect("tools/call"), tool_result())
        await calling
        assert len(channel.sent) == 2
