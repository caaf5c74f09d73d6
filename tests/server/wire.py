"""HTTP in memory: an ASGI app driven byte by byte, every message that it emits held against its revision's schema.

Nothing of mcprelay's client is used, so that tests see what the server says and not what a client makes of it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcprelay.revisions import NEWEST_HANDSHAKE, Feature, find
from mcprelay.wire.sse import Event, Parser
from tests.wire_schema import validate_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

Message = dict[str, Any]

INFO = {"name": "wire", "version": "1"}
BOTH = "application/json, text/event-stream"


class Response:
    """One request that was sent, and what comes back. Usable while it still comes."""

    def __init__(
        self, app: Any, scope: Message, body: bytes, *, chunks: Sequence[bytes] | None = None, whole: bool = True
    ) -> None:
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        parts = list(chunks) if chunks is not None else [body]
        for index, part in enumerate(parts):
            self.feed(part, last=whole and index == len(parts) - 1)
        self.status = 0
        self.headers: dict[str, str] = {}
        self.chunks: list[bytes] = []
        self.comments = 0
        self.ended = False
        self.stalled = asyncio.Event()
        self.stalled.set()
        self._parser = Parser()
        self._events: list[Event] = []
        self._changed = asyncio.Condition()
        self._over = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(self._run(app, scope))

    def feed(self, part: bytes, *, last: bool) -> None:
        """Send a part of the body."""
        self._incoming.put_nowait({"type": "http.request", "body": part, "more_body": not last})

    async def _run(self, app: Any, scope: Message) -> None:
        try:
            await app(scope, self._receive, self._send)
        finally:
            async with self._changed:
                self._changed.notify_all()

    async def _receive(self) -> Message:
        if self._over.is_set():
            return {"type": "http.disconnect"}
        waiting = [asyncio.ensure_future(self._incoming.get()), asyncio.ensure_future(self._over.wait())]
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
        return waiting[0].result() if waiting[0] in done else {"type": "http.disconnect"}  # type: ignore[return-value]

    async def _send(self, message: Message) -> None:
        await self.stalled.wait()
        if self._over.is_set():
            return
        async with self._changed:
            if message["type"] == "http.response.start":
                assert not self.status, "a response begins once"
                self.status = message["status"]
                self.headers = {key.decode(): value.decode() for key, value in message["headers"]}
            else:
                assert self.status, "a response begins with its head"
                assert not self.ended, "nothing comes after the end"
                self._take(message.get("body", b""))
                self.ended = not message.get("more_body", False)
                if self.ended:
                    self._over.set()
            self._changed.notify_all()

    def _take(self, chunk: bytes) -> None:
        self.chunks.append(chunk)
        if self.headers.get("content-type") == "text/event-stream":
            self.comments += chunk.count(b": still here")
            self._events.extend(event for event in self._parser.feed(chunk) if isinstance(event, Event))

    @property
    def last_event_id(self) -> str:
        """What `Last-Event-ID` of a reconnection says."""
        return self._parser.last_event_id

    @property
    def retry(self) -> int | None:
        """What the stream said of when to come back."""
        return self._parser.retry

    async def _until(self, condition: Any) -> None:
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(lambda: condition() or self.task.done())

    async def begun(self) -> int:
        """The status, as soon as the head is there."""
        await self._until(lambda: self.status)
        if not self.status:
            await self.task
        return self.status

    async def body(self) -> bytes:
        """The whole body, once the response has ended."""
        await self._until(lambda: self.ended)
        if not self.ended:
            await self.task
        return b"".join(self.chunks)

    async def done(self) -> None:
        """The app is done with the request."""
        async with asyncio.timeout(5):
            await asyncio.wait([self.task])
        await self.task

    async def event(self) -> Event:
        """The next event of a stream."""
        await self._until(lambda: self._events)
        assert self._events, f"the stream ended: {self.status} {b''.join(self.chunks)!r}"
        return self._events.pop(0)

    async def message(self) -> Message:
        """The next message of a stream."""
        while True:
            event = await self.event()
            if event.data:
                message: Message = json.loads(event.data)
                return message

    async def rest(self) -> list[Message]:
        """The messages that are left when the stream has ended."""
        await self.body()
        events, self._events = self._events, []
        return [json.loads(event.data) for event in events if event.data]

    def hang_up(self) -> None:
        """The client goes away."""
        self._over.set()


class Http:
    """A client of an ASGI app, in one revision of the handshake era."""

    def __init__(
        self, app: Any, revision: str = NEWEST_HANDSHAKE.name, *, path: str = "/mcp", root_path: str = ""
    ) -> None:
        self.app = app
        self.revision = revision
        self.path = path
        self.root_path = root_path
        self.session_id: str | None = None
        self.ids = itertools.count(1)
        self.asked: dict[Any, str] = {}

    # --- requests

    def headers(self, **extra: str | None) -> dict[str, str]:
        """What a client of the revision sends with every request."""
        known = find(self.revision)
        headers: dict[str, str | None] = {"host": "server.example", "accept": BOTH}
        if self.session_id is not None:
            headers["mcp-session-id"] = self.session_id
            if known is not None and known.http.version_header:
                headers["mcp-protocol-version"] = self.revision
        headers |= {key.replace("_", "-"): value for key, value in extra.items()}
        return {key: value for key, value in headers.items() if value is not None}

    def send(
        self,
        method: str,
        body: bytes = b"",
        *,
        path: str | None = None,
        query: str = "",
        chunks: Sequence[bytes] | None = None,
        whole: bool = True,
        **headers: str | None,
    ) -> Response:
        """Send one HTTP request; if not `whole`, the end of its body does not come before it is fed."""
        given = self.headers(**headers)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": self.root_path + (self.path if path is None else path),
            "root_path": self.root_path,
            "query_string": query.encode(),
            "headers": [(key.lower().encode(), value.encode()) for key, value in given.items()],
            "client": ("192.0.2.1", 1234),
            "server": ("server.example", 80),
        }
        return Response(self.app, scope, body, chunks=chunks, whole=whole)

    def post(self, message: Any, **headers: Any) -> Response:
        """Send a message, or several as a batch, or bytes."""
        for one in message if isinstance(message, list) else [message]:
            if isinstance(one, dict) and "method" in one and "id" in one:
                self.asked[one["id"]] = one["method"]
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.send("POST", body, **{"content_type": "application/json", **headers})

    def get(self, last_event_id: str | None = None, **headers: str | None) -> Response:
        """Open a stream."""
        return self.send("GET", **{"accept": "text/event-stream", "last_event_id": last_event_id, **headers})

    def delete(self, **headers: str | None) -> Response:
        """End the session."""
        return self.send("DELETE", **headers)

    def request(self, method: str, params: Message | None = None, *, id: Any = None, **headers: str | None) -> Response:
        """Send a request."""
        return self.post(request(method, params, id=next(self.ids) if id is None else id), **headers)

    def call(self, tool: str, arguments: Message | None = None, **more: Any) -> Response:
        """Call a tool. `meta`, `id` and headers by keyword."""
        params: Message = {"name": tool, "arguments": arguments or {}}
        if "meta" in more:
            params["_meta"] = more.pop("meta")
        return self.request("tools/call", params, **more)

    def notify(self, method: str, params: Message | None = None, **headers: str | None) -> Response:
        """Send a notification."""
        return self.post(notification(method, params), **headers)

    # --- answers

    def checked(self, message: Message) -> Message:
        """A message that the revision's schema allows."""
        known = find(self.revision)
        if "error" in message and "id" not in message and known and not known.has(Feature.ERRORS_WITHOUT_ID):
            message = {**message, "id": None}
        validate_message(self.revision, message, sender="server", request_method=self.asked.get(message.get("id")))
        return message

    async def answer(self, response: Response) -> Message:
        """The answer in a JSON body."""
        body = await response.body()
        assert response.headers.get("content-type") == "application/json", (response.status, response.headers, body)
        return self.checked(json.loads(body))

    async def result(self, response: Response) -> Message:
        """The result in a JSON body."""
        answer = await self.answer(response)
        assert response.status == 200, (response.status, answer)
        assert "result" in answer, answer
        result: Message = answer["result"]
        return result

    async def refusal(self, response: Response, status: int) -> Message:
        """The error in a JSON body with this status."""
        answer = await self.answer(response)
        assert response.status == status, (response.status, answer)
        error: Message = answer["error"]
        return error

    async def accepted(self, response: Response) -> None:
        """What is owed no answer was taken."""
        assert (await response.body(), response.status) == (b"", 202)

    async def message(self, response: Response) -> Message:
        """The next message of a stream."""
        return self.checked(await response.message())

    async def rest(self, response: Response) -> list[Message]:
        """The messages that are left of a stream."""
        return [self.checked(message) for message in await response.rest()]

    # --- the handshake

    async def initialize(self, *, initialized: bool = True, **capabilities: Any) -> Message:
        """Begin a session; the result of `initialize`."""
        self.session_id = None
        params = {"protocolVersion": self.revision, "capabilities": capabilities, "clientInfo": INFO}
        response = self.request("initialize", params)
        result = await self.result(response)
        self.session_id = response.headers.get("mcp-session-id")
        if initialized:
            await self.accepted(self.notify("notifications/initialized"))
        return result


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until something is so that nothing else tells."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for is state of the server, which has no event for tests
            await asyncio.sleep(0)


def request(method: str, params: Message | None = None, *, id: Any = 1) -> Message:
    """A request."""
    message: Message = {"jsonrpc": "2.0", "id": id, "method": method}
    return message if params is None else {**message, "params": params}


def notification(method: str, params: Message | None = None) -> Message:
    """A notification."""
    message: Message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


@asynccontextmanager
async def opened(response: Response) -> AsyncIterator[Response]:
    """A stream that is read for a while."""
    assert await response.begun() == 200, (response.status, await response.body())
    try:
        yield response
    finally:
        response.hang_up()
        await response.done()
