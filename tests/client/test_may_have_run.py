"""What the text of a failure says of repeating, a program reads from `may_have_run`; and what a key repeats."""

import asyncio
import pickle

import pytest

from mcprelay import (
    CallFailed,
    ConnectFailed,
    ConnectionLost,
    Context,
    Evidence,
    HttpError,
    RemoteError,
    ResponseInvalid,
    Retry,
    Server,
)
from tests.client.peer import MODERN, connected, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp

RAN = ("may have been carried out", "most likely carried out", "the server has begun with the call")


def says(error):
    """Whether the text says that the call may have run."""
    return any(words in str(error) for words in RAN)


async def failure_of(calling):
    with pytest.raises(CallFailed) as caught:
        await calling
    return caught.value


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 413, 422, 425, 429, 500, 501, 502, 503, 504, 520])
async def test_of_a_status_it_is_what_the_text_says(status, own):
    async def plain(exchange):
        await exchange.reply(status, b"oops")

    async def refusal(exchange):
        await exchange.error(-32603, "oops", status=status)

    async with ScriptedHttp(refusal if own else plain) as http, fresh(http.url, revision=MODERN) as client:
        error = await failure_of(client.call_tool("x"))
    assert error.may_have_run is says(error)
    if not own:
        assert error.may_have_run is (status >= 500 and status != 503)


@pytest.mark.parametrize("code", [-32700, -32600, -32601, -32602, -32603, -32000, -32002, -32042, 42])
async def test_of_an_error_it_is_what_the_text_says(code):
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        channel.refuse(await channel.expect("tools/call"), code, "no")
        error = await failure_of(calling)
    assert isinstance(error, RemoteError)
    assert error.evidence is Evidence.ANSWERED
    assert error.may_have_run is says(error) is (code == -32603)


@pytest.mark.parametrize(
    "answer",
    [
        lambda exchange: exchange.reply(200, b"<html>", headers={"content-type": "text/html"}),
        lambda exchange: exchange.result({"resultType": "complete", "content": "no list"}),
        lambda exchange: exchange.result(tool_result("x" * 5000)),
    ],
    ids=["no message", "no result", "too long"],
)
async def test_an_answer_that_cannot_be_used_may_have_run(answer):
    async with ScriptedHttp(answer) as http, fresh(http.url, response_bytes=2000) as client:
        error = await failure_of(client.call_tool("x"))
    assert error.evidence in (Evidence.ANSWERED, Evidence.MAYBE_SENT)
    assert error.may_have_run is says(error) is True


async def test_what_left_may_have_run_and_what_did_not_has_not():
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        await channel.expect("tools/call")
        channel.end()
        lost = await failure_of(calling)
        again = await failure_of(client.call_tool("x"))
    assert (lost.evidence, lost.may_have_run) == (Evidence.MAYBE_SENT, True)
    assert (again.evidence, again.may_have_run) == (Evidence.NOT_SENT, False)


@pytest.mark.parametrize("wrong", [{"value": []}, 5, RuntimeError])
async def test_a_call_whose_question_gets_no_answer_may_have_run(wrong):
    def ask(_):
        if wrong is RuntimeError:
            raise ConnectFailed("elsewhere", evidence=Evidence.NOT_SENT)
        return wrong

    server = Server("s")

    @server.tool
    async def book(ctx: Context) -> str:
        return (await ctx.elicit("name?", str, key="name")).value

    async with fresh(server, on_elicit=ask) as client:
        error = await failure_of(client.call_tool("book"))
    assert (error.evidence, error.may_have_run, says(error)) == (Evidence.ANSWERED, True, True)


async def test_more_rounds_than_are_allowed_may_have_run():
    server = Server("s")

    @server.tool
    async def book(ctx: Context) -> str:
        for key in "abc":
            await ctx.elicit("name?", str, key=key)
        return ""

    async with fresh(server, on_elicit=lambda _: {"value": "x"}, input_rounds=1) as client:
        error = await failure_of(client.call_tool("book"))
    assert "input_rounds=1" in str(error)
    assert (error.evidence, error.may_have_run, says(error)) == (Evidence.ANSWERED, True, True)


def test_it_travels_to_another_process():
    for error in (HttpError("x", status=502, may_have_run=True), HttpError("x", status=409), ResponseInvalid("x")):
        assert pickle.loads(pickle.dumps(error)).may_have_run is error.may_have_run  # noqa: S301 - our own


# --- what is repeated


def answering(*answers):
    """A server that gives these answers in turn, and then a result."""
    left = list(answers)

    async def respond(exchange):
        if left:
            await left.pop(0)(exchange)
        else:
            await exchange.result(tool_result("ok"))

    return respond


def status(code):
    async def respond(exchange):
        await exchange.reply(code, b"oops")

    return respond


async def cut(exchange):
    exchange.cut()


@pytest.mark.parametrize("answer", [cut, *map(status, (429, 502, 503, 504))], ids=["cut", "429", "502", "503", "504"])
@pytest.mark.parametrize("by", ["key", "permission"])
async def test_what_may_pass_is_repeated_where_that_does_no_harm(answer, by):
    async with ScriptedHttp(answering(answer, answer)) as http, fresh(http.url, revision=MODERN) as client:
        retry = Retry(attempts=3, backoff=0, idempotent=by == "permission")
        key = {"idempotency_key": "k"} if by == "key" else {}
        assert (await client.call_tool("x", retry=retry, **key)).value == "ok"
        assert http.methods.count("tools/call") == 3


@pytest.mark.parametrize("answer", [cut, *map(status, (502, 504))], ids=["cut", "502", "504"])
async def test_what_may_have_run_is_not_repeated_without_a_key(answer):
    async with ScriptedHttp(answering(answer)) as http, fresh(http.url, revision=MODERN) as client:
        error = await failure_of(client.call_tool("x", retry=Retry(backoff=0)))
        assert error.may_have_run
        assert http.methods.count("tools/call") == 1


@pytest.mark.parametrize("code", [400, 401, 403, 409, 500, 501])
async def test_what_will_not_pass_is_not_repeated_with_a_key(code):
    async with ScriptedHttp(answering(status(code))) as http, fresh(http.url, revision=MODERN) as client:
        await failure_of(client.call_tool("x", retry=Retry(backoff=0), idempotency_key="k"))
        assert http.methods.count("tools/call") == 1


async def test_a_status_that_the_caller_lists_is_repeated_without_a_key():
    async with ScriptedHttp(answering(status(502))) as http, fresh(http.url, revision=MODERN) as client:
        assert (await client.call_tool("x", retry=Retry(backoff=0, statuses=(502,)))).value == "ok"
        assert http.methods.count("tools/call") == 2


async def test_an_attempt_that_a_gateway_gave_up_is_not_told_as_one_that_was_refused():
    async def gone(exchange):
        http._server.close()
        await exchange.reply(502, b"", headers={"connection": "close"})

    async with ScriptedHttp(gone) as http, fresh(http.url, revision=MODERN) as client:
        retry = Retry(attempts=2, backoff=0, idempotent=True)
        error = await failure_of(client.call_tool("charge", retry=retry))
    assert isinstance(error, ConnectFailed)
    assert (error.evidence, error.may_have_run, says(error)) == (Evidence.MAYBE_SENT, True, True)
    assert "carried nothing of it out" not in str(error)


@pytest.mark.parametrize("last", [429, 503, 409])
async def test_a_refusal_after_an_attempt_that_was_lost_says_that_that_one_may_have_run(last):
    answers = answering(cut, status(last))
    async with ScriptedHttp(answers) as http, fresh(http.url, revision=MODERN) as client:
        error = await failure_of(client.call_tool("x", retry=Retry(attempts=2, backoff=0), idempotency_key="k"))
        assert http.methods.count("tools/call") == 2
    assert isinstance(error, HttpError)
    assert (error.evidence, error.may_have_run) == (Evidence.ANSWERED, True)
    assert "it had been sent before, and the request may have been carried out" in str(error)


async def test_a_refusal_after_a_refusal_has_not_run():
    answers = answering(status(429), status(503))
    async with ScriptedHttp(answers) as http, fresh(http.url, revision=MODERN) as client:
        error = await failure_of(client.call_tool("x", retry=Retry(attempts=2, backoff=0), idempotency_key="k"))
    assert (error.evidence, error.may_have_run, says(error)) == (Evidence.ANSWERED, False, False)


@pytest.mark.parametrize("evidence", Evidence)
def test_one_that_is_made_by_hand_goes_by_its_evidence(evidence):
    assert ConnectionLost("x", evidence=evidence).may_have_run is (evidence is Evidence.MAYBE_SENT)
    told = CallFailed("x", evidence=evidence, may_have_run=True)
    assert told.may_have_run is (evidence is not Evidence.NOT_SENT)
