"""A server's question to the client's model."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mcprelay.types import SamplingMessage, Tool


class Sampling(Struct, frozen=True, rename="camel", kw_only=True):
    """What `on_sample` gets. All of it is the server's words: untrusted.

    Attributes:
        messages: The conversation.
        max_tokens: The most tokens that the answer may have.
        system_prompt: What the server would like the model to be told first.
        temperature: How much variety it would like.
        stop_sequences: Where it would like the model to stop.
        model_preferences: Hints and priorities for the choice of a model.
        include_context: Which servers' context it would like added: `none`, `thisServer` or `allServers`.
        tools: Tools for this conversation alone. Servers send them only where `sampling.tools` is declared.
        tool_choice: Whether the model must use one.
        metadata: For the model's provider.
    """

    messages: tuple[SamplingMessage, ...]
    max_tokens: int = 0
    system_prompt: str | None = None
    temperature: float | None = None
    stop_sequences: tuple[str, ...] = ()
    model_preferences: dict[str, Any] | None = None
    include_context: str | None = None
    tools: tuple[Tool, ...] | None = None
    tool_choice: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
