"""Sessions in memory: kept for their time, bounded, and forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from mcprelay import Limits, Server
from mcprelay.errors import LimitExceeded
from mcprelay.ports import Session, SessionStore
from mcprelay.server.event import LimitHit
from mcprelay.server.session import MemorySessions, new_session_id
from tests.server.wire import INFO, Http


class Now:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def session(name: str) -> Session:
    return Session(id=name, revision="r")


async def test_a_session_is_kept_for_its_time_and_no_longer() -> None:
    now = Now()
    store: SessionStore = MemorySessions(now=now)
    kept = session("a")
    await store.save("a", kept, 10)
    now.seconds += 9.9
    assert await store.load("a") is kept
    now.seconds += 0.1
    assert await store.load("a") is None


async def test_saving_again_begins_its_time_again() -> None:
    now = Now()
    store = MemorySessions(now=now)
    await store.save("a", session("a"), 10)
    now.seconds += 9
    changed = session("a")
    await store.save("a", changed, 10)
    now.seconds += 9
    assert await store.load("a") is changed


async def test_a_session_that_was_dropped_is_unknown_and_dropping_it_twice_is_no_error() -> None:
    store = MemorySessions()
    await store.save("a", session("a"), 10)
    await store.drop("a")
    await store.drop("a")
    assert await store.load("a") is None
    assert await store.load("never") is None


async def test_there_are_no_more_sessions_than_may_be_and_the_limit_is_named() -> None:
    now = Now()
    store = MemorySessions(sessions=2, now=now)
    await store.save("a", session("a"), 60)
    await store.save("b", session("b"), 60)
    with pytest.raises(LimitExceeded, match="sessions=2"):
        await store.save("c", session("c"), 60)
    await store.save("b", session("b"), 60)
    assert len(store) == 2
    await store.drop("a")
    await store.save("c", session("c"), 60)
    assert await store.load("c") is not None


async def test_sessions_that_are_over_make_room() -> None:
    now = Now()
    store = MemorySessions(sessions=2, now=now)
    await store.save("a", session("a"), 60)
    await store.save("b", session("b"), 60)
    now.seconds += 60
    await store.save("c", session("c"), 60)
    assert len(store) == 1


@pytest.mark.clause("handshake.http.session-random", "handshake.http.session-ascii")
def test_a_session_id_is_visible_ascii_and_never_the_same() -> None:
    ids = {new_session_id() for _ in range(100)}
    assert len(ids) == 100
    assert all("!" <= char <= "~" for name in ids for char in name)
    assert all(len(name) == 32 for name in ids)


async def test_what_a_session_remembers_of_its_client_is_bounded() -> None:
    server = Server("s", limits=Limits(session_bytes=400))
    server.add_resource("a://{x}", lambda x: x, name="r")
    events: list[Any] = []
    server.observe(events.append)
    http = Http(server.asgi())
    hello = {
        "protocolVersion": http.revision,
        "capabilities": {"experimental": {"x": {"y": "z" * 400}}},
        "clientInfo": INFO,
    }
    refused = (await http.answer(http.request("initialize", hello)))["error"]
    assert "session_bytes=400" in refused["message"]
    assert LimitHit(limit="session_bytes", allowed=400) in events
    await http.initialize()
    await http.result(http.request("resources/subscribe", {"uri": "a://" + "1" * 200}))
    refused = (await http.answer(http.request("resources/subscribe", {"uri": "a://" + "2" * 200})))["error"]
    assert "session_bytes=400" in refused["message"]
    await http.result(http.request("resources/subscribe", {"uri": "a://3"}))
