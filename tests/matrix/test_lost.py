"""What a client does when something of its server is lost: the session, a stream, the whole connection."""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from mcprelay import Client, ConnectionLost, Context, Evidence, Server, ToolsChanged, revisions
from mcprelay.client.http import HttpSender
from mcprelay.client.memory import Memory
from mcprelay.ports import Reply, Request
from mcprelay.revisions import Revision
from tests.matrix.house import make
from tests.matrix.own_channel import Serving
from tests.matrix.tape import Tape, TapedChannel, TapedSender

WITH_SESSIONS = [one for one in revisions.ALL.values() if one.http.sessions and one.http.streamable]
RESUMABLE = [one for one in WITH_SESSIONS if one.http.resumable]


def by_name(revision: Revision) -> str:
    return revision.name


class Wayward:
    """An HTTP client whose handshakes wait for `gate`, and one of whose streams can be cut after its first event."""

    def __init__(self) -> None:
        self._sender = HttpSender()
        self.gate = asyncio.Event()
        self.gate.set()
        self.greeted = asyncio.Event()
        self.cutting = False
        self.cuts = 0
        self.came_back = asyncio.Event()

    @contextlib.asynccontextmanager
    async def send(self, request: Request) -> AsyncGenerator[Reply]:
        """See `Sender`."""
        if b'"initialize"' in (request.body or b""):
            self.greeted.set()
            await self.gate.wait()
        if "Last-Event-ID" in dict(request.headers):
            self.came_back.set()
        async with self._sender.send(request) as reply:
            yield Cut(reply, self) if self.cutting else reply

    async def aclose(self) -> None:
        """See `Sender`."""
        await self._sender.aclose()


class Cut:
    """A reply whose stream is cut after the first event that has an id."""

    def __init__(self, reply: Reply, sender: Wayward) -> None:
        self._reply = reply
        self._sender = sender
        self.status = reply.status
        self.headers = reply.headers

    async def read(self, limit: int) -> bytes:
        """See `Reply`."""
        return await self._reply.read(limit)

    async def chunks(self) -> AsyncIterator[bytes]:
        """See `Reply`."""
        async for chunk in self._reply.chunks():
            first = re.match(rb"(?s).*?id: .*?\n\n", chunk) if self._sender.cutting else None
            if first is None:
                yield chunk
                continue
            self._sender.cutting = False
            self._sender.cuts += 1
            yield first[0]
            raise ConnectionLost("the wire was cut", evidence=Evidence.MAYBE_SENT)


@contextlib.asynccontextmanager
async def visited(revision: Revision, server: Server) -> AsyncGenerator[tuple[Client, Wayward, Tape]]:
    """A client of a server over HTTP; afterwards everything that passed must be what the schemas describe."""
    tape = Tape(revision.name)
    sender = Wayward()
    options: dict[str, Any] = {"revision": revision.name, "memory": Memory(), "sender": TapedSender(sender, tape)}
    async with server.serve("http", port=0) as running, Client(running.url, **options) as client:
        yield client, sender, tape
    assert not tape.faults, "\n".join(tape.faults)


def lose_sessions(server: Server) -> None:
    """As a server does that starts again."""
    server.session_store._kept.clear()  # type: ignore[attr-defined]


@pytest.mark.parametrize("revision", WITH_SESSIONS, ids=by_name)
async def test_while_a_lost_session_is_slowly_made_anew_calls_wait_and_none_fails(revision: Revision) -> None:
    server = make()
    async with visited(revision, server) as (client, sender, tape):
        await client.call_tool("say", {"text": "before"})
        tape.clear()
        lose_sessions(server)
        sender.gate.clear()
        sender.greeted.clear()
        losing = [asyncio.ensure_future(client.call_tool("say", {"text": f"{n}"})) for n in range(5)]
        await sender.greeted.wait()
        coming = [asyncio.ensure_future(client.call_tool("say", {"text": f"{n}"})) for n in range(5, 10)]
        await asyncio.sleep(0)
        sender.gate.set()
        assert [(await call).text for call in losing + coming] == [str(n) for n in range(10)]
        assert len(tape.said("client", "initialize")) == 1


@pytest.mark.parametrize("revision", WITH_SESSIONS, ids=by_name)
async def test_who_listens_goes_on_in_the_next_session(revision: Revision) -> None:
    server = make()
    async with visited(revision, server) as (client, _, _):
        async with client.listen(tools=True) as events:
            await client.call_tool("say", {"text": "before"})
            lose_sessions(server)
            await client.call_tool("say", {"text": "after"})
            assert await asyncio.wait_for(anext(events), 5) == ToolsChanged()  # what was missed is not known
            await client.call_tool("change", {"what": "tools"})
            assert await asyncio.wait_for(anext(events), 5) == ToolsChanged()


@pytest.mark.parametrize("revision", RESUMABLE, ids=by_name)
async def test_a_stream_that_is_cut_is_resumed_where_it_was_cut(revision: Revision) -> None:
    server = make()
    heard: list[float] = []
    async with visited(revision, server) as (client, sender, tape):
        await client.call_tool("say", {"text": "before"})
        sender.cutting = True
        result = await client.call_tool("work", {"steps": 3}, on_progress=lambda one: heard.append(one.progress))
        assert result.text == "worked"
        assert heard == [1, 2, 3]  # nothing is missed, and nothing told twice
        assert sender.cuts == 1
        resumed = [request for request in tape.requests if dict(request.headers).get("Last-Event-ID")]
        assert len(resumed) == 1
        assert len([one for one in tape.said("client", "tools/call") if one["params"]["name"] == "work"]) == 1


@pytest.mark.parametrize("revision", [one for one in RESUMABLE if one.http.polling], ids=by_name)
async def test_a_server_that_lets_go_of_the_connection_is_asked_again_for_the_result(revision: Revision) -> None:
    server = make()
    wanted: list[asyncio.Event] = []

    @server.tool
    async def ponder(ctx: Context) -> str:
        """Think without a connection, until the client comes back for the result."""
        ctx.close_stream(retry_ms=1)
        await wanted[0].wait()
        return "thought"

    async with visited(revision, server) as (client, sender, tape):
        wanted.append(sender.came_back)
        assert (await client.call_tool("ponder")).text == "thought"
        assert tape.said("client", "tools/call")


@pytest.mark.parametrize("revision", revisions.ALL.values(), ids=by_name)
async def test_a_users_channel_that_ends_is_told_and_another_one_taken(revision: Revision) -> None:
    tape = Tape(revision.name)
    serving = Serving(make())
    channels: list[Any] = []

    class Source:
        """What gives a client its channels."""

        def connect(self) -> Any:
            channels.append(TapedChannel(serving.connect(), tape))
            return channels[-1]

    async with Client(Source(), revision=revision.name, memory=Memory()) as client:
        begun = asyncio.Event()
        waiting = asyncio.ensure_future(client.call_tool("wait", on_progress=lambda _: begun.set()))
        async with client.listen(tools=True) as events:
            await begun.wait()
            await channels[0].aclose()
            with pytest.raises(ConnectionLost) as caught:
                await waiting
            assert caught.value.evidence is Evidence.MAYBE_SENT
            with pytest.raises(ConnectionLost):
                await anext(events)
        assert (await client.call_tool("say", {"text": "again"})).text == "again"
        assert len(channels) == 2
        async with client.listen(tools=True, reconnect=True) as events:
            await channels[1].aclose()
            assert await asyncio.wait_for(anext(events), 5) == ToolsChanged()
            await client.call_tool("change", {"what": "tools"})
            assert await asyncio.wait_for(anext(events), 5) == ToolsChanged()
    assert not tape.faults, "\n".join(tape.faults)
