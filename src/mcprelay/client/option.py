"""The options that every call takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, TypedDict

from mcprelay.client.progress import OnLog, OnProgress
from mcprelay.client.retry import Retry
from mcprelay.types import LogLevel

Fields: TypeAlias = Mapping[str, str] | Callable[[], Mapping[str, str] | Awaitable[Mapping[str, str]]]
"""The headers of every request, or what gives them for each."""


class TimeOptions(TypedDict, total=False):
    """Until when.

    Attributes:
        timeout: Seconds from now, over everything: connecting, repetitions and questions included. `math.inf` is for
            ever. The client's `request_timeout` for each round, when left out.
        deadline: The same as a time of the loop's clock. With both, each progress message restarts the timeout, up to
            the deadline.
    """

    timeout: float | None
    deadline: float | None


class CallOptions(TimeOptions, total=False):
    """How a call is made.

    Attributes:
        idempotency_key: Says that calls with the same key are the same call: 1 to 255 visible ASCII characters.
        correlation_id: What the logs of both sides call it: 1 to 128 visible ASCII characters; another is replaced.
        on_progress: Hears of its progress.
        on_log: Hears of its log messages.
        log_level: From which level on.
        meta: More members of `_meta`.
        retry: When it is sent again.
    """

    idempotency_key: str | None
    correlation_id: str | None
    on_progress: OnProgress | None
    on_log: OnLog | None
    log_level: LogLevel | None
    meta: Mapping[str, Any] | None
    retry: Retry | None
