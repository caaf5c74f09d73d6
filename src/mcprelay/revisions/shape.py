"""Steps that shape a value down: what the revision files are written in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from mcprelay.types import (
    Audio,
    GetPromptResult,
    PromptMessage,
    ResourceLink,
    Text,
    Tool,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

replace = msgspec.structs.replace


def without(*fields: str) -> Callable[[Any], Any]:
    """A step that leaves fields out."""

    def step(value: Any) -> Any:
        present = {name: None for name in fields if getattr(value, name) is not None}
        return replace(value, **present) if present else value

    return step


def content_by(step: Callable[[Any], Any]) -> dict[type, Callable[[Any], Any]]:
    """Steps that apply `step` to every content block of a result."""

    def of_tool(result: ToolResult) -> ToolResult:
        return replace(result, content=tuple(map(step, result.content)))

    def of_prompt(result: GetPromptResult) -> GetPromptResult:
        messages = (PromptMessage(message.role, step(message.content)) for message in result.messages)
        return replace(result, messages=tuple(messages))

    return {ToolResult: of_tool, GetPromptResult: of_prompt}


WRAPPED = "result"
"""Where structured content must be an object, another value goes out as the only member, under this name."""


def is_object_schema(schema: dict[str, Any]) -> bool:
    """Whether a schema says at its root that the value is an object."""
    return schema.get("type") == "object"


def wrapped_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of `{"result": value}`. Definitions move to the new root, where local references still find them."""
    inner = {key: value for key, value in schema.items() if key not in ("$schema", "$defs")}
    outer: dict[str, Any] = {"type": "object", "properties": {WRAPPED: inner}, "required": [WRAPPED]}
    return outer | {key: schema[key] for key in ("$schema", "$defs") if key in schema}


def object_output(tool: Tool) -> Tool:
    """A tool whose output schema is an object's."""
    if tool.output_schema is None or is_object_schema(tool.output_schema):
        return tool
    return replace(tool, output_schema=wrapped_schema(tool.output_schema))


def object_content(result: ToolResult) -> ToolResult:
    """A result whose structured content is an object: `{"result": value}` for any other value."""
    value = result.structured_content
    if value is UNSET or isinstance(value, dict):
        return result
    if isinstance(value, msgspec.Raw):
        text = bytes(value)
        if text.startswith(b"{"):
            return result
        return replace(result, structured_content=msgspec.Raw(b'{"%b":%b}' % (WRAPPED.encode(), text)))
    return replace(result, structured_content={WRAPPED: value})


def unstructured(result: ToolResult) -> ToolResult:
    """A result without structured content (its text mirror stands beside it)."""
    return result if result.structured_content is UNSET else replace(result, structured_content=UNSET)


def link_as_text(block: Any) -> Any:
    """A resource link, said in text."""
    return Text(f"{block.title or block.name}: {block.uri}") if isinstance(block, ResourceLink) else block


def audio_as_text(block: Any) -> Any:
    """Audio, said in text."""
    if not isinstance(block, Audio):
        return block
    return Text(f"[audio, {block.mime_type}, {len(block.data)} bytes: this protocol revision cannot carry it]")
