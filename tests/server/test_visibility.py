"""Who may see what: what is hidden from a caller is, to that caller, not there."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import pytest

from mcprelay import Complete, Schema, Server
from mcprelay.auth.resource import Attestation, Bearer
from mcprelay.revisions import NEWEST
from mcprelay.server.call import Principal
from tests.server.ask import ask, call, connected, names, result
from tests.server.rawclient import meta

ADA = Principal("ada", frozenset({"admin", "read"}))
BOB = Principal("bob", frozenset({"read"}))
NOBODY = None


def is_ada(principal: Principal | None) -> bool:
    return principal is not None and principal.subject == "ada"


@pytest.fixture
def server() -> Server:
    server = Server("s", cache_scope="public")

    @server.tool
    def open() -> str:
        return "open"

    @server.tool(requires=["admin"])
    def scoped() -> str:
        return "scoped"

    @server.tool(visible=is_ada)
    def seen() -> str:
        return "seen"

    @server.resource("a://secret", requires=["admin"])
    def secret() -> str:
        return "secret"

    @server.resource("t://{x}", visible=is_ada)
    def template(x: Annotated[str, Complete(["1"])]) -> str:
        return x

    @server.prompt(requires=["admin", "read"])
    def guarded(x: Annotated[str, Complete(["1"])]) -> str:
        return x

    @server.prompt
    def free() -> str:
        return ""

    return server


async def test_lists_show_what_a_caller_may_see(server: Server):
    for principal, tools, resources, templates, prompts in (
        (ADA, ["open", "scoped", "seen"], ["a://secret"], ["t://{x}"], ["guarded", "free"]),
        (BOB, ["open"], [], [], ["free"]),
        (NOBODY, ["open"], [], [], ["free"]),
    ):
        assert await names(server, principal=principal) == tools
        assert await names(server, "resources", principal=principal) == resources
        assert await names(server, "templates", principal=principal) == templates
        assert await names(server, "prompts", principal=principal) == prompts


async def test_what_differs_by_caller_is_kept_for_that_caller_alone(server: Server):
    assert (await result(server, "tools/list", principal=ADA))["cacheScope"] == "private"
    server.remove_tool("scoped")
    server.remove_tool("seen")
    assert (await result(server, "tools/list", principal=ADA))["cacheScope"] == "public"


@pytest.mark.parametrize(
    ("method", "hidden", "unknown"),
    [
        ("tools/call", {"name": "scoped", "arguments": {}}, {"name": "nothing", "arguments": {}}),
        ("tools/call", {"name": "seen", "arguments": {"x": 1}}, {"name": "nothing", "arguments": {}}),
        ("resources/read", {"uri": "a://secret"}, {"uri": "a://nothing"}),
        ("resources/read", {"uri": "t://x"}, {"uri": "u://x"}),
        ("prompts/get", {"name": "guarded"}, {"name": "nothing"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "guarded"}, "argument": {"name": "x", "value": ""}},
            {"ref": {"type": "ref/prompt", "name": "nothing"}, "argument": {"name": "x", "value": ""}},
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "t://{x}"}, "argument": {"name": "x", "value": ""}},
            {"ref": {"type": "ref/resource", "uri": "u://{x}"}, "argument": {"name": "x", "value": ""}},
        ),
    ],
)
async def test_hidden_is_the_same_as_unknown(server: Server, method: str, hidden: Any, unknown: Any):
    for principal in (BOB, NOBODY):
        one = await ask(server, method, hidden, principal=principal)
        other = await ask(server, method, unknown, principal=principal)
        words = {
            "scoped": "nothing",
            "seen": "nothing",
            "guarded": "nothing",
            "a://secret": "a://nothing",
            "t://": "u://",
        }
        text = str(one)
        for word, plain in words.items():
            text = text.replace(word, plain)
        assert text == str(other)
    assert "nknown" not in str(await ask(server, method, hidden, principal=ADA))


async def test_who_may_see_it_may_use_it(server: Server):
    assert await call(server, "scoped", principal=ADA) == "scoped"
    assert await call(server, "seen", principal=ADA) == "seen"
    assert (await result(server, "resources/read", {"uri": "t://x"}, principal=ADA))["contents"][0]["text"] == "x"


async def test_a_predicate_that_fails_hides(server: Server, caplog):
    def broken(principal: Principal | None) -> bool:
        raise RuntimeError("no directory")

    server.add_tool(lambda: "x", name="broken", visible=broken)

    assert "broken" not in await names(server, principal=ADA)
    assert (await ask(server, "tools/call", {"name": "broken"}, principal=ADA))["error"]["code"] == -32602
    assert "no directory" in caplog.text


async def test_nobody_hears_of_changes_of_a_resource_that_is_hidden_from_them(server: Server):
    wanted = {"notifications": {"resourceSubscriptions": ["a://secret", "t://x", "a://unknown"]}}
    async with connected(server, principal=ADA) as ada, connected(server, principal=BOB) as bob:
        for client in (ada, bob):
            await client.request("subscriptions/listen", wanted)
            assert (await client.receive())["params"]["notifications"] == wanted["notifications"]
        for uri in ("a://secret", "t://x", "a://unknown"):
            await server.resource_updated(uri)

        told = {(await ada.receive())["params"]["uri"] for _ in range(3)}
        assert told == {"a://secret", "t://x", "a://unknown"}
        await bob.ask("server/discover")
        assert [notice["params"]["uri"] for notice in bob.notices] == ["a://unknown"]


async def test_in_the_handshake_era_too(server: Server):
    async def subscribed(principal: Principal) -> list[dict[str, Any]]:
        async with connected(server, principal=principal) as client:
            hello = {"protocolVersion": "x", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
            await client.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
            await client.receive()
            await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            subscribe = {"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": "a://secret"}}
            await client.send(subscribe)
            assert (await client.receive())["result"] == {}
            await server.resource_updated("a://secret")
            await client.send({"jsonrpc": "2.0", "id": 3, "method": "ping"})
            messages = []
            while True:
                messages.append(await client.receive())
                if messages[-1].get("id") == 3:
                    return messages[:-1]

    assert [message["params"]["uri"] for message in await subscribed(ADA)] == ["a://secret"]
    assert await subscribed(BOB) == []


@pytest.mark.parametrize(
    ("subject", "header", "expected"),
    [("ada", "a", 200), ("ada", "b", -32020), ("ada", None, -32020), ("bob", "b", -32602), ("bob", None, -32602)],
)
async def test_headers_that_mirror_arguments_do_not_tell_that_a_tool_is_there(subject, header, expected):
    served = Server("s", allowed_hosts=["*"], auth=Bearer(known, resource="http://x/mcp"))

    @served.tool(visible=is_ada)
    def routed(region: Annotated[str, Schema(header="Region")]) -> str:
        return region

    params = {"name": "routed", "arguments": {"region": "a"}, "_meta": meta()}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {
        "content-type": "application/json",
        "accept": "application/json",
        "host": "x",
        "authorization": f"Bearer {subject}",
        "mcp-protocol-version": NEWEST.name,
        "mcp-method": "tools/call",
        "mcp-name": "routed",
        **({"mcp-param-region": header} if header else {}),
    }
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": raw}
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if sent:
            await asyncio.Event().wait()
        sent.append(None)
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    await served.asgi()(scope, receive, send)  # type: ignore[arg-type]

    answer = json.loads(sent[-1]["body"])
    assert answer.get("error", {}).get("code", 200) == expected, answer


def known(token: str) -> Attestation:
    return Attestation(subject=token, audiences=("http://x/mcp",))
