"""Bearer protection at the door of an ASGI app: who is admitted, and the document that says how to get in.

What a token is worth is the verifier's business, and whether that is enough is `mcprelay.auth.resource`'s; here it
becomes an HTTP answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcprelay.auth.resource import Denied
from mcprelay.core.work import Refusal
from mcprelay.server.event import Authorization
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from mcprelay.auth.principal import Principal
    from mcprelay.auth.resource import Bearer
    from mcprelay.core.work import Head
    from mcprelay.server import Server
    from mcprelay.server.exchange import Scope

_JSON = (b"content-type", b"application/json")


class Door:
    """Lets in who has a good token. Used as `App(admit=…)`."""

    def __init__(self, server: Server, bearer: Bearer) -> None:
        self._server = server
        self._bearer = bearer

    async def __call__(self, _scope: Scope, head: Head) -> Principal | Refusal:
        """Who sent the request, or the refusal."""
        said = head.headers.get(b"authorization")
        found = await self._bearer.admit(
            None if said is None else said.decode("latin-1"), run=self._server.door_threads.run
        )
        if isinstance(found, Denied):
            self._server.events.emit(Authorization(decision=found.reason, status=found.status))
            return refused(found)
        self._server.events.emit(Authorization(decision="granted", status=200))
        return found


def refused(denied: Denied) -> Refusal:
    """The HTTP answer of a refusal (RFC 6750, 3)."""
    headers: list[tuple[bytes, bytes]] = [_JSON]
    if denied.challenge is not None:
        headers.append((b"www-authenticate", denied.challenge.encode("ascii")))
    if denied.status == 503:
        headers.append((b"retry-after", b"1"))
    body = jsonrpc.refusal(None, jsonrpc.INVALID_REQUEST, denied.message)
    return Refusal(denied.status, body, tuple(headers))


def metadata(bearer: Bearer, method: str) -> Refusal:
    """The answer to a request for the RFC 9728 document. It is for everyone, and may be kept for five minutes."""
    if method not in ("GET", "HEAD"):
        return Refusal(405, b"", ((b"allow", b"GET, HEAD"),))
    body = bearer.metadata if method == "GET" else b""
    return Refusal(200, body, (_JSON, (b"cache-control", b"max-age=300"), (b"access-control-allow-origin", b"*")))
