"""The handshake era over Streamable HTTP: sessions, calls, questions, streams, in every revision that has them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from mcprelay import Context, Limits, Server, revisions
from mcprelay.revisions import NEWEST_HANDSHAKE, Era, Feature
from mcprelay.server.session import MemorySessions
from tests.server.wire import Http, notification, opened, request, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.ports import Session

HANDSHAKE = [revision.name for revision in revisions.of_era(Era.HANDSHAKE)]
STREAMABLE = [name for name in HANDSHAKE if revisions.ALL[name].http.streamable]
RESUMABLE = [name for name in HANDSHAKE if revisions.ALL[name].http.resumable]
POLLING = [name for name in HANDSHAKE if revisions.ALL[name].http.polling]
ELICITING = [name for name in HANDSHAKE if revisions.ALL[name].has(Feature.ELICITATION)]
BATCHING = [name for name in HANDSHAKE if revisions.ALL[name].has(Feature.BATCH)]
NEWEST = NEWEST_HANDSHAKE.name


@dataclass
class Seat:
    seat: str


class Gate:
    """What a handler waits at, and how often it came by."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def wait(self) -> None:
        self.entered.set()
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def server(gate: Gate) -> Server:
    return build(gate)


def build(gate: Gate, **options: Any) -> Server:
    server = Server("wire", **options)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def count(ctx: Context, to: int) -> str:
        for number in range(to):
            ctx.progress(number, to)
        return "counted"

    @server.tool
    async def say(ctx: Context) -> str:
        ctx.debug("debug")
        ctx.info("info")
        ctx.warning("warning")
        return "said"

    @server.tool
    async def book(ctx: Context) -> str:
        answer = await ctx.elicit("Which seat?", Seat)
        return f"booked {answer.value.seat}" if answer.accepted else answer.action

    @server.tool
    async def folders(ctx: Context) -> str:
        return ", ".join(root.uri for root in await ctx.roots())

    @server.tool
    async def wait(ctx: Context) -> str:
        ctx.progress(1)
        await gate.wait()
        return "waited"

    @server.tool
    async def poll(ctx: Context) -> str:
        ctx.close_stream(retry_ms=7)
        await gate.wait()
        return "polled"

    @server.resource("wire://thing")
    def thing() -> str:
        return "thing"

    return server


@pytest.fixture
def http(server: Server) -> Http:
    return Http(server.asgi())


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


# -------------------------------------------------------------------------------------------------------- the handshake


@pytest.mark.clause("handshake.lifecycle.version-same", "handshake.http.session-ascii")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_initialize_agrees_on_the_proposed_revision_and_begins_a_session(server: Server, revision: str) -> None:
    http = Http(server.asgi(), revision)
    result = await http.initialize()
    assert result["protocolVersion"] == revision
    assert result["serverInfo"]["name"] == "wire"
    assert http.session_id is not None
    assert all("!" <= char <= "~" for char in http.session_id)
    assert len(http.session_id) >= 32
    assert text(await http.result(http.call("add", {"a": 1, "b": 2}))) == "3"


@pytest.mark.clause("handshake.lifecycle.version-other", "handshake.lifecycle.version-other-latest")
@pytest.mark.parametrize("proposed", ["1999-01-01", "", revisions.NEWEST.name])
async def test_an_unknown_revision_is_answered_with_the_newest_that_has_a_handshake(http: Http, proposed: str) -> None:
    params = {"protocolVersion": proposed, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    result = await http.result(http.request("initialize", params))
    assert result["protocolVersion"] == NEWEST


@pytest.mark.parametrize("params", [None, {}, {"protocolVersion": 1}, {"protocolVersion": NEWEST}])
async def test_an_initialize_that_is_refused_leaves_nothing_behind(gate: Gate, params: Any) -> None:
    store = MemorySessions()
    http = Http(build(gate, session_store=store).asgi())
    answer = await http.answer(http.request("initialize", params))
    assert answer["error"]["code"] == -32602
    assert len(store) == 0


async def test_no_session_is_begun_beyond_the_limit_which_is_named(gate: Gate) -> None:
    app = build(gate, limits=Limits(sessions=1)).asgi()
    first, second = Http(app), Http(app)
    await first.initialize()
    params = {"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    response = second.request("initialize", params)
    assert "sessions=1" in (await second.refusal(response, 503))["message"]
    assert "mcp-session-id" not in response.headers
    assert (await first.delete().begun()) == 204
    await second.initialize()


async def test_capabilities_and_instructions_are_those_of_the_revision(gate: Gate) -> None:
    server = build(gate, instructions="Be kind.")
    for revision in HANDSHAKE:
        result = await Http(server.asgi(), revision).initialize()
        assert result["instructions"] == "Be kind."
        assert result["capabilities"]["tools"] == {"listChanged": True}
        assert result["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}


# ------------------------------------------------------------------------------------------------------------- sessions


@pytest.mark.clause("handshake.http.session-missing")
async def test_a_message_without_its_session_is_refused(http: Http) -> None:
    await http.initialize()
    for message in (
        request("ping"),
        notification("notifications/initialized"),
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ):
        error = await http.refusal(http.post(message, mcp_session_id=None), 400)
        assert "Mcp-Session-Id" in error["message"]


@pytest.mark.clause("handshake.http.session-ended")
async def test_an_unknown_session_is_not_found(http: Http) -> None:
    await http.initialize()
    for response in (
        http.request("ping", mcp_session_id="other"),
        http.notify("notifications/initialized", mcp_session_id="other"),
        http.get(mcp_session_id="other"),
        http.delete(mcp_session_id="other"),
    ):
        await http.refusal(response, 404)


@pytest.mark.clause("handshake.http.session-ended")
async def test_a_session_that_was_ended_is_not_found_any_more(http: Http) -> None:
    await http.initialize()
    response = http.delete()
    assert (await response.body(), response.status) == (b"", 204)
    await http.refusal(http.request("ping"), 404)
    await http.refusal(http.get(), 404)
    await http.refusal(http.delete(), 404)


@pytest.mark.clause("handshake.http.session-ended")
async def test_a_session_is_forgotten_when_it_was_idle_for_its_time(gate: Gate) -> None:
    seconds = [0.0]
    store = MemorySessions(now=lambda: seconds[0])
    http = Http(build(gate, session_store=store, limits=Limits(session_seconds=100)).asgi())
    await http.initialize()
    for _ in range(3):
        seconds[0] += 99
        await http.result(http.request("ping"))
    seconds[0] += 100
    await http.refusal(http.request("ping"), 404)


async def test_idle_time_begins_with_the_end_of_the_last_request_in_flight(gate: Gate) -> None:
    seconds = [0.0]
    store = MemorySessions(now=lambda: seconds[0])
    server = build(gate, session_store=store, limits=Limits(session_seconds=100))
    app = server.asgi()
    http = Http(app)
    await http.initialize()
    call = http.call("wait")
    await gate.entered.wait()
    for _ in range(5):  # what happens every now and then while a request is in flight
        seconds[0] += 60
        await app.here().streamable.conversations.tend()
    gate.opened.set()
    assert text(await http.result(call)) == "waited"
    seconds[0] += 99
    await http.result(http.request("ping"))


async def test_what_is_left_of_a_session_ends_with_it(gate: Gate) -> None:
    seconds = [0.0]
    store = MemorySessions(now=lambda: seconds[0])
    server = build(gate, session_store=store, limits=Limits(session_seconds=100))
    app = server.asgi()
    http = Http(app)
    await http.initialize()
    call = http.call("wait", meta={"progressToken": 1})
    await http.message(call)
    async with opened(http.get()):
        call.hang_up()
    assert len(server.changes) == 1
    seconds[0] += 101
    conversations = app.here().streamable.conversations
    await conversations.tend()
    await call.done()
    assert gate.cancelled.is_set()
    assert (len(conversations), len(server.changes)) == (0, 0)


async def test_nothing_goes_on_in_an_idle_session(server: Server) -> None:
    app = server.asgi()
    http = Http(app)
    await http.initialize()
    await http.result(http.call("add", {"a": 1, "b": 2}))
    await http.call("count", {"to": 2}, meta={"progressToken": 1}).rest()
    assert len(app.here().streamable.conversations) == 0


async def test_a_session_belongs_to_whoever_began_it(gate: Gate) -> None:
    from mcprelay.server.call import Principal

    who = [Principal("ada", claims={"exp": 1})]
    app = build(gate).asgi()

    async def admit(_scope: Any, _head: Any) -> Principal:
        return who[0]

    app.admit = admit
    http = Http(app)
    await http.initialize()
    who[0] = Principal("ada", claims={"exp": 2})
    await http.result(http.request("ping"))
    who[0] = Principal("eve")
    for response in (http.request("ping"), http.get(), http.delete()):
        await http.refusal(response, 404)
    who[0] = Principal("ada")
    await http.result(http.request("ping"))


async def test_sessions_kept_elsewhere_are_found_by_another_process(gate: Gate) -> None:
    store = CopyingStore()
    one = Http(build(gate, session_store=store).asgi())
    await one.initialize()
    await one.result(one.request("logging/setLevel", {"level": "error"}))
    two = Http(build(Gate(), session_store=store).asgi())
    two.session_id = one.session_id
    response = two.call("say")
    assert text(await two.result(response)) == "said"
    await two.result(two.request("logging/setLevel", {"level": "warning"}))
    assert [message["params"]["data"] for message in (await one.rest(one.call("say")))[:-1]] == ["warning"]
    assert (await two.delete().begun()) == 204
    await one.refusal(one.request("ping"), 404)


class CopyingStore:
    """Keeps bytes, as a store in another process does."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.broken = False

    async def load(self, id: str) -> Session | None:
        import msgspec

        from mcprelay.ports import Session

        if self.broken:
            raise OSError("no connection")
        return msgspec.json.decode(self.kept[id], type=Session) if id in self.kept else None

    async def save(self, id: str, session: Session, ttl: float) -> None:
        import msgspec

        if self.broken:
            raise OSError("no connection")
        self.kept[id] = msgspec.json.encode(session)

    async def touch(self, id: str, ttl: float) -> bool:
        return await self.load(id) is not None

    async def update(self, id: str, change: Callable[[Session], None], ttl: float) -> Session | None:
        session = await self.load(id)
        if session is not None:
            change(session)
            await self.save(id, session, ttl)
        return session

    async def drop(self, id: str) -> None:
        self.kept.pop(id, None)


async def test_what_another_process_changed_holds_for_calls_that_go_on_here(gate: Gate) -> None:
    store = CopyingStore()
    one = Http(build(gate, session_store=store).asgi())
    await one.initialize()
    two = Http(build(Gate(), session_store=store).asgi())
    two.session_id = one.session_id
    call = one.call("wait")
    await gate.entered.wait()
    await two.result(two.request("logging/setLevel", {"level": "emergency"}))
    await one.result(one.call("say"))
    gate.opened.set()
    await one.result(call)


async def test_a_session_of_a_revision_that_is_not_served_here_is_not_found(gate: Gate) -> None:
    store = CopyingStore()
    one = Http(build(gate, session_store=store).asgi(), HANDSHAKE[-1])
    await one.initialize()
    two = Http(build(gate, session_store=store, among=[NEWEST]).asgi())
    two.session_id = one.session_id
    await two.refusal(two.request("ping", mcp_protocol_version=None), 404)


async def test_a_session_that_ended_elsewhere_ends_what_goes_on_here(gate: Gate) -> None:
    store = CopyingStore()
    app = build(gate, session_store=store).asgi()
    one, two = Http(app), Http(build(Gate(), session_store=store).asgi())
    await one.initialize()
    two.session_id = one.session_id
    call, stream = one.call("wait"), one.get()
    await gate.entered.wait()
    await stream.begun()
    assert await two.delete().begun() == 204
    await app.here().streamable.conversations.tend()
    assert await one.rest(call) == []
    assert await one.rest(stream) == []
    assert gate.cancelled.is_set()
    assert not store.kept


async def test_a_store_that_fails_after_the_answer_harms_nobody(gate: Gate) -> None:
    store = CopyingStore()
    app = build(gate, session_store=store).asgi()
    http = Http(app)
    await http.initialize()
    call = http.call("wait")
    await gate.entered.wait()
    store.broken = True
    await app.here().streamable.conversations.tend()
    gate.opened.set()
    assert text(await http.result(call)) == "waited"
    await call.done()
    store.broken = False
    await http.result(http.request("ping"))


async def test_a_store_that_fails_is_said_so_and_not_that_the_session_is_gone(gate: Gate) -> None:
    store = CopyingStore()
    http = Http(build(gate, session_store=store).asgi())
    await http.initialize()
    store.broken = True
    await http.refusal(http.request("ping"), 503)
    params = {"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    await http.refusal(http.request("initialize", params), 503)
    store.broken = False
    await http.result(http.request("ping"))


# ------------------------------------------------------------------------------------------------------ version headers


@pytest.mark.parametrize("revision", STREAMABLE)
async def test_the_header_may_be_left_out_because_the_session_knows(server: Server, revision: str) -> None:
    http = Http(server.asgi(), revision)
    await http.initialize()
    await http.result(http.call("add", {"a": 1, "b": 2}, mcp_protocol_version=None))


@pytest.mark.clause("handshake.http.version-invalid", "handshake.lifecycle.respect-version")
@pytest.mark.parametrize("revision", STREAMABLE)
async def test_another_revision_than_the_sessions_is_refused(server: Server, revision: str) -> None:
    http = Http(server.asgi(), revision)
    await http.initialize()
    other = next(name for name in HANDSHAKE if name != revision)
    for response in (
        http.request("ping", mcp_protocol_version=other),
        http.get(mcp_protocol_version=other),
        http.delete(mcp_protocol_version=other),
        http.request("ping", mcp_protocol_version="v999"),
    ):
        await http.refusal(response, 400)
    await http.result(http.request("ping"))


# ---------------------------------------------------------------------------------------------------------------- calls


@pytest.mark.clause("handshake.http.answer-types")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_call_that_tells_nothing_is_answered_with_json(server: Server, revision: str) -> None:
    http = Http(server.asgi(), revision)
    await http.initialize()
    result = await http.result(http.call("add", {"a": 1, "b": 2}))
    assert text(result) == "3"
    structured = revisions.ALL[revision].has(Feature.STRUCTURED)
    assert result.get("structuredContent") == ({"result": 3} if structured else None)


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_every_method_of_the_revision_is_answered_in_its_shape(server: Server, revision: str) -> None:
    http = Http(server.asgi(), revision)
    await http.initialize()
    for method, params in (
        ("ping", None),
        ("tools/list", {}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": "wire://thing"}),
        ("logging/setLevel", {"level": "debug"}),
        ("resources/subscribe", {"uri": "wire://thing"}),
        ("resources/unsubscribe", {"uri": "wire://thing"}),
    ):
        await http.result(http.request(method, params))


@pytest.mark.clause(
    "handshake.http.stream-ends", "handshake.http.stream-until-response", "handshake.http.stream-response"
)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_progress_and_logs_come_on_the_stream_of_their_call_before_its_answer(
    server: Server, revision: str
) -> None:
    http = Http(server.asgi(), revision)
    await http.initialize()
    messages = await http.rest(http.call("count", {"to": 3}, meta={"progressToken": "t"}))
    assert [message["params"]["progress"] for message in messages[:-1]] == [0, 1, 2]
    assert {message["params"]["progressToken"] for message in messages[:-1]} == {"t"}
    assert text(messages[-1]["result"]) == "counted"
    said = await http.rest(http.call("say"))
    assert [message["params"]["level"] for message in said[:-1]] == ["info", "warning"]


@pytest.mark.clause("handshake.logging.set-level", "handshake.logging.invalid-level")
async def test_a_session_sets_its_log_level(http: Http) -> None:
    await http.initialize()
    await http.result(http.request("logging/setLevel", {"level": "debug"}))
    assert len(await http.rest(http.call("say"))) == 4
    await http.result(http.request("logging/setLevel", {"level": "emergency"}))
    await http.result(http.call("say"))
    error = await http.answer(http.request("logging/setLevel", {"level": "loud"}))
    assert error["error"]["code"] == -32602


async def test_errors_have_the_status_and_code_of_the_revision(http: Http) -> None:
    await http.initialize()
    unknown = http.request("no/such")
    assert (await http.answer(unknown))["error"]["code"] == -32601
    assert unknown.status == 200
    assert (await http.answer(http.request("tools/call", {})))["error"]["code"] == -32602
    assert (await http.answer(http.request("resources/read", {"uri": "wire://no"})))["error"]["code"] == -32002
    assert (await http.refusal(http.post(b"{"), 400))["code"] == -32700
    assert (await http.refusal(http.post({"jsonrpc": "2.0", "id": None, "method": "ping"}), 400))["code"] == -32600
    assert (await http.refusal(http.request("ping", id=1.5), 400))["code"] == -32600


@pytest.mark.clause("handshake.http.response-accepted", "handshake.cancellation.invalid-ignored")
@pytest.mark.parametrize(
    "message",
    [
        notification("notifications/initialized"),
        notification("notifications/roots/list_changed"),
        notification("notifications/cancelled", {"requestId": 99}),
        notification("notifications/cancelled", {"requestId": []}),
        notification("notifications/no/such", {"x": 1}),
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "no"}},
    ],
)
async def test_notifications_and_answers_are_accepted(http: Http, message: Any) -> None:
    await http.initialize()
    await http.accepted(http.post(message))


async def test_an_id_that_is_in_use_is_refused(http: Http, gate: Gate) -> None:
    await http.initialize()
    call = http.call("wait", id=5)
    await gate.entered.wait()
    await http.refusal(http.request("ping", id=5), 400)
    gate.opened.set()
    await http.result(call)
    await http.result(http.request("ping", id=5))


@pytest.mark.clause("handshake.http.answer-types")
@pytest.mark.parametrize(
    ("accept", "kind"), [("application/json", "application/json"), ("text/event-stream", "text/event-stream")]
)
async def test_a_client_gets_what_it_accepts(http: Http, accept: str, kind: str) -> None:
    await http.initialize()
    response = http.call("count", {"to": 3}, meta={"progressToken": 1}, accept=accept)
    await response.body()
    assert response.headers["content-type"] == kind
    plain = http.call("add", {"a": 1, "b": 2}, accept=accept)
    await plain.body()
    assert plain.headers["content-type"] == kind
    params = {"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    begun = http.request("initialize", params, accept=accept)
    await begun.body()
    assert begun.headers["content-type"] == kind
    assert begun.headers["mcp-session-id"]


async def test_a_long_silence_becomes_a_stream_that_is_kept_alive(gate: Gate) -> None:
    http = Http(build(gate, limits=Limits(keep_alive=0.01)).asgi())
    await http.initialize()
    call = http.call("wait")
    assert await call.begun() == 200
    await until(lambda: call.comments >= 2)
    gate.opened.set()
    (answer,) = await http.rest(call)
    assert text(answer["result"]) == "waited"


# --------------------------------------------------------------------------------------- cancellation, and hanging up


@pytest.mark.clause("handshake.cancellation.server-stops")
async def test_a_cancelled_call_ends_and_gets_no_answer(http: Http, gate: Gate) -> None:
    await http.initialize()
    call = http.call("wait", id="w")
    await gate.entered.wait()
    await http.accepted(http.notify("notifications/cancelled", {"requestId": "w", "reason": "enough"}))
    assert await http.rest(call) == []
    assert gate.cancelled.is_set()
    await http.result(http.request("ping", id="w"))


async def test_a_cancelled_call_ends_its_stream(http: Http, gate: Gate) -> None:
    await http.initialize()
    call = http.call("wait", meta={"progressToken": 1}, id=3)
    await http.message(call)
    await http.accepted(http.notify("notifications/cancelled", {"requestId": 3}))
    assert await http.rest(call) == []
    assert gate.cancelled.is_set()


@pytest.mark.clause("handshake.http.disconnect-no-cancel")
async def test_hanging_up_does_not_cancel_a_call(http: Http, gate: Gate) -> None:
    await http.initialize()
    call = http.call("wait")
    await gate.entered.wait()
    call.hang_up()
    await http.result(http.request("ping"))
    assert not gate.cancelled.is_set()
    gate.opened.set()
    await call.done()


async def test_a_call_whose_client_hung_up_can_be_cancelled(http: Http, gate: Gate) -> None:
    await http.initialize()
    call = http.call("wait", id=3)
    await gate.entered.wait()
    call.hang_up()
    await http.accepted(http.notify("notifications/cancelled", {"requestId": 3}))
    await call.done()
    assert gate.cancelled.is_set()


async def test_calls_without_a_client_do_not_keep_others_from_being_served_and_are_bounded(gate: Gate) -> None:
    app = build(gate, limits=Limits(concurrent_requests=1, detached_calls=1)).asgi()
    http = Http(app)
    load = app.here().load
    await http.initialize()
    first = http.call("wait")
    await gate.entered.wait()
    assert "concurrent_requests=1" in (await http.refusal(http.request("ping"), 503))["message"]
    first.hang_up()
    await until(lambda: load.detached == 1)
    await http.result(http.request("ping"))
    second = http.call("wait")
    await until(lambda: load.requests == 1)
    second.hang_up()
    await second.done()
    assert gate.cancelled.is_set()
    assert not first.task.done()
    gate.opened.set()
    await first.done()
    assert (load.requests, load.detached) == (0, 0)


async def test_deleting_a_session_ends_its_calls_and_streams(http: Http, gate: Gate) -> None:
    await http.initialize()
    call = http.call("wait")
    stream = http.get()
    await stream.begun()
    await gate.entered.wait()
    assert await http.delete().begun() == 204
    assert await http.rest(call) == []
    assert await http.rest(stream) == []
    assert gate.cancelled.is_set()


# ------------------------------------------------------------------------------------------------ asking the client


@pytest.mark.parametrize("revision", ELICITING)
async def test_a_question_goes_on_the_stream_of_its_call_and_the_answer_is_posted(
    server: Server, revision: str
) -> None:
    http = Http(server.asgi(), revision)
    await http.initialize(elicitation={})
    call = http.call("book")
    question = await http.message(call)
    assert question["method"] == "elicitation/create"
    answer = {"action": "accept", "content": {"seat": "1A"}}
    await http.accepted(http.post({"jsonrpc": "2.0", "id": question["id"], "result": answer}))
    (last,) = await http.rest(call)
    assert text(last["result"]) == "booked 1A"


async def test_questions_of_two_calls_at_once_are_not_mixed_up(http: Http) -> None:
    await http.initialize(elicitation={}, roots={})
    book, folders = http.call("book"), http.call("folders")
    seat, roots = await http.message(book), await http.message(folders)
    assert seat["id"] != roots["id"]
    await http.accepted(http.post({"jsonrpc": "2.0", "id": roots["id"], "result": {"roots": [{"uri": "file:///r"}]}}))
    await http.accepted(http.post({"jsonrpc": "2.0", "id": seat["id"], "result": {"action": "decline"}}))
    assert text((await http.rest(folders))[-1]["result"]) == "file:///r"
    assert text((await http.rest(book))[-1]["result"]) == "decline"


async def test_an_error_is_an_answer_too(http: Http) -> None:
    await http.initialize(roots={})
    call = http.call("folders")
    question = await http.message(call)
    error = {"code": -32000, "message": "no roots today", "data": {"why": 1}}
    await http.accepted(http.post({"jsonrpc": "2.0", "id": question["id"], "error": error}))
    (last,) = await http.rest(call)
    assert last["error"]["message"] == "no roots today"


@pytest.mark.clause("handshake.lifecycle.only-negotiated")
async def test_nothing_is_asked_that_the_client_has_not_declared(http: Http) -> None:
    await http.initialize()
    answer = await http.answer(http.call("book"))
    assert "elicitation/create" in answer["error"]["message"]


async def test_one_session_cannot_answer_for_another(server: Server) -> None:
    app = server.asgi()
    mine, yours = Http(app), Http(app)
    await mine.initialize(roots={})
    await yours.initialize(roots={})
    call = mine.call("folders")
    question = await mine.message(call)
    forged = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///evil"}]}}
    await yours.accepted(yours.post(forged))
    await mine.accepted(mine.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}))
    assert text((await mine.rest(call))[-1]["result"]) == ""


@pytest.mark.clause("handshake.cancellation.server-own", "handshake.cancellation.server-late")
async def test_the_question_of_a_cancelled_call_is_taken_back(http: Http) -> None:
    await http.initialize(roots={})
    call = http.call("folders", id=3)
    question = await http.message(call)
    await http.accepted(http.notify("notifications/cancelled", {"requestId": 3}))
    (notice,) = await http.rest(call)
    assert notice["method"] == "notifications/cancelled"
    assert notice["params"]["requestId"] == question["id"]
    await http.accepted(http.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}))


async def test_a_question_that_nobody_can_answer_fails_at_once(gate: Gate) -> None:
    http = Http(build(gate, limits=Limits(event_log_bytes=0)).asgi())
    await http.initialize(roots={})
    call = http.call("folders")
    await http.message(call)
    call.hang_up()
    await call.done()
    only_json = await http.answer(http.call("folders", accept="application/json"))
    assert "Accept" in only_json["error"]["message"]


# ---------------------------------------------------------------------------------------------------------- GET streams


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_changes_are_told_on_the_get_stream(server: Server, revision: str) -> None:
    http = Http(server.asgi(), revision)
    await http.initialize()
    await http.result(http.request("resources/subscribe", {"uri": "wire://thing"}))
    async with opened(http.get()) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["x-accel-buffering"] == "no"
        server.add_tool(lambda: "x", name="x")
        assert (await http.message(stream))["method"] == "notifications/tools/list_changed"
        await server.resource_updated("wire://other")
        await server.resource_updated("wire://thing")
        updated = await http.message(stream)
        assert updated["method"] == "notifications/resources/updated"
        assert updated["params"] == {"uri": "wire://thing"}
        await http.result(http.request("resources/unsubscribe", {"uri": "wire://thing"}))
        await server.resource_updated("wire://thing")
        server.remove_resource("wire://thing")
        assert (await http.message(stream))["method"] == "notifications/resources/list_changed"


async def test_what_changes_while_no_stream_is_open_is_told_once_when_one_is(server: Server, http: Http) -> None:
    await http.initialize()
    async with opened(http.get()):
        pass
    for number in range(3):
        server.add_tool(lambda: "x", name=f"x{number}")
    async with opened(http.get()) as stream:
        assert (await http.message(stream))["method"] == "notifications/tools/list_changed"
        server.remove_resource("wire://thing")
        assert (await http.message(stream))["method"] == "notifications/resources/list_changed"


async def test_a_second_stream_takes_the_place_of_the_first(server: Server, http: Http) -> None:
    await http.initialize()
    first = http.get()
    await first.begun()
    async with opened(http.get()) as second:
        assert await http.rest(first) == []
        server.add_tool(lambda: "x", name="x")
        assert (await http.message(second))["method"] == "notifications/tools/list_changed"


async def test_each_session_hears_of_a_change_once(server: Server) -> None:
    app = server.asgi()
    clients = [Http(app) for _ in range(3)]
    streams = []
    for client in clients:
        await client.initialize()
        streams.append(client.get())
        await streams[-1].begun()
    server.add_tool(lambda: "x", name="x")
    for client, stream in zip(clients, streams, strict=True):
        await client.message(stream)
        await client.delete().begun()
        assert await client.rest(stream) == []


async def test_there_are_no_more_streams_than_may_be_and_the_limit_is_named(gate: Gate) -> None:
    app = build(gate, limits=Limits(listen_streams=1)).asgi()
    one, two = Http(app), Http(app)
    await one.initialize()
    await two.initialize()
    async with opened(one.get()):
        assert "listen_streams=1" in (await two.refusal(two.get(), 503))["message"]
    async with opened(two.get()):
        pass


async def test_open_streams_are_not_requests_that_are_worked_on(gate: Gate) -> None:
    http = Http(build(gate, limits=Limits(concurrent_requests=1)).asgi())
    await http.initialize()
    async with opened(http.get()):
        await http.result(http.request("ping"))


async def test_a_server_that_stops_ends_its_streams(server: Server, http: Http) -> None:
    await http.initialize()
    stream = http.get()
    await stream.begun()
    await server.stop()
    assert await http.rest(stream) == []
    await stream.done()


@pytest.mark.clause("handshake.lifecycle.only-negotiated")
async def test_only_changes_that_are_declared_are_told(gate: Gate) -> None:
    from mcprelay.types import ServerCapabilities

    declared = ServerCapabilities(tools={}, resources={"listChanged": True, "subscribe": True})
    server = build(gate, capabilities=declared)
    http = Http(server.asgi())
    await http.initialize()
    async with opened(http.get()) as stream:
        server.add_tool(lambda: "x", name="x")
        server.remove_resource("wire://thing")
        assert (await http.message(stream))["method"] == "notifications/resources/list_changed"


# ---------------------------------------------------------------------------------------------------- resumable streams


@pytest.mark.parametrize("revision", RESUMABLE)
async def test_a_stream_that_was_lost_is_resumed_after_the_event_that_was_seen(revision: str, gate: Gate) -> None:
    http = Http(build(gate).asgi(), revision)
    await http.initialize()
    call = http.call("wait", meta={"progressToken": 1})
    await http.message(call)
    seen = call.last_event_id
    assert seen
    call.hang_up()
    gate.opened.set()
    await call.done()
    (answer,) = await http.rest(http.get(seen))
    assert text(answer["result"]) == "waited"


async def test_a_stream_that_goes_on_is_joined(http: Http, gate: Gate) -> None:
    await http.initialize()
    call = http.call("wait", meta={"progressToken": 1})
    await http.message(call)
    again = http.get(call.last_event_id)
    await again.begun()
    assert await http.rest(call) == []
    gate.opened.set()
    (answer,) = await http.rest(again)
    assert text(answer["result"]) == "waited"
    assert text((await http.rest(http.get(call.last_event_id)))[0]["result"]) == "waited"


@pytest.mark.clause("handshake.http.resume-own")
async def test_only_events_of_that_stream_are_told_again(http: Http) -> None:
    await http.initialize()
    one = http.call("count", {"to": 3}, meta={"progressToken": "one"})
    first = await one.event()
    two = await http.rest(http.call("count", {"to": 3}, meta={"progressToken": "two"}))
    assert len(two) == 4
    again = await http.rest(http.get(first.id))
    assert {message["params"]["progressToken"] for message in again[:-1]} == {"one"}


@pytest.mark.clause("handshake.http.resume-own")
async def test_an_event_of_another_session_resumes_nothing(server: Server) -> None:
    app = server.asgi()
    mine, yours = Http(app), Http(app)
    await mine.initialize()
    await yours.initialize()
    stream = mine.call("count", {"to": 3}, meta={"progressToken": 1})
    await mine.rest(stream)
    error = await yours.refusal(yours.get(stream.last_event_id), 400)
    assert "Last-Event-ID" in error["message"]


@pytest.mark.parametrize("unknown", ["x", "~", "x~1", "1", "0", "0~", "0~999999", "0~999999x", "0~x", "../0~1"])
async def test_an_unknown_event_is_refused_and_who_reads_goes_on_reading(
    server: Server, http: Http, unknown: str
) -> None:
    await http.initialize()
    async with opened(http.get()) as stream:
        error = await http.refusal(http.get(unknown), 400)
        assert "a GET without it begins anew" in error["message"]
        server.add_tool(lambda: "x", name="x")
        await http.message(stream)
    async with opened(http.get()):
        pass


async def test_an_unknown_event_of_a_stream_that_goes_on_is_refused(http: Http, gate: Gate) -> None:
    await http.initialize()
    async with opened(http.call("wait", meta={"progressToken": 1})) as call:
        await http.message(call)
        name = call.last_event_id.partition("~")[0]
        await http.refusal(http.get(f"{name}~99999"), 400)
        gate.opened.set()
        assert text((await http.message(call))["result"]) == "waited"


async def test_a_stream_that_is_refused_leaves_nothing_behind(server: Server) -> None:
    app = server.asgi()
    http = Http(app)
    await http.initialize()
    response = http.get("0~99999")
    await http.refusal(response, 400)
    await response.done()
    assert len(app.here().streamable.conversations) == 0
    assert len(server.changes) == 0


async def test_an_event_is_unknown_where_none_is_kept(gate: Gate) -> None:
    http = Http(build(gate, limits=Limits(event_log_bytes=0)).asgi())
    await http.initialize()
    await http.refusal(http.get("0~1"), 400)


async def test_the_get_stream_is_resumed_too(server: Server, http: Http) -> None:
    await http.initialize()
    async with opened(http.get()) as stream:
        server.add_tool(lambda: "x", name="x")
        await http.message(stream)
        seen = stream.last_event_id
        server.remove_resource("wire://thing")
        await http.message(stream)
    async with opened(http.get(seen)) as again:
        assert (await http.message(again))["method"] == "notifications/resources/list_changed"
        server.add_tool(lambda: "y", name="y")
        assert (await http.message(again))["method"] == "notifications/tools/list_changed"


async def test_no_event_has_an_id_before_it_is_kept(gate: Gate) -> None:
    log = SlowLog()
    http = Http(build(gate, event_log=log).asgi())
    await http.initialize()
    call = http.call("count", {"to": 1}, meta={"progressToken": 1})
    await log.asked.wait()
    assert call.status == 0
    log.go_on.set()
    event = await call.event()
    assert event.id.endswith("~kept1")
    assert log.kept[0][1] == b""


class SlowLog:
    """Keeps nothing before it is told to."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()
        self.kept: list[tuple[str, bytes]] = []
        self.broken = False

    async def append(self, stream: str, data: bytes) -> str:
        self.asked.set()
        await self.go_on.wait()
        if self.broken:
            raise OSError("no space")
        self.kept.append((stream, data))
        return f"kept{len(self.kept)}"

    async def after(self, stream: str, event_id: str) -> Any:
        raise KeyError(event_id)
        yield


async def test_an_event_that_cannot_be_kept_has_no_id_and_is_sent_all_the_same(gate: Gate) -> None:
    log = SlowLog()
    log.broken = True
    log.go_on.set()
    http = Http(build(gate, event_log=log).asgi())
    await http.initialize()
    call = http.call("count", {"to": 2}, meta={"progressToken": 1})
    assert len(await http.rest(call)) == 3
    assert call.last_event_id == ""


@pytest.mark.parametrize("revision", [name for name in HANDSHAKE if name not in RESUMABLE])
async def test_events_have_no_ids_where_the_revision_has_none(server: Server, revision: str) -> None:
    http = Http(server.asgi(), revision)
    await http.initialize()
    call = http.call("count", {"to": 2}, meta={"progressToken": 1})
    await http.rest(call)
    assert call.last_event_id == ""


# ------------------------------------------------------------------------------------------------------------- polling


@pytest.mark.parametrize("revision", POLLING)
async def test_a_stream_begins_with_an_event_that_has_an_id_and_no_data(server: Server, revision: str) -> None:
    http = Http(server.asgi(), revision)
    await http.initialize()
    call = http.call("count", {"to": 1}, meta={"progressToken": 1})
    await call.body()
    begin = b"".join(call.chunks).split(b"\n\n")[0]
    assert begin.startswith(b"id: ")
    assert begin.endswith(b"\ndata: ")


@pytest.mark.parametrize("revision", [name for name in RESUMABLE if name not in POLLING])
async def test_no_stream_begins_so_where_clients_do_not_know_it(server: Server, revision: str) -> None:
    http = Http(server.asgi(), revision)
    await http.initialize()
    call = http.call("count", {"to": 1}, meta={"progressToken": 1})
    await call.body()
    assert b"data: \n" not in b"".join(call.chunks)


@pytest.mark.parametrize("revision", POLLING)
async def test_a_call_lets_go_of_its_connection_and_the_result_is_fetched(revision: str, gate: Gate) -> None:
    http = Http(build(gate).asgi(), revision)
    await http.initialize()
    call = http.call("poll")
    assert await http.rest(call) == []
    assert call.retry == 7
    waiting = http.get(call.last_event_id)
    await waiting.begun()
    gate.opened.set()
    (answer,) = await http.rest(waiting)
    assert text(answer["result"]) == "polled"
    (again,) = await http.rest(http.get(call.last_event_id))
    assert again == answer


@pytest.mark.parametrize("revision", [name for name in HANDSHAKE if name not in POLLING])
async def test_a_connection_is_kept_where_clients_do_not_poll(revision: str, gate: Gate) -> None:
    http = Http(build(gate).asgi(), revision)
    await http.initialize()
    call = http.call("poll")
    await gate.entered.wait()
    assert not call.ended
    gate.opened.set()
    assert text(await http.result(call)) == "polled"


async def test_a_connection_is_kept_where_nothing_could_be_fetched(gate: Gate) -> None:
    http = Http(build(gate, limits=Limits(event_log_bytes=0)).asgi())
    await http.initialize()
    call = http.call("poll")
    await gate.entered.wait()
    gate.opened.set()
    assert text((await http.rest(call))[-1]["result"]) == "polled"


# ------------------------------------------------------------------------------------------------------------- batches


@pytest.fixture
async def batching(server: Server) -> Http:
    http = Http(server.asgi(), BATCHING[0])
    await http.initialize()
    return http


async def answers(http: Http, response: Any) -> dict[Any, dict[str, Any]]:
    found = json.loads(await response.body())
    assert response.status == 200
    return {http.checked(answer).get("id"): answer for answer in found}


@pytest.mark.clause("handshake.batch.received", "handshake.batch.answer-types", "handshake.batch.body")
async def test_the_answers_of_a_batch_are_an_array(batching: Http) -> None:
    calls = [request("tools/call", {"name": "add", "arguments": {"a": n, "b": 1}}, id=n) for n in range(3)]
    response = batching.post([*calls, notification("notifications/x"), request("no/such", id="u")])
    found = await answers(batching, response)
    assert [text(found[n]["result"]) for n in range(3)] == ["1", "2", "3"]
    assert found["u"]["error"]["code"] == -32601
    assert len(found) == 4


async def test_a_batch_of_one_is_answered_by_an_array_of_one(batching: Http) -> None:
    assert list(await answers(batching, batching.post([request("ping", id=1)]))) == [1]


@pytest.mark.clause("handshake.batch.accepted", "handshake.batch.body")
async def test_a_batch_without_requests_is_accepted(batching: Http) -> None:
    await batching.accepted(batching.post([notification("notifications/x"), {"jsonrpc": "2.0", "id": 9, "result": {}}]))


async def test_what_is_no_message_in_a_batch_is_answered_in_its_place(batching: Http) -> None:
    response = batching.post([1, request("ping", id=1), {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}])
    found = json.loads(await response.body())
    assert sorted(str(answer["id"]) for answer in found) == ["1", "None", "None"]
    for answer in found:
        batching.checked(answer)


@pytest.mark.clause("handshake.batch.initialize-alone")
async def test_initialize_is_no_part_of_a_batch(batching: Http) -> None:
    found = await answers(batching, batching.post([request("initialize", {}, id=1), request("ping", id=2)]))
    assert found[1]["error"]["code"] == -32600
    assert found[2]["result"] == {}


@pytest.mark.clause(
    "handshake.batch.answered-each",
    "handshake.batch.related",
    "handshake.batch.stream-until-response",
    "handshake.batch.stream-ends",
    "handshake.batch.answer-types",
)
async def test_a_batch_that_tells_something_is_answered_on_one_stream(batching: Http) -> None:
    batch = [
        request("tools/call", {"name": "count", "arguments": {"to": 2}, "_meta": {"progressToken": token}}, id=token)
        for token in (1, 2)
    ]
    messages = await batching.rest(batching.post(batch))
    assert sorted(message["id"] for message in messages if "id" in message) == [1, 2]
    progress = [message["params"]["progressToken"] for message in messages if "method" in message]
    assert sorted(progress) == [1, 1, 2, 2]


async def test_one_call_of_a_batch_is_cancelled_and_the_others_are_answered(batching: Http, gate: Gate) -> None:
    response = batching.post(
        [request("tools/call", {"name": "wait", "arguments": {}}, id="w"), request("ping", id="p")]
    )
    await gate.entered.wait()
    await batching.accepted(batching.notify("notifications/cancelled", {"requestId": "w"}))
    assert list(await answers(batching, response)) == ["p"]


async def test_a_batch_may_bring_answers_and_requests_together(batching: Http) -> None:
    await batching.initialize(roots={})
    call = batching.call("folders")
    question = await batching.message(call)
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
    found = await answers(batching, batching.post([answer, request("ping", id="p")]))
    assert list(found) == ["p"]
    await batching.rest(call)


# --------------------------------------------------------------------------------------------------- without sessions


@pytest.mark.clause("handshake.http.version-assumed")
@pytest.mark.parametrize("mode", ["optional", "off"])
async def test_plain_calls_need_no_session_where_the_server_says_so(gate: Gate, mode: Any) -> None:
    http = Http(build(gate, sessions=mode).asgi())
    assert text(await http.result(http.call("add", {"a": 1, "b": 2}, mcp_protocol_version=NEWEST))) == "3"
    http.revision = BATCHING[0]
    assert text(await http.result(http.call("add", {"a": 1, "b": 2}))) == "3"
    messages = await http.rest(http.call("count", {"to": 2}, meta={"progressToken": 1}))
    assert len(messages) == 3
    await http.accepted(http.notify("notifications/initialized"))
    await http.accepted(http.notify("notifications/cancelled", {"requestId": 1}))
    assert list(await answers(http, http.post([request("ping", id=1)]))) == [1]


async def test_without_sessions_nothing_is_promised_that_needs_one(gate: Gate) -> None:
    http = Http(build(gate, sessions="off").asgi())
    result = await http.initialize(initialized=False)
    assert http.session_id is None
    assert result["capabilities"]["tools"] == {}
    assert result["capabilities"]["resources"] == {}
    assert await http.get().begun() == 405
    assert await http.delete().begun() == 405
    headers = {"mcp_protocol_version": NEWEST}
    subscribed = await http.answer(http.request("resources/subscribe", {"uri": "wire://thing"}, **headers))
    assert subscribed["error"]["code"] == -32601
    await http.result(http.request("logging/setLevel", {"level": "error"}, **headers))


async def test_an_optional_session_is_a_whole_one(gate: Gate) -> None:
    http = Http(build(gate, sessions="optional").asgi())
    await http.initialize(roots={})
    call = http.call("folders")
    question = await http.message(call)
    await http.accepted(http.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}))
    await http.rest(call)
    await http.refusal(http.request("ping", mcp_session_id="other"), 404)


# ------------------------------------------------------------------------------------------------------ many at once


async def test_many_calls_of_many_sessions_at_once_get_their_own_answers(server: Server) -> None:
    app = server.asgi()
    clients = [Http(app, revision) for revision in HANDSHAKE * 3]
    for client in clients:
        await client.initialize()

    async def use(client: Http, number: int) -> None:
        for value in range(10):
            assert text(await client.result(client.call("add", {"a": number, "b": value}))) == str(number + value)

    await asyncio.gather(*(use(client, number * 100) for number, client in enumerate(clients)))
    assert len(app.here().streamable.conversations) == 0
    assert app.here().load.requests == 0
