"""Guarded tools for pydantic-ai."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai import BinaryContent, Tool, ToolReturn

from mcprelay.relay.frame import Framed, Words
from mcprelay.wire.dialect import plain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcprelay.relay import GuardedTool, ToolSet
    from mcprelay.wire.dialect import Rewritten


def tools(guarded: ToolSet) -> list[Tool[Any]]:
    """The tools, for `Agent(tools=…)`. They are validated here, against the pinned schema, and not by pydantic."""
    made: list[Tool[Any]] = []
    for tool in guarded.values():
        shown = plain(tool.input_schema)
        function = _function(tool, shown)
        made.append(
            Tool.from_schema(function, tool.name, tool.description, json_schema=dict(shown.schema), takes_ctx=False)
        )
    return made


def _function(tool: GuardedTool, shown: Rewritten) -> Callable[..., Awaitable[Any]]:
    async def call(**arguments: Any) -> Any:
        return result(await tool.run(shown.restore(arguments)))

    return call


def result(framed: Framed) -> Any:
    """One framed result: its text, or the text with the attachments as content. A failure is said in the text; the
    server's own answer goes along as metadata, which the model does not see.
    """
    media = [part for part in framed.parts if not isinstance(part, Words)]
    content = [BinaryContent(part.data, media_type=part.mime_type) for part in media]
    return ToolReturn(framed.text, content=content or None, metadata=framed.result)
