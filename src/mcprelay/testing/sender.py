"""An HTTP client that answers, or breaks, as the test says."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from mcprelay.errors import ConnectionLost, Evidence, LimitExceeded, LocalFault, MCPRelayError, NotSent
from mcprelay.ports import Reply, Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Cut(enum.Enum):
    """Where an exchange breaks, in the order in which it happens."""

    BEFORE_CONNECT = "nobody listens"
    CONNECTING = "the connection is being made"
    BEFORE_FIRST_BYTE = "there is a connection, and no byte of the request left"
    BETWEEN_BYTES = "a part of the request left"
    AFTER_REQUEST = "the request left, and no answer came"
    IN_ANSWER = "a part of the answer came"

    @property
    def evidence(self) -> Evidence:
        """What is known of the request then."""
        unsent = (Cut.BEFORE_CONNECT, Cut.CONNECTING, Cut.BEFORE_FIRST_BYTE)
        return Evidence.NOT_SENT if self in unsent else Evidence.MAYBE_SENT


class Answer(Struct, kw_only=True):
    """What becomes of one request.

    Attributes:
        status: The HTTP status.
        headers: Names in lower case.
        chunks: The body, in the pieces in which it comes.
        cut: Where it breaks, or None.
        then: What happens there: it fails, or it hangs until the caller gives up.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    chunks: tuple[bytes, ...] = ()
    cut: Cut | None = None
    then: Literal["fail", "hang"] = "fail"


Step: TypeAlias = Answer | Callable[[Request], Answer]


class ScriptFault(LocalFault, AssertionError):
    """The script is at fault: it has no answer for a request, or a step of it failed.

    It is the test's own mistake, so it goes through a client as it is: no call fails with it as if the network had.
    """


def result(value: Any) -> Callable[[Request], Answer]:
    """A step that answers the JSON-RPC request it gets with this result, as JSON."""

    def answer(request: Request) -> Answer:
        id = msgspec.json.decode(request.body or b"{}").get("id")
        return Answer(chunks=(msgspec.json.encode({"jsonrpc": "2.0", "id": id, "result": value}),))

    return answer


class ScriptedSender:
    """A `Sender` that takes one step of its script for each request, in order.

    Attributes:
        requests: The requests that were sent, as they were.
        open: How many replies are being read.
        closed: Whether it was closed.
    """

    def __init__(self, *script: Step) -> None:
        self.requests: list[Request] = []
        self.open = 0
        self.closed = False
        self._script = list(script)

    def add(self, *script: Step) -> None:
        """More steps."""
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
        answer = _answered(self._script.pop(0), request)
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
        self.headers = answer.headers

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


def _answered(step: Any, request: Request) -> Answer:
    """What a step says; it may raise what a sender may."""
    if isinstance(step, Answer):
        return step
    try:
        answer = step(request)
    except MCPRelayError:
        raise
    except Exception as error:
        raise ScriptFault(f"the step for {request.method} {request.url} raised {error!r}") from error
    if not isinstance(answer, Answer):
        raise ScriptFault(f"the step for {request.method} {request.url} gave {answer!r}, and not an Answer")
    return answer


async def _cut(answer: Answer) -> None:
    assert answer.cut is not None  # noqa: S101 - called only then
    if answer.then == "hang":
        await asyncio.get_running_loop().create_future()
    if answer.cut.evidence is Evidence.NOT_SENT:
        raise NotSent(answer.cut.value)
    raise ConnectionLost(answer.cut.value, evidence=answer.cut.evidence)
