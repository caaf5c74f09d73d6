"""When a failed call may be sent again, and after which wait. Nothing is repeated unless a caller says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from mcprelay.client import misuse
from mcprelay.errors import CallFailed, ConnectFailed, ConnectionLost, Evidence, HttpError, RemoteError
from mcprelay.wire.spelling import Spelled

_DOUBLINGS = 1000
"""How often a wait is doubled: more often than any wait needs, and a float holds no more."""
_PASSING = frozenset({502, 504})
"""Statuses of what is in front of a server that was lost on the way, or is slow: the work may be done."""


class Retry(Struct, metaclass=Spelled, frozen=True, kw_only=True):
    """A caller's permission to repeat calls, for one call or for all of a client.

    What was not sent is repeated, unless that brings nothing, as where the client is not open. What may have been
    carried out, and failed for a reason that may pass (the connection was lost, the statuses 502 and 504), is repeated
    only if the caller says that this does no harm: by an `idempotency_key` on the call, or by `idempotent=True` here.
    A server's own hint never counts. The call's deadline covers all attempts and the waits between them. Connecting is
    repeated as part of a call that needs it; on its own (`connect`, a block, a pool's `get`) it is no call, and is not.

    Raises:
        ConfigurationError: One of them is of a wrong type, or out of its bounds.

    Attributes:
        attempts: How often a call is sent at most, the first time included.
        backoff: Seconds to wait before the second attempt; doubled each time.
        most: The longest wait in seconds.
        jitter: What part of each wait is random, 0 to 1.
        statuses: HTTP statuses after which a call is sent again without a key too: each is your word that a server that
            gives it has carried nothing out, as 429 and 503 mean it. After another one, such as 502 or 504, a call
            that did run may run twice. `Retry-After` is obeyed.
        idempotent: Whether every call under this permission may be carried out twice.
    """

    attempts: int = 3
    backoff: float = 0.2
    most: float = 10.0
    jitter: float = 0.5
    statuses: tuple[int, ...] = (429, 503)
    idempotent: bool = False

    def __post_init__(self) -> None:
        misuse.number("Retry: attempts", self.attempts, least=1, whole=True)
        misuse.number("Retry: backoff", self.backoff)
        misuse.number("Retry: most", self.most)
        misuse.number("Retry: jitter", self.jitter, most=1)
        misuse.statuses("Retry: statuses", self.statuses)
        misuse.switch("Retry: idempotent", self.idempotent)

    def allows(self, error: CallFailed, *, idempotent: bool) -> bool:
        """Whether the call may be sent again after this failure."""
        harmless = idempotent or self.idempotent
        if isinstance(error, (HttpError, RemoteError)) and error.status is not None:
            return error.status in self.statuses or (harmless and error.status in _PASSING)
        if error.evidence is Evidence.NOT_SENT:
            return isinstance(error, ConnectionLost) or (isinstance(error, ConnectFailed) and not error.lasting)
        return harmless and error.evidence is Evidence.MAYBE_SENT and isinstance(error, ConnectionLost)

    def wait(self, attempt: int, error: CallFailed, *, roll: Callable[[], float] | None = None) -> float:
        """Seconds to wait after this attempt, the first being 1. `roll` gives the chance in it, 0 to 1."""
        if roll is None:
            import random

            roll = random.random
        doubled = self.backoff * 2.0 ** min(attempt - 1, _DOUBLINGS)
        pause = min(self.most, doubled) * (1 - self.jitter * roll())
        asked = asked_to_wait(error.headers) if isinstance(error, (HttpError, RemoteError)) else None
        return pause if asked is None else max(pause, asked)


def asked_to_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait (RFC 9110, "Retry-After"), or None where it names no time."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    return _until(text)


def _until(text: str) -> float | None:
    """The seconds until an HTTP date, or None where the text is none."""
    if not text:
        return None
    import datetime as dt
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
        return max(0.0, (moment - dt.datetime.now(dt.UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
