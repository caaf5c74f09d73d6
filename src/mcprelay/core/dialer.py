"""What HTTP says on the client's side, as values: a message becomes a request, a reply becomes messages.

The dialer knows the headers of each revision, the session's id, and what a reply's status and content type mean. It
keeps what HTTP makes a client remember (`revision`, `session`), and neither sends nor waits. Which era a server is of
is `probe`'s business.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcprelay.ports import Request
from mcprelay.wire import header, jsonrpc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcprelay.revisions import Revision
    from mcprelay.wire.jsonrpc import Envelope

SESSION = "Mcp-Session-Id"
LAST_EVENT_ID = "Last-Event-ID"
JSON = "application/json"
EVENT_STREAM = "text/event-stream"

_COMMON = [("Content-Type", JSON), ("Accept", f"{JSON}, {EVENT_STREAM}"), ("Accept-Encoding", "identity")]
_STREAM = [("Accept", EVENT_STREAM), ("Accept-Encoding", "identity"), ("Cache-Control", "no-store")]
_NAMES = 1024

RESERVED = frozenset(
    {
        "accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect",
        "host", "keep-alive", "last-event-id", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
"""Headers that the protocol or HTTP itself sets, lower-cased; those that begin with `mcp-` are reserved too."""


class Kind(enum.Enum):
    """What a reply's body is."""

    MESSAGE = "message"
    """One JSON-RPC message."""
    STREAM = "stream"
    """Server-sent events."""
    NOTHING = "nothing"
    """Accepted, and that is all there is to say."""
    REFUSAL = "refusal"
    """The status is not success; the body may hold a JSON-RPC error."""
    FOREIGN = "foreign"
    """Success with a body that is not of this protocol."""


class Addressed(Struct, frozen=True):
    """A message on its way out, with what its headers mirror.

    Attributes:
        body: The whole message.
        method: Its method, or None for an answer.
        name: What `Mcp-Name` mirrors, or None.
        mirrored: The `Mcp-Param-*` headers.
        extra: The headers that the user and the credentials add.
    """

    body: bytes
    method: str | None = None
    name: str | None = None
    mirrored: Sequence[tuple[str, str]] = ()
    extra: Sequence[tuple[str, str]] = ()


class Dialer:
    """One client's end of HTTP to one server.

    Attributes:
        url: The endpoint.
        revision: The revision that is agreed on in the handshake era, or None before that.
        session: The session's id, or None.
    """

    __slots__ = ("_heads", "_names", "revision", "session", "url")

    def __init__(self, url: str) -> None:
        self.url = url
        self.revision: Revision | None = None
        self.session: str | None = None
        self._heads: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._names: dict[str, tuple[str, str]] = {}

    def post(self, message: Addressed, *, revision: Revision | None) -> Request:
        """A message as an HTTP request in a revision; None while none is agreed on, which is before any session.

        Raises:
            HeaderInvalid: The method or the name cannot be carried in a header.
        """
        if revision is None or message.method is None or not revision.http.routing_headers:
            headers = [*_COMMON, *self._of_session(revision)]
        else:
            headers = self._routed(message.method, message.name, revision)
        headers += message.mirrored
        headers += message.extra
        return Request(url=self.url, headers=headers, body=message.body)

    def _routed(self, method: str, name: str | None, revision: Revision) -> list[tuple[str, str]]:
        head = self._heads.get((method, revision.name))
        if head is None:
            head = [*_COMMON, *header.standard(method, version=revision.name)]
            self._heads[method, revision.name] = head
        return head.copy() if name is None else [*head, self._named(name)]

    def _named(self, name: str) -> tuple[str, str]:
        named = self._names.get(name)
        if named is None:
            if len(self._names) >= _NAMES:
                self._names.clear()
            named = self._names[name] = (header.NAME, header.encode(name))
        return named

    def _of_session(self, revision: Revision | None) -> list[tuple[str, str]]:
        headers: list[tuple[str, str]] = []
        if revision is None:
            return headers
        if revision.http.version_header:
            headers.append((header.PROTOCOL_VERSION, revision.name))
        if self.session is not None:
            headers.append((SESSION, self.session))
        return headers

    def get(self, *, last_event_id: str | None = None, extra: Sequence[tuple[str, str]] = ()) -> Request:
        """Open the server's own stream, or resume a stream after an event."""
        headers = [*_STREAM, *self._of_session(self.revision), *extra]
        if last_event_id:
            headers.append((LAST_EVENT_ID, last_event_id))
        return Request(method="GET", url=self.url, headers=headers)

    def delete(self, *, extra: Sequence[tuple[str, str]] = ()) -> Request:
        """End the session."""
        headers = [*self._of_session(self.revision), *extra]
        return Request(method="DELETE", url=self.url, headers=headers)

    def opened(self, revision: Revision, headers: Mapping[str, str]) -> None:
        """Take what the reply to `initialize` agreed on. A session id that is not visible ASCII is not one."""
        self.revision = revision
        session = headers.get("mcp-session-id")
        usable = session is not None and session.isascii() and session.isprintable() and " " not in session and session
        self.session = session if usable and revision.http.sessions else None

    def forget(self) -> None:
        """The session is lost."""
        self.revision = None
        self.session = None


def kind_of(status: int, headers: Mapping[str, str]) -> Kind:
    """What the body of a reply is, by its head."""
    if not 200 <= status < 300:
        return Kind.REFUSAL
    media_type = headers.get("content-type", "")
    if media_type == JSON:
        return Kind.MESSAGE
    media_type = media_type.partition(";")[0].strip().lower()
    if media_type == JSON:
        return Kind.MESSAGE
    if media_type == EVENT_STREAM:
        return Kind.STREAM
    if status in (202, 204) or headers.get("content-length") == "0":
        return Kind.NOTHING
    return Kind.FOREIGN


def error_in(body: bytes, *, depth: int = jsonrpc.DEPTH) -> Envelope | None:
    """The JSON-RPC error in the body of a refusal, or None. Its id does not matter: the reply is to one request."""
    message = jsonrpc.parse(body, depth=depth)
    if isinstance(message, jsonrpc.Malformed) or not message.is_response or not message.error:
        return None
    return message


def is_reserved(name: str) -> bool:
    """Whether a header is the protocol's own, so that a user's may not stand in its place."""
    name = name.lower()
    return name in RESERVED or name.startswith("mcp-")


def field_fault(name: Any, value: Any) -> str | None:
    """Why a user's header cannot be sent, or None."""
    if not isinstance(name, str) or not isinstance(value, str):
        return f"the header {name!r} and its value must be strings"
    if is_reserved(name):
        return f"the header {name!r} is the protocol's own and cannot be set"
    if not name or not all(char in _TOKEN for char in name):
        return f"{name!r} is not a header name"
    if not value.isascii() or not value.replace("\t", " ").isprintable():
        return f"the value of the header {name!r} has a character that is not printable ASCII"
    return None


_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
