"""Several servers with one session store: none undoes what another did, and each hears of it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mcprelay import Limits, Server
from mcprelay.ports import Session
from mcprelay.server.session import MemorySessions
from mcprelay.testing import FakeClock, check_store
from tests.server.test_streamable import Gate
from tests.server.wire import Http

if TYPE_CHECKING:
    from collections.abc import Callable


class Copies:
    """A store in another process: what is loaded is a copy, and what is not kept again is lost."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.kept: dict[str, tuple[bytes, float]] = {}
        self.saves = 0
        self.broken = False

    def _check(self) -> None:
        if self.broken:
            raise OSError("no connection")

    async def load(self, id: str) -> Session | None:
        self._check()
        data, until = self.kept.get(id, (b"", 0.0))
        return msgspec.json.decode(data, type=Session) if self.clock.monotonic() < until else None

    async def save(self, id: str, session: Session, ttl: float) -> None:
        self._check()
        self.saves += 1
        self.kept[id] = (msgspec.json.encode(session), self.clock.monotonic() + ttl)

    async def touch(self, id: str, ttl: float) -> bool:
        session = await self.load(id)
        if session is not None:
            self.kept[id] = (self.kept[id][0], self.clock.monotonic() + ttl)
        return session is not None

    async def update(self, id: str, change: Callable[[Session], None], ttl: float) -> Session | None:
        session = await self.load(id)
        if session is not None:
            change(session)
            self.kept[id] = (msgspec.json.encode(session), self.clock.monotonic() + ttl)
        return session

    async def drop(self, id: str) -> None:
        self.kept.pop(id, None)


async def kept(store: Copies, http: Http) -> Session:
    session = await store.load(http.session_id or "")
    assert session is not None
    return session


def build(store: Any, gate: Gate) -> Server:
    server = Server("shared", session_store=store, limits=Limits(session_seconds=40))

    @server.tool
    async def wait() -> str:
        await gate.wait()
        return "waited"

    @server.resource("r://x")
    def x() -> str:
        return "x"

    return server


async def pair(store: Copies, gate: Gate) -> tuple[Http, Http, Server]:
    """One client that reaches two servers, and the second of them."""
    one = Http(build(store, Gate()).asgi())
    await one.initialize()
    server = build(store, gate)
    two = Http(server.asgi())
    two.session_id = one.session_id
    return one, two, server


async def test_both_stores_of_these_tests_keep_their_promises() -> None:
    clock = FakeClock()
    await check_store(lambda: Copies(clock), advance=clock.advance)
    await check_store(lambda: MemorySessions(now=clock.monotonic), advance=clock.advance)


async def test_a_call_that_ends_here_does_not_undo_what_was_changed_elsewhere_meanwhile() -> None:
    store, gate = Copies(), Gate()
    one, two, _ = await pair(store, gate)
    call = two.call("wait")
    await gate.entered.wait()
    await one.result(one.request("resources/subscribe", {"uri": "r://x"}))
    await one.result(one.request("logging/setLevel", {"level": "error"}))
    gate.opened.set()
    await two.result(call)
    await call.done()
    session = await kept(store, one)
    assert (session.subscriptions, session.log_level) == ({"r://x"}, "error")
    assert store.saves == 1, "a session is saved when it begins, and then renewed or changed"


async def test_changes_on_both_sides_are_both_kept() -> None:
    store, gate = Copies(), Gate()
    one, two, _ = await pair(store, gate)
    call = two.call("wait")
    await gate.entered.wait()
    await one.result(one.request("resources/subscribe", {"uri": "r://1"}))
    await two.result(two.request("resources/subscribe", {"uri": "r://2"}))
    await one.result(one.request("logging/setLevel", {"level": "error"}))
    await two.result(two.request("resources/unsubscribe", {"uri": "r://1"}))
    await one.result(one.request("resources/subscribe", {"uri": "r://3"}))
    gate.opened.set()
    await two.result(call)
    await call.done()
    session = await kept(store, one)
    assert (session.subscriptions, session.log_level) == ({"r://2", "r://3"}, "error")


async def test_a_stream_here_hears_of_what_was_subscribed_to_elsewhere() -> None:
    store, gate = Copies(), Gate()
    one, two, server = await pair(store, gate)
    stream = two.get()
    await stream.begun()
    await one.result(one.request("resources/subscribe", {"uri": "r://x"}))
    app: Any = two.app
    await app.here().streamable.conversations.tend()
    assert (await kept(store, one)).subscriptions == {"r://x"}, "renewing changes nothing"
    await server.resource_updated("r://x")
    assert (await stream.message())["params"] == {"uri": "r://x"}
    stream.hang_up()
    await stream.done()


async def test_renewing_keeps_a_session_that_is_in_use() -> None:
    store, gate = Copies(), Gate()
    _, two, _ = await pair(store, gate)
    call = two.call("wait")
    await gate.entered.wait()
    app: Any = two.app
    for _ in range(5):
        store.clock.advance(30)
        await app.here().streamable.conversations.tend()
    gate.opened.set()
    await two.result(call)
    store.clock.advance(39)
    await two.result(two.request("ping"))
    store.clock.advance(41)
    await two.refusal(two.request("ping"), 404)


@pytest.mark.clause("handshake.logging.internal-error")
async def test_what_cannot_be_remembered_is_said_so(caplog: pytest.LogCaptureFixture) -> None:
    class BreaksOnUpdate(Copies):
        async def update(self, id: str, change: Callable[[Session], None], ttl: float) -> Session | None:
            raise OSError("no connection")

    http = Http(build(BreaksOnUpdate(), Gate()).asgi())
    with caplog.at_level(logging.ERROR, "mcprelay.server"):
        await http.initialize()
        answer = await http.answer(http.request("logging/setLevel", {"level": "error"}))
    assert answer["error"]["code"] == -32603
    assert "the session store does not answer" in answer["error"]["message"]
    assert "the session store failed" in caplog.text
    await http.result(http.request("ping"))
