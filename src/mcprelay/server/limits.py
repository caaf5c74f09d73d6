"""What a server bounds, each by a name that the error says when it is hit."""

from __future__ import annotations

from msgspec import Struct

from mcprelay.errors import ConfigurationError
from mcprelay.wire.spelling import Spelled

_LEAST = {"page_size": 1, "worker_threads": 1}
"""The least of those that cannot be nothing."""


class Limits(Struct, metaclass=Spelled, frozen=True, kw_only=True):
    """The limits of a server.

    Attributes:
        body_bytes: The body of an HTTP request.
        body_seconds: Seconds that the body of an HTTP request may take to come; 0 for as long as it takes.
        pending_bodies: How many HTTP requests may have their bodies on the way at once, per process.
        message_bytes: One message on stdio.
        depth: How deep a message may nest.
        batch_messages: How many messages a batch may hold, in the revision that has batches.
        concurrent_requests: How many requests are worked on at once, per process over HTTP and per channel elsewhere.
            Each request of a batch counts.
        detached_calls: How many calls of the handshake era run on over HTTP although their clients hung up; one more is
            cancelled.
        listen_streams: How many streams of change notifications are open at once.
        subscriptions: To how many resources one session, or one stream of change notifications, may listen.
        sessions: How many sessions of the handshake era are kept, by the store in memory.
        session_bytes: What a session remembers of its client, who says what that is: its name, its capabilities, and
            what it subscribed to.
        session_seconds: For how long a session is kept after its last request.
        stream_bytes: How much may wait for a slow reader of one event stream or channel; beyond it, progress is
            coalesced and log messages are dropped, and of a channel nothing more is received.
        file_bytes: How much is read of a file, stream or generator that a handler returns.
        event_log_bytes: How much of past event streams is kept in memory, so that a client that lost its connection
            can resume them; 0 for nothing.
        call_seconds: How long a handler may go on, the client's time for questions not counted; 0 for as long as it
            takes. Each may say its own (`timeout=`).
        worker_threads: How many `def` handlers run at once.
        abandoned_threads: How many more may be stuck in handlers whose calls were given up.
        state_bytes: The state that a client carries between the rounds of a call, before it is sealed.
        state_seconds: For how long that state is good.
        keep_alive: Seconds of silence after which a stream gets a comment; 0 for never.
        eof_grace: Seconds that calls in flight have to answer after a stdio client has closed its side.
        cancel_grace: Seconds that cancelled work has to end.
        shutdown_grace: Seconds that streams have to end when the server stops.
        page_size: How many entries a page of a list has; None puts everything in one page.

    Raises:
        ConfigurationError: One of them is no number, or is too small.
    """

    body_bytes: int = 4 * 2**20
    body_seconds: float = 30.0
    pending_bodies: int = 1024
    message_bytes: int = 64 * 2**20
    depth: int = 100
    batch_messages: int = 100
    concurrent_requests: int = 1024
    detached_calls: int = 1024
    listen_streams: int = 10_000
    subscriptions: int = 1000
    sessions: int = 10_000
    session_bytes: int = 128 * 1024
    session_seconds: float = 3600.0
    stream_bytes: int = 2**20
    file_bytes: int = 16 * 2**20
    event_log_bytes: int = 16 * 2**20
    call_seconds: float = 0.0
    worker_threads: int = 40
    abandoned_threads: int = 40
    state_bytes: int = 64 * 1024
    state_seconds: float = 3600.0
    keep_alive: float = 15.0
    eof_grace: float = 0.5
    cancel_grace: float = 2.0
    shutdown_grace: float = 1.0
    page_size: int | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value, least = getattr(self, name), _LEAST.get(name, 0)
            if value is None and name == "page_size":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= least:
                raise ConfigurationError(f"limits: {name} is a number of at least {least}, and not {value!r}")
