"""Deadlines that progress moves, and repetitions that a caller allows."""

import asyncio

import pytest

from mcprelay import (
    CallFailed,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    Evidence,
    HttpError,
    RemoteError,
    Retry,
)
from tests.client.peer import connected, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp

NOT_SENT = ConnectFailed("no", evidence=Evidence.NOT_SENT)
MAYBE = ConnectionLost("cut", evidence=Evidence.MAYBE_SENT)
LATE = DeadlineExceeded("late", evidence=Evidence.NOT_SENT)
REMOTE = RemoteError(-32603, "crash")


def status(code, **headers):
    return HttpError("no", status=code, headers=headers)


async def progressing(client, channel, clock, steps, every, **options):
    calling = asyncio.ensure_future(client.call_tool("x", **options))
    request = await channel.expect("tools/call")
    token = request["params"]["_meta"]["progressToken"]
    for step in range(steps):
        await clock.advance(every)
        channel.notify("notifications/progress", {"progressToken": token, "progress": step})
        await clock.advance(0)
    return calling, request


async def test_with_a_timeout_and_a_deadline_progress_restarts_the_one_up_to_the_other(clock):
    async with connected() as (client, channel):
        loop = asyncio.get_running_loop()
        deadline = loop.time() + 500
        calling, request = await progressing(client, channel, clock, 6, 9, timeout=10, deadline=deadline)
        channel.reply(request, tool_result())  # after 54 s, longer than the timeout
        assert (await calling).value == "ok"
        deadline = loop.time() + 30
        calling, _ = await progressing(client, channel, clock, 3, 9, timeout=10, deadline=deadline)
        assert not calling.done()
        await clock.advance(3)
        with pytest.raises(DeadlineExceeded):
            await calling


async def test_with_a_timeout_alone_progress_changes_nothing(clock):
    async with connected() as (client, channel):
        calling, _ = await progressing(client, channel, clock, 3, 3, timeout=10, on_progress=lambda _: None)
        assert not calling.done()
        await clock.advance(1)
        with pytest.raises(DeadlineExceeded):
            await calling


async def test_for_ever_is_a_time_too(clock):
    async with connected(request_timeout=30) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x", timeout=float("inf")))
        request = await channel.expect("tools/call")
        await clock.advance(3600)
        channel.reply(request, tool_result())
        assert (await calling).value == "ok"


async def test_a_thousand_deadlines_are_one_timer():
    async with connected() as (client, _):
        calls = [asyncio.ensure_future(client.call_tool("x", timeout=0.05 + n / 10_000)) for n in range(1000)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(outcome, DeadlineExceeded) for outcome in outcomes)
        assert client._connection.current.peer.pending == {}


# --- retry


@pytest.mark.parametrize(
    ("error", "plain", "keyed"),
    [
        (NOT_SENT, True, True),
        (ConnectionLost("closed", evidence=Evidence.NOT_SENT), True, True),
        (MAYBE, False, True),
        (LATE, False, False),
        (REMOTE, False, False),
        (status(429), True, True),
        (status(503), True, True),
        (status(502), False, True),
        (status(504), False, True),
        (status(500), False, False),
        (status(401), False, False),
        (CallFailed("too many", evidence=Evidence.NOT_SENT), False, False),
    ],
)
def test_what_may_be_sent_again(error, plain, keyed):
    retry = Retry()
    assert retry.allows(error, idempotent=False) is plain
    assert retry.allows(error, idempotent=True) is keyed
    assert Retry(idempotent=True).allows(error, idempotent=False) is keyed


def test_waits_double_up_to_a_maximum_and_a_part_of_them_is_chance():
    retry = Retry(backoff=1, most=5, jitter=0.5)
    assert [retry.wait(n, MAYBE, roll=lambda: 0.0) for n in (1, 2, 3, 4)] == [1, 2, 4, 5]
    assert [retry.wait(n, MAYBE, roll=lambda: 1.0) for n in (1, 2, 3, 4)] == [0.5, 1, 2, 2.5]


@pytest.mark.parametrize(
    ("said", "wait"), [("7", 7), ("0", 1), ("Wed, 21 Oct 2015 07:28:00 GMT", 1), ("soon", 1), ("-5", 1), ("", 1)]
)
def test_what_the_server_says_about_waiting_is_obeyed(said, wait):
    assert Retry(backoff=1, jitter=0).wait(1, status(503, **{"retry-after": said})) == wait


def test_a_date_to_come_is_waited_for():
    from datetime import UTC, datetime, timedelta
    from email.utils import format_datetime

    moment = datetime.now(UTC) + timedelta(seconds=90)
    wait = Retry(backoff=0).wait(1, status(429, **{"retry-after": format_datetime(moment, usegmt=True)}))
    assert 80 < wait <= 90


async def test_a_busy_server_is_asked_again_as_often_as_allowed():
    async def respond(exchange):
        if len(http.exchanges) < 3:
            await exchange.reply(503, headers={"retry-after": "0"})
        else:
            await exchange.result(tool_result())

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            with pytest.raises(HttpError):
                await client.call_tool("x")
            with pytest.raises(HttpError):
                await client.call_tool("x", retry=Retry(attempts=1))
            assert (await client.call_tool("x", retry=Retry(backoff=0))).value == "ok"


async def test_a_wait_that_is_longer_than_the_deadline_is_not_begun():
    async def respond(exchange):
        await exchange.reply(503, headers={"retry-after": "60"})

    async with ScriptedHttp(respond) as http, fresh(http.url, retry=Retry()) as client:
        begun = asyncio.get_running_loop().time()
        with pytest.raises(HttpError):
            await client.call_tool("x", timeout=5)
        assert asyncio.get_running_loop().time() - begun < 2
        assert len(http.exchanges) == 1


@pytest.mark.parametrize("given", ["timeout", "deadline"])
async def test_the_time_that_an_answer_is_given_is_not_cut_by_what_the_call_had_before(clock, given):
    question = {"method": "elicitation/create", "params": {"mode": "url", "message": "In", "url": "https://l.example"}}
    result = {"resultType": "input_required", "inputRequests": {"k": question}, "requestState": "s"}
    async with connected() as (client, channel):
        loop = asyncio.get_running_loop()
        times = {"timeout": 5, "deadline": loop.time() + 8}
        trying = asyncio.ensure_future(client.try_call_tool("x", on_progress=lambda _: None, **times))
        channel.reply(await channel.expect("tools/call"), result)
        asked = await trying
        await clock.advance(60)
        more = {given: 30 if given == "timeout" else loop.time() + 30}
        answering = asyncio.ensure_future(asked.answer({"k": True}, **more))
        request = await channel.expect("tools/call")
        token = request["params"]["_meta"]["progressToken"]
        channel.notify("notifications/progress", {"progressToken": token, "progress": 1})
        await clock.advance(20)
        channel.reply(request, tool_result())
        assert (await answering).value == "ok"
