"""Who wants to hear of which changes, and telling them.

Changes are level triggers: two changes of the same list that a listener has not heard of yet are one. So what waits
for a slow listener is bounded by what there is to hear, and nothing is lost.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from mcprelay.errors import LimitExceeded
from mcprelay.types import SubscriptionFilter
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcprelay.ports import Session
    from mcprelay.types import ServerCapabilities

LISTEN_STREAMS = 10_000

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
    def of(cls, wanted: SubscriptionFilter) -> Self:
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
        self._on_loop(change)

    def _on_loop(self, change: Change | None) -> None:
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
        self._on_loop(None)

    async def changes(self) -> list[Change]:
        """What changed since the last time, waiting until something did. Empty when the server ends it."""
        while not self._pending and not self._closing:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        changes = list(self._pending)
        self._pending.clear()
        return changes


_DECLARED = {TOOLS: "tools", PROMPTS: "prompts", RESOURCES: "resources"}
_LISTS = frozenset(_DECLARED)


class SessionListener(Listener):
    """A session of the handshake era: it hears of every list whose changes are declared, and of the resources that it
    subscribes to meanwhile.

    Args:
        session: The session.
        capabilities: What the server declares at the moment; every list unless given.

    Attributes:
        stirred: Called on the loop when there is something to `take`, for a listener that does not wait.
    """

    __slots__ = ("_capabilities", "_session", "stirred")

    def __init__(self, session: Session, *, capabilities: Callable[[], ServerCapabilities] | None = None) -> None:
        super().__init__(_LISTS, frozenset())
        self._session = session
        self._capabilities = capabilities
        self.stirred: Callable[[], None] | None = None

    def wants(self, change: Change) -> bool:
        """Whether it asked to hear of that."""
        kind, uri = change
        if uri is not None:
            return uri in self._session.subscriptions
        if self._capabilities is None:
            return kind in _LISTS
        declared = getattr(self._capabilities(), _DECLARED[kind])
        return bool(declared and declared.get("listChanged"))

    def _wake(self, change: Change | None) -> None:
        super()._wake(change)
        if self.stirred is not None:
            self.stirred()

    def take(self) -> list[bytes] | None:
        """The notifications of what changed since the last time; None when the server has ended the listening."""
        if not self._pending:
            return None if self._closing else []
        changes = [notice(change) for change in self._pending]
        self._pending.clear()
        return changes


class Changes:
    """All listeners of a server.

    Args:
        listen_streams: How many of their streams may be open at once.
    """

    def __init__(self, listen_streams: int = LISTEN_STREAMS) -> None:
        self.listen_streams = listen_streams
        self._open = 0
        self._listeners: dict[Listener, None] = {}

    def opened(self) -> None:
        """A stream of changes is open, until `closed` is called.

        Raises:
            LimitExceeded: There are as many as may be (`listen_streams`).
        """
        if self._open >= self.listen_streams:
            raise LimitExceeded("listen_streams", self.listen_streams, what="the number of open listen streams")
        self._open += 1

    def closed(self) -> None:
        """A stream of changes is not open any more."""
        self._open -= 1

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
