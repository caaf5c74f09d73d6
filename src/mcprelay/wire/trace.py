"""W3C trace context in `_meta`: `traceparent`, `tracestate`, `baggage` (basic, "OpenTelemetry trace context").

What a peer sends is read by the grammar and dropped where it breaks it: a trace is never a reason to refuse a request.
Knows no tracer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

KEYS = ("traceparent", "tracestate", "baggage")

_PARENT = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?")
_LIST = re.compile(r"[ -~\t]*")
_STATE_LENGTH = 512
_BAGGAGE_LENGTH = 8192


class TraceContext(Struct, frozen=True, omit_defaults=True):
    """Where a request stands in somebody's trace. Each member is as it was sent, and well-formed."""

    traceparent: str | None = None
    tracestate: str | None = None
    baggage: str | None = None

    def members(self) -> dict[str, str]:
        """What is said in the `_meta` of a request that is made for this one."""
        found = {"traceparent": self.traceparent, "tracestate": self.tracestate, "baggage": self.baggage}
        return {key: value for key, value in found.items() if value is not None}


def trace_of(meta: Mapping[str, Any]) -> TraceContext | None:
    """The trace context in a `_meta`, or None where there is none that is well-formed."""
    parent, state, baggage = (meta.get(key) for key in KEYS)
    if not _is_parent(parent):
        parent = state = None  # a state belongs to a parent (Trace Context, 3.3)
    if not _is_list(state, _STATE_LENGTH):
        state = None
    if not _is_list(baggage, _BAGGAGE_LENGTH):
        baggage = None
    if parent is None and baggage is None:
        return None
    return TraceContext(parent, state, baggage)


def _is_parent(value: Any) -> bool:
    found = _PARENT.fullmatch(value) if isinstance(value, str) else None
    return found is not None and (found[1] != "00" or found[2] is None)


def _is_list(value: Any, length: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= length and _LIST.fullmatch(value) is not None
