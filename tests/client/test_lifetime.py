"""Open and close in any order, from any task and loop; nothing is left behind (cases T49)."""

import asyncio
import gc
import os
import sys
import textwrap
import weakref
from pathlib import Path

import pytest

from mcprelay import CallFailed, Client, ConfigurationError, ConnectFailed, Evidence, LocalFault, Server, define
from mcprelay.testing import ScriptedChannel
from tests.client.peer import DISCOVERED, connected, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp

SERVER = textwrap.dedent(
    """
    import json, sys
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "server/discover":
            result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
        else:
            result = {"resultType": "complete", "content": [], "structuredContent": message["params"]["arguments"]}
        if "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    """
)
COMMAND = [sys.executable, "-c", SERVER]


async def ok(exchange):
    await exchange.result(tool_result())


async def test_clients_close_in_any_order():
    async with ScriptedHttp(ok) as http:
        one, two = await fresh(http.url).connect(), await fresh(http.url).connect()
        await one.call_tool("x")
        await one.aclose()
        assert (await two.call_tool("x")).value == "ok"
        await two.aclose()


@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_open_use_and_close_in_different_tasks(kind):
    async with ScriptedHttp(ok) as http:
        client = fresh(http.url if kind == "http" else COMMAND)
        await asyncio.create_task(client.connect())
        await asyncio.create_task(client.call_tool("x"))
        await asyncio.gather(*(asyncio.create_task(client.aclose()) for _ in range(3)))
        await client.aclose()
        with pytest.raises(ConnectFailed, match="not open"):
            await client.call_tool("x")


@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_a_closed_client_says_so_and_can_be_opened_again(kind):
    async with ScriptedHttp(ok) as http:
        client = fresh(http.url if kind == "http" else COMMAND)
        with pytest.raises(ConnectFailed, match="not open") as caught:
            await client.call_tool("x")
        assert caught.value.evidence is Evidence.NOT_SENT
        for _ in range(2):
            async with client:
                await client.call_tool("x")
            with pytest.raises(ConnectFailed, match="not open"):
                await client.call_tool("x")


@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_the_last_block_that_is_left_closes_it(kind):
    async with ScriptedHttp(ok) as http:
        client = fresh(http.url if kind == "http" else COMMAND)
        entered, gate = asyncio.Event(), asyncio.Event()

        async def beside():
            async with client:
                entered.set()
                await gate.wait()
                await client.call_tool("x")

        async with client as outer:
            async with outer as inner:
                assert inner is outer is client
            await client.call_tool("x")
            task = asyncio.create_task(beside())
            await entered.wait()
        gate.set()
        await task
        with pytest.raises(ConnectFailed, match="not open"):
            await client.call_tool("x")


async def test_a_block_that_could_not_be_entered_needs_nothing_to_be_open(tmp_path):
    script = tmp_path / "server.py"
    client = fresh([sys.executable, str(script)])
    for _ in range(2):
        with pytest.raises(CallFailed):
            await client.__aenter__()
    script.write_text(SERVER, encoding="utf-8")
    async with client:
        await client.call_tool("x")
    with pytest.raises(ConnectFailed, match="not open"):
        await client.call_tool("x")


async def test_who_could_not_enter_closes_what_others_have_left_meanwhile(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(SERVER, encoding="utf-8")
    client = fresh([sys.executable, str(script)])
    async with client:
        script.write_text("import sys; sys.stdin.read()", encoding="utf-8")
        await client._connection.current.aclose()
        entering = asyncio.create_task(client.__aenter__())
        await asyncio.sleep(0)
        assert not entering.done()
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    with pytest.raises(ConnectFailed, match="not open"):
        await client.call_tool("x")


async def test_a_block_that_is_entered_while_the_last_one_is_left_finds_it_open():
    server = Server("s")
    server.tool(lambda: 1, name="one")
    client = Client(server)
    await client.__aenter__()
    await client.listen(tools=True).__aenter__()  # ending it takes a while
    leaving = asyncio.create_task(client.__aexit__(None, None, None))
    await asyncio.sleep(0)
    async with client:
        await leaving
        assert (await client.call_tool("one")).text == "1"


async def test_closing_at_once_closes_it_for_blocks_too():
    async with ScriptedHttp(ok) as http:
        client = fresh(http.url)
        async with client:
            await client.aclose()  # at once, whoever is in a block
            with pytest.raises(ConnectFailed, match="not open"):
                await client.call_tool("x")
            async with client:
                await client.call_tool("x")
            await client.call_tool("x")
        with pytest.raises(ConnectFailed, match="not open"):
            await client.call_tool("x")


def test_a_block_whose_loop_ended_is_not_waited_for():
    client = fresh("http://127.0.0.1:9/mcp")
    loop = asyncio.new_event_loop()
    loop.run_until_complete(client.__aenter__())

    async def elsewhere():
        with pytest.raises(LocalFault, match="another event loop"):
            await client.__aenter__()

    asyncio.run(elsewhere())
    loop.close()

    async def again():
        async with client:
            pass
        with pytest.raises(ConnectFailed, match="not open"):
            await client.call_tool("x")

    asyncio.run(again())


async def test_a_channel_serves_for_one_connection():
    async with connected() as (client, _):
        pass
    with pytest.raises(ConnectFailed, match="one connection"):
        await client.connect()


@pytest.mark.parametrize("kind", ["http", "stdio"])
def test_a_second_loop_is_an_immediate_error_that_says_what_to_do(kind):
    client = fresh("http://127.0.0.1:9/mcp" if kind == "http" else COMMAND)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(client.connect())

    async def elsewhere():
        for use in (client.connect, lambda: client.call_tool("x"), client.aclose):
            with pytest.raises(LocalFault, match="another event loop"):
                await use()

    asyncio.run(elsewhere())

    async def here():
        async with client:  # closed there, so it may be opened here
            pass

    loop.run_until_complete(client.aclose())
    asyncio.run(here())
    loop.close()


def test_after_a_loop_that_ended_without_closing_the_client_works_in_the_next(recwarn):
    client = fresh("http://127.0.0.1:9/mcp")
    asyncio.run(client.connect())

    async def again():
        await client.connect()
        with pytest.raises(CallFailed):
            await client.call_tool("x")
        await client.aclose()

    asyncio.run(again())


async def test_cancelling_the_connection_leaves_nothing_behind():
    channel = ScriptedChannel()
    client = Client(channel)
    connecting = asyncio.ensure_future(client.connect())
    await channel.expect("server/discover")
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    await client.aclose()
    assert channel.closed
    assert len(asyncio.all_tasks()) == 1


async def test_a_child_whose_greeting_is_cancelled_is_gone():
    before = children()
    greeted = asyncio.Event()
    script = "import sys, time\nsys.stdin.readline()\nprint('greeted', file=sys.stderr, flush=True)\ntime.sleep(60)"
    client = fresh([sys.executable, "-c", script], stderr=lambda _: greeted.set(), close_timeout=0.1)
    connecting = asyncio.ensure_future(client.connect())
    await greeted.wait()
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    await client.aclose()
    assert set(children()) <= set(before)  # what an earlier test started may have ended meanwhile


async def test_closing_while_it_connects_is_told_to_who_waits():
    channel = ScriptedChannel()
    client = Client(channel)
    connecting = asyncio.ensure_future(client.connect())
    await channel.expect("server/discover")
    await client.aclose()
    with pytest.raises(CallFailed, match="closed") as caught:
        await connecting
    assert caught.value.evidence is Evidence.NOT_SENT


async def test_a_server_that_a_probe_ends_is_started_again_and_greeted_in_the_older_way():
    script = textwrap.dedent(
        """
        import json, sys
        first = json.loads(sys.stdin.readline())
        if first["method"] != "initialize":
            sys.exit("expected initialize")
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": first["id"], "result": result}), flush=True)
        sys.stdin.read()
        """
    )
    client = fresh([sys.executable, "-c", script])
    for _ in range(2):
        async with client:
            assert client.server.revision == "2025-06-18"
            assert client.server.info.name == "old"


async def test_a_silent_server_is_remembered_for_the_next_connection(clock):
    script = textwrap.dedent(
        """
        import json, sys
        for line in sys.stdin:
            message = json.loads(line)
            print(message["method"], file=sys.stderr, flush=True)
            if message["method"] == "initialize":
                info = {"name": "o", "version": "1"}
                result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}
                print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
        """
    )
    said, probed = [], asyncio.Event()

    def hear(line):
        said.append(line.strip())
        probed.set()

    client = fresh([sys.executable, "-c", script], probe_timeout=5, stderr=hear)
    connecting = asyncio.ensure_future(client.connect())
    await probed.wait()
    await clock.advance(5)
    await connecting
    assert client.server.revision == "2025-06-18"
    await client.aclose()
    async with client:  # no probe is waited for: time stands still
        assert client.server.revision == "2025-06-18"
    assert said.count("server/discover") == 1


async def test_a_stubborn_child_is_ended_within_its_time():
    script = "import signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVER + "\ntime.sleep(60)"
    before = children()
    client = await fresh([sys.executable, "-c", script], close_timeout=0.2).connect()
    await client.call_tool("x")
    begun = asyncio.get_running_loop().time()
    await client.aclose()
    assert asyncio.get_running_loop().time() - begun < 5
    assert set(children()) <= set(before)  # what an earlier test started may have ended meanwhile


async def test_many_calls_at_once_get_each_its_own_answer():
    async with fresh(COMMAND) as client:
        results = await asyncio.gather(*(client.call_tool("x", {"n": n}) for n in range(1000)))
        assert [result.value["n"] for result in results] == list(range(1000))

    async def echo(exchange):
        await exchange.result(tool_result(exchange.message["params"]["arguments"]))

    async with ScriptedHttp(echo) as http, fresh(http.url, connections=100) as client:
        results = await asyncio.gather(*(client.call_tool("x", {"n": n}) for n in range(1000)))
        assert [result.value["n"] for result in results] == list(range(1000))


async def test_cancellations_and_cuts_leave_no_task_descriptor_or_debt_behind():
    """A small one of the leak test: what is there at the end is what was there at the beginning."""
    import random

    dice = random.Random(7)

    async def respond(exchange):
        match dice.randrange(4):
            case 0:
                exchange.cut()
            case 1:
                await exchange.left()
            case _:
                await exchange.result(tool_result())

    async def once(client):
        calling = asyncio.ensure_future(client.call_tool("x", timeout=dice.choice([0.002, 0.1])))
        if dice.random() < 0.3:
            await asyncio.sleep(dice.random() * 0.002)
            calling.cancel()
        await asyncio.wait([calling])
        if not calling.cancelled():
            error = calling.exception()
            assert error is None or isinstance(error, CallFailed), error

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            await once(client)
            before = descriptors()
            for _ in range(40):
                await asyncio.gather(*(once(client) for _ in range(10)))
            link = client._connection.current
            assert link.peer.pending == {}
            assert len(link.peer._reminders) < 200
            assert len(link._tasks) == 0
        gc.collect()
        await asyncio.sleep(0.01)
    assert len(asyncio.all_tasks()) == 1
    assert descriptors() <= before + 3


def children():
    """The processes that this one started and that are still there."""
    path = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return [pid for pid in path.read_text().split() if _state(pid) != "Z"] if path.exists() else []


def _state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def descriptors():
    path = Path("/proc/self/fd")
    return len(list(path.iterdir())) if path.exists() else 0


@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        ("ftp://x", {}, "http"),
        ("http://", {}, "name a host"),
        ("http://user:pw@host/mcp", {}, "auth="),
        ("http://host/mcp#x", {}, "fragment"),
        ("http://host:99999/mcp", {}, "port"),
        ("http://ho st/mcp", {}, "character"),
        ([], {}, "command"),
        (["x", 1], {}, "command"),
        (7, {}, "address"),
        ("http://host/mcp", {"auth": "secret"}, "plain HTTP"),
        ("http://host/mcp", {"headers": {"X-Api-Key": "secret"}}, "plain HTTP"),
        ("http://host/mcp", {"headers": dict}, "plain HTTP"),
        ("https://host/mcp", {"headers": {"Mcp-Session-Id": "x"}}, "protocol's own"),
        ("https://host/mcp", {"headers": {"content-TYPE": "x"}}, "protocol's own"),
        ("https://host/mcp", {"headers": {"X": "a\r\nY: b"}}, "printable"),
        ("https://host/mcp", {"headers": {"X Y": "a"}}, "header name"),
        ("https://host/mcp", {"auth": "two words"}, "space"),
        ("https://host/mcp", {"auth": 7}, "auth"),
        ("https://host/mcp", {"env": {"A": "b"}}, "env belongs to a command"),
        (["server"], {"auth": "x"}, "auth belongs to an address"),
        ("https://host/mcp", {"revision": "1999-01-01"}, "revision"),
        ("https://host/mcp", {"request_timeot": 1}, "request_timeot"),
        ("https://host/mcp", {"request_timeout": -1}, "request_timeout"),
        ("https://host/mcp", {"on_elicit": 7}, "on_elicit"),
    ],
)
def test_what_cannot_be_is_said_when_the_client_is_made(target, options, said):
    def connect():
        asyncio.run(Client(target, **options).connect())

    with pytest.raises(ConfigurationError, match=said):
        connect()


def test_a_secret_is_in_no_repr():
    assert "hunter2" not in repr(Client("https://host/mcp", auth="hunter2", headers={"X-Key": "hunter2"}))


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "ä", 7])
def test_a_contract_has_a_name(name):
    from mcprelay import DefinitionError

    with pytest.raises(DefinitionError):
        define(name, input=dict, output=int)


async def test_a_call_on_a_dead_channel_fails_at_once():
    async with connected() as (client, channel):
        channel.end()
        while client._connection.current.alive:  # noqa: ASYNC110 - it takes some turns of the loop
            await asyncio.sleep(0)
        with pytest.raises(CallFailed) as caught:
            await client.call_tool("x")
        assert caught.value.evidence is Evidence.NOT_SENT


class Factory:
    """A target that makes scripted channels; `made` has each of them."""

    def __init__(self):
        self.made = asyncio.Queue()

    def connect(self):
        channel = ScriptedChannel()
        self.made.put_nowait(channel)
        return channel


async def test_a_factory_of_channels_is_asked_again_after_a_loss():
    factory = Factory()
    client = fresh(factory)
    connecting = asyncio.ensure_future(client.connect())
    first = await factory.made.get()
    first.reply(await first.expect("server/discover"), DISCOVERED)
    await connecting
    first.end()
    while client._connection.current.alive:  # noqa: ASYNC110 - it takes some turns of the loop
        await asyncio.sleep(0)
    calling = asyncio.ensure_future(client.call_tool("x"))
    second = await factory.made.get()
    second.reply(await second.expect("server/discover"), DISCOVERED)
    second.reply(await second.expect("tools/call"), tool_result())
    assert (await calling).value == "ok"
    await client.aclose()


async def test_a_connection_that_was_lost_is_not_kept_for_as_long_as_its_client_lives():
    factory = Factory()
    client, lost = fresh(factory), []
    for _ in range(3):
        connecting = asyncio.ensure_future(client.connect())
        channel = await factory.made.get()
        channel.reply(await channel.expect("server/discover"), DISCOVERED)
        await connecting
        link = client._connection.current
        lost.append(weakref.ref(link))
        channel.end()
        while link.alive:  # noqa: ASYNC110 - it takes some turns of the loop
            await asyncio.sleep(0)
        del link, channel
    await client.aclose()
    gc.collect()
    assert [link() for link in lost] == [None, None, None]
