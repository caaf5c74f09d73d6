"""What becomes of one request, as a script says it. A mistake of the script is found where it is written.

Knows nothing of who plays it: that is `sender`.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from mcprelay.client.misuse import told_value
from mcprelay.errors import CallFailed, ConnectionLost, Evidence, LimitExceeded, NotSent
from mcprelay.ports import Request
from mcprelay.testing.fault import ScriptFault


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
        status: The HTTP status, from 100 to 599.
        headers: Names and values, both strings.
        chunks: The body, in the pieces in which it comes: a tuple of bytes.
        cut: Where it breaks, or None.
        then: What happens there: it fails, or it hangs until the caller gives up.

    Raises:
        ScriptFault: It is made of something else.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    chunks: tuple[bytes, ...] = ()
    cut: Cut | None = None
    then: Literal["fail", "hang"] = "fail"

    def __post_init__(self) -> None:
        wrong = _fault(self)
        if wrong is not None:
            raise ScriptFault(f"Answer: {wrong}")


Step: TypeAlias = Answer | Callable[[Request], Answer]

_STEP = "a step is an Answer(…), a result({…}), or a function that gets the request and gives an Answer"
_RAISED = (NotSent, ConnectionLost, CallFailed, LimitExceeded, ScriptFault)
"""What a step may raise: what a sender may, and that the script is at fault."""


def result(value: Any) -> Callable[[Request], Answer]:
    """A step that answers the JSON-RPC request it gets with this result, as JSON.

    Raises:
        ScriptFault: It is nothing that JSON can carry.
    """
    try:
        encoded = msgspec.Raw(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ScriptFault(f"result: JSON cannot carry {told_value(value)}: {error}") from error

    def answer(request: Request) -> Answer:
        message = msgspec.json.decode(request.body or b"{}")
        if message.get("id") is None:
            which = message.get("method", "without a body")
            raise ScriptFault(
                f"result: {request.method} {which} asks for no result, so it is no answer: give Answer(status=202)"
            )
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": encoded}
        return Answer(chunks=(msgspec.json.encode(reply),))

    return answer


def check_step(step: Any) -> None:
    """See that a script can take a step.

    Raises:
        ScriptFault: It cannot. The text says what a step is, and what was meant where that can be told.
    """
    if isinstance(step, Answer):
        return
    if step is result:
        hint = ": call it with the JSON of the result"
    elif step is Answer:
        hint = ": call it"
    elif isinstance(step, Mapping):
        hint = ": write result({…}) around the JSON of a result"
    elif isinstance(step, Cut):
        hint = f": write Answer(cut={step})"
    elif inspect.iscoroutinefunction(step):
        hint = ": it gets no await"
    elif callable(step) and not isinstance(step, type):
        return
    else:
        hint = ""
    raise ScriptFault(f"{_STEP}, and not {told_value(step)}{hint}")


def answered(step: Step, request: Request) -> Answer:
    """What a step makes of a request; it may raise what a sender may.

    Raises:
        ScriptFault: It fails in another way, or gives no answer.
    """
    which = f"the step for {request.method} {request.url}"
    answer: Any = step
    if not isinstance(step, Answer):
        try:
            answer = step(request)
        except _RAISED:
            raise
        except Exception as error:
            raise ScriptFault(f"{which} raised {error!r}") from error
    if not isinstance(answer, Answer):
        if inspect.iscoroutine(answer):
            answer.close()
        hint = ": write result({…}) around the JSON of a result" if isinstance(answer, Mapping) else ""
        raise ScriptFault(f"{which} gave {answer!r}, and not an Answer{hint}")
    wrong = _fault(answer)  # it may have been changed since it was made
    if wrong is not None:
        raise ScriptFault(f"{which} gave an Answer that is none: {wrong}")
    return answer


def _fault(answer: Any) -> str | None:
    """What an answer cannot be, or None. The fields may hold anything, whatever they say."""
    status, headers, chunks, cut, then = answer.status, answer.headers, answer.chunks, answer.cut, answer.then
    if isinstance(status, bool) or not isinstance(status, int) or not 100 <= status <= 599:
        return f"status is an HTTP status from 100 to 599, and not {told_value(status)}"
    if not isinstance(headers, Mapping):
        return f"headers is a mapping from names to values, and not {told_value(headers)}"
    for pair in headers.items():
        if not all(isinstance(part, str) for part in pair):
            return f"headers is a mapping from strings to strings, and holds {told_value(pair)}"
    if isinstance(chunks, (bytes, bytearray, str)) or not isinstance(chunks, (tuple, list)):
        hint = f": write chunks=({chunks!r},)" if isinstance(chunks, bytes) and len(chunks) <= 100 else ""
        return f"chunks is a tuple of bytes, the pieces of the body, and not {told_value(chunks)}{hint}"
    for chunk in chunks:
        if not isinstance(chunk, bytes):
            return f"chunks is a tuple of bytes, and holds {told_value(chunk)}"
    if cut is not None and not isinstance(cut, Cut):
        name = cut.upper() if isinstance(cut, str) else ""
        meant = f"cut=Cut.{name}" if name in Cut.__members__ else f"one of Cut.{', Cut.'.join(Cut.__members__)}"
        return f"cut is a Cut, and not {told_value(cut)}: write {meant}"
    if then not in ("fail", "hang"):
        return f"then is 'fail' or 'hang', and not {told_value(then)}"
    if then == "hang" and cut is None:
        return "then says what happens where it is cut, and it is not: give cut= as well, such as cut=Cut.AFTER_REQUEST"
    return None
