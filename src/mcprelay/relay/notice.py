"""What a server says about its list of tools beside it: for how long a page is fresh, for whom, and that it changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcprelay.client.cache import Cache
from mcprelay.relay.listed import Hint

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

_LIST = "tools/list"
_TOOLS_CHANGED = "notifications/tools/list_changed"


class Notices(Cache):
    """Takes the place of the client's cache: keeps nothing, and hears what pages say of freshness, and of changes."""

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__(entries=0, now=lambda: 0.0)
        self.hints: list[Hint] = []
        self._told = changed

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
