"""A server that asks without end, or in ways that nobody can answer: calls end in time, and memory stays bounded."""

import asyncio

import msgspec
import pytest

from mcprelay import ConfigurationError, DeadlineExceeded, Evidence, LocalFault, ResponseInvalid
from mcprelay.testing import ScriptedChannel
from tests.client.peer import LEGACY, connected, fresh, in_session, tool_result
from tests.client.scripted_http import ScriptedHttp

FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {"x": {"type": "string"}}}}


async def late(clock, seconds):
    """Time passes in steps that a timer which is moved again and again survives."""
    for _ in range(seconds):
        await clock.advance(1.0)


@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list", "tools/call", "ping"])
async def test_questions_that_nobody_answers_do_not_put_a_deadline_off(clock, method):
    async with in_session(request_timeout=5) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        await channel.expect("tools/call")
        for number in range(8):
            channel.call(number, method, FORM)
            await clock.advance(1.0)
        with pytest.raises(DeadlineExceeded, match="request_timeout=5") as caught:
            await asyncio.wait_for(calling, None)
        assert caught.value.evidence is Evidence.MAYBE_SENT


async def test_a_deadline_is_put_off_as_often_as_a_call_may_be_answered_with_questions(clock):
    asked = []
    async with in_session(request_timeout=5, input_rounds=3, on_elicit=asked.append) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        await channel.expect("tools/call")
        for number in range(3):
            await clock.advance(4.0)
            assert not calling.done()  # each of three questions has begun the time again
            channel.call(number, "elicitation/create", FORM)
            await clock.advance(0.0)
        await clock.advance(4.0)
        channel.call(3, "elicitation/create", FORM)
        await clock.advance(0.5)
        assert not calling.done()
        await clock.advance(1.0)
        assert calling.done()  # and the fourth has not
        with pytest.raises(DeadlineExceeded):
            await calling
        assert len(asked) == 4


async def test_questions_that_overlap_without_end_do_not_put_a_deadline_off_for_ever(clock):
    gates = [asyncio.Event() for _ in range(40)]
    asked = []

    async def elicit(_):
        asked.append(gates[len(asked)])
        await asked[-1].wait()

    limits = {"input_rounds": 2, "input_requests": 3}
    async with in_session(request_timeout=5, **limits, on_elicit=elicit) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        await channel.expect("tools/call")
        for number in range(40):  # the next one always comes before the last one was answered
            channel.call(number, "elicitation/create", FORM)
            await clock.advance(1.0)
            if number:
                gates[number - 1].set()
            if calling.done():
                break
        with pytest.raises(DeadlineExceeded):
            await calling
        assert len(asked) < 25


async def test_a_person_who_thinks_costs_a_call_nothing_all_the_same(clock):
    gate = asyncio.Event()

    async def elicit(_):
        await gate.wait()

    async with in_session(request_timeout=5, on_elicit=elicit) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        request = await channel.expect("tools/call")
        channel.call(1, "elicitation/create", FORM)
        await late(clock, 60)
        gate.set()
        await clock.advance(1.0)
        channel.reply(request, {"content": []})
        assert (await calling).text == ""


async def test_a_server_that_only_wants_to_be_asked_again_gets_no_more_time_by_that(clock):
    async with connected(request_timeout=3) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        sent = 0
        for _ in range(40):
            await clock.advance(0.5)
            if calling.done():
                break
            while sent < len(channel.sent):
                message = msgspec.json.decode(channel.sent[sent])
                sent += 1
                if message.get("method") == "tools/call":
                    channel.reply(message, {"resultType": "input_required", "requestState": "later"})
        with pytest.raises(DeadlineExceeded, match="request_timeout=3"):
            await calling


@pytest.mark.parametrize(
    "params",
    [
        {"message": 5},
        {"mode": "carrier pigeon"},
        {"message": "?", "requestedSchema": []},
        {"mode": "url", "message": "?", "url": {}},
    ],
)
@pytest.mark.parametrize("handlers", [{}, {"on_elicit": lambda _: {}}])
async def test_a_question_that_is_malformed_is_an_invalid_answer(params, handlers):
    async with connected(**handlers) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        question = {"method": "elicitation/create", "params": params}
        request = await channel.expect("tools/call")
        channel.reply(request, {"resultType": "input_required", "inputRequests": {"q": question}})
        with pytest.raises(ResponseInvalid, match=r"asks 'elicitation/create' \('q'\) in a way that nobody") as caught:
            await calling
        assert caught.value.evidence is Evidence.ANSWERED


async def test_a_conversation_that_no_model_could_have_had_is_an_invalid_answer():
    result = {"role": "user", "content": {"type": "tool_result", "toolUseId": "7", "content": []}}
    question = {"method": "sampling/createMessage", "params": {"messages": [result], "maxTokens": 5}}
    async with connected(on_sample=lambda _: "never asked") as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        request = await channel.expect("tools/call")
        channel.reply(request, {"resultType": "input_required", "inputRequests": {"q": question}})
        with pytest.raises(ResponseInvalid, match="no message before it has the tool use '7'"):
            await calling


@pytest.mark.parametrize("method", ["ping", "elicitation/create", "x" * 1000])
async def test_a_server_that_asks_and_does_not_read_fills_no_memory(method):
    async with in_session() as (client, channel):
        channel.hold_sends()
        line = client._connection.ready()
        for number in range(40_000):
            channel.call(f"{number:0200}", method, {})
            if number % 100 == 99:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        held = sum(len(data) for _, data in line._outbox.waiting.values())
        assert held < 2 * 2**20
        assert line.alive


async def test_a_server_that_reads_again_is_answered_again():
    async with in_session() as (_, channel):
        channel.hold_sends()
        for number in range(20_000):
            channel.call(f"{number:0200}", "ping", {})
            if number % 100 == 99:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        channel.release_sends()
        assert (await channel.expect())["id"] == f"{0:0200}"
        channel.call("next", "ping", {})
        while (await channel.expect())["id"] != "next":
            pass
        assert len(channel.sent) < 10_000


async def test_what_waits_unsent_is_in_work_and_answers_are_kept_while_refusals_are_dropped():
    async with in_session(on_roots=["file:///a"], concurrent_requests=300) as (client, channel):
        channel.hold_sends()
        line = client._connection.ready()
        for number in range(20_000):
            channel.call(f"{number:0200}", "roots/list", {})
            if number % 100 == 99:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        held = [data for _, data in line._outbox.waiting.values()]
        assert sum(b'"result"' in data for data in held) in {299, 300}  # one is being sent, perhaps
        assert sum(map(len, held)) < 2 * 2**20
        assert b"concurrent_requests=300" in held[-1]
        channel.release_sends()
        answered = [await channel.expect() for _ in range(300)]
        assert {"result"} < set().union(*answered)
        channel.call("next", "roots/list", {})
        while (answer := await channel.expect())["id"] != "next":
            pass
        assert "result" in answer


def asking(method, number, *, enough, answered):
    """A server of the handshake era that asks many times inside of a call, and ends the call once there is `enough`."""

    async def respond(exchange):
        if exchange.asks == "initialize":
            capabilities = {"protocolVersion": LEGACY, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            await exchange.result(capabilities)
        elif exchange.asks == "tools/call":
            await exchange.stream()
            for at in range(number):
                await exchange.event({"jsonrpc": "2.0", "id": at, "method": method})
            await enough.wait()
            await exchange.event({"jsonrpc": "2.0", "id": exchange.message["id"], "result": tool_result("done")})
            await exchange.end()
        elif exchange.method == "POST" and "result" in exchange.message:
            await answered(exchange)
            await exchange.reply(202)
        else:
            await exchange.reply(202 if exchange.method == "POST" else 405)

    return respond


async def test_over_http_all_answers_leave_however_few_refusals_may():
    answers = []
    enough = asyncio.Event()

    async def answered(exchange):
        answers.append(exchange.message["id"])
        if len(answers) == 60:
            enough.set()
        await enough.wait()

    options = {"revision": LEGACY, "on_roots": ["file:///a"], "refusal_bytes": 0}
    async with (
        ScriptedHttp(asking("roots/list", 60, enough=enough, answered=answered)) as http,
        fresh(http.url, **options) as client,
    ):
        assert (await client.call_tool("x", timeout=5)).text == "done"
        assert sorted(answers) == list(range(60))


async def test_over_http_few_answers_are_on_their_way_at_once_however_much_is_asked(caplog):
    waiting = []
    release, enough = asyncio.Event(), asyncio.Event()

    async def answered(exchange):
        waiting.append(exchange)
        if len(waiting) == 16:
            enough.set()
        await release.wait()

    options = {"revision": LEGACY, "close_timeout": 0.1, "refusal_bytes": 65_000}  # 16 of about 37 + 4096
    async with (
        ScriptedHttp(asking("ping", 500, enough=enough, answered=answered)) as http,
        fresh(http.url, **options) as client,
    ):
        assert (await client.call_tool("x")).text == "done"
        assert len(waiting) == 16
        release.set()
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [text for text in told if "refusal_bytes=65000 wait for it" in text] == told
    assert len(told) == 1


@pytest.mark.parametrize("ttl", [b"1e999", b"9" * 5000, b"-1e999", b'"5"', b"[]"])
async def test_a_freshness_that_is_nonsense_spoils_no_list(ttl):
    async with connected() as (client, channel):
        listing = asyncio.ensure_future(client.list_tools())
        request = await channel.expect("tools/list")
        tool = b'{"name":"a","inputSchema":{"type":"object"}}'
        channel.say(
            b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","tools":[%b],"ttlMs":%b}}'
            % (request["id"], tool, ttl)
        )
        assert [tool.name for tool in await listing] == ["a"]


async def test_whatever_ends_listening_is_told_to_whoever_listens():
    client = fresh(ScriptedChannel())

    def begun(listening):
        raise LocalFault("not in this loop")

    events = client.listen(tools=True)
    events._begin = begun
    with pytest.raises(LocalFault, match="not in this loop"):
        async with events:
            raise AssertionError("nothing is listened to")


def test_listening_in_another_loop_is_refused_as_calling_is():
    async def elsewhere(client):
        async with client.listen(tools=True):
            raise AssertionError("nothing is listened to")

    def run(client):
        with pytest.raises(LocalFault, match="another event loop"):
            asyncio.run(elsewhere(client))

    async def main():
        async with connected() as (client, _):
            await asyncio.to_thread(run, client)

    asyncio.run(main())


async def test_a_deadline_of_another_clock_is_refused():
    import time

    async with connected() as (client, _):
        with pytest.raises(ConfigurationError, match=r"years from now: time\.time\(\) is another clock"):
            await client.call_tool("x", deadline=time.time() + 5)


@pytest.mark.parametrize(
    ("reference", "argument", "words"),
    [
        ({"type": "ref/prompt", "name": "x"}, "a", "the reference is the name of a prompt"),
        (None, "a", "the reference is the name of a prompt"),
        ("x", {"name": "a", "value": "b"}, "the argument is a string"),
    ],
)
async def test_a_completion_that_is_asked_for_in_the_words_of_the_wire_is_refused_before_it_is_sent(
    reference, argument, words
):
    async with connected() as (client, channel):
        with pytest.raises(ConfigurationError, match=words):
            await client.complete(reference, argument)
        assert len(channel.sent) == 1


@pytest.mark.parametrize("honored", [None, 5, [], "x", {"toolsListChanged": "yes"}, {"resourceSubscriptions": 5}])
async def test_an_acknowledgement_that_nobody_can_read_ends_listening_at_once(honored):
    async with connected() as (client, channel):
        events = client.listen(tools=True)
        listening = asyncio.ensure_future(events.__aenter__())
        request = await channel.expect("subscriptions/listen")
        about = {"_meta": {"io.modelcontextprotocol/subscriptionId": request["id"]}, "notifications": honored}
        channel.notify("notifications/subscriptions/acknowledged", about)
        with pytest.raises(ResponseInvalid, match="the acknowledgement of the subscription cannot be read"):
            await listening
        cancelled = await channel.expect("notifications/cancelled")  # the server is told, and tells nothing in vain
        assert cancelled["params"]["requestId"] == request["id"]


async def test_a_server_that_ends_its_stream_again_and_again_is_not_asked_in_a_frenzy(clock):
    asked = []

    async def respond(exchange):
        if exchange.asks == "initialize":
            about = {"protocolVersion": LEGACY, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            await exchange.result(about)
        elif exchange.asks == "tools/call" or (exchange.method == "GET" and "last-event-id" in exchange.headers):
            asked.append(exchange)
            await exchange.stream()
            await exchange.event(id=str(len(asked)), retry=0)
            await exchange.end()
        else:
            await exchange.reply(202 if exchange.method == "POST" else 405)

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=LEGACY, request_timeout=20) as client:
        calling = asyncio.ensure_future(client.call_tool("x"))
        while not calling.done():
            await clock.advance(0.01)
        with pytest.raises(DeadlineExceeded):
            await calling
        assert 3 < len(asked) < 40


async def test_a_question_is_answered_once_and_again_only_after_a_failure():
    question = {"method": "elicitation/create", "params": FORM}
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.try_call_tool("pay"))
        asked = {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "s"}
        channel.reply(await channel.expect("tools/call"), asked)
        open_question = await calling

        failing = asyncio.ensure_future(open_question.answer({"q": {"x": "y"}}, deadline=1.0))
        with pytest.raises(DeadlineExceeded):
            await failing
        first = asyncio.ensure_future(open_question.answer({"q": {"x": "y"}}))
        request = await channel.expect("tools/call")
        with pytest.raises(ConfigurationError, match="answered already"):
            await open_question.answer({"q": {"x": "z"}})
        channel.reply(request, tool_result("paid"))
        assert (await first).value == "paid"
        with pytest.raises(ConfigurationError, match="answered already"):
            await open_question.answer({"q": {"x": "z"}})
        assert sum(b"tools/call" in sent for sent in channel.sent) == 2
