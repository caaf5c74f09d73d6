"""A client that stays connected while the server behind it is exchanged."""

import asyncio

import msgspec
import pytest

from mcprelay.cli.switchboard import Switchboard
from mcprelay.testing import ScriptedChannel

INITIALIZE = {"protocolVersion": "x", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
FACE = {"capabilities": {"tools": {"listChanged": True}, "resources": {"listChanged": False}, "prompts": {}}}


class Desk:
    """A switchboard, the client in front of it, and what happens behind."""

    def __init__(self) -> None:
        self.client = ScriptedChannel()
        self.ends = 0
        self.over = asyncio.Event()
        self.board = Switchboard(self.client, ended=self._ended)
        self.running = asyncio.create_task(self.board.run())

    def _ended(self) -> None:
        self.ends += 1
        self.over.set()

    async def plug(self, *, grace: float = 0.0) -> ScriptedChannel:
        """A server that starts, and takes over."""
        server = ScriptedChannel()
        plugging = asyncio.create_task(self.board.plug(server, grace=grace))
        server.reply(await server.expect("ping"), {})
        self.plugging = plugging
        return server

    async def exchange(self, **options) -> ScriptedChannel:
        server = await self.plug(**options)
        server.reply(await server.expect("initialize"), FACE)
        return server


@pytest.fixture
async def desk():
    made = Desk()
    yield made
    made.client.end()
    await made.running
    await made.board.aclose()


async def greeted(desk: Desk) -> ScriptedChannel:
    """A server that the client has initialized."""
    server = await desk.plug()
    assert await desk.plugging
    desk.client.call(0, "initialize", INITIALIZE)
    server.reply(await server.expect("initialize"), FACE)
    assert (await desk.client.expect())["result"] == FACE
    desk.client.notify("notifications/initialized")
    await server.expect("notifications/initialized")
    return server


async def test_what_the_client_says_first_waits_until_a_server_has_started(desk):
    desk.client.call(1, "tools/list")
    server = await desk.plug()
    server.reply(await server.expect("tools/list"), {"tools": []})
    assert (await desk.client.expect()) == {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}


async def test_lines_pass_as_they_came_even_those_that_are_no_message(desk):
    server = await desk.plug()
    lines = [b'[{"jsonrpc":"2.0"}]', b"{nonsense", b'{"jsonrpc":"2.0", "id":7,"result":{}}']
    for line in lines:
        desk.client.say(line)
    desk.client.end()
    await desk.running
    assert server.sent[1:] == lines


async def test_a_new_server_learns_what_the_old_one_was_told_and_the_client_looks_again(desk):
    old = await greeted(desk)
    desk.client.call(1, "logging/setLevel", {"level": "debug"})
    desk.client.call(2, "resources/subscribe", {"uri": "a://1"})
    desk.client.call(3, "resources/subscribe", {"uri": "a://2"})
    desk.client.call(4, "resources/unsubscribe", {"uri": "a://1"})
    for _ in range(4):
        old.reply(await old.expect(), {})
        await desk.client.expect()
    new = await desk.exchange()
    await new.expect("notifications/initialized")
    assert (await new.expect("logging/setLevel"))["params"] == {"level": "debug"}
    subscribed = await new.expect("resources/subscribe")
    assert subscribed["params"] == {"uri": "a://2"}
    new.reply(subscribed, {})
    assert await desk.plugging
    assert old.closed
    assert (await desk.client.expect())["method"] == "notifications/tools/list_changed"
    desk.client.call(5, "tools/list")
    new.reply(await new.expect("tools/list"), {"tools": []})
    assert (await desk.client.expect())["id"] == 5, "the repeated answers never reached the client"


async def test_what_a_session_subscribed_to_may_be_different_after_an_exchange(desk):
    old = await greeted(desk)
    desk.client.call(2, "resources/subscribe", {"uri": "a://1"})
    desk.client.call(3, "resources/subscribe", {"uri": 7})
    for _ in range(2):
        old.reply(await old.expect("resources/subscribe"), {})
        await desk.client.expect()
    new = await desk.plug()
    new.reply(await new.expect("initialize"), {"capabilities": {"resources": {"subscribe": True}}})
    assert await desk.plugging
    told = await desk.client.expect("notifications/resources/updated")
    assert told["params"] == {"uri": "a://1"}
    assert len(desk.client.sent) == 4, "and of nothing else"


async def test_a_server_that_does_not_start_leaves_the_old_one_where_it_is(desk):
    old = await greeted(desk)
    broken = ScriptedChannel()
    plugging = asyncio.create_task(desk.board.plug(broken, grace=0.0))
    await broken.expect("ping")
    broken.end()
    assert not await plugging
    assert broken.closed
    refusing = await desk.plug()
    refusing.refuse(await refusing.expect("initialize"), -32602)
    assert not await desk.plugging
    desk.client.call(5, "tools/list")
    await old.expect("tools/list")
    assert desk.ends == 0


async def test_what_was_begun_is_finished_by_the_server_that_began_it(desk):
    old = await greeted(desk)
    desk.client.call(1, "tools/call", {"name": "slow"})
    call = await old.expect("tools/call")
    new = await desk.exchange(grace=5.0)
    await new.expect("notifications/initialized")
    desk.client.call(2, "tools/list")
    await new.expect("tools/list")
    desk.client.notify("notifications/cancelled", {"requestId": 1})
    await old.expect("notifications/cancelled")
    old.call("q", "roots/list")
    question = await desk.client.expect("roots/list")
    desk.client.reply(question, {"roots": []})
    assert (await old.expect())["result"] == {"roots": []}
    assert not desk.plugging.done()
    old.reply(call, {"content": []})
    assert await desk.plugging
    assert old.closed
    assert (await desk.client.expect())["id"] == 1


async def test_a_server_that_owes_two_answers_stays_until_it_has_given_both(desk):
    old = await greeted(desk)
    desk.client.call(1, "tools/call", {"name": "quick"})
    desk.client.call(2, "tools/call", {"name": "slow"})
    quick, slow = await old.expect("tools/call"), await old.expect("tools/call")
    await desk.exchange(grace=3600.0)
    old.reply(quick, {"content": []})
    assert (await desk.client.expect())["id"] == 1
    for _ in range(20):
        await asyncio.sleep(0)
    assert not old.closed
    old.reply(slow, {"content": []})
    assert (await desk.client.expect())["id"] == 2
    assert await desk.plugging


async def test_what_is_not_finished_in_time_is_answered_with_the_reason(desk):
    old = await greeted(desk)
    desk.client.call("a", "tools/call", {"name": "slow"})
    await old.expect("tools/call")
    await desk.exchange()
    assert await desk.plugging
    answer = await desk.client.expect()
    assert answer["id"] == "a"
    assert answer["error"]["message"] == "the server was exchanged before it had answered; ask again"


async def test_when_the_server_is_gone_the_client_is_told_so_until_there_is_another(desk):
    old = await greeted(desk)
    desk.client.call(1, "tools/call", {"name": "crash"})
    await old.expect("tools/call")
    old.exit_code = 3
    old.end()
    assert (await desk.client.expect())["error"]["message"] == "the server exited with code 3"
    assert desk.ends == 1
    desk.client.call(2, "tools/list")
    assert (await desk.client.expect())["error"]["message"] == "the server exited with code 3"
    desk.client.notify("notifications/cancelled", {"requestId": 1})
    new = await desk.exchange()
    assert await desk.plugging
    await desk.client.expect("notifications/tools/list_changed")
    desk.client.call(3, "tools/list")
    await new.expect("notifications/initialized")
    await new.expect("tools/list")


async def test_a_greeting_that_nobody_heard_is_not_repeated(desk):
    broken = ScriptedChannel()
    broken.end()
    assert not await desk.board.plug(broken, grace=0.0)
    desk.client.call(0, "initialize", INITIALIZE)
    assert "did not start" in (await desk.client.expect())["error"]["message"]
    server = await desk.plug()
    assert await desk.plugging, "a server that is not told of an earlier session takes over at once"
    assert [msgspec.json.decode(each)["method"] for each in server.sent] == ["ping"]


async def test_a_client_that_is_gone_is_not_an_error(desk):
    server = await greeted(desk)
    desk.client.end()
    server.notify("notifications/message", {"level": "info", "data": "x"})
    server.end()
    await desk.running
    await desk.over.wait()
    assert not desk.client.sent[2:], "nobody was there to be told"


@pytest.mark.parametrize("params", [b"", b',"params":[]', b',"params":7'])
async def test_a_cancellation_without_sense_goes_to_the_server_that_is_there(desk, params):
    server = await desk.plug()
    desk.client.say(b'{"jsonrpc":"2.0","method":"notifications/cancelled"%b}' % params)
    await server.expect("notifications/cancelled")


@pytest.mark.parametrize("named", [[], {}, 1.5, None])
async def test_names_that_are_none_are_for_the_server_to_refuse(desk, named):
    await greeted(desk)
    desk.client.call(1, "tools/call")
    desk.client.call(2, "resources/subscribe", {"uri": named})
    desk.client.notify("notifications/cancelled", {"requestId": named})
    desk.client.call(3, "resources/unsubscribe", {"uri": named})
    new = await desk.exchange(grace=3600.0)
    await new.expect("notifications/initialized")
    desk.client.notify("notifications/cancelled", {"requestId": named})
    await new.expect("notifications/cancelled")
    desk.client.end()
    await desk.running
    desk.plugging.cancel()


# --------------------------------------------------------------------------- listening by a request (stateless era)

ALL = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["a://1"]}
ID = "io.modelcontextprotocol/subscriptionId"


def acknowledge(server: ScriptedChannel, request_id, honored) -> None:
    server.notify("notifications/subscriptions/acknowledged", {"_meta": {ID: request_id}, "notifications": honored})


async def listened(desk: Desk, request_id="b", honored=ALL) -> ScriptedChannel:
    """A server that tells the client of changes."""
    server = await desk.plug()
    assert await desk.plugging
    desk.client.call(request_id, "subscriptions/listen", {"notifications": ALL})
    await server.expect("subscriptions/listen")
    acknowledge(server, request_id, honored)
    await desk.client.expect("notifications/subscriptions/acknowledged")
    return server


async def marked(desk: Desk, server: ScriptedChannel) -> None:
    """The next thing that the client hears is what this server says now."""
    server.notify("notifications/message", {"level": "info", "data": "mark"})
    await desk.client.expect("notifications/message")


async def test_who_listens_goes_on_listening_to_the_next_server_and_is_told_of_everything_once_it_agreed(desk):
    await listened(desk)
    for _ in range(2):
        new = await desk.plug(grace=3600.0)
        again = await new.expect("subscriptions/listen")
        assert (again["id"], again["params"]) == ("b", {"notifications": ALL})
        assert await desk.plugging, "a stream that is open does not keep a server"
        await marked(desk, new)
        acknowledge(new, "b", ALL | {"resourcesListChanged": True})
        heard = [await desk.client.expect() for _ in range(3)]
        assert {each["method"] for each in heard} == {
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/updated",
        }
        assert all(each["params"]["_meta"] == {ID: "b"} for each in heard)
        assert heard[-1]["params"]["uri"] == "a://1"
    new.notify("notifications/tools/list_changed", {"_meta": {ID: "b"}})
    await desk.client.expect("notifications/tools/list_changed")


async def test_what_an_exchanged_server_says_to_who_listened_is_not_passed_on(desk):
    old = await listened(desk)
    desk.client.call(1, "tools/call")
    call = await old.expect("tools/call")
    new = await desk.plug(grace=3600.0)
    await new.expect("subscriptions/listen")
    acknowledge(old, "b", ALL)
    old.notify("notifications/tools/list_changed", {"_meta": {ID: "b"}})
    old.notify("notifications/cancelled", {"requestId": "b"})
    old.reply({"id": "b"}, {})
    await marked(desk, old)
    old.reply(call, {})
    assert await desk.plugging
    assert (await desk.client.expect())["id"] == 1


async def test_a_server_that_keeps_less_of_the_promise_ends_the_listening_gracefully(desk):
    await listened(desk)
    new = await desk.plug()
    await new.expect("subscriptions/listen")
    acknowledge(new, "b", {"toolsListChanged": True, "resourceSubscriptions": ["a://1"]})
    assert (await desk.client.expect()) == {
        "jsonrpc": "2.0",
        "id": "b",
        "result": {"resultType": "complete", "_meta": {ID: "b"}},
    }
    assert (await new.expect("notifications/cancelled"))["params"] == {"requestId": "b"}
    await listens_no_more(desk)


async def test_an_acknowledgement_that_nobody_got_yet_passes(desk):
    await desk.plug()
    assert await desk.plugging
    desk.client.call("b", "subscriptions/listen", {"notifications": ALL})
    new = await desk.plug()
    await new.expect("subscriptions/listen")
    acknowledge(new, "b", {})
    assert (await desk.client.expect())["params"]["notifications"] == {}


async def listens_no_more(desk: Desk) -> None:
    """The next server is not asked to tell of anything."""
    new = await desk.plug()
    assert await desk.plugging
    desk.client.call(99, "tools/list")
    await new.expect("tools/list")


@pytest.mark.parametrize(
    "ending",
    [
        lambda _desk, server: server.reply({"id": "b"}, {}),
        lambda _desk, server: server.refuse({"id": "b"}, -32601),
        lambda _desk, server: server.notify("notifications/cancelled", {"requestId": "b"}),
        lambda desk, _server: desk.client.notify("notifications/cancelled", {"requestId": "b"}),
    ],
)
async def test_listening_that_was_ended_is_not_begun_again(desk, ending):
    server = await listened(desk)
    ending(desk, server)
    desk.client.call(98, "ping")
    server.reply({"id": 98}, {})
    while (await desk.client.expect()).get("id") != 98:
        pass
    while (await server.expect())["method"] != "ping":
        pass
    await listens_no_more(desk)


async def test_who_listens_to_a_server_that_crashed_listens_to_the_next_one(desk):
    server = await listened(desk)
    server.end()
    await desk.over.wait()
    new = await desk.plug()
    await new.expect("subscriptions/listen")
    assert await desk.plugging
    acknowledge(new, "b", ALL)
    await desk.client.expect("notifications/tools/list_changed")


async def test_a_listening_that_no_server_was_there_for_is_refused_and_over(desk):
    broken = ScriptedChannel()
    broken.end()
    assert not await desk.board.plug(broken, grace=0.0)
    desk.client.call("b", "subscriptions/listen", {"notifications": ALL})
    assert "did not start" in (await desk.client.expect())["error"]["message"]
    await listens_no_more(desk)


@pytest.mark.parametrize(
    "params", [None, {}, {"_meta": {ID: "b"}}, {"_meta": {ID: "b"}, "notifications": 7}, {"_meta": 7}]
)
async def test_acknowledgements_that_cannot_be_read_pass_as_they_came(desk, params):
    server = await listened(desk)
    server.notify("notifications/subscriptions/acknowledged", params)
    assert (await desk.client.expect("notifications/subscriptions/acknowledged")).get("params") == params
