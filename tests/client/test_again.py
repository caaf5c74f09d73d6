"""Listening that begins again over HTTP: what may pass is waited out, so many times in a row; what will not ends it."""

import asyncio

import pytest

from mcprelay import AuthorizationRequired, CallFailed, ConnectFailed, HttpError, RemoteError, ToolsChanged
from mcprelay.client import listening
from mcprelay.testing import ScriptedChannel
from tests.client.peer import DISCOVERED, connected, fresh
from tests.client.scripted_http import ScriptedHttp
from tests.client.test_listening import begun

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class Restarting:
    """A server that cuts a subscription off, and refuses the next ones as a test says before it takes another one."""

    def __init__(self, *refusals):
        self.refusals = list(refusals)
        self.begun = 0
        self.asked = []
        self.holds = asyncio.Event()

    async def __call__(self, exchange):
        if exchange.asks == "server/discover":
            await exchange.result(DISCOVERED)
            return
        loop = asyncio.get_running_loop()
        self.asked.append(loop.time())
        if self.begun and self.refusals:
            await self.refusals.pop(0)(exchange)
            return
        self.begun += 1
        number = exchange.message["id"]
        honored = {"_meta": {SUBSCRIPTION: number}, "notifications": {"toolsListChanged": True}}
        await exchange.stream()
        await exchange.event(
            {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": honored}
        )
        if self.begun == 1:
            exchange.cut()
        else:
            self.holds.set()
            await exchange.left()


def status(code, **headers):
    """A refusal with a status."""

    async def refuse(exchange):
        await exchange.reply(code, b"no", headers={name.replace("_", "-"): value for name, value in headers.items()})

    return refuse


async def cut(exchange):
    exchange.cut()


async def busy(exchange):
    """A refusal that is JSON-RPC, with a status that says that it may pass."""
    await exchange.error(-32603, "starting", status=503)


@pytest.fixture
def haste(monkeypatch):
    """No wait between two attempts."""
    monkeypatch.setattr(listening.AGAIN.__class__, "wait", lambda self, attempt, error: 0.0)


async def failure_of(events):
    with pytest.raises(CallFailed) as caught:
        async with asyncio.timeout(10):
            await anext(events)
    return caught.value


@pytest.mark.parametrize("refusal", [*map(status, (429, 502, 503, 504)), cut, busy])
async def test_what_may_pass_while_a_server_starts_anew_is_tried_again(haste, refusal):
    server = Restarting(refusal, refusal, refusal)
    async with ScriptedHttp(server) as http, fresh(http.url) as client:
        async with client.listen(tools=True, reconnect=True) as events:
            assert await anext(events) == ToolsChanged()
            assert not events.ended
        assert len(server.asked) == 5


async def test_a_server_that_is_away_for_a_while_is_listened_to_again(haste):
    server = Restarting()
    async with ScriptedHttp(server) as http, fresh(http.url, reconnections=1_000_000) as client:
        port = http.port
        async with client.listen(tools=True, reconnect=True) as events:
            http._server.close()
            http._server = await asyncio.start_server(http._serve, "127.0.0.1", port)
            assert await anext(events) == ToolsChanged()


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (status(400), HttpError),
        (status(401), AuthorizationRequired),
        (status(403), HttpError),
        (status(404), HttpError),
        (status(410), HttpError),
        (lambda exchange: exchange.error(-32601, "no such method"), RemoteError),
    ],
)
async def test_what_will_not_pass_ends_it(haste, refusal, kind):
    server = Restarting(refusal)
    async with ScriptedHttp(server) as http, fresh(http.url) as client:
        async with client.listen(tools=True, reconnect=True) as events:
            assert isinstance(await failure_of(events), kind)
        assert len(server.asked) == 2


async def test_it_is_not_tried_for_ever_and_the_setting_says_its_name(haste):
    server = Restarting(*[status(503)] * 100)
    async with ScriptedHttp(server) as http, fresh(http.url, reconnections=3) as client:
        async with client.listen(tools=True, reconnect=True) as events:
            error = await failure_of(events)
        assert isinstance(error, HttpError)
        assert error.status == 503
        assert str(error).endswith("; it was tried again 3 times in a row: reconnections=3")
        assert len(server.asked) == 4


async def test_a_server_that_does_not_come_back_is_given_up(haste):
    async with ScriptedHttp(Restarting()) as http, fresh(http.url, reconnections=2) as client:
        async with client.listen(tools=True, reconnect=True) as events:
            http._server.close()
            error = await failure_of(events)
        assert isinstance(error, ConnectFailed)
        assert "reconnections=2" in str(error)


@pytest.mark.parametrize("options", [{"reconnect": False}, {"reconnect": True}])
async def test_where_nobody_wants_it_or_no_reconnection_is_allowed_the_first_loss_ends_it(options):
    server = Restarting()
    async with ScriptedHttp(server) as http, fresh(http.url, reconnections=0) as client:
        async with client.listen(tools=True, **options) as events:
            error = await failure_of(events)
        assert ("reconnections=0" in str(error)) is options["reconnect"]
        assert len(server.asked) == 1


async def test_a_refusal_before_the_server_ever_agreed_is_told_at_once():
    async with ScriptedHttp(status(503)) as http, fresh(http.url) as client:
        with pytest.raises(CallFailed):
            await client.listen(tools=True, reconnect=True).__aenter__()
        assert len(http.exchanges) <= 2


async def test_the_time_that_a_server_asks_for_is_waited_and_no_time_for_ever(clock):
    asked = [status(503, retry_after="100"), status(503, retry_after="999999999999")]
    server = Restarting(*asked)
    async with ScriptedHttp(server) as http, fresh(http.url, request_timeout=1e6, connect_timeout=1e6) as client:
        async with client.listen(tools=True, reconnect=True):
            for _ in range(100_000):
                if server.holds.is_set():
                    break
                await clock.advance(0.5)
        first, second, third, fourth = server.asked
        assert second - first < 5
        assert 100 <= third - second < 110
        assert 600 <= fourth - third < 610


async def test_a_channel_that_cannot_be_opened_again_is_told_at_once():
    channel = ScriptedChannel()
    async with connected(channel) as (client, _):
        events, _ = await begun(client, channel, tools=True, reconnect=True)
        channel.end()
        error = await failure_of(events)
        assert "reconnections" not in str(error)


def lasting(seconds):
    """A subscription that is agreed to, and ended by its result after a while."""

    async def agree(exchange):
        number = exchange.message["id"]
        params = {"_meta": {SUBSCRIPTION: number}, "notifications": {"toolsListChanged": True}}
        await exchange.stream()
        await exchange.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
        await asyncio.sleep(seconds)
        await exchange.event({"jsonrpc": "2.0", "id": number, "result": {"resultType": "complete"}})
        await exchange.end()

    return agree


graceful = lasting(0)


async def test_a_graceful_end_is_listened_to_again_where_that_was_asked_for(haste):
    server = Restarting(graceful, graceful)
    async with ScriptedHttp(server) as http, fresh(http.url) as client:
        async with client.listen(tools=True, reconnect=True) as events:
            await asyncio.wait_for(server.holds.wait(), 10)
            assert await anext(events) == ToolsChanged()
            assert not events.ended


async def test_a_server_that_ends_every_subscription_at_once_is_given_up(clock):
    server = Restarting(*[graceful] * 100)
    async with ScriptedHttp(server) as http, fresh(http.url, reconnections=3) as client:
        async with client.listen(tools=True, reconnect=True) as events:
            for _ in range(1000):
                if events._over:
                    break
                await clock.advance(0.25)
            assert await anext(events) == ToolsChanged()
            assert "reconnections=3" in str(await failure_of(events))
        assert len(server.asked) == 4


async def test_a_server_whose_subscriptions_last_is_listened_to_for_ever(clock):
    server = Restarting(*[lasting(60)] * 6)
    async with ScriptedHttp(server) as http, fresh(http.url, reconnections=1) as client:
        async with client.listen(tools=True, reconnect=True) as events:
            for _ in range(1000):
                if server.holds.is_set() or events._over:
                    break
                await clock.advance(1.0)
            assert await anext(events) == ToolsChanged()
            assert not events._over
        assert len(server.asked) == 8
