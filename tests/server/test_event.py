"""What an operator counts: which events come, what is in them, and what never is."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from mcprelay import Context, LimitExceeded, Limits, ProtocolError, Server, ToolError
from mcprelay.revisions import NEWEST_HANDSHAKE
from mcprelay.server.event import Event, Events, Exchange, Handling, LimitHit, Refusal, Subscription
from tests.server.ask import ask, call, connected, error
from tests.server.wire import INFO, Http, notification, opened, request, until


@pytest.fixture
def server() -> Server:
    server = Server("s")

    @server.tool
    def echo(secret: str) -> str:
        return secret

    @server.tool
    async def fail(kind: str, ctx: Context) -> str:
        if kind == "tool":
            raise ToolError("no")
        if kind == "protocol":
            raise ProtocolError(-31000, "no")
        if kind == "limit":
            raise LimitExceeded("some_limit", 5)
        if kind == "ask":
            await ctx.elicit("Which?", str, key="k")
        raise ValueError("no")

    server.add_resource("a://{secret}", lambda secret: secret, name="t")
    server.add_prompt(lambda secret: secret, name="p")
    return server


def watched(server: Server) -> list[Event]:
    events: list[Event] = []
    server.observe(events.append)
    return events


async def test_each_request_is_one_exchange_and_each_handler_one_handling(server: Server):
    events = watched(server)

    await call(server, "echo", {"secret": "s3cret"})
    await ask(server, "resources/read", {"uri": "a://s3cret"})
    await ask(server, "prompts/get", {"name": "p", "arguments": {"secret": "s3cret"}})
    await ask(server, "tools/list")

    seen = [
        (event.kind, event.target, event.outcome) if isinstance(event, Handling) else (event.method, event.outcome)
        for event in events
        if isinstance(event, (Handling, Exchange))
    ]
    assert seen == [
        ("tool", "echo", "completed"),
        ("tools/call", "answered"),
        ("resource template", "a://{secret}", "completed"),
        ("resources/read", "answered"),
        ("prompt", "p", "completed"),
        ("prompts/get", "answered"),
        ("tools/list", "answered"),
    ]
    assert "s3cret" not in str(events)
    handling, exchange = events[:2]
    assert isinstance(handling, Handling)
    assert isinstance(exchange, Exchange)
    assert handling.correlation_id == exchange.correlation_id
    assert 0 <= handling.seconds <= exchange.seconds
    assert (exchange.transport, exchange.code) == ("channel", 0)


@pytest.mark.parametrize(
    ("kind", "outcome", "error", "exchange"),
    [
        ("tool", "refused", "ToolError", ("answered", 0)),
        ("protocol", "refused", "ProtocolError", ("error", -31000)),
        ("limit", "failed", "LimitExceeded", ("answered", 0)),
        ("ask", "asked", None, ("answered", 0)),
        ("other", "failed", "ValueError", ("answered", 0)),
    ],
)
async def test_what_became_of_a_handler(server: Server, kind: str, outcome: str, error: Any, exchange: Any):
    events = watched(server)

    params = {"name": "fail", "arguments": {"kind": kind}}
    await ask(server, "tools/call", params, capabilities={"elicitation": {"form": {}}})

    [handling] = [event for event in events if isinstance(event, Handling)]
    [answered] = [event for event in events if isinstance(event, Exchange)]
    assert (handling.outcome, handling.error) == (outcome, error)
    assert (answered.outcome, answered.code) == exchange
    hits = [event for event in events if isinstance(event, LimitHit)]
    assert hits == ([LimitHit(limit="some_limit", allowed=5)] if kind == "limit" else [])


async def test_a_call_that_is_cancelled(server: Server):
    events = watched(server)
    entered = asyncio.Event()

    @server.tool
    async def wait() -> str:
        entered.set()
        await asyncio.Event().wait()
        return ""

    async with connected(server) as client:
        request_id = await client.request("tools/call", {"name": "wait", "arguments": {}})
        await entered.wait()
        await client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}})
        await client.ask("server/discover")
    cancelled = [event for event in events if getattr(event, "outcome", None) == "cancelled"]
    assert [type(event) for event in cancelled] == [Handling, Exchange]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "made_up", "arguments": {}}),
        ("prompts/get", {"name": "made_up"}),
        ("resources/read", {"uri": "made:up"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "made_up"}, "argument": {"name": "x", "value": "made_up"}},
        ),
    ],
)
async def test_a_call_for_what_is_not_there_is_a_refusal_without_the_clients_words(
    server: Server, method: str, params: Any
):
    events = watched(server)

    await ask(server, method, params)

    assert events[0] == Refusal(reason="unknown_target", code=-32602)
    assert "made" not in str(events)


async def test_a_subscription_is_told_of_at_both_ends(server: Server):
    events = watched(server)
    async with connected(server) as client:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["a://s3cret", "a://b"]}
        await client.request("subscriptions/listen", {"notifications": wanted})
        await client.receive()
        [opened] = [event for event in events if isinstance(event, Subscription)]
        assert opened == Subscription(state="opened", lists=("tools",), resources=2, seconds=0.0)
    closed = [event for event in events if isinstance(event, Subscription)][-1]
    assert (closed.state, closed.lists, closed.resources) == ("closed", ("tools",), 2)
    assert closed.seconds > 0
    assert "s3cret" not in str(events)


async def test_what_cannot_be_read_on_a_channel_is_a_refusal(server: Server):
    events = watched(server)
    async with connected(server) as client:
        await client.send(b"{not json}")
        await client.receive()
        await client.send({"jsonrpc": "2.0", "id": 1, "method": "s3cret/method", "params": {}})
        await client.receive()
        answer = await client.ask("s3cret/method")
        assert answer["error"]["code"] == -32601
    assert events == [
        Refusal(reason="malformed"),
        Refusal(reason="malformed", code=-32602),
        Refusal(reason="malformed", code=-32601),
    ]


@pytest.mark.parametrize(
    ("changes", "body", "expected"),
    [
        ({"host": "evil.example"}, b"{}", [Refusal(reason="host", status=421)]),
        ({"origin": "http://evil.example"}, b"{}", [Refusal(reason="origin", status=403)]),
        ({"content-type": "text/plain"}, b"{}", [Refusal(reason="media_type", status=415)]),
        ({}, b"{s3cret", [Refusal(reason="malformed", status=400)]),
        ({}, b"[" * 70, [LimitHit(limit="body_bytes", allowed=64), Refusal(reason="too_long", status=413)]),
        ({"path": "/s3cret"}, b"{}", [Refusal(reason="not_found", status=404)]),
        ({"method": "PUT"}, b"{}", [Refusal(reason="method", status=405)]),
    ],
)
async def test_what_is_refused_over_http_says_why_in_a_word(changes: Any, body: bytes, expected: Any):
    server = Server("s", limits=Limits(body_bytes=64), allowed_hosts=["testserver"])
    events = watched(server)
    headers = {"host": "testserver", "content-type": "application/json", "accept": "*/*"}
    path, method = changes.pop("path", "/mcp"), changes.pop("method", "POST")
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in (headers | changes).items()],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None: ...

    await server.asgi()(scope, receive, send)  # type: ignore[arg-type]

    assert events == expected
    assert "s3cret" not in str(events)


async def test_who_comes_when_everybody_is_busy_hits_a_limit():
    server = Server("s", limits=Limits(concurrent_requests=0), allowed_hosts=["*"])
    events = watched(server)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(b"content-type", b"application/json"), (b"accept", b"*/*"), (b"host", b"x")],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}"}

    async def send(message: Any) -> None: ...

    await server.asgi()(scope, receive, send)  # type: ignore[arg-type]

    assert events == [LimitHit(limit="concurrent_requests", allowed=0), Refusal(reason="busy", status=503)]


# --- who is told


async def test_nothing_is_made_where_nobody_wants_to_know(server: Server, monkeypatch):
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("nobody asked")

    monkeypatch.setattr("mcprelay.server.observation.Exchange", fail)
    monkeypatch.setattr("mcprelay.server.observation.Handling", fail)
    assert await call(server, "echo", {"secret": "x"}) == "x"


async def test_events_are_logged_where_the_level_lets_them(server: Server, caplog):
    caplog.set_level(logging.INFO, "mcprelay.server.events")

    await call(server, "echo", {"secret": "s3cret"})
    await ask(server, "tools/call", {"name": "fail", "arguments": {"kind": "limit"}})

    records = [record for record in caplog.records if record.name == "mcprelay.server.events"]
    assert records[0].mcp["event"] == "handler"  # type: ignore[attr-defined]
    assert records[0].getMessage().startswith("handler kind=tool target=echo outcome=completed error=None seconds=0.")
    assert records[1].getMessage().startswith("exchange method=tools/call revision=")
    assert [record.levelno for record in records if record.mcp["event"] == "limit"] == [logging.WARNING]  # type: ignore[attr-defined]
    assert "s3cret" not in caplog.text


async def test_a_logger_of_the_users_takes_the_place_of_ours(caplog):
    caplog.set_level(logging.INFO, "mine")
    server = Server("s", logger=logging.getLogger("mine"))

    @server.tool
    def broken() -> str:
        raise ValueError("why")

    await call(server, "broken")

    assert {record.name for record in caplog.records} == {"mine", "mine.events"}
    assert "why" in caplog.text


def test_no_handler_and_no_level_is_set_on_anything():
    Server("s")
    for name in ("", "mcprelay", "mcprelay.server", "mcprelay.server.events"):
        logger = logging.getLogger(name)
        ours = [handler for handler in logger.handlers if type(handler).__module__.startswith("mcprelay")]
        assert ours == []
        if name:
            assert logger.level == logging.NOTSET
            assert logger.propagate


async def test_an_observer_that_fails_changes_nothing_and_is_told_of(server: Server, caplog):
    def failing(event: Event) -> None:
        raise RuntimeError("observer down")

    server.observe(failing)
    events = watched(server)

    assert await call(server, "echo", {"secret": "x"}) == "x"
    assert len(events) == 2
    assert "observer down" in caplog.text


def test_a_limit_is_a_warning_although_nobody_asked(caplog):
    Events(logging.getLogger("some.events")).emit(LimitHit(limit="x", allowed=1.0))
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


# --- the client's trace


PARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


async def test_a_handler_sees_where_it_stands_in_the_clients_trace(server: Server):
    @server.tool
    def trace(ctx: Context) -> str:
        return "none" if ctx.trace is None else str(ctx.trace.members())

    async with connected(server) as client:
        for extra, expected in (
            ({}, "none"),
            ({"traceparent": PARENT}, str({"traceparent": PARENT})),
            ({"traceparent": "nonsense", "tracestate": "a=b"}, "none"),
            ({"baggage": "k=v"}, str({"baggage": "k=v"})),
        ):
            result = await client.result("tools/call", {"name": "trace", "arguments": {}}, **extra)
            assert result["content"][0]["text"] == expected


async def test_a_question_to_the_client_carries_the_trace_on():
    server = Server("s")

    @server.tool
    async def choose(ctx: Context) -> str:
        answer = await ctx.elicit("Which?", str)
        return answer.value

    async with connected(server) as client:
        hello = {
            "protocolVersion": "x",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "c", "version": "1"},
        }
        await client.send({"jsonrpc": "2.0", "id": "h", "method": "initialize", "params": hello})
        await client.receive()
        params = {"name": "choose", "arguments": {}, "_meta": {"traceparent": PARENT, "tracestate": "a=b"}}
        await client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        question = await client.receive()
    assert question["method"] == "elicitation/create"
    assert question["params"]["_meta"] == {"traceparent": PARENT, "tracestate": "a=b"}


async def test_a_session_that_listens_is_told_of_at_both_ends_on_a_stream_and_on_a_channel(server: Server):
    events = watched(server)

    def told() -> list[tuple[str, tuple[str, ...], int]]:
        found = [event for event in events if isinstance(event, Subscription)]
        return [(event.state, event.lists, event.resources) for event in found]

    http = Http(server.asgi())
    await http.initialize()
    await http.result(http.request("resources/subscribe", {"uri": "a://b"}))
    assert told() == []
    async with opened(http.get()):
        assert told() == [("opened", ("tools", "prompts", "resources"), 1)]
    await until(lambda: len(told()) == 2)
    assert told()[1] == ("closed", ("tools", "prompts", "resources"), 1)
    events.clear()
    async with connected(server) as client:
        hello = {"protocolVersion": NEWEST_HANDSHAKE.name, "capabilities": {}, "clientInfo": INFO}
        await client.send(request("initialize", hello))
        await client.receive()
        await client.send(notification("notifications/initialized"))
        await until(lambda: len(told()) == 1)
    await until(lambda: len(told()) == 2)
    assert [state for state, _, _ in told()] == ["opened", "closed"]


async def test_resources_to_listen_to_are_bounded_in_a_session_and_on_a_stream():
    server = Server("s", limits=Limits(subscriptions=2))
    server.add_resource("a://{x}", lambda x: x, name="r")
    events = watched(server)
    http = Http(server.asgi())
    await http.initialize()
    for uri in ("a://1", "a://2", "a://2"):
        await http.result(http.request("resources/subscribe", {"uri": uri}))
    refused = (await http.answer(http.request("resources/subscribe", {"uri": "a://3"})))["error"]
    assert "subscriptions=2" in refused["message"]
    assert LimitHit(limit="subscriptions", allowed=2) in events
    await http.result(http.request("resources/unsubscribe", {"uri": "a://1"}))
    await http.result(http.request("resources/subscribe", {"uri": "a://3"}))
    wanted = {"notifications": {"resourceSubscriptions": ["a://1", "a://2", "a://3"]}}
    assert "subscriptions=2" in (await error(server, "subscriptions/listen", wanted))["message"]
