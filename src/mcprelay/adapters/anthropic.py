"""Guarded tools for the Anthropic SDK's Messages API."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mcprelay.adapters.attachment import PICTURES, base64_of, left_out
from mcprelay.adapters.offered import form, guarded_only, offered
from mcprelay.adapters.sdk import Sdk, check_reply
from mcprelay.relay.frame import Framed, Words
from mcprelay.relay.toolset import ToolSet
from mcprelay.wire.dialect import Formed, Rewritten, plain

with Sdk("anthropic"):
    from anthropic.types import (
        Base64ImageSourceParam,
        DocumentBlockParam,
        ImageBlockParam,
        Message,
        TextBlockParam,
        ToolParam,
        ToolResultBlockParam,
    )

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcprelay.relay.media import Media
    from mcprelay.wire.reference import Node
    from mcprelay.wire.schema import SchemaLimits

    Block = TextBlockParam | ImageBlockParam | DocumentBlockParam


def _dialect(schema: Node, *, limits: SchemaLimits, formed: Formed) -> Rewritten:
    return plain(schema, members="anthropic", limits=limits, formed=formed)


def tools(guarded: ToolSet) -> list[ToolParam]:
    """The tools, for `messages.create(tools=…)`."""
    return [
        ToolParam(name=tool.name, description=tool.description, input_schema=form(tool, _dialect).schema)
        for tool in offered(guarded)
    ]


async def run(guarded: ToolSet, reply: Message) -> list[ToolResultBlockParam]:
    """Call what the model asked for, all at once, and give the `tool_result` blocks for the next user message.

    Never raises for what a server or a model does: that is said in the block, with `is_error`.

    Raises:
        TypeError: One of them is something else.
    """
    guarded_only(guarded)
    check_reply(reply, "content", takes="a Message, the reply of messages.create(…)", lists=True)
    calls = [block for block in reply.content if block.type == "tool_use"]
    return list(await asyncio.gather(*(_call(guarded, call.id, call.name, call.input) for call in calls)))


async def _call(guarded: ToolSet, call_id: str, name: str, arguments: Any) -> ToolResultBlockParam:
    tool = guarded.get(name)
    given = form(tool, _dialect).restore(arguments) if tool is not None and isinstance(arguments, dict) else arguments
    return result(await guarded.run(name, given), call_id)


def result(framed: Framed, call_id: str) -> ToolResultBlockParam:
    """One framed result as a `tool_result` block."""
    content: Sequence[Block] = [_block(part) for part in framed.parts]
    return ToolResultBlockParam(type="tool_result", tool_use_id=call_id, content=content, is_error=framed.failed)


def _block(part: Words | Media) -> Block:
    if isinstance(part, Words):
        return TextBlockParam(type="text", text=part.text)
    if part.mime_type in PICTURES:
        source = Base64ImageSourceParam(type="base64", media_type=part.mime_type, data=base64_of(part))  # type: ignore[typeddict-item]
        return ImageBlockParam(type="image", source=source)
    if part.mime_type == "application/pdf":
        return DocumentBlockParam(
            type="document", source={"type": "base64", "media_type": "application/pdf", "data": base64_of(part)}
        )
    return TextBlockParam(type="text", text=left_out(part))
