"""What HTTP says on the server's side: the rules.

Admission has two steps, so that a body is read only for a caller who may send one: `open(head)` decides Origin, Host,
HTTP method, media types and size; the driver then verifies the caller; `accept(head, body)` decides everything else.
What comes out is `core.work`.

The endpoint keeps no state: what a session knows is loaded by the driver, which asks `fits` whether the work is for
that session. It does not know what is served, but for `header_params`, which tells it the headers that mirror a tool's
arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcprelay import revisions
from mcprelay.core.work import (
    EVENT_STREAM,
    JSON,
    EndSession,
    Exchange,
    Form,
    Handshake,
    Head,
    InSession,
    Notice,
    OpenStream,
    Refusal,
    SessionWork,
    Work,
    request_id,
    single,
)
from mcprelay.revisions import Era, Fault, Feature, Method, Revision
from mcprelay.wire import header, jsonrpc, mirror
from mcprelay.wire.field import shown
from mcprelay.wire.params import CLIENT_CAPABILITIES, PROTOCOL_VERSION, Params

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcprelay.ports import SessionMode
    from mcprelay.wire.mirror import HeaderParam
    from mcprelay.wire.origin import HostRules

BODY_BYTES = 4 * 2**20

_VERSION = b"mcp-protocol-version"
_SESSION = b"mcp-session-id"
_VERSION_IN_BODY = PROTOCOL_VERSION.encode()
_BOTH = frozenset((b"application/json, text/event-stream", b"text/event-stream, application/json", b"*/*"))
_FORMS = {(True, True): Form.EITHER, (True, False): Form.JSON, (False, True): Form.STREAM, (False, False): Form.NEITHER}
_JSON_RANGES = (JSON, b"application/*", b"*/*")
_STREAM_RANGES = (EVENT_STREAM, b"text/*", b"*/*")
_decode_params = msgspec.json.Decoder(Params).decode
_no_params: tuple[HeaderParam, ...] = ()


def _no_header_params(_tool: str) -> tuple[HeaderParam, ...]:
    return _no_params


def form_of(accept: bytes | None) -> Form:
    """Which answers an `Accept` header takes (RFC 9110, 12.5.1); without one, all."""
    if accept is None or accept in _BOTH:
        return Form.EITHER
    ranges = set()
    for item in accept.lower().split(b","):
        name, *parameters = (part.strip() for part in item.split(b";"))
        if not any(part.startswith(b"q=") and not part[2:].strip(b"0.") for part in parameters):
            ranges.add(name)
    return _FORMS[not ranges.isdisjoint(_JSON_RANGES), not ranges.isdisjoint(_STREAM_RANGES)]


class Endpoint:
    """The rules of the MCP endpoint.

    Args:
        rules: Which hosts and origins are served.
        among: The revisions that are served.
        body_bytes: How long a body may be.
        depth: How deep a message may nest.
        sessions: Whether calls of the handshake era need a session.
        header_params: The `Mcp-Param-*` headers of a tool, by its name.
    """

    def __init__(
        self,
        rules: HostRules,
        *,
        among: Iterable[Revision] | None = None,
        body_bytes: int = BODY_BYTES,
        depth: int = jsonrpc.DEPTH,
        sessions: SessionMode = "required",
        header_params: Callable[[str], tuple[HeaderParam, ...]] = _no_header_params,
    ) -> None:
        self.rules = rules
        self.revisions = tuple(revisions.ALL.values() if among is None else among)
        self.body_bytes = body_bytes
        self.depth = depth
        self.header_params = header_params
        self._named = {revision.name.encode(): revision for revision in self.revisions}
        self._handshake = bool(revisions.of_era(Era.HANDSHAKE, self.revisions))
        self._sessions: SessionMode = sessions if self._handshake else "off"

    @property
    def has_sessions(self) -> bool:
        """Whether `initialize` begins a session."""
        return self._sessions != "off"

    # --- step one: the head

    def open(self, head: Head) -> Refusal | None:
        """Whether the body may be read (after the caller is verified)."""
        refusal = self.admit(head)
        if refusal is not None:
            return refusal
        if head.method == "POST":
            return self.open_post(head)
        if head.method in ("GET", "DELETE") and self._sessions != "off":
            return None
        return self._not_served(head)

    def admit(self, head: Head) -> Refusal | None:
        """Whether requests from there, for this host, are answered at all."""
        headers = head.headers
        reason = self.rules.refusal(headers.get(b"host"), headers.get(b"origin"))
        return None if reason is None else Refusal(reason.status, _say(reason.message))

    def open_post(self, head: Head) -> Refusal | None:
        """Whether the body of a POST may be read, as far as its media types and its length tell."""
        headers = head.headers
        length = headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length) > self.body_bytes:
            return self.too_long()
        kind = headers.get(b"content-type", b"")
        if kind != JSON and kind.partition(b";")[0].strip().lower() != JSON:
            return Refusal(415, _say("Content-Type must be application/json"))
        accept = headers.get(b"accept")
        if accept is not None and accept not in _BOTH:
            head.form = form_of(accept)
            if head.form is Form.NEITHER:
                return Refusal(406, _say("Accept must list application/json and text/event-stream"))
        return None

    def _not_served(self, head: Head) -> Refusal:
        allowed = b"POST, OPTIONS" if self._sessions == "off" else b"GET, POST, DELETE, OPTIONS"
        if head.method == "OPTIONS":
            return Refusal(204, b"", ((b"allow", allowed),))
        return Refusal(405, _say(f"{head.method} is not served here"), ((b"content-type", JSON), (b"allow", allowed)))

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
            return self._other_era(head, body, message, revision)
        if message.method is UNSET:
            return Refusal(400, _say("a client sends no responses in this revision"))
        if message.id is UNSET:
            return Notice(revision, message.method, message.params)
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
            return f"MCP-Protocol-Version is {revision.name!r}, but _meta says {params.meta.protocol_version!r}"
        mirrored = None if method is None or method.mirror is None else getattr(params, method.mirror)
        wrong = header.method_disagreement(headers, message.method, mirrored)  # type: ignore[arg-type]
        if wrong is not None or mirrored is None or method.mirror != "name":  # type: ignore[union-attr]
            return wrong
        expected = self.header_params(mirrored) if method.name == "tools/call" else _no_params  # type: ignore[union-attr]
        if not expected:
            return None
        return mirror.disagreement(expected, _arguments(params.arguments), headers)

    # --- the handshake era

    def _other_era(
        self, head: Head, body: bytes, message: jsonrpc.Envelope, revision: Revision | None
    ) -> Work | Refusal:
        """A message whose header names no revision of the stateless era that is served."""
        named = head.headers.get(_VERSION)
        if _VERSION_IN_BODY in body and (said := _said(message)) is not None:
            return self._mislabelled(message, said, named, revision)
        if not self._handshake:
            return self._unsupported(message, (named or b"none").decode("latin-1"))
        if message.method == "initialize" and message.id is not UNSET:
            return Handshake(message)
        return self._in_session(head, [message], revision)

    def _in_session(
        self, head: Head, messages: list[jsonrpc.Message], revision: Revision | None, *, batch: bool = False
    ) -> InSession | Refusal:
        """Messages for a session, or for none where none is needed."""
        first = None if batch else messages[0]
        named = head.headers.get(_VERSION)
        if revision is None and named is not None:
            return self._unsupported(first, named.decode("latin-1"))
        if self._sessions == "off":
            session_id = None
        elif conflicts := getattr(head.headers, "conflicts", ()):
            return self._invalid(revision or revisions.NEWEST_HANDSHAKE, first, _about_conflict(conflicts[0]))
        else:
            session_id = _text(head.headers.get(_SESSION))
            if session_id is None and self._sessions == "required":
                return self._without_session(first, revision)
        if session_id is None and revision is None:
            revision = self._named.get(revisions.ASSUMED_WITHOUT_HEADER.name.encode())
            if revision is None:
                return self._unsupported(first, "none")
        return InSession(revision, session_id, messages, batch)

    def _without_session(self, message: jsonrpc.Message | None, revision: Revision | None) -> Refusal:
        why = "Mcp-Session-Id is missing: send initialize first, and its answer's Mcp-Session-Id with every request"
        return self._invalid(revision or revisions.NEWEST_HANDSHAKE, message, why)

    def _malformed(self, head: Head, body: bytes, message: jsonrpc.Malformed) -> Work | Refusal:
        """What is not a message is refused, unless it is a batch and the revision may have them."""
        named = head.headers.get(_VERSION)
        revision = None if named is None else self._named.get(named)
        may_batch = revision.has(Feature.BATCH) if revision is not None else named is None and self._handshake
        if may_batch and jsonrpc.is_batch(body):
            messages = jsonrpc.parse_batch(body, depth=self.depth)
            if isinstance(messages, list):
                return self._in_session(head, messages, revision, batch=True)
            message = messages
        if message.role == "response" and self._handshake and (revision is None or revision.era is Era.HANDSHAKE):
            return self._in_session(head, [message], revision)  # who asked what it answers is waiting for it
        return Refusal(400, answer_in(revision, message.answer()))

    def fits(self, work: SessionWork, revision: Revision) -> Refusal | None:
        """Why this work is not for a session of that revision, or None when it is."""
        if work.revision is not None and work.revision is not revision:
            why = f"MCP-Protocol-Version is {work.revision.name!r}, but initialize agreed on {revision.name!r}"
            return self._invalid(revision, single(work), why)
        if type(work) is InSession and work.batch and not revision.has(Feature.BATCH):
            return self._invalid(revision, None, f"there are no batches in revision {revision.name}: send one message")
        return None

    def unknown_session(self, work: SessionWork) -> Refusal:
        """There is no such session (any more), so the client begins a new one (transports, "Session Management")."""
        why = "Session not found: it has ended, or never was. Send initialize without Mcp-Session-Id to begin another"
        revision = work.revision or revisions.NEWEST_HANDSHAKE
        return self._refuse(revision, single(work), Fault.INVALID_REQUEST, why, status=404)

    def _mislabelled(
        self, message: jsonrpc.Envelope, said: str, named: bytes | None, revision: Revision | None
    ) -> Refusal:
        """A request of the stateless era under the wrong header, or of a revision that is not served."""
        if named is None:
            why = f"Header mismatch: MCP-Protocol-Version is missing; _meta says {shown(said)}"
            return self._refuse(self._stateless(), message, Fault.HEADER_MISMATCH, why)
        if said.encode() != named:
            header_says = shown(named.decode("latin-1"))
            why = f"Header mismatch: MCP-Protocol-Version is {header_says}, but _meta says {shown(said)}"
            return self._refuse(self._stateless(), message, Fault.HEADER_MISMATCH, why)
        if revision is not None:
            why = f"Invalid request: revision {said!r} begins with initialize, not with _meta"
            return self._refuse(revision, message, Fault.INVALID_REQUEST, why)
        return self._unsupported(message, said)

    def _unsupported(self, message: jsonrpc.Message | None, requested: str) -> Refusal:
        data = {"supported": [revision.name for revision in self.revisions], "requested": requested}
        why = f"Unsupported protocol version: {requested}"
        return self._refuse(self._stateless(), message, Fault.UNSUPPORTED_REVISION, why, data=data)

    def _stateless(self) -> Revision:
        return next(iter(revisions.of_era(Era.STATELESS, self.revisions)), revisions.NEWEST)

    def get(self, head: Head) -> OpenStream | Refusal:
        """What a GET asks for: the stream of a session."""
        if form_of(head.headers.get(b"accept")) not in (Form.EITHER, Form.STREAM):
            return Refusal(406, _say("GET opens a stream: Accept must list text/event-stream"))
        found = self._of_session(head)
        if isinstance(found, Refusal):
            return found
        return OpenStream(*found, _text(head.headers.get(b"last-event-id")))

    def delete(self, head: Head) -> EndSession | Refusal:
        """What a DELETE asks for: the end of a session."""
        found = self._of_session(head)
        return found if isinstance(found, Refusal) else EndSession(*found)

    def _of_session(self, head: Head) -> tuple[Revision | None, str] | Refusal:
        named = head.headers.get(_VERSION)
        revision = None if named is None else self._named.get(named)
        if conflicts := getattr(head.headers, "conflicts", ()):
            return Refusal(400, answer_in(revision, _say(_about_conflict(conflicts[0]))))
        if revision is not None and not revision.http.sessions:
            why = f"there are no sessions in revision {revision.name}"
            return Refusal(405, _say(why), ((b"content-type", JSON), (b"allow", b"POST, OPTIONS")))
        if named is not None and revision is None:
            return Refusal(400, _say(f"Unsupported protocol version: {shown(named.decode('latin-1'))}"))
        session_id = _text(head.headers.get(_SESSION))
        if session_id is None:
            return Refusal(400, answer_in(revision, _say(f"{head.method} is for a session: Mcp-Session-Id is missing")))
        return revision, session_id

    # --- answers

    def _invalid(self, revision: Revision, message: jsonrpc.Message | None, why: str) -> Refusal:
        return self._refuse(revision, message, Fault.INVALID_REQUEST, why, status=400)

    def _refuse(
        self,
        revision: Revision,
        message: jsonrpc.Message | None,
        fault: Fault,
        why: str,
        *,
        data: Any = None,
        status: int | None = None,
    ) -> Refusal:
        body = jsonrpc.refusal(request_id(message), revision.code(fault), why, data)
        return Refusal(status or revision.http.status.get(fault, 400), answer_in(revision, body))


def answer_in(revision: Revision | None, error: bytes) -> bytes:
    """An error as the revision has it: where what it answers could not be read, some say so with a null id."""
    if revision is None or revision.has(Feature.ERRORS_WITHOUT_ID):
        return error
    return jsonrpc.with_null_id(error)


def _say(why: str) -> bytes:
    return jsonrpc.refusal(None, jsonrpc.INVALID_REQUEST, why)


def _about_conflict(key: bytes) -> str:
    return f"the header {key.decode('latin-1')} came more than once with different values"


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")


def _said(message: jsonrpc.Envelope) -> str | None:
    """The revision that `_meta` names, where there is one."""
    if message.params is UNSET or message.method is UNSET:
        return None
    try:
        return _decode_params(message.params).meta.protocol_version
    except msgspec.DecodeError:
        return None


def _arguments(raw: Raw | UnsetType) -> dict[str, Any]:
    """The arguments as plain data, to hold headers against; what is no object has no members."""
    if raw is UNSET:
        return {}
    value = msgspec.json.decode(raw)
    return value if isinstance(value, dict) else {}
