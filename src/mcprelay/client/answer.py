"""A server's result, read: strictly where it can be, block by block where one of them is not known.

Knows the members that every result may have (`resultType`, questions and state) and the shapes of contents and lists.
Knows no wire and calls nobody. What cannot be read is a `ValueError` that says where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcprelay.types import ContentBlock, GetPromptResult, InputRequest, PromptMessage, Role, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.client.outcome import Block

COMPLETE = "complete"
INPUT_REQUIRED = "input_required"


class Asked(Struct, frozen=True):
    """A result that is a question. `state` is its JSON, to be sent back byte for byte; None when none came."""

    requests: dict[str, InputRequest]
    state: Raw | None


class _Head(Struct, rename="camel"):
    """What makes a result a question."""

    result_type: str | UnsetType = UNSET
    input_requests: dict[str, InputRequest] | None = None
    request_state: Raw | UnsetType = UNSET


class ToolAnswer(_Head, rename="camel"):
    """A result of `tools/call`. `raw` is all of it, as it came."""

    content: tuple[ContentBlock, ...] = ()
    structured: Raw | UnsetType = field(default=UNSET, name="structuredContent")
    is_error: bool = False
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    raw: Raw = Raw(b"{}")  # a member of this name, which a server may send, is written over


class _LenientTool(_Head, rename="camel"):
    content: tuple[Raw, ...] = ()
    structured: Raw | UnsetType = field(default=UNSET, name="structuredContent")
    is_error: bool = False
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class _LenientMessage(Struct):
    role: Role
    content: Raw


class _LenientPrompt(Struct):
    messages: tuple[_LenientMessage, ...]
    description: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class _Type(Struct, rename="camel"):
    result_type: Any | UnsetType = UNSET


class _Content(Struct):
    content: Any | UnsetType = UNSET


class _Kind(Struct):
    type: str


_decode_head = msgspec.json.Decoder(_Head).decode
_decode_tool = msgspec.json.Decoder(ToolAnswer).decode
_decode_lenient_tool = msgspec.json.Decoder(_LenientTool).decode
_decode_prompt = msgspec.json.Decoder(GetPromptResult).decode
_decode_lenient_prompt = msgspec.json.Decoder(_LenientPrompt).decode
_decode_block = msgspec.json.Decoder(ContentBlock).decode
_decode_type = msgspec.json.Decoder(_Type).decode
_decode_content = msgspec.json.Decoder(_Content).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode


def is_typed(result: Raw) -> bool:
    """Whether a result says of what kind it is, as every result of the stateless era does."""
    try:
        return _decode_type(result).result_type is not UNSET
    except msgspec.DecodeError:
        return False


def tool_answer(result: Raw) -> ToolAnswer | Asked:
    """Read a result of `tools/call`.

    Raises:
        ValueError: It is not one.
    """
    try:
        answer = _decode_tool(result)
    except msgspec.ValidationError:
        read = _decode_lenient_tool(result)
        answer = ToolAnswer(
            result_type=read.result_type,
            input_requests=read.input_requests,
            request_state=read.request_state,
            content=tuple(map(block, read.content)),  # type: ignore[arg-type]  # one that is not known is kept, too
            structured=read.structured,
            is_error=read.is_error,
            meta=read.meta,
        )
    if answer.result_type is not UNSET and answer.result_type != COMPLETE:
        return _asked(answer)
    if not answer.content and answer.structured is UNSET and not answer.is_error:
        _require_content(result)
    answer.raw = result
    return answer


def _require_content(result: Raw) -> None:
    """See that a tool's result has content, were it an empty list, where nothing else in it says what it came to.

    Every revision requires it (schema, `CallToolResult`). A value or a refusal without it can be told all the same.

    Raises:
        ValueError: It has none.
    """
    if _decode_content(result).content is UNSET:
        raise ValueError("it has neither `content`, which every result of a tool has, nor `structuredContent`")


def block(raw: Raw) -> Block:
    """One content block; an `Unknown` where it is of no kind that is known, or not what its kind should be."""
    try:
        return _decode_block(raw)
    except msgspec.DecodeError:
        return Unknown(_decode_kind(raw).type, raw.copy())


def prompt_answer(result: Raw) -> GetPromptResult | Asked:
    """Read a result of `prompts/get`.

    Raises:
        ValueError: It is not one.
    """
    asked = question(result)
    if asked is not None:
        return asked
    try:
        prompt = _decode_prompt(result)
    except msgspec.ValidationError:
        lenient = _decode_lenient_prompt(result)
        messages = tuple(PromptMessage(one.role, block(one.content)) for one in lenient.messages)  # type: ignore[arg-type]
        prompt = GetPromptResult(description=lenient.description, messages=messages, meta=lenient.meta)
    kept(prompt, result)
    return prompt


def reader(kind: type) -> Callable[[Raw], Any]:
    """A function that reads results of a type, or the question that came instead, and keeps their JSON in `.raw`."""
    decode: Callable[[Raw], Any] = msgspec.json.Decoder(kind).decode

    def read(result: Raw) -> Any:
        return question(result) or kept(decode(result), result)

    return read


def question(result: Raw) -> Asked | None:
    """The question that a result is, or None when it is complete. A result that says neither is complete (basic).

    Raises:
        ValueError: It is of a type that nobody agreed on (basic, "ResultType").
    """
    head = _decode_head(result)
    if head.result_type is UNSET or head.result_type == COMPLETE:
        return None
    return _asked(head)


def _asked(head: _Head) -> Asked:
    if head.result_type != INPUT_REQUIRED:
        raise ValueError(f"the result is of the type {head.result_type!r}, which is not known")
    state = None if head.request_state is UNSET else head.request_state
    if head.input_requests is None and state is None:
        raise ValueError("the result asks for input, and neither says what nor has a state")
    return Asked(head.input_requests or {}, state)


def kept(value: Any, raw: Raw) -> Any:
    """A value with the JSON that it was read from."""
    value.__dict__["raw"] = raw
    return value
