"""What HTTP says on the server's side, as values.

Admission has two steps, so that a body is read only for a caller who may send one: `open(head)` decides Origin, Host,
HTTP method and size; the driver then verifies the caller; `accept(head, body)` decides everything else. What comes out
is work to be done (`Exchange`, `Notice`, `Handshake`, `InSession`, `OpenStream`, `EndSession`) or a `Refusal`, which
is a complete HTTP answer.

The endpoint keeps no state: what a session knows is loaded by the driver. It does not know what is served, but for
`header_params`, which tells it the headers that mirror a tool's arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcprelay import revisions
from mcprelay.revisions import Era, Fault, Feature, Method, Revision
from mcprelay.wire import header, jsonrpc, mirror
from mcprelay.wire.params import CLIENT_CAPABILITIES, PROTOCOL_VERSION, Params

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcprelay.wire.mirror import HeaderParam
    from mcprelay.wire.origin import HostRules

BODY_BYTES = 4 * 2**20

JSON = b"application/json"
EVENT_STREAM = b"text/event-stream"

_VERSION = b"mcp-protocol-version"
_SESSION = b"mcp-session-id"
_decode_params = msgspec.json.Decoder(Params).decode
_no_params: tuple[HeaderParam, ...] = ()


class Head(Struct):
    """The head of an HTTP request. Header names are lower-cased; a repeated header is joined with a comma."""

    method: str
    headers: Mapping[bytes, bytes]


class Refusal(Struct):
    """A complete HTTP answer."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ((b"content-type", JSON),)


class Exchange(Struct):
    """One request of the stateless era: everything that is needed to answer it."""

    revision: Revision
    id: int | str
    method: Method
    params: Any
    raw: Raw | UnsetType


class Notice(Struct):
    """One notification of the stateless era. It is answered with 202."""

    revision: Revision
    method: str
    params: Raw | UnsetType


class Handshake(Struct):
    """`initialize`: a new session, or a plain answer where sessions are off."""

    message: jsonrpc.Envelope


class InSession(Struct):
    """Messages of the handshake era, in a session or (without an id) outside of any."""

    revision: Revision
    session_id: str | None
    messages: list[jsonrpc.Message]
    batch: bool = False


class OpenStream(Struct):
    """A GET stream of a session, perhaps resumed."""

    revision: Revision
    session_id: str | None
    last_event_id: str | None


class EndSession(Struct):
    """The client is done with a session."""

    session_id: str


Work: TypeAlias = Exchange | Notice | Handshake | InSession | OpenStream | EndSession


def _no_header_params(_tool: str) -> tuple[HeaderParam, ...]:
    return _no_params


class Endpoint:
    """The rules of the MCP endpoint.

    Args:
        rules: Which hosts and origins are served.
        among: The revisions that are served.
        body_bytes: How long a body may be.
        depth: How deep a message may nest.
        header_params: The `Mcp-Param-*` headers of a tool, by its name.
    """

    def __init__(
        self,
        rules: HostRules,
        *,
        among: Iterable[Revision] | None = None,
        body_bytes: int = BODY_BYTES,
        depth: int = jsonrpc.DEPTH,
        header_params: Callable[[str], tuple[HeaderParam, ...]] = _no_header_params,
    ) -> None:
        self.rules = rules
        self.revisions = tuple(revisions.ALL.values() if among is None else among)
        self.body_bytes = body_bytes
        self.depth = depth
        self.header_params = header_params
        self._named = {revision.name.encode(): revision for revision in self.revisions if revision.http.streamable}
        self._sessions = any(revision.http.sessions for revision in self._named.values())

    # --- step one: the head

    def open(self, head: Head) -> Refusal | None:
        """Whether the body may be read (after the caller is verified)."""
        headers = head.headers
        reason = self.rules.refusal(headers.get(b"host"), headers.get(b"origin"))
        if reason is not None:
            return Refusal(reason.status, jsonrpc.refusal(None, jsonrpc.INVALID_REQUEST, reason.message))
        if head.method == "POST":
            return self._open_post(headers)
        if head.method in ("GET", "DELETE") and self._sessions:
            return None
        allowed = b"GET, POST, DELETE" if self._sessions else b"POST"
        return Refusal(405, _say(f"{head.method} is not served here"), ((b"content-type", JSON), (b"allow", allowed)))

    def _open_post(self, headers: Mapping[bytes, bytes]) -> Refusal | None:
        length = headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length) > self.body_bytes:
            return self.too_long()
        kind = headers.get(b"content-type", b"")
        if kind != JSON and kind.partition(b";")[0].strip().lower() != JSON:
            return Refusal(415, _say("Content-Type must be application/json"))
        return None

    def too_long(self) -> Refusal:
        """The refusal of a body that is over the limit."""
        return Refusal(413, _say(f"the body is over the limit: body_bytes={self.body_bytes}"))

    # --- step two: the body

    def accept(self, head: Head, body: bytes) -> Work | Refusal:
        """What a POST asks for."""
        revision = self._named.get(head.headers.get(_VERSION, b""))
        message = jsonrpc.parse(body, depth=self.depth)
        if type(message) is not jsonrpc.Envelope:
            return self._malformed(head, body, message)
        if revision is None or revision.era is Era.HANDSHAKE:
            return self._other_era(head, message, revision)
        if message.method is UNSET:
            return Refusal(400, _say("a client sends no responses in this revision"))
        if message.id is UNSET:
            return Notice(revision, message.method, message.params)  # type: ignore[arg-type]
        return self._exchange(head.headers, message, revision)

    def _exchange(
        self, headers: Mapping[bytes, bytes], message: jsonrpc.Envelope, revision: Revision
    ) -> Exchange | Refusal:
        """Decode a request of the stateless era and hold its headers against its body."""
        method = revision.method(message.method)  # type: ignore[arg-type]
        params = message.params
        try:
            decoded = (_decode_params if method is None else method.decode)(b"{}" if params is UNSET else params)
        except msgspec.DecodeError as error:
            return self._refuse(revision, message, Fault.INVALID_PARAMS, f"Invalid params: {error}", status=400)
        meta = decoded.meta
        if meta.protocol_version is None or meta.client_capabilities is None:
            missing = PROTOCOL_VERSION if meta.protocol_version is None else CLIENT_CAPABILITIES
            why = f"Invalid params: params._meta must have {missing!r}"
            return self._refuse(revision, message, Fault.INVALID_PARAMS, why, status=400)
        wrong = self._disagreement(headers, message, method, decoded, revision)
        if wrong is not None:
            return self._refuse(revision, message, Fault.HEADER_MISMATCH, f"Header mismatch: {wrong}")
        if method is None:
            why = f"Method not found: {message.method}"
            return self._refuse(revision, message, Fault.METHOD_NOT_FOUND, why)
        return Exchange(revision, message.id, method, decoded, params)  # type: ignore[arg-type]

    def _disagreement(
        self,
        headers: Mapping[bytes, bytes],
        message: jsonrpc.Envelope,
        method: Method | None,
        params: Any,
        revision: Revision,
    ) -> str | None:
        """What the headers say otherwise than the body (streamable-http, "Server Validation")."""
        if params.meta.protocol_version != revision.name:
            return (
                f"MCP-Protocol-Version is {revision.name!r}, but _meta says {params.meta.protocol_version!r}"
            )
        mirrored = None if method is None or method.mirror is None else getattr(params, method.mirror)
        wrong = header.method_disagreement(headers, message.method, mirrored)  # type: ignore[arg-type]
        if wrong is not None or mirrored is None or method.mirror != "name":  # type: ignore[union-attr]
            return wrong
        expected = self.header_params(mirrored) if method.name == "tools/call" else _no_params  # type: ignore[union-attr]
        if not expected:
            return None
        return mirror.disagreement(expected, _arguments(params.arguments), headers)

    # --- the other era

    def _other_era(self, head: Head, message: jsonrpc.Envelope, revision: Revision | None) -> Work | Refusal:
        """A message whose header names no revision of the stateless era that is served."""
        named = head.headers.get(_VERSION)
        said = self._said(message)
        if said is not None:
            return self._mislabelled(message, said, named, revision)
        if message.method == "initialize" and message.id is not UNSET and self._sessions:
            return Handshake(message)
        if not self._sessions:
            return self._unsupported(message, (named or b"none").decode("latin-1"))
        if named is None:
            revision = self._named.get(revisions.ASSUMED_WITHOUT_HEADER.name.encode())
        if revision is None:
            return self._unsupported(message, (named or b"none").decode("latin-1"))
        return InSession(revision, _text(head.headers.get(_SESSION)), [message])

    def _mislabelled(
        self, message: jsonrpc.Envelope, said: str, named: bytes | None, revision: Revision | None
    ) -> Refusal:
        """A request of the stateless era under the wrong header, or of a revision that is not served."""
        if named is None:
            why = f"Header mismatch: MCP-Protocol-Version is missing; _meta says {said!r}"
            return self._refuse(self._stateless(), message, Fault.HEADER_MISMATCH, why)
        if said.encode() != named:
            why = f"Header mismatch: MCP-Protocol-Version is {named.decode('latin-1')!r}, but _meta says {said!r}"
            return self._refuse(self._stateless(), message, Fault.HEADER_MISMATCH, why)
        if revision is not None:
            why = f"Invalid request: revision {said!r} begins with initialize, not with _meta"
            return self._refuse(revision, message, Fault.INVALID_REQUEST, why)
        return self._unsupported(message, said)

    def _unsupported(self, message: jsonrpc.Envelope, requested: str) -> Refusal:
        supported = [revision.name for revision in self.revisions if revision.http.streamable]
        data = {"supported": supported, "requested": requested}
        why = f"Unsupported protocol version: {requested}"
        return self._refuse(self._stateless(), message, Fault.UNSUPPORTED_REVISION, why, data=data)

    def _stateless(self) -> Revision:
        return next(iter(revisions.of_era(Era.STATELESS, self.revisions)), revisions.NEWEST)

    def _said(self, message: jsonrpc.Envelope) -> str | None:
        """The revision that `_meta` names, where there is one."""
        if message.params is UNSET or message.method is UNSET:
            return None
        try:
            return _decode_params(message.params).meta.protocol_version  # type: ignore[arg-type]
        except msgspec.DecodeError:
            return None

    def _malformed(self, head: Head, body: bytes, message: jsonrpc.Malformed) -> Work | Refusal:
        """What is not a message is refused, unless it is a batch in a revision that has them."""
        revision = self._named.get(head.headers.get(_VERSION, revisions.ASSUMED_WITHOUT_HEADER.name.encode()))
        if revision is not None and revision.has(Feature.BATCH) and self._sessions and jsonrpc.is_batch(body):
            messages = jsonrpc.parse_batch(body, depth=self.depth)
            if isinstance(messages, list):
                return InSession(revision, _text(head.headers.get(_SESSION)), messages, batch=True)
            message = messages
        return Refusal(400, message.answer())

    def get(self, head: Head) -> OpenStream | Refusal:
        """What a GET asks for: the stream of a session."""
        if EVENT_STREAM not in head.headers.get(b"accept", b""):
            return Refusal(406, _say("GET opens a stream: Accept must list text/event-stream"))
        revision = self._of_session(head)
        if revision is None:
            return Refusal(405, _say("there is no GET stream in this revision"), ((b"allow", b"POST"),))
        last = _text(head.headers.get(b"last-event-id"))
        return OpenStream(revision, _text(head.headers.get(_SESSION)), last)

    def delete(self, head: Head) -> EndSession | Refusal:
        """What a DELETE asks for: the end of a session."""
        session_id = _text(head.headers.get(_SESSION))
        if self._of_session(head) is None:
            return Refusal(405, _say("there are no sessions in this revision"), ((b"allow", b"POST"),))
        if session_id is None:
            return Refusal(400, _say("Mcp-Session-Id is missing"))
        return EndSession(session_id)

    def _of_session(self, head: Head) -> Revision | None:
        named = head.headers.get(_VERSION, revisions.ASSUMED_WITHOUT_HEADER.name.encode())
        revision = self._named.get(named)
        return revision if revision is not None and revision.http.sessions else None

    # --- answers

    def _refuse(
        self,
        revision: Revision,
        message: jsonrpc.Envelope,
        fault: Fault,
        why: str,
        *,
        data: Any = None,
        status: int | None = None,
    ) -> Refusal:
        request_id = None if message.id is UNSET else message.id
        body = jsonrpc.refusal(request_id, revision.code(fault), why, data)  # type: ignore[arg-type]
        return Refusal(status or revision.http.status.get(fault, 400), body)


def _say(why: str) -> bytes:
    return jsonrpc.refusal(None, jsonrpc.INVALID_REQUEST, why)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")


def _arguments(raw: Raw | UnsetType) -> dict[str, Any]:
    """The arguments as plain data, to hold headers against; what is no object has no members."""
    if raw is UNSET:
        return {}
    value = msgspec.json.decode(raw)  # type: ignore[arg-type]
    return value if isinstance(value, dict) else {}
