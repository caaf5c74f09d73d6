"""What a server says about its list of tools beside it: for how long a page is fresh, for whom, and that it changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcprelay.client.cache import Cache, Reading
from mcprelay.relay.listed import Hint

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

_LIST = "tools/list"
_TOOLS_CHANGED = "notifications/tools/list_changed"


class Notices(Cache):
    """Takes the place of the client's cache: keeps nothing, and hears what pages say of freshness, and of changes.

    Attributes:
        hints: What the pages of the list said that was begun last.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__(entries=0, now=lambda: 0.0)
        self.hints: list[Hint] = []
        self._told = changed
        self._list = Reading("", _LIST, None)

    @property
    def stale(self) -> bool:
        """Whether the server said that the list changed since it was last begun: each restart begins it anew."""
        return self._list.stale

    def begin(self, server: str, method: str, key: str | None) -> Reading:
        """Hear that something is asked for; the first page begins a list."""
        reading = super().begin(server, method, key)
        if method == _LIST and key is None:
            self._list = reading
            self.hints.clear()
        return reading

    def put(
        self,
        server: str,
        method: str,
        key: str | None,
        result: msgspec.Raw,
        *,
        ttl_ms: Any,
        scope: Any = None,
        authorization: Any = None,
    ) -> None:
        """Hear of a page."""
        if method == _LIST:
            self.hints.append(Hint(ttl_ms, scope))

    def changed(self, server: str, notice: str, uri: str | None) -> None:
        """Hear of a change."""
        if notice == _TOOLS_CHANGED:
            self._told()
