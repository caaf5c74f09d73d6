"""Guarded tools for pydantic-ai, whatever model the agent has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any

from mcprelay.adapters.attachment import PORTABLE, left_out
from mcprelay.adapters.offered import form, offered
from mcprelay.adapters.sdk import Sdk
from mcprelay.relay.frame import Framed, Words
from mcprelay.relay.toolset import ToolSet
from mcprelay.wire.dialect import plain

with Sdk("pydantic-ai-slim"):
    from pydantic_ai import BinaryContent, Tool, ToolFailed, ToolReturn
    from pydantic_core import SchemaValidator, core_schema

if TYPE_CHECKING:
    from mcprelay.relay.guarded import GuardedTool
    from mcprelay.relay.media import Media
    from mcprelay.wire.dialect import Rewritten

_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
"""What else a model gives as arguments, pydantic-ai asks it to correct, in place of failing on it."""


def tools(guarded: ToolSet, *, carried: Collection[str] = PORTABLE) -> list[Tool[Any]]:
    """The tools, for `Agent(tools=…)`. They are validated here, against the pinned schema, and not by pydantic.

    Args:
        carried: Media types that the agent's model takes. Others are said in text, because a model that does not take
            one would end the run.
    """
    made: list[Tool[Any]] = []
    for tool in offered(guarded):
        shown = form(tool, plain)
        function = _function(tool, shown, carried)
        one = Tool.from_schema(function, tool.name, tool.description, json_schema=shown.schema, takes_ctx=False)
        one.function_schema.validator = _OBJECT
        made.append(one)
    return made


def _function(tool: GuardedTool, shown: Rewritten, carried: Collection[str]) -> Callable[..., Awaitable[Any]]:
    async def call(**arguments: Any) -> Any:
        return result(await tool.run(shown.restore(arguments)), carried=carried)

    return call


def result(framed: Framed, *, carried: Collection[str] = PORTABLE) -> ToolReturn[Any]:
    """One framed result: its text, or a list with the attachments. The server's own answer goes along as metadata,
    which the model does not see.

    Raises:
        ToolFailed: It is a failure, which pydantic-ai tells the model as one. With attachments it is a result whose
            text says that it failed, because a failure here is a text alone.
    """
    parts = [_part(part, carried) for part in framed.parts]
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        return ToolReturn(parts, metadata=framed.result)
    if framed.failed:
        raise ToolFailed("\n".join(texts))
    return ToolReturn("\n".join(texts), metadata=framed.result)


def _part(part: Words | Media, carried: Collection[str]) -> str | BinaryContent:
    if isinstance(part, Words):
        return part.text
    if part.mime_type not in carried:
        return left_out(part)
    return BinaryContent(part.data, media_type=part.mime_type)
