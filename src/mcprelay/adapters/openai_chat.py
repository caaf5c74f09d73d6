"""Guarded tools for the OpenAI SDK's Chat Completions API."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mcprelay.adapters.attachment import PICTURES, data_url, left_out
from mcprelay.adapters.offered import form, guarded_only, offered
from mcprelay.adapters.openai import call, dialect
from mcprelay.adapters.sdk import Sdk, check_reply
from mcprelay.relay.frame import Framed, Words
from mcprelay.relay.toolset import ToolSet

with Sdk("openai"):
    from openai.types.chat import (
        ChatCompletionFunctionToolParam,
        ChatCompletionMessage,
        ChatCompletionMessageParam,
        ChatCompletionToolMessageParam,
        ChatCompletionUserMessageParam,
    )

if TYPE_CHECKING:
    from mcprelay.relay.media import Media


def tools(guarded: ToolSet) -> list[ChatCompletionFunctionToolParam]:
    """The tools, for `chat.completions.create(tools=…)`."""
    made = []
    for tool in offered(guarded):
        shown, strict = form(tool, dialect)
        function: Any = {
            "name": tool.name,
            "description": tool.description,
            "parameters": shown.schema,
            "strict": strict,
        }
        made.append(ChatCompletionFunctionToolParam(type="function", function=function))
    return made


async def run(guarded: ToolSet, reply: ChatCompletionMessage) -> list[ChatCompletionMessageParam]:
    """Call what the model asked for, all at once, and give the messages to append.

    A tool message holds text only, so pictures follow in one user message that says which call each belongs to. Never
    raises for what a server or a model does. There is no error flag in this API: the text says it.

    Raises:
        TypeError: One of them is something else.
    """
    guarded_only(guarded)
    check_reply(reply, "tool_calls", takes="a ChatCompletionMessage, completion.choices[0].message")
    calls = [item for item in reply.tool_calls or () if item.type == "function"]
    framed = await asyncio.gather(*(call(guarded, item.function.name, item.function.arguments) for item in calls))
    messages: list[ChatCompletionMessageParam] = []
    pictures: list[Any] = []
    for one, item in zip(framed, calls, strict=True):
        messages.append(result(one, item.id))
        for media in _pictures(one):
            pictures.append({"type": "text", "text": f"[A picture of the tool call {item.id}:]"})
            pictures.append({"type": "image_url", "image_url": {"url": data_url(media)}})
    if pictures:
        messages.append(ChatCompletionUserMessageParam(role="user", content=pictures))
    return messages


def result(framed: Framed, call_id: str) -> ChatCompletionToolMessageParam:
    """The text of one framed result as a tool message. What cannot follow either is said in it."""
    lines = [part.text if isinstance(part, Words) else _mention(part) for part in framed.parts]
    return ChatCompletionToolMessageParam(role="tool", tool_call_id=call_id, content="\n".join(lines))


def _mention(media: Media) -> str:
    return "[A picture follows in the next message.]" if media.mime_type in PICTURES else left_out(media)


def _pictures(framed: Framed) -> list[Media]:
    return [part for part in framed.parts if not isinstance(part, Words) and part.mime_type in PICTURES]
