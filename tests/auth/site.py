"""An MCP server and its authorization server on one real socket, for peers that misbehave below HTTP's libraries.

`over` replaces the answer at a path: bytes, or a function from the request to bytes (None: the usual answer).
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from mcprelay.client.http import HttpSender
from mcprelay.revisions import NEWEST

METADATA = "/.well-known/oauth-protected-resource/mcp"
SERVER_METADATA = "/.well-known/oauth-authorization-server"


@dataclass
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").partition(" ")[2]


def reply(status: int, value: Any = b"", **headers: str) -> bytes:
    """The bytes of an answer; `www_authenticate=` and its like are headers."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    fields = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close", **headers}
    head = "".join(f"{name.replace('_', '-')}: {text}\r\n" for name, text in fields.items())
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode("latin-1") + body


Answer = Callable[[Asked], bytes | Awaitable[bytes | None] | None]


class Site:
    """Both servers. Attributes that tests change: `over`, `metadata`, `resource`, `registered`, `grants`, `accepts`."""

    def __init__(self) -> None:
        self.over: dict[str, bytes | Answer] = {}
        self.metadata: dict[str, Any] = {}
        self.resource: dict[str, Any] = {}
        self.registered: dict[str, Any] = {}
        self.grants: dict[str, Any] = {}
        self.challenge: str | None = None
        self.accepts: Callable[[str], bool] = lambda token: token.startswith("access-")
        self.log: list[Asked] = []
        self.issued = 0
        self.origin = ""
        self.serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    def asked(self, path: str) -> list[Asked]:
        return [each for each in self.log if each.path == path]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task: asyncio.Task[None] | None = asyncio.current_task()
        assert task is not None
        self.serving.add(task)  # nothing else keeps it
        task.add_done_callback(self.serving.discard)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            line, *fields = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = line.split(" ")
            pairs = (field.partition(":") for field in fields)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            parts = urlsplit(target)
            asked = Asked(method, parts.path, dict(parse_qsl(parts.query)), headers, body)
            self.log.append(asked)
            writer.write(await self._answer(asked))
            await writer.drain()
        writer.close()

    async def _answer(self, asked: Asked) -> bytes:
        given = self.over.get(asked.path)
        if callable(given):
            made = given(asked)
            given = await made if isinstance(made, Awaitable) else made
        return self.usual(asked) if given is None else given

    def usual(self, asked: Asked) -> bytes:
        """What servers that behave answer."""
        if asked.path == METADATA:
            return reply(200, {"resource": self.url, "authorization_servers": [self.origin], **self.resource})
        if asked.path == SERVER_METADATA:
            return reply(200, {**self._endpoints(), **self.metadata})
        if asked.path == "/register":
            return reply(201, {"client_id": "client", **json.loads(asked.body), **self.registered})
        if asked.path == "/authorize":
            back = urlencode({"code": "c0de-of-the-person", "state": asked.query["state"]})
            return reply(302, location=f"{asked.query['redirect_uri']}?{back}")
        if asked.path == "/token":
            self.issued += 1
            return reply(
                200,
                {
                    "access_token": f"access-{self.issued}",
                    "token_type": "Bearer",
                    "expires_in": 3600,
                    "refresh_token": f"refresh-{self.issued}",
                    **self.grants,
                },
            )
        return self._mcp(asked) if asked.path == "/mcp" else reply(404)

    def _endpoints(self) -> dict[str, Any]:
        return {
            "issuer": self.origin,
            **{f"{name}_endpoint": f"{self.origin}/{path}" for name, path in _PATHS.items()},
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }

    def _mcp(self, asked: Asked) -> bytes:
        if not self.accepts(asked.token):
            challenge = self.challenge or f'Bearer resource_metadata="{self.origin}{METADATA}"'
            return reply(401, www_authenticate=challenge)
        message = json.loads(asked.body or b"{}")
        if "id" not in message:
            return reply(202)
        result: dict[str, Any] = {"resultType": "complete", "content": [], "tools": [], "ttlMs": 0}
        result |= {"supportedVersions": [NEWEST.name], "capabilities": {"tools": {}}, "cacheScope": "private"}
        return reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})


_PATHS = {"authorization": "authorize", "token": "token", "registration": "register"}


@asynccontextmanager
async def site(*, tls=None):
    """A site on a port of this machine; over https with a context for `tls`."""
    made = Site()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=tls)
    made.origin = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        if sys.version_info >= (3, 13):
            server.close_clients()
        left = list(made.serving)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


@asynccontextmanager
async def sending():
    """The package's own HTTP client."""
    sender = HttpSender()
    try:
        yield sender
    finally:
        await sender.aclose()
