"""Guarded tools for the Google Gen AI SDK."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcprelay.adapters.attachment import left_out
from mcprelay.adapters.offered import form, guarded_only, offered
from mcprelay.adapters.sdk import Sdk, check_reply
from mcprelay.relay.frame import Framed, Words
from mcprelay.relay.toolset import ToolSet
from mcprelay.wire.dialect import gemini

with Sdk("google-genai"):
    from google.genai import types

if TYPE_CHECKING:
    from mcprelay.relay.media import Media

_PARTS = frozenset({"image/jpeg", "image/png", "image/webp", "application/pdf"})


def tools(guarded: ToolSet) -> list[types.Tool]:
    """The tools, for `GenerateContentConfig(tools=…)`. None at all for an empty set, which the API would refuse."""
    declarations = [
        types.FunctionDeclaration(
            name=tool.name, description=tool.description, parameters_json_schema=form(tool, gemini).schema
        )
        for tool in offered(guarded)
    ]
    return [types.Tool(function_declarations=declarations)] if declarations else []


async def run(guarded: ToolSet, reply: types.GenerateContentResponse) -> list[types.Part]:
    """Call what the model asked for, all at once, and give the parts of the next user content.

    Never raises for what a server or a model does: that is said in the part's `error`.

    Raises:
        TypeError: One of them is something else.
    """
    guarded_only(guarded)
    check_reply(reply, "function_calls", takes="a GenerateContentResponse, the reply of generate_content(…)")
    return list(await asyncio.gather(*(_call(guarded, call) for call in reply.function_calls or ())))


async def _call(guarded: ToolSet, call: types.FunctionCall) -> types.Part:
    name, arguments = call.name or "", call.args or {}
    tool = guarded.get(name)
    framed = await guarded.run(name, arguments if tool is None else form(tool, gemini).restore(dict(arguments)))
    return result(framed, name, call.id)


def result(framed: Framed, name: str, call_id: str | None = None) -> types.Part:
    """One framed result as a part with a function response."""
    lines, blobs = [], []
    for part in framed.parts:
        if isinstance(part, Words):
            lines.append(part.text)
        elif part.mime_type in _PARTS:
            blobs.append(_blob(part))
        else:
            lines.append(left_out(part))
    key = "error" if framed.failed else "output"
    response = types.FunctionResponse(id=call_id, name=name, response={key: "\n".join(lines)}, parts=blobs or None)
    return types.Part(function_response=response)


def _blob(media: Media) -> types.FunctionResponsePart:
    inline = types.FunctionResponseBlob(mime_type=media.mime_type, data=media.data)
    return types.FunctionResponsePart(inline_data=inline)
