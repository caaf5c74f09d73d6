"""The session of a channel: begun once, told of every change from its first moment, closed within bounds."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from mcprelay import Limits, Server, revisions
from mcprelay.errors import ProtocolError
from mcprelay.revisions import Era, Feature
from mcprelay.server.connection import Connection
from tests.server.wire import INFO, notification, request

HANDSHAKE = [revision.name for revision in revisions.of_era(Era.HANDSHAKE)]
BATCHING = next(name for name in HANDSHAKE if revisions.ALL[name].has(Feature.BATCH))
INITIALIZED = notification("notifications/initialized")


class Script:
    """A channel whose incoming messages are all there at once, as they are in one read of a pipe."""

    def __init__(self, *messages: Any, open_ended: bool = False) -> None:
        self.incoming: asyncio.Queue[bytes] = asyncio.Queue()
        self.sent: asyncio.Queue[Any] = asyncio.Queue()
        for message in messages:
            self.incoming.put_nowait(json.dumps(message).encode())
        if not open_ended:
            self.incoming.put_nowait(b"")

    def say(self, message: Any) -> None:
        self.incoming.put_nowait(json.dumps(message).encode())

    async def receive(self) -> bytes:
        return await self.incoming.get()

    async def send(self, data: bytes) -> None:
        self.sent.put_nowait(json.loads(data))

    async def aclose(self) -> None:
        self.incoming.put_nowait(b"")

    async def hear(self) -> Any:
        async with asyncio.timeout(5):
            return await self.sent.get()

    async def ask(self, method: str, params: Any = None, *, id: Any = 1) -> Any:
        """The answer to a request, after whatever else is said before it."""
        self.say(request(method, params, id=id))
        while True:
            heard = await self.hear()
            if not isinstance(heard, dict) or "method" not in heard:
                return heard


def hello(revision: str, id: Any = "hello") -> Any:
    return request("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": INFO}, id=id)


def build(**options: Any) -> Server:
    server = Server("channel", **options)

    @server.tool
    def change() -> str:
        @server.tool(name=f"new-{len(server.catalog.tools.keys)}")
        def new() -> None:
            """Be new."""

        return "changed"

    return server


def served(server: Server, channel: Any) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(server.serve_channel(channel))


async def end(channel: Script, serving: asyncio.Task[None]) -> list[Any]:
    """End a channel, and what was sent that nobody heard yet."""
    channel.incoming.put_nowait(b"")
    async with asyncio.timeout(5):
        await serving
    return [channel.sent.get_nowait() for _ in range(channel.sent.qsize())]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_change_in_the_same_read_as_the_end_of_the_handshake_is_told(revision: str) -> None:
    call = request("tools/call", {"name": "change"}, id=2)
    channel = Script(hello(revision), INITIALIZED, call, open_ended=True)
    serving = served(build(), channel)
    heard = [await channel.hear() for _ in range(3)]
    assert "notifications/tools/list_changed" in [message.get("method") for message in heard]
    assert await end(channel, serving) == []


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_second_initialize_is_refused_and_the_session_goes_on_as_it_was(revision: str) -> None:
    other = next(name for name in HANDSHAKE if name != revision)
    channel = Script(hello(revision), INITIALIZED, open_ended=True)
    serving = served(build(), channel)
    assert (await channel.hear())["result"]["protocolVersion"] == revision
    channel.say(hello(other, id="again"))
    refused = await channel.hear()
    assert (refused["id"], refused["error"]["code"]) == ("again", -32600)
    assert f"begun already, in revision {revision}" in refused["error"]["message"]
    channel.say(INITIALIZED)
    channel.say(request("tools/call", {"name": "change"}, id=3))
    heard = [await channel.hear() for _ in range(2)]
    assert sorted(message.get("method", "answer") for message in heard) == [
        "answer",
        "notifications/tools/list_changed",
    ]
    assert await end(channel, serving) == [], "each change is told once"


async def test_two_initializes_in_one_read_begin_one_session() -> None:
    channel = Script(hello(HANDSHAKE[0], id=1), hello(HANDSHAKE[1], id=2), open_ended=True)
    serving = served(build(), channel)
    first, second = await channel.hear(), await channel.hear()
    assert first["result"]["protocolVersion"] == HANDSHAKE[0]
    assert second["error"]["code"] == -32600
    await end(channel, serving)


async def test_an_initialize_in_a_batch_is_refused_and_the_rest_of_the_batch_is_not() -> None:
    other = next(name for name in HANDSHAKE if name != BATCHING)
    channel = Script(hello(BATCHING), INITIALIZED, open_ended=True)
    serving = served(build(), channel)
    await channel.hear()
    channel.say([request("ping", id="a"), hello(other, id="b")])
    answers = {answer["id"]: answer for answer in await channel.hear()}
    assert answers["a"]["result"] == {}
    assert answers["b"]["error"]["message"] == "Invalid request: initialize is not part of a batch"
    channel.say([request("ping", id="c")])
    assert [answer["id"] for answer in await channel.hear()] == ["c"], "the revision is still the one that has batches"
    await end(channel, serving)


async def test_an_initialize_that_failed_may_be_repeated_in_another_revision() -> None:
    server, refusals = build(), ["not yet"]

    @server.middleware
    async def slow_to_wake(call: Any, call_next: Any) -> Any:
        if call.method.name == "initialize" and refusals:
            raise ProtocolError(-32000, refusals.pop())
        return await call_next(call)

    channel = Script(hello(HANDSHAKE[0]), open_ended=True)
    serving = served(server, channel)
    assert (await channel.hear())["error"]["message"] == "not yet"
    channel.say(hello(HANDSHAKE[1]))
    assert (await channel.hear())["result"]["protocolVersion"] == HANDSHAKE[1]
    await end(channel, serving)


async def test_a_session_that_ends_before_it_is_told_anything_leaves_no_listener() -> None:
    server = build()
    channel = Script(hello(HANDSHAKE[0]), INITIALIZED)
    async with asyncio.timeout(5):
        await server.serve_channel(channel)
    assert len(server.changes) == 0


class ClosesNever(Script):
    """A user's channel whose `aclose` does not return."""

    def __init__(self, *messages: Any, open_ended: bool = False) -> None:
        super().__init__(*messages, open_ended=open_ended)
        self.closing = asyncio.Event()

    async def aclose(self) -> None:
        self.closing.set()
        await asyncio.get_running_loop().create_future()


class ClosesBadly(Script):
    async def aclose(self) -> None:
        raise OSError("already gone")


async def test_a_channel_that_does_not_close_is_left_behind_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = ClosesNever()
    with caplog.at_level(logging.WARNING, "mcprelay.server"):
        async with asyncio.timeout(5):
            await build(limits=Limits(cancel_grace=0.01)).serve_channel(channel)
    assert channel.closing.is_set()
    assert "its aclose() took longer than cancel_grace=0.01 s" in caplog.text
    assert "ClosesNever" in caplog.text


async def test_a_channel_that_cannot_be_closed_does_not_break_its_server(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "mcprelay.server"):
        await build().serve_channel(ClosesBadly())
    assert "could not be closed" in caplog.text


async def test_serving_that_is_cancelled_while_it_closes_waits_no_longer() -> None:
    server, channel = build(limits=Limits(cancel_grace=60)), ClosesNever(open_ended=True)
    async with server.life.held():
        serving = asyncio.get_running_loop().create_task(Connection(server, channel).serve())
        channel.incoming.put_nowait(b"")
        async with asyncio.timeout(5):
            await channel.closing.wait()
            serving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await serving
