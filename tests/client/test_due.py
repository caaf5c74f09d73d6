"""One deadline holds over all that connecting takes, and a deadline that passes says which it was."""

import asyncio
import sys

import pytest

from mcprelay import CallFailed, Client, ConnectFailed, DeadlineExceeded, Evidence
from mcprelay.testing import ScriptedChannel
from tests.client.peer import LEGACY, connected, fresh
from tests.client.scripted_http import ScriptedHttp

DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print({said!r}, flush=True)
time.sleep(60)
"""


def deaf(said=""):
    """A command that says something, never answers, and does not end when it is asked to."""
    return [sys.executable, "-c", DEAF.format(said=said)]


async def failure_of(awaitable):
    with pytest.raises(CallFailed) as caught:
        await awaitable
    return caught.value


class Waits:
    """A program's own source of channels, which never gives one."""

    name = "waits"

    def __init__(self):
        self.asked = asyncio.Event()

    async def connect(self):
        self.asked.set()
        await asyncio.Event().wait()


async def test_a_silent_server_costs_no_more_than_the_time_to_connect_whatever_it_is_asked(clock):
    channel = ScriptedChannel()
    connecting = asyncio.ensure_future(Client(channel, probe_timeout=2, connect_timeout=5).connect())
    await channel.expect("server/discover")
    await clock.advance(1.9)
    assert len(channel.sent) == 1
    await clock.advance(0.2)
    await channel.expect("initialize")
    await clock.advance(2.8)
    assert not connecting.done()
    await clock.advance(0.2)
    error = await failure_of(connecting)
    assert type(error) is ConnectFailed
    assert "initialize: no answer came within connect_timeout=5 seconds" in str(error)


async def test_the_wait_for_the_probe_is_part_of_the_time_to_connect(clock):
    channel = ScriptedChannel()
    connecting = asyncio.ensure_future(Client(channel, probe_timeout=60, connect_timeout=3).connect())
    await channel.expect("server/discover")
    await clock.advance(3.1)
    assert "connect_timeout=3 seconds" in str(await failure_of(connecting))


async def test_a_source_that_gives_no_channel_is_given_up_in_time(clock):
    source = Waits()
    connecting = asyncio.ensure_future(Client(source, connect_timeout=3).connect())
    await source.asked.wait()
    await clock.advance(3.1)
    error = await failure_of(connecting)
    assert "connect() of 'waits' did not give a channel within connect_timeout=3 seconds" in str(error)


@pytest.mark.timeout(30)
async def test_the_end_of_a_stubborn_child_is_not_part_of_connecting_and_is_waited_for_when_closing():
    client = fresh(deaf(), probe_timeout=0.1, connect_timeout=0.5, close_timeout=1)
    await failure_of(client.connect())
    assert len(client._connection._leaving) == 1
    await client.aclose()
    assert not client._connection._leaving


@pytest.mark.timeout(30)
async def test_the_deadline_of_a_call_is_not_stretched_by_the_end_of_the_child_that_it_waited_for(tmp_path):
    marker = tmp_path / "started"
    script = f"""
import json, os, sys, time
if os.path.exists({str(marker)!r}):
    time.sleep(60)
open({str(marker)!r}, "w").close()
message = json.loads(sys.stdin.readline())
result = {{"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {{}}, "ttlMs": 0,
           "cacheScope": "private"}}
print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"""
    async with fresh([sys.executable, "-c", script], close_timeout=1) as client:
        await client._connection.current.channel._exit  # it ended after its greeting
        error = await failure_of(client.call_tool("x", timeout=0.3))
        assert type(error) is DeadlineExceeded
        assert error.evidence is Evidence.NOT_SENT
        assert client._connection._leaving, "its end was not waited for"


@pytest.mark.timeout(30)
async def test_a_banner_in_place_of_an_answer_is_told():
    client = fresh(deaf("Welcome to \x1b[1mshell\x1b[0m"), probe_timeout=0.1, connect_timeout=1, close_timeout=0.1)
    error = await failure_of(client.connect())
    assert "what the server said is not the protocol: 'Welcome to \\x1b[1mshell" in str(error)
    assert "\x1b" not in str(error)
    await client.aclose()


async def test_a_program_that_says_something_and_ends_is_told_with_its_words_and_its_exit_code():
    script = "import sys; print('usage: serve PORT'); print('no port', file=sys.stderr); sys.exit(2)"
    client = fresh([sys.executable, "-c", script])
    error = await failure_of(client.connect())
    assert type(error) is ConnectFailed
    assert "'usage: serve PORT'" in str(error)
    assert error.exit_code == 2
    assert "no port" in error.stderr


async def test_over_http_asking_for_the_era_takes_no_longer_than_the_call_may(clock):
    asked = asyncio.Event()

    async def respond(exchange):
        if exchange.asks == "server/discover":
            asked.set()
            await exchange.left()
        else:
            await exchange.error(-32603, "who are you?")

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        calling = asyncio.ensure_future(client.call_tool("x", timeout=3))
        await asked.wait()
        await clock.advance(3.1)
        error = await failure_of(calling)
        assert error.evidence is Evidence.ANSWERED  # by the error that raised the question
        assert "who are you?" in str(error)


async def test_over_http_the_whole_handshake_has_one_time(clock):
    async def respond(exchange):
        if exchange.asks == "initialize":
            await exchange.result(
                {"protocolVersion": LEGACY, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            )
        elif exchange.asks == "notifications/initialized":
            await exchange.left()
        else:
            await exchange.result({"content": [{"type": "text", "text": "ok"}]})

    options = {"revision": LEGACY, "connect_timeout": 3, "request_timeout": 100}
    async with ScriptedHttp(respond) as http, fresh(http.url, **options) as client:
        calling = asyncio.ensure_future(client.call_tool("x"))
        await http.came(1, of="notifications/initialized")
        await clock.advance(3.1)
        assert (await calling).text == "ok"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"timeout": 5}, "no answer came within timeout=5 seconds"),
        ({}, "no answer came within request_timeout=7 seconds"),
    ],
)
async def test_a_deadline_that_passes_names_the_setting_and_its_seconds(clock, options, said):
    async with connected(request_timeout=7) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x", **options))
        await channel.expect("tools/call")
        await clock.advance(7.1)
        error = await failure_of(calling)
        assert said in str(error)


async def test_a_deadline_that_was_given_as_a_time_is_called_that(clock):
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x", deadline=asyncio.get_running_loop().time() + 3))
        await channel.expect("tools/call")
        await clock.advance(3.1)
        assert "no answer came before its deadline" in str(await failure_of(calling))


async def test_rounds_without_questions_end_at_the_deadline_and_not_a_pause_later():
    rounds = []

    async def respond(exchange):
        rounds.append(exchange)
        await exchange.result({"resultType": "input_required", "requestState": "later"})

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + 0.4  # within a pause of 0.4 that begins at 0.35
        error = await failure_of(client.call_tool("x", deadline=deadline))
        assert type(error) is DeadlineExceeded
        assert loop.time() - deadline < 0.2
        assert len(rounds) >= 2
