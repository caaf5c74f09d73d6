"""How fresh a list has to be at a call, how often a token is asked for, and which connections are kept for tokens."""

import asyncio

import pytest

from mcprelay import Context, Server
from mcprelay.relay import Relay, allow
from mcprelay.relay.dial import has_secrets
from mcprelay.relay.settings import Secret, ServerSettings
from mcprelay.testing import FakeClock
from tests.relay.far import SEARCH, Far, servers


def listed(far):
    return len(far.of("tools/list"))


async def called(tools, times=1):
    for _ in range(times):
        assert not (await tools["far__search"](q="x")).failed


async def test_a_list_that_the_server_calls_stale_is_asked_for_again_at_each_call():
    far = Far(SEARCH, ttl_ms=0)
    async with Relay(servers=servers(far=far)) as relay:
        tools = await relay.tools()
        await called(tools, times=2)
    assert listed(far) == 3


async def test_a_list_stands_for_as_long_as_the_settings_say_whatever_the_server_says():
    far, clock = Far(SEARCH, ttl_ms=0), FakeClock()
    one = {**servers(far=far)["far"], "cache": 5}
    async with Relay(servers={"far": one}, clock=clock.time) as relay:
        tools = await relay.tools()
        await called(tools, times=3)
        assert listed(far) == 1
        clock.advance(6)
        await called(tools)
    assert listed(far) == 2


async def test_calls_of_one_moment_ask_for_a_stale_list_once():
    far = Far(SEARCH, ttl_ms=0)
    async with Relay(servers=servers(far=far)) as relay:
        tools = await relay.tools()
        await asyncio.gather(*(called(tools) for _ in range(10)))
    assert listed(far) == 2


async def test_a_list_that_came_while_changes_are_heard_stands_until_a_notice():
    near = Server("near", ttl_ms=0)

    @near.tool
    def search(q: str) -> str:
        """Search."""
        return q

    async with Relay(servers={"near": {"target": near, "allow": "*"}}) as relay:
        tools = await relay.tools()
        [station] = relay._stations._open.values()
        while not station._hears:  # noqa: ASYNC110 - listening begins beside the list
            await asyncio.sleep(0)
        for _ in range(2):
            await tools["near__search"](q="x")
        asked = station._answers
        await tools["near__search"](q="x")
        assert station._answers == asked
        near.add_tool(search, name="another")
        while station.recent is not None:  # noqa: ASYNC110 - the notice comes beside the calls
            await asyncio.sleep(0)
        await tools["near__search"](q="x")
        assert station._answers == asked + 1


@pytest.fixture
async def shop():
    seen = []
    server = Server("shop", context=lambda request: seen.append(request.headers.get("authorization")), ttl_ms=60_000)

    @server.tool
    def whoami(ctx: Context) -> str:
        """Say who calls."""
        return "you"

    async with server.serve("http", host="127.0.0.1", port=0) as running:
        yield {"url": running.url, "allow": "*"}


class Tokens:
    """Another token each time."""

    def __init__(self):
        self.given = 0

    def __call__(self):
        self.given += 1
        return f"t{self.given}"


async def test_a_token_is_asked_for_once_for_a_call_that_a_quick_gate_lets_pass(shop):
    tokens = Tokens()
    async with Relay(servers={"shop": shop}, gate=lambda call: allow()) as relay:
        tools = await relay.with_token(tokens).tools()
        assert tokens.given == 1
        await tools["shop__whoami"]()
    assert tokens.given == 2


async def test_a_token_is_asked_for_again_after_a_gate_that_took_longer_than_tokens_may_last(shop):
    tokens, clock = Tokens(), FakeClock()

    def slow(call):
        clock.advance(11)
        return True

    async with Relay(servers={"shop": shop}, gate=slow, clock=clock.time) as relay:
        tools = await relay.with_token(tokens).tools()
        await tools["shop__whoami"]()
    assert tokens.given == 3


async def test_connections_of_tokens_that_are_given_no_more_are_closed(shop):
    clock = FakeClock()
    async with Relay(servers={"shop": shop}, clock=clock.time) as relay:
        view = relay.with_token(Tokens())
        for _ in range(20):
            await view.tools()
        kept = relay._stations._open
        assert len(kept) == 8
        stations = list(kept.values())
        clock.advance(301)
        await view.tools()
        assert len(kept) == 1
        assert all(station.closed for station in stations)


async def test_a_connection_that_is_in_use_is_not_closed_for_another_token(shop):
    async with Relay(servers={"shop": shop}) as relay:
        view = relay.with_token(Tokens())
        await view.tools()
        [used] = relay._stations._open.values()
        assert used._turns.take()
        for _ in range(20):
            await view.tools()
        assert not used.closed


@pytest.mark.parametrize(
    ("settings", "secret"),
    [
        ({"url": "https://x/mcp"}, False),
        ({"url": "https://x/mcp?key=1"}, True),
        ({"url": "https://x/mcp", "headers": {"X-Key": Secret("1")}}, True),
        ({"url": "https://x/mcp", "token": Secret("1")}, True),
        ({"command": ("x",)}, False),
        ({"command": ("x",), "inherit": ("KEY",)}, True),
    ],
)
def test_what_says_who_calls_makes_a_list_private(settings, secret):
    assert has_secrets(ServerSettings(name="s", transport="http", **settings)) is secret


async def test_what_was_got_with_a_users_token_is_private(shop):
    async with Relay(servers={"shop": shop}) as relay:
        await relay.with_token("ann").tools()
        [station] = relay._stations._open.values()
        assert station._secret
        assert station._last.private
