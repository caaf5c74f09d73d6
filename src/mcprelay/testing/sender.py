"""An HTTP client that answers, or breaks, as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcprelay.errors import ConnectionLost, Evidence, LimitExceeded, NotSent
from mcprelay.ports import Reply, Request
from mcprelay.testing.answer import Answer, Cut, Step, answered, check_step
from mcprelay.testing.fault import ScriptFault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class ScriptedSender:
    """A `Sender` that takes one step of its script for each request, in order.

    Attributes:
        requests: The requests that were sent, as they were.
        open: How many replies are being read.
        closed: Whether it was closed.

    Raises:
        ScriptFault: A step is none.
    """

    def __init__(self, *script: Step) -> None:
        self.requests: list[Request] = []
        self.open = 0
        self.closed = False
        self._script: list[Step] = []
        self.add(*script)

    def add(self, *script: Step) -> None:
        """More steps.

        Raises:
            ScriptFault: One of them is none.
        """
        for step in script:
            check_step(step)
        self._script += script

    @asynccontextmanager
    async def send(self, request: Request) -> AsyncGenerator[Reply]:
        """See `Sender`.

        Raises:
            ScriptFault: The script has no answer for this request, or its step failed.
        """
        if not self._script:
            raise ScriptFault(f"the script has no answer for {request.method} {request.url} {request.body!r}")
        self.requests.append(request)
        answer = answered(self._script.pop(0), request)
        request.evidence = Evidence.NOT_SENT
        if answer.cut is not None and answer.cut is not Cut.IN_ANSWER:
            request.evidence = answer.cut.evidence
            await _cut(answer)
        request.evidence = Evidence.MAYBE_SENT
        self.open += 1
        try:
            yield ScriptedReply(answer)
        finally:
            self.open -= 1

    async def aclose(self) -> None:
        """See `Sender`."""
        self.closed = True


class ScriptedReply:
    """The `Reply` of an `Answer`."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.headers.items()}

    async def read(self, limit: int) -> bytes:
        """See `Reply`."""
        body = b""
        async for chunk in self.chunks():
            body += chunk
            if len(body) > limit:
                raise LimitExceeded("response_bytes", limit, what="the body")
        return body

    async def chunks(self) -> AsyncIterator[bytes]:
        """See `Reply`."""
        for chunk in self._answer.chunks:
            yield chunk
            await asyncio.sleep(0)
        if self._answer.cut is Cut.IN_ANSWER:
            await _cut(self._answer)


async def _cut(answer: Answer) -> None:
    assert answer.cut is not None  # noqa: S101 - called only then
    if answer.then == "hang":
        await asyncio.get_running_loop().create_future()
    if answer.cut.evidence is Evidence.NOT_SENT:
        raise NotSent(answer.cut.value)
    raise ConnectionLost(answer.cut.value, evidence=answer.cut.evidence)
