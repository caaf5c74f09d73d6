"""Questions and answers in the shape of each revision: what cannot be said is refused by name, and nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from mcprelay.errors import ConfigurationError
from mcprelay.revisions import ALL, Revision
from mcprelay.types import (
    Annotations,
    Audio,
    EmbeddedResource,
    GetPromptResult,
    InputRequest,
    ListRootsResult,
    PromptMessage,
    ReadResourceResult,
    Resource,
    ResourceContents,
    ResourceTemplate,
    Root,
    SamplingMessage,
    SamplingResult,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    ToolUseResult,
)
from tests.wire_schema import schema_of, validate_message

OLDEST, MARCH, JUNE, NOVEMBER, NEW = (ALL[name] for name in reversed(ALL))
HANDSHAKE = (OLDEST, MARCH, JUNE, NOVEMBER)
SINGLE = (OLDEST, MARCH, JUNE)
PLAIN = (OLDEST, MARCH)

DATED = Annotations(audience=("user",), last_modified="2025-01-01T00:00:00Z")
MARKED = Text("t", DATED, {"example.com/kind": 1})


def asked(content: Any, **params: Any) -> InputRequest:
    """A question to a model."""
    messages = [msgspec.to_builtins(SamplingMessage("user", content))]
    return InputRequest("sampling/createMessage", {"messages": messages, "maxTokens": 1, **params})


def form(**fields: Mapping[str, Any]) -> InputRequest:
    """A question to a person."""
    schema = {"type": "object", "properties": fields}
    return InputRequest("elicitation/create", {"mode": "form", "message": "m", "requestedSchema": schema})


def fields_of(revision: Revision, request: InputRequest) -> dict[str, Any]:
    """The fields of a form, as the revision has it."""
    shaped = revision.shape(request)
    fits(revision, shaped)
    return shaped.params["requestedSchema"]["properties"]


def fits(revision: Revision, request: InputRequest) -> None:
    """A question is what the schema of the revision describes."""
    message = {"jsonrpc": "2.0", "id": 1, "method": request.method, "params": request.params}
    validate_message(revision.name, message, sender="server")


def answered(revision: Revision, result: Any, method: str) -> Any:
    """An answer as the revision has it, which its schema allows."""
    shaped = revision.shape(result)
    message = {"jsonrpc": "2.0", "id": 1, "result": msgspec.to_builtins(shaped)}
    validate_message(revision.name, message, sender="client", request_method=method)
    return shaped


# --- forms


LIST = {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}


def test_a_field_of_several_values_is_refused_by_name_where_forms_have_none() -> None:
    assert fields_of(NOVEMBER, form(tags=LIST)) == {"tags": LIST}
    with pytest.raises(ConfigurationError, match="'tags' of the form takes several values"):
        JUNE.shape(form(tags=LIST))


def test_defaults_are_dropped_where_only_a_yes_or_no_has_one() -> None:
    fields = {
        "name": {"type": "string", "default": "n"},
        "size": {"type": "integer", "default": 3},
        "kind": {"type": "string", "enum": ["a"], "default": "a"},
        "sure": {"type": "boolean", "default": True},
    }
    assert fields_of(NOVEMBER, form(**fields)) == fields
    june = fields_of(JUNE, form(**fields))
    assert {name for name, field in june.items() if "default" in field} == {"sure"}


def test_titled_choices_are_an_enumeration_with_names_where_there_is_no_other_way() -> None:
    choices = [{"const": "a", "title": "An A"}, {"const": "b", "title": "A B"}]
    request = form(kind={"type": "string", "oneOf": choices, "title": "Kind"})
    assert fields_of(NOVEMBER, request)["kind"]["oneOf"] == choices
    assert fields_of(JUNE, request)["kind"] == {
        "type": "string",
        "enum": ["a", "b"],
        "enumNames": ["An A", "A B"],
        "title": "Kind",
    }


def test_a_form_says_its_mode_only_where_there_are_modes_and_an_address_is_refused_where_there_are_none() -> None:
    assert "mode" in NOVEMBER.shape(form()).params
    assert "mode" not in JUNE.shape(form()).params
    address = InputRequest("elicitation/create", {"mode": "url", "message": "m", "url": "https://x.example"})
    with pytest.raises(ConfigurationError, match="no questions by address"):
        JUNE.shape(address)


def test_what_is_no_form_of_ours_passes() -> None:
    odd = InputRequest("elicitation/create", {"message": "m", "requestedSchema": {"properties": {"a": True}}})
    assert JUNE.shape(odd).params["requestedSchema"] == {"properties": {"a": True}}
    assert JUNE.shape(InputRequest("elicitation/create")).params == {}
    assert JUNE.shape(InputRequest("roots/list")) == InputRequest("roots/list")


# --- conversations with a model


@pytest.mark.parametrize("revision", SINGLE, ids=lambda revision: revision.name)
@pytest.mark.parametrize(
    ("content", "why"),
    [
        ((Text("a"), Text("b")), "one content block in this protocol revision, and not 2"),
        ((), "one content block in this protocol revision, and not 0"),
        (ToolUse(id="1", name="n", input={}), "uses no tools"),
        (ToolUseResult(tool_use_id="1", content=(Text("t"),)), "uses no tools"),
    ],
)
def test_a_message_of_what_older_revisions_lack_is_refused_in_question_and_answer(
    revision: Revision, content: Any, why: str
) -> None:
    fits(NOVEMBER, NOVEMBER.shape(asked(content)))
    with pytest.raises(ConfigurationError, match=why):
        revision.shape(asked(content))
    with pytest.raises(ConfigurationError, match=why):
        revision.shape(SamplingResult(role="assistant", content=content, model="m"))


@pytest.mark.parametrize("revision", SINGLE, ids=lambda revision: revision.name)
def test_a_message_of_one_block_is_that_block(revision: Revision) -> None:
    shaped = revision.shape(asked((Text("a"),)))
    fits(revision, shaped)
    assert shaped.params["messages"][0]["content"] == {"type": "text", "text": "a"}
    result = SamplingResult(role="assistant", content=(Text("a"),), model="m")
    assert answered(revision, result, "sampling/createMessage").content == Text("a")


@pytest.mark.parametrize("revision", SINGLE, ids=lambda revision: revision.name)
def test_tools_of_a_model_are_refused_and_a_choice_of_none_is_dropped(revision: Revision) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    with pytest.raises(ConfigurationError, match="ask without tools="):
        revision.shape(asked(Text("a"), tools=[tool]))
    shaped = revision.shape(asked(Text("a"), toolChoice={"mode": "auto"}))
    assert "toolChoice" not in shaped.params


def test_sound_is_refused_in_a_conversation_where_there_is_none() -> None:
    sound = Audio(b"x", "audio/wav")
    for revision in (MARCH, JUNE, NOVEMBER):
        fits(revision, revision.shape(asked(sound)))
    with pytest.raises(ConfigurationError, match="no audio"):
        OLDEST.shape(asked(sound))
    with pytest.raises(ConfigurationError, match="no audio"):
        OLDEST.shape(SamplingResult(role="assistant", content=sound, model="m"))


def test_what_a_tool_of_the_model_gives_is_an_object_where_it_must_be() -> None:
    used = ToolUseResult(tool_use_id="1", content=(), structured_content=3)
    tool = msgspec.to_builtins(Tool(name="t", input_schema={"type": "object"}, output_schema={"type": "integer"}))
    shaped = NOVEMBER.shape(asked((used,), tools=[tool]))
    fits(NOVEMBER, shaped)
    assert shaped.params["messages"][0]["content"][0]["structuredContent"] == {"result": 3}
    assert shaped.params["tools"][0]["outputSchema"]["required"] == ["result"]


def test_messages_that_nobody_here_can_read_pass_as_they_are() -> None:
    odd = InputRequest("sampling/createMessage", {"messages": [{"role": "user", "content": {"type": "new"}}]})
    assert OLDEST.shape(odd).params == odd.params


@pytest.mark.parametrize("revision", PLAIN, ids=lambda revision: revision.name)
def test_a_conversation_has_no_meta_and_no_dates_where_content_has_none(revision: Revision) -> None:
    message = revision.shape(asked(MARKED)).params["messages"][0]
    assert message["content"] == {"type": "text", "text": "t", "annotations": {"audience": ("user",)}}
    result = SamplingResult(role="assistant", content=MARKED, model="m")
    assert answered(revision, result, "sampling/createMessage").content == Text("t", Annotations(audience=("user",)))
    assert JUNE.shape(result).content == MARKED


# --- roots, and content that is told


def test_roots_have_no_meta_where_there_is_none() -> None:
    result = ListRootsResult(roots=(Root("file:///x", "x", {"a": 1}),))
    for revision in PLAIN:
        assert answered(revision, result, "roots/list").roots == (Root("file:///x", "x"),)
    assert answered(JUNE, result, "roots/list") == result


@pytest.mark.parametrize("revision", PLAIN, ids=lambda revision: revision.name)
def test_content_has_no_meta_and_no_dates_where_the_revision_lacks_them(revision: Revision) -> None:
    inside = ResourceContents(uri="r://x", text="t", meta={"a": 1})
    only_dated = Text("d", Annotations(last_modified="2025-01-01T00:00:00Z"))
    parcel = EmbeddedResource(inside, DATED, {"a": 1})
    plain = ResourceContents(uri="r://x", text="t")
    audience = Annotations(audience=("user",))
    bare = (Text("t", audience), Text("d"), EmbeddedResource(plain, audience))

    assert revision.shape(ToolResult(content=(MARKED, only_dated, parcel))).content == bare
    messages = tuple(PromptMessage("user", block) for block in (MARKED, only_dated, parcel))
    assert tuple(m.content for m in revision.shape(GetPromptResult(messages=messages)).messages) == bare
    assert revision.shape(ReadResourceResult(contents=(inside,))).contents == (plain,)
    resource = Resource(uri="r://x", name="x", annotations=DATED)
    template = ResourceTemplate(uri_template="r://{x}", name="x", annotations=DATED)
    assert revision.shape(resource).annotations == revision.shape(template).annotations == audience


def test_every_revision_of_the_handshake_era_has_a_schema_to_hold_this_against() -> None:
    assert all(schema_of(revision.name) for revision in HANDSHAKE)
