"""A server that is not ours, in this process: it says what a test tells it to, and keeps what came."""

import asyncio
import json
from typing import Any

from tests.clauses.script import ChannelScript, complete, discovered, text, tool

SEARCH = {
    "name": "search",
    "description": "Search.",
    "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
}
ADD = {
    "name": "add",
    "description": "Add.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}


class Far:
    """A target: each `connect` is counted. `tools` is what it lists now, as values or as JSON of the whole list."""

    def __init__(self, *tools: Any, ttl_ms: Any = None, scope: Any = None, **script: Any) -> None:
        self.tools: Any = list(tools) or [SEARCH, ADD]
        self.ttl_ms, self.scope = ttl_ms, scope
        self.connects = 0
        self.channels: list[ChannelScript] = []
        self.script = {"tools/call": text("found"), "tools/list": self._list, **script}

    def _list(self, _: Any) -> Any:
        hints = {
            name: value for name, value in (("ttlMs", self.ttl_ms), ("cacheScope", self.scope)) if value is not None
        }
        return complete(tools=self.tools, **hints)

    def connect(self) -> ChannelScript:
        self.connects += 1
        channel = _Raw(self.script) if isinstance(self.tools, bytes) else ChannelScript(self.script)
        channel.listed = self
        self.channels.append(channel)
        return channel

    def of(self, method: str) -> list[dict[str, Any]]:
        """The requests of a method, over all connections."""
        return [message for channel in self.channels for message in channel.of(method)]

    def changed(self) -> None:
        """Tell that the list changed."""
        self.channels[-1].say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

    async def read_by_all(self) -> None:
        """Wait until the client has read everything that was said."""
        for _ in range(10_000):
            await asyncio.sleep(0)


class _Raw(ChannelScript):
    """Lists bytes as they are, which JSON of Python cannot say."""

    async def send(self, data: bytes) -> None:
        message = json.loads(data)
        if message["method"] != "tools/list":
            await super().send(data)
            return
        self.requests.append(message)
        self._outgoing.put_nowait(
            b'{"jsonrpc":"2.0","id":%b,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":%b}}'
            % (json.dumps(message["id"]).encode(), self.listed.tools)
        )


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


def servers(**far: Any) -> dict[str, dict[str, Any]]:
    """Settings with everything allowed."""
    return {name: {"target": one, "allow": "*"} for name, one in far.items()}


__all__ = ["ADD", "SEARCH", "Far", "discovered", "servers", "settle", "text", "tool"]
