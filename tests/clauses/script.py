"""A server that says what a test tells it to: over HTTP as a `Sender`, over stdio as a `Channel`.

Knows what a correct server of the newest revision says by itself, so that a test scripts only what it is about. Every
request of the client is held against its schema and kept.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self

from mcprelay import Client
from mcprelay.client.memory import Memory
from mcprelay.errors import ConnectionLost, Evidence
from mcprelay.ports import Request
from tests.clauses.http import PREFIX, REVISION
from tests.wire_schema import validate_message

Message = dict[str, Any]
Script = Callable[[Message], Any]
"""What a request is answered with: a result, an `Error`, messages before it, or a whole `Http` answer."""


class Error(Exception):
    """A JSON-RPC error to answer with."""

    def __init__(self, code: int, message: str = "no", data: Any = None, *, status: int = 200) -> None:
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        self.status = status


class Http:
    """An HTTP answer, whatever it is."""

    def __init__(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.status = status
        self.body = body
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Stream:
    """An event stream: messages or raw text, the last of which is not followed by an end of the body with `open`."""

    def __init__(self, *events: Message | str, open: bool = False) -> None:
        self.events = events
        self.open = open


def complete(**members: Any) -> Message:
    """A result."""
    info = {PREFIX + "serverInfo": {"name": "scripted", "version": "1"}}
    return {"resultType": "complete", "_meta": info, **members}


def cacheable(**members: Any) -> Message:
    """A result that says that it is not to be kept."""
    return complete(**{"ttlMs": 0, "cacheScope": "private", **members})


def discovered() -> Message:
    """What `server/discover` answers."""
    offered = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "prompts": {}, "completions": {}}
    return cacheable(supportedVersions=[REVISION], capabilities=offered)


def asks(state: str | None = None, **questions: Message) -> Message:
    """A result that is a question."""
    result: Message = {"resultType": "input_required"}
    if questions:
        result["inputRequests"] = questions
    if state is not None:
        result["requestState"] = state
    return result


def form(**properties: Message) -> Message:
    """A question for a form."""
    schema = {"type": "object", "properties": properties or {"name": {"type": "string"}}}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": schema}}


def text(words: str) -> Message:
    """A tool's result that is a text."""
    return complete(content=[{"type": "text", "text": words}])


def tools(*definitions: Message, **members: Any) -> Message:
    """A page of tools."""
    return cacheable(tools=list(definitions), **members)


def tool(name: str, **properties: Message) -> Message:
    """A tool's definition."""
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


class Scripted:
    """What both kinds of scripted server do: keep what came, and find the answer."""

    def __init__(self, script: Mapping[str, Script | Any] | None = None) -> None:
        self.script = dict(script or {})
        self.requests: list[Message] = []
        self.notifications: list[Message] = []
        self.arrived = asyncio.Event()
        self.valid = True

    def take(self, message: Message) -> Any:
        """Keep a message, and give what to answer with, or None for a notification."""
        if self.valid:
            validate_message(REVISION, message, sender="client")
        self.arrived.set()
        if "id" not in message:
            self.notifications.append(message)
            return None
        self.requests.append(message)
        answer = self.script.get(message["method"], discovered() if message["method"] == "server/discover" else None)
        if callable(answer):
            answer = answer(message)
        if isinstance(answer, list) and answer and not isinstance(answer[0], str):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        return Error(-32601, status=404) if answer is None else answer

    def of(self, method: str) -> list[Message]:
        """The requests of a method."""
        return [message for message in self.requests if message["method"] == method]

    async def heard(self, method: str, *, count: int = 1) -> Message:
        """Wait for the first, or a later, request or notification of a method."""
        while True:
            found = [message for message in (*self.requests, *self.notifications) if message["method"] == method]
            if len(found) >= count:
                return found[count - 1]
            self.arrived.clear()
            await asyncio.wait_for(self.arrived.wait(), 10)

    @property
    def methods(self) -> list[str]:
        """The methods of all requests, in order."""
        return [message["method"] for message in self.requests]


class HttpScript(Scripted):
    """A scripted server over HTTP: a `Sender`. `sent` has every HTTP request as it was."""

    def __init__(self, script: Mapping[str, Script | Any] | None = None) -> None:
        super().__init__(script)
        self.sent: list[Request] = []
        self.closed: list[int] = []
        self.hold = asyncio.Event()

    def send(self, request: Request) -> AbstractAsyncContextManager["HttpReply"]:
        """See `Sender`."""
        return HttpReply(self, request)

    async def aclose(self) -> None:
        """See `Sender`."""

    def headers(self, number: int = -1) -> dict[str, str]:
        """The headers of a request."""
        return {name.lower(): value for name, value in self.sent[number].headers}


class HttpReply:
    """One reply of `HttpScript`."""

    def __init__(self, server: HttpScript, request: Request) -> None:
        self._server = server
        self._request = request
        self._number = len(server.sent)
        self.status = 200
        self.headers: Mapping[str, str] = {"content-type": "application/json"}
        self._pieces: Iterable[bytes] = ()
        self._open = False

    async def __aenter__(self) -> Self:
        request = self._request
        request.evidence = Evidence.MAYBE_SENT
        self._server.sent.append(request)
        message = json.loads(request.body or b"null")
        answer = self._server.take(message)
        if answer is None:
            self.status = 202
        elif isinstance(answer, Http):
            self.status, self._pieces = answer.status, [answer.body]
            self.headers = {"content-type": "application/json", **answer.headers}
        elif isinstance(answer, Error):
            self.status = answer.status
            self._pieces = [_encoded({"jsonrpc": "2.0", "id": message["id"], "error": answer.error})]
        elif isinstance(answer, Stream):
            self.headers, self._open = {"content-type": "text/event-stream"}, answer.open
            self._pieces = [_event(event, message["id"]) for event in answer.events]
        elif isinstance(answer, BaseException):
            raise answer
        else:
            self._pieces = [_encoded({"jsonrpc": "2.0", "id": message["id"], "result": answer})]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.closed.append(self._number)

    async def read(self, limit: int) -> bytes:
        """See `Reply`."""
        body = b"".join(self._pieces)
        assert len(body) <= limit
        return body

    async def chunks(self) -> AsyncIterator[bytes]:
        """See `Reply`."""
        for piece in self._pieces:
            await asyncio.sleep(0)
            yield piece
        if self._open:
            await self._server.hold.wait()
            raise ConnectionLost("the scripted server hung up", evidence=Evidence.MAYBE_SENT)


def _event(event: Message | str, request_id: Any) -> bytes:
    if isinstance(event, str):
        return event.encode()
    whole = event if "jsonrpc" in event else {"jsonrpc": "2.0", "id": request_id, "result": event}
    return b"event: message\ndata: " + _encoded(whole) + b"\n\n"


def _encoded(message: Message) -> bytes:
    return json.dumps(message).encode()


class ChannelScript(Scripted):
    """A scripted server over lines: a `Channel`. `answer` and `say` put messages of the test's own onto the wire."""

    def __init__(self, script: Mapping[str, Script | Any] | None = None) -> None:
        super().__init__(script)
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self.silent: set[str] = set()

    async def receive(self) -> bytes:
        """See `Channel`."""
        return await self._outgoing.get()

    async def send(self, data: bytes) -> None:
        """See `Channel`."""
        assert b"\n" not in data, "a message holds no newline"
        message = json.loads(data)
        answer = self.take(message)
        if answer is None or message["method"] in self.silent:
            return
        if isinstance(answer, Error):
            self.say({"jsonrpc": "2.0", "id": message["id"], "error": answer.error})
        elif isinstance(answer, Stream):
            for event in answer.events:
                whole = isinstance(event, dict) and "jsonrpc" in event
                self.say(event if whole else {"jsonrpc": "2.0", "id": message["id"], "result": event})
        else:
            self.say({"jsonrpc": "2.0", "id": message["id"], "result": answer})

    async def aclose(self) -> None:
        """See `Channel`."""
        self._outgoing.put_nowait(b"")

    def say(self, message: Any) -> None:
        """Put a message onto the wire."""
        self._outgoing.put_nowait(message if isinstance(message, bytes) else _encoded(message))


URL = "https://scripted.example/mcp"


def over_http(script: Mapping[str, Script | Any], **options: Any) -> tuple[HttpScript, Client]:
    """A client of a scripted server over HTTP."""
    server = HttpScript(script)
    return server, Client(URL, sender=server, **{"memory": Memory(), **options})


def over_lines(script: Mapping[str, Script | Any], **options: Any) -> tuple[ChannelScript, Client]:
    """A client of a scripted server over a channel."""
    server = ChannelScript(script)
    return server, Client(server, **{"memory": Memory(), **options})
