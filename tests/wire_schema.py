"""Validates one JSON-RPC message against the schema of its protocol revision.

Knows the published schemas (`tests/spec/<revision>/schema.json`) and how a message finds its definition in them: a
request or notification by its method and by who sends it, a result by the method of the request that it answers, an
error by its code. Does not know mcprelay: what it says about a message is independent of what our own types accept.

The schemas are kept as they were published. Three things are made up for, each for a reason:

* Generated JSON narrows `number` of the TypeScript source to `integer` where a union is meant (the values of a form,
  any JSON value), and forgets `null` in the latter (`REPAIRS`).
* A result that may be `input_required` is a union that accepts nearly everything; the member is chosen by
  `resultType` here.
* Older schemas demand an id in every error. JSON-RPC 2.0 section 5 has null where the id could not be read.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jsonschema_rs

Sender: TypeAlias = Literal["client", "server"]
Json: TypeAlias = dict[str, Any]

SPEC = Path(__file__).parent / "spec"
REVISIONS = tuple(sorted(path.name for path in SPEC.iterdir() if (path / "schema.json").is_file()))

REPAIRS: tuple[tuple[tuple[str, ...], list[str]], ...] = (
    (("ElicitResult", "properties", "content", "additionalProperties"), ["string", "number", "boolean"]),
    (("ElicitResult", "properties", "content", "additionalProperties", "anyOf", "1"), ["string", "number", "boolean"]),
    (("JSONValue", "anyOf", "2"), ["string", "number", "boolean", "null"]),
)
"""Places (below the definitions) whose `type` is wider in the TypeScript source than in the generated JSON."""


class WireViolation(AssertionError):
    """A message that its revision's schema refuses; the text lists every reason with its path."""


def validate_message(
    revision: str, message: Mapping[str, Any], *, sender: Sender, request_method: str | None = None
) -> None:
    """Pass a message that its revision allows, raise for one that it does not.

    Args:
        revision: The protocol revision that is spoken.
        message: The decoded JSON-RPC message: request, notification, result or error.
        sender: Who put it on the wire.
        request_method: For a result, the method of the request that it answers.

    Raises:
        WireViolation: The message is not what the revision's schema describes. Every reason is listed.
        ValueError: A result came without `request_method`, or the revision is not one that has a schema.
    """
    schema = schema_of(revision)
    problems = list(_problems(schema, message, sender, request_method))
    if problems:
        listing = "\n  ".join(problems)
        text = json.dumps(message, ensure_ascii=False, default=repr)
        raise WireViolation(f"not a valid {revision} message from the {sender}:\n  {listing}\nin {text[:2000]}")


def schema_of(revision: str) -> "RevisionSchema":
    """The compiled schema of a revision.

    Raises:
        ValueError: There is no schema of that revision.
    """
    if revision not in REVISIONS:
        raise ValueError(f"no schema of revision {revision!r}; there are {', '.join(REVISIONS)}")
    return RevisionSchema.load(revision)


class RevisionSchema:
    """One revision's definitions, each compiled on first use."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self.key = "$defs" if "$defs" in document else "definitions"
        self.definitions: Json = document[self.key]
        self._validators: dict[str, jsonschema_rs.Validator] = {}

    @staticmethod
    @cache
    def load(revision: str) -> "RevisionSchema":
        """Read a published schema and mend what its generator narrowed."""
        document = json.loads((SPEC / revision / "schema.json").read_text(encoding="utf-8"))
        schema = RevisionSchema(document)
        for path, types in REPAIRS:
            node = _walk(schema.definitions, path)
            if node is not None and "type" in node:
                node["type"] = types
        return schema

    def problems(self, definition: str, value: object) -> Iterator[str]:
        """Every reason why a value is not what a definition describes, each with its path."""
        if definition not in self._validators:
            self._validators[definition] = self._compile(definition)
        for found in self._validators[definition].iter_errors(value):
            for error in _closest(found):
                where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
                yield f"${where}: {error.message[:500]} ({definition})"

    def _compile(self, definition: str) -> jsonschema_rs.Validator:
        document = {
            "$schema": self._document["$schema"],
            self.key: self.definitions,
            "allOf": [{"$ref": f"#/{self.key}/{definition}"}],
        }
        return jsonschema_rs.validator_for(document, validate_formats=True, formats={"byte": _is_base64})

    def method(self, union: str, name: str) -> str | None:
        """The definition of a method among those that a union names, or None if the union has none of that name."""
        for definition in self._members(union):
            if self.definitions[definition]["properties"]["method"].get("const") == name:
                return definition
        return None

    def _members(self, union: str) -> Iterator[str]:
        node = self.definitions.get(union, {})
        if "properties" in node:
            yield union  # a union of one is written out
        for member in node.get("anyOf", ()):
            yield member["$ref"].rsplit("/", 1)[1]

    def result(self, request: str, *, input_required: bool) -> str:
        """The definition of the result of a request definition."""
        stem = request.removesuffix("Request")
        if input_required and self._may_ask(stem):
            return "InputRequiredResult"
        return f"{stem}Result" if f"{stem}Result" in self.definitions else "EmptyResult"

    def _may_ask(self, stem: str) -> bool:
        response = self.definitions.get(f"{stem}ResultResponse", {})
        return "InputRequiredResult" in json.dumps(response)

    def errors(self, code: object) -> Iterator[tuple[str, bool]]:
        """The definitions of an error code, and whether each describes a whole message rather than its `error`."""
        for name, definition in self.definitions.items():
            if name.endswith("Error") and _code(definition) == code:
                yield name, "error" in definition["properties"]


def _problems(
    schema: RevisionSchema, message: Mapping[str, Any], sender: Sender, request_method: str | None
) -> Iterator[str]:
    yield from _not_json(message)
    kinds = [kind for kind in ("method", "result", "error") if kind in message]
    if len(kinds) != 1:
        yield f"$: exactly one of method, result and error must be present, found {kinds or 'none'}"
    elif kinds == ["method"]:
        yield from _call_problems(schema, message, sender)
    elif kinds == ["result"]:
        yield from _result_problems(schema, message, sender, request_method)
    else:
        yield from _error_problems(schema, message)


def _not_json(message: Mapping[str, Any]) -> Iterator[str]:
    try:
        json.dumps(message, allow_nan=False)
    except (ValueError, TypeError) as error:
        yield f"$: not JSON: {error}"


def _call_problems(schema: RevisionSchema, message: Mapping[str, Any], sender: Sender) -> Iterator[str]:
    kind = "Request" if "id" in message else "Notification"
    method = message["method"]
    definition = schema.method(f"{sender.capitalize()}{kind}", method) if isinstance(method, str) else None
    if definition is None:
        yield f"$.method: a {sender} sends no {kind.lower()} named {method!r}"
        return
    yield from schema.problems(f"JSONRPC{kind}", message)
    yield from schema.problems(definition, message)


def _result_problems(
    schema: RevisionSchema, message: Mapping[str, Any], sender: Sender, request_method: str | None
) -> Iterator[str]:
    if request_method is None:
        raise ValueError("a result is validated by the method of its request: pass request_method=")
    asker = "Server" if sender == "client" else "Client"
    request = schema.method(f"{asker}Request", request_method)
    if request is None:
        yield f"$: the {asker.lower()} sends no request named {request_method!r}, so it has no result"
        return
    response = "JSONRPCResultResponse" if "JSONRPCResultResponse" in schema.definitions else "JSONRPCResponse"
    yield from schema.problems(response, message)
    result = message["result"]
    asks = isinstance(result, dict) and result.get("resultType") == "input_required"
    definition = schema.result(request, input_required=asks)
    yield from (f"$.result{problem[1:]}" for problem in schema.problems(definition, result))
    if asks and definition != "InputRequiredResult":
        yield f"$.result: {request_method} may not ask for input"
    if asks and not {"inputRequests", "requestState"} & result.keys():
        yield "$.result: neither inputRequests nor requestState is present"


def _error_problems(schema: RevisionSchema, message: Mapping[str, Any]) -> Iterator[str]:
    envelope = "JSONRPCErrorResponse" if "JSONRPCErrorResponse" in schema.definitions else "JSONRPCError"
    id_required = "id" in schema.definitions[envelope]["required"]
    checked = dict(message)
    if id_required and message.get("id") is None:
        if "id" not in message:
            yield "$.id: an error without a readable id has the id null"
        checked["id"] = 0
    yield from schema.problems(envelope, checked)
    error = message["error"]
    code = error.get("code") if isinstance(error, dict) else None
    for definition, whole in schema.errors(code):
        yield from schema.problems(definition, checked if whole else error)


def _code(definition: Json) -> int | None:
    """The constant `code` in an error's definition, which describes either the error or the message around it."""
    properties = definition.get("properties", {})
    if "code" in properties:
        return properties["code"].get("const")  # type: ignore[no-any-return]
    for part in properties.get("error", {}).get("allOf", ()):
        if "code" in part.get("properties", {}):
            return part["properties"]["code"].get("const")  # type: ignore[no-any-return]
    return None


def _closest(error: jsonschema_rs.ValidationError) -> list[jsonschema_rs.ValidationError]:
    """What a reader wants to know of an error: of a union, the reasons of the member that was probably meant."""
    if not isinstance(error.kind, jsonschema_rs.ValidationErrorKind.AnyOf):
        return [error]

    def strangeness(reasons: list[jsonschema_rs.ValidationError]) -> tuple[bool, bool, int]:
        kind = jsonschema_rs.ValidationErrorKind
        other = any(isinstance(reason.kind, kind.Constant) for reason in reasons)
        incomplete = any(isinstance(reason.kind, kind.Required) for reason in reasons)
        return other, incomplete, len(reasons)

    nearest = min(error.kind.context, key=strangeness)
    return [reason for nested in nearest for reason in _closest(nested)] or [error]


def _walk(node: Any, path: tuple[str, ...]) -> Json | None:
    for step in path:
        if isinstance(node, list) and step.isdigit() and int(step) < len(node):
            node = node[int(step)]
        elif isinstance(node, dict) and step in node:
            node = node[step]
        else:
            return None
    return node if isinstance(node, dict) else None


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error:
        return False
    return True
