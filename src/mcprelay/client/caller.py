"""How a call is carried through: connections made on demand, permitted repetitions, rounds of questions.

Knows calls, not what is called: `Client` says what to send and how to read it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET, Raw

from mcprelay.client import failure, keeping, misuse
from mcprelay.client.answer import Asked
from mcprelay.client.answering import Answering
from mcprelay.client.argument import encode_meta
from mcprelay.client.call import Call
from mcprelay.client.handler import OPTIONS
from mcprelay.client.option import CallOptions
from mcprelay.client.party import LOG_LEVEL
from mcprelay.client.progress import Hearing
from mcprelay.client.question import InputRequired, fault
from mcprelay.client.retry import Retry
from mcprelay.errors import CallFailed, ConfigurationError, Evidence
from mcprelay.revisions import NEWEST, Era
from mcprelay.span import onward
from mcprelay.types import LogLevel
from mcprelay.wire.field import shown
from mcprelay.wire.jsonrpc import notification

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcprelay.client.connection import Connection
    from mcprelay.client.keeping import Kept
    from mcprelay.client.party import Party
    from mcprelay.client.progress import OnLog, OnProgress

R = TypeVar("R")
T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_BAD_REQUEST = 400
_NO_OPTIONS: Mapping[str, Any] = {}


class Caller:
    """Carries calls through for one client.

    Attributes:
        connection: What they go over.
        settings: The limits.
        calls: How many are on their way, from their beginning to their end: also while they connect, wait until they
            are sent again, or while a handler is asked. A notification counts while it is sent.
    """

    def __init__(
        self, connection: Connection, party: Party, *, retry: Retry | None, on_progress: OnProgress | None
    ) -> None:
        self.connection = connection
        self._party = party
        self.settings = party.settings
        self._retry = retry
        self._on_progress = on_progress
        self._answering = Answering(connection, party)
        self._bound = ("request_timeout", self.settings.request_timeout)
        self.calls = 0

    def call(
        self,
        method: str,
        members: bytes = b"",
        *,
        name: str | None = None,
        arguments: bytes = b"{}",
        options: Mapping[str, Any] = _NO_OPTIONS,
    ) -> Call:
        """A call as its caller wants it.

        Raises:
            ConfigurationError: Something of it cannot be sent, or is of a wrong type.
            TypeError: There is no such option.
        """
        seconds = self._bound[1]  # what follows is `_due`, without its frame
        call = Call(
            method,
            members,
            name,
            None if seconds == math.inf else self.connection.now() + seconds,
            self._bound,
            patient=True,
            arguments=arguments,
            log_level=self._party.log_level,
            retry=self._retry,
        )
        carried = onward()  # the caller's span
        if options or carried or self._on_progress is not None:
            self._shape(call, carried, **options)
        return call

    def _shape(
        self,
        call: Call,
        carried: Mapping[str, Any],
        /,
        *,
        timeout: float | None = None,
        deadline: float | None = None,
        idempotency_key: str | None = None,
        correlation_id: str | None = None,
        on_progress: OnProgress | None = None,
        on_log: OnLog | None = None,
        log_level: LogLevel | None = None,
        meta: Mapping[str, Any] | None = None,
        retry: Retry | None = None,
        **unknown: object,
    ) -> None:
        for option in unknown:
            raise TypeError(f"a call has no option {option!r}; {misuse.meant(option, CallOptions.__annotations__)}")
        if timeout is not None or deadline is not None:
            call.patient = False
            self._time(call, timeout, deadline)
        if on_progress is not None or on_log is not None or log_level is not None or retry is not None:
            _check(on_progress, on_log, log_level, retry)
        misuse.of_type("meta", meta, Mapping)
        call.retry = retry or call.retry
        if carried:  # what the caller says itself goes first
            meta = {**carried, **(meta or {})}
        if meta is not None or idempotency_key is not None or correlation_id is not None:
            call.meta, call.correlation_id = encode_meta(meta, idempotency_key, correlation_id)
            call.idempotent = idempotency_key is not None
        if on_progress is not None or (on_progress := self._on_progress) is not None:
            call.on_progress = self._hearing(on_progress)
        elif call.wait is not None:
            call.on_progress = self._hearing(_unheard)
        if on_log is not None:
            call.on_log = self._hearing(on_log)
            call.log_level = log_level or LOG_LEVEL
        elif log_level:
            call.log_level = log_level

    def _hearing(self, callback: Callable[[T], Awaitable[None] | None]) -> Hearing[T]:
        return Hearing(callback, pending_messages=self.settings.pending_messages)

    def _time(self, call: Call, timeout: float | None, deadline: float | None) -> None:
        """Until when: `timeout` seconds from now, or `deadline`; with both, progress restarts one up to the other."""
        now = self.connection.now()
        if deadline is not None:
            misuse.moment("deadline", deadline, now=now)
        call.bound = None if timeout is None else ("timeout", misuse.duration("timeout", timeout))
        if timeout is None or deadline is None:
            call.wait = call.limit = None  # of an earlier round
            limit = deadline if timeout is None else now + timeout
        else:
            call.wait, call.limit = timeout, deadline
            limit = min(now + timeout, deadline)
        call.deadline = None if limit == math.inf else limit

    def _due(self) -> float | None:
        """Until when, where the caller says nothing."""
        seconds = self._bound[1]
        return None if seconds == math.inf else self.connection.now() + seconds

    async def send(self, call: Call) -> Raw:
        """Send a call, again where that is permitted, and give its result.

        Raises:
            CallFailed: There is none.
        """
        attempt = 1
        self.calls += 1
        try:
            while True:
                try:
                    link = await self.connection.link(call)
                    return await link.call(call)
                except CallFailed as error:
                    wait = _wait(call, attempt, error)
                    if wait is None:
                        failure.note_earlier(error, call)
                        failure.note_attempts(error, call, attempt)
                        raise
                    call.rest(error.evidence, refused=error.evidence is Evidence.ANSWERED and not error.may_have_run)
                attempt += 1
                await asyncio.sleep(wait)
        except asyncio.CancelledError as error:
            failure.note_cancelled(error, call)
            raise
        finally:
            self.calls -= 1

    async def tell(self, method: str, params: bytes) -> None:
        """Send a notification.

        Raises:
            CallFailed: There is no connection.
        """
        self.calls += 1
        try:
            link = await self.connection.link(self.call(method))
            await link.tell(notification(method, params))
        finally:
            self.calls -= 1

    @property
    def busy(self) -> bool:
        """Whether anything is on its way, somebody waits for a connection, or a handler is asked."""
        link = self.connection.current
        return self.calls > 0 or self.connection.awaited or (link is not None and link.held)

    async def converse(
        self,
        call: Call,
        read: Callable[[Raw], T | Asked],
        conclude: Callable[[Call, T], R],
        *,
        mend: Callable[[Call], Awaitable[None]] | None = None,
    ) -> R | InputRequired[R]:
        """Send a call and answer its questions with the handlers, for as long as they can.

        Args:
            call: What to send first.
            read: Reads a result.
            conclude: Makes the outcome of the call in its last round, and of what was read.
            mend: Called once when the server says that headers do not mirror the body; the call is repeated then.

        Returns:
            The outcome, or the question that a handler is missing for.

        Raises:
            CallFailed: There is no result.
        """
        link = self.connection.ready()
        self.calls += 1
        try:
            if link is not None and call.retry is None:
                try:
                    result = await link.begin(call)  # a coroutine less, which each call would pay for
                except CallFailed as error:
                    failure.note_earlier(error, call)
                    result = await self._mended(call, error, mend)
            else:
                result = await self._sent(call, mend)
            try:
                answer = read(result)
            except ValueError as error:
                raise self._unreadable(call, result, error) from error
            if type(answer) is Asked:
                answer, call = await self._rounds(call, answer, read, mend)
            if call.on_progress is not None or call.on_log is not None:
                await self._heard(call)
        except BaseException as error:
            _drop(call)
            if isinstance(error, asyncio.CancelledError):
                if link is not None:
                    link.withdraw(call)
                failure.note_cancelled(error, call)
            raise
        finally:
            self.calls -= 1
        if type(answer) is Asked:
            return self._handed(call, answer, partial(self.converse, read=read, conclude=conclude, mend=mend))
        return conclude(call, answer)  # type: ignore[arg-type]  # no question any more

    async def _rounds(
        self,
        call: Call,
        answer: T | Asked,
        read: Callable[[Raw], T | Asked],
        mend: Callable[[Call], Awaitable[None]] | None,
    ) -> tuple[T | Asked, Call]:
        number = 0
        while isinstance(answer, Asked):
            call.rest(Evidence.ANSWERED)
            self._answering.check(call, answer)
            if not self._answering.is_possible(answer):
                break
            if number >= self.settings.input_rounds:
                raise self._answering.too_many_rounds(call)
            if not answer.requests:
                await self._answering.pause(call, number)
            call = self.again(call, await self._answering.answers(call, answer.requests), answer.state)
            answer = self.read(call, await self._sent(call, mend), read)
            number += 1
        return answer, call

    async def _sent(self, call: Call, mend: Callable[[Call], Awaitable[None]] | None) -> Raw:
        try:
            return await self.send(call)
        except CallFailed as error:
            return await self._mended(call, error, mend)

    async def _mended(self, call: Call, error: CallFailed, mend: Callable[[Call], Awaitable[None]] | None) -> Raw:
        """The call again, with the headers that the server wants, if that is what was wrong with it."""
        if mend is None or call.mended or not is_header_mismatch(error):
            raise error
        call.mended = True
        call.rest(error.evidence, refused=True)
        try:
            await mend(call)
        except CallFailed as failed:
            raise error from failed  # of this call the refusal is what is known
        return await self.send(call)

    def read(self, call: Call, result: Raw, read: Callable[[Raw], T | Asked]) -> T | Asked:
        """A result, read.

        Raises:
            ResponseInvalid: It cannot be.
        """
        try:
            return read(result)
        except ValueError as error:
            raise self._unreadable(call, result, error) from error

    def _unreadable(self, call: Call, result: Raw, error: ValueError) -> CallFailed:
        return failure.invalid(call, f"the result is not what it should be: {error}", bytes(result))

    def again(
        self,
        call: Call,
        answers: Mapping[str, Raw],
        state: Raw | None,
        timeout: float | None = None,
        deadline: float | None = None,
    ) -> Call:
        """The next round of a call: the same but for the answers and the state.

        Where the call said no time, it begins again when somebody was asked; a server that only wants to be asked again
        later gets no more time by that.
        """
        following = call.copy()
        if answers:
            following.members += b',"inputResponses":%b' % _encode(answers)
        if state is not None:
            following.members += b',"requestState":%b' % bytes(state)
        if timeout is not None or deadline is not None or (call.patient and answers):
            following.patient = timeout is None and deadline is None
            if following.patient:
                following.deadline, following.bound = self._due(), self._bound
            else:
                self._time(following, timeout, deadline)
        return following

    async def _heard(self, call: Call) -> None:
        """Progress that was told before the result is called back before the call returns."""
        for hearing in (call.on_progress, call.on_log):
            if hearing is not None:
                await hearing.finish(deadline=call.deadline)

    def _handed(self, call: Call, asked: Asked, go_on: Callable[[Call], Awaitable[Any]]) -> InputRequired[Any]:
        """A question that is handed to the caller."""

        def answered(answers: Mapping[str, Raw], timeout: float | None, deadline: float | None) -> Awaitable[Any]:
            return go_on(self.again(call, answers, asked.state, timeout, deadline))

        link = self.connection.current
        revision = NEWEST if link is None or link.revision is None else link.revision
        return InputRequired(asked.requests, answered, partial(keeping.dump, call, asked, revision))

    def take_up(
        self,
        kept: Kept,
        read: Callable[[Raw], T | Asked],
        conclude: Callable[[Call, T], R],
        *,
        mend: Callable[[Call], Awaitable[None]] | None = None,
    ) -> InputRequired[R]:
        """A question that was kept, of a call that goes on here. Arguments as for `converse`.

        Raises:
            ConfigurationError: The server is spoken to in a session, which knows nothing of it; or nobody can answer.
        """
        link = self.connection.current
        if link is not None and link.revision is not None and link.revision.era is not Era.STATELESS:
            raise ConfigurationError(
                f"a question of {kept.revision} goes on in that revision alone, and with this server "
                f"{link.revision.name} is spoken"
            )
        for key, request in kept.requests.items():
            if request.method not in OPTIONS or fault(request):
                raise ConfigurationError(f"these bytes hold a question that nobody can answer: {shown(key)}")
        call = self.call(kept.method, bytes(kept.params)[1:-1], name=kept.name, arguments=bytes(kept.arguments))
        call.meta, call.correlation_id, call.idempotent = bytes(kept.meta)[1:-1], kept.correlation_id, kept.idempotent
        call.begun = True
        asked = Asked(kept.requests, None if kept.state is UNSET else kept.state)
        return self._handed(call, asked, partial(self.converse, read=read, conclude=conclude, mend=mend))


def _check(on_progress: Any, on_log: Any, log_level: Any, retry: Any) -> None:
    """Refuse options of a wrong type, before anything is sent."""
    misuse.function("on_progress", on_progress)
    misuse.function("on_log", on_log)
    misuse.level(log_level)
    misuse.of_type("retry", retry, Retry)


def _wait(call: Call, attempt: int, error: CallFailed) -> float | None:
    """Seconds until a call that failed is sent again, or None where it is not."""
    retry = call.retry
    if retry is None or attempt >= retry.attempts or not retry.allows(error, idempotent=call.idempotent):
        return None
    wait = retry.wait(attempt, error)
    late = call.deadline is not None and asyncio.get_running_loop().time() + wait >= call.deadline
    return None if late else wait


def _drop(call: Call) -> None:
    """Nothing more is called back for this call."""
    for hearing in (call.on_progress, call.on_log):
        if hearing is not None:
            hearing.drop()


def is_header_mismatch(error: CallFailed) -> bool:
    """Whether the server says that headers do not mirror the body, with the status that proves that nothing ran."""
    from mcprelay.core.probe import HEADER_MISMATCH

    return getattr(error, "code", None) == HEADER_MISMATCH and getattr(error, "status", None) == _BAD_REQUEST


def _unheard(_: Any) -> None:
    """Progress that restarts a wait is asked for also where nobody wants to hear of it."""
