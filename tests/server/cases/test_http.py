"""Cases from people's bug reports: a server over HTTP (T18, T19, T25, T28)."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from mcprelay import Server
from mcprelay.revisions import NEWEST, NEWEST_HANDSHAKE
from tests.server.test_asgi import META, Modern
from tests.server.wire import BOTH, INFO, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HELLO = request("initialize", {"protocolVersion": NEWEST_HANDSHAKE.name, "capabilities": {}, "clientInfo": INFO})


def build(**options: Any) -> Server:
    server = Server("cases", **options)

    @server.tool
    def echo(text: str) -> str:
        return text

    return server


async def test_t18_hosts_and_origins_are_those_of_the_bind_address_or_of_the_public_url() -> None:
    async def post(url: str, **headers: str) -> tuple[int, str]:
        given = {"accept": BOTH, **headers}
        async with aiohttp.ClientSession() as http, http.post(url, json=HELLO, headers=given) as reply:
            return reply.status, await reply.text()

    async with build().serve("http", port=0) as running:
        port = running.url.rpartition(":")[2].partition("/")[0]
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", "localhost"):
            assert (await post(running.url, host=host))[0] == 200
        status, said = await post(running.url, host="evil.example")
        assert status in (403, 421)
        assert "allowed_hosts" in said
        status, said = await post(running.url, origin="http://evil.example")
        assert status == 403
        assert "allowed_origins" in said
    async with build(public_url="https://my.example/mcp").serve("http", port=0) as running:
        assert (await post(running.url, host="my.example"))[0] == 200


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_t19_the_endpoint_redirects_nowhere(path: str) -> None:
    with TestClient(build().asgi()) as client:
        assert client.post(path, json=HELLO, headers={"accept": BOTH}, follow_redirects=False).status_code == 200


def test_t25_a_mounted_app_works_without_a_lifespan_and_the_hosts_own_runs() -> None:
    entered: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        entered.append("host")
        yield

    for host in (
        Starlette(routes=[Mount("/api", build().asgi())]),
        Starlette(routes=[Mount("/api", build().asgi())], lifespan=lifespan),
    ):
        with TestClient(host) as client:
            assert client.post("/api/mcp", json=HELLO, headers={"accept": BOTH}).status_code == 200
    assert entered == ["host"]


async def test_t28_headers_agree_with_the_body_or_the_request_is_refused() -> None:
    http = Modern(build().asgi())
    params = {"name": "echo", "arguments": {"text": "x"}}

    def send(**headers: str | None) -> Any:
        known = {"mcp_protocol_version": NEWEST.name, "mcp_method": "tools/call", "mcp_name": "echo"}
        return http.post(request("tools/call", {**params, "_meta": META}), **{**known, **headers})

    for wrong in ({"mcp_name": "other"}, {"mcp_method": None}, {"mcp_protocol_version": NEWEST_HANDSHAKE.name}):
        assert (await http.refusal(send(**wrong), 400))["code"] == -32020
    assert (await http.result(send(mcp_name="=?base64?ZWNobw==?=")))["structuredContent"] == "x"
    assert (await http.result(send()))["structuredContent"] == "x"
