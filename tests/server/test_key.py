"""A malformed idempotency key is refused before anything runs: in every era, on every transport, and read or not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcprelay import Server, revisions
from mcprelay.revisions import Era
from mcprelay.wire.params import IDEMPOTENCY_KEY
from tests.server.rawclient import RawClient, meta
from tests.server.test_sse_pair import connected as paired
from tests.server.wire import INFO, Http, notification, request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

NEWEST = revisions.NEWEST.name
HANDSHAKE = [revision.name for revision in revisions.of_era(Era.HANDSHAKE)]
MALFORMED = ["with space", "", "x" * 256, "ü", "a\n", 5, None, ["k"], {"k": 1}]
CHARGE: dict[str, Any] = {"name": "charge", "arguments": {}}


def shop() -> tuple[Server, list[int]]:
    """A server with a tool that charges money and reads no key, and how often it ran."""
    server, ran = Server("shop"), list[int]()

    @server.tool
    async def charge() -> str:
        ran.append(1)
        return "charged"

    @server.resource("shop://stock")
    async def stock() -> str:
        ran.append(1)
        return "much"

    return server, ran


async def over_channel(server: Server, key: Any) -> dict[str, Any]:
    channel = server.connect()
    try:
        return await RawClient(channel).ask("tools/call", CHARGE, **{IDEMPOTENCY_KEY: key})
    finally:
        await channel.aclose()


async def in_channel_session(server: Server, key: Any, revision: str = HANDSHAKE[0]) -> dict[str, Any]:
    channel = server.connect()
    try:
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": INFO}
        await channel.send(json.dumps(request("initialize", params)).encode())
        await channel.receive()
        await channel.send(json.dumps(notification("notifications/initialized")).encode())
        asked = request("tools/call", {**CHARGE, "_meta": {IDEMPOTENCY_KEY: key}}, id=2)
        await channel.send(json.dumps(asked).encode())
        answer: dict[str, Any] = json.loads(await channel.receive())
        return answer
    finally:
        await channel.aclose()


async def over_http(server: Server, key: Any) -> dict[str, Any]:
    params = {**CHARGE, "_meta": {**meta(), IDEMPOTENCY_KEY: key}}
    headers = {"mcp-protocol-version": NEWEST, "mcp-method": "tools/call", "mcp-name": "charge"}
    http = Http(server.asgi(), NEWEST)
    return await http.answer(http.request("tools/call", params, **headers))


async def in_http_session(server: Server, key: Any) -> dict[str, Any]:
    http = Http(server.asgi())
    await http.initialize()
    return await http.answer(http.call("charge", meta={IDEMPOTENCY_KEY: key}))


async def over_pair(server: Server, key: Any) -> dict[str, Any]:
    async with paired(server.asgi()) as pair:
        await pair.initialize()
        return await pair.ask("tools/call", {**CHARGE, "_meta": {IDEMPOTENCY_KEY: key}})


WAYS = [over_channel, in_channel_session, over_http, in_http_session, over_pair]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", MALFORMED, ids=repr)
async def test_a_malformed_key_is_refused_though_the_handler_reads_none(
    way: Callable[[Server, Any], Awaitable[dict[str, Any]]], key: Any
) -> None:
    server, ran = shop()
    error = (await way(server, key))["error"]
    assert error["code"] == -32602
    assert error["message"] == f"Invalid params: {IDEMPOTENCY_KEY} is 1 to 255 visible ASCII characters"
    assert not ran


@pytest.mark.parametrize("way", WAYS)
async def test_a_key_that_is_one_changes_nothing_for_a_handler_that_reads_none(
    way: Callable[[Server, Any], Awaitable[dict[str, Any]]],
) -> None:
    server, ran = shop()
    assert (await way(server, "order-4711"))["result"]["content"][0]["text"] == "charged"
    assert ran == [1]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_malformed_key_is_refused_in_every_revision_with_sessions(revision: str) -> None:
    server, ran = shop()
    assert (await in_channel_session(server, "no key", revision))["error"]["code"] == -32602
    assert not ran


async def test_a_malformed_key_is_refused_before_middleware_and_for_other_methods_too() -> None:
    server, ran = shop()

    @server.middleware
    async def bill(call: Any, call_next: Any) -> Any:
        ran.append(2)
        return await call_next(call)

    client = RawClient(server.connect())
    answer = await client.ask("resources/read", {"uri": "shop://stock"}, **{IDEMPOTENCY_KEY: "no key"})
    assert answer["error"]["code"] == -32602
    assert not ran
    await client.channel.aclose()
