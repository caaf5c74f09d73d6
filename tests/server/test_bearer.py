"""A protected server over HTTP: who gets in, what the refusal says, and that a session belongs to who began it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from mcprelay import AuthorizationRequired, Client, ConfigurationError, Context, HttpError, Server
from mcprelay.auth.resource import Attestation, Bearer, VerifierUnavailable
from mcprelay.auth.verifier import StaticTokens
from mcprelay.revisions import NEWEST_HANDSHAKE

if TYPE_CHECKING:
    from collections.abc import Mapping

RESOURCE = "http://127.0.0.1:1/mcp"


def attest(subject: str, *scopes: str) -> Attestation:
    return Attestation(subject=subject, audiences=(RESOURCE,), scopes=frozenset(scopes))


TOKENS = {"ada-token": attest("ada", "use"), "root-token": attest("root", "use", "admin"), "weak-token": attest("weak")}


@pytest.fixture
def server() -> Server:
    made = Server("private", auth=Bearer(StaticTokens(TOKENS), resource=RESOURCE, scopes=["use"]))

    @made.tool
    async def whoami(ctx: Context) -> str:
        return ctx.principal.subject if ctx.principal else "nobody"

    @made.tool(requires=["admin"])
    async def shut_down() -> str:
        return "down"

    return made


@pytest.mark.parametrize(("auth", "kind"), [("s3cret", "str"), (StaticTokens(TOKENS), "StaticTokens")])
def test_what_does_not_guard_is_refused_at_once_and_not_shown(auth: Any, kind: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"auth: a mcprelay\.auth\.resource\.Bearer.*not a {kind}") as caught:
        Server("x", auth=auth)
    assert "s3cret" not in str(caught.value)


async def test_a_good_token_gets_in_and_handlers_see_who_it_is(server: Server) -> None:
    async with server.serve("http", port=0) as running, Client(running.url, auth="ada-token") as client:
        assert (await client.call_tool("whoami")).value == "ada"


async def test_tools_that_need_a_scope_are_unknown_without_it(server: Server) -> None:
    async with server.serve("http", port=0) as running:
        async with Client(running.url, auth="ada-token") as ada:
            assert [tool.name for tool in await ada.list_tools()] == ["whoami"]
            with pytest.raises(Exception, match="Unknown tool"):
                await ada.call_tool("shut_down")
        async with Client(running.url, auth="root-token") as root:
            assert (await root.call_tool("shut_down")).value == "down"


@pytest.mark.parametrize(("token", "status"), [(None, 401), ("nonsense", 401), ("weak-token", 403)])
async def test_a_refusal_carries_the_challenge_to_the_caller(server: Server, token: str | None, status: int) -> None:
    async with server.serve("http", port=0) as running:
        with pytest.raises(AuthorizationRequired) as caught:
            async with Client(running.url, auth=token) as client:
                await client.call_tool("whoami")
    assert caught.value.status == status
    assert "oauth-protected-resource" in str(caught.value.challenge)
    assert token is None or token not in str(caught.value)


async def test_a_verifier_that_cannot_tell_is_no_verdict(server: Server) -> None:
    def verify(_: str) -> Attestation:
        raise VerifierUnavailable

    server.auth = Bearer(verify, resource=RESOURCE)
    async with server.serve("http", port=0) as running:
        with pytest.raises(HttpError) as caught:
            async with Client(running.url, auth="t") as client:
                await client.call_tool("whoami")
    assert caught.value.status == 503


async def test_the_metadata_is_for_everyone_and_for_reading_only(server: Server) -> None:
    async with server.serve("http", port=0) as running, aiohttp.ClientSession() as http:
        root = running.url.removesuffix("/mcp")
        async with http.get(root + "/.well-known/oauth-protected-resource/mcp") as reply:
            assert reply.status == 200
            assert (await reply.json())["resource"] == RESOURCE
        async with http.post(root + "/.well-known/oauth-protected-resource/mcp") as reply:
            assert reply.status == 405


async def test_the_body_of_a_stranger_is_not_read(server: Server) -> None:
    messages: list[Mapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        raise AssertionError("the body was asked for")

    async def send(message: Mapping[str, Any]) -> None:
        messages.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"content-length", b"5")]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, "query_string": b""}
    await server.asgi()(scope, receive, send)
    assert messages[0]["status"] == 401


async def test_a_session_belongs_to_who_began_it(server: Server) -> None:
    async with server.serve("http", port=0) as running, aiohttp.ClientSession() as http:
        accept = {"Accept": "application/json, text/event-stream"}

        async def post(token: str, message: dict[str, Any], **more: str) -> tuple[int, Mapping[str, str]]:
            headers = {**accept, "Authorization": f"Bearer {token}", **more}
            async with http.post(running.url, json={"jsonrpc": "2.0", **message}, headers=headers) as reply:
                await reply.read()
                return reply.status, reply.headers

        params = {
            "protocolVersion": NEWEST_HANDSHAKE.name,
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        _, headers = await post("ada-token", {"id": 1, "method": "initialize", "params": params})
        session = {"Mcp-Session-Id": headers["Mcp-Session-Id"], "MCP-Protocol-Version": NEWEST_HANDSHAKE.name}
        assert (await post("ada-token", {"id": 2, "method": "ping"}, **session))[0] == 200
        assert (await post("root-token", {"id": 3, "method": "ping"}, **session))[0] == 404


async def test_an_open_server_refuses_to_be_reachable_from_elsewhere_and_a_protected_one_does_not(
    server: Server,
) -> None:
    with pytest.raises(ConfigurationError, match="allow_unauthenticated"):
        Server("open").serve("http", host="0.0.0.0", port=0)  # noqa: S104 - the point
    async with server.serve("http", host="0.0.0.0", port=0) as running:  # noqa: S104 - the point
        assert running.url
