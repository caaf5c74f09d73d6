"""Guarded tools for the OpenAI Agents SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcprelay.adapters.attachment import PICTURES, data_url, file_name, left_out
from mcprelay.adapters.offered import form, offered
from mcprelay.adapters.sdk import Sdk
from mcprelay.relay.frame import Framed, Words
from mcprelay.relay.toolset import ToolSet

with Sdk("openai-agents"):
    from agents import FunctionTool, ToolOutputFileContent, ToolOutputImage, ToolOutputText

    from mcprelay.adapters.openai import dialect, restored

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcprelay.relay.guarded import GuardedTool
    from mcprelay.relay.media import Media
    from mcprelay.wire.dialect import Rewritten


def tools(guarded: ToolSet) -> list[FunctionTool]:
    """The tools, for `Agent(tools=…)`. A failure is said in the text: raising would end the run."""
    made = []
    for tool in offered(guarded):
        shown, strict = form(tool, dialect)
        made.append(
            FunctionTool(
                name=tool.name,
                description=tool.description,
                params_json_schema=shown.schema,
                on_invoke_tool=_invoke(tool, shown),
                strict_json_schema=strict,
            )
        )
    return made


def _invoke(tool: GuardedTool, shown: Rewritten) -> Callable[[Any, str], Awaitable[Any]]:
    async def call(_context: Any, arguments: str) -> Any:
        return result(await tool.run(restored(shown.restore, arguments)))

    return call


def result(framed: Framed) -> Any:
    """One framed result: its text, or a list of outputs where there are attachments."""
    if all(isinstance(part, Words) for part in framed.parts):
        return framed.text
    return [_output(part) for part in framed.parts]


def _output(part: Words | Media) -> Any:
    if isinstance(part, Words):
        return ToolOutputText(text=part.text)
    if part.mime_type in PICTURES:
        return ToolOutputImage(image_url=data_url(part))
    if part.mime_type == "application/pdf":
        return ToolOutputFileContent(file_data=data_url(part), filename=file_name(part))
    return ToolOutputText(text=left_out(part))
