"""What a server says without being asked: progress, log messages, changes, the end of a subscription.

Knows whom each concerns: the call that it names or whose stream it came on, or everybody. Answers nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcprelay.client.progress import LogMessage, Progress, logger
from mcprelay.wire.params import CancelledParams, MessageParams, NotificationParams, ProgressParams

if TYPE_CHECKING:
    from mcprelay.client.call import Call
    from mcprelay.client.link import Link

PROGRESS = "notifications/progress"
MESSAGE = "notifications/message"
CANCELLED = "notifications/cancelled"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
CHANGED = frozenset(
    {
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        UPDATED,
    }
)


class _UpdatedParams(NotificationParams, frozen=True, kw_only=True):
    uri: str | None = None


_decode_progress = msgspec.json.Decoder(ProgressParams).decode
_decode_message = msgspec.json.Decoder(MessageParams).decode
_decode_updated = msgspec.json.Decoder(_UpdatedParams).decode
_decode_cancelled = msgspec.json.Decoder(CancelledParams).decode


def take(link: Link, method: str, params: Raw | UnsetType, call: Call | None) -> None:
    """Take a notice that came over a link; `call` is the one whose own stream it came on, if any."""
    data: Any = b"{}" if params is UNSET else params
    try:
        if method == PROGRESS:
            _progressed(link, _decode_progress(data), call)
        elif method == MESSAGE:
            _logged(link, _decode_message(data), call)
        elif method in CHANGED or method == ACKNOWLEDGED:
            _changed(link, method, _decode_updated(data), params, call)
        elif method == CANCELLED:
            _torn_down(link, _decode_cancelled(data), params)
    except msgspec.DecodeError as error:
        link.unreadable += 1
        logger.debug("%s is malformed: %s", method, error)


def _progressed(link: Link, params: ProgressParams, call: Call | None) -> None:
    if call is None:
        pending = link.peer.pending.get(params.progress_token)
        call = None if pending is None else pending.slot
    if call is None or call.request_id != params.progress_token or call.on_progress is None:
        link.peer.dropped += 1  # nobody asked for it, or it comes late
        return
    if call.wait is not None and (owed := link.owed(call)) is not None:
        deadline = link.loop.time() + call.wait
        call.deadline = deadline if call.limit is None else min(deadline, call.limit)
        link.peer.extend(owed, call.deadline)
        link.watch.arm(call.deadline)
    if math.isfinite(params.progress):
        call.on_progress.hear(Progress(params.progress, params.total, params.message))


def _logged(link: Link, params: MessageParams, call: Call | None) -> None:
    """Log messages name no request: where the stream does not tell whose they are, all who listen hear them."""
    data = None if params.data is UNSET else params.data
    message = LogMessage(params.level, data, params.logger)
    calls = [pending.slot for pending in link.peer.pending.values()] if call is None else [call]
    hearings = {id(one.on_log): one.on_log for one in calls if one.on_log is not None}
    if not hearings and link.party.on_log is not None:
        hearings[0] = link.party.on_log
    for hearing in hearings.values():
        hearing.hear(message)


def _changed(link: Link, method: str, params: _UpdatedParams, raw: Raw | UnsetType, call: Call | None) -> None:
    if call is None and params.meta is not None and params.meta.subscription_id is not None:
        pending = link.peer.pending.get(params.meta.subscription_id)
        call = None if pending is None else pending.slot
    if method != ACKNOWLEDGED:
        link.party.changed(method, params.uri)
    if call is not None and call.notice is not None:
        call.notice(method, raw)


def _torn_down(link: Link, params: CancelledParams, raw: Raw | UnsetType) -> None:
    """The server ends a subscription of ours (patterns/cancellation)."""
    pending = None if params.request_id is None else link.peer.pending.get(params.request_id)
    call = None if pending is None else pending.slot
    if call is not None and call.notice is not None:
        call.notice(CANCELLED, raw)
