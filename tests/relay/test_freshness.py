"""How long a list stands: at a call, while changes are heard, and in a file."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from mcprelay import Server
from mcprelay.relay import CacheSettings, Relay
from mcprelay.relay.dial import has_secrets
from mcprelay.relay.settings import Secret, ServerSettings
from mcprelay.revisions import ALL
from mcprelay.testing import FakeClock
from tests.relay.far import ADD, SEARCH, Far, discovered, servers, settle

NO_HINTS = sorted(ALL)[-2]
"""A revision whose lists say nothing of how long they may be kept, and of whose they are."""
CHANGED = {**SEARCH, "description": "Another."}
TELLS_NOTHING = {"server/discover": {**discovered(), "capabilities": {"tools": {}}}}


@pytest.mark.parametrize(
    ("setting", "ttl_ms", "after", "stands"),
    [
        (None, None, 59, True),  # no hint: 60 seconds
        (None, None, 61, False),
        (None, 0, 0, False),
        (None, 1_000, 2, False),
        (None, 90_000, 89, True),
        (0, None, 0, False),
        (0, 90_000, 0, False),
        (5, 90_000, 6, False),
        (600, 0, 599, True),
    ],
)
async def test_a_list_stands_at_a_call_for_as_long_as_settings_or_the_server_say(setting, ttl_ms, after, stands):
    far, clock = Far(ttl_ms=ttl_ms, **TELLS_NOTHING), FakeClock()
    one = servers(far=far)["far"] | ({} if setting is None else {"cache": setting})
    async with Relay(servers={"far": one}, clock=clock.time) as relay:
        tools = await relay.tools()
        far.tools = [CHANGED, ADD]
        clock.advance(after)
        framed = await tools["far__search"](q="x")
    assert framed.withheld == (None if stands else "definition")
    assert len(far.of("tools/list")) == (1 if stands else 2)
    assert len(far.of("tools/call")) == stands


@pytest.mark.parametrize("setting", [None, 0, 0.5])
async def test_where_changes_are_heard_a_list_holds_without_a_notice_unless_the_settings_say_otherwise(setting):
    far, clock = Server("far"), FakeClock()  # it says ttlMs 0, and tells of changes

    async def extra() -> str:
        return "x"

    far.add_tool(extra, name="first")
    one = {"target": far, "allow": ["first"]} | ({} if setting is None else {"cache": setting})
    async with Relay(servers={"far": one}, clock=clock.time) as relay:
        tools = await relay.tools()
        await settle()
        station = (await tools["far__first"]._post.reached()).station
        counts = [station._answers]
        for _ in range(3):
            clock.advance(1)
            assert not (await tools["far__first"]()).failed
            counts.append(station._answers)
        # One that came before anybody listened may have missed a change: it is asked for once more.
        assert counts == ([1, 2, 2, 2] if setting is None else [1, 2, 3, 4])
        far.remove_tool("first")
        await settle()
        assert (await tools["far__first"]()).withheld == "definition"
        count = station._answers
        clock.advance(61)
        await tools["far__first"]()
        assert station._answers == count + 1


async def test_where_nothing_is_heard_any_more_a_list_holds_for_as_long_as_it_says():
    far = Server("far")

    async def extra() -> str:
        return "x"

    far.add_tool(extra, name="first")
    async with Relay(servers={"far": {"target": far, "allow": "*"}}) as relay:
        tools = await relay.tools()
        await settle()
        station = (await tools["far__first"]._post.reached()).station
        assert not (await tools["far__first"]()).failed
        assert station.recent is not None
        station._listener.cancel()
        await settle()
        assert station.recent is None
        assert not (await tools["far__first"]()).failed


class Restless(Far):
    """Its list changes each time it is read, so many times; the last change is another definition of the tool."""

    def __init__(self, *tools, times, **options):
        super().__init__(*tools, **options)
        self.times, self.read = times, 0

    def _list(self, message):
        self.read += 1
        page = super()._list(message)
        if self.read <= self.times:
            self.changed()
            if self.read == self.times:
                self.tools = [CHANGED]
        return page


@pytest.mark.parametrize("setting", [None, 600])
async def test_a_list_that_changed_at_each_of_its_readings_stands_for_nobody_who_comes_later(setting):
    far = Restless(SEARCH, times=4, ttl_ms=90_000)
    one = servers(far=far)["far"] | ({} if setting is None else {"cache": setting})
    async with Relay(servers={"far": one}) as relay:
        tools = await relay.tools()
        assert far.read == 4
        assert "list_restarts=3" in str(tools.report())
        assert tools["far__search"].description == "Search."
        await far.read_by_all()
        assert (await tools["far__search"](q="x")).withheld == "definition"
        assert not far.of("tools/call")
        assert (await relay.tools())["far__search"].description == "Another."
        assert far.read == 5


async def test_a_list_that_changed_at_each_of_its_readings_is_not_what_the_next_tools_gives():
    far = Restless(SEARCH, times=4)
    async with Relay(servers={"far": {"target": far, "allow": "*", "cache": 600}}) as relay:
        assert (await relay.tools())["far__search"].description == "Search."
        assert (await relay.tools())["far__search"].description == "Another."


async def test_a_list_that_changed_at_each_of_its_readings_does_not_stand_where_changes_are_heard_either():
    far = Restless(SEARCH, times=0, ttl_ms=0)
    async with Relay(servers=servers(far=far)) as relay:
        await relay.tools()
        [station] = relay._stations._open.values()
        await settle()
        station._hears = True
        far.times = 5
        tools = await relay.tools()
        await far.read_by_all()
        assert (await tools["far__search"](q="x")).withheld == "definition"
        assert not far.of("tools/call")


async def test_whoever_waited_for_a_list_that_changed_at_each_of_its_readings_has_it_too():
    far = Restless(SEARCH, times=1_000)
    async with Relay(servers={"far": {"target": far, "allow": "*", "cache": 600}}) as relay:
        await asyncio.gather(*(relay.tools() for _ in range(5)))
        assert far.read == 4


@pytest.mark.parametrize("ttl_ms", [None, 90_000])
async def test_a_list_that_changed_while_it_was_read_stands_once_it_was_read_whole(ttl_ms):
    far = Restless(SEARCH, times=1, ttl_ms=ttl_ms)
    async with Relay(servers=servers(far=far)) as relay:
        tools = await relay.tools()
        assert tools["far__search"].description == "Another."
        for _ in range(2):
            assert not (await tools["far__search"](q="x")).failed
            await relay.tools()
        assert far.read == 2


async def test_a_list_of_an_earlier_run_is_dropped_when_a_change_is_heard_of_before_it_was_used(tmp_path):
    server = Server("shop", ttl_ms=600_000, cache_scope="public")

    @server.tool
    def hi() -> str:
        """Say hi."""
        return "hi"

    def more() -> str:
        """More."""
        return "more"

    path = tmp_path / "lists.sqlite"

    def kept():
        with closing(sqlite3.connect(path)) as file:
            return file.execute("select count(*) from list").fetchone()[0]

    async with server.serve("http", host="127.0.0.1", port=0) as running:
        one = {"url": running.url, "allow": "*", "resources": "*"}
        options = {"servers": {"shop": one}, "cache": CacheSettings(path=path)}
        async with Relay(**options) as relay:
            assert len(await relay.tools()) == 1
        assert kept() == 1
        async with Relay(**options) as relay, Relay(**options) as other:
            await relay.read("shop", "a://b")
            [station] = relay._stations._open.values()
            server.add_tool(more)
            station._changed()  # as it comes where somebody listens
            assert kept() == 0
            assert len(await other.tools()) == 2
            assert kept() == 1
            server.remove_tool("more")
            station._changed()
            assert len(await relay.tools()) == 1  # what the other one kept may be of before


async def test_a_list_of_an_object_is_not_kept_beyond_its_connection():
    """Another object may take the place of one that is gone, in memory too."""
    async with Relay(connections=1) as relay:
        listed = []
        for number in range(20):
            far = Far({**SEARCH, "description": f"{number}"}, ttl_ms=600_000)
            tools = await relay.server(far, name="far", allow="*").tools()
            listed.append(tools["far__search"].description)
            [station] = relay._stations._open.values()
            key = station.key
            await relay.server(Far(SEARCH), name="other", allow="*").tools()
            assert station._shelves.get(key) is None
            del far, tools, station
    assert listed == [f"{number}" for number in range(20)]


@pytest.fixture
async def shop():
    server = Server("shop", among=[NO_HINTS])

    @server.tool
    def hi() -> str:
        """Say hi."""
        return "hi"

    async with server.serve("http", host="127.0.0.1", port=0) as running:
        yield running.url


@pytest.mark.parametrize(
    ("more", "token", "kept"),
    [
        ({}, None, 1),
        ({}, "secret", 0),
        ({}, lambda: "secret", 0),
        ({"token": "secret"}, None, 0),
        ({"token": lambda: "secret"}, None, 0),
        ({"headers": {"X-Key": "secret"}}, None, 0),
        ({"query": "?key=secret"}, None, 0),
    ],
)
async def test_a_list_that_was_got_with_credentials_is_in_no_file(shop, tmp_path, more, token, kept):
    path = tmp_path / "lists.sqlite"
    one = {"url": shop, "allow": "*", **more}
    one["url"] += one.pop("query", "")
    async with Relay(servers={"shop": one}, cache=CacheSettings(path=path)) as relay:
        own = relay if token is None else relay.with_token(token)
        assert len(await own.tools("shop")) == 1
        with closing(sqlite3.connect(path)) as file:
            assert file.execute("select count(*) from list").fetchone() == (kept,)


def test_what_a_process_or_a_stored_account_is_given_may_say_who_calls():
    assert has_secrets(ServerSettings(name="x", transport="stdio", command=("x",), env={"KEY": Secret("k")}))
    assert has_secrets(ServerSettings(name="x", transport="http", url="https://a.example/mcp", auth="oauth"))
