"""Guarded tools for LangChain, whatever model is bound to them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from mcprelay.adapters.attachment import PORTABLE, base64_of, file_name, left_out
from mcprelay.adapters.offered import form, guarded_only, offered
from mcprelay.adapters.sdk import Sdk, check_reply
from mcprelay.relay.frame import Framed, Words
from mcprelay.relay.guarded import GuardedTool
from mcprelay.relay.toolset import ToolSet
from mcprelay.wire.dialect import Rewritten, plain

with Sdk("langchain-core"):
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.tools import BaseTool, ToolException

if TYPE_CHECKING:
    from mcprelay.relay.media import Media


def tools(guarded: ToolSet, *, carried: Collection[str] = PORTABLE) -> list[BaseTool]:
    """The tools, for `model.bind_tools(…)` and agents, to be called with `ainvoke`. The artifact is what the server
    answered, which the model does not see. A failure becomes a `ToolMessage` with `status="error"`.

    Args:
        carried: Media types that the model takes. Others are said in text.
    """
    made: list[BaseTool] = []
    for tool in offered(guarded):
        shown = form(tool, plain)
        made.append(
            _Tool(
                name=tool.name,
                description=tool.description,
                args_schema=shown.schema,
                response_format="content_and_artifact",
                handle_tool_error=_told,
                guarded=tool,
                shown=shown,
                carried=frozenset(carried),
            )
        )
    return made


async def run(guarded: ToolSet, reply: AIMessage, *, carried: Collection[str] = PORTABLE) -> list[ToolMessage]:
    """Call what the model asked for, all at once, and give the messages to append: for loops of your own.

    Calls whose arguments are no JSON are answered, too. Never raises for what a server or a model does.

    Raises:
        TypeError: One of them is something else.
    """
    guarded_only(guarded)
    check_reply(reply, "tool_calls", "invalid_tool_calls", takes="an AIMessage, the reply of model.ainvoke(…)")
    calls: list[tuple[str | None, str | None, Any]] = [
        *((call["id"], call["name"], call["args"]) for call in reply.tool_calls),
        *((call["id"], call["name"], call["args"]) for call in reply.invalid_tool_calls),
    ]
    return list(await asyncio.gather(*(_call(guarded, *call, carried) for call in calls)))


async def _call(
    guarded: ToolSet, call_id: str | None, name: str | None, arguments: Any, carried: Collection[str]
) -> ToolMessage:
    tool = guarded.get(name or "")
    given = form(tool, plain).restore(arguments) if tool is not None and isinstance(arguments, dict) else arguments
    framed = await guarded.run(name or "", given)
    return ToolMessage(
        content(framed, carried=carried),
        artifact=framed.result,
        tool_call_id=call_id or "",
        name=name,
        status="error" if framed.failed else "success",
    )


class _Tool(BaseTool):
    guarded: Any
    shown: Any
    carried: frozenset[str]

    async def _arun(self, /, **arguments: Any) -> tuple[Any, Any]:
        """Call the tool. Every name is an argument: a tool may well have one that is called `config` or `self`."""
        tool: GuardedTool = self.guarded
        shown: Rewritten = self.shown
        framed = await tool.run(shown.restore(arguments))
        shape = content(framed, carried=self.carried)
        if framed.failed:
            raise _Failed(shape)
        return shape, framed.result

    def _run(self, /, **arguments: Any) -> tuple[Any, Any]:
        """Refuse a call without a loop, which LangChain would make in another thread."""
        raise RuntimeError(f"the tool {self.name} is asynchronous: call it with ainvoke")


class _Failed(ToolException):
    """A failure with what the model is told of it."""

    def __init__(self, shape: str | list[Any]) -> None:
        super().__init__(shape)
        self.shape = shape


def _told(error: ToolException) -> Any:
    return error.shape if isinstance(error, _Failed) else str(error)


def content(framed: Framed, *, carried: Collection[str] = PORTABLE) -> str | list[Any]:
    """The text, or standard content blocks where there are attachments."""
    blocks = [_block(part, carried) for part in framed.parts]
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks)
    return blocks


def _block(part: Words | Media, carried: Collection[str]) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"type": "text", "text": part.text}
    if part.mime_type not in carried:
        return {"type": "text", "text": left_out(part)}
    block = {"type": part.kind, "base64": base64_of(part), "mime_type": part.mime_type}
    return {**block, "filename": file_name(part)} if part.kind == "file" else block
