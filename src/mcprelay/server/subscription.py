"""Who wants to hear of which changes, and telling them.

Changes are level triggers: two changes of the same list that a listener has not heard of yet are one. So what waits
for a slow listener is bounded by what there is to hear, and nothing is lost.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcprelay.types import SubscriptionFilter
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcprelay.ports import Session

TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"

Change = tuple[str, str | None]
"""A notification and, for an updated resource, its URI."""


class Listener:
    """One listener, on the loop that it was made on."""

    __slots__ = ("_closing", "_loop", "_pending", "_waiter", "wanted", "wanted_uris")

    def __init__(self, wanted: frozenset[str], uris: frozenset[str]) -> None:
        self.wanted = wanted
        self.wanted_uris = uris
        self._pending: dict[Change, None] = {}
        self._waiter: asyncio.Future[None] | None = None
        self._closing = False
        self._loop = asyncio.get_running_loop()

    @classmethod
    def of(cls, wanted: SubscriptionFilter) -> Listener:
        """A listener for what a filter names."""
        kinds = {
            TOOLS: wanted.tools_list_changed,
            PROMPTS: wanted.prompts_list_changed,
            RESOURCES: wanted.resources_list_changed,
        }
        return cls(frozenset(kind for kind, on in kinds.items() if on), frozenset(wanted.resource_subscriptions))

    def wants(self, change: Change) -> bool:
        """Whether it asked to hear of that."""
        kind, uri = change
        return kind in self.wanted or (uri is not None and uri in self.wanted_uris)

    def tell(self, change: Change) -> None:
        """Remember a change for the listener. From any thread."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            self._wake(change)
            return
        try:
            self._loop.call_soon_threadsafe(self._wake, change)
        except RuntimeError:  # its loop is closed, and it with it
            return

    def _wake(self, change: Change | None) -> None:
        if change is not None:
            self._pending[change] = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        """The server ends the subscription: what is pending is still heard, then `changes` gives nothing."""
        self._closing = True
        self._wake(None)

    async def changes(self) -> list[Change]:
        """What changed since the last time, waiting until something did. Empty when the server ends the subscription."""
        while not self._pending and not self._closing:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        changes = list(self._pending)
        self._pending.clear()
        return changes


class SessionListener(Listener):
    """A session of the handshake era: it hears of every list, and of the resources that it subscribes to meanwhile."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        super().__init__(frozenset((TOOLS, PROMPTS, RESOURCES)), frozenset())
        self._session = session

    def wants(self, change: Change) -> bool:
        """Whether it asked to hear of that."""
        kind, uri = change
        return kind in self.wanted or uri in self._session.subscriptions


class Changes:
    """All listeners of a server."""

    def __init__(self) -> None:
        self._listeners: dict[Listener, None] = {}

    def __len__(self) -> int:
        return len(self._listeners)

    def __iter__(self) -> Iterator[Listener]:
        return iter(list(self._listeners))

    def add(self, listener: Listener) -> None:
        """Begin to tell a listener."""
        self._listeners[listener] = None

    def discard(self, listener: Listener) -> None:
        """Stop telling it."""
        self._listeners.pop(listener, None)

    def publish(self, kind: str, uri: str | None = None) -> None:
        """Tell everyone who wants to hear it. From any thread."""
        change = (kind, uri)
        for listener in self:
            if listener.wants(change):
                listener.tell(change)

    def close(self) -> None:
        """End every subscription of this server."""
        for listener in self:
            listener.close()


def notice(change: Change, subscription: bytes = b"") -> bytes:
    """The notification that tells of a change. `subscription` is the JSON of a `_meta` object, or empty."""
    kind, uri = change
    members = []
    if subscription:
        members.append(b'"_meta":' + subscription)
    if uri is not None:
        members.append(b'"uri":' + jsonrpc.encode(uri))
    return jsonrpc.notification(kind, b"{%b}" % b",".join(members) if members else b"")
