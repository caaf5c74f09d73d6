"""Servers as they are reached: over HTTP with a token for each principal, as processes, and lists kept in a file."""

import asyncio
import sqlite3
import stat
import sys
import tracemalloc
from contextlib import closing

import pytest

from mcprelay import Context, Server
from mcprelay.errors import AuthorizationRequired, RequestRefused
from mcprelay.relay import CacheSettings, Limits, Relay, SettingWrong, TokenFailed, Unauthorized
from mcprelay.relay.disk import Disk
from mcprelay.relay.listed import Hint, Listed, Memory, identity, lifetime
from mcprelay.relay.settings import Secret, ServerSettings
from mcprelay.relay.stations import Shelves
from mcprelay.revisions import ALL
from mcprelay.testing import FakeClock
from tests.relay.far import ADD, SEARCH, Far, servers

OLDEST = min(ALL)


def guarded_server(seen, **options):
    def principal(request):
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        seen.append(token)
        if token == "wrong":
            raise RequestRefused(401, "who are you?")
        return token

    server = Server("shop", context=principal, ttl_ms=60_000, **options)

    @server.tool
    def whoami(ctx: Context) -> str:
        """Say who calls."""
        return f"you are {ctx.state}"

    return server


@pytest.fixture
async def shop():
    seen = []
    async with guarded_server(seen).serve("http", host="127.0.0.1", port=0) as running:
        yield running.url, seen


async def test_each_call_leaves_with_the_token_of_its_own_principal(shop):
    url, seen = shop
    one = {"url": url, "allow": "*", "token": "app", "headers": {"Authorization": "Bearer header"}}
    async with Relay(servers={"shop": one}) as relay:
        own = await relay.tools("shop")
        ann = await relay.with_token("ann").tools("shop")
        bob = await relay.with_token(lambda: "bob").tools("shop")
        both = ann + bob
        names = list(both.keys())
        answers = [(await both[name]()).result.content[0].text for name in names]
        assert answers == ["you are ann", "you are bob"]
        assert "app" in (await own["shop__whoami"]()).text
    assert "header" not in seen


async def test_a_list_is_never_shared_between_principals(shop):
    url, seen = shop
    async with Relay(servers={"shop": {"url": url, "allow": "*"}}) as relay:
        for token in ("ann", "bob", "ann", "bob"):
            await relay.with_token(token).tools("shop")
        assert {"ann", "bob"} <= set(seen)
        count = len(seen)
        await relay.with_token("ann").tools("shop")
        assert len(seen) == count


async def test_a_token_function_is_asked_for_each_call(shop):
    url, _ = shop
    tokens = iter(["a", "b", "c", "d", "e"])

    async def token():
        return next(tokens)

    async with Relay(servers={"shop": {"url": url, "allow": "*"}}) as relay:
        tools = await relay.with_token(token).tools("shop")
        said = [(await tools["shop__whoami"]()).result.content[0].text for _ in range(2)]
        assert len(set(said)) == 2


async def test_with_token_serves_one_server_and_with_tokens_those_it_names(shop):
    url, _ = shop
    two = {"a": {"url": url, "allow": "*"}, "b": {"url": url, "allow": "*"}, "c": {"url": url, "allow": "*"}}
    async with Relay(servers=two) as relay:
        with pytest.raises(SettingWrong, match="exactly one"):
            await relay.with_token("t").tools("a", "b")
        with pytest.raises(SettingWrong, match="exactly one"):
            await relay.with_token("t").tools()
        user = relay.with_tokens({"a": "ann-a", "b": "ann-b"})
        tools = await user.tools()
        assert [(await tool()).result.content[0].text for tool in tools] == ["you are ann-a", "you are ann-b"]
        with pytest.raises(SettingWrong, match="no token for the server 'c'"):
            await user.tools("c")
        with pytest.raises(SettingWrong, match="no server 'x'"):
            relay.with_tokens({"x": "t"})
        for wrong in ("", 5):
            with pytest.raises(SettingWrong):
                relay.with_token(wrong)
        with pytest.raises(TokenFailed, match="gave NoneType"):
            await relay.with_token(lambda: None).tools("a")


async def test_a_token_for_a_command_is_an_error_before_anything_starts(tmp_path):
    mark = tmp_path / "started"
    command = [sys.executable, "-c", f"open({str(mark)!r}, 'w')"]
    async with Relay(servers={"far": {"command": command, "allow": "*"}}) as relay:
        with pytest.raises(SettingWrong, match="takes no token"):
            await relay.with_token("t").tools()
        with pytest.raises(SettingWrong, match="takes no token"):
            relay.with_tokens({"far": "t"})
    assert not mark.exists()


async def test_a_401_is_its_own_error_also_inside_a_listing_and_words_at_a_call(shop):
    url, _ = shop
    async with Relay(servers={"shop": {"url": url, "allow": "*"}}) as relay:
        with pytest.raises(Unauthorized) as refused:
            await relay.with_token("wrong").tools("shop")
        assert isinstance(refused.value.__cause__, AuthorizationRequired)
        assert "wrong" not in str(refused.value).replace("are wrong", "")
        tokens = iter(["ann", *["wrong"] * 9])
        tools = await relay.with_token(lambda: next(tokens)).tools("shop")
        framed = await tools["shop__whoami"]()
        assert framed.withheld == "authorization"
    two = {"shop": {"url": url, "allow": "*", "token": "wrong"}, **servers(far=Far())}
    async with Relay(servers=two) as relay:
        with pytest.raises(Unauthorized):
            await relay.tools(skip_unavailable=True)


async def test_idle_connections_make_room_for_other_principals(shop):
    url, _ = shop
    async with Relay(servers={"shop": {"url": url, "allow": "*"}}, connections=2) as relay:
        first = await relay.with_token("u0").tools("shop")
        for number in range(1, 6):
            await relay.with_token(f"u{number}").tools("shop")
        assert "u0" in (await first["shop__whoami"]()).text


async def test_oauth_that_nobody_logged_in_for_says_what_to_run(shop, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    url, _ = shop
    async with Relay(servers={"shop": {"url": url, "allow": "*", "auth": "oauth"}}) as relay:
        tools = await relay.tools("shop")  # this server lets everyone in
        assert len(tools) == 1


async def test_a_users_own_token_goes_before_the_stored_account(shop, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url, seen = shop
    async with Relay(servers={"shop": {"url": url, "allow": "*", "auth": "oauth"}}) as relay:
        tools = await relay.with_token("ann").tools("shop")
        assert "you are ann" in (await tools["shop__whoami"]()).text
        tools = await relay.with_tokens({"shop": "bob"}).tools()
        assert "you are bob" in (await tools["shop__whoami"]()).text
    assert set(seen) == {"ann", "bob"}


SERVED = """
from mcprelay import Server
server = Server("files", limits=None)
@server.tool
def echo(text: str) -> str:
    "Say it again."
    return text
@server.tool
def flood(size: int) -> str:
    "Answer with very much."
    return "x" * size
server.run()
"""


@pytest.fixture
def command(tmp_path):
    path = tmp_path / "served.py"
    path.write_text(SERVED)
    return [sys.executable, str(path)]


async def test_many_who_want_a_connection_at_once_get_one():
    far = Far()
    async with Relay(servers=servers(far=far)) as relay:
        sets = await asyncio.gather(*(relay.tools() for _ in range(5)))
        await asyncio.gather(*(tools["far__search"](q="x") for tools in sets))
    other = Far()
    async with Relay(servers={"far": {"target": other, "allow": "*", "prompts": "*"}}) as relay:
        await asyncio.gather(relay.tools(), relay.prompt("far", "p"), relay.prompt("far", "q"))
    assert (far.connects, other.connects) == (1, 1)


async def test_a_process_is_reached_and_ended(command):
    async with Relay(servers={"files": {"command": command, "allow": ["echo"], "inherit": ["PYTHONPATH"]}}) as relay:
        tools = await relay.tools()
        assert "hello" in (await tools["files__echo"]("hello")).text


async def test_12_a_hostile_answer_is_refused_within_twice_the_message_limit(command):
    one = {"command": command, "allow": "*"}
    limit = 4 << 20
    async with Relay(servers={"files": one}, limits=Limits(message_bytes=limit)) as relay:
        tools = await relay.tools()
        tracemalloc.start()
        try:
            framed = await tools["files__flood"](100 << 20)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert framed.failed
    assert peak < 2 * limit


# --- lists in a file


@pytest.mark.parametrize(("scope", "asked_again"), [("public", False), ("private", True)])
async def test_15_a_public_list_in_a_file_spares_the_next_run_its_question(tmp_path, scope, asked_again):
    path = tmp_path / "deep" / "lists.sqlite"
    seen = []

    async def run(url, **more):
        one = {"url": url, "allow": "*", **more}
        async with Relay(servers={"shop": one}, cache=CacheSettings(path=path)) as relay:
            return len(await relay.tools())

    async with guarded_server(seen, cache_scope=scope).serve("http", host="127.0.0.1", port=0) as running:
        assert await run(running.url) == 1
        before = len(seen)
        assert await run(running.url) == 1
        assert (len(seen) > before) is asked_again
        assert await run(running.url, token="hush-hush") == 1
    assert "hush-hush" in seen
    assert b"hush" not in b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_change_notice_drops_the_list_in_the_file_too(tmp_path):
    shelves = Shelves(CacheSettings(path=tmp_path / "l.sqlite"), clock=FakeClock().time)
    now = shelves.clock()
    settings = ServerSettings(name="x", transport="http", url="https://a.example/")
    shelves.put("k", Listed(read_at=now, fresh_until=now + 9), of=settings)
    shelves.drop("k")
    assert shelves.get("k") is None
    shelves.close()


async def test_a_token_goes_over_the_old_pair_of_streams_too():
    server = Server("old", among=[OLDEST], context=lambda request: request.headers.get("authorization", ""))

    @server.tool
    def who(ctx: Context) -> str:
        """Say who calls."""
        return ctx.state

    async with server.serve("http", host="127.0.0.1", port=0) as running:
        one = {"url": running.url.replace("/mcp", "/sse"), "transport": "sse", "allow": "*"}
        async with Relay(servers={"old": one}) as relay:
            tools = await relay.with_token("ann").tools("old")
            assert "Bearer ann" in (await tools["old__who"]()).text


def test_private_lists_are_never_on_disk_and_old_ones_are_not_given(tmp_path):
    clock = FakeClock()
    disk = Disk(tmp_path / "l.sqlite", clock=clock.time)
    now = clock.time()
    disk.put("a", Listed(tools=(("t", b"{}"),), fresh_until=now + 10))
    disk.put("b", Listed(fresh_until=now + 10, private=True))
    assert disk.get("a").tools == (("t", b"{}"),)
    assert disk.get("b") is None
    again = Disk(tmp_path / "l.sqlite", clock=clock.time)
    assert again.key == disk.key
    clock.advance(11)
    assert again.get("a") is None
    disk.put("a", Listed(fresh_until=clock.time() + 10))
    disk.drop("a")
    assert disk.get("a") is None
    disk.close()
    disk.close()
    again.close()


def test_a_file_that_cannot_be_used_costs_its_use_alone(tmp_path, caplog):
    broken = tmp_path / "broken"
    broken.write_bytes(b"no database" * 1000)
    disk = Disk(broken, clock=FakeClock().time)
    assert disk.get("a") is None
    disk.put("a", Listed())
    disk.drop("a")
    assert "not kept" in caplog.text
    for act in (lambda one: one.get("a"), lambda one: one.put("a", Listed()), lambda one: one.drop("a")):
        fine = Disk(tmp_path / "fine", clock=FakeClock().time)
        with closing(sqlite3.connect(tmp_path / "fine")) as other, other:
            other.execute("drop table if exists list")
        act(fine)
        assert fine.get("a") is None


def test_15_a_key_changes_with_everything_that_decides_and_holds_no_secret():
    def key(token=None, **members):
        settings = ServerSettings(name="x", transport="http", **members)
        return identity(settings, token=token, key=b"k", environment={"A": "1"})

    keys = [
        key(),
        key(url="https://a/"),
        key(url="https://b/"),
        key(token="t"),
        key(token="u"),
        key(headers={"X-Team": Secret("a")}),
        key(headers={"X-Team": Secret("b")}),
        key(env={"A": Secret("b")}),
        key(inherit=("A",)),
        key(command=("a", "b")),
        key(command=("a b",)),
        key(auth="oauth"),
        key(target=object()),
    ]
    assert len(set(keys)) == len(keys)
    assert all(len(one) == 64 for one in keys)


def test_15_the_shortest_lifetime_of_all_pages_counts():
    assert lifetime([Hint(5_000), Hint(1_000), Hint(None)], setting=None, hintless=60) == 1
    assert lifetime([Hint(None)], setting=None, hintless=60) == 60
    assert lifetime([Hint("nonsense")], setting=None, hintless=60) == 0
    assert lifetime([Hint(10**30)], setting=None, hintless=60) == 365 * 24 * 3600
    assert lifetime([Hint(5)], setting=7.0, hintless=60) == 7


def test_memory_keeps_so_many_lists_and_no_more():
    memory = Memory(entries=2, clock=lambda: 0.0)
    for name in "abc":
        memory.put(name, Listed(fresh_until=1.0))
    assert memory.get("a") is None
    assert memory.get("c") is not None


async def test_calls_over_the_limit_wait_for_their_turn_and_not_longer_than_the_timeout():
    far = Far(SEARCH, ADD)
    one = {**servers(far=far)["far"], "timeout": 0.05, "limits": {"calls": 1}}
    async with Relay(servers={"far": one}) as relay:
        tools = await relay.tools()
        far.channels[-1].silent.add("tools/call")
        both = await asyncio.gather(tools["far__search"](q="x"), tools["far__search"](q="y"))
        assert [framed.withheld for framed in both] == ["transport", "transport"]


async def test_who_gets_no_turn_in_time_sent_nothing():
    far = Far()
    async with Relay(servers={"far": {**servers(far=far)["far"], "timeout": 0.05, "limits": {"calls": 1}}}) as relay:
        search = (await relay.tools())["far__search"]
        station = (await search._post.reached()).station
        assert station._turns.take()  # whoever has it keeps it
        framed = await search(q="x")
    assert framed.withheld == "transport"
    assert "Nothing was sent" in framed.text
    assert not far.of("tools/call")
