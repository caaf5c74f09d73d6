"""What a conversation looks like that may be put to a model: tool uses and their results in pairs.

Knows the messages of client/sampling, "Message Content Constraints". Does not know who asks and who answers: a server
keeps these rules, and a client holds a server to them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcprelay.types import SamplingMessage, ToolUse, ToolUseResult


def flaw(messages: Sequence[SamplingMessage]) -> str | None:
    """What is wrong with a conversation, and with which of its messages, or None."""
    waiting: set[str] = set()
    for number, message in enumerate(messages):
        blocks = message.content if isinstance(message.content, tuple) else (message.content,)
        results = {block.tool_use_id for block in blocks if isinstance(block, ToolUseResult)}
        uses = {block.id for block in blocks if isinstance(block, ToolUse)}
        if results and not all(isinstance(block, ToolUseResult) for block in blocks):
            return f"messages[{number}]: tool results are mixed with other content"
        if (results and message.role != "user") or (uses and message.role != "assistant"):
            return f"messages[{number}]: a model uses tools and a user brings the results, and not the {message.role}"
        if missing := waiting - results:
            return f"messages[{number}]: the result of the tool use {min(missing)!r} is missing"
        if unknown := results - waiting:
            return f"messages[{number}]: no message before it has the tool use {min(unknown)!r}"
        waiting = uses
    return f"the result of the tool use {min(waiting)!r} is missing" if waiting else None
