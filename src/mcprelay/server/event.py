"""What an operator counts: one typed event for each thing that happens to a server.

An event says what happened, to which part of the server, and how long it took. It never holds an argument, a result, a
token, or a name that a client made up: names are the server's own. Observers learn of events and influence nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

if TYPE_CHECKING:
    from collections.abc import Callable

Kind: TypeAlias = Literal["tool", "resource", "resource template", "prompt"]


class Exchange(Struct, frozen=True, kw_only=True):
    """A request has its answer, or was cancelled.

    Attributes:
        method: What was asked.
        revision: In which protocol revision.
        transport: On what it came.
        outcome: `answered` with a result, with an `error`, or `cancelled` by the client.
        code: The JSON-RPC code of an error, else 0.
        seconds: From the decoded request to the encoded answer.
        correlation_id: What the call is called in the logs of both sides.
    """

    level: ClassVar[int] = logging.INFO
    name: ClassVar[str] = "exchange"

    method: str
    revision: str
    transport: Literal["http", "channel"]
    outcome: Literal["answered", "error", "cancelled"]
    code: int
    seconds: float
    correlation_id: str


class Handling(Struct, frozen=True, kw_only=True):
    """A handler has run.

    Attributes:
        kind: What it handles.
        target: The name of the tool or prompt, the URI of the resource, or the text of the template.
        outcome: It `completed`, `refused` with an error that the client may see, `asked` the client something, `failed`
            with any other exception, or was `cancelled`.
        error: The class of what it raised, if it did.
        seconds: How long it ran, with its dependencies.
        correlation_id: What the call is called in the logs of both sides.
    """

    level: ClassVar[int] = logging.INFO
    name: ClassVar[str] = "handler"

    kind: Kind
    target: str
    outcome: Literal["completed", "refused", "asked", "failed", "cancelled"]
    error: str | None
    seconds: float
    correlation_id: str


class Authorization(Struct, frozen=True, kw_only=True):
    """It was decided whether a request may go on.

    Attributes:
        decision: What was decided, and why.
        status: The HTTP status of a refusal, else 200.
    """

    level: ClassVar[int] = logging.INFO
    name: ClassVar[str] = "authorization"

    decision: Literal[
        "granted",
        "missing_token",
        "invalid_token",
        "wrong_resource",
        "insufficient_scope",
        "verifier_unavailable",
        "refused_by_context",
    ]
    status: int


class Subscription(Struct, frozen=True, kw_only=True):
    """A client began or ceased to listen: on a stream of change notifications, or as a session on a channel.

    Attributes:
        state: What happened.
        lists: The lists whose changes it hears of.
        resources: Of how many resources it hears; a session may subscribe to more meanwhile.
        seconds: How long it listened; 0 at the beginning.
    """

    level: ClassVar[int] = logging.INFO
    name: ClassVar[str] = "subscription"

    state: Literal["opened", "closed"]
    lists: tuple[str, ...]
    resources: int
    seconds: float


class Refusal(Struct, frozen=True, kw_only=True):
    """A request was refused before anything was done for it.

    Attributes:
        reason: Why, in one of few words: `busy`, `context` (the context function refused, or failed), `host`,
            `malformed`, `media_type`, `method`, `not_acceptable`, `not_found`, `origin`, `store` (the session store
            failed), `too_long`, `too_slow`, `unknown_target`, or `other`.
        status: The HTTP status, or 0 on a channel.
        code: The JSON-RPC code, or 0 where none was said.
    """

    level: ClassVar[int] = logging.INFO
    name: ClassVar[str] = "refusal"

    reason: str
    status: int = 0
    code: int = 0

    @classmethod
    def of(cls, status: int, reason: str = "") -> Refusal:
        """The refusal that an HTTP status is, unless the reason is given."""
        return cls(reason=reason or _REASONS.get(status, "other"), status=status)


_REASONS = {
    400: "malformed",
    403: "origin",
    404: "not_found",
    405: "method",
    406: "not_acceptable",
    408: "too_slow",
    413: "too_long",
    415: "media_type",
    421: "host",
    503: "busy",
}


class LimitHit(Struct, frozen=True, kw_only=True):
    """A limit was hit.

    Attributes:
        limit: The name of the setting.
        allowed: Its value.
    """

    level: ClassVar[int] = logging.WARNING
    name: ClassVar[str] = "limit"

    limit: str
    allowed: float


Event: TypeAlias = Exchange | Handling | Authorization | Subscription | Refusal | LimitHit


class Events:
    """Tells whoever wants to know. Whoever has something to tell looks first whether `observers` or `logged(INFO)` is
    true, so that nothing is made where nobody wants it.

    Args:
        logger: Where events are logged as they come: limits as warnings, everything else as information, each with its
            members in `record.mcp`.

    Attributes:
        observers: Who asked to be told.
        logged: Whether events of a level are logged.
    """

    __slots__ = ("_logger", "_meter", "logged", "observers")

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self.logged = logger.isEnabledFor
        self.observers: tuple[Callable[[Event], object], ...] = ()
        self._meter: Callable[[Event], object] | None = None

    def observe(self, observer: Callable[[Event], object]) -> None:
        """Call `observer(event)` for each event from now on, on the event loop: it must not block."""
        self.observers = (*self.observers, observer)

    def measure(self, meter: Callable[[Event], object]) -> None:
        """Let the one meter that there may be learn of each event."""
        if self._meter is not None:
            self.observers = tuple(each for each in self.observers if each is not self._meter)
        self._meter = meter
        self.observe(meter)

    def emit(self, event: Event) -> None:
        """Tell of an event. What an observer raises is logged and goes no further."""
        if self._logger.isEnabledFor(event.level):
            members = asdict(event)
            said = " ".join(f"{key}={_shown(value)}" for key, value in members.items())
            self._logger.log(event.level, "%s %s", event.name, said, extra={"mcp": {"event": event.name, **members}})
        for observer in self.observers:
            try:
                observer(event)
            except Exception:
                self._logger.exception("an observer failed at %s", event.name)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6f}"
    return ",".join(value) if isinstance(value, tuple) else str(value)
