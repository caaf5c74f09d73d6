"""How the end of a channel is told to whoever waits: why, and by which exception; also one that is not the client's."""

import asyncio
import contextlib
import json
import logging

import pytest

from mcprelay import CallFailed, Client, ConnectFailed, ConnectionLost, DeadlineExceeded, Evidence, Server
from mcprelay.testing import ScriptedChannel, memory_channels
from tests.client.peer import DISCOVERED, INITIALIZED, connected, fresh, in_session, tool_result


class Broken(ScriptedChannel):
    """A channel that raises what it is told to, as one may whose own inner task ended."""

    def __init__(self):
        super().__init__()
        self.sending = None
        self.closing = None
        self.receiving = asyncio.get_running_loop().create_future()

    async def send(self, data):
        if self.sending is not None:
            raise self.sending
        await super().send(data)

    async def receive(self):
        following = asyncio.ensure_future(super().receive())
        try:
            await asyncio.wait([following, self.receiving], return_when=asyncio.FIRST_COMPLETED)
            if self.receiving.done():
                raise self.receiving.result()
            return await following
        finally:
            following.cancel()

    async def aclose(self):
        await super().aclose()
        if self.closing is not None:
            raise self.closing


class Foreign(BaseException):
    """What another framework ends its own tasks with."""


WHAT = [asyncio.CancelledError("an inner task"), Foreign("an inner task"), OSError("kaput")]


async def failure_of(awaitable):
    with pytest.raises(CallFailed) as caught:
        await awaitable
    return caught.value


@pytest.mark.parametrize("error", WHAT, ids=repr)
async def test_what_sending_raises_breaks_the_channel_and_is_told_at_once(error):
    async with connected(Broken()) as (client, channel):
        waiting = asyncio.ensure_future(client.call_tool("waits"))
        await channel.expect("tools/call")
        channel.sending = error
        for failed in (await failure_of(client.call_tool("charge")), await failure_of(waiting)):
            assert type(failed) is ConnectionLost
            assert failed.evidence is Evidence.MAYBE_SENT
            assert "broke while sending" in str(failed)
            assert failed.__cause__ is error
        assert (await failure_of(client.call_tool("next"))).evidence is Evidence.NOT_SENT


@pytest.mark.parametrize("error", WHAT, ids=repr)
async def test_what_receiving_raises_breaks_the_channel_and_is_told_at_once(error):
    async with connected(Broken()) as (client, channel):
        waiting = asyncio.ensure_future(client.call_tool("waits"))
        await channel.expect("tools/call")
        channel.receiving.set_result(error)
        failed = await failure_of(waiting)
        assert type(failed) is ConnectionLost
        assert failed.evidence is Evidence.MAYBE_SENT
        assert "broke while receiving" in str(failed)
        assert failed.__cause__ is error


@pytest.mark.parametrize("way", ["sending", "receiving"])
async def test_a_channel_that_is_cancelled_while_it_connects_is_no_connection(way):
    channel = Broken()
    if way == "sending":
        channel.sending = asyncio.CancelledError("inner")
    else:
        channel.receiving.set_result(asyncio.CancelledError("inner"))
    error = await failure_of(Client(channel).connect())
    assert type(error) is ConnectFailed
    assert way in str(error)
    assert type(error.__cause__) is asyncio.CancelledError


async def test_a_channel_whose_making_is_cancelled_from_inside_is_no_connection():
    class Source:
        name = "source"

        async def connect(self):
            raise asyncio.CancelledError("inner")

    error = await failure_of(fresh(Source()).connect())
    assert type(error) is ConnectFailed
    assert "cancelled from inside" in str(error)


async def test_a_channel_that_is_cancelled_while_it_closes_is_closed():
    async with connected(Broken()) as (client, channel):
        channel.closing = asyncio.CancelledError("inner")
        await client.aclose()
    assert channel.closed


async def test_the_callers_own_cancellation_is_still_a_cancellation():
    async with connected(Broken()) as (client, channel):
        channel.hold_sends()
        calling = asyncio.ensure_future(client.call_tool("waits"))
        for _ in range(10):
            await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        channel.release_sends()
        following = asyncio.ensure_future(client.call_tool("next"))
        while (request := await channel.expect()).get("params", {}).get("name") != "next":
            pass
        channel.reply(request, tool_result())
        assert (await following).value == "ok"


# --- a server in this process


def server_with(lifespan):
    server = Server("orders", lifespan=lifespan)

    @server.tool
    def charge() -> str:
        return "done"

    return server


async def test_a_server_in_this_process_that_cannot_start_says_why(caplog):
    broken = RuntimeError("no database")

    @contextlib.asynccontextmanager
    async def lifespan(server):
        raise broken
        yield

    error = await failure_of(Client(server_with(lifespan)).connect())
    assert type(error) is ConnectFailed
    assert "the server in this process failed (RuntimeError('no database'))" in str(error)
    assert error.__cause__ is broken
    assert not caplog.records  # whoever connects is told, once


async def test_a_server_in_this_process_that_cannot_end_says_why_in_the_log(caplog):
    @contextlib.asynccontextmanager
    async def lifespan(server):
        yield
        raise RuntimeError("no goodbye")

    async with Client(server_with(lifespan)) as client:
        assert (await client.call_tool("charge")).value == "done"
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "no goodbye" in caplog.text


async def test_a_call_to_a_server_in_this_process_that_is_gone_may_have_been_carried_out():
    started, never = asyncio.Event(), asyncio.Event()
    server = Server("orders")

    @server.tool
    async def charge() -> str:
        started.set()
        await never.wait()
        return "done"

    async with Client(server) as client:
        waiting = asyncio.ensure_future(client.call_tool("charge"))
        await started.wait()
        await client._connection.current.channel.aclose()
        error = await failure_of(waiting)
        assert type(error) is ConnectionLost
        assert error.evidence is Evidence.MAYBE_SENT
        never.set()
        assert (await client.call_tool("charge")).value == "done"


async def test_calls_that_wait_for_room_when_the_other_end_in_this_process_goes_have_sent_nothing():
    near, far = memory_channels(buffered_bytes=1000)
    connecting = asyncio.ensure_future(Client(near).connect())
    greeting = json.loads(await far.receive())
    await far.send(json.dumps({"jsonrpc": "2.0", "id": greeting["id"], "result": DISCOVERED}).encode())
    client = await connecting
    calls = [asyncio.ensure_future(client.call_tool("charge", {"blob": "x" * 2000})) for _ in range(3)]
    for _ in range(5):
        await asyncio.sleep(0)
    await far.aclose()
    evidence = [(await failure_of(call)).evidence for call in calls]
    # The second waits inside of the channel, of which nothing more is known; the third waits for the second.
    assert evidence == [Evidence.MAYBE_SENT, Evidence.MAYBE_SENT, Evidence.NOT_SENT]
    assert b"tools/call" in await far.receive()
    assert await far.receive() == b""
    await client.aclose()


# --- answers under wrong ids


@pytest.mark.parametrize(
    ("count", "says"),
    [(0, None), (1, "(1 answer came under an id not asked for: "), (3, "(3 answers came under ids not asked for: ")],
)
async def test_a_deadline_says_that_answers_came_under_ids_that_were_not_asked_for(clock, count, says):
    async with in_session() as (client, channel):
        channel.say(b'{"jsonrpc":"2.0","id":"long ago","result":{}}')
        await clock.advance(0)
        calling = asyncio.ensure_future(client.call_tool("charge", timeout=3))
        request = await channel.expect("tools/call")
        for _ in range(count):
            channel.reply({"id": str(request["id"])}, tool_result())
        await clock.advance(3)
        error = await failure_of(calling)
        assert type(error) is DeadlineExceeded
        assert ("not asked for" not in str(error)) if says is None else (says in str(error))


@pytest.mark.parametrize("garbage", [b"Traceback: oops", b"[1]", b"7", b'{"id":1'])
async def test_a_deadline_says_what_came_that_is_not_the_protocol(clock, garbage):
    async with in_session() as (client, channel):
        channel.say(b"a banner")
        await clock.advance(0)
        calling = asyncio.ensure_future(client.call_tool("charge", timeout=3))
        await channel.expect("tools/call")
        channel.say(garbage)
        await clock.advance(3)
        error = await failure_of(calling)
        assert type(error) is DeadlineExceeded
        assert f"(what came meanwhile is not the protocol: {garbage.decode()!r}. Does the server print to" in str(error)
        assert "a banner" not in str(error)
        assert "not the protocol" not in str(await failure_of_expired(client, clock))


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"no"}}',
    ],
)
async def test_an_answer_that_comes_as_its_caller_is_cancelled_is_taken_and_costs_the_others_nothing(answer):
    async with in_session() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("charge"))
        request = await channel.expect("tools/call")
        calling.cancel()  # what it waits for is cancelled by that, and it has had no turn to see it
        client._connection.current._receive(answer % request["id"])
        with pytest.raises(asyncio.CancelledError) as caught:
            await calling
        assert caught.value.evidence is Evidence.ANSWERED
        following = asyncio.ensure_future(client.call_tool("charge"))
        channel.reply(await channel.expect("tools/call"), tool_result())
        assert (await following).value == "ok"


async def test_a_late_answer_is_no_hint(clock):
    async with in_session() as (client, channel):
        await failure_of_expired(client, clock)
        channel.reply(await channel.expect("tools/call"), tool_result())
        assert "not asked for" not in str(await failure_of_expired(client, clock))


async def failure_of_expired(client, clock):
    calling = asyncio.ensure_future(client.call_tool("charge", timeout=3))
    await clock.advance(0)
    await clock.advance(3)
    return await failure_of(calling)


async def test_a_server_that_answers_the_greeting_under_a_wrong_id_is_told_as_such(clock):
    channel = ScriptedChannel()
    connecting = asyncio.ensure_future(fresh(channel).connect())
    request = await channel.expect("server/discover")
    channel.reply({"id": str(request["id"])}, DISCOVERED)
    await clock.advance(5)
    request = await channel.expect("initialize")
    channel.reply({"id": str(request["id"])}, INITIALIZED)
    await clock.advance(5)
    assert "1 answer came under an id not asked for" in str(await failure_of(connecting))


@pytest.mark.parametrize(
    ("mute", "said"),
    [
        (
            True,
            "tools/call 'x': the server takes no more requests, so the connection to it was closed; the request may",
        ),
        (False, "tools/call 'x': the client was closed; the request may"),
    ],
)
async def test_what_a_server_still_owed_that_takes_no_more_is_not_told_as_the_closing_of_the_client(mute, said):
    async with connected() as (client, channel):
        owed = asyncio.ensure_future(client.call_tool("x"))
        await channel.expect("tools/call")
        link = client._connection.current
        link.mute = mute
        await link.aclose()  # as before the next call is given another link
        with pytest.raises(ConnectionLost) as caught:
            await owed
    assert str(caught.value).startswith(said)
    assert caught.value.evidence is Evidence.MAYBE_SENT
