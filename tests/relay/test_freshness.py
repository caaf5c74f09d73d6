"""How long a list stands: at a call, while changes are heard, and in a file."""

import sqlite3
from contextlib import closing

import pytest

from mcprelay import Server
from mcprelay.relay import CacheSettings, Relay
from mcprelay.relay.settings import Secret, ServerSettings
from mcprelay.relay.station import _has_secrets
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
        station = await tools["far__first"]._post.station()
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
        station = await tools["far__first"]._post.station()
        assert not (await tools["far__first"]()).failed
        assert station.recent is not None
        station._listener.cancel()
        await settle()
        assert station.recent is None
        assert not (await tools["far__first"]()).failed


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
    assert _has_secrets(ServerSettings(name="x", transport="stdio", command=("x",), env={"KEY": Secret("k")}))
    assert _has_secrets(ServerSettings(name="x", transport="http", url="https://a.example/mcp", auth="oauth"))
