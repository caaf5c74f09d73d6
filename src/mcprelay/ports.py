"""Every extension point, one `Protocol` each, with its ordering and atomicity promises.

An implementation proves itself with the kit in `mcprelay.testing` (`check_channel`, `check_sender`, `check_store`,
`check_log`, `check_bus`). Nothing here does I/O; the module only says what others promise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct, field

from mcprelay.errors import Evidence

SessionMode: TypeAlias = Literal["required", "optional", "off"]
"""Whether calls of the handshake era need a session, may have one, or never have one."""


@runtime_checkable
class Channel(Protocol):
    """A duplex transport of whole messages, with any framing: stdio, a socket, a queue.

    Messages arrive in the order in which they were sent, whole, or not at all.
    """

    async def receive(self) -> bytes:
        """The next message. `b""` is the end, and stays the end. Called from one task at a time."""
        ...

    async def send(self, data: bytes) -> None:
        """Hand one whole message over, in the order of the calls; may be called from several tasks.

        Raises:
            NotSent: No byte of the message left. Any other exception means that some may have left.
        """
        ...

    async def aclose(self) -> None:
        """End both directions; a pending `receive` returns `b""`. Closing twice is closing once."""
        ...


class Request(Struct, kw_only=True):
    """One HTTP request, as the client's `Sender` gets it.

    Attributes:
        method: `POST`, `GET` or `DELETE`.
        url: Absolute, http or https.
        headers: Names and values, in order. Values are ASCII and hold no control character.
        body: The whole body, or None.
        evidence: What is known of the sending so far. A `Sender` sets it to `NOT_SENT` when it starts, and to
            `MAYBE_SENT` before the first byte of the request may leave: it must be right at every moment, because a
            caller that is cancelled reads it.
    """

    method: str = "POST"
    url: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes | None = None
    evidence: Evidence = Evidence.MAYBE_SENT

    def __repr__(self) -> str:
        """Without headers, body and query: they can hold credentials."""
        return f"Request({self.method} {self.url.partition('?')[0]}, {self.evidence})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Nothing more than `repr` shows."""
        return []


class Reply(Protocol):
    """The answer to a `Request`, once its head is there."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Header names in lower case; the values of a repeated header joined with a comma."""
        ...

    async def read(self, limit: int) -> bytes:
        """The whole body.

        Raises:
            LimitExceeded: It is longer than `limit` bytes; no more than about that much was read.
            ConnectionLost: It ended early.
        """
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, in pieces of any size. Raises `ConnectionLost` when it ends early."""
        ...


class Sender(Protocol):
    """An HTTP client. It follows no redirect, keeps no cookie, decompresses nothing that it did not ask for."""

    def send(self, request: Request) -> AbstractAsyncContextManager[Reply]:
        """Send and give the reply once its head is there. Leaving the context early closes the stream.

        Raises:
            NotSent: No byte of the request left, and `request.evidence` says so.
            ConnectionLost: The connection ended before the head of the reply.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...


class Session(Struct, kw_only=True):
    """What a server remembers of a client of the handshake era."""

    id: str
    revision: str
    client_info: dict[str, Any] | None = None
    client_capabilities: dict[str, Any] = field(default_factory=dict)
    principal: str | None = None
    log_level: str | None = None
    subscriptions: set[str] = field(default_factory=set)
    initialized: bool = False


class SessionStore(Protocol):
    """Where sessions of the handshake era are kept. Each method is atomic by itself, also between processes.

    What `load` gives may be a copy. A server never saves it back: it renews a session with `touch` and changes it with
    `update`, so that several servers with one store do not undo what the others did.
    """

    async def load(self, id: str) -> Session | None:
        """The session, or None when it is unknown or its time is over."""
        ...

    async def save(self, id: str, session: Session, ttl: float) -> None:
        """Keep it for `ttl` seconds from now; when this returns, every `load` sees it."""
        ...

    async def touch(self, id: str, ttl: float) -> bool:
        """Keep what is there for `ttl` seconds from now, and change nothing of it. False when there is no such session,
        and then there is none afterwards.
        """
        ...

    async def update(self, id: str, change: Callable[[Session], None], ttl: float) -> Session | None:
        """Let `change` change the session in place, as it is now, keep that for `ttl` seconds, and return it; None when
        there is no such session, and then there is none afterwards.

        No other change is lost, and none comes between: where another one was faster, `change` is called again, with
        the session as that left it. It does nothing else, and gives the same when it is called twice.
        """
        ...

    async def drop(self, id: str) -> None:
        """Forget it. Dropping what is not there is no error."""
        ...


class EventLog(Protocol):
    """Events of resumable streams."""

    async def append(self, stream: str, data: bytes) -> str:
        """Keep an event and return its id, unique over all streams. It is durable before this returns, so that an id
        is never shown that cannot be resumed from.
        """
        ...

    def after(self, stream: str, event_id: str) -> AsyncIterator[tuple[str, bytes]]:
        """The later events of the stream, in order, as `(id, data)`. Iterating raises `KeyError`, before the first
        event, for an id that is not one of this stream's: a client may have guessed it, or it is not kept any more.
        """
        ...


class Bus(Protocol):
    """Fan-out between processes. At most once; events of one topic from one publisher keep their order."""

    async def publish(self, topic: str, data: bytes) -> None:
        """Hand an event to every present subscriber of the topic."""
        ...

    def subscribe(self, *topics: str) -> AbstractAsyncContextManager[AsyncIterator[tuple[str, bytes]]]:
        """Events of these topics as `(topic, data)`, from the moment the context is entered."""
        ...


class Sealer(Protocol):
    """Seals a server's request state: confidential and authentic, also across restarts when keys are given."""

    def seal(self, data: bytes, *, context: bytes) -> str:
        """An opaque text. `context` is bound to it and is not inside."""
        ...

    def open(self, text: str, *, context: bytes) -> bytes:
        """What was sealed.

        Raises:
            ValueError: It was tampered with, sealed under another key, or bound to another context.
        """
        ...


class TokenStore(Protocol):
    """Where a client's OAuth credentials are kept. Values are JSON text; each method is atomic by itself."""

    async def load(self, key: str) -> str | None:
        """The value, or None."""
        ...

    async def save(self, key: str, value: str) -> None:
        """Keep it; when this returns, a restart finds it."""
        ...

    async def drop(self, key: str) -> None:
        """Forget it."""
        ...


class Clock(Protocol):
    """Time, so that tests need not wait for it."""

    def monotonic(self) -> float:
        """Seconds that only grow."""
        ...

    def time(self) -> float:
        """Seconds since the epoch."""
        ...
