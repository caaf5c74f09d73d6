"""Steps that shape a value down: what the revision files are written in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from mcprelay.types import (
    Annotations,
    Audio,
    EmbeddedResource,
    GetPromptResult,
    PromptMessage,
    ReadResourceResult,
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

_AT_THE_ROOT = ("$schema", "$defs", "definitions")
_REFERENCES = ("$ref", "$dynamicRef")


def is_object_schema(schema: dict[str, Any]) -> bool:
    """Whether a schema says at its root that the value is an object."""
    return schema.get("type") == "object"


def wrapped_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of `{"result": value}`. What it refers to is still found.

    Definitions move to the new root; other local references are to what has moved down. A schema with an `$id` is a
    resource of its own, in which references mean what they meant.
    """
    if "$id" in schema:
        inner = {key: value for key, value in schema.items() if key != "$schema"}
        kept = {key: schema[key] for key in ("$schema",) if key in schema}
    else:
        inner = _moved({key: value for key, value in schema.items() if key not in _AT_THE_ROOT})
        kept = {key: _moved(schema[key]) for key in _AT_THE_ROOT if key in schema}
    return {"type": "object", "properties": {WRAPPED: inner}, "required": [WRAPPED], **kept}


def _moved(part: Any) -> Any:
    """A part of a schema whose root has become the property `result` of another."""
    if isinstance(part, list):
        return list(map(_moved, part))
    if not isinstance(part, dict):
        return part
    return {
        key: _reference(value) if key in _REFERENCES and isinstance(value, str) else _moved(value)
        for key, value in part.items()
    }


def _reference(target: str) -> str:
    local = target == "#" or target.startswith("#/")
    if not local or target.startswith(("#/$defs/", "#/definitions/")):
        return target
    return f"#/properties/{WRAPPED}{target[1:]}"


def object_output(tool: Tool) -> Tool:
    """A tool whose output schema is an object's."""
    if tool.output_schema is None or is_object_schema(tool.output_schema):
        return tool
    return replace(tool, output_schema=wrapped_schema(tool.output_schema))


def object_content(result: Any) -> Any:
    """A tool's result, or what a model is told of one, with structured content that is an object: `{"result": value}`
    for any other value.
    """
    value = result.structured_content
    if value is UNSET or isinstance(value, dict) or (isinstance(value, msgspec.Raw) and bytes(value)[:1] == b"{"):
        return result
    return wrapped_content(result)


def wrapped_content(result: Any) -> Any:
    """A result whose structured content is `{"result": value}`, whatever the value is."""
    value = result.structured_content
    if isinstance(value, msgspec.Raw):
        return replace(result, structured_content=msgspec.Raw(b'{"%b":%b}' % (WRAPPED.encode(), bytes(value))))
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


# --- what content says of itself


_NO_ANNOTATIONS = Annotations()


def undated(value: Any) -> Any:
    """A value whose annotations do not say when it changed."""
    annotations = getattr(value, "annotations", None)
    if not isinstance(annotations, Annotations) or annotations.last_modified is None:
        return value
    left = replace(annotations, last_modified=None)
    return replace(value, annotations=None if left == _NO_ANNOTATIONS else left)


def bare(block: Any) -> Any:
    """A content block, or a resource's contents, without `_meta` and without a date."""
    if isinstance(block, EmbeddedResource) and block.resource.meta is not None:
        block = replace(block, resource=replace(block.resource, meta=None))
    if getattr(block, "meta", None) is not None:
        block = replace(block, meta=None)
    return undated(block)


def bare_contents(result: ReadResourceResult) -> ReadResourceResult:
    """A resource whose contents have no `_meta`."""
    return replace(result, contents=tuple(map(bare, result.contents)))
