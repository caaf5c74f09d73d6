"""Callbacks that hear of progress and log messages, when a call ends under them (client/progress)."""

import asyncio
import inspect

import msgspec
import pytest

from mcprelay import RemoteError
from mcprelay.client.progress import Hearing
from mcprelay.stdio.stderr import Stderr
from tests.client.peer import DISCOVERED, connected, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp


class Work:
    """A callback that keeps the coroutines it gives."""

    def __init__(self):
        self.made = []
        self.heard = []

    def __call__(self, item):
        self.made.append(self.work(item))
        return self.made[-1]

    async def work(self, item):
        self.heard.append(item)


@pytest.mark.parametrize("option", ["on_progress", "on_log"])
async def test_a_callback_that_a_failing_call_overtakes_leaves_no_coroutine_behind(option):
    async def respond(exchange):
        if exchange.asks == "server/discover":
            await exchange.result(DISCOVERED)
            return
        number = exchange.message["id"]
        messages = [
            {"method": "notifications/progress", "params": {"progressToken": number, "progress": 1}},
            {"method": "notifications/message", "params": {"level": "error", "data": "d"}},
            {"id": number, "error": {"code": -32603, "message": "no"}},
        ]
        await exchange.stream()
        events = (b"data: %b\n\n" % msgspec.json.encode({"jsonrpc": "2.0", **message}) for message in messages)
        await exchange.chunk(b"".join(events))  # in one piece, so that nothing else runs in between
        await exchange.end()

    work = Work()
    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        await client.discover()
        with pytest.raises(RemoteError):
            await client.call_tool("x", **{option: work})
    assert [inspect.getcoroutinestate(one) for one in work.made] == [inspect.CORO_CLOSED]


async def test_a_callback_that_was_ended_hears_of_what_comes_later():
    work = Work()
    hearing = Hearing(work, pending_messages=10)
    hearing.hear(1)
    hearing.drop()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    hearing.hear(2)
    await hearing.finish(deadline=None)
    assert work.heard == [2]
    assert {inspect.getcoroutinestate(one) for one in work.made} == {inspect.CORO_CLOSED}


async def test_of_what_waits_for_a_slow_callback_the_oldest_is_dropped_and_that_is_logged_once(caplog):
    work = Work()
    hearing = Hearing(work, pending_messages=3)
    for number in range(10):
        hearing.hear(number)
    await hearing.finish(deadline=None)
    assert work.heard == [0, 7, 8, 9]
    assert [record.message for record in caplog.records if "is slow" in record.message] == [
        f"the callback {work!r} is slow: pending_messages=3 wait for it, and older ones are dropped"
    ]


@pytest.mark.parametrize(("most", "heard"), [(0, [0]), (1, [0, 3]), (9, [0, 1, 2, 3])])
async def test_as_many_items_wait_for_a_slow_callback_as_may(most, heard):
    work = Work()
    hearing = Hearing(work, pending_messages=most)
    for number in range(4):
        hearing.hear(number)
    await hearing.finish(deadline=None)
    assert work.heard == heard


async def test_progress_that_came_before_the_answer_is_heard_before_the_call_returns():
    work = Work()
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x", on_progress=work))
        request = await channel.expect("tools/call")
        for number in range(3):
            channel.notify("notifications/progress", {"progressToken": request["id"], "progress": number})
        channel.reply(request, tool_result())
        await calling
    assert [item.progress for item in work.heard] == [0, 1, 2]


@pytest.mark.parametrize("option", ["on_progress", "on_log"])
@pytest.mark.parametrize("later", [False, True])
async def test_a_callback_that_raises_a_cancellation_disturbs_nothing_else(option, later, caplog):
    def raising(item):
        raise asyncio.CancelledError

    async def raising_later(item):
        raise asyncio.CancelledError

    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x", **{option: raising_later if later else raising}))
        other = asyncio.ensure_future(client.call_tool("y"))
        request, another = await channel.expect("tools/call"), await channel.expect("tools/call")
        for _ in range(2):
            channel.notify("notifications/progress", {"progressToken": request["id"], "progress": 1})
            channel.notify("notifications/message", {"level": "error", "data": "d"})
        channel.reply(request, tool_result("one"))
        channel.reply(another, tool_result("other"))
        assert (await calling).value == "one"
        assert (await other).value == "other"
    assert len([record for record in caplog.records if "failed" in record.message]) == 2


async def test_over_http_a_callback_that_raises_a_cancellation_is_not_the_end_of_its_call():
    async def respond(exchange):
        if exchange.asks == "server/discover":
            await exchange.result(DISCOVERED)
            return
        number = exchange.message["id"]
        await exchange.stream()
        params = {"progressToken": number, "progress": 1}
        await exchange.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        await exchange.event({"jsonrpc": "2.0", "id": number, "result": tool_result()})
        await exchange.end()

    def raising(item):
        raise asyncio.CancelledError

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        assert (await client.call_tool("x", on_progress=raising)).value == "ok"


async def test_a_function_for_standard_error_that_raises_a_cancellation_is_logged_and_not_called_again(caplog):
    def raising(line):
        raise asyncio.CancelledError

    errors = Stderr(on_line=raising)
    errors.feed(b"one\ntwo\n")
    assert errors.tail == "one\ntwo\n"
    assert len(caplog.records) == 1
