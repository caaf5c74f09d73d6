"""The older HTTP+SSE transport beside the endpoint: one stream, and one address for messages."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcprelay import Context, Limits, Server, revisions
from mcprelay.revisions import Era
from tests.server.wire import INFO, Http, notification, opened, request, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.server.wire import Message, Response

HANDSHAKE = [revision.name for revision in revisions.of_era(Era.HANDSHAKE)]
OLDEST = HANDSHAKE[-1]


def build(**options: Any) -> Server:
    server = Server("pair", **options)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def count(ctx: Context, to: int) -> str:
        for number in range(to):
            ctx.progress(number, to)
        return "counted"

    @server.tool
    async def folders(ctx: Context) -> str:
        return ", ".join(root.uri for root in await ctx.roots())

    return server


class Pair:
    """A client of the pair."""

    def __init__(self, http: Http, stream: Response, address: str) -> None:
        self.http = http
        self.stream = stream
        self.address = address

    def post(self, message: Any, **headers: str) -> Response:
        path, _, query = self.address.partition("?")
        self.http.root_path, root_path = "", self.http.root_path
        try:
            one = message if isinstance(message, dict) else {}
            if "method" in one and "id" in one:
                self.http.asked[one["id"]] = one["method"]
            body = message if isinstance(message, bytes) else json.dumps(message).encode()
            scope_path = path.removeprefix(root_path)
            self.http.root_path = root_path
            return self.http.send(
                "POST", body, path=scope_path, query=query, **{"content_type": "application/json", **headers}
            )
        finally:
            self.http.root_path = root_path

    async def tell(self, message: Any) -> None:
        await self.http.accepted(self.post(message))

    async def message(self) -> Message:
        event = await self.stream.event()
        assert event.event == "message"
        return self.http.checked(json.loads(event.data))

    async def ask(self, method: str, params: Message | None = None) -> Message:
        id = next(self.http.ids)
        await self.tell(request(method, params, id=id))
        answer = await self.message()
        assert answer["id"] == id
        return answer

    async def initialize(self, **capabilities: Any) -> Message:
        params = {"protocolVersion": self.http.revision, "capabilities": capabilities, "clientInfo": INFO}
        answer = await self.ask("initialize", params)
        await self.tell(notification("notifications/initialized"))
        result: Message = answer["result"]
        return result


@asynccontextmanager
async def connected(
    app: Any, revision: str = OLDEST, *, path: str = "/sse", root_path: str = "", **headers: str
) -> AsyncIterator[Pair]:
    http = Http(app, revision, root_path=root_path)
    async with opened(http.send("GET", path=path, **{"accept": "text/event-stream", **headers})) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        event = await stream.event()
        assert event.event == "endpoint"
        yield Pair(http, stream, event.data.decode())


@pytest.mark.clause("handshake.http.pair-served", "handshake.pair.messages")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_client_of_the_pair_is_served_in_its_revision(revision: str) -> None:
    async with connected(build().asgi(), revision) as pair:
        assert (await pair.initialize())["protocolVersion"] == revision
        answer = await pair.ask("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        assert answer["result"]["content"][0]["text"] == "3"


@pytest.mark.clause("handshake.pair.endpoints", "handshake.pair.endpoint-event")
@pytest.mark.parametrize(
    ("path", "root_path", "options", "address"),
    [
        ("/sse", "", {}, "/messages"),
        ("/mcp/sse", "", {}, "/mcp/messages"),
        ("/sse", "/api/v1", {}, "/api/v1/messages"),
        ("/mcp/sse", "/api", {}, "/api/mcp/messages"),
        ("/sse", "/a b", {}, "/a%20b/messages"),
        ("/events", "", {"sse_path": "/events", "message_path": "post"}, "/post"),
        ("/x/events", "", {"path": "/x", "sse_path": "/events"}, "/x/messages"),
    ],
)
async def test_the_address_for_messages_is_where_the_client_reaches_it(
    path: str, root_path: str, options: Any, address: str
) -> None:
    async with connected(build().asgi(**options), path=path, root_path=root_path) as pair:
        assert pair.address.partition("?")[0] == address
        pair.address = pair.address.replace("%20", " ")
        await pair.initialize()


async def test_behind_a_proxy_that_takes_a_prefix_away_the_public_address_tells_it() -> None:
    server = build(public_url="https://my.example/deep/mcp", allowed_hosts=["*"])
    async with connected(server.asgi()) as pair:
        assert pair.address.startswith("/deep/messages?")


@pytest.mark.parametrize(
    ("public_url", "address"),
    [
        ("https://my.example/deep/mcp", "/deep/messages?"),
        ("https://my.example/mcp", "/messages?"),
        ("https://my.example/a%20b/mcp", "/a%20b/messages?"),
        ("https://my.example", "/inside/messages?"),
        ("https://my.example/inside", "/inside/messages?"),
        (None, "/inside/messages?"),
    ],
)
async def test_the_public_address_goes_before_the_mount_that_a_proxy_leads_to(
    public_url: str | None, address: str
) -> None:
    app = build(public_url=public_url, allowed_hosts=["*"]).asgi()
    async with connected(app, root_path="/inside") as pair:
        assert pair.address.startswith(address)


async def test_the_pair_is_there_unless_it_is_not_wanted() -> None:
    http = Http(build().asgi(sse_path=None))
    assert await http.send("GET", path="/sse").begun() == 404
    newest_only = Http(build(among=[revisions.NEWEST.name]).asgi())
    assert await newest_only.send("GET", path="/sse").begun() == 404


async def test_progress_and_questions_come_on_the_stream() -> None:
    async with connected(build().asgi()) as pair:
        await pair.initialize(roots={})
        call = {"name": "count", "arguments": {"to": 2}, "_meta": {"progressToken": "t"}}
        await pair.tell(request("tools/call", call, id="c"))
        assert [(await pair.message())["method"] for _ in range(2)] == ["notifications/progress"] * 2
        assert (await pair.message())["id"] == "c"
        await pair.tell(request("tools/call", {"name": "folders", "arguments": {}}, id="f"))
        question = await pair.message()
        assert question["method"] == "roots/list"
        roots = {"roots": [{"uri": "file:///r"}]}
        await pair.tell({"jsonrpc": "2.0", "id": question["id"], "result": roots})
        assert (await pair.message())["result"]["content"][0]["text"] == "file:///r"


async def test_changes_are_told_on_the_stream() -> None:
    server = build()
    async with connected(server.asgi()) as pair:
        await pair.initialize()
        await pair.ask("ping")
        server.add_tool(lambda: "x", name="x")
        assert (await pair.message())["method"] == "notifications/tools/list_changed"


async def test_nonsense_is_answered_on_the_stream() -> None:
    async with connected(build().asgi()) as pair:
        await pair.initialize()
        await pair.tell(b"{")
        assert (await pair.message())["error"]["code"] == -32700


async def test_messages_of_a_session_that_is_not_open_are_refused() -> None:
    app = build().asgi()
    async with connected(app) as pair:
        address = pair.address
        pair.address = "/messages?session_id=other"
        assert await pair.post(request("ping")).begun() == 404
        pair.address = "/messages"
        assert await pair.post(request("ping")).begun() == 400
    ended = Pair(Http(app), pair.stream, address)
    assert await ended.post(request("ping")).begun() == 404


@pytest.mark.clause("handshake.pair.origin")
async def test_the_rules_of_the_endpoint_hold_for_the_pair() -> None:
    app = build(allowed_origins=["https://app.example"], limits=Limits(body_bytes=100)).asgi()
    http = Http(app)
    assert await http.send("GET", path="/sse", origin="https://evil.example").begun() == 403
    assert await http.send("GET", path="/sse", accept="application/json").begun() == 406
    for path, allow in (("/sse", "GET, OPTIONS"), ("/messages", "POST, OPTIONS")):
        wrong = http.send("PUT", path=path)
        assert await wrong.begun() == 405
        assert wrong.headers["allow"] == allow
        assert await http.send("OPTIONS", path=path).begun() == 204
    async with connected(app) as pair:
        assert await pair.post(request("ping"), content_type="text/plain").begun() == 415
        assert await pair.post(request("ping", {"x": "y" * 200})).begun() == 413
        assert await pair.post(request("ping"), origin="https://evil.example").begun() == 403


async def test_a_session_belongs_to_whoever_opened_its_stream() -> None:
    from mcprelay.server.call import Principal

    who = [Principal("ada", claims={"exp": 1})]
    app = build().asgi()

    async def admit(_scope: Any, _head: Any) -> Principal:
        return who[0]

    app.admit = admit
    async with connected(app) as pair:
        await pair.initialize()
        who[0] = Principal("ada", claims={"exp": 2})
        await pair.tell(request("ping"))
        who[0] = Principal("eve")
        assert await pair.post(request("ping")).begun() == 404


async def test_when_the_stream_ends_everything_in_it_ends() -> None:
    server = build()
    app = server.asgi()
    started, cancelled = asyncio.Event(), asyncio.Event()

    @server.tool
    async def wait() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    async with connected(app) as pair:
        await pair.initialize()
        await pair.tell(request("tools/call", {"name": "wait", "arguments": {}}, id=1))
        await started.wait()
    assert cancelled.is_set()
    assert len(server.changes) == 0
    assert not app.here().pair._channels


async def test_a_server_that_stops_ends_the_stream() -> None:
    server = build()
    async with connected(server.asgi()) as pair:
        await pair.initialize()
        await server.stop()
        await pair.stream.body()


async def test_streams_of_the_pair_are_bounded_by_the_same_limit() -> None:
    app = build(limits=Limits(listen_streams=1)).asgi()
    async with connected(app):
        second = Http(app).send("GET", path="/sse", accept="text/event-stream")
        assert "listen_streams=1" in json.loads(await second.body())["error"]["message"]
        assert second.status == 503


async def test_a_quiet_stream_is_kept_alive() -> None:
    async with connected(build(limits=Limits(keep_alive=0.01)).asgi()) as pair:
        await until(lambda: pair.stream.comments >= 2)
