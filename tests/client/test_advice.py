"""Every failure of a call says what to do next, and one that a busy server gave says when."""

import asyncio

import pytest

from mcprelay import CallFailed, DeadlineExceeded, Evidence, HttpError, RemoteError, ResponseInvalid, Retry
from tests.client.peer import DISCOVERED, MODERN, connected, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp


def busy(status, *, times, own=True, wait="0"):
    """A server that answers so many calls with a JSON-RPC error and this status."""
    left = times

    async def respond(exchange):
        nonlocal left
        left -= 1
        if left < 0:
            await exchange.result(tool_result("ok"))
            return
        error = {"code": -32000, "message": "the queue is full", "data": {"ahead": 7}}
        body = {"jsonrpc": "2.0", "error": error} | ({"id": exchange.message["id"]} if own else {})
        await exchange.reply(status, body, headers={"retry-after": wait})

    return respond


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_servers_error_under_the_calls_own_id_keeps_its_words_and_its_status(status):
    async with ScriptedHttp(busy(status, times=1, wait="7")) as http, fresh(http.url) as client:
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("x")
        error = caught.value
        assert (error.code, error.message, error.data) == (-32000, "the queue is full", {"ahead": 7})
        assert (error.status, error.headers["retry-after"]) == (status, "7")
        assert error.evidence is Evidence.ANSWERED
        assert f"(code -32000, HTTP {status}); it says Retry-After: 7, so try again then" in str(error)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_servers_error_is_repeated_where_that_is_allowed(status, own):
    async with ScriptedHttp(busy(status, times=2, own=own)) as http, fresh(http.url) as client:
        retry = Retry(attempts=3, backoff=0)
        assert (await client.call_tool("x", retry=retry)).value == "ok"
        assert len(http.exchanges) == 3
    async with ScriptedHttp(busy(status, times=2, own=own)) as http, fresh(http.url) as client:
        with pytest.raises((RemoteError, HttpError)):
            await client.call_tool("x", retry=Retry(attempts=3, backoff=0, statuses=()))
        assert len(http.exchanges) == 1


@pytest.mark.parametrize("error", [RemoteError, HttpError])
def test_the_time_that_a_busy_server_names_is_waited_for(error):
    facts = {"status": 503, "headers": {"retry-after": "5"}}
    failed = RemoteError(-32000, "no", **facts) if error is RemoteError else HttpError("no", **facts)
    assert Retry(jitter=0).wait(1, failed) == 5


async def test_an_error_that_came_with_success_has_no_status_and_is_not_repeated():
    async def respond(exchange):
        if exchange.asks == "server/discover":
            await exchange.result(DISCOVERED)
        else:
            await exchange.error(-32000, "the account is empty")

    async with ScriptedHttp(respond) as http, fresh(http.url, retry=Retry(backoff=0)) as client:
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("x", idempotency_key="k")
        assert (caught.value.status, caught.value.headers) == (None, {})
        assert http.methods == ["tools/call", "server/discover"]


UNREAD = "the server has answered, so it was most likely carried out: repeat it only if that does no harm"
PERHAPS = "if there is, it may have been carried out: repeat it only if that does no harm"
MAYBE = "the request may have been carried out, so repeat it only if that does no harm"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "repeat the call only if what it says allows that"),
        (403, "does not allow this to this client: give it other credentials (auth=..., headers=...)"),
        (409, "repeat the call only if what it says allows that"),
        (500, f"the server's log may say why; {MAYBE}"),
        (501, f"the server's log may say why; {MAYBE}"),
        (502, f"what is in front of the server got no answer from it; {MAYBE}"),
        (504, f"what is in front of the server gave up waiting for it; {MAYBE}"),
    ],
)
async def test_each_status_says_what_to_do(status, said):
    async with ScriptedHttp(lambda exchange: exchange.reply(status, b"oops")) as http:
        async with fresh(http.url, revision=MODERN) as client:
            with pytest.raises(HttpError) as caught:
                await client.call_tool("x")
    assert str(caught.value).endswith(said)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (-32700, "repeating it as it is changes nothing"),
        (-32600, "repeating it as it is changes nothing"),
        (-32601, "the server does not offer this; client.server says what it offers"),
        (-32602, "compare the name and the arguments with what the server lists"),
        (-32603, f"the server's log may say why; {MAYBE}"),
        (-32000, "this is the server's answer, so repeat the call only if what it says allows that"),
    ],
)
async def test_each_error_of_a_server_says_what_to_do(code, said):
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        channel.refuse(await channel.expect("tools/call"), code, "no")
        with pytest.raises(RemoteError) as caught:
            await calling
    assert str(caught.value).startswith(f"tools/call 'x': no (code {code}); ")
    assert str(caught.value).endswith(said)


@pytest.mark.parametrize("code", [-32021, -32602])
@pytest.mark.parametrize(
    ("required", "said"),
    [
        ({"elicitation": {"form": {}}}, "give the client on_elicit={then}"),
        ({"sampling": {}, "roots": {}}, "give the client on_sample= and on_roots={then}"),
        ({"tasks": {}}, "declare that this client can do it: capabilities="),
        ({}, None),
        (["elicitation"], None),
    ],
)
async def test_a_server_that_may_not_ask_says_what_would_answer_it(code, required, said):
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        channel.refuse(await channel.expect("tools/call"), code, "no", {"requiredCapabilities": required})
        with pytest.raises(RemoteError) as caught:
            await calling
    told = str(caught.value)
    then = (
        ", or be asked yourself by declaring capabilities="
        if code == -32021
        else " (where it has that, the protocol revision that is spoken has no such question)"
    )
    assert told.endswith(said.format(then=then)) if said else "this client" not in told


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda exchange: exchange.reply(200, b"<html>", headers={"content-type": "text/html"}), PERHAPS),
        (lambda exchange: exchange.reply(200), UNREAD),
        (lambda exchange: exchange.reply(200, {"jsonrpc": "2.0", "id": "other", "result": {}}), UNREAD),
        (lambda exchange: exchange.result({"resultType": "complete", "content": "no list"}), UNREAD),
        (lambda exchange: exchange.result(tool_result("x" * 5000)), MAYBE),
    ],
    ids=["no message", "nothing", "another answer", "no result", "too long"],
)
async def test_an_answer_that_cannot_be_used_says_that_the_work_may_be_done(answer, said):
    async with ScriptedHttp(answer) as http, fresh(http.url, response_bytes=2000) as client:
        with pytest.raises(CallFailed) as caught:
            await client.call_tool("x")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([{"type": "text", "text": "about seven"}], "it came as a text that is no JSON, 'about seven'"),
        ([{"type": "text", "text": "1"}, {"type": "text", "text": "2"}], "it came as a text that is no JSON, '1\\n2'"),
        ([{"type": "text", "text": '"seven"'}], "Expected `int`, got `str`"),
        ([], "neither JSON nor a text came"),
    ],
)
async def test_a_text_that_is_no_value_of_the_declared_type_is_told_as_a_text(content, said):
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x", output=int))
        channel.reply(await channel.expect("tools/call"), {"resultType": "complete", "content": content})
        with pytest.raises(ResponseInvalid) as caught:
            await calling
    assert str(caught.value) == f"tools/call 'x': the value is not of the declared type int: {said}; {UNREAD}"
    assert caught.value.evidence is Evidence.ANSWERED


async def test_of_a_timeout_and_a_deadline_the_one_that_passed_is_named(clock):
    async with connected() as (client, channel):
        now = asyncio.get_running_loop().time()
        calling = asyncio.ensure_future(client.call_tool("x", timeout=3, deadline=now + 5))
        token = (await channel.expect("tools/call"))["params"]["_meta"]["progressToken"]
        await clock.advance(2.5)
        channel.notify("notifications/progress", {"progressToken": token, "progress": 1})
        await clock.advance(0)
        await clock.advance(2.6)
        with pytest.raises(DeadlineExceeded, match="no answer came before its deadline"):
            await calling
        await channel.expect("notifications/cancelled")
        calling = asyncio.ensure_future(client.call_tool("x", timeout=3, deadline=now + 500))
        await channel.expect("tools/call")
        await clock.advance(3.1)
        with pytest.raises(DeadlineExceeded, match="no answer came within timeout=3 seconds"):
            await calling


async def test_an_answer_that_a_server_no_longer_knows_the_question_of_names_that_cause_too():
    form = {"type": "object", "properties": {"x": {"type": "string"}}}
    question = {"method": "elicitation/create", "params": {"message": "x?", "requestedSchema": form}}
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.try_call_tool("x"))
        asked = {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "s"}
        channel.reply(await channel.expect("tools/call"), asked)
        answering = asyncio.ensure_future((await calling).answer({"q": {"x": "y"}}))
        channel.refuse(await channel.expect("tools/call"), -32602, "Invalid requestState")
        with pytest.raises(RemoteError) as caught:
            await answering
    assert "compare the name and the arguments" in str(caught.value)
    assert "as after a restart (a Server of this package does with state_keys=)" in str(caught.value)
