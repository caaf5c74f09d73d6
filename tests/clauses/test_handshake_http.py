"""The HTTP of the handshake era: sessions, their headers, and which stream a message comes on."""

import asyncio
import json
import logging
from collections import Counter
from typing import Any

import pytest

from mcprelay import CallFailed, Client, Context, PromptsChanged, Server, ToolsChanged, revisions
from mcprelay.client.http import HttpSender
from mcprelay.client.memory import Memory
from mcprelay.ports import Request
from mcprelay.revisions import NEWEST_HANDSHAKE, Era, Feature, Revision
from tests.client.conftest import StoppedClock
from tests.client.peer import INITIALIZED, fresh
from tests.client.scripted_http import Exchange, ScriptedHttp
from tests.matrix.house import make
from tests.matrix.tape import Tape, TapedSender
from tests.server.wire import INFO, Http, notification, opened, request

STREAMABLE = [one for one in revisions.of_era(Era.HANDSHAKE) if one.http.streamable]
WITH_HEADER = [one for one in STREAMABLE if one.http.version_header]
RESUMABLE = [one for one in STREAMABLE if one.http.resumable]
POLLING = [one for one in STREAMABLE if one.http.polling]


@pytest.fixture
async def clock() -> StoppedClock:
    """Time stands still."""
    return StoppedClock(asyncio.get_running_loop())


def each(which: list[Revision]) -> Any:
    return pytest.mark.parametrize("revision", which, ids=lambda revision: revision.name)


# --- what a client sends, over a real wire


@pytest.mark.clause(
    "handshake.http.session-header",
    "handshake.http.version-header",
    "handshake.http.version-negotiated",
    "handshake.lifecycle.version-header",
    "handshake.http.post",
    "handshake.http.answers-posted",
    "handshake.http.accept-post",
    "handshake.http.accept-get",
    "handshake.http.single-message",
    "handshake.http.delete",
)
@each(STREAMABLE)
async def test_every_request_after_the_first_says_session_and_version_until_the_client_ends_it(revision: Revision):
    tape = Tape(revision.name)
    sender = TapedSender(HttpSender(), tape)
    options: dict[str, Any] = {"revision": revision.name, "memory": Memory(), "sender": sender, "on_roots": []}
    async with make().serve("http", port=0) as running, Client(running.url, **options) as client:
        async with client.listen(tools=True) as events:
            await client.call_tool("ask_roots")
            await client.call_tool("change", {"what": "tools"})
            await anext(events)
            begun = asyncio.Event()
            calling = asyncio.ensure_future(client.call_tool("wait", on_progress=lambda _: begun.set()))
            await begun.wait()
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
            await client.call_tool("given_up")
    greeting, *rest = [{name.lower(): value for name, value in sent.headers} for sent in tape.requests]
    assert "mcp-session-id" not in greeting
    (session,) = {headers.get("mcp-session-id") for headers in rest}
    assert session
    if revision in WITH_HEADER:
        assert {headers.get("mcp-protocol-version") for headers in rest} == {revision.name}
    kinds = Counter(sent.method for sent in tape.requests)
    assert (kinds["DELETE"], tape.requests[-1].method) == (1, "DELETE")
    assert kinds["GET"] >= 1
    for sent in tape.requests:
        accepted = {part.strip() for part in dict(_lower(sent)).get("accept", "").split(",")}
        if sent.method == "POST":
            assert accepted == {"application/json", "text/event-stream"}
            assert (sent.body or b"").startswith(b"{")
        elif sent.method == "GET":
            assert accepted == {"text/event-stream"}
    posted = [b'"method"' not in (sent.body or b"") for sent in tape.requests if sent.method == "POST"]
    assert posted.count(True) == 1, "the answer to the question is a POST of its own"
    assert tape.said("client", "notifications/cancelled")
    assert tape.faults == []


def _lower(sent: Request) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in sent.headers]


@pytest.mark.clause("handshake.http.session-secure")
async def test_a_session_id_is_in_no_log_error_or_text_and_goes_nowhere_else(caplog: Any):
    secret = "5e551017-0f-a-kind"
    elsewhere: list[str] = []

    async def stranger(exchange: Exchange) -> None:
        elsewhere.append(exchange.path)
        await exchange.reply(404)

    async def respond(exchange: Exchange) -> None:
        if exchange.asks == "initialize":
            await exchange.result(INITIALIZED, headers={"mcp-session-id": secret})
        elif exchange.asks == "tools/call":
            await exchange.reply(307, b"", location=other.url)
        else:
            await exchange.reply(202 if exchange.method == "POST" else 405)

    with caplog.at_level(logging.DEBUG):
        async with (
            ScriptedHttp(stranger) as other,
            ScriptedHttp(respond) as http,
            fresh(http.url, revision=NEWEST_HANDSHAKE.name) as client,
        ):
            with pytest.raises(CallFailed) as caught:
                await client.call_tool("t")
            assert secret not in f"{caught.value!r} {caught.value} {client!r} {client.server!r} {vars(caught.value)}"
    assert secret not in caplog.text
    assert elsewhere == []


def now() -> float:
    """What the stopped clock shows."""
    return asyncio.get_running_loop().time()


async def passing(clock: StoppedClock, awaited: asyncio.Future[Any], *, seconds: float) -> None:
    """Let time pass in parts of `seconds`, with turns for the sockets between them, until something is there."""
    for _ in range(80):
        for _ in range(200):
            if awaited.done():
                return
            await asyncio.sleep(0)
        await clock.advance(max(seconds, 1) / 8)


@pytest.mark.clause("handshake.http.retry", "handshake.http.poll", "handshake.http.resume")
@pytest.mark.parametrize("seconds", [0, 3, 120, 86_400])
async def test_a_stream_is_asked_for_again_after_the_time_that_the_server_names_and_not_before(
    seconds: int, clock: StoppedClock
):
    posted: list[Exchange] = []
    ended: list[float] = []
    asked: list[float] = []

    async def respond(exchange: Exchange) -> None:
        if exchange.method == "GET":
            asked.append(now())
            assert exchange.headers["last-event-id"] == "e1"
            await exchange.stream()
            await exchange.event({"jsonrpc": "2.0", "id": posted[0].message["id"], "result": {"content": []}})
            await exchange.end()
        elif exchange.asks == "initialize":
            await exchange.result(INITIALIZED, headers={"mcp-session-id": "s"})
        elif exchange.asks == "tools/call":
            posted.append(exchange)
            await exchange.stream()
            await exchange.event(id="e1", retry=seconds * 1000)
            ended.append(now())
            await exchange.end()
        else:
            await exchange.reply(202)

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url, revision=NEWEST_HANDSHAKE.name, request_timeout=1e6) as client:
            calling = asyncio.ensure_future(client.call_tool("t"))
            await passing(clock, calling, seconds=seconds)
            await calling
            clock.release()
    assert http.methods.count("GET") == 1
    assert round(asked[0] - ended[0], 6) >= seconds


@pytest.mark.clause("handshake.http.retry", "handshake.http.poll", "handshake.http.resume")
@pytest.mark.parametrize("seconds", [3, 120, 86_400])
async def test_the_sessions_own_stream_is_opened_again_after_the_time_that_the_server_names_and_not_before(
    seconds: int, clock: StoppedClock
):
    telling = {**INITIALIZED, "capabilities": {"tools": {"listChanged": True}, "prompts": {"listChanged": True}}}
    opened: list[str | None] = []
    ended: list[float] = []
    asked: list[float] = []

    async def respond(exchange: Exchange) -> None:
        if exchange.method == "GET":
            asked.append(now())
            opened.append(exchange.headers.get("last-event-id"))
            await exchange.stream()
            note = "tools" if len(opened) == 1 else "prompts"
            changed = {"jsonrpc": "2.0", "method": f"notifications/{note}/list_changed"}
            await exchange.event(changed, id=f"e{len(opened)}", retry=seconds * 1000)
            ended.append(now())
            await (exchange.end() if len(opened) == 1 else exchange.left())
        elif exchange.asks == "initialize":
            await exchange.result(telling, headers={"mcp-session-id": "s"})
        else:
            await exchange.reply(202)

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=NEWEST_HANDSHAKE.name) as client:
        async with client.listen(tools=True, prompts=True) as events:
            assert isinstance(await anext(events), ToolsChanged)
            again = asyncio.ensure_future(anext(events))
            await passing(clock, again, seconds=seconds)
            assert isinstance(await again, PromptsChanged)
            clock.release()
    assert opened == [None, "e1"]
    assert round(asked[1] - ended[0], 6) >= seconds


# --- which stream a message comes on


@pytest.fixture
def server() -> Server:
    server = Server("streams")

    @server.tool
    async def work(ctx: Context, name: str) -> str:
        ctx.progress(1)
        server.add_tool(lambda: "x", name=name)
        ctx.info(name)
        ctx.progress(2)
        return "worked"

    @server.tool
    async def ask(ctx: Context) -> str:
        return str(len(await ctx.roots()))

    @server.tool
    async def impatient(ctx: Context) -> str:
        try:
            async with asyncio.timeout(0.01):
                await ctx.roots()
        except TimeoutError:
            return "nobody answered"
        return "answered"

    return server


@pytest.mark.clause(
    "handshake.http.one-stream",
    "handshake.http.get-unrelated",
    "handshake.http.get-no-response",
    "handshake.http.stream-related",
    "handshake.http.stream-response",
)
@each(STREAMABLE)
async def test_what_belongs_to_a_call_comes_on_its_stream_and_everything_else_on_the_sessions_own(
    server: Server, revision: Revision
):
    http = Http(server.asgi(), revision.name)
    await http.initialize(roots={})
    async with opened(http.get()) as standing:
        calls = {name: http.call("work", {"name": name}, meta={"progressToken": name}) for name in ("one", "two")}
        for name, call in calls.items():
            *before, answer = await http.rest(call)
            assert [each["method"] for each in before] == [
                "notifications/progress",
                "notifications/message",
                "notifications/progress",
            ]
            assert {each["params"].get("progressToken", name) for each in before} == {name}
            assert answer["result"]["content"][0]["text"] == "worked"
        asked = http.call("ask")
        question = await http.message(asked)
        assert question["method"] == "roots/list"
        await http.accepted(http.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}))
        assert (await http.rest(asked))[-1]["result"]["content"][0]["text"] == "0"
        await http.delete().begun()
        heard = await http.rest(standing)
    assert {each["method"] for each in heard} == {"notifications/tools/list_changed"}
    assert not any("id" in each for each in heard)


@pytest.mark.clause("handshake.http.event-ids-unique", "handshake.http.event-ids-stream", "handshake.http.resume-own")
@each(RESUMABLE)
async def test_no_two_events_of_a_session_share_an_id_and_each_id_leads_back_to_its_stream(
    server: Server, revision: Revision
):
    http = Http(server.asgi(), revision.name)
    await http.initialize()
    first: dict[str, str] = {}
    ids: list[str] = []
    async with opened(http.get()) as standing:
        for name in ("one", "two", "three"):
            call = http.call("work", {"name": name}, meta={"progressToken": name})
            message: dict[str, Any] = {}
            while "result" not in message:
                event = await call.event()
                ids.append(event.id)
                message = json.loads(event.data) if event.data else {}
                if message:
                    first.setdefault(name, event.id)
        ids.append((await standing.event()).id)
    assert all(ids)
    assert len(set(ids)) == len(ids)
    for name, id in first.items():
        *before, answer = await http.rest(http.get(id))
        assert [each["params"].get("progressToken", each["params"].get("data")) for each in before] == [name, name]
        assert answer["result"]["content"][0]["text"] == "worked"


@pytest.mark.clause("handshake.http.retry-before-closing", "handshake.http.get-retry", "handshake.http.priming")
@each(POLLING)
async def test_who_is_let_go_was_given_an_id_first_and_is_told_when_to_come_back(revision: Revision):
    server = Server("letting go")
    going = asyncio.Event()

    @server.tool
    async def poll(ctx: Context) -> str:
        ctx.close_stream(retry_ms=40)
        await going.wait()
        return "polled"

    http = Http(server.asgi(), revision.name)
    await http.initialize()
    call = http.call("poll")
    assert await http.rest(call) == []
    parts = b"".join(call.chunks).split(b"\n\n")
    assert parts[0].startswith(b"id: ")
    assert parts[0].endswith(b"data: ")
    assert any(b"retry: 40" in part for part in parts[1:])
    going.set()
    assert (await http.rest(http.get(call.last_event_id)))[-1]["result"]["content"][0]["text"] == "polled"


@pytest.mark.clause(
    "handshake.lifecycle.timeouts-server", "handshake.cancellation.server-own", "handshake.cancellation.server-late"
)
@each(STREAMABLE)
async def test_a_question_that_a_handler_gives_up_is_taken_back_and_a_late_answer_ignored(
    server: Server, revision: Revision
):
    http = Http(server.asgi(), revision.name)
    await http.initialize(roots={})
    question, notice, answer = await http.rest(http.call("impatient"))
    assert question["method"] == "roots/list"
    assert (notice["method"], notice["params"]["requestId"]) == ("notifications/cancelled", question["id"])
    assert answer["result"]["content"][0]["text"] == "nobody answered"
    await http.accepted(http.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}))
    assert await http.result(http.request("ping")) == {}


@pytest.mark.clause("handshake.http.response-accepted", "handshake.http.response-refused", "handshake.http.body-kinds")
@each(STREAMABLE)
async def test_a_posted_answer_gets_202_or_an_error_status_and_never_an_answer(server: Server, revision: Revision):
    http = Http(server.asgi(), revision.name)
    await http.initialize()
    for answer in ({"result": {}}, {"error": {"code": 1, "message": "no"}}):
        await http.accepted(http.post({"jsonrpc": "2.0", "id": 5, **answer}))
    await http.accepted(http.post(notification("notifications/no/such")))
    for wrong in ({"id": 5}, {"jsonrpc": "2.0", "id": [], "result": {}}, {"jsonrpc": "1.0", "id": 5, "result": {}}):
        response = http.post(wrong)
        assert 400 <= await response.begun() < 500
        await response.body()
    await http.refusal(http.post({"jsonrpc": "2.0", "id": 5, "result": {}}, mcp_session_id=None), 400)


@pytest.mark.clause("handshake.http.endpoint", "handshake.http.get-or-405")
@pytest.mark.parametrize(("sessions", "status"), [("required", 200), ("optional", 200), ("off", 405)])
async def test_one_path_takes_posts_and_opens_streams_or_says_that_it_has_none(sessions: Any, status: int):
    http = Http(make(sessions=sessions).asgi())
    await http.initialize(initialized=False)
    stream = http.get()
    assert await stream.begun() == status
    if status == 200:
        assert stream.headers["content-type"] == "text/event-stream"
    else:
        assert "POST" in stream.headers["allow"]
    stream.hang_up()
    await stream.done()


@pytest.mark.clause("handshake.tasks.undeclared-ignored")
async def test_a_call_that_would_be_a_task_is_answered_as_any_other():
    http = Http(make().asgi())
    result = await http.initialize()
    assert "tasks" not in result["capabilities"]
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "task": {"ttl": 60_000}}
    assert (await http.result(http.request("tools/call", params)))["structuredContent"] == {"result": 3}


@pytest.mark.clause("handshake.logging.invalid-level", "handshake.logging.set-level")
@each(STREAMABLE)
async def test_the_level_that_a_session_sets_holds_and_one_that_does_not_exist_is_refused(revision: Revision):
    http = Http(make().asgi(), revision.name)
    assert (await http.initialize())["capabilities"]["logging"] == {}
    await http.result(http.request("logging/setLevel", {"level": "warning"}))
    refused = await http.answer(http.request("logging/setLevel", {"level": "loud"}))
    assert refused["error"]["code"] == -32602
    *said, _ = await http.rest(http.call("chat"))
    assert [message["params"]["level"] for message in said] == ["warning", "error"]


@pytest.mark.clause("handshake.batch.initialize-alone")
@each([one for one in STREAMABLE if one.has(Feature.BATCH)])
async def test_a_batch_cannot_begin_a_session(revision: Revision):
    http = Http(make().asgi(), revision.name)
    params = {"protocolVersion": revision.name, "capabilities": {}, "clientInfo": INFO}
    response = http.post([request("initialize", params, id=1)])
    assert 400 <= await response.begun() < 500
    assert "mcp-session-id" not in response.headers
    await response.body()
