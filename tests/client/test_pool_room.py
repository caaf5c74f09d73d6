"""A pool makes room without a call that is cut, and what it let go is refused, told why, and outlives it nowhere."""

import asyncio
import contextlib
import logging
import random

import pytest

from mcprelay import (
    CallFailed,
    Client,
    ClientPool,
    ConfigurationError,
    ConnectFailed,
    Evidence,
    LimitExceeded,
    LocalFault,
    Retry,
    Server,
)
from mcprelay.client.memory import Memory
from tests.client.peer import tool_result
from tests.client.scripted_http import ScriptedHttp
from tests.client.test_lifetime import COMMAND, children


class Till:
    """A server whose work is counted, over HTTP or in this process."""

    def __init__(self):
        self.ran = []
        self.server = Server("till")
        self.server.add_tool(self.charge, name="charge")

    async def charge(self, n: int) -> int:
        self.ran.append(n)
        for _ in range(5):
            await asyncio.sleep(0)
        return n

    async def respond(self, exchange):
        if exchange.asks == "tools/call":
            await exchange.result(tool_result(await self.charge(exchange.message["params"]["arguments"]["n"])))
        elif "id" in exchange.message:
            await exchange.error(-32601)
        else:
            await exchange.reply(202)

    @contextlib.asynccontextmanager
    async def at(self, kind):
        if kind == "http":
            async with ScriptedHttp(self.respond) as http:
                yield http.url
        else:
            yield self.server


@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("kind", ["http", "in process"])
async def test_a_call_that_begins_while_room_is_made_is_carried_through_or_was_not_sent(kind, turns):
    till = Till()
    async with till.at(kind) as target, ClientPool(clients=1) as pool:
        client = await pool.get(target)
        other = asyncio.create_task(pool.get(target, request_timeout=9))
        for _ in range(turns):
            await asyncio.sleep(0)
        try:
            assert (await client.call_tool("charge", {"n": 1})).value == 1
        except ConnectFailed as error:
            assert error.evidence is Evidence.NOT_SENT  # noqa: PT017 - either of them is right
            assert till.ran == []
            assert (await other) is not client
        else:
            with pytest.raises(LimitExceeded):
                await other


class Crowd:
    """Tasks that share a small pool, and do what they do after waits of their own."""

    def __init__(self, pool, target, chance):
        self.pool, self.target, self.chance = pool, target, chance
        self.failures = []
        self.answered = []

    async def one(self, n):
        with contextlib.suppress(LimitExceeded, asyncio.CancelledError):
            client = await self.pool.get(self.target, request_timeout=10 + self.chance.randrange(5))
            for _ in range(self.chance.choice([0, 0, 1, 2, 3, 5, 8])):
                await asyncio.sleep(0)
            try:
                what = self.chance.randrange(6)
                if what == 0:
                    await client.notify("notifications/cancelled", {"requestId": 1})
                elif what == 1:
                    await client.discover()
                else:
                    self.answered.append((await client.call_tool("charge", {"n": n})).value)
            except CallFailed as error:
                self.failures.append((n, error))

    async def all(self, rounds):
        for number in range(rounds):
            tasks = [asyncio.create_task(self.one(number * 100 + n)) for n in range(20)]
            for task in tasks:
                if self.chance.random() < 0.1:
                    for _ in range(self.chance.randrange(4)):
                        await asyncio.sleep(0)
                    task.cancel()
            await asyncio.wait(tasks)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["http", "in process"])
async def test_whatever_a_crowd_does_no_call_is_cut_by_its_pool(kind, seed):
    till = Till()
    async with till.at(kind) as target:
        async with ClientPool(clients=2, memory=Memory()) as pool:
            crowd = Crowd(pool, target, random.Random(seed))
            await crowd.all(rounds=5)
            assert len(pool._kept) <= 2
        for n, error in crowd.failures:
            if error.method == "server/discover":  # which a scripted server does not know
                assert error.evidence in (Evidence.NOT_SENT, Evidence.ANSWERED)
            else:
                assert (error.evidence, n in till.ran) == (Evidence.NOT_SENT, False), str(error)
        assert len(crowd.answered) > 10


async def let_go(target):
    """A client that a pool of one has closed to make room, and the pool."""
    pool = await ClientPool(clients=1).__aenter__()
    client = await pool.get(target)
    await pool.get(target, request_timeout=9)
    return client, pool


async def test_what_was_closed_to_make_room_says_so_and_how_to_get_one_that_is_open():
    till = Till()
    client, pool = await let_go(till.server)
    async with pool:
        for use in (
            lambda: client.call_tool("charge", {"n": 1}),
            client.list_tools,
            client.discover,
            lambda: client.notify("notifications/cancelled", {"requestId": 1}),
            lambda: client.listen(tools=True).__aenter__(),
        ):
            with pytest.raises(
                ConnectFailed, match=r"pool closed it to make room .*clients=1.* `await pool.get"
            ) as caught:
                await use()
            assert caught.value.evidence is Evidence.NOT_SENT
            assert "client.connect()" not in str(caught.value)
        assert (await (await pool.get(till.server)).call_tool("charge", {"n": 2})).value == 2
    assert till.ran == [2]


async def test_what_a_pool_let_go_is_not_opened_outside_of_it_and_nothing_outlives_the_pool():
    before = set(children())
    client, pool = await let_go(COMMAND)
    async with pool:
        for opening in (client.connect, client.__aenter__):
            with pytest.raises(LocalFault, match=r"pool closed it to make room.*await pool.get"):
                await opening()
        held = await pool.get(COMMAND)
        await held.call_tool("x")
    for opening in (held.connect, held.__aenter__):
        with pytest.raises(LocalFault, match=r"its pool was closed: enter the pool again"):
            await opening()
    with pytest.raises(ConnectFailed, match="its pool was closed"):
        await held.call_tool("x")
    await client.aclose()  # closing is nothing then, as ever
    assert set(children()) <= before


async def test_a_pool_that_is_closed_refuses_what_begins_while_its_listeners_leave():
    till = Till()
    async with ClientPool() as pool:
        client = await pool.get(till.server)
        events = await client.listen(tools=True).__aenter__()
        closing = asyncio.create_task(pool.aclose())
        await asyncio.sleep(0)
        assert not closing.done()
        with pytest.raises(ConnectFailed, match="its pool was closed"):
            await client.call_tool("charge", {"n": 1})
        await closing
        with pytest.raises(StopAsyncIteration):
            await anext(events)
    assert till.ran == []


async def test_who_is_in_a_block_keeps_the_client_open():
    till = Till()
    async with ClientPool(clients=1) as pool:
        async with await pool.get(till.server) as client:
            with pytest.raises(LimitExceeded, match="clients=1"):
                await pool.get(till.server, request_timeout=9)
            assert (await client.call_tool("charge", {"n": 1})).value == 1
        assert await pool.get(till.server) is client
        await pool.get(till.server, request_timeout=9)
        with pytest.raises(ConnectFailed, match="to make room"):
            await client.call_tool("charge", {"n": 2})


def test_a_block_of_a_loop_that_ended_keeps_no_client():
    till, pool = Till(), ClientPool(clients=1)

    async def left():
        await (await pool.get(till.server)).__aenter__()

    async def next_one():
        async with pool:
            client = await pool.get(till.server, request_timeout=9)
            assert (await client.call_tool("charge", {"n": 1})).value == 1

    asyncio.run(left())
    asyncio.run(next_one())


async def test_who_waits_for_a_link_that_is_made_anew_keeps_the_client():
    asked, gate = asyncio.Event(), asyncio.Event()
    server = Till().server

    class Source:
        """A server that takes its time when it is connected to again."""

        times = 0

        async def connect(self):
            self.times += 1
            if self.times > 1:
                asked.set()
                await gate.wait()
            return server.connect()

    source = Source()
    async with ClientPool(clients=1) as pool:
        client = await pool.get(source)
        await client._connection.current.aclose()
        asking = asyncio.create_task(client.discover())
        await asked.wait()
        with pytest.raises(LimitExceeded):
            await pool.get(server)
        gate.set()
        assert (await asking).info.name == "till"


async def test_a_notification_on_its_way_keeps_the_client():
    gate = asyncio.Event()

    async def respond(exchange):
        await gate.wait()
        await exchange.reply(202)

    async with ScriptedHttp(respond) as http, ClientPool(clients=1) as pool:
        client = await pool.get(http.url)
        telling = asyncio.create_task(client.notify("notifications/cancelled", {"requestId": 1}))
        await http.came()
        with pytest.raises(LimitExceeded):
            await pool.get(http.url, auth="other")
        gate.set()
        await telling


# --- what is another client


class Desk:
    """Somebody who answers questions."""

    def ask(self, question):
        return None


async def test_the_method_of_one_object_is_the_same_function_each_time():
    server, desk, heard = Till().server, Desk(), []
    async with ClientPool() as pool:
        client = await pool.get(server, on_elicit=desk.ask, on_progress=heard.append)
        assert await pool.get(server, on_elicit=desk.ask, on_progress=heard.append) is client
        assert await pool.get(server, on_elicit=Desk().ask, on_progress=heard.append) is not client
        assert await pool.get(server, on_elicit=desk.ask, on_progress=[].append) is not client


async def test_functions_that_are_made_anew_each_time_are_told_once(caplog):
    server = Till().server
    with caplog.at_level(logging.WARNING, "mcprelay"):
        async with ClientPool(clients=2) as pool:
            clients = [await pool.get(server, on_elicit=lambda _: None) for _ in range(5)]
    assert len(set(map(id, clients))) == 5  # what a function refers to may change: it is never taken for another one
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "a function that was made anew (on_elicit): make it once" in warning


async def test_functions_that_refer_to_something_of_their_own_are_meant_to_differ(caplog):
    server = Till().server

    def answering(name):
        return lambda _: {"value": name}

    def other(_):
        return None

    with caplog.at_level(logging.WARNING, "mcprelay"):
        async with ClientPool() as pool:
            for given in (answering("a"), answering("a"), other, lambda _: None):
                await pool.get(server, on_elicit=given)
            await pool.get(server, on_progress=other)
            assert await pool.get(server, on_elicit=other) is await pool.get(server, on_elicit=other)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"request_timeout": "x"}, r"^request_timeout is a number of seconds, and not 'x'"),
        ({"retry": 3}, r"^retry is a value of the type Retry, and not 3"),
        ({"on_elicit": 3}, "on_elicit"),
        ({"revision": "tomorrow"}, "^revision is one of"),
        ({"headers": {"a b": "c"}}, "a b"),
        ({"env": {"A": 1}}, "^env maps names to strings"),
        ({"proxy": "nowhere"}, "^proxy is the address"),
        ({"on_roots": [5]}, "^on_roots"),
        ({"env": {"A": "1"}, "auth": "token"}, "auth belongs to an address"),
    ],
)
def test_an_option_that_no_client_can_have_is_told_where_the_pool_is_made(options, said):
    with pytest.raises(ConfigurationError, match=said):
        ClientPool(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"retry": Retry(), "request_timeout": 3, "clients": 2},
        {"headers": {"x-tenant": "a"}, "auth": "token"},
        {"env": {"A": "1"}, "cwd": "/", "stderr": "inherit"},
        {"stderr": "tail", "trust_env": True},
    ],
)
def test_options_of_each_kind_of_server_are_taken(options):
    pool = ClientPool(**options)
    assert pool._options == {name: value for name, value in options.items() if name != "clients"}
    assert pool.clients == options.get("clients", 256)


async def test_roots_that_can_be_read_but_once_are_those_of_every_client():
    async with ClientPool(on_roots=iter(["file:///work"])) as pool:
        one, two = await pool.get(Till().server), await pool.get(Till().server)
        for client in (one, two):
            assert client._party.handlers.has("roots/list")
        assert pool._options["on_roots"] == ("file:///work",)


# --- a client that is not open


async def test_a_client_that_is_not_open_is_not_tried_again():
    retry = Retry(attempts=3, backoff=60)
    client = Client(Till().server, retry=retry)
    with pytest.raises(ConnectFailed, match=r"await client.connect\(\)$") as caught:
        await client.call_tool("charge", {"n": 1})
    assert caught.value.lasting
    let_go_, pool = await let_go(Till().server)
    async with pool:
        with pytest.raises(ConnectFailed, match="in a block; a question that is open"):
            await let_go_.call_tool("charge", {"n": 1}, retry=retry)


async def test_a_channel_that_ended_is_not_tried_again():
    client = Client(Till().server.connect(), retry=Retry(attempts=3, backoff=60))
    async with client:
        await client._connection.current.aclose()
        with pytest.raises(ConnectFailed, match="a channel serves for one connection") as caught:
            await client.call_tool("charge", {"n": 1})
    assert caught.value.lasting
    assert "tried" not in str(caught.value)


async def test_a_server_that_is_away_is_tried_again():
    async with Client("http://127.0.0.1:9/mcp", retry=Retry(attempts=2, backoff=0)) as client:
        with pytest.raises(ConnectFailed, match="tried 2 times") as caught:
            await client.call_tool("charge", {"n": 1})
    assert not caught.value.lasting


@pytest.mark.parametrize("kind", ["in process", "stdio"])
def test_a_client_left_open_in_a_loop_that_ended_says_what_opens_it_here(kind):
    client = Client(Till().server if kind == "in process" else [*COMMAND])
    asyncio.run(client.connect())

    async def again():
        with pytest.raises(LocalFault, match=r"has ended.*await client.connect\(\)") as caught:
            await client.list_tools(fresh=True)
        assert "close it there" not in str(caught.value)
        await client.connect()
        if kind == "in process":
            assert len(await client.list_tools(fresh=True)) == 1
        else:
            await client.call_tool("x")
        await client.aclose()

    asyncio.run(again())


async def test_a_call_that_cannot_be_sent_over_this_wire_is_not_tried_again():
    async with Client("http://127.0.0.1:9/mcp", retry=Retry(attempts=3, backoff=60)) as client:
        with pytest.raises(ConnectFailed, match="cannot be sent over HTTP") as caught:
            await client.request("tools/\nx")
    assert caught.value.lasting
    assert "tried" not in str(caught.value)
    assert caught.value.evidence is Evidence.NOT_SENT


async def test_a_channel_that_was_used_up_before_it_was_greeted_is_not_tried_again():
    channel = Till().server.connect()
    await channel.aclose()
    client = Client(channel)
    with pytest.raises(CallFailed):
        await client.connect()
    with pytest.raises(ConnectFailed, match="a channel serves for one connection") as caught:
        await client.call_tool("charge", {"n": 1}, retry=Retry(attempts=3, backoff=60))
    assert caught.value.lasting
    await client.aclose()
