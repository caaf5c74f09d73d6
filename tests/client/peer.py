"""What scripted servers say, and how a client is connected to one."""

import asyncio
import contextlib

from mcprelay import Client
from mcprelay.client.memory import Memory
from mcprelay.testing import ScriptedChannel

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [MODERN],
    "capabilities": {"tools": {"listChanged": True}},
    "instructions": "be kind",
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}},
}
INITIALIZED = {
    "protocolVersion": LEGACY,
    "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}},
    "serverInfo": {"name": "scripted", "version": "1"},
}


def tool_result(value="ok", **more):
    """A result of `tools/call` in the newest shape."""
    return {
        "resultType": "complete",
        "content": [{"type": "text", "text": str(value)}],
        "structuredContent": value,
        **more,
    }


@contextlib.asynccontextmanager
async def connected(channel=None, *, client=None, **options):
    """A client that is connected to a scripted server of the newest era: `(client, channel)`."""
    channel = channel or ScriptedChannel()
    client = client or Client(channel, **options)
    connecting = asyncio.ensure_future(client.connect())
    channel.reply(await channel.expect("server/discover"), DISCOVERED)
    await connecting
    try:
        yield client, channel
    finally:
        await client.aclose()


@contextlib.asynccontextmanager
async def in_session(channel=None, *, initialized=None, **options):
    """A client that has shaken hands with a scripted server: `(client, channel)`."""
    channel = channel or ScriptedChannel()
    client = Client(channel, revision=(initialized or INITIALIZED)["protocolVersion"], **options)
    connecting = asyncio.ensure_future(client.connect())
    channel.reply(await channel.expect("initialize"), initialized or INITIALIZED)
    await channel.expect("notifications/initialized")
    await connecting
    try:
        yield client, channel
    finally:
        await client.aclose()


def fresh(target, **options):
    """A client that remembers nothing of other tests."""
    return Client(target, **{"memory": Memory(), **options})


def known(client):
    """What this client, and those that would find out the same, remember of its server."""
    return client._connection._known
