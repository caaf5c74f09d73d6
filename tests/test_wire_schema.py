"""The schema validator accepts what the specification shows and refuses what it forbids."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.wire_schema import REPAIRS, REVISIONS, SPEC, RevisionSchema, WireViolation, schema_of, validate_message

NEWEST = REVISIONS[-1]
EXAMPLES = sorted((SPEC / NEWEST / "examples").rglob("*.json"))
META = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def example(path: str) -> Any:
    return json.loads((SPEC / NEWEST / "examples" / path).read_text(encoding="utf-8"))


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}}


def result(value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": value}


def test_every_revision_has_a_schema():
    assert len(REVISIONS) == 5


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_shipped_example_is_what_its_definition_describes(path: Path):
    value = json.loads(path.read_text(encoding="utf-8"))
    assert list(schema_of(NEWEST).problems(path.parent.name, value)) == []


MESSAGES = [path for path in EXAMPLES if "jsonrpc" in json.loads(path.read_text(encoding="utf-8"))]
LACKING = "read-resource-result-response"
"""The one example that its own schema refuses: it has no `ttlMs` and no `cacheScope`."""


@pytest.mark.parametrize("path", MESSAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_shipped_example_of_a_whole_message_passes(path: Path):
    message = json.loads(path.read_text(encoding="utf-8"))
    kind = path.parent.name
    if kind.endswith("Notification"):
        sender = "client" if kind == "CancelledNotification" else "server"
        validate_message(NEWEST, message, sender=sender)
    elif "method" in message:
        validate_message(NEWEST, message, sender="client")
    elif "error" in message:
        validate_message(NEWEST, message, sender="server")
    else:
        definition = schema_of(NEWEST).definitions[kind.removesuffix("ResultResponse") + "Request"]
        method = definition["properties"]["method"]["const"]
        if path.stem == LACKING:
            with pytest.raises(WireViolation, match="ttlMs"):
                validate_message(NEWEST, message, sender="server", request_method=method)
            message["result"] |= {"ttlMs": 0, "cacheScope": "private"}
        validate_message(NEWEST, message, sender="server", request_method=method)


def test_the_examples_contain_requests_notifications_results_and_errors():
    kinds = {key for path in MESSAGES for key in json.loads(path.read_text(encoding="utf-8"))}
    assert {"method", "result", "error"} <= kinds


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_ping_belongs_to_the_handshake_revisions_only(revision: str):
    message = {"jsonrpc": "2.0", "id": "a", "method": "ping"}
    if revision == NEWEST:
        with pytest.raises(WireViolation, match="sends no request named 'ping'"):
            validate_message(revision, message, sender="client")
    else:
        validate_message(revision, message, sender="client")
        validate_message(revision, message, sender="server")
        validate_message(revision, result({}), sender="client", request_method="ping")


def test_no_server_of_the_newest_revision_sends_requests():
    with pytest.raises(WireViolation, match="sends no request"):
        validate_message(NEWEST, request("roots/list"), sender="server")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"jsonrpc": "2.0", "id": 1}, "exactly one of"),
        ({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": ""}}, "exactly one of"),
        ({"jsonrpc": "1.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}, r"\$\.jsonrpc"),
        ({"jsonrpc": "2.0", "id": None, "method": "tools/list", "params": {"_meta": META}}, r"\$\.id"),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, "params"),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, r"\$\.method"),
        (request("tools/call"), "name"),
        (request("tools/call", name="x", arguments=[1]), r"\$\.params\.arguments"),
        (request("tools/call", name="x", arguments={"a": float("nan")}), "not JSON"),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, "sends no notification"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": ""}}, r"\$\.error\.code"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "no"}}, "data"),
    ],
)
def test_a_message_that_breaks_the_schema_is_refused_with_its_place(message: dict[str, Any], reason: str):
    with pytest.raises(WireViolation, match=reason):
        validate_message(NEWEST, message, sender="client")


@pytest.mark.parametrize(
    ("method", "value", "reason"),
    [
        ("tools/call", {"resultType": "complete"}, "content"),
        ("tools/call", {"content": []}, "resultType"),
        (
            "tools/call",
            {"resultType": "complete", "content": [{"type": "image", "data": "QQ=="}]},
            '"mimeType" is a required',
        ),
        ("tools/call", {"resultType": "input_required"}, "neither inputRequests nor requestState"),
        ("tools/list", {"resultType": "input_required", "requestState": "s"}, "may not ask for input"),
        ("tools/list", {"resultType": "complete", "tools": [], "cacheScope": "private"}, "ttlMs"),
        (
            "resources/list",
            {"resultType": "complete", "ttlMs": 0, "cacheScope": "shared", "resources": []},
            "cacheScope",
        ),
        ("initialize", {"resultType": "complete"}, "has no result"),
    ],
)
def test_a_result_is_held_against_the_method_of_its_request(method: str, value: dict[str, Any], reason: str):
    with pytest.raises(WireViolation, match=reason):
        validate_message(NEWEST, result(value), sender="server", request_method=method)


def test_bytes_in_a_message_must_be_base64():
    contents = [{"uri": "file:///a", "blob": "not base64!"}]
    value = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "contents": contents}
    with pytest.raises(WireViolation, match=r'\$\.result\.contents\[0\]\.blob: "not base64!" is not a "byte"'):
        validate_message(NEWEST, result(value), sender="server", request_method="resources/read")


def test_a_result_without_the_method_of_its_request_is_a_mistake_of_the_test():
    with pytest.raises(ValueError, match="request_method"):
        validate_message(NEWEST, result({}), sender="server")


def test_an_unknown_revision_names_those_that_exist():
    with pytest.raises(ValueError, match=NEWEST):
        validate_message("1999-01-01", result({}), sender="server", request_method="ping")


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_error_whose_request_could_not_be_read_passes(revision: str):
    error = {"code": -32700, "message": "Parse error"}
    message = {"jsonrpc": "2.0", "error": error}
    if "id" in _error_envelope(revision)["required"]:
        with pytest.raises(WireViolation, match=r"\$\.id"):
            validate_message(revision, message, sender="server")
        message["id"] = None
    validate_message(revision, message, sender="server")


def _error_envelope(revision: str) -> dict[str, Any]:
    definitions = schema_of(revision).definitions
    envelope: dict[str, Any] = definitions.get("JSONRPCErrorResponse") or definitions["JSONRPCError"]
    return envelope


def test_a_form_may_hold_a_fraction_although_the_generated_schema_says_integer():
    answer = {"action": "accept", "content": {"score": 95.5}}
    revision = REVISIONS[-2]
    published = RevisionSchema(json.loads((SPEC / revision / "schema.json").read_text(encoding="utf-8")))
    assert list(published.problems("ElicitResult", answer)) != []
    validate_message(revision, result(answer), sender="client", request_method="elicitation/create")


def test_every_repair_still_has_a_place_to_mend():
    for path, types in REPAIRS:
        mended = 0
        for revision in REVISIONS:
            node: Any = json.loads((SPEC / revision / "schema.json").read_text(encoding="utf-8"))
            node = node.get("$defs") or node["definitions"]
            for step in path:
                node = node.get(step) if isinstance(node, dict) else node[int(step)] if isinstance(node, list) else None
            mended += isinstance(node, dict) and node.get("type", types) != types
        assert mended, f"{'/'.join(path)} is no longer narrower than its source"
