"""The ASGI app: where it answers, whom, how much, and what it does when a client goes away."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from mcprelay import Context, Limits, Server
from mcprelay.core.work import Refusal
from mcprelay.revisions import NEWEST, NEWEST_HANDSHAKE
from mcprelay.server.asgi import App
from mcprelay.server.call import Principal
from mcprelay.wire.origin import HostRules
from tests.server.wire import BOTH, INFO, Http, request, until
from tests.wire_schema import validate_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PREFIX = "io.modelcontextprotocol/"
META = {PREFIX + "protocolVersion": NEWEST.name, PREFIX + "clientInfo": INFO, PREFIX + "clientCapabilities": {}}


class Modern(Http):
    """A client of the stateless era."""

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, NEWEST.name, **options)

    def ask(self, method: str, params: dict[str, Any] | None = None, **headers: str | None) -> Any:
        params = {**(params or {})}
        meta = {**META, **params.pop("_meta", {})}
        known: dict[str, str | None] = {"mcp_protocol_version": NEWEST.name, "mcp_method": method}
        if "name" in params:
            known["mcp_name"] = params["name"]
        return self.request(method, {**params, "_meta": meta}, **{**known, **headers})

    def tool(self, name: str, arguments: dict[str, Any] | None = None, **headers: str | None) -> Any:
        return self.ask("tools/call", {"name": name, "arguments": arguments or {}}, **headers)

    def listen(self, **headers: str | None) -> Any:
        return self.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, **headers)


def build(**options: Any) -> Server:
    server = Server("asgi", **options)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def count(ctx: Context, to: int) -> str:
        for number in range(to):
            ctx.progress(number, to)
        return "counted"

    @server.tool
    async def address(ctx: Context) -> str:
        assert ctx.http is not None
        return f"{ctx.http.method} {ctx.http.path} {ctx.http.headers['x-test']} {ctx.http.client}"

    return server


# --------------------------------------------------------------------------------------------------------------- where


@pytest.mark.parametrize("path", ["", "/", "/mcp", "/mcp/"])
@pytest.mark.parametrize("root_path", ["", "/api", "/mcp"])
async def test_the_endpoint_answers_at_the_mount_and_at_its_path_with_and_without_a_slash(
    path: str, root_path: str
) -> None:
    http = Modern(build().asgi(), path=path, root_path=root_path)
    assert (await http.result(http.tool("add", {"a": 1, "b": 2})))["structuredContent"] == 3
    legacy = Http(http.app, path=path, root_path=root_path)
    await legacy.initialize()


@pytest.mark.parametrize(("option", "path"), [("/", ""), ("/", "/"), ("deep/down", "/deep/down"), ("/x/", "/x/")])
async def test_the_path_is_what_it_was_told(option: str, path: str) -> None:
    http = Modern(build().asgi(path=option), path=path)
    await http.result(http.tool("add", {"a": 1, "b": 2}))


@pytest.mark.parametrize("path", ["/other", "/mcpx", "/mcp/deeper", "//mcp"])
async def test_elsewhere_there_is_nothing(path: str) -> None:
    http = Modern(build().asgi(), path=path)
    await http.refusal(http.tool("add"), 404)


@pytest.mark.parametrize("root_path", ["", "/api"])
async def test_a_path_where_nothing_is_learns_where_the_endpoint_is(root_path: str) -> None:
    http = Modern(build().asgi(), path="/mpc", root_path=root_path)
    said = (await http.refusal(http.tool("add"), 404))["message"]
    assert said == f"there is nothing at '{root_path}/mpc': the endpoint of this server is {root_path}/mcp"
    long = Modern(build().asgi(), path="/" + "x" * 9_000)
    assert len((await long.refusal(long.tool("add"), 404))["message"]) < 400


async def test_a_prefix_ends_where_a_segment_ends() -> None:
    http = Modern(build().asgi())
    response = http.send("GET", path="/mcp", accept="text/html")
    await response.begun()
    sneaky = http.send("GET", path="x/mcp", accept="text/html")
    sneaky_scope_path = await sneaky.begun()
    assert (response.status, sneaky_scope_path) == (406, 404)


def rpc(client: TestClient, url: str, message: Any, **headers: str) -> Any:
    return client.post(url, json=message, headers={"accept": BOTH, **headers}, follow_redirects=False)


INITIALIZE = request("initialize", {"protocolVersion": NEWEST_HANDSHAKE.name, "capabilities": {}, "clientInfo": INFO})


def modern(url: str, client: TestClient) -> Any:
    message = request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": META})
    headers = {"mcp-protocol-version": NEWEST.name, "mcp-method": "tools/call", "mcp-name": "add"}
    return rpc(client, url, message, **headers)


@contextlib.asynccontextmanager
async def own_lifespan(app: Any) -> AsyncIterator[None]:
    app.state.entered = True
    yield


def test_mounted_without_any_lifespan_wiring_it_works_and_the_hosts_own_lifespan_runs() -> None:
    host = Starlette(routes=[Mount("/api", build().asgi())], lifespan=own_lifespan)
    with TestClient(host) as client:
        assert host.state.entered
        assert modern("/api/mcp", client).json()["result"]["structuredContent"] == 3
        begun = rpc(client, "/api/mcp/", INITIALIZE)
        assert begun.status_code == 200
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        assert rpc(client, "/api/mcp", request("ping"), **session).json()["result"] == {}


def test_a_test_client_that_uses_a_new_loop_for_each_request_keeps_its_session() -> None:
    client = TestClient(Starlette(routes=[Mount("/api", build().asgi())]))
    session = {"mcp-session-id": rpc(client, "/api/mcp", INITIALIZE).headers["mcp-session-id"]}
    for _ in range(3):
        assert rpc(client, "/api/mcp", request("ping"), **session).json()["result"] == {}
        assert modern("/api/mcp", client).status_code == 200
    call = request("tools/call", {"name": "count", "arguments": {"to": 2}, "_meta": {"progressToken": 1}})
    assert rpc(client, "/api/mcp", call, **session).text.count("notifications/progress") == 2
    assert client.delete("/api/mcp", headers=session).status_code == 204
    assert rpc(client, "/api/mcp", request("ping"), **session).status_code == 404


@pytest.mark.parametrize("host", [FastAPI, Starlette])
def test_it_is_mounted_at_any_prefix_of_any_host(host: Any) -> None:
    app = host()
    app.mount("/deep/down", build().asgi())
    client = TestClient(app)
    assert modern("/deep/down/mcp", client).status_code == 200
    assert modern("/deep/down/", client).status_code == 200


def test_it_is_a_route_of_the_host_too() -> None:
    app = build().asgi()
    client = TestClient(Starlette(routes=[Route("/mcp", app, methods=["GET", "POST", "DELETE"])]))
    assert modern("/mcp", client).status_code == 200


def test_middleware_of_the_host_that_wraps_responses_does_not_harm_it() -> None:
    async def through(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    host = Starlette(routes=[Mount("/", build().asgi())])
    host.add_middleware(BaseHTTPMiddleware, dispatch=through)
    client = TestClient(host)
    assert modern("/mcp", client).status_code == 200
    session = {"mcp-session-id": rpc(client, "/mcp", INITIALIZE).headers["mcp-session-id"]}
    call = request("tools/call", {"name": "count", "arguments": {"to": 2}, "_meta": {"progressToken": 1}})
    assert rpc(client, "/mcp", call, **session).text.count("notifications/progress") == 2


# ---------------------------------------------------------------------------------------------------- life of the app


async def test_the_lifespan_of_the_host_starts_and_stops_the_server() -> None:
    states = []

    @contextlib.asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        states.append("in")
        yield
        states.append("out")

    app = build(lifespan=lifespan).asgi()
    incoming: asyncio.Queue[Any] = asyncio.Queue()
    outgoing: list[Any] = []

    async def send(message: Any) -> None:
        outgoing.append(message["type"])

    incoming.put_nowait({"type": "lifespan.startup"})
    task = asyncio.ensure_future(app({"type": "lifespan"}, incoming.get, send))
    await until(lambda: outgoing == ["lifespan.startup.complete"])
    assert states == ["in"]
    incoming.put_nowait({"type": "lifespan.shutdown"})
    await task
    assert outgoing[-1] == "lifespan.shutdown.complete"
    assert states == ["in", "out"]


async def test_a_lifespan_that_fails_is_told_to_the_host() -> None:
    @contextlib.asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        raise RuntimeError("no database")
        yield

    app = build(lifespan=lifespan).asgi()
    outgoing: list[Any] = []

    async def receive() -> Any:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        outgoing.append(message)

    with pytest.raises(RuntimeError):
        await app({"type": "lifespan"}, receive, send)
    assert outgoing == [{"type": "lifespan.startup.failed", "message": "no database"}]


async def test_without_a_lifespan_the_server_starts_at_the_first_request_and_is_closed_by_hand() -> None:
    states = []

    @contextlib.asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        states.append("in")
        yield
        states.append("out")

    app = build(lifespan=lifespan).asgi()
    http = Modern(app)
    await asyncio.gather(*(http.result(http.tool("add", {"a": 1, "b": 2})) for _ in range(5)))
    assert states == ["in"]
    await app.aclose()
    assert states == ["in", "out"]


async def test_a_websocket_is_closed() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await build().asgi()({"type": "websocket"}, receive, send)
    assert sent == ["websocket.close"]


# ---------------------------------------------------------------------------------------------------------------- whom


async def test_host_and_origin_are_those_of_the_bind_address() -> None:
    app = App(build(), HostRules.from_bind("127.0.0.1", 8000))
    http = Modern(app)
    for host in ("127.0.0.1:8000", "localhost:8000", "localhost"):
        await http.result(http.tool("add", {"a": 1, "b": 2}, host=host))
    refused = await http.refusal(http.tool("add", {"a": 1, "b": 2}, host="evil.example"), 421)
    assert "allowed_hosts" in refused["message"]
    origin = http.tool("add", {"a": 1, "b": 2}, host="localhost", origin="http://evil.example")
    assert "allowed_origins" in (await http.refusal(origin, 403))["message"]


async def test_a_verified_caller_is_known_and_a_refused_one_sends_no_body() -> None:
    seen: list[Any] = []
    server = build()

    @server.tool
    async def who(ctx: Context) -> str:
        return ctx.principal.subject if ctx.principal else "nobody"

    async def admit(scope: Any, head: Any) -> Principal | Refusal | None:
        seen.append(head.method)
        token = head.headers.get(b"authorization")
        if token == b"Bearer ada":
            return Principal("ada")
        if token is None:
            return None
        return Refusal(401, b"{}", ((b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")))

    app = App(server, HostRules(), admit=admit)
    http = Modern(app)
    assert (await http.result(http.tool("who", authorization="Bearer ada")))["structuredContent"] == "ada"
    assert (await http.result(http.tool("who")))["structuredContent"] == "nobody"
    refused = http.tool("who", authorization="Bearer eve")
    assert await refused.begun() == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert not refused._incoming.empty(), "the body was not read"
    assert seen == ["POST"] * 3


async def test_a_handler_sees_the_http_request() -> None:
    http = Modern(build().asgi(), root_path="/api")
    result = await http.result(http.tool("address", x_test="yes"))
    assert result["structuredContent"] == "POST /api/mcp yes ('192.0.2.1', 1234)"


# ------------------------------------------------------------------------------------------------------------ how much


async def test_a_body_that_comes_in_pieces_is_read_whole_and_bounded() -> None:
    http = Modern(build(limits=Limits(body_bytes=2000)).asgi())
    message = json.dumps(request("tools/list", {"_meta": META}, id=1)).encode()
    headers = {"content_type": "application/json", "mcp_protocol_version": NEWEST.name, "mcp_method": "tools/list"}
    pieces = [message[index : index + 7] for index in range(0, len(message), 7)]
    http.asked[1] = "tools/list"
    await http.result(http.send("POST", chunks=[*pieces, b""], **headers))
    for too_long in ([b" " * 1000] * 3, [b" " * 2001]):
        refused = await http.refusal(http.send("POST", chunks=too_long, **headers), 413)
        assert "body_bytes=2000" in refused["message"]


async def test_too_many_requests_at_once_are_told_to_come_back() -> None:
    server = build(limits=Limits(concurrent_requests=2))
    gate = asyncio.Event()

    @server.tool
    async def wait() -> str:
        await gate.wait()
        return "waited"

    app = server.asgi()
    http = Modern(app)
    waiting = [http.tool("wait") for _ in range(2)]
    await until(lambda: app.here().load.requests == 2)
    busy = http.tool("add", {"a": 1, "b": 2})
    assert "concurrent_requests=2" in (await http.refusal(busy, 503))["message"]
    assert busy.headers["retry-after"]
    gate.set()
    for response in waiting:
        await http.result(response)
    await http.result(http.tool("add", {"a": 1, "b": 2}))


async def test_streams_of_changes_are_bounded_by_their_own_limit() -> None:
    server = build(limits=Limits(concurrent_requests=1, listen_streams=1))
    http = Modern(server.asgi())
    first = http.listen()
    assert (await http.message(first))["method"] == "notifications/subscriptions/acknowledged"
    assert "listen_streams=1" in (await http.refusal(http.listen(), 503))["message"]
    await http.result(http.tool("add", {"a": 1, "b": 2}))
    first.hang_up()
    await first.done()
    second = http.listen()
    await http.message(second)
    await server.stop()
    (end,) = await http.rest(second)
    assert "result" in end


async def test_a_stream_of_changes_needs_a_client_that_takes_streams() -> None:
    http = Modern(build().asgi())
    await http.refusal(http.listen(accept="application/json"), 406)


# -------------------------------------------------------------------------------------------------- the stateless era


async def test_progress_makes_the_answer_a_stream_that_ends_with_it() -> None:
    http = Modern(build().asgi())
    params = {"name": "count", "arguments": {"to": 3}, "_meta": {"progressToken": "t"}}
    response = http.ask("tools/call", params)
    messages = await http.rest(response)
    assert [message["params"]["progress"] for message in messages[:-1]] == [0, 1, 2]
    assert messages[-1]["result"]["structuredContent"] == "counted"
    assert response.headers["x-accel-buffering"] == "no"
    assert response.last_event_id == "", "nothing is resumed in this era"


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"mcp_name": "other"}, 400, -32020),
        ({"mcp_method": None}, 400, -32020),
        ({"mcp_protocol_version": NEWEST_HANDSHAKE.name}, 400, -32020),
        ({"mcp_name": "=?base64?YWRk?="}, 200, None),
    ],
)
async def test_headers_and_body_must_agree(headers: Any, status: int, code: int | None) -> None:
    http = Modern(build().asgi())
    response = http.tool("add", {"a": 1, "b": 2}, **headers)
    answer = await http.answer(response)
    assert response.status == status
    assert answer.get("error", {}).get("code") == code


async def test_hanging_up_cancels_a_request() -> None:
    server = build()
    entered, cancelled = asyncio.Event(), asyncio.Event()

    @server.tool
    async def wait(ctx: Context) -> str:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            assert ctx.cancelled
            cancelled.set()
        return ""

    app = server.asgi()
    http = Modern(app)
    response = http.tool("wait")
    await entered.wait()
    response.hang_up()
    await response.done()
    assert cancelled.is_set()
    assert app.here().load.requests == 0


async def test_hanging_up_before_the_body_is_whole_is_no_error() -> None:
    http = Modern(build().asgi())
    response = http.send("POST", chunks=[b"{", b"}"], content_type="application/json")
    response._incoming.get_nowait()
    response._incoming.get_nowait()
    response._incoming.put_nowait({"type": "http.request", "body": b"{", "more_body": True})
    response._incoming.put_nowait({"type": "http.disconnect"})
    await response.done()
    assert response.status == 0


async def test_a_slow_reader_slows_no_one_else() -> None:
    http = Modern(build().asgi())
    params = {"name": "count", "arguments": {"to": 3}, "_meta": {"progressToken": "t"}}
    slow = http.ask("tools/call", params)
    slow.stalled.clear()
    await http.result(http.tool("add", {"a": 1, "b": 2}))
    slow.stalled.set()
    assert len(await http.rest(slow)) == 4


async def test_a_host_that_raises_when_the_client_is_gone_gets_no_error_from_us() -> None:
    app = build().asgi()
    scope = {
        "type": "http", "method": "POST", "path": "/mcp", "root_path": "", "query_string": b"", "client": None,
        "headers": [(b"host", b"h"), (b"content-type", b"application/json"), (b"accept", BOTH.encode())],
    }  # fmt: skip

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{", "more_body": False}

    async def send(message: Any) -> None:
        raise ConnectionResetError

    await app(scope, receive, send)


@pytest.mark.parametrize("revision", [NEWEST.name, NEWEST_HANDSHAKE.name])
async def test_refusals_are_messages_of_the_revision(revision: str) -> None:
    http = Http(build(limits=Limits(body_bytes=10)).asgi(), revision)
    for response in (
        http.send("PUT"),
        http.post(b"{}", content_type="text/plain"),
        http.post(b"{}", accept="text/html"),
        http.post(b" " * 11),
        http.post(b"{"),
    ):
        message = json.loads(await response.body())
        assert 400 <= response.status < 500
        validate_message(NEWEST_HANDSHAKE.name, message, sender="server")
