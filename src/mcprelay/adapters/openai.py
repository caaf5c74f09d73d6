"""Guarded tools for the OpenAI SDK's Responses API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from mcprelay.adapters.attachment import PICTURES, data_url, file_name, left_out
from mcprelay.adapters.offered import form, guarded_only, offered
from mcprelay.adapters.sdk import Sdk, check_reply
from mcprelay.relay.frame import Framed, Words
from mcprelay.relay.toolset import ToolSet
from mcprelay.wire.dialect import Formed, Rewritten, openai_strict, plain
from mcprelay.wire.reference import Node
from mcprelay.wire.schema import SchemaLimits

with Sdk("openai"):
    from openai.types.responses import FunctionToolParam, Response
    from openai.types.responses.response_input_item_param import FunctionCallOutput

if TYPE_CHECKING:
    from mcprelay.relay.media import Media


def dialect(schema: Node, *, limits: SchemaLimits, formed: Formed) -> tuple[Rewritten, bool]:
    """The schema that the model sees, and whether OpenAI may enforce it: only where the meaning stays the same."""
    strict = openai_strict(schema, limits=limits, formed=formed)
    return (plain(schema, limits=limits, formed=formed), False) if strict is None else (strict, True)


def tools(guarded: ToolSet) -> list[FunctionToolParam]:
    """The tools, for `responses.create(tools=…)`."""
    made = []
    for tool in offered(guarded):
        shown, strict = form(tool, dialect)
        made.append(
            FunctionToolParam(
                type="function",
                name=tool.name,
                description=tool.description,
                parameters=shown.schema,
                strict=strict,
            )
        )
    return made


async def run(guarded: ToolSet, reply: Response) -> list[FunctionCallOutput]:
    """Call what the model asked for, all at once, and give the items for the next input.

    Never raises for what a server or a model does. There is no error flag in this API: the text says it.

    Raises:
        TypeError: One of them is something else.
    """
    guarded_only(guarded)
    check_reply(reply, "output", takes="a Response, the reply of responses.create(…)", lists=True)
    calls = [item for item in reply.output if item.type == "function_call"]
    framed = await asyncio.gather(*(call(guarded, item.name, item.arguments) for item in calls))
    return [result(one, item.call_id) for one, item in zip(framed, calls, strict=True)]


async def call(guarded: ToolSet, name: str, arguments: str) -> Framed:
    """Call one tool with the model's JSON. What is no JSON object goes on as it is, and is refused with a reason."""
    tool = guarded.get(name)
    return await guarded.run(name, arguments if tool is None else restored(form(tool, dialect)[0].restore, arguments))


def restored(restore: Callable[[dict[str, Any]], dict[str, Any]], arguments: str) -> Any:
    """The arguments for the original schema."""
    try:
        given = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return arguments
    return restore(given) if isinstance(given, dict) else arguments


def result(framed: Framed, call_id: str) -> FunctionCallOutput:
    """One framed result as a `function_call_output` item."""
    output: Any = (
        framed.text if all(isinstance(part, Words) for part in framed.parts) else list(map(_part, framed.parts))
    )
    return FunctionCallOutput(type="function_call_output", call_id=call_id, output=output)


def _part(part: Words | Media) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"type": "input_text", "text": part.text}
    if part.mime_type in PICTURES:
        return {"type": "input_image", "detail": "auto", "image_url": data_url(part)}
    if part.mime_type == "application/pdf":
        return {"type": "input_file", "filename": file_name(part), "file_data": data_url(part)}
    return {"type": "input_text", "text": left_out(part)}
