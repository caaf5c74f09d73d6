"""What is kept: for whom, for how long, and what a change makes of it (utilities/caching)."""

import asyncio
import contextvars
import dataclasses
import ssl
import sys

import msgspec
import pytest

from mcprelay import Server
from mcprelay.auth.bearer import StaticToken
from mcprelay.client import identity
from mcprelay.client.cache import Cache
from mcprelay.client.http import HttpSender
from mcprelay.client.listening import ToolsChanged
from mcprelay.client.network import Network
from mcprelay.client.target import target_of
from mcprelay.testing import FakeClock
from tests.client.peer import DISCOVERED, connected, fresh, in_session
from tests.client.scripted_http import ScriptedHttp
from tests.client.test_listening import Channels, acknowledge, begun, opened

CHANGED = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"


def page(name, *, cursor=None, scope="private", ttl=600_000):
    body = {"resultType": "complete", "tools": [{"name": name, "inputSchema": {"type": "object"}}], "ttlMs": ttl}
    return {**body, "cacheScope": scope} | ({} if cursor is None else {"nextCursor": cursor})


def contents(text):
    body = {"resultType": "complete", "contents": [{"uri": "file:///x", "text": text}]}
    return {**body, "ttlMs": 600_000, "cacheScope": "private"}


def naming(*headers, scope="private"):
    """Gives everybody a tool that is named by these headers of the request."""

    async def respond(exchange):
        await exchange.result(page("/".join(exchange.headers.get(name, "-") for name in headers), scope=scope))

    return respond


def nothing() -> None:
    """A tool."""


async def names(client, **options):
    return [tool.name for tool in await client.list_tools(**options)]


def shared():
    return Cache(now=FakeClock().monotonic)


# --- for whom


async def test_clients_that_are_answered_alike_share_what_is_kept():
    cache = shared()
    async with ScriptedHttp(naming("authorization", "x-tenant")) as http:
        for _ in range(3):
            async with fresh(http.url, auth="t", headers={"X-Tenant": "a"}, cache=cache) as client:
                assert await names(client) == ["Bearer t/a"]
        assert len(http.exchanges) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"headers": {"X-Tenant": "a"}}, {"headers": {"X-Tenant": "b"}}),
        ({"headers": {"X-Tenant": "a"}}, {}),
        ({"auth": "a"}, {"auth": "b"}),
        ({"auth": "a"}, {}),
        ({"auth": lambda: "a"}, {"auth": lambda: "b"}),
        ({"headers": lambda: {"X-Tenant": "a"}}, {"headers": lambda: {"X-Tenant": "b"}}),
        ({"auth": StaticToken("a")}, {"auth": StaticToken("b")}),
    ],
)
async def test_whoever_shows_something_else_gets_a_list_of_their_own(one, other):
    cache = shared()
    async with ScriptedHttp(naming("authorization", "x-tenant")) as http:
        found = []
        for options in (one, other, one, other):
            async with fresh(http.url, cache=cache, **options) as client:
                found.append(await names(client))
        assert found[0] != found[1]
        assert found[:2] == found[2:]
        assert len(http.exchanges) == 2


@pytest.mark.parametrize("scope", ["private", "public"])
async def test_a_tenant_that_a_function_names_is_not_answered_with_anothers_list(scope):
    who = contextvars.ContextVar("who", default="alice")
    async with ScriptedHttp(naming("x-api-key", scope=scope)) as http:
        async with fresh(http.url, headers=lambda: {"X-Api-Key": who.get()}) as client:
            assert await names(client) == ["alice"]
            who.set("bob")
            assert await names(client) == ["bob"]
            who.set("alice")
            assert await names(client) == ["alice"]
        assert len(http.exchanges) == 2


async def test_a_token_that_a_function_gives_is_whose_list_it_is():
    who = contextvars.ContextVar("who", default="alice")
    async with ScriptedHttp(naming("authorization")) as http, fresh(http.url, auth=who.get) as client:
        assert await names(client) == ["Bearer alice"]
        who.set("bob")
        assert await names(client) == ["Bearer bob"]
        assert len(http.exchanges) == 2


async def test_what_is_everybodys_is_given_to_everybody():
    cache = shared()
    async with ScriptedHttp(naming("authorization", scope="public")) as http:
        for token in ("a", "b"):
            async with fresh(http.url, auth=token, cache=cache) as client:
                assert await names(client) == ["Bearer a"]
        assert len(http.exchanges) == 1


async def test_an_auth_of_the_users_need_not_be_hashable():
    @dataclasses.dataclass
    class Own:
        token: str

        def bind(self, url, *, sender):
            return StaticToken(self.token).bind(url, sender=sender)

    async with ScriptedHttp(naming("authorization")) as http, fresh(http.url, auth=Own("t")) as client:
        for _ in range(2):
            assert await names(client) == ["Bearer t"]
        assert len(http.exchanges) == 1


async def test_credentials_that_cannot_be_had_ask_the_server_who_then_says_so():
    gives = iter(["t", "t"])
    async with ScriptedHttp(naming("authorization")) as http, fresh(http.url, auth=lambda: next(gives)) as client:
        assert await names(client) == ["Bearer t"]
        assert await names(client) == ["Bearer t"]
        with pytest.raises(Exception, match="StopIteration"):
            await names(client)
        assert len(http.exchanges) == 1


async def test_a_function_that_hangs_is_given_up_at_the_deadline_of_the_call(clock):
    gate = asyncio.Event()
    gate.set()

    async def token():
        await gate.wait()
        return "t"

    async with ScriptedHttp(naming("authorization")) as http, fresh(http.url, auth=token) as client:
        assert await names(client) == ["Bearer t"]
        gate.clear()
        listing = asyncio.ensure_future(names(client, timeout=5))
        await clock.advance(0)
        await clock.advance(6)
        with pytest.raises(TimeoutError):
            await listing


async def test_a_sender_or_a_tls_context_may_show_who_asks_so_nothing_is_shared():
    cache = shared()
    sender = HttpSender()
    async with ScriptedHttp(naming("authorization")) as http:
        for _ in range(2):
            async with fresh(http.url, sender=sender, cache=cache) as client:
                await names(client)
        assert len(http.exchanges) == 2
    await sender.aclose()
    target = target_of(
        "https://a.example/", auth=None, headers=None, env=None, cwd=None, stderr="tail",
        network=Network(ssl=ssl.create_default_context()),
    )  # fmt: skip
    assert target.parts is None


SERVER = """
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "server/discover":
        r = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    else:
        tool = {"name": sys.argv[1], "inputSchema": {"type": "object"}}
        r = {"resultType": "complete", "tools": [tool], "ttlMs": 600000, "cacheScope": "public"}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""


async def test_a_command_is_told_from_others_by_all_of_it():
    cache = shared()
    for name in ("alpha", "beta", "alpha"):
        async with fresh([sys.executable, "-c", SERVER, name], cache=cache) as client:
            assert await names(client) == [name]
    assert len(cache) == 2


def parts(command=("x",), **options):
    given = {"auth": None, "headers": None, "env": None, "cwd": None, "stderr": "tail", "network": Network()}
    return identity.digest(target_of(list(command), **{**given, **options}).parts)


def test_the_folder_and_the_variables_of_a_command_are_part_of_what_it_is(tmp_path, monkeypatch):
    assert parts() == parts()
    assert len({parts(), parts(("x", "y")), parts(env={"A": "1"}), parts(env={"A": "2"}), parts(cwd=tmp_path)}) == 5
    assert parts(cwd=str(tmp_path)) == parts(cwd=tmp_path)
    monkeypatch.chdir(tmp_path)
    assert parts() == parts(cwd=tmp_path)


async def test_two_servers_of_this_process_are_two_whatever_they_are_called():
    cache = shared()
    for number in (1, 2, 3):
        server = Server("same", ttl_ms=600_000)
        server.add_tool(nothing, name=f"tool_{number}")
        async with fresh(server, cache=cache) as client:
            assert await names(client) == [f"tool_{number}"]
            assert len(cache) == number


def test_a_name_of_its_own_is_not_given_twice():
    assert len({identity.own() for _ in range(100)}) == 100


async def test_nothing_that_is_kept_is_named_by_a_secret():
    cache = shared()
    async with ScriptedHttp(naming("x-tenant")) as http:
        async with fresh(http.url, auth="s3cret", headers={"X-Api-Key": "s3cret"}, cache=cache) as client:
            await names(client)
    assert len(cache) == 1
    assert "s3cret" not in repr(list(cache._entries))


async def test_another_revision_or_another_face_of_the_client_is_answered_by_the_server():
    cache = shared()
    from mcprelay.types import ClientCapabilities, Implementation

    async with ScriptedHttp(naming("x-tenant")) as http:
        for options in (
            {},
            {"revision": "2026-07-28"},
            {"client_info": Implementation("other", "1")},
            {"capabilities": ClientCapabilities()},
            {"depth": 7},
        ):
            async with fresh(http.url, cache=cache, **options) as client:
                await names(client)
        assert len(http.exchanges) == 5


async def test_what_is_asked_with_a_meta_of_the_callers_own_is_not_kept_and_not_answered_from_there():
    async with ScriptedHttp(naming("x-tenant")) as http, fresh(http.url) as client:
        for _ in range(2):
            await names(client, meta={"com.example/tenant": "a"})
        assert len(http.exchanges) == 2
        await names(client)
        await names(client, meta={"com.example/tenant": "a"})
        await names(client)
        assert len(http.exchanges) == 4


async def test_in_a_session_nothing_is_kept_whatever_the_server_says():
    async with in_session() as (client, channel):
        for _ in range(2):
            listing = asyncio.ensure_future(names(client))
            channel.reply(await channel.expect("tools/list"), page("a"))
            assert await listing == ["a"]


# --- changes


async def test_a_page_that_was_asked_for_before_a_change_is_not_kept():
    async with connected() as (client, channel):
        listing = asyncio.ensure_future(names(client))
        channel.reply(await channel.expect("tools/list"), page("a-old", cursor="2"))
        request = await channel.expect("tools/list")
        channel.notify(CHANGED)
        channel.reply(request, page("b-old"))
        channel.reply(await channel.expect("tools/list"), page("a-new", cursor="2"))
        request = await channel.expect("tools/list")
        assert request["params"]["cursor"] == "2"  # the old one was not kept
        channel.reply(request, page("b-new"))
        assert await listing == ["a-new", "b-new"]
        assert await names(client) == ["a-new", "b-new"]  # and these were


@pytest.mark.parametrize(("uri", "asked"), [("file:///x", 2), ("file:///", 2), (None, 2), ("file:///other", 1)])
async def test_a_resource_that_was_asked_for_before_it_changed_is_not_kept(uri, asked):
    async with connected() as (client, channel):
        reading = asyncio.ensure_future(client.read_resource("file:///x"))
        request = await channel.expect("resources/read")
        channel.notify(UPDATED, {} if uri is None else {"uri": uri})
        channel.reply(request, contents("old"))
        await reading
        reading = asyncio.ensure_future(client.read_resource("file:///x"))
        if asked == 2:
            channel.reply(await channel.expect("resources/read"), contents("new"))
        assert (await reading).contents[0].text == ("new" if asked == 2 else "old")


async def test_a_change_that_another_client_hears_of_counts_for_all_who_share_what_is_kept():
    cache = shared()
    gate = asyncio.Event()

    async def respond(exchange):
        if len(http.exchanges) == 1:
            await gate.wait()
        await exchange.result(page(f"answer-{len(http.exchanges)}"))

    async with ScriptedHttp(respond) as http:
        one, other = fresh(http.url, cache=cache), fresh(http.url, cache=cache)
        async with one, other:
            listing = asyncio.ensure_future(one.list_tools(deadline=None))
            await http.came()
            other._changed(CHANGED, None)
            gate.set()
            await listing
            await names(other)
            assert len(http.exchanges) == 2  # what `one` read first was of before


async def test_a_change_of_something_else_does_not_begin_a_list_again():
    async with connected() as (client, channel):
        listing = asyncio.ensure_future(names(client))
        request = await channel.expect("tools/list")
        channel.notify("notifications/prompts/list_changed")
        channel.notify(UPDATED, {"uri": "file:///x"})
        channel.reply(request, page("a"))
        assert await listing == ["a"]
        assert await names(client) == ["a"]


def test_what_is_not_being_read_any_more_is_forgotten():
    cache = shared()
    reading = cache.begin("s", "tools/list", None)
    cache.interrupt("s", CHANGED, None)
    assert reading.stale
    del reading
    assert len(cache._readings) == 0


def test_whether_there_is_something_is_known_without_asking_whose_it_is():
    clock = FakeClock()
    cache = Cache(now=clock.monotonic, entries=2)
    for whose in ("a", "b"):
        cache.put("s", "m", None, msgspec.Raw(b"{}"), ttl_ms=1000, authorization=whose)
    assert cache.holds("s", "m", None)
    assert not cache.holds("s", "m", "other")
    clock.advance(2)
    for whose in ("a", "b"):
        assert cache.get("s", "m", None, authorization=whose) is None
    assert not cache.holds("s", "m", None)


async def test_after_an_interruption_of_listening_nothing_from_before_is_given():
    channels = Channels()
    client = fresh(channels)
    channel = await opened(client, channels)
    listing = asyncio.ensure_future(names(client))
    channel.reply(await channel.expect("tools/list"), page("before"))
    assert await listing == ["before"]
    events, _ = await begun(client, channel, tools=True, reconnect=True)
    channel.end()
    channel = await channels.number(2)
    channel.reply(await channel.expect("server/discover"), DISCOVERED)
    acknowledge(channel, await channel.expect("subscriptions/listen"))
    assert await anext(events) == ToolsChanged()
    listing = asyncio.ensure_future(names(client))
    channel.reply(await channel.expect("tools/list"), page("after"))
    assert await listing == ["after"]
    await client.aclose()


async def test_who_waits_to_listen_again_is_busy_and_is_ended_with_the_client():
    channels = Channels()
    client = fresh(channels)
    channel = await opened(client, channels)
    events, _ = await begun(client, channel, tools=True, reconnect=True)
    await channel.aclose()
    while client._connection.current.alive:  # noqa: ASYNC110 - nobody is told of it
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert client.busy
    await client.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(events)
    assert not client.busy
