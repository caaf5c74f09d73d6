"""Questions of servers: forms for a person, conversations for a model. Without a handler no server may ask any.

What a handler gets went through the funnel. The question as the server wrote it is beside it, for the program.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from mcprelay.client.elicitation import Elicitation
from mcprelay.client.sampling import Sampling
from mcprelay.errors import ProtocolError
from mcprelay.relay.frame import Framed, Funnel
from mcprelay.relay.settings import ServerSettings
from mcprelay.types import ElicitResult, Text

REFUSED = -1
"""The code with which a question is refused (client/sampling, "Error Handling")."""


class Asked(Struct, frozen=True, kw_only=True):
    """A server's question.

    Attributes:
        server: The configured name.
        kind: What it is for: a person, or a model.
        framed: Its words, bounded, cleaned and framed.
        question: The question itself: untrusted.
    """

    server: str
    kind: Literal["person", "model"]
    framed: Framed
    question: Elicitation | Sampling


OnAsked: TypeAlias = Callable[[Asked], Any | Awaitable[Any]]


class Askers:
    """Who answers.

    Args:
        funnel: Makes the funnel of a server.
        elicit: Answers questions to a person: gives what `Client(on_elicit=…)` may give.
        sample: Answers questions to a model: gives what `Client(on_sample=…)` may give.
    """

    def __init__(
        self, funnel: Callable[[ServerSettings], Funnel], *, elicit: OnAsked | None, sample: OnAsked | None
    ) -> None:
        self._funnel = funnel
        self._elicit = elicit
        self._sample = sample

    def of(
        self, settings: ServerSettings
    ) -> tuple[Callable[[Elicitation], Any] | None, Callable[[Sampling], Any] | None]:
        """The handlers for one server's client, or None for what nobody answers."""
        elicit, sample = self._elicit, self._sample

        async def on_elicit(question: Elicitation) -> Any:
            framed = self._funnel(settings).text(_form(question), kind="question")
            if framed.withheld or elicit is None:
                return ElicitResult(action="decline")
            return await _settled(elicit(Asked(server=settings.name, kind="person", framed=framed, question=question)))

        async def on_sample(question: Sampling) -> Any:
            framed = self._conversation(question, settings)
            if framed.withheld or sample is None:
                raise ProtocolError(REFUSED, "The question is not passed on")
            return await _settled(sample(Asked(server=settings.name, kind="model", framed=framed, question=question)))

        return (None if elicit is None else on_elicit), (None if sample is None else on_sample)

    def _conversation(self, question: Sampling, settings: ServerSettings) -> Framed:
        blocks: list[Any] = [] if not question.system_prompt else [Text(question.system_prompt)]
        for message in question.messages:
            content: Any = message.content
            blocks.extend(content if isinstance(content, list | tuple) else [content])
        return self._funnel(settings).content(blocks, kind="question")


def _form(question: Elicitation) -> str:
    """All that a question to a person says, its form and its address too."""
    parts = [question.message]
    if question.url:
        parts.append(question.url)
    if question.requested_schema:
        parts.append(msgspec.json.encode(question.requested_schema).decode())
    return "\n".join(parts)


async def _settled(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer
