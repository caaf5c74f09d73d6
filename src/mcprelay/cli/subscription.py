"""What a client listens to (`subscriptions/listen`), while the server that tells it of changes is exchanged.

Knows the requests that are open, who serves each, and what the client was promised: a promise outlives the server that
made it. Sends nothing, and does not know when a server is exchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcprelay.cli.position import Position
from mcprelay.server.subscription import PROMPTS, RESOURCES, TOOLS, UPDATED, Change, notice
from mcprelay.wire import jsonrpc
from mcprelay.wire.params import SUBSCRIPTION_ID, AcknowledgedParams, CancelledParams, NotificationParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcprelay.types import RequestId, SubscriptionFilter

LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"

_decode_notice = msgspec.json.Decoder(NotificationParams).decode
_decode_cancelled = msgspec.json.Decoder(CancelledParams).decode
_decode_acknowledged = msgspec.json.Decoder(AcknowledgedParams).decode


class Subscription(Struct):
    """One open request.

    Attributes:
        line: The request as it came.
        server: Who serves it; one that ended goes on doing so until there is another.
        promised: What the client was told that it will hear of; None before it was told that.
    """

    line: bytes
    server: Position
    promised: tuple[Change, ...] | None = None


class Instead(Struct, frozen=True):
    """What is said in the place of a message from a server.

    Attributes:
        client: The lines for the client.
        server: The lines for the server that the message came from.
    """

    client: tuple[bytes, ...] = ()
    server: tuple[bytes, ...] = ()


class Subscriptions:
    """Everything that one client listens to."""

    def __init__(self) -> None:
        self._open: dict[RequestId, Subscription] = {}

    def begin(self, request_id: RequestId, line: bytes, server: Position) -> None:
        """The client asks a server to tell it of changes."""
        self._open[request_id] = Subscription(line, server)

    def end(self, request_id: RequestId | None) -> None:
        """It listens no more."""
        if request_id is not None:
            self._open.pop(request_id, None)

    def moved(self, server: Position) -> Iterator[bytes]:
        """Let another server serve all of it, request by request: each is sent to it before the next is taken."""
        for request_id in tuple(self._open):
            subscription = self._open.get(request_id)
            if subscription is not None:
                subscription.server = server
                yield subscription.line

    def judge(self, message: jsonrpc.Envelope, server: Position) -> Instead | None:
        """What is said in the place of a message, or None where it passes as it came."""
        if not self._open or message.is_request:
            return None
        request_id = _subject(message)
        subscription = None if request_id is None else self._open.get(request_id)
        if request_id is None or subscription is None:
            return None
        if subscription.server is not server:
            return Instead()  # it was exchanged: what it tells, and how it ends, is not of interest any more
        if message.method == ACKNOWLEDGED:
            return self._acknowledged(request_id, subscription, message.params)
        if message.is_response or message.method == CANCELLED:
            self.end(request_id)
        return None

    def _acknowledged(self, request_id: RequestId, held: Subscription, params: Raw | UnsetType) -> Instead | None:
        """The client gets one acknowledgement. After that of a later server, everything may be different."""
        try:
            honored = _changes(_decode_acknowledged(b"" if isinstance(params, UnsetType) else params).notifications)
        except msgspec.DecodeError:
            return None  # whoever listens says what is wrong with it
        if held.promised is None:
            held.promised = honored
            return None
        meta = jsonrpc.encode({SUBSCRIPTION_ID: request_id})
        if set(held.promised) <= set(honored):
            return Instead(client=tuple(notice(change, meta) for change in held.promised))
        self.end(request_id)
        ending = jsonrpc.response(request_id, b'{"resultType":"complete","_meta":%b}' % meta)
        cancellation = jsonrpc.notification(CANCELLED, b'{"requestId":%b}' % jsonrpc.encode(request_id))
        return Instead(client=(ending,), server=(cancellation,))


def _subject(message: jsonrpc.Envelope) -> RequestId | None:
    """The request that a message is about."""
    if message.id is not UNSET:
        return message.id
    if isinstance(message.params, UnsetType):
        return None
    try:
        if message.method == CANCELLED:
            return _decode_cancelled(message.params).request_id
        meta = _decode_notice(message.params).meta
    except msgspec.DecodeError:
        return None
    return None if meta is None else meta.subscription_id


def _changes(told: SubscriptionFilter) -> tuple[Change, ...]:
    """The changes that a filter lets through."""
    lists = {TOOLS: told.tools_list_changed, PROMPTS: told.prompts_list_changed, RESOURCES: told.resources_list_changed}
    uris = ((UPDATED, uri) for uri in told.resource_subscriptions)
    return (*((kind, None) for kind, on in lists.items() if on), *uris)
