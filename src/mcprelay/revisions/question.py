"""Steps that shape down what a server asks and what a client answers: forms, and conversations with a model.

A part that only helps is dropped, such as the default of a field. What the question itself is made of is never dropped:
where a revision cannot say it, there is a `ConfigurationError` that names the part.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from mcprelay.errors import ConfigurationError
from mcprelay.revisions.shape import is_object_schema, replace, wrapped_schema
from mcprelay.types import (
    Audio,
    InputRequest,
    ListRootsResult,
    SamplingMessage,
    SamplingResult,
    ToolUse,
    ToolUseResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = Callable[[Any], Any]

ELICIT = "elicitation/create"
SAMPLE = "sampling/createMessage"


# --- forms and addresses


def with_elicitation_id(request: InputRequest) -> InputRequest:
    """A question by address that has an id which no other question has or had."""
    params: dict[str, Any] = request.params or {}
    if request.method != ELICIT or params.get("mode") != "url" or "elicitationId" in params:
        return request
    return replace(request, params={**params, "elicitationId": os.urandom(16).hex()})


def plain_form(request: InputRequest) -> InputRequest:
    """A form of single values: one of several choices has no titles but `enumNames`, only a yes or no has a default.

    Raises:
        ConfigurationError: A field takes several values, or the question is no form.
    """
    params: dict[str, Any] = request.params or {}
    if request.method != ELICIT:
        return request
    if params.get("mode", "form") != "form":
        raise ConfigurationError("this protocol revision has no questions by address, only forms")
    params = {key: value for key, value in params.items() if key != "mode"}
    schema = params.get("requestedSchema")
    if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        fields = {name: _plain_field(name, field) for name, field in schema["properties"].items()}
        params["requestedSchema"] = {**schema, "properties": fields}
    return replace(request, params=params)


def _plain_field(name: str, field: Any) -> Any:
    if not isinstance(field, dict):
        return field
    if field.get("type") == "array":
        raise ConfigurationError(
            f"the field {name!r} of the form takes several values, which forms of this protocol revision cannot: ask"
            " for one value, or with a yes or no for each"
        )
    if field.get("type") != "boolean":
        field = {key: value for key, value in field.items() if key != "default"}
    choices = field.get("oneOf")
    if not isinstance(choices, list):
        return field
    rest = {key: value for key, value in field.items() if key != "oneOf"}
    values = [choice["const"] for choice in choices]
    return {**rest, "enum": values, "enumNames": [choice.get("title", choice["const"]) for choice in choices]}


# --- conversations with a model


def sampled_by(step: Step, *, message_meta: bool = True) -> dict[type, Step]:
    """Steps that apply `step` to the content of every message, one block or several: asked, and answered.

    Args:
        step: From content to content.
        message_meta: Whether a message may have `_meta`.
    """

    def of_message(message: SamplingMessage) -> SamplingMessage:
        return replace(message, content=step(message.content), meta=message.meta if message_meta else None)

    def of_question(request: InputRequest) -> InputRequest:
        params: dict[str, Any] = request.params or {}
        if request.method != SAMPLE or "messages" not in params:
            return request
        try:
            messages = msgspec.convert(params["messages"], tuple[SamplingMessage, ...])
        except msgspec.ValidationError:  # passed on from elsewhere, in words that nobody here knows
            return request
        shaped = [
            said if (made := of_message(message)) == message else msgspec.to_builtins(made)
            for said, message in zip(params["messages"], messages, strict=True)
        ]
        return replace(request, params={**params, "messages": shaped})

    def of_answer(result: SamplingResult) -> SamplingResult:
        return replace(result, content=step(result.content))

    return {InputRequest: of_question, SamplingResult: of_answer}


def each(step: Step) -> Step:
    """A step of content that applies `step` to every block."""
    return lambda content: tuple(map(step, content)) if isinstance(content, tuple) else step(content)


def single(content: Any) -> Any:
    """Content that is one block, and neither a call of a tool nor its result.

    Raises:
        ConfigurationError: It is something else.
    """
    blocks = content if isinstance(content, tuple) else (content,)
    if len(blocks) != 1:
        raise ConfigurationError(
            f"a message to or from a model is one content block in this protocol revision, and not {len(blocks)}:"
            " send one message for each block"
        )
    if isinstance(blocks[0], (ToolUse, ToolUseResult)):
        raise ConfigurationError("a model uses no tools in this protocol revision: there is no tool_use or tool_result")
    return blocks[0]


def toolless(request: InputRequest) -> InputRequest:
    """A question to a model that has no tools. Without tools, how they are chosen says nothing.

    Raises:
        ConfigurationError: It has some.
    """
    params: dict[str, Any] = request.params or {}
    if request.method != SAMPLE:
        return request
    if params.get("tools"):
        raise ConfigurationError("a model uses no tools in this protocol revision: ask without tools=")
    return replace(request, params={key: value for key, value in params.items() if key not in ("tools", "toolChoice")})


def object_tools(request: InputRequest) -> InputRequest:
    """A question to a model whose tools have output schemas of objects."""
    params: dict[str, Any] = request.params or {}
    if request.method != SAMPLE or not params.get("tools"):
        return request
    return replace(request, params={**params, "tools": list(map(_object_tool, params["tools"]))})


def _object_tool(tool: Any) -> Any:
    schema = tool.get("outputSchema") if isinstance(tool, dict) else None
    if not isinstance(schema, dict) or is_object_schema(schema):
        return tool
    return {**tool, "outputSchema": wrapped_schema(schema)}


def no_sound(block: Any) -> Any:
    """A block that is no sound.

    Raises:
        ConfigurationError: It is.
    """
    if isinstance(block, Audio):
        raise ConfigurationError("this protocol revision has no audio in a conversation with a model: send text")
    return block


# --- roots


def bare_roots(result: ListRootsResult) -> ListRootsResult:
    """Roots without `_meta`."""
    return replace(result, roots=tuple(replace(root, meta=None) for root in result.roots))
