"""What the handlers of a client answer to the questions that a result is.

Knows questions and handlers, and what a round may hold. Sends nothing: `Caller` takes the answers back to the server.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from mcprelay.client import failure
from mcprelay.client.handler import OPTIONS
from mcprelay.client.question import fault
from mcprelay.errors import (
    CallFailed,
    CallLimitExceeded,
    ConfigurationError,
    Evidence,
    NeedsInput,
    ToolError,
)
from mcprelay.revisions import NEWEST
from mcprelay.wire.field import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcprelay.client.answer import Asked
    from mcprelay.client.call import Call
    from mcprelay.client.connection import Connection
    from mcprelay.client.party import Party
    from mcprelay.types import InputRequest

_encode = msgspec.json.Encoder().encode
_STATE_PAUSE = 0.05
_STATE_PAUSE_MOST = 1.0


class Answering:
    """Answers the questions of one client's calls.

    Args:
        connection: Who asks: what may be asked depends on the revision that is spoken.
        party: Whose handlers answer, within its settings.
    """

    def __init__(self, connection: Connection, party: Party) -> None:
        self._connection = connection
        self._party = party
        self._settings = party.settings

    def is_possible(self, asked: Asked) -> bool:
        """Whether there is a handler for each question."""
        handlers = self._party.handlers
        return all(handlers.has(request.method) for request in asked.requests.values())

    def check(self, call: Call, asked: Asked) -> None:
        """A round is bounded, and a question of an undeclared kind is not one (mrtr, "Server Requirements").

        Raises:
            CallLimitExceeded: It holds more than `input_requests` questions.
            ResponseInvalid: A question was not declared, or nobody can answer it.
        """
        most = self._settings.input_requests
        if len(asked.requests) > most:
            raise self._over(call, "input_requests", most, "the number of questions in one round", len(asked.requests))
        link = self._connection.current
        revision = NEWEST if link is None or link.revision is None else link.revision
        for key, request in asked.requests.items():
            if lacks := self._party.undeclared(request.method, request.params or {}, revision):
                reason = f"the server asks {shown(request.method)} ({shown(key)}), which this client did not declare"
                raise failure.invalid(call, f"{reason}: {shown(lacks)}")
            if wrong := fault(request):
                reason = f"the server asks {request.method!r} ({shown(key)}) in a way that nobody can answer: {wrong}"
                raise failure.invalid(call, reason)

    async def answers(self, call: Call, requests: Mapping[str, InputRequest]) -> dict[str, Raw]:
        """What the handlers answer, all at once. If one of them raises, the others are ended and it goes through.

        Raises:
            DeadlineExceeded: The time that the caller gave is over. A default one stands still while a person is asked.
        """
        if not requests:
            return {}
        handlers = self._party.handlers
        tasks = {
            key: asyncio.ensure_future(handlers.answer(request.method, Raw(_encode(request.params or {}))))
            for key, request in requests.items()
        }
        try:
            _, late = await asyncio.wait(tasks.values(), timeout=_left(call), return_when=asyncio.FIRST_EXCEPTION)
            for key, task in tasks.items():
                if task.cancelled():
                    raise self._failed(call, f"the handler of {requests[key].method} was cancelled")
                if task.done():
                    self._require_said(call, task, requests[key].method)
            if late:
                raise failure.expired(call, Evidence.MAYBE_SENT)
            return {key: Raw(task.result()) for key, task in tasks.items()}
        finally:
            unfinished = [task for task in tasks.values() if not task.done()]
            for task in unfinished:
                task.cancel()
            if unfinished:
                await asyncio.wait(unfinished)

    def _require_said(self, call: Call, task: asyncio.Future[bytes], method: str) -> None:
        """See that a handler gave an answer. What it raised goes through, with a note that says of which call that is.

        What would be taken for the end of this very call, or would say that nothing of it was sent, does not.

        Raises:
            CallFailed: Its answer does not fit, it is set up wrongly, or it made a call of its own that failed.
        """
        try:
            task.result()
        except ConfigurationError as error:
            raise self._failed(call, str(error)) from error
        except (CallFailed, ToolError, NeedsInput) as error:  # of a call that the handler made
            raise self._failed(call, f"{OPTIONS[method]} failed: {failure.raised(error, most=1000)}") from error
        except Exception as error:
            failure.note_asked(error, call, OPTIONS[method])
            raise

    def _failed(self, call: Call, reason: str) -> CallFailed:
        told = f"{failure.what(call)}: {reason}; {failure.BEGUN}"
        return CallFailed(told, evidence=Evidence.ANSWERED, may_have_run=True, **failure.known(call))

    async def pause(self, call: Call, number: int) -> None:
        """Wait before the server is asked again (mrtr, "Basic Workflow"), longer in each round, if time allows it.

        Raises:
            DeadlineExceeded: There is no time left.
        """
        seconds = min(_STATE_PAUSE * 2**number, _STATE_PAUSE_MOST)
        left = None if call.deadline is None else max(0.0, call.deadline - asyncio.get_running_loop().time())
        await asyncio.sleep(seconds if left is None else min(seconds, left))
        if left is not None and left <= seconds:
            raise failure.expired(call, Evidence.MAYBE_SENT)

    def too_many_rounds(self, call: Call) -> CallLimitExceeded:
        """The failure of a call that was asked more often than `input_rounds`."""
        return self._over(call, "input_rounds", self._settings.input_rounds, "the number of rounds of questions")

    def _over(
        self, call: Call, limit: str, allowed: float, what: str, actual: float | None = None
    ) -> CallLimitExceeded:
        said = f"{failure.what(call)}: {what}"
        known = {"evidence": Evidence.ANSWERED, "may_have_run": True, **failure.known(call)}
        error = CallLimitExceeded(limit, allowed, actual=actual, what=said, **known)
        error.args = (f"{error} Before the call is made again: {failure.BEGUN}.",)
        return error


def _left(call: Call) -> float | None:
    """Seconds that a caller's own deadline leaves; a default one begins again with each round."""
    if call.deadline is None or call.patient:
        return None
    return max(0.0, call.deadline - asyncio.get_running_loop().time())
