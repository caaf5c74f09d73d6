"""What comes of an HTTP request on the server's side: work to be done, or a refusal.

Values only; `core.endpoint` makes them and a driver carries them out.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from mcprelay.revisions import Method, Revision
from mcprelay.wire import jsonrpc

JSON = b"application/json"
EVENT_STREAM = b"text/event-stream"


class Form(enum.Enum):
    """Which answers the client takes, as its `Accept` says."""

    EITHER = "either"
    JSON = "json"
    STREAM = "stream"
    NEITHER = "neither"


class Head(Struct):
    """The head of an HTTP request. Header names are lower-cased; a repeated header is joined with a comma."""

    method: str
    headers: Mapping[bytes, bytes]
    form: Form = Form.EITHER


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
    """Messages of the handshake era, in a session or (without an id) outside of any.

    Attributes:
        revision: What the header names; None where it names nothing and the session's own revision counts.
        session_id: The session.
        messages: One message, or those of a batch.
        batch: Whether they came as a batch.
    """

    revision: Revision | None
    session_id: str | None
    messages: list[jsonrpc.Message]
    batch: bool = False


class OpenStream(Struct):
    """A GET stream of a session, perhaps resumed."""

    revision: Revision | None
    session_id: str
    last_event_id: str | None


class EndSession(Struct):
    """The client is done with a session."""

    revision: Revision | None
    session_id: str


SessionWork: TypeAlias = InSession | OpenStream | EndSession
Work: TypeAlias = Exchange | Notice | Handshake | SessionWork


def single(work: SessionWork) -> jsonrpc.Message | None:
    """The message that came, if it was one."""
    return work.messages[0] if type(work) is InSession and not work.batch else None


def request_id(message: jsonrpc.Message | None) -> int | str | None:
    """Under which id a message is answered: that of a request, as far as it can be read."""
    if isinstance(message, jsonrpc.Malformed):
        return message.id if message.role == "request" else None
    if message is None or message.method is UNSET or message.id is UNSET:
        return None
    return message.id
