"""`Server(context=…)`: what it is given, what it gives, and how it refuses."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mcprelay import ConfigurationError, Context, RequestRefused, Server
from mcprelay.auth.resource import Attestation, Bearer
from mcprelay.revisions import NEWEST
from mcprelay.server.call import HttpRequest, Principal
from tests.server.ask import call
from tests.server.rawclient import meta

RESOURCE = "http://testserver/mcp"


class Tenant:
    def __init__(self, name: str, subject: str | None) -> None:
        self.name = name
        self.subject = subject


def served(context: Any, **options: Any) -> Server:
    server = Server("s", context=context, allowed_hosts=["*"], **options)

    @server.tool
    def who(ctx: Context[Tenant]) -> str:
        return f"{ctx.state.name} {ctx.state.subject}" if ctx.state else "nobody"

    return server


async def post(server: Server, *, tenant: str = "acme", token: str | None = None) -> tuple[int, dict[str, Any], Any]:
    """Status, headers and answer of one call over HTTP."""
    params = {"name": "who", "arguments": {}, "_meta": meta()}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {
        "host": "testserver",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": NEWEST.name,
        "mcp-method": "tools/call",
        "mcp-name": "who",
        "x-tenant": tenant,
        **({"authorization": f"Bearer {token}"} if token else {}),
    }
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    sent: list[dict[str, Any]] = []
    read: list[int] = []

    async def receive() -> dict[str, Any]:
        read.append(1)
        if len(read) > 1:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await server.asgi()(scope, receive, send)  # type: ignore[arg-type]
    answer = json.loads(sent[1]["body"])
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    if sent[0]["status"] != 200:
        assert not read, "the body of a refused request is not read"
    return sent[0]["status"], told, answer


@pytest.mark.parametrize("kind", ["sync", "async", "of the request alone"])
async def test_its_value_is_the_state_of_the_context(kind: str):
    def sync(request: HttpRequest, principal: Principal | None) -> Tenant:
        return Tenant(request.headers["x-tenant"], None if principal is None else principal.subject)

    async def asynchronous(request: HttpRequest, principal: Principal | None) -> Tenant:
        return sync(request, principal)

    def alone(request: HttpRequest) -> Tenant:
        return sync(request, None)

    server = served({"sync": sync, "async": asynchronous}.get(kind, alone))

    status, _, answer = await post(server)

    assert (status, answer["result"]["content"][0]["text"]) == (200, "acme None")


async def test_it_is_called_after_the_caller_is_known():
    called: list[str] = []

    def context(request: HttpRequest, principal: Principal) -> Tenant:
        called.append(principal.subject)
        return Tenant(request.headers["x-tenant"], principal.subject)

    def verify(token: str) -> Attestation:
        return Attestation(subject=token, audiences=(RESOURCE,))

    server = served(context, auth=Bearer(verify, resource=RESOURCE))

    assert (await post(server))[0] == 401
    assert called == []
    status, _, answer = await post(server, token="ada")
    assert (status, answer["result"]["content"][0]["text"], called) == (200, "acme ada", ["ada"])


async def test_it_refuses_with_a_status_a_sentence_and_headers():
    def context(request: HttpRequest) -> Tenant:
        raise RequestRefused(429, "too many for this tenant", headers={"Retry-After": "5"})

    status, headers, answer = await post(served(context))

    assert (status, headers["retry-after"], headers["content-type"]) == (429, "5", "application/json")
    assert answer["error"]["message"] == "too many for this tenant"
    with pytest.raises(ConfigurationError, match="status from 400 to 599, and not 200"):
        RequestRefused(200, "x")


async def test_what_goes_wrong_in_it_is_an_internal_error_that_says_nothing(caplog):
    async def context(request: HttpRequest) -> Tenant:
        raise RuntimeError("secret")

    status, _, answer = await post(served(context))

    assert (status, "secret" in str(answer)) == (500, False)
    assert "secret" in caplog.text


@pytest.mark.parametrize("wrong", [5, lambda: None, lambda a, b, c: None])
def test_what_is_no_function_of_a_request_is_refused(wrong: Any):
    with pytest.raises(ConfigurationError, match="context"):
        Server("s", context=wrong)


async def test_in_process_the_state_is_what_the_connection_was_given():
    def context(request: HttpRequest) -> Tenant:
        raise AssertionError("there is no request")

    server = served(context)

    assert await call(server, "who", state=Tenant("fixed", "x")) == "fixed x"
    assert await call(server, "who") == "nobody"
