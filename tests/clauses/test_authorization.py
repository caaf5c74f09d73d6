"""basic/authorization: what a protected server asks of a token, how it refuses one, and who gets what."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mcprelay import Context, Server
from mcprelay.auth.resource import Attestation, Bearer, TokenRejected
from mcprelay.proxy import proxy
from mcprelay.wire.challenge import parse
from tests.clauses.http import REVISION, Answer, HttpWire
from tests.clauses.script import cacheable, over_http, text, tool, tools

RESOURCE = "http://127.0.0.1:8000/mcp"
ELSEWHERE = "https://other.example/mcp"
ISSUER = "https://as.example.com"
METADATA = "/.well-known/oauth-protected-resource/mcp"
TOKENS = {
    "reader": ("ada", (RESOURCE,), "list read"),
    "writer": ("ada", (RESOURCE,), "list read write"),
    "chief": ("bob", (RESOURCE,), "everything"),
    "half": ("ada", (RESOURCE,), "read"),
    "bare": ("ada", (RESOURCE,), ""),
    "elsewhere": ("ada", (ELSEWHERE,), "list read"),
    "unbound": ("ada", (), "list read"),
    "both": ("ada", (RESOURCE, ELSEWHERE), "list read"),
    "similar": ("ada", (RESOURCE + "/",), "list read"),
}
"""Subject, audiences and scopes of each token. Others are not valid."""


def verify(token: str) -> Attestation:
    """Scopes are this application's, and so is what one holds beside itself."""
    if token not in TOKENS:
        raise TokenRejected("it has expired" if token == "old" else "nobody issued it")
    subject, audiences, scopes = TOKENS[token]
    granted = {"list", "read", "write"} if scopes == "everything" else set(scopes.split())
    return Attestation(subject=subject, audiences=audiences, scopes=frozenset(granted))


class Guarded:
    """A protected server, and what its tools did."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        guard = Bearer(verify, resource=RESOURCE, scopes=["list", "read"], authorization_servers=[ISSUER])
        self.server = Server("guarded", auth=guard, cache_scope="public")

        @self.server.tool
        async def whoami(ctx: Context, name: str = "") -> str:
            """Say who calls."""
            assert ctx.principal is not None
            self.seen.append(ctx.principal)
            return ctx.principal.subject

        @self.server.tool(requires=["write"])
        async def erase() -> str:
            """Erase everything."""
            self.seen.append("erased")
            return "gone"


@pytest.fixture
def guarded() -> Guarded:
    return Guarded()


@pytest.fixture
async def door(guarded: Guarded) -> AsyncIterator[HttpWire]:
    app = guarded.server.asgi()
    yield HttpWire(app)
    await app.aclose()


def shown(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def call(door: HttpWire, token: str | None, name: str = "whoami", **arguments: Any) -> Answer:
    message = door.message("tools/call", {"name": name, "arguments": arguments})
    answer = door.post(message, {} if token is None else shown(token))
    await answer.all()
    return answer


def challenge(answer: Answer) -> dict[str, str]:
    """The members of the one challenge."""
    [found] = parse([answer.headers["www-authenticate"]])
    assert found.scheme.lower() == "bearer"
    return dict(found.params)


# ------------------------------------------------------------------------------------------------------------ discovery


@pytest.mark.clause(
    "auth.resource-metadata",
    "auth-discovery.resource-metadata",
    "auth-discovery.authorization-servers",
    "auth-discovery.mechanism",
    "handshake.auth.challenge",
)
async def test_the_metadata_of_the_resource_are_where_the_challenge_says(door: HttpWire):
    refused = await call(door, None)
    assert challenge(refused)["resource_metadata"] == "http://127.0.0.1:8000" + METADATA
    answer = Answer(door.app, "GET", {"host": "127.0.0.1:8000"}, b"", path=METADATA)
    [document] = await answer.all()
    assert answer.status == 200
    assert document["resource"] == RESOURCE
    assert document["authorization_servers"] == [ISSUER]


@pytest.mark.clause("auth.scope-challenge", "auth.no-offline-scope")
async def test_the_challenge_and_the_metadata_name_the_scopes_that_requests_need_and_no_other(door: HttpWire):
    refused = await call(door, None)
    assert challenge(refused)["scope"].split() == ["list", "read"]
    [document] = await Answer(door.app, "GET", {"host": "127.0.0.1:8000"}, b"", path=METADATA).all()
    assert document["scopes_supported"] == ["list", "read"]


# --------------------------------------------------------------------------------------------------------------- tokens


@pytest.mark.clause(
    "http.authentication", "auth-security.token-first", "auth.statuses", "handshake.first-auth.required"
)
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
async def test_without_a_token_nothing_is_processed(door: HttpWire, guarded: Guarded, verb: str):
    message = door.message("tools/call", {"name": "whoami", "arguments": {}})
    answer = door.post(message, verb=verb)
    await answer.all()
    assert answer.status == 401
    assert b"guarded" not in answer.body
    assert guarded.seen == []


@pytest.mark.clause(
    "auth.token-validated", "auth.token-401", "auth.token-error", "auth-security.token-rules", "auth.scope-consistent"
)
@pytest.mark.parametrize(("token", "why"), [("old", "expired"), ("made.up", "nobody issued it")])
async def test_a_token_that_is_not_valid_is_a_401_that_says_so(door: HttpWire, guarded: Guarded, token: str, why: str):
    refusals = [await call(door, token) for _ in range(2)]
    assert [answer.status for answer in refusals] == [401, 401]
    assert challenge(refusals[0])["error"] == "invalid_token"
    assert why in challenge(refusals[0])["error_description"]
    assert challenge(refusals[0]) == challenge(refusals[1])
    assert guarded.seen == []


@pytest.mark.clause(
    "auth.token-audience",
    "auth.token-own",
    "auth.token-no-transit",
    "auth-security.audience",
    "auth-security.token-intended",
    "auth-security.token-rejected",
)
@pytest.mark.parametrize("token", ["elsewhere", "unbound", "both", "similar"])
async def test_a_token_that_is_not_for_this_server_alone_is_refused(door: HttpWire, guarded: Guarded, token: str):
    answer = await call(door, token)
    assert (answer.status, challenge(answer)["error"]) == (401, "invalid_token")
    assert guarded.seen == []


@pytest.mark.clause("auth-security.no-passthrough", "auth.token-no-transit")
async def test_a_clients_token_is_not_passed_on_to_the_server_behind():
    discovered = cacheable(supportedVersions=[REVISION], capabilities={"tools": {}})
    script = {"server/discover": discovered, "tools/list": tools(tool("far")), "tools/call": text("far away")}
    far, client = over_http(script)
    front = proxy(client)
    front.auth = Bearer(verify, resource=RESOURCE)
    app = front.asgi()
    answer = await call(HttpWire(app), "reader", name="far")
    assert "far away" in answer.body.decode()
    await app.aclose()
    assert len(far.of("tools/call")) == 1
    assert all("reader" not in f"{request.headers} {request.body!r}" for request in far.sent)


@pytest.mark.clause("elicitation.user-from-token")
async def test_who_calls_is_who_the_token_stands_for_whatever_the_request_says(door: HttpWire):
    answer = await call(door, "reader", name="whoami")
    claiming = door.message("tools/call", {"name": "whoami", "arguments": {"name": "bob"}}, user="bob", subject="bob")
    other = await door.answer(claiming, shown("reader"))
    assert "ada" in answer.body.decode()
    assert other["result"]["content"][0]["text"] == "ada"


# --------------------------------------------------------------------------------------------------------------- scopes


@pytest.mark.clause(
    "auth.insufficient-scope",
    "auth.insufficient-scope-needed",
    "auth.insufficient-scope-all",
    "auth.insufficient-scope-consistent",
    "auth.statuses",
)
@pytest.mark.parametrize("token", ["bare", "half"])
async def test_a_token_that_lacks_scopes_is_a_403_that_names_all_that_are_needed_at_once(
    door: HttpWire, guarded: Guarded, token: str
):
    answer = await call(door, token)
    assert answer.status == 403
    told = challenge(answer)
    assert (told["error"], told["scope"].split()) == ("insufficient_scope", ["list", "read"])
    assert "resource_metadata" in told
    assert guarded.seen == []


@pytest.mark.clause("auth.scope-hierarchy")
async def test_a_broader_scope_opens_what_its_narrower_ones_do(door: HttpWire, guarded: Guarded):
    for name in ("whoami", "erase"):
        assert (await call(door, "chief", name=name)).status == 200
    assert guarded.seen[1:] == ["erased"]


@pytest.mark.clause("caching.access-control", "caching.scope-no-control")
async def test_each_caller_gets_its_own_list_and_is_refused_what_is_not_in_it(door: HttpWire, guarded: Guarded):
    listed = {}
    for token in ("reader", "writer"):
        result = await door.answer(door.message("tools/list"), shown(token))
        assert result["result"]["cacheScope"] == "private"  # whatever the server was told: the lists differ
        listed[token] = [each["name"] for each in result["result"]["tools"]]
    assert listed == {"reader": ["whoami"], "writer": ["whoami", "erase"]}
    refused = await call(door, "reader", name="erase")
    assert "error" in json.loads(refused.body)
    assert guarded.seen == []
