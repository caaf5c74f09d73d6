"""Questions of servers: forms for a person, conversations for a model. Without a handler no server may ask any.

What a handler gets went through the funnel, on the account of each run that has a call there: in a session nothing says
for which of them a server asks. What it asks without any call is on an account of the connection's own. The question as
the server wrote it is beside it, for the program.
"""

from __future__ import annotations

import inspect
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from mcprelay.client.elicitation import Elicitation
from mcprelay.client.sampling import Sampling
from mcprelay.errors import ProtocolError
from mcprelay.relay.budget import Joint, Ledger
from mcprelay.relay.errors import ResultTooLarge
from mcprelay.relay.frame import Framed, Funnel
from mcprelay.relay.settings import ServerSettings
from mcprelay.types import ElicitResult, Text

log = logging.getLogger("mcprelay.relay")
T = TypeVar("T")
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
    """Who answers, over one connection (`apart`).

    Args:
        funnel: Makes the funnel of a server on an account.
        elicit: Answers questions to a person: gives what `Client(on_elicit=…)` may give.
        sample: Answers questions to a model: gives what `Client(on_sample=…)` may give.

    Attributes:
        answering: Whether anybody answers anything.
    """

    def __init__(
        self, funnel: Callable[[ServerSettings, Ledger], Funnel], *, elicit: OnAsked | None, sample: OnAsked | None
    ) -> None:
        self.answering = elicit is not None or sample is not None
        self._calls: Counter[Ledger] = Counter()
        self._own = Ledger()
        self._withheld = 0
        self._funnel = funnel
        self._elicit = elicit
        self._sample = sample

    def apart(self) -> Askers:
        """The same for another connection, whose calls pay for the questions that come over it."""
        return Askers(self._funnel, elicit=self._elicit, sample=self._sample)

    async def charged(self, ledger: Ledger, call: Awaitable[T]) -> T:
        """What a call comes to. While it is on its way, its run pays for what the server asks."""
        self._calls[ledger] += 1
        try:
            return await call
        finally:
            self._calls[ledger] -= 1
            if not self._calls[ledger]:
                del self._calls[ledger]

    def of(
        self, settings: ServerSettings
    ) -> tuple[Callable[[Elicitation], Any] | None, Callable[[Sampling], Any] | None]:
        """The handlers for one server's client, or None for what nobody answers."""
        elicit, sample = self._elicit, self._sample

        async def on_elicit(question: Elicitation) -> Any:
            framed = self._paid(settings).text(_form(question), kind="question")
            if framed.withheld or elicit is None:
                self._refused(framed)
                return ElicitResult(action="decline")
            return await _settled(elicit(Asked(server=settings.name, kind="person", framed=framed, question=question)))

        async def on_sample(question: Sampling) -> Any:
            framed = self._conversation(question, settings)
            if framed.withheld or sample is None:
                raise ProtocolError(REFUSED, self._refused(framed))
            return await _settled(sample(Asked(server=settings.name, kind="model", framed=framed, question=question)))

        return (None if elicit is None else on_elicit), (None if sample is None else on_sample)

    def _conversation(self, question: Sampling, settings: ServerSettings) -> Framed:
        blocks: list[Any] = [] if not question.system_prompt else [Text(question.system_prompt)]
        for message in question.messages:
            content: Any = message.content
            blocks.extend(content if isinstance(content, list | tuple) else [content])
        return self._paid(settings).content(blocks, kind="question")

    def _paid(self, settings: ServerSettings) -> Funnel:
        """The funnel for a question that comes now."""
        return self._funnel(settings, Joint(self._calls) if self._calls else self._own)

    def _refused(self, framed: Framed) -> str:
        """What the server is told of a question that is not passed on: the limit's name, and none of our numbers."""
        large = framed.cause if isinstance(framed.cause, ResultTooLarge) else None
        self._withheld += 1
        if self._withheld.bit_count() == 1:  # 1, 2, 4, 8, …: a flood makes a few lines
            told = "a question of the server %r is not passed on, as %d over its connection: %s"
            log.warning(told, framed.server, self._withheld, large or framed.local)
        return "The question is not passed on" + (f": it is over {large.limit}" if large else "")


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
