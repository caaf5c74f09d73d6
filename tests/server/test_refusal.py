"""Every refusal over HTTP is one event of its kind, whoever refuses: the rules, the door, the session, the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcprelay import Limits, RequestRefused, Server, revisions
from mcprelay.auth.resource import Attestation, Bearer, VerifierUnavailable
from mcprelay.auth.verifier import StaticTokens
from mcprelay.core import work
from mcprelay.revisions import NEWEST_HANDSHAKE, Era
from mcprelay.server.asgi import App
from mcprelay.server.event import Authorization, LimitHit, Refusal
from mcprelay.wire.origin import HostRules
from tests.server.test_batch import BATCHING
from tests.server.wire import INFO, Http, notification, opened, request

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.server.wire import Response

OTHER = next(name for name, each in revisions.ALL.items() if each.era is Era.HANDSHAKE and each is not NEWEST_HANDSHAKE)
RESOURCE = "http://server.example/mcp"
JSON = "application/json"


class Broken:
    """A session store that fails."""

    async def load(self, id: str) -> Any:
        raise OSError

    async def save(self, id: str, session: Any, ttl: float) -> None:
        raise OSError

    async def touch(self, id: str, ttl: float) -> bool:
        raise OSError

    async def update(self, id: str, change: Any, ttl: float) -> Any:
        raise OSError

    async def drop(self, id: str) -> None:
        raise OSError


def watched(http_of: Callable[[Server], Any] | None = None, **options: Any) -> tuple[Http, list[Any]]:
    server = Server("refusal", **options)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    events: list[Any] = []
    server.observe(events.append)
    return Http(server.asgi() if http_of is None else http_of(server)), events


async def check(response: Response, status: int, events: list[Any], *expected: Any) -> None:
    await response.body()
    assert response.status == status
    assert [event for event in events if isinstance(event, (Refusal, LimitHit, Authorization))] == list(expected)


def post(http: Http, **headers: Any) -> Response:
    return http.post(request("ping"), **headers)


OUTSIDE: dict[str, tuple[Callable[[Http], Response], int, str]] = {
    "host": (lambda http: post(http, host="evil.example"), 421, "host"),
    "origin": (lambda http: post(http, origin="http://evil.example"), 403, "origin"),
    "path": (lambda http: http.send("POST", path="/nothing"), 404, "not_found"),
    "method": (lambda http: http.send("PUT"), 405, "method"),
    "accept": (lambda http: post(http, accept="text/html"), 406, "not_acceptable"),
    "accept of a GET": (lambda http: http.get(accept=JSON), 406, "not_acceptable"),
    "media type": (lambda http: post(http, content_type="text/plain"), 415, "media_type"),
    "no JSON": (lambda http: http.post(b"{"), 400, "malformed"),
    "no session on POST": (post, 400, "malformed"),
    "no session on GET": (lambda http: http.get(), 400, "malformed"),
    "no session on DELETE": (lambda http: http.delete(), 400, "malformed"),
    "unknown session on POST": (lambda http: post(http, mcp_session_id="x"), 404, "not_found"),
    "unknown session on GET": (lambda http: http.get(mcp_session_id="x"), 404, "not_found"),
    "unknown session on DELETE": (lambda http: http.delete(mcp_session_id="x"), 404, "not_found"),
    "unknown revision": (lambda http: post(http, mcp_protocol_version="1999-01-01"), 400, "malformed"),
    "pair: no session": (lambda http: http.send("POST", b"{}", path="/messages", content_type=JSON), 400, "malformed"),
    "pair: unknown session": (
        lambda http: http.send("POST", b"{}", path="/messages", query="session_id=x", content_type=JSON),
        404,
        "not_found",
    ),
    "pair: method of the stream": (lambda http: http.send("PUT", path="/sse"), 405, "method"),
    "pair: method of messages": (lambda http: http.send("GET", path="/messages"), 405, "method"),
    "pair: accept": (lambda http: http.send("GET", path="/sse", accept=JSON), 406, "not_acceptable"),
    "pair: media type": (
        lambda http: http.send("POST", b"{}", path="/messages", content_type="text/plain"),
        415,
        "media_type",
    ),
    "pair: host": (lambda http: http.send("GET", path="/sse", host="evil.example"), 421, "host"),
}


@pytest.mark.parametrize("which", OUTSIDE)
async def test_a_refusal_outside_of_any_session_is_one_event(which: str) -> None:
    http, events = watched(allowed_hosts=["server.example"], public_url=RESOURCE)
    act, status, reason = OUTSIDE[which]
    await check(act(http), status, events, Refusal(reason=reason, status=status))


INSIDE: dict[str, tuple[Callable[[Http], Response], int, Refusal]] = {
    "another revision": (
        lambda http: post(http, mcp_protocol_version=OTHER),
        400,
        Refusal(reason="malformed", status=400),
    ),
    "a response nobody can read": (
        lambda http: http.post({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}),
        400,
        Refusal(reason="malformed", status=400),
    ),
    "an unknown method": (lambda http: http.request("no/such"), 200, Refusal(reason="malformed", code=-32601)),
    "params that do not fit": (
        lambda http: http.request("tools/call", {"name": 5}),
        200,
        Refusal(reason="malformed", code=-32602),
    ),
    "a tool that is not there": (
        lambda http: http.call("made_up"),
        200,
        Refusal(reason="unknown_target", code=-32602),
    ),
    "a last event id that is not kept": (
        lambda http: http.get("gone~1"),
        400,
        Refusal(reason="malformed", status=400),
    ),
}


@pytest.mark.parametrize("which", INSIDE)
async def test_a_refusal_in_a_session_is_one_event(which: str) -> None:
    http, events = watched()
    await http.initialize()
    events.clear()
    act, status, refusal = INSIDE[which]
    await check(act(http), status, events, refusal)


async def test_an_initialize_that_cannot_be_read_is_a_refusal() -> None:
    http, events = watched()
    await check(
        http.request("initialize", {"protocolVersion": 5}), 200, events, Refusal(reason="malformed", code=-32602)
    )


@pytest.mark.parametrize("revision", BATCHING)
async def test_what_is_refused_of_a_batch_is_an_event_each(revision: str) -> None:
    http, events = watched()
    http.revision = revision
    await http.initialize()
    events.clear()
    batch = [1, request("initialize", {}, id=7), request("no/such", id=8), request("ping", id=9)]
    await check(
        http.post(batch),
        200,
        events,
        Refusal(reason="malformed"),
        Refusal(reason="malformed", code=-32600),
        Refusal(reason="malformed", code=-32601),
    )


@pytest.mark.parametrize(
    ("limit", "status"), [("body_bytes", 413), ("sessions", 503), ("concurrent_requests", 503), ("listen_streams", 503)]
)
async def test_a_limit_that_refuses_is_told_as_a_limit_and_as_a_refusal(limit: str, status: int) -> None:
    http, events = watched(limits=Limits(**{limit: 0 if limit == "concurrent_requests" else 1}))
    hello = request("initialize", {"protocolVersion": http.revision, "capabilities": {}, "clientInfo": INFO})
    if limit == "sessions":
        await http.initialize()
        events.clear()
    if limit == "listen_streams":
        await http.initialize()
        events.clear()
        async with opened(http.get()):
            refused = http.get()
            await check(refused, 503, events, LimitHit(limit=limit, allowed=1), Refusal(reason="busy", status=503))
        return
    allowed = 0 if limit == "concurrent_requests" else 1
    reason = "too_long" if status == 413 else "busy"
    http.session_id = None
    await check(
        http.post(hello), status, events, LimitHit(limit=limit, allowed=allowed), Refusal(reason=reason, status=status)
    )


async def test_a_pair_that_finds_no_stream_free_is_a_refusal() -> None:
    http, events = watched(limits=Limits(listen_streams=0))
    refused = http.send("GET", path="/sse", accept="text/event-stream")
    await check(refused, 503, events, LimitHit(limit="listen_streams", allowed=0), Refusal(reason="busy", status=503))


@pytest.mark.parametrize("session_id", [None, "x"])
async def test_a_session_store_that_fails_is_a_refusal(session_id: str | None) -> None:
    http, events = watched(session_store=Broken())
    http.session_id = session_id
    hello = request("initialize", {"protocolVersion": http.revision, "capabilities": {}, "clientInfo": INFO})
    response = http.post(hello) if session_id is None else post(http)
    await check(response, 503, events, Refusal(reason="store", status=503))


# ----------------------------------------------------------------------------------------------------------- who calls


def verify(token: str) -> Attestation:
    raise VerifierUnavailable


GUARDS: dict[str, tuple[Any, str | None, Authorization]] = {
    "no token": (StaticTokens({}), None, Authorization(decision="missing_token", status=401)),
    "a bad token": (StaticTokens({}), "x", Authorization(decision="invalid_token", status=401)),
    "a token for another": (
        StaticTokens({"x": Attestation(subject="ada")}),
        "x",
        Authorization(decision="wrong_resource", status=401),
    ),
    "too few scopes": (
        StaticTokens({"x": Attestation(subject="ada", audiences=(RESOURCE,))}),
        "x",
        Authorization(decision="insufficient_scope", status=403),
    ),
    "a verifier that cannot tell": (verify, "x", Authorization(decision="verifier_unavailable", status=503)),
}


@pytest.mark.parametrize("which", GUARDS)
async def test_who_is_not_let_in_is_an_authorization_event_and_no_other(which: str) -> None:
    verifier, token, expected = GUARDS[which]
    http, events = watched(auth=Bearer(verifier, resource=RESOURCE, scopes=["use"]))
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    await check(post(http, **headers), expected.status, events, expected)


async def test_the_door_that_a_host_brings_refuses_with_an_event() -> None:
    async def admit(_scope: Any, _head: Any) -> Any:
        return work.Refusal(403)

    http, events = watched(lambda server: App(server, HostRules.from_bind(None, None), admit=admit))
    await check(post(http), 403, events, Refusal(reason="origin", status=403))


@pytest.mark.parametrize(
    ("error", "status", "expected"),
    [
        (RequestRefused(403, "no"), 403, Authorization(decision="refused_by_context", status=403)),
        (RequestRefused(429, "no"), 429, Refusal(reason="context", status=429)),
        (ValueError("s3cret"), 500, Refusal(reason="context", status=500)),
    ],
)
async def test_a_context_function_that_refuses_is_an_event(error: Exception, status: int, expected: Any) -> None:
    async def context(_request: Any) -> Any:
        raise error

    http, events = watched(context=context)
    await check(post(http), status, events, expected)


async def test_the_metadata_document_is_read_and_not_written() -> None:
    http, events = watched(auth=Bearer(StaticTokens({}), resource=RESOURCE))
    path = "/.well-known/oauth-protected-resource/mcp"
    await check(http.send("PUT", path=path), 405, events, Refusal(reason="method", status=405))
    await check(http.send("GET", path=path), 200, [])


async def test_what_is_no_refusal_is_none() -> None:
    http, events = watched()
    await check(http.send("OPTIONS"), 204, events)
    await http.initialize()
    await http.accepted(http.post(notification("notifications/x")))
    await check(http.delete(), 204, events)
