"""Streamable HTTP as bytes: one ASGI call for each request, and every message held against its schema.

Knows how a correct client of the newest revision writes a request, so that a test changes one thing and sees what the
server makes of it. Does not use mcprelay's own client or codecs.
"""

import asyncio
import base64
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.wire_schema import validate_message

REVISION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def meta(**capabilities: Any) -> dict[str, Any]:
    """`_meta` of a request."""
    return {
        PREFIX + "protocolVersion": REVISION,
        PREFIX + "clientInfo": {"name": "raw", "version": "1"},
        PREFIX + "clientCapabilities": capabilities,
    }


def headers_of(message: Mapping[str, Any]) -> dict[str, str]:
    """The headers that a request must have."""
    params = message.get("params") or {}
    headers = {
        "host": "127.0.0.1:8000",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": params.get("_meta", {}).get(PREFIX + "protocolVersion", REVISION),
        "mcp-method": str(message.get("method")),
    }
    field = NAMED.get(str(message.get("method")))
    if field is not None and isinstance(params.get(field), str):
        headers["mcp-name"] = encoded(params[field])
    return headers


def encoded(value: str) -> str:
    """A header value: as it is where plain ASCII can say it, else in the Base64 form."""
    plain = value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?base64?")
    return value if plain else f"=?base64?{base64.b64encode(value.encode()).decode()}?="


class Answer:
    """What came back for one HTTP request, while it comes."""

    def __init__(self, app: Any, method: str, headers: Mapping[str, str], body: bytes, *, path: str = "/mcp") -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.comments = 0
        self._unread = b""
        self._requested = False
        self._gone = asyncio.Event()
        self._begun = asyncio.Event()
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8000),
        }
        self._body_sent = body
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))
        self.task.add_done_callback(lambda _: self._ended())

    async def _receive(self) -> dict[str, Any]:
        if not self._requested:
            self._requested = True
            return {"type": "http.request", "body": self._body_sent, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            self.status = event["status"]
            self.headers = {name.decode().lower(): value.decode() for name, value in event["headers"]}
            self._begun.set()
            return
        chunk = event.get("body", b"")
        self.body += chunk
        if self.is_stream:
            self._unread += chunk
            *events, self._unread = self._unread.split(b"\n\n")
            for text in events:
                self._read(text)

    def _read(self, event: bytes) -> None:
        lines = event.decode().split("\n")
        self.comments += sum(line.startswith(":") for line in lines)
        data = "\n".join(line.removeprefix("data:").removeprefix(" ") for line in lines if line.startswith("data:"))
        if data:
            self.messages.put_nowait(json.loads(data))

    def _ended(self) -> None:
        if not self.is_stream and self.body:
            self.messages.put_nowait(json.loads(self.body))
        self.messages.put_nowait(None)
        self._begun.set()

    @property
    def is_stream(self) -> bool:
        """Whether the answer is an event stream."""
        return self.headers.get("content-type", "").startswith("text/event-stream")

    async def next(self) -> dict[str, Any] | None:
        """The next message, or None at the end."""
        return await asyncio.wait_for(self.messages.get(), 10)

    async def begun(self) -> None:
        """Wait for the head of the answer."""
        await asyncio.wait_for(self._begun.wait(), 10)

    async def all(self) -> list[dict[str, Any]]:
        """Every message, once the answer is complete."""
        await asyncio.wait_for(asyncio.shield(self.task), 10)
        found = []
        while (message := await self.next()) is not None:
            found.append(message)
        return found

    async def hang_up(self) -> None:
        """Close the connection, and wait until the server has noticed."""
        self._gone.set()
        await asyncio.wait_for(asyncio.wait([self.task]), 10)


class HttpWire:
    """A correct client over HTTP, of which a test may bend anything."""

    def __init__(self, app: Any, **capabilities: Any) -> None:
        self.app = app
        self.capabilities = capabilities
        self.notices: list[dict[str, Any]] = []
        self.status = 0
        self._ids: Iterator[int] = itertools.count(1)

    def message(self, method: str, params: Mapping[str, Any] | None = None, **extra_meta: Any) -> dict[str, Any]:
        """A correct request."""
        whole = {"_meta": {**meta(**self.capabilities), **extra_meta}, **(params or {})}
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": whole}

    def post(self, message: Any, headers: Mapping[str, str | None] | None = None, *, verb: str = "POST") -> Answer:
        """Send a message, with headers added, changed, or taken away where the value is None."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        proper = headers_of(message) if isinstance(message, dict) else headers_of({"method": "tools/list"})
        bent = {name: value for name, value in {**proper, **(headers or {})}.items() if value is not None}
        return Answer(self.app, verb, bent, body)

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        **extra_meta: Any,
    ) -> dict[str, Any]:
        """The answer to a correct request; notifications before it are kept in `notices`."""
        message = self.message(method, params, **extra_meta)
        validate_message(REVISION, message, sender="client")
        return await self.answer(message, headers)

    async def answer(self, message: dict[str, Any], headers: Mapping[str, str | None] | None = None) -> dict[str, Any]:
        """The answer to a request that is not held against the schema."""
        answer = self.post(message, headers)
        messages = await answer.all()
        self.status = answer.status
        for received in messages:
            validate_message(REVISION, received, sender="server", request_method=message["method"])
        *before, last = messages
        self.notices += before
        return last

    async def result(self, method: str, params: Mapping[str, Any] | None = None, **extra_meta: Any) -> dict[str, Any]:
        """The result of a request that succeeds."""
        answer = await self.ask(method, params, **extra_meta)
        assert "result" in answer, answer
        return dict(answer["result"])

    async def error(self, method: str, params: Mapping[str, Any] | None = None, **extra_meta: Any) -> dict[str, Any]:
        """The error of a request that fails."""
        answer = await self.ask(method, params, **extra_meta)
        assert "error" in answer, answer
        return dict(answer["error"])
