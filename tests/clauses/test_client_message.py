"""What every message of a client is, and in which revision."""

import asyncio
from typing import Any

import pytest

from mcprelay import CallFailed, RemoteError
from mcprelay.client.memory import Memory
from tests.clauses.http import PREFIX, REVISION
from tests.clauses.script import (
    Error,
    Stream,
    asks,
    cacheable,
    complete,
    form,
    over_http,
    over_lines,
    text,
    tools,
)

CALL = {"tools/call": text("done")}


# -------------------------------------------------------------------------------------------------------- every message


@pytest.mark.clause("index.request-id", "index.request-id-not-null", "index.request-id-unique", "index.json-rpc")
async def test_every_request_has_an_id_of_its_own(scripted: Any):
    server, client = scripted(CALL)
    async with client:
        await asyncio.gather(*(client.call_tool("t") for _ in range(20)))
    ids = [message["id"] for message in server.requests]
    assert {type(id) for id in ids} <= {int, str}
    assert len(set(ids)) == len(ids) >= 20


@pytest.mark.clause("index.meta-required-fields", "index.meta-client-info", "mrtr.meta-on-retry")
async def test_every_request_says_version_capabilities_and_who_sends_it(scripted: Any):
    server, client = scripted(
        {
            "tools/call": [asks("s", q=form()), text("done")],
            "tools/list": tools(),
            "resources/list": cacheable(resources=[]),
            "prompts/list": cacheable(prompts=[]),
            "resources/read": cacheable(contents=[]),
            "prompts/get": complete(messages=[]),
        },
        on_elicit=lambda _: {"name": "Ada"},
    )
    async with client:
        await client.call_tool("t")
        await client.list_tools()
        await client.list_resources()
        await client.list_prompts()
        await client.read_resource("a://b")
        await client.get_prompt("p")
        await client.discover()
    assert len(server.requests) >= 8
    for message in server.requests:
        meta = message["params"]["_meta"]
        assert meta[PREFIX + "protocolVersion"] == REVISION
        assert meta[PREFIX + "clientInfo"]["name"]
        assert meta[PREFIX + "clientCapabilities"]["elicitation"] is not None


@pytest.mark.clause("index.result-type-absent")
async def test_a_result_without_a_type_is_complete(scripted: Any):
    _, client = scripted({"tools/call": {"content": [{"type": "text", "text": "old"}]}})
    async with client:
        assert (await client.call_tool("t")).text == "old"


@pytest.mark.clause("index.result-type-unknown", "index.result-types-known")
@pytest.mark.parametrize("kind", ["task", "Complete", "", 5, None])
async def test_a_result_of_an_unknown_type_is_invalid(scripted: Any, kind: Any):
    _, client = scripted({"tools/call": {"resultType": kind, "content": []}})
    async with client:
        with pytest.raises(CallFailed):
            await client.call_tool("t")


@pytest.mark.clause("index.legacy-codes-meaningless", "index.reserved-codes-meaning")
@pytest.mark.parametrize("code", [-32000, -32001, -32010, -32019, -32042, 7])
async def test_a_code_without_a_meaning_is_given_none(scripted: Any, code: int):
    _, client = scripted({"tools/call": Error(code, "odd")})
    async with client:
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("t")
    assert type(caught.value) is RemoteError
    assert (caught.value.code, caught.value.message) == (code, "odd")


@pytest.mark.clause("stdio.no-client-responses", "http.no-responses-posted", "stdio.stdin-pure", "stdio.no-newline")
async def test_a_request_of_the_servers_gets_no_response_in_this_revision(scripted: Any):
    question = {"jsonrpc": "2.0", "id": "q", "method": "roots/list"}
    answers = {"tools/call": Stream(question, text("done")), "tools/list": tools()}
    server, client = scripted(answers, on_roots=["file:///x"])
    server.valid = False
    async with client:
        await client.list_tools()
        assert (await client.call_tool("t")).text == "done"
    assert all("method" in message for message in server.requests + server.notifications)
    assert [message for message in server.requests if message.get("id") == "q"] == []


# ----------------------------------------------------------------------------------------------------------- versioning


@pytest.mark.clause("versioning.select-version")
@pytest.mark.parametrize("method", ["server/discover", "tools/call"])
async def test_after_a_refused_version_the_client_goes_on_in_one_that_both_speak(method: str):
    refusal = Error(-32022, "no", {"supported": ["2025-11-25"], "requested": REVISION}, status=400)
    old = {"content": [{"type": "text", "text": "old"}]}
    info = {"name": "old", "version": "1"}
    handshake = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    make = over_lines if method == "server/discover" else over_http
    server, client = make({method: [refusal, old], "initialize": handshake, "tools/call": [refusal, old]})
    if method == "server/discover":
        server.script |= {method: refusal, "tools/call": old}
    server.valid = False
    async with client:
        assert (await client.call_tool("t")).text == "old"
    assert server.of("initialize")[0]["params"]["protocolVersion"] == "2025-11-25"


@pytest.mark.clause("versioning.select-version")
async def test_without_a_common_version_the_error_says_so(scripted: Any):
    refusal = Error(
        -32022, "Unsupported protocol version", {"supported": ["2030-01-01"], "requested": REVISION}, status=400
    )
    _, client = scripted({"tools/call": refusal, "server/discover": refusal})
    with pytest.raises(CallFailed, match="2030-01-01"):
        async with client:
            await client.call_tool("t")


@pytest.mark.clause("versioning.era-cached")
async def test_what_era_a_server_speaks_is_found_out_once():
    memory = Memory()
    servers = []
    for _ in range(2):
        server, client = over_http({"tools/call": text("done")}, memory=memory)
        async with client:
            await client.call_tool("t")
            await client.call_tool("t")
        servers.append(server)
    assert servers[1].methods == ["tools/call", "tools/call"]


@pytest.mark.clause("versioning.probe-first", "stdio.probe", "discover.probe")
async def test_over_a_channel_discover_comes_first():
    server, client = over_lines(CALL)
    async with client:
        await client.call_tool("t")
    assert server.methods[0] == "server/discover"


@pytest.mark.clause("stdio.fallback-any-error")
@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32603, -32000, 1])
async def test_any_other_error_to_the_probe_leads_to_the_handshake(code: int):
    handshake = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "old", "version": "1"},
    }
    old = {"content": [{"type": "text", "text": "old"}]}
    server, client = over_lines({"server/discover": Error(code), "initialize": handshake, "tools/call": old})
    server.valid = False
    async with client:
        assert (await client.call_tool("t")).text == "old"
    assert server.methods == ["server/discover", "initialize", "tools/call"]


@pytest.mark.clause("http.inspect-400")
@pytest.mark.parametrize(
    ("code", "data"),
    [(-32020, None), (-32021, {"requiredCapabilities": {"sampling": {}}})],
    ids=["header", "capability"],
)
async def test_a_400_of_the_new_era_is_no_reason_for_a_handshake(code: int, data: Any):
    server, client = over_http({"tools/call": Error(code, "no", data, status=400), "tools/list": tools()})
    async with client:
        with pytest.raises(RemoteError):
            await client.call_tool("t")
    assert "initialize" not in server.methods
