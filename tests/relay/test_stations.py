"""What a connection is shared by, and what becomes of a call whose token is late, wrong or not to be had."""

import asyncio

import pytest

from mcprelay import Context, Server
from mcprelay.errors import RemoteError
from mcprelay.relay import Relay, SettingWrong, TokenFailed
from mcprelay.relay.errand import WaitCancelled
from mcprelay.relay.settings import Secret
from mcprelay.relay.station import Station
from mcprelay.relay.stations import resolved
from mcprelay.testing import FakeClock
from tests.relay.far import Far, servers, settle


@pytest.fixture
async def shop():
    server = Server("shop", context=lambda request: None, instructions="Be kind.", ttl_ms=60_000)

    @server.tool
    def whoami(ctx: Context) -> str:
        """Say who calls."""
        return "you"

    async with server.serve("http", host="127.0.0.1", port=0) as running:
        yield {"url": running.url, "allow": "*", "prompts": "*", "resources": "*", "instructions": True}


class Tokens:
    """Gives what a test says."""

    def __init__(self):
        self.give = lambda: "ann"

    def __call__(self):
        return self.give()


async def never():
    await asyncio.Event().wait()


def broken():
    raise RemoteError(1, "secret words")


def at_once():
    raise asyncio.CancelledError


async def cancelled():
    other = asyncio.ensure_future(never())
    other.cancel()
    await other


@pytest.mark.parametrize("other", [{"timeout": 0.05}, {"limits": {"calls": 1}}, {"cache": 0}])
async def test_settings_beside_a_name_hold_though_the_server_is_connected_under_others(other):
    far = Far(ttl_ms=60_000)
    one = servers(far=far)["far"]
    async with Relay(servers={"far": one}) as relay:
        await relay.tools()
        tools = await relay.tools("far", {**one, **other})
        settings = (await tools["far__search"]._post.reached()).station.settings
        assert (settings.timeout, settings.limits.calls, settings.cache) == (
            other.get("timeout", 30),
            other.get("limits", {}).get("calls", 32),
            other.get("cache"),
        )
        await relay.tools("far", {**one, **other})
    assert len(far.of("tools/list")) == (3 if "cache" in other else 1)


async def test_settings_beside_a_name_that_are_the_same_share_a_connection():
    far = Far()
    one = servers(far=far)["far"]
    async with Relay(servers={"far": one}) as relay:
        await relay.tools()
        await relay.tools("far", {**one, "allow": ["search"], "prefix": "x"})
    assert far.connects == 1


@pytest.mark.parametrize(
    ("give", "says", "cause"),
    [
        (never, "gave none within timeout=0.05", type(None)),
        (broken, "raised RemoteError", RemoteError),
        (cancelled, "raised WaitCancelled", WaitCancelled),
        (at_once, "raised WaitCancelled", WaitCancelled),
    ],
)
async def test_a_token_that_cannot_be_had_is_words_for_the_model_and_an_error_of_the_relay(shop, give, says, cause):
    tokens = Tokens()
    brief = {**shop, "timeout": 0.05}
    async with Relay(servers={"shop": shop}) as relay:
        user = relay.with_token(tokens)
        await user.tools()  # the list is kept, so nothing else has to come in so short a time
        tools = await user.tools("shop", brief)
        tokens.give = give
        framed = await tools["shop__whoami"]()
        assert (framed.code, framed.withheld) == ("token", "token")
        assert framed.text.startswith("This application has no token for the server now. Nothing was sent")
        with pytest.raises(TokenFailed, match=says) as failed:
            framed.require()
        assert isinstance(failed.value.__cause__, cause)
        with pytest.raises(TokenFailed, match=says):
            await user.tools("shop", brief)
    assert not asyncio.current_task().cancelling()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (None, "gave NoneType, and no token"),
        ("", "gave an empty text"),
        (b"SECRET", "gave bytes, and no token"),
        ({"access_token": "SECRET"}, "gave dict, and no token"),
        ("Bearer SECRET", "gave a text with a character that no token has"),
    ],
)
async def test_a_function_that_gives_no_token_fails_the_call_and_not_the_application(shop, wrong, says):
    tokens = Tokens()
    async with Relay(servers={"shop": shop}) as relay:
        tools = await relay.with_token(tokens).tools("shop")
        tokens.give = lambda: wrong
        framed = await tools["shop__whoami"]()
        assert (framed.code, framed.withheld) == ("token", "token")
        assert framed.text == (
            "This application has no token for the server now. Nothing was sent, so the call can be made again."
        )
        with pytest.raises(TokenFailed) as failed:
            framed.require()
        assert str(failed.value) == (
            f"shop__whoami: the function that is the token of the server 'shop' {says}, so nothing was sent; it gives"
            " the bearer token alone, as a text, or raises where there is none"
        )
        assert failed.value.server == "shop"
        with pytest.raises(TokenFailed, match=says):
            await relay.with_token(tokens).tools("shop")


async def test_without_a_token_what_is_read_is_words_for_the_model_too(shop):
    async with Relay(servers={"shop": shop}) as relay:
        user = relay.with_token(broken)
        assert (await user.read("shop", "a:b")).code == "token"
        assert (await user.instructions("shop")).code == "token"
        [message] = await user.prompt("shop", "p")
        assert message.framed.code == "token"


async def test_a_call_that_is_given_up_while_its_token_is_asked_for_is_cancelled(shop):
    tokens, asked = Tokens(), asyncio.Event()

    def giving_up():
        asyncio.current_task().cancel()
        raise asyncio.CancelledError

    async def waiting():
        asked.set()
        await never()

    async with Relay(servers={"shop": shop}) as relay:
        tools = await relay.with_token(tokens).tools("shop")
        for tokens.give in (waiting, giving_up):
            task = asyncio.ensure_future(tools["shop__whoami"]())
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


async def test_the_time_that_a_token_takes_is_a_part_of_the_time_of_its_call(shop, monkeypatch):
    tokens, clock, left = Tokens(), FakeClock(), []

    def passing():
        clock.advance(3)
        return "ann"

    async def refuse(*_, timeout):
        left.append(timeout)
        raise RemoteError(1, "no")

    async with Relay(servers={"shop": {**shop, "timeout": 5}}, gate=lambda call: True) as relay:
        tools = await relay.with_token(tokens).tools("shop")
        [station] = relay._stations._open.values()
        monkeypatch.setattr(station._client, "try_call_tool", refuse)
        with monkeypatch.context() as patched:
            patched.setattr(asyncio.get_running_loop(), "time", clock.monotonic)
            tokens.give = passing
            assert (await tools["shop__whoami"]()).code == "tool_failed"
        assert left == [2]


async def test_a_token_that_comes_when_the_time_of_the_call_is_over_is_too_late(monkeypatch):
    clock = FakeClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.monotonic)

    def late():
        clock.advance(5)
        return "ann"

    with pytest.raises(TokenFailed, match="gave none within timeout=5"):
        await resolved(late, server="shop", timeout=5)


class Crowd:
    """A server that answers calls, or lists its tools, once so many wait for it."""

    def __init__(self, waiting):
        self.waiting = waiting
        self.let_go = asyncio.Event()
        self.server = Server("crowd", context=lambda request: None, ttl_ms=60_000)

        @self.server.tool
        async def hold() -> str:
            """Hold on."""
            await self.meet()
            return "held"

    async def meet(self):
        self.waiting -= 1
        if not self.waiting:
            self.let_go.set()
        await self.let_go.wait()


@pytest.fixture
async def crowd():
    made = Crowd(6)
    async with made.server.serve("http", host="127.0.0.1", port=0) as running:
        yield made, {"crowd": {"url": running.url, "allow": "*"}}


async def test_as_many_are_open_as_are_busy_and_no_more_than_the_setting_says_once_they_are_not(crowd):
    made, servers = crowd
    async with Relay(servers=servers, connections=2) as relay:
        sets = [await relay.with_token(f"user-{number}").tools() for number in range(6)]
        assert len(relay._stations._open) == 2
        calls = [asyncio.ensure_future(tools["crowd__hold"]()) for tools in sets]
        await made.let_go.wait()
        assert len(relay._stations._open) == 6
        assert [framed.failed for framed in await asyncio.gather(*calls)] == [False] * 6
        await settle()
        assert [station.closed for station in relay._stations._open.values()] == [False] * 2
        assert not (await sets[0]["crowd__hold"]()).failed  # one that was closed is opened again
        assert len(relay._stations._open) == 2


async def test_no_more_stay_open_than_the_setting_says_after_many_have_listed_at_once(crowd):
    _, servers = crowd
    async with Relay(servers=servers, connections=1) as relay:
        await asyncio.gather(*(relay.with_token(f"user-{number}").tools() for number in range(5)))
        await settle()
        assert len(relay._stations._open) == 1


async def test_a_connection_is_not_idle_between_two_who_ask_for_its_list_one_after_the_other(shop, monkeypatch):
    async with Relay(servers={"shop": {**shop, "cache": 0}}) as relay:
        await relay.tools()
        [station] = relay._stations._open.values()
        busy = []
        monkeypatch.setattr(station, "_rested", lambda one: busy.append(one.busy))
        await asyncio.gather(station.listed(), station.listed())
        assert busy == [True, False]


@pytest.mark.parametrize("connections", [1, 256])
async def test_nobody_waits_until_a_connection_that_is_not_needed_any_more_is_closed(shop, monkeypatch, connections):
    go, given, aclose = asyncio.Event(), iter("abc"), Station.aclose

    async def slowly(self):
        await go.wait()
        await aclose(self)

    monkeypatch.setattr(Station, "aclose", slowly)
    monkeypatch.setattr("mcprelay.relay.stations._SPARE", 1)
    async with Relay(servers={"shop": shop}, connections=connections) as relay, asyncio.timeout(20):
        user = relay.with_token(lambda: next(given))
        await user.tools()
        [first] = relay._stations._open.values()
        try:
            assert not (await (await user.tools())["shop__whoami"]()).failed
        finally:
            go.set()
        assert first.closed
        assert len(relay._stations._open) == 1


async def test_a_call_that_asks_for_its_list_anew_is_not_cut_where_there_are_too_many_connections(crowd):
    made, servers = crowd
    made.waiting = 2
    async with Relay(servers={"crowd": {**servers["crowd"], "cache": 0}}, connections=1) as relay:
        sets = [await relay.with_token(f"user-{number}").tools() for number in range(2)]
        framed = await asyncio.gather(*(tools["crowd__hold"]() for tools in sets))
        assert [(one.failed, one.local) for one in framed] == [(False, "")] * 2


async def test_a_relay_that_was_closed_while_a_token_was_asked_for_opens_nothing(shop):
    asked, go = asyncio.Event(), asyncio.Event()

    async def slow():
        asked.set()
        await go.wait()
        return "ann"

    async with Relay(servers={"shop": shop}) as relay:
        listing = asyncio.ensure_future(relay.with_token(slow).tools())
        await asked.wait()
    go.set()
    with pytest.raises(SettingWrong, match="the relay is closed"):
        await listing
    assert not relay._stations._open


async def test_a_relay_that_closes_waits_for_what_it_closes_already(crowd, monkeypatch):
    go, waiting, aclose = asyncio.Event(), asyncio.Event(), Station.aclose

    async def slowly(self):
        waiting.set()
        await go.wait()
        await aclose(self)

    made, servers = crowd
    async with Relay(servers=servers, connections=1) as relay:
        sets = [await relay.with_token(f"user-{number}").tools() for number in range(6)]
        calls = [asyncio.ensure_future(tools["crowd__hold"]()) for tools in sets]
        await made.let_go.wait()  # all of them are busy
        monkeypatch.setattr(Station, "aclose", slowly)
        await asyncio.gather(*calls)
        await waiting.wait()
        monkeypatch.setattr(Station, "aclose", aclose)  # of the one that is left
        closing = asyncio.ensure_future(relay.aclose())
        await settle()
        assert not closing.done()
        go.set()
        await closing
        assert not relay._stations._closing


@pytest.mark.parametrize("wrong", ["\ud800", "a b", "ä", "a\r\nX: b"])
async def test_a_token_that_no_header_can_carry_is_a_mistake_wherever_it_comes_from(shop, wrong):
    async with Relay(servers={"shop": shop}) as relay:
        for made in (lambda: relay.with_token(wrong), lambda: relay.with_token(Secret(wrong))):
            with pytest.raises(SettingWrong, match="a character that no token has"):
                made()
        with pytest.raises(TokenFailed, match="a character that no token has"):
            await relay.with_token(lambda: wrong).tools("shop")
        with pytest.raises(SettingWrong, match="empty"):
            relay.with_token(Secret(""))
