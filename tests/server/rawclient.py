"""A client that is nothing but messages, so that tests see what a server says and not what a client makes of it."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

from mcprelay.revisions import NEWEST
from tests.wire_schema import validate_message

if TYPE_CHECKING:
    from mcprelay.ports import Channel

PREFIX = "io.modelcontextprotocol/"


def meta(**capabilities: Any) -> dict[str, Any]:
    """`_meta` of a request of the stateless era."""
    return {
        PREFIX + "protocolVersion": NEWEST.name,
        PREFIX + "clientInfo": {"name": "raw", "version": "1"},
        PREFIX + "clientCapabilities": capabilities,
    }


class RawClient:
    """Speaks the newest revision over a channel. Every answer is held against its schema."""

    def __init__(self, channel: Channel, **capabilities: Any) -> None:
        self.channel = channel
        self.capabilities = capabilities
        self.notices: list[dict[str, Any]] = []
        self._ids = itertools.count(1)

    async def send(self, message: Any) -> None:
        await self.channel.send(message if isinstance(message, bytes) else json.dumps(message).encode())

    async def receive(self) -> dict[str, Any]:
        data = await self.channel.receive()
        assert data, "the server ended the channel"
        message: dict[str, Any] = json.loads(data)
        return message

    async def request(self, method: str, params: dict[str, Any] | None = None, **extra_meta: Any) -> int:
        request_id = next(self._ids)
        whole = {"_meta": {**meta(**self.capabilities), **extra_meta}, **(params or {})}
        await self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": whole})
        return request_id

    async def ask(self, method: str, params: dict[str, Any] | None = None, **extra_meta: Any) -> dict[str, Any]:
        """The whole answer; notifications before it are kept in `notices`."""
        request_id = await self.request(method, params, **extra_meta)
        while True:
            message = await self.receive()
            validate_message(NEWEST.name, message, sender="server", request_method=method)
            if message.get("id") == request_id:
                return message
            self.notices.append(message)

    async def result(self, method: str, params: dict[str, Any] | None = None, **extra_meta: Any) -> dict[str, Any]:
        answer = await self.ask(method, params, **extra_meta)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    async def error(self, method: str, params: dict[str, Any] | None = None, **extra_meta: Any) -> dict[str, Any]:
        answer = await self.ask(method, params, **extra_meta)
        assert "error" in answer, answer
        error: dict[str, Any] = answer["error"]
        return error
