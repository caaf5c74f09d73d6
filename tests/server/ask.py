"""One question to a server of this process, asked as a client asks it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tests.server.rawclient import RawClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcprelay import Server


@contextlib.asynccontextmanager
async def connected(
    server: Server, *, capabilities: dict[str, Any] | None = None, **who: Any
) -> AsyncIterator[RawClient]:
    """A client of a server, until the context is left."""
    channel = server.connect(**who)
    try:
        yield RawClient(channel, **(capabilities or {}))
    finally:
        await channel.aclose()


async def ask(server: Server, method: str, params: dict[str, Any] | None = None, **who: Any) -> dict[str, Any]:
    """The whole answer to one request."""
    async with connected(server, **who) as client:
        return await client.ask(method, params)


async def result(server: Server, method: str, params: dict[str, Any] | None = None, **who: Any) -> dict[str, Any]:
    """The result of one request."""
    answer = await ask(server, method, params, **who)
    assert "result" in answer, answer
    found: dict[str, Any] = answer["result"]
    return found


async def error(server: Server, method: str, params: dict[str, Any] | None = None, **who: Any) -> dict[str, Any]:
    """The error that one request gets."""
    answer = await ask(server, method, params, **who)
    assert "error" in answer, answer
    found: dict[str, Any] = answer["error"]
    return found


async def call(server: Server, tool: str, arguments: dict[str, Any] | None = None, **who: Any) -> Any:
    """What a tool gives: its structured content, else its text; the text of an error begins with `error:`."""
    found = await result(server, "tools/call", {"name": tool, "arguments": arguments or {}}, **who)
    text = "".join(block.get("text", "") for block in found["content"])
    if found.get("isError"):
        return f"error: {text}"
    return found.get("structuredContent", text)


async def names(server: Server, kind: str = "tools", **who: Any) -> list[str]:
    """The names, or the URIs, in a list."""
    method = {"templates": "resources/templates/list"}.get(kind, f"{kind}/list")
    member, key = {"resources": ("resources", "uri"), "templates": ("resourceTemplates", "uriTemplate")}.get(
        kind, (kind, "name")
    )
    return [item[key] for item in (await result(server, method, **who))[member]]
