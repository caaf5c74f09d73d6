"""Every limit and every wait of a client, with its default. A limit that is hit says its name."""

from __future__ import annotations

from msgspec import Struct

from mcprelay.client import misuse
from mcprelay.wire.jsonrpc import DEPTH
from mcprelay.wire.spelling import Spelled

_POSITIVE = frozenset({"request_timeout", "connect_timeout"})
"""Times in which nothing could be done, were they zero."""
_LEAST = {"connections": 1}
"""What a setting must be at least, where zero says nothing."""


class Settings(Struct, metaclass=Spelled, frozen=True, kw_only=True):
    """The settings of a client. Times are in seconds; `math.inf` is no limit, of each of them.

    Raises:
        ConfigurationError: One of them is no number, is negative, or counts something and is not whole.

    Attributes:
        request_timeout: How long a call may take when the caller says nothing.
        connect_timeout: How long a connection, a child process or a handshake may take.
        probe_timeout: How long a server that is not known may be silent on `server/discover` before `initialize` is
            sent too. Over HTTP, where nothing comes before the first call, it may be silent on that for as long first.
        close_timeout: How long closing may wait for the other side.
        pending_calls: How many calls may wait for an answer at once.
        concurrent_requests: How many questions of a server may be worked on at once (handshake era). One whose answer
            has not left yet is in work, so a server that asks without taking the answers is refused more.
        refusal_bytes: How many bytes of refusals, and of answers to pings, may wait for a server that does not take
            them; those beyond are dropped. One that leaves in a task of its own, as over HTTP, counts 4096 more.
        connections: How many HTTP connections may be open at once. The HTTP+SSE pair takes 3 at least.
        response_bytes: The longest answer, and the longest event of a stream, in bytes.
        response_values: How many values an answer may hold. Each takes some hundred bytes once it is read, however few
            it has on the wire.
        depth: How deep an answer may nest.
        input_rounds: How often one call may be answered with questions.
        input_requests: How many questions one round may hold.
        list_pages: How many pages of a list are read.
        list_items: How many items of a list are read.
        list_bytes: How many bytes the pages of a list may have together.
        cursor_bytes: How long the cursor of a page may be.
        list_restarts: How often a list is begun again because it changed while it was read.
        pending_events: How many different events may wait for a listener.
        pending_messages: How many progress or log messages may wait for a callback that is slow; of more, older ones
            are dropped.
        reconnections: How often in a row a listening with `reconnect=True` tries in vain to begin again.
        resumptions: How often a stream is resumed in a row without anything new (handshake era over HTTP).
        cache_entries: How many results are kept for as long as the server says that they are fresh.
        cache_bytes: How many bytes these results may have together.
    """

    request_timeout: float = 30.0
    connect_timeout: float = 10.0
    probe_timeout: float = 2.0
    close_timeout: float = 2.0
    pending_calls: int = 10_000
    concurrent_requests: int = 64
    refusal_bytes: int = 2**20
    connections: int = 1024
    response_bytes: int = 64 * 2**20
    response_values: int = 4_000_000
    depth: int = DEPTH
    input_rounds: int = 10
    input_requests: int = 64
    list_pages: int = 256
    list_items: int = 10_000
    list_bytes: int = 64 * 2**20
    cursor_bytes: int = 8192
    list_restarts: int = 3
    pending_events: int = 1024
    pending_messages: int = 1000
    reconnections: int = 20
    resumptions: int = 5
    cache_entries: int = 1024
    cache_bytes: int = 64 * 2**20

    def __post_init__(self) -> None:
        for name, default in zip(self.__struct_fields__, self.__struct_defaults__, strict=True):
            if name in _POSITIVE:
                misuse.duration(name, getattr(self, name))
                continue
            misuse.number(name, getattr(self, name), least=_LEAST.get(name, 0), whole=isinstance(default, int))


DEFAULTS = Settings()
