"""Cross-origin requests of browsers: one switch, and the allowed origins are those of the host rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcprelay.core.work import Refusal

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from mcprelay.core.work import Head
    from mcprelay.server.stream import Send
    from mcprelay.wire.origin import HostRules

_METHODS = b"GET, POST, DELETE, OPTIONS"
_EXPOSED = b"mcp-session-id, mcp-protocol-version, www-authenticate, retry-after"
_SECONDS = b"3600"


class Cors:
    """Answers preflights and marks answers, for the origins that may use the server.

    Args:
        rules: Which origins those are.
    """

    def __init__(self, rules: HostRules) -> None:
        self._rules = rules

    def preflight(self, head: Head) -> Refusal | None:
        """The answer to a preflight request; None for every other request, and for an origin that is refused."""
        headers = head.headers
        if head.method != "OPTIONS" or b"access-control-request-method" not in headers or not self._allowed(head):
            return None
        return Refusal(
            204,
            b"",
            (
                (b"access-control-allow-origin", headers[b"origin"]),
                (b"access-control-allow-methods", _METHODS),
                (b"access-control-allow-headers", headers.get(b"access-control-request-headers", b"*")),
                (b"access-control-max-age", _SECONDS),
                (b"vary", b"origin"),
            ),
        )

    def marked(self, head: Head, send: Send) -> Send:
        """A `send` that lets a browser show the answer to the page that asked."""
        if not self._allowed(head):
            return send
        marks = [
            (b"access-control-allow-origin", head.headers[b"origin"]),
            (b"access-control-expose-headers", _EXPOSED),
            (b"vary", b"origin"),
        ]

        async def marking(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *marks]}
            await send(message)

        return marking

    def _allowed(self, head: Head) -> bool:
        origin, host = head.headers.get(b"origin"), head.headers.get(b"host")
        return origin is not None and self._rules.refusal(host, origin) is None
