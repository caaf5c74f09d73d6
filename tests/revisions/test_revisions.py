"""The table of revisions: negotiation, shapes, and that a new one is one row."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec import UNSET, Raw

from mcprelay import revisions
from mcprelay.revisions import ALL, NEWEST, Era, Fault, Feature
from mcprelay.types import (
    Audio,
    ClientCapabilities,
    GetPromptResult,
    Icon,
    Implementation,
    InputRequest,
    Prompt,
    PromptArgument,
    PromptMessage,
    ResourceLink,
    Text,
    Tool,
    ToolAnnotations,
    ToolResult,
)
from mcprelay.wire.params import ProgressParams

OLDEST, MARCH, JUNE, NOVEMBER, NEW = (ALL[name] for name in reversed(ALL))

FULL_TOOL = Tool(
    name="t",
    title="T",
    input_schema={"type": "object"},
    output_schema={"type": "array", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"type": "string"}}},
    annotations=ToolAnnotations(read_only_hint=True),
    icons=(Icon(src="https://x.example/i.png"),),
)


def test_the_newest_comes_first_and_every_name_finds_its_revision() -> None:
    assert next(iter(ALL.values())) is NEWEST
    assert NEWEST.era is Era.STATELESS
    assert all(revisions.find(name) is revision for name, revision in ALL.items())
    assert revisions.find("1999-01-01") is None
    assert revisions.find(None) is None


def test_a_handshake_is_answered_with_what_was_proposed_or_else_with_the_newest_of_that_era() -> None:
    assert revisions.negotiate(JUNE.name) is JUNE
    assert revisions.negotiate("1999-01-01") is NOVEMBER
    assert revisions.negotiate(NEW.name) is NOVEMBER
    assert revisions.negotiate(NOVEMBER.name, [OLDEST, NEW]) is OLDEST


def test_the_newest_shape_is_left_alone() -> None:
    assert NEW.shape(FULL_TOOL) is FULL_TOOL


def test_where_structured_content_must_be_an_object_other_values_are_wrapped_in_value_and_schema() -> None:
    shaped = NOVEMBER.shape(FULL_TOOL)

    assert shaped.output_schema == {
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/x"}}},
        "required": ["result"],
        "$defs": {"x": {"type": "string"}},
    }
    for value in (3, [1], None, Raw(b"[1]")):
        result = NOVEMBER.shape(ToolResult(content=(), structured_content=value))
        wanted = json.loads(bytes(value)) if isinstance(value, Raw) else value
        assert json.loads(msgspec.json.encode(result.structured_content)) == {"result": wanted}


@pytest.mark.parametrize("value", [{"a": 1}, Raw(b'{"a":1}'), UNSET])
def test_an_object_and_nothing_are_not_wrapped(value: object) -> None:
    result = ToolResult(content=(), structured_content=value)

    assert NOVEMBER.shape(result) is result


def test_each_revision_drops_what_it_lacks() -> None:
    assert NOVEMBER.shape(FULL_TOOL).icons is not None
    assert JUNE.shape(FULL_TOOL).icons is None
    assert JUNE.shape(FULL_TOOL).title == "T"
    march = MARCH.shape(FULL_TOOL)
    assert (march.title, march.output_schema) == (None, None)
    assert march.annotations is not None
    assert OLDEST.shape(FULL_TOOL).annotations is None


def test_implementations_and_prompts_are_shaped_inside() -> None:
    info = Implementation("n", "1", title="N", description="d", website_url="https://x.example")
    assert JUNE.shape(info) == Implementation("n", "1", title="N")
    assert MARCH.shape(info) == Implementation("n", "1")
    prompt = Prompt(name="p", title="P", arguments=(PromptArgument(name="a", title="A", required=True),))
    assert MARCH.shape(prompt) == Prompt(name="p", arguments=(PromptArgument(name="a", required=True),))
    assert MARCH.shape(Prompt(name="p")) == Prompt(name="p")


def test_content_that_a_revision_lacks_is_said_in_text_and_never_dropped() -> None:
    link = ResourceLink(uri="file:///x", name="x")
    sound = Audio(b"12345", "audio/wav")
    result = ToolResult(content=(link, sound, Text("t")), structured_content={"a": 1})

    assert JUNE.shape(result) == result
    march = MARCH.shape(result)
    assert march == ToolResult(content=(Text("x: file:///x"), sound, Text("t")))
    oldest = OLDEST.shape(result)
    assert "audio/wav" in oldest.content[1].text
    prompt = GetPromptResult(messages=(PromptMessage("user", link), PromptMessage.assistant("t")))
    assert MARCH.shape(prompt).messages[0].content == Text("x: file:///x")
    assert OLDEST.shape(ProgressParams(progress_token=1, progress=1.0, message="m")).message is None


@pytest.mark.clause("handshake.elicitation.url-id")
def test_an_elicitation_by_address_has_an_id_only_where_the_revision_demands_one() -> None:
    request = InputRequest("elicitation/create", {"mode": "url", "message": "m", "url": "https://x.example"})

    assert NEW.shape(request) is request
    assert NOVEMBER.shape(request).params["elicitationId"]
    assert NOVEMBER.shape(once := NOVEMBER.shape(request)) == once
    assert NOVEMBER.shape(request) != once, "each question has an id of its own"
    form = InputRequest("elicitation/create", {"message": "m"})
    assert NOVEMBER.shape(form) is form


def test_the_code_of_a_missing_resource_is_the_revisions_own() -> None:
    assert NEW.code(Fault.RESOURCE_NOT_FOUND) == -32602
    assert all(revision.code(Fault.RESOURCE_NOT_FOUND) == -32002 for revision in (NOVEMBER, JUNE, MARCH, OLDEST))


def test_methods_belong_to_a_revision_and_to_a_sender() -> None:
    assert NEW.method("server/discover") is not None
    assert NEW.method("initialize") is None
    assert NOVEMBER.method("initialize") is not None
    assert NOVEMBER.method("subscriptions/listen") is None
    assert NOVEMBER.method("roots/list") is None
    assert NOVEMBER.method("roots/list", "server") is not None
    assert MARCH.method("elicitation/create", "server") is None


def test_only_one_revision_has_batches() -> None:
    assert [revision.name for revision in ALL.values() if revision.has(Feature.BATCH)] == [MARCH.name]


def test_a_new_revision_is_one_row_of_differences() -> None:
    made_up = NEW.but("2099-01-01", drop=("completion/complete",), shapes={Text: lambda text: Text(text.text.upper())})

    assert made_up.method("completion/complete") is None
    assert made_up.method("tools/call") is NEW.method("tools/call")
    assert made_up.shape(Text("a")) == Text("A")
    assert made_up.has(Feature.MRTR)


def test_a_schema_that_is_a_resource_of_its_own_keeps_what_its_references_mean() -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://x.example/s", "type": "array"}
    tool = NOVEMBER.shape(Tool(name="t", input_schema={"type": "object"}, output_schema=schema))

    assert tool.output_schema == {
        "type": "object",
        "properties": {"result": {"$id": "https://x.example/s", "type": "array"}},
        "required": ["result"],
        "$schema": "https://json-schema.org/draft/2020-12/schema",
    }


def test_links_in_content_lose_the_icons_that_a_revision_lacks() -> None:
    link = ResourceLink(uri="file:///x", name="x", icons=(Icon(src="https://x.example/i.png"),))
    shaped = JUNE.shape(ToolResult(content=(link, Text("t"))))

    assert shaped.content == (ResourceLink(uri="file:///x", name="x"), Text("t"))


def test_an_output_schema_that_refers_to_its_own_parts_still_does_when_it_is_wrapped() -> None:
    schema = {
        "type": "array",
        "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/items"}, {"$ref": "#/$defs/x"}, {"$ref": "other#/a"}]},
        "$defs": {"x": {"type": "string"}},
    }
    shaped = NOVEMBER.shape(Tool(name="t", input_schema={"type": "object"}, output_schema=schema))

    assert shaped.output_schema["properties"]["result"]["items"]["anyOf"] == [
        {"$ref": "#/properties/result"},
        {"$ref": "#/properties/result/items"},
        {"$ref": "#/$defs/x"},
        {"$ref": "other#/a"},
    ]
    whole = Tool(name="t", input_schema={"type": "object"}, output_schema={"type": "object"})
    assert NOVEMBER.shape(whole).output_schema == {"type": "object"}


@pytest.mark.parametrize(
    ("declared", "shaped"), [({}, {}), ({"form": {}}, {}), ({"form": {}, "url": {}}, {}), ({"url": {}}, None)]
)
def test_only_forms_can_be_declared_where_there_are_only_forms(declared: object, shaped: object) -> None:
    capabilities = ClientCapabilities(elicitation=declared, sampling={"tools": {}})

    assert JUNE.shape(capabilities).elicitation == shaped
    assert JUNE.shape(capabilities).sampling == {}
    assert JUNE.shape(ClientCapabilities()) == ClientCapabilities()
