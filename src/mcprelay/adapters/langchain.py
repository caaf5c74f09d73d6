"""Guarded tools for LangChain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.tools import StructuredTool, ToolException

from mcprelay.adapters.attachment import base64_of
from mcprelay.relay.frame import Framed, Words
from mcprelay.wire.dialect import plain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcprelay.relay import GuardedTool, ToolSet
    from mcprelay.relay.media import Media
    from mcprelay.wire.dialect import Rewritten


def tools(guarded: ToolSet) -> list[StructuredTool]:
    """The tools, for `model.bind_tools(…)` and agents. The artifact is what the server answered, which the model does
    not see. A failure becomes a `ToolMessage` with `status="error"`.
    """
    made = []
    for tool in guarded.values():
        shown = plain(tool.input_schema)
        made.append(
            StructuredTool(
                name=tool.name,
                description=tool.description,
                args_schema=dict(shown.schema),
                coroutine=_coroutine(tool, shown),
                response_format="content_and_artifact",
                handle_tool_error=True,
            )
        )
    return made


def _coroutine(tool: GuardedTool, shown: Rewritten) -> Callable[..., Awaitable[tuple[Any, Any]]]:
    async def call(**arguments: Any) -> tuple[Any, Any]:
        framed = await tool.run(shown.restore(arguments))
        if framed.failed:
            raise ToolException(framed.text)
        return content(framed), framed.result

    return call


def content(framed: Framed) -> Any:
    """The text, or standard content blocks where there are attachments."""
    if all(isinstance(part, Words) for part in framed.parts):
        return framed.text
    return [_block(part) for part in framed.parts]


def _block(part: Words | Media) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"type": "text", "text": part.text}
    return {"type": part.kind, "base64": base64_of(part), "mime_type": part.mime_type}
