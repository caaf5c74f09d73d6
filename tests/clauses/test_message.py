"""basic/index and basic/versioning: what every message of a server is."""

import asyncio
import json
from typing import Any

import pytest

from mcprelay import Server
from tests.clauses.house import Workshop
from tests.clauses.http import PREFIX, REVISION, HttpWire
from tests.server.rawclient import RawClient

LEGACY_CODES = range(-32019, -31999)
FORMER_CODES = {-32002, -32042}

REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("server/discover", {}),
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    ("tools/call", {"name": "echo", "arguments": {"text": "a"}}),
    ("tools/call", {"name": "weather", "arguments": {"city": "a"}}),
    ("tools/call", {"name": "refuse"}),
    ("tools/call", {"name": "ask"}),
    ("resources/read", {"uri": "work://text"}),
    ("resources/read", {"uri": "work://asking"}),
    ("prompts/get", {"name": "review", "arguments": {"language": "python"}}),
    ("prompts/get", {"name": "asking"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": "language", "value": "p"}},
    ),
]

FAULTS: list[tuple[str, dict[str, Any], int]] = [
    ("tools/call", {"name": "nothing"}, -32602),
    ("resources/read", {"uri": "work://nothing"}, -32602),
    ("prompts/get", {"name": "nothing"}, -32602),
    ("resources/read", {"uri": "work://broken"}, -32603),
    ("tools/list", {"cursor": "nonsense"}, -32602),
]


@pytest.mark.clause("index.result-field", "index.result-type", "index.meta-server-info", "index.json-rpc")
@pytest.mark.parametrize(("method", "params"), REQUESTS)
async def test_every_result_says_its_type_and_who_made_it(wire: Any, method: str, params: dict[str, Any]):
    result = await wire.result(method, params)
    assert result["resultType"] in {"complete", "input_required"}
    assert result["_meta"][PREFIX + "serverInfo"] == {"name": "workshop", "version": "1.2.3"}


@pytest.mark.clause("index.error-fields", "index.error-code-integer", "prompts.errors", "pagination.invalid-code")
@pytest.mark.parametrize(("method", "params", "code"), FAULTS)
async def test_an_error_has_an_integer_code_and_a_message(wire: Any, method: str, params: dict[str, Any], code: int):
    error = await wire.error(method, params)
    assert error["code"] == code
    assert isinstance(error["message"], str)
    assert error["message"]


@pytest.mark.clause(
    "index.legacy-codes-unused",
    "index.legacy-codes-not-allocated",
    "index.former-codes",
    "index.reserved-codes-undefined",
)
@pytest.mark.parametrize(("method", "params", "code"), FAULTS)
async def test_no_error_has_a_code_that_is_reserved_or_retired(
    wire: Any, method: str, params: dict[str, Any], code: int
):
    found = (await wire.error(method, params))["code"]
    assert found not in LEGACY_CODES
    assert found not in FORMER_CODES
    assert found not in range(-32099, -32019)


@pytest.mark.clause("index.result-same-id", "index.error-same-id")
@pytest.mark.parametrize("id", [0, 1, -7, 2**53, "1", "", "a b", "ü\n"])
@pytest.mark.parametrize("name", ["echo", "nothing"])
async def test_an_answer_has_the_id_of_its_request_in_type_and_value(http: HttpWire, id: Any, name: str):
    message = http.message("tools/call", {"name": name, "arguments": {"text": "a"}}) | {"id": id}
    answer = await http.answer(message)
    assert (type(answer["id"]), answer["id"]) == (type(id), id)


@pytest.mark.clause("index.json-rpc")
@pytest.mark.parametrize("id", ["null", "true", "1.5", "{}", "[1]"])
async def test_what_is_no_id_is_refused_and_never_taken_for_a_notification(http: HttpWire, id: str):
    text = json.dumps(http.message("tools/list")).replace('"id": 1', f'"id": {id}').encode()
    answer = http.post(text)
    [message] = await answer.all()
    assert answer.status == 400
    assert message["error"]["code"] == -32600
    assert message.get("id") is None


@pytest.mark.clause("index.error-same-id", "index.json-rpc")
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b'"x"', b"\xff", b"null", b"[" * 200 + b"]" * 200])
async def test_what_cannot_be_read_is_answered_without_an_id(http: HttpWire, body: bytes):
    answer = http.post(body)
    [message] = await answer.all()
    assert answer.status == 400
    assert message["error"]["code"] in {-32700, -32600}
    assert message.get("id") is None


@pytest.mark.clause("index.notification-unanswered")
async def test_a_notification_is_never_answered(channel: RawClient):
    for method in ("notifications/cancelled", "notifications/unknown", "tools/list"):
        await channel.send({"jsonrpc": "2.0", "method": method, "params": {}})
    answer = await channel.ask("tools/call", {"name": "echo", "arguments": {"text": "a"}})
    assert answer["result"]["content"] == [{"type": "text", "text": "a"}]
    assert channel.notices == []


@pytest.mark.clause("index.notification-no-id")
async def test_no_notification_has_an_id(wire: Any):
    await wire.result("tools/call", {"name": "chatty"}, **{"progressToken": 1, PREFIX + "logLevel": "debug"})
    assert len(wire.notices) == 5
    assert [message for message in wire.notices if "id" in message] == []


@pytest.mark.clause("index.meta-missing-field", "index.meta-missing-field-status")
@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities", None])
async def test_a_request_without_a_required_field_is_refused_with_400(http: HttpWire, missing: str | None):
    message = http.message("tools/list")
    if missing is None:
        del message["params"]["_meta"]
    else:
        del message["params"]["_meta"][PREFIX + missing]
    answer = await http.answer(message)
    assert answer["error"]["code"] == -32602
    assert http.status == 400


@pytest.mark.clause("index.meta-missing-field")
@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
async def test_a_request_without_a_required_field_is_refused_on_a_channel(channel: RawClient, missing: str):
    fields = {PREFIX + "protocolVersion": REVISION, PREFIX + "clientCapabilities": {}}
    del fields[PREFIX + missing]
    await channel.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": fields}})
    assert (await channel.receive())["error"]["code"] == -32602


@pytest.mark.clause("index.info-no-behavior", "index.info-no-security")
async def test_a_client_that_does_not_say_who_it_is_is_served(http: HttpWire):
    message = http.message("tools/call", {"name": "echo", "arguments": {"text": "a"}})
    del message["params"]["_meta"][PREFIX + "clientInfo"]
    assert (await http.answer(message))["result"]["content"] == [{"type": "text", "text": "a"}]


@pytest.mark.clause("index.capability-undeclared", "index.capability-missing-error", "index.capability-missing-status")
@pytest.mark.parametrize(
    ("name", "required"),
    [("ask", {"elicitation": {"form": {}}}), ("ask_url", {"elicitation": {"url": {}}})],
)
async def test_what_needs_an_undeclared_capability_is_refused_and_says_which(
    http: HttpWire, workshop: Workshop, name: str, required: dict[str, Any]
):
    http.capabilities = {}
    error = await http.error("tools/call", {"name": name})
    assert (error["code"], error["data"]["requiredCapabilities"]) == (-32021, required)
    assert http.status == 400
    assert workshop.runs == 0


@pytest.mark.clause("index.no-inherited-context")
async def test_what_an_earlier_request_declared_counts_no_more(channel: RawClient):
    assert (await channel.result("tools/call", {"name": "ask"}))["resultType"] == "input_required"
    channel.capabilities = {}
    assert (await channel.error("tools/call", {"name": "ask"}))["code"] == -32021


@pytest.mark.clause("index.many-conversations", "index.no-connection-affinity")
async def test_a_call_that_asks_goes_on_over_another_connection(server: Server):
    first, second = server.connect(), server.connect()
    one, other = (RawClient(end, elicitation={}) for end in (first, second))
    asked = await one.result("tools/call", {"name": "ask"})
    answers = {"form": {"action": "accept", "content": {"name": "Ada"}}}
    params = {"name": "ask", "inputResponses": answers, "requestState": asked["requestState"]}
    assert (await other.result("tools/call", params))["content"][0]["text"].startswith("accept")
    await asyncio.gather(first.aclose(), second.aclose())
    await server.stop()


@pytest.mark.clause("versioning.unsupported-version")
async def test_a_version_that_is_not_spoken_is_answered_with_those_that_are(wire: Any):
    if isinstance(wire, HttpWire):
        error = await wire.error("server/discover", **{PREFIX + "protocolVersion": "1999-01-01"})
    else:
        await wire.request("server/discover", **{PREFIX + "protocolVersion": "1999-01-01"})
        error = (await wire.receive())["error"]
    assert error["code"] == -32022
    assert error["data"]["requested"] == "1999-01-01"
    assert REVISION in error["data"]["supported"]


@pytest.mark.clause("versioning.discover", "discover.implemented", "discover.server-info")
async def test_discover_says_versions_capabilities_and_who_answers(wire: Any):
    result = await wire.result("server/discover")
    assert REVISION in result["supportedVersions"]
    assert result["capabilities"].keys() >= {"tools", "resources", "prompts", "completions", "logging"}
    assert result["_meta"][PREFIX + "serverInfo"]["name"] == "workshop"


@pytest.mark.clause("versioning.initialize-names-versions")
async def test_a_server_of_the_stateless_era_alone_names_its_versions_to_an_older_client():
    server = Server("new", among=[REVISION])
    end = server.connect()
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    await end.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode())
    error = json.loads(await end.receive())["error"]
    assert REVISION in error["message"]
    await end.aclose()
    await server.stop()
