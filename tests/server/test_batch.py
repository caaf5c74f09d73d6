"""Batches: how much one may hold, on every transport, and that each of its requests counts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay import Limits, Server, revisions
from mcprelay.revisions import Feature
from mcprelay.server.batch import holds_more
from mcprelay.server.event import LimitHit, Refusal
from tests.server.wire import INFO, Http, notification, request, until

BATCHING = [name for name, revision in revisions.ALL.items() if revision.has(Feature.BATCH)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from([",", '",[', "\\", '\\"']),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(JSON, min_size=1, max_size=8), st.integers(1, 8), st.sampled_from([None, 1]))
def test_what_a_batch_holds_is_told_without_parsing_it(items: list[Any], allowed: int, indent: int | None) -> None:
    data = json.dumps(items, indent=indent, ensure_ascii=False).encode()
    assert holds_more(data, allowed) is (len(items) > allowed)


@given(st.binary(max_size=60), st.integers(0, 3))
def test_what_is_no_json_is_counted_without_an_error(data: bytes, allowed: int) -> None:
    assert holds_more(b"[" + data, allowed) in (True, False)


def build(gate: asyncio.Event, **limits: Any) -> tuple[Server, list[Any]]:
    server = Server("batch", limits=Limits(**limits))

    @server.tool
    async def wait() -> str:
        await gate.wait()
        return "waited"

    events: list[Any] = []
    server.observe(events.append)
    return server, events


async def connected(server: Server, revision: str) -> Http:
    http = Http(server.asgi(), revision)
    await http.initialize()
    return http


WAIT = {"name": "wait", "arguments": {}}


@pytest.mark.parametrize("revision", BATCHING)
async def test_a_batch_of_too_many_messages_is_refused_over_http(revision: str) -> None:
    server, events = build(asyncio.Event(), batch_messages=3)
    http = await connected(server, revision)
    events.clear()
    refused = http.post([notification("notifications/x")] * 4)
    body = json.loads(await refused.body())
    assert refused.status == 413
    assert "batch_messages=3" in body["error"]["message"]
    assert events == [LimitHit(limit="batch_messages", allowed=3), Refusal(reason="too_long", status=413)]
    await http.accepted(http.post([notification("notifications/x")] * 3))


@pytest.mark.parametrize("revision", BATCHING)
async def test_a_batch_of_too_many_messages_is_refused_on_a_channel(revision: str) -> None:
    server, events = build(asyncio.Event(), batch_messages=3)
    channel = server.connect()
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": INFO}
    await channel.send(json.dumps(request("initialize", params)).encode())
    await channel.receive()
    events.clear()
    await channel.send(json.dumps([request("ping", id=n) for n in range(4)]).encode())
    refused = json.loads(await channel.receive())
    assert refused["id"] is None
    assert "batch_messages=3" in refused["error"]["message"]
    assert events == [LimitHit(limit="batch_messages", allowed=3), Refusal(reason="too_long")]
    await channel.send(json.dumps([request("ping", id=n) for n in range(3)]).encode())
    assert len(json.loads(await channel.receive())) == 3
    await channel.aclose()


@pytest.mark.parametrize("revision", BATCHING)
async def test_each_request_of_a_batch_counts_against_the_requests_that_are_worked_on(revision: str) -> None:
    gate = asyncio.Event()
    server, events = build(gate, concurrent_requests=3)
    http = await connected(server, revision)
    load = http.app.here().load
    many = [request("tools/call", WAIT, id=n) for n in range(4)]
    refused = http.post(many)
    assert "concurrent_requests=3" in json.loads(await refused.body())["error"]["message"]
    assert refused.status == 503
    assert LimitHit(limit="concurrent_requests", allowed=3) in events
    assert load.requests == 0

    working = http.post([*many[:3], notification("notifications/x")])
    await until(lambda: load.requests == 3)
    busy = http.request("ping")
    assert json.loads(await busy.body())["error"]["message"].startswith("too many requests at once")
    gate.set()
    assert len(json.loads(await working.body())) == 3
    assert load.requests == 0
    await http.result(http.request("ping"))


@pytest.mark.parametrize("revision", BATCHING)
async def test_a_batch_whose_client_is_gone_is_as_many_detached_calls(revision: str) -> None:
    gate = asyncio.Event()
    server, _ = build(gate, detached_calls=2)
    http = await connected(server, revision)
    load = http.app.here().load
    working = http.post([request("tools/call", WAIT, id=n) for n in range(2)])
    await until(lambda: load.requests == 2)
    working.hang_up()
    await until(lambda: load.detached == 2)
    assert load.requests == 0
    gate.set()
    await working.done()
    assert load.detached == 0
