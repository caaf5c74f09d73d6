"""A call that waits for answers: what the server asks, and how the caller goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from mcprelay.client.elicitation import Elicitation
from mcprelay.client.handler import ELICIT, ROOTS, SAMPLE, shaped
from mcprelay.client.misuse import told_value
from mcprelay.client.outcome import Refused, Succeeded
from mcprelay.client.sampling import Sampling
from mcprelay.core.dialogue import flaw
from mcprelay.errors import AlreadyAnswered, AnswerInvalid, ConfigurationError, told
from mcprelay.types import InputRequest
from mcprelay.wire.field import shown

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


class InputRequired(Generic[T]):
    """The server needs answers before it goes on. A question may be answered once, or never: nothing waits for it.

    One whose answer failed may be answered again, as far as the failure's evidence allows. That is of the call as a
    whole, which has been sent before: where nothing of the answer left, it says so beside.

    Attributes:
        requests: What is asked, by the keys that the answers must have: each a method and its params, untrusted.
    """

    __match_args__ = ("requests",)

    def __init__(
        self,
        requests: Mapping[str, InputRequest],
        go_on: Callable[[Mapping[str, Raw], float | None, float | None], Awaitable[Outcome[T]]],
        dump: Callable[[], bytes] | None = None,
    ) -> None:
        self.requests = dict(requests)
        self._go_on = go_on
        self._dump = dump
        self._answered = False

    def __reduce__(self) -> Any:
        """No pickle: what goes on with the call are the bytes of `dump`, and a client makes a question of them."""
        raise TypeError("a question travels as the bytes of question.dump(); client.load_question(data) makes it again")

    def dump(self) -> bytes:
        """The question as bytes, from which `Client.load_question` makes it again, there or in another process.

        They hold the arguments and the server's state: keep them where nobody but the application can read or write.

        Raises:
            ConfigurationError: It is of a session (a revision of the handshake era), which alone can go on with it, or
                no client has given it.
        """
        if self._dump is None:
            raise ConfigurationError("this question was made by hand, and no call waits for its answer")
        return self._dump()

    def __repr__(self) -> str:
        asked = ", ".join(f"{key!r}: {request.method}" for key, request in self.requests.items())
        return f"InputRequired({asked})"

    def __str__(self) -> str:
        """What is asked, by its keys, in one line of bounded length: untrusted text."""
        return told("; ".join(f"{shown(key)}: {_asks(request)}" for key, request in self.requests.items()), most=1000)

    @property
    def questions(self) -> dict[str, Elicitation | Sampling | None]:
        """What is asked, as the handlers would get it; None for the client's roots."""
        return {key: _read(request) for key, request in self.requests.items()}

    @property
    def message(self) -> str:
        """The questions to a person, in one line: untrusted text."""
        texts = [question.message for question in self.questions.values() if isinstance(question, Elicitation)]
        return told(" / ".join(texts) or ", ".join(request.method for request in self.requests.values()), most=1000)

    async def answer(
        self, answers: Mapping[str, Any], *, timeout: float | None = None, deadline: float | None = None
    ) -> Outcome[T]:
        """Go on with the call: arguments, state, idempotency key and correlation are what they were.

        Args:
            answers: An answer for exactly the keys that were asked: a result (`ElicitResult`, `SamplingResult`,
                `ListRootsResult`), its JSON as a mapping, or what a handler might return: the content of a form, None
                to decline it, a text, a list of roots.
            timeout: Seconds, in place of what the call had.
            deadline: A loop time, in place of what the call had.

        Returns:
            `Succeeded`, `Refused`, or the next question.

        Raises:
            AnswerInvalid: The keys are not those that were asked, or an answer does not fit its question: `key` and
                `fields` say where. Nothing was sent.
            AlreadyAnswered: It was answered before, or is at this moment. Nothing was sent.
            ConfigurationError: `answers` is no mapping.
            CallFailed: The call failed. It was sent before, so its evidence is never `NOT_SENT`.
        """
        if not isinstance(answers, Mapping):
            raise ConfigurationError(f"a question is answered with a mapping from its keys, not {told_value(answers)}")
        if self._answered:
            raise AlreadyAnswered("this question was answered already: what was asked for may run only once for it")
        shaped_answers = self._shaped(answers)
        self._answered = True
        try:
            return await self._go_on(shaped_answers, timeout, deadline)
        except BaseException:
            self._answered = False  # whether it is safe to answer again is what the failure's evidence says
            raise

    def _shaped(self, answers: Mapping[str, Any]) -> dict[str, Raw]:
        missing, unasked = self.requests.keys() - answers.keys(), answers.keys() - self.requests.keys()
        if missing or unasked:
            said = [
                f"{what} {', '.join(sorted(map(shown, keys)))}"
                for what, keys in (("no answer for", missing), ("nobody asked", unasked))
                if keys
            ]
            raise AnswerInvalid(f"answer exactly what was asked: {'; '.join(said)}")
        return {key: _shaped(key, request, answers[key]) for key, request in self.requests.items()}


Outcome: TypeAlias = Succeeded[T] | Refused | InputRequired[T]


def fault(request: InputRequest) -> str | None:
    """Why a question is none that can be asked, or None."""
    try:
        question = _read(request)
    except msgspec.ValidationError as error:
        return str(error)
    return flaw(question.messages) if isinstance(question, Sampling) else None


def _shaped(key: str, request: InputRequest, answer: Any) -> Raw:
    try:
        return Raw(_encode(shaped(request, answer)))
    except (ValueError, TypeError) as error:
        fields = error.fields if isinstance(error, AnswerInvalid) else None
        raise AnswerInvalid(f"the answer for {shown(key)} does not fit: {error}", key=key, fields=fields) from error


def _asks(request: InputRequest) -> str:
    """What a question asks, as a person reads it."""
    question = _read(request)
    if not isinstance(question, Elicitation):
        return request.method
    wanted = question.url if question.mode == "url" else ", ".join(question.fields)
    return f"{question.message} ({wanted})" if wanted else question.message


def _read(request: InputRequest) -> Elicitation | Sampling | None:
    if request.method == ROOTS:
        return None
    kind: Any = {ELICIT: Elicitation, SAMPLE: Sampling}[request.method]
    return msgspec.convert(request.params or {}, kind)  # type: ignore[no-any-return]
