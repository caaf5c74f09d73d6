"""Lists: pages, cursors, bounds, changes, bad items, the cache (utilities/pagination and caching; cases T50)."""

import asyncio
import gc
import warnings

import msgspec
import pytest

from mcprelay import CallLimitExceeded, ConnectionLost, Evidence, LocalFault, RemoteError, ResponseInvalid
from mcprelay.client.cache import Cache
from mcprelay.testing import FakeClock
from mcprelay.wire.mirror import params_of
from tests.client.peer import connected, fresh, in_session, tool_result
from tests.client.scripted_http import ScriptedHttp

SCHEMA = {"type": "object"}


def tool(name, **more):
    return {"name": name, "inputSchema": SCHEMA, **more}


def page(*names, cursor=None, ttl=0, scope="private", **more):
    body = {"resultType": "complete", "tools": [tool(n) if isinstance(n, str) else n for n in names], "ttlMs": ttl}
    if cursor is not None:
        body["nextCursor"] = cursor
    return {**body, "cacheScope": scope, **more}


async def listed(pages, *, method="tools/list", walk=lambda client: client.list_tools(), **options):
    """List, while the server gives one page after the other: `(listing, cursors that were asked for)`."""
    async with connected(**options) as (client, channel):
        listing = asyncio.ensure_future(walk(client))
        cursors = []
        for body in pages:
            request = await channel.expect(method)
            cursors.append(request["params"].get("cursor"))
            channel.reply(request, body)
        return await listing, cursors


async def test_all_pages_are_read_in_order():
    found, cursors = await listed([page("a", cursor="1"), page("b", cursor=""), page("c")])
    assert [tool.name for tool in found] == ["a", "b", "c"]
    assert cursors == [None, "1", ""]  # an empty cursor is a cursor
    assert found.pages == 3
    assert found.warnings == ()


async def test_items_come_as_they_are_read():
    async with connected() as (client, channel):
        walk = aiter(client.list_tools())
        first = asyncio.ensure_future(anext(walk))
        channel.reply(await channel.expect("tools/list"), page("a", "b", cursor="1"))
        assert (await first).name == "a"
        assert (await anext(walk)).name == "b"
        assert len(channel.sent) == 2
        third = asyncio.ensure_future(anext(walk))
        channel.reply(await channel.expect("tools/list"), page("c"))
        assert (await third).name == "c"
        with pytest.raises(StopAsyncIteration):
            await anext(walk)


@pytest.mark.parametrize("cursor", ["1", ""])
async def test_a_cursor_that_repeats_ends_the_list_with_one_warning_and_no_duplicate(cursor, caplog):
    found, cursors = await listed([page("a", cursor=cursor), page("a", "b", cursor=cursor)])
    assert [tool.name for tool in found] == ["a", "b"]
    assert cursors == [None, cursor]
    assert [w for w in found.warnings if "cursor" in w] == [
        "the server gave the same cursor twice: the list may be incomplete"
    ]
    assert "same cursor twice" in caplog.text


@pytest.mark.parametrize("cursor", [7, False, {"a": 1}, ["x"]])
async def test_a_cursor_that_is_no_string_ends_the_list_with_a_warning(cursor):
    found, _ = await listed([page("a", cursor=cursor)])
    assert [tool.name for tool in found] == ["a"]
    assert len(found.warnings) == 1


@pytest.mark.parametrize(("limits", "name"), [({"list_pages": 2}, "list_pages=2"), ({"list_items": 3}, "list_items=3")])
async def test_pages_and_items_are_bounded_and_what_was_read_is_kept(limits, name):
    with pytest.raises(CallLimitExceeded, match=name) as caught:
        await listed([page("a", "b", cursor="1"), page("c", "d", cursor="2"), page("e")][:2], **limits)
    assert [tool.name for tool in caught.value.partial][:2] == ["a", "b"]


@pytest.mark.parametrize("name", ["a", 7])
async def test_items_that_are_left_out_count_so_that_they_are_no_way_around_the_bound(name, caplog):
    with pytest.raises(CallLimitExceeded, match="list_items=5"):
        await listed([page(*[{"name": name, "inputSchema": SCHEMA}] * 1000)], list_items=5)
    assert len(caplog.records) <= 5


async def test_a_page_that_fails_says_what_was_read_before():
    async with connected() as (client, channel):
        listing = asyncio.ensure_future(client.list_tools())
        channel.reply(await channel.expect("tools/list"), page("a", "b", cursor="1"))
        channel.refuse(await channel.expect("tools/list"), -32603, "no more")
        with pytest.raises(RemoteError, match="no more") as caught:
            await listing
        assert [tool.name for tool in caught.value.partial] == ["a", "b"]
        assert caught.value.__notes__ == ["1 pages with 2 items had been read (error.partial)"]


async def test_a_list_that_changes_while_it_is_read_is_begun_again():
    async with connected() as (client, channel):
        listing = asyncio.ensure_future(client.list_tools())
        channel.reply(await channel.expect("tools/list"), page("a", cursor="1"))
        request = await channel.expect("tools/list")
        channel.notify("notifications/tools/list_changed")
        channel.reply(request, page("b"))
        request = await channel.expect("tools/list")
        assert "cursor" not in request["params"]
        channel.reply(request, page("a2", cursor="1"))
        channel.reply(await channel.expect("tools/list"), page("b2"))
        assert [tool.name for tool in await listing] == ["a2", "b2"]


async def test_a_list_that_never_stands_still_is_given_with_a_warning():
    async with connected(list_restarts=2) as (client, channel):
        listing = asyncio.ensure_future(client.list_tools())
        for _ in range(3):
            request = await channel.expect("tools/list")
            channel.notify("notifications/tools/list_changed")
            channel.reply(request, page("a"))
        found = await listing
        assert [tool.name for tool in found] == ["a"]
        assert "list_restarts=2" in found.warnings[0]


async def told(walk, got, read=None):
    """Iterate, as somebody does who needs a while for each item."""
    async for tool in walk:
        got.append((tool.name, tool.description))
        if read is not None:
            await read.wait()


async def test_items_that_come_as_they_are_read_come_again_where_a_change_made_others_of_them(caplog):
    async with connected() as (client, channel):
        got = []
        telling = asyncio.ensure_future(told(client.list_tools(), got))
        channel.reply(await channel.expect("tools/list"), page("same", tool("other"), "gone", cursor="1"))
        request = await channel.expect("tools/list")
        channel.notify("notifications/tools/list_changed")
        channel.reply(request, page("of before"))
        request = await channel.expect("tools/list")
        assert "cursor" not in request["params"]
        channel.reply(request, page("same", tool("other", description="now"), "new"))
        await telling
        assert got == [("same", None), ("other", None), ("gone", None), ("other", "now"), ("new", None)]
        assert "1 that came before are not in it any more" in caplog.text
        assert [name in client._toolbox.known for name in ("same", "gone", "of before")] == [True, False, False]


async def test_a_change_while_an_item_is_looked_at_begins_the_list_again_too():
    async with connected() as (client, channel):
        got, read = [], asyncio.Event()
        telling = asyncio.ensure_future(told(client.list_tools(), got, read))
        channel.reply(await channel.expect("tools/list"), page("a", cursor="1"))
        for _ in range(2):  # the item is there, and then the notice
            settled = asyncio.ensure_future(client.request("x/settled"))
            channel.reply(await channel.expect("x/settled"), {})
            await settled
            channel.notify("notifications/tools/list_changed")
        assert got == [("a", None)]
        read.set()
        channel.reply(await channel.expect("tools/list"), page("b"))
        channel.reply(await channel.expect("tools/list"), page("a"))
        await telling
        assert got == [("a", None)]


async def test_items_of_a_list_that_never_stands_still_come_with_a_warning_in_the_log(caplog):
    async with connected(list_restarts=1) as (client, channel):
        got = []
        telling = asyncio.ensure_future(told(client.list_tools(), got))
        for _ in range(2):
            request = await channel.expect("tools/list")
            channel.notify("notifications/tools/list_changed")
            channel.reply(request, page("a"))
        await telling
        assert got == [("a", None)]
        assert "list_restarts=1" in caplog.text


BAD = [
    {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
    {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": ""}}},
    {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "a b"}}},
    {
        "type": "object",
        "properties": {"a": {"type": "string", "x-mcp-header": "X"}, "b": {"type": "string", "x-mcp-header": "x"}},
    },
]


async def test_items_that_cannot_be_read_are_left_out_and_named(caplog):
    bad = {"name": "no schema"}
    found, _ = await listed([page("a", bad, {"inputSchema": {}}, "b")])
    assert [tool.name for tool in found] == ["a", "b"]
    assert [one.name for one in found.excluded] == ["no schema", "(no name)"]
    assert "inputSchema" in found.excluded[0].reason
    assert "no schema" in caplog.text


@pytest.mark.parametrize("schema", BAD)
async def test_over_http_a_tool_with_a_wrong_header_annotation_is_left_out_alone(schema):
    async def respond(exchange):
        await exchange.result(page("a", tool("bad", inputSchema=schema), "b"))

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        found = await client.list_tools()
    assert [tool.name for tool in found] == ["a", "b"]
    assert [one.name for one in found.excluded] == ["bad"]
    found, _ = await listed([page(tool("bad", inputSchema=schema))])
    assert [tool.name for tool in found] == ["bad"]  # where there are no headers, they cannot be wrong


async def test_only_schemas_that_may_have_an_annotation_are_gone_through_and_each_once(monkeypatch):
    seen = []

    def counted(schema):
        seen.append(schema)
        return params_of(schema)

    monkeypatch.setattr("mcprelay.client.toolbox.params_of", counted)

    async def respond(exchange):
        await exchange.result(page("a", tool("sql", inputSchema=MIRRORED), "b"))

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        await client.list_tools()
    assert seen == [MIRRORED]


async def test_others_have_the_loop_between_the_items_of_a_page():
    turns = []

    async def other():
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    async def turns_for(size):
        async with connected() as (client, channel):
            listing = asyncio.ensure_future(client.list_tools())
            request = await channel.expect("tools/list")
            turns.clear()
            running = asyncio.ensure_future(other())
            channel.reply(request, page(*(tool(f"t{i}", description="q" * size) for i in range(40))))
            assert len(await listing) == 40
            running.cancel()
            return len(turns)

    # each item that is longer than a stretch is followed by a turn for others
    assert await turns_for(300_000) - await turns_for(1) >= 39


async def test_of_a_page_nothing_is_read_but_what_was_asked_for():
    found, _ = await listed([page("a", resources=7, prompts=[{}], x="y")])
    assert [tool.name for tool in found] == ["a"]


async def test_every_item_keeps_what_came_beyond_its_fields():
    found, _ = await listed([page(tool("a", future={"x": 1}))])
    assert msgspec.json.decode(found[0].raw)["future"] == {"x": 1}


@pytest.mark.parametrize("body", [{"tools": 7}, [], {"tools": [], "resultType": "other"}])
async def test_a_page_that_is_none_is_an_invalid_answer(body):
    with pytest.raises(ResponseInvalid) as caught:
        await listed([body])
    assert caught.value.evidence is Evidence.ANSWERED


async def test_the_other_lists_are_read_alike():
    async with connected() as (client, channel):
        for walk, method, member, item in (
            (client.list_resources, "resources/list", "resources", {"uri": "a://b", "name": "n"}),
            (
                client.list_resource_templates,
                "resources/templates/list",
                "resourceTemplates",
                {"uriTemplate": "a://{b}", "name": "n"},
            ),
            (client.list_prompts, "prompts/list", "prompts", {"name": "n", "arguments": [{"name": "x"}]}),
        ):
            listing = asyncio.ensure_future(walk())
            channel.reply(await channel.expect(method), {member: [item]})
            assert (await listing)[0].name == "n"


# --- the cache


async def test_a_page_is_kept_for_as_long_as_the_server_says_and_no_longer():
    clock = FakeClock()
    cache = Cache(now=clock.monotonic)
    async with connected(cache=cache) as (client, channel):
        listing = asyncio.ensure_future(client.list_tools())
        channel.reply(await channel.expect("tools/list"), page("a", cursor="1", ttl=2000))
        channel.reply(await channel.expect("tools/list"), page("b", ttl=1000))
        await listing
        assert len(await client.list_tools()) == 2
        clock.advance(1.5)
        listing = asyncio.ensure_future(client.list_tools())
        request = await channel.expect("tools/list")  # the second page alone
        assert request["params"]["cursor"] == "1"
        channel.reply(request, page("b2", ttl=0))
        assert [tool.name for tool in await listing] == ["a", "b2"]
        listing = asyncio.ensure_future(client.list_tools(fresh=True))
        channel.reply(await channel.expect("tools/list"), page("c", ttl=1000))
        assert [tool.name for tool in await listing] == ["c"]
        assert [tool.name for tool in await client.list_tools()] == ["c"]


@pytest.mark.parametrize("ttl", [0, -5, None, "60000", True, float("inf")])
async def test_without_a_time_to_live_nothing_is_kept(ttl):
    cache = Cache(now=FakeClock().monotonic)
    cache.put("s", "tools/list", None, msgspec.Raw(b"{}"), ttl_ms=ttl)
    if ttl == float("inf"):
        assert len(cache) == 1  # a very long time is a time
    else:
        assert len(cache) == 0


async def test_a_change_notice_drops_what_it_is_about():
    async with connected() as (client, channel):
        for uri in ("file:///a", "file:///b"):
            reading = asyncio.ensure_future(client.read_resource(uri))
            body = {"contents": [{"uri": uri, "text": "x"}], "ttlMs": 60_000, "cacheScope": "private"}
            channel.reply(await channel.expect("resources/read"), body)
            await reading
        sent = len(channel.sent)
        assert (await client.read_resource("file:///a")).contents[0].text == "x"
        assert len(channel.sent) == sent
        channel.notify("notifications/resources/updated", {"uri": "file:///a"})
        reading = asyncio.ensure_future(client.request("x/settled"))
        channel.reply(await channel.expect("x/settled"), {})
        await reading
        await client.read_resource("file:///b")
        assert len(channel.sent) == sent + 1
        reading = asyncio.ensure_future(client.read_resource("file:///a"))
        channel.reply(await channel.expect("resources/read"), {"contents": []})
        await reading


def test_private_results_do_not_cross_authorizations_and_public_ones_do():
    cache = Cache(now=FakeClock().monotonic)
    private, public = msgspec.Raw(b'{"p":1}'), msgspec.Raw(b'{"p":2}')
    cache.put("s", "tools/list", None, private, ttl_ms=1000, scope="private", authorization="alice")
    assert cache.get("s", "tools/list", None, authorization="bob") is None
    assert cache.get("s", "tools/list", None) is None
    cache.put("s", "prompts/list", None, public, ttl_ms=1000, scope="public", authorization="alice")
    assert bytes(cache.get("s", "prompts/list", None, authorization="bob")) == b'{"p":2}'
    assert cache.get("other", "prompts/list", None, authorization="bob") is None


def test_the_cache_is_bounded():
    cache = Cache(entries=2, now=FakeClock().monotonic)
    for uri in "abc":
        cache.put("s", "resources/read", uri, msgspec.Raw(b"{}"), ttl_ms=1000)
    assert [cache.get("s", "resources/read", uri) is not None for uri in "abc"] == [False, True, True]
    nothing = Cache(entries=0, now=FakeClock().monotonic)
    nothing.put("s", "resources/read", "a", msgspec.Raw(b"{}"), ttl_ms=1000)
    assert len(nothing) == 0


# --- mirrored headers


MIRRORED = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "q": {"type": "string"}},
}


async def test_parameters_of_a_known_tool_are_mirrored_in_headers():
    async def respond(exchange):
        if exchange.asks == "tools/list":
            await exchange.result(page(tool("sql", inputSchema=MIRRORED)))
        else:
            await exchange.result(tool_result())

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        await client.list_tools()
        await client.call_tool("sql", {"region": "Zürich", "q": "x"})
        await client.call_tool("sql", {"region": None})
        headers = [e.headers for e in http.exchanges[1:]]
        assert headers[0]["mcp-param-region"] == "=?base64?WsO8cmljaA==?="
        assert "mcp-param-q" not in headers[0]
        assert "mcp-param-region" not in headers[1]


async def test_when_headers_do_not_mirror_the_list_is_refreshed_and_the_call_repeated_once():
    async def respond(exchange):
        if exchange.asks == "tools/list":
            await exchange.result(page(tool("sql", inputSchema=MIRRORED), ttl=60_000))
        elif "mcp-param-region" in exchange.headers:
            await exchange.result(tool_result())
        else:
            await exchange.error(-32020, "Header mismatch", status=400)

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        assert (await client.call_tool("sql", {"region": "eu"})).value == "ok"
        assert http.methods == ["tools/call", "tools/list", "tools/call"]
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("sql", {})
        assert caught.value.code == -32020
        assert http.methods[3:] == ["tools/call", "tools/list", "tools/call"]


async def test_an_argument_that_no_header_can_carry_is_said_before_anything_is_sent():
    schema = {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}

    async def respond(exchange):
        await exchange.result(page(tool("t", inputSchema=schema)))

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        await client.list_tools()
        with pytest.raises(Exception, match="header") as caught:
            await client.call_tool("t", {"n": 2**60})
        assert caught.value.evidence is Evidence.NOT_SENT
        assert len(http.exchanges) == 1


async def test_a_list_that_is_cut_off_is_a_lost_connection_with_what_was_read():
    async with connected() as (client, channel):
        listing = asyncio.ensure_future(client.list_tools())
        channel.reply(await channel.expect("tools/list"), page("a", cursor="1"))
        await channel.expect("tools/list")
        channel.end()
        with pytest.raises(ConnectionLost) as caught:
            await listing
        assert [tool.name for tool in caught.value.partial] == ["a"]


async def test_lists_of_the_handshake_era_are_not_kept():
    async with in_session() as (client, channel):
        for _ in range(2):
            listing = asyncio.ensure_future(client.list_tools())
            channel.reply(await channel.expect("tools/list"), {"tools": [tool("a")]})
            await listing


# --- cursors that are refused, and bounds in bytes


def refusing(pages, *, times):
    """Answers lists from `pages` by cursor, and refuses any cursor for so many times."""
    left = times

    async def respond(exchange):
        nonlocal left
        cursor = exchange.message["params"].get("cursor")
        if cursor is not None and left:
            left -= 1
            await exchange.error(-32602, "Invalid cursor")
        else:
            await exchange.result(pages[cursor])

    return respond


PAGES = {None: page("a", cursor="1"), "1": page("b")}


async def test_a_list_whose_cursor_is_refused_is_read_again_from_its_beginning():
    async with ScriptedHttp(refusing(PAGES, times=2)) as http, fresh(http.url) as client:
        found = await client.list_tools()
        assert [tool.name for tool in found] == ["a", "b"]
        cursors = [exchange.message["params"].get("cursor") for exchange in http.exchanges]
        assert cursors == [None, "1", None, "1", None, "1"]
        assert found.warnings == ()


async def test_a_list_whose_cursors_are_always_refused_fails_with_what_was_read():
    async with ScriptedHttp(refusing(PAGES, times=99)) as http, fresh(http.url, list_restarts=1) as client:
        with pytest.raises(RemoteError) as caught:
            await client.list_tools()
        assert [tool.name for tool in caught.value.partial] == ["a"]
        assert len(http.exchanges) == 4


async def test_what_was_told_before_a_list_began_again_is_not_told_twice():
    async with ScriptedHttp(refusing(PAGES, times=1)) as http, fresh(http.url) as client:
        assert [tool.name async for tool in client.list_tools()] == ["a", "b"]


async def test_a_first_page_that_is_refused_is_not_asked_for_again():
    async def respond(exchange):
        await exchange.error(-32602)

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        with pytest.raises(RemoteError):
            await client.list_tools()
        assert http.methods.count("tools/list") == 1


async def test_pages_are_bounded_together_in_bytes_by_the_name_of_the_limit():
    async with connected(list_bytes=1000) as (client, channel):
        listing = asyncio.ensure_future(client.list_tools())
        channel.reply(await channel.expect("tools/list"), page("a", cursor="1"))
        channel.reply(await channel.expect("tools/list"), page(tool("b", description="x" * 1000)))
        with pytest.raises(CallLimitExceeded, match="list_bytes=1000") as caught:
            await listing
        assert [tool.name for tool in caught.value.partial] == ["a"]


async def test_a_cursor_is_bounded_in_length_by_the_name_of_the_limit():
    async with connected(cursor_bytes=100) as (client, channel):
        listing = asyncio.ensure_future(client.list_tools())
        channel.reply(await channel.expect("tools/list"), page("a", cursor="c" * 101))
        with pytest.raises(CallLimitExceeded, match=r"cursor.*\(101\): cursor_bytes=100") as caught:
            await listing
        assert [tool.name for tool in caught.value.partial] == ["a"]


async def test_what_a_list_warns_of_is_short_whatever_the_server_says():
    found, _ = await listed([page(tool("n" * 10_000), tool("n" * 10_000), cursor={"x": "y" * 10_000})])
    assert len(found.warnings) == 2
    assert all(len(warning) < 300 for warning in found.warnings)


def test_a_cache_is_bounded_in_bytes_and_the_oldest_goes_first():
    cache = Cache(size=100, now=lambda: 0.0)

    def put(key, size):
        cache.put("s", "resources/read", key, msgspec.Raw(b"x" * size), ttl_ms=1000)

    put("a", 40)
    put("b", 40)
    put("b", 50)  # in place of the one before
    assert [cache.get("s", "resources/read", key) is not None for key in "ab"] == [True, True]
    put("c", 20)
    assert [cache.get("s", "resources/read", key) is not None for key in "abc"] == [False, True, True]
    put("d", 101)
    assert [cache.get("s", "resources/read", key) is not None for key in "bcd"] == [True, True, False]
    cache.drop("s", "resources/read")
    put("e", 100)
    assert len(cache) == 1


def test_a_newer_result_takes_the_place_of_an_older_one_also_where_it_is_not_kept():
    cache = Cache(now=lambda: 0.0)
    for scope in ("public", "private"):
        cache.put("s", "resources/read", "a", msgspec.Raw(b"1"), ttl_ms=1000, scope=scope, authorization="alice")
        cache.put("s", "resources/read", "a", msgspec.Raw(b"2"), ttl_ms=0, scope=scope, authorization="alice")
        assert cache.get("s", "resources/read", "a", authorization="alice") is None


# --- a list that is not awaited


@pytest.mark.parametrize("name", ["list_tools", "list_resources", "list_resource_templates", "list_prompts"])
@pytest.mark.parametrize(
    ("use", "said"),
    [
        (list, "iterated"),
        (lambda walk: "a" in walk, "iterated"),
        (len, "counted"),
        (lambda walk: walk[0], "indexed"),
        (bool, "asked whether it holds anything"),
    ],
)
async def test_a_list_that_was_not_awaited_says_what_to_do_where_it_is_used(name, use, said):
    async with connected() as (client, channel):
        with pytest.raises(LocalFault) as caught:
            use(getattr(client, name)())
        assert str(caught.value) == (
            f"a list that was not awaited cannot be {said}: `items = await client.{name}()` reads all of it, and "
            f"`async for item in client.{name}()` item by item"
        )
        assert len(channel.sent) == 1  # the probe


async def test_a_list_that_is_forgotten_warns_as_a_coroutine_does():
    async with connected() as (client, channel):
        with pytest.warns(RuntimeWarning) as warned:
            client.list_tools()
        (warning,) = warned
        assert str(warning.message).startswith("client.list_tools() was never awaited, so the server was not asked")
        assert warning.filename == __file__
        with warnings.catch_warnings(record=True) as more:
            warnings.simplefilter("always")
            iterator = aiter(client.list_tools())
            listing = asyncio.ensure_future(client.list_tools())
            channel.reply(await channel.expect("tools/list"), page("a"))
            await listing
            del iterator, listing
            gc.collect()
        assert more == []
