"""Requests that are refused before anything is done: under their id, wherever it can be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcprelay import Limits, Server, revisions
from mcprelay.core.work import InSession, OpenStream, request_id, single
from mcprelay.revisions import NEWEST_HANDSHAKE, Era, Feature
from mcprelay.wire import jsonrpc
from tests.server.test_shared_store import Copies
from tests.server.wire import Http, request

STREAMABLE = [each.name for each in revisions.of_era(Era.HANDSHAKE) if each.http.streamable]
BATCHING = next(name for name, revision in revisions.ALL.items() if revision.has(Feature.BATCH))
OTHER = next(name for name in STREAMABLE if name not in (NEWEST_HANDSHAKE.name, BATCHING))


async def refused(http: Http, status: int, message: Any, **headers: str) -> Any:
    """The id of the answer to a message that is refused."""
    response = http.post(message, **headers)
    body = json.loads(await response.body())
    assert (response.status, "error" in body) == (status, True), body
    return body.get("id", "none")


@pytest.mark.parametrize("id", [7, "seven"])
async def test_another_revision_than_the_sessions_is_refused_under_the_id(id: Any) -> None:
    http = Http(Server("early").asgi())
    await http.initialize()
    assert await refused(http, 400, request("ping", id=id), mcp_protocol_version=OTHER) == id
    broken = b'{"jsonrpc":"2.0","id":%b,"method":5}' % json.dumps(id).encode()
    assert await refused(http, 400, broken) == id


async def test_headers_that_contradict_each_other_are_refused_under_the_id() -> None:
    app = Server("early").asgi()
    http = Http(app)
    await http.initialize()

    async def doubled(scope: Any, receive: Any, send: Any) -> None:
        scope["headers"] = [*scope["headers"], (b"mcp-session-id", b"other")]
        await app(scope, receive, send)

    http.app = doubled
    assert await refused(http, 400, request("ping", id="a")) == "a"


async def test_too_many_requests_are_refused_under_the_id() -> None:
    http = Http(Server("early", limits=Limits(concurrent_requests=1)).asgi())
    app: Any = http.app
    app.here().load.requests = 1
    assert await refused(http, 503, request("ping", id="a")) == "a"


async def test_a_store_that_fails_is_said_under_the_id() -> None:
    store = Copies()
    http = Http(Server("early", session_store=store).asgi())
    await http.initialize()
    store.broken = True
    assert await refused(http, 503, request("ping", id="a")) == "a"


async def test_a_batch_is_refused_whole_and_so_without_an_id_of_one_of_its_requests() -> None:
    http = Http(Server("early").asgi(), BATCHING)
    assert await refused(http, 400, [request("ping", id="a"), request("ping", id="b")]) in ("none", None)


def test_only_a_request_has_an_id_to_be_answered_under() -> None:
    cases = {
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}': 1,
        b'{"jsonrpc":"2.0","method":"note"}': None,
        b'{"jsonrpc":"2.0","id":1,"result":{}}': None,
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":NaN}': 1,
        b'{"jsonrpc":"2.0","id":1,"result":NaN}': None,
        b"nonsense": None,
    }
    for data, expected in cases.items():
        assert request_id(jsonrpc.parse(data)) == expected
    assert request_id(None) is None


def test_work_is_about_one_message_or_none() -> None:
    message = jsonrpc.parse(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert single(InSession(None, "s", [message])) is message
    assert single(InSession(None, "s", [message], batch=True)) is None
    assert single(OpenStream(None, "s", None)) is None
