"""Server-sent events: messages to frames, and a stream of bytes back to events.

Knows the event stream format of the WHATWG HTML standard (section 9.2), to the letter on the reading side. Does not
know what the data means, and does not reconnect: it keeps what a reconnection needs, `last_event_id` and `retry`.

Reading never raises. The cost is linear in the bytes however they are cut into chunks, and what is held of one event is
bounded by `sse_event_bytes`: an event that is larger becomes an `Oversized` in its place, and the stream goes on.
"""

from __future__ import annotations

import re

from msgspec import Struct

EVENT_BYTES = 64 * 1024 * 1024
"""The limit of one event, `sse_event_bytes`, unless told otherwise."""

_LF = 10
_CR = 13
_COLON = 58  # a number is looked for in bytes three times as fast as a string of one
_BOM = b"\xef\xbb\xbf"
_LONGEST_RETRY = 15
_LINE_END = re.compile(rb"\r\n|\n|\r")


class Event(Struct, frozen=True):
    """One event.

    Attributes:
        data: The lines of data, joined by line feeds.
        event: The event's type.
        id: The last event id of the stream when the event was complete; empty when there was none.
        retry: The reconnection time in milliseconds that came with the event, or None.
    """

    data: bytes
    event: str = "message"
    id: str = ""
    retry: int | None = None


class Oversized(Struct, frozen=True):
    """Stands where an event was that is over the limit. Nothing of its data is kept.

    Attributes:
        limit: The limit in bytes.
        event: The event's type as far as it was read.
        id: The event id as far as it was read.
    """

    limit: int
    event: str = "message"
    id: str = ""

    @property
    def message(self) -> str:
        """One sentence that names the limit."""
        return (
            f"an event of the stream is over the limit: sse_event_bytes={self.limit}. Raise it to receive such events."
        )


def frame(data: bytes, *, id: str | None = None, event: str | None = None, retry: int | None = None) -> bytes:
    """The bytes of one event.

    Line ends inside the data become several `data` lines, so that the reader gets them back as line feeds.

    Args:
        data: The data, UTF-8.
        id: The event's id; an empty string resets the last event id of the reader.
        event: The event's type; `message` for the reader when left out.
        retry: The reconnection time in milliseconds.

    Raises:
        ValueError: An id or type has a line end, an id has a NUL, or `retry` is negative: no reader would get it back.
    """
    if _LF in data or _CR in data:
        data = _LINE_END.sub(b"\ndata: ", data)
    if id is None and event is None and retry is None:
        return b"data: " + data + b"\n\n"
    return _head(id, event, retry) + b"data: " + data + b"\n\n"


def comment(text: str = "") -> bytes:
    """A comment, which every reader ignores: it keeps a quiet stream open."""
    return b"".join(b": %b\n" % line for line in _LINE_END.split(text.encode())) + b"\n"


def _head(id: str | None, event: str | None, retry: int | None) -> bytes:
    head = ""
    if event is not None:
        if "\n" in event or "\r" in event:
            raise ValueError(f"the event type {event!r} has a line end")
        head = f"event: {event}\n"
    if id is not None:
        if "\n" in id or "\r" in id or "\0" in id:
            raise ValueError(f"the event id {id!r} has a line end or a NUL")
        head += f"id: {id}\n"
    if retry is not None:
        if retry < 0:
            raise ValueError(f"retry is a time in milliseconds, not {retry}")
        head += f"retry: {retry}\n"
    return head.encode()


class Parser:
    """Reads one event stream. Feed it what arrives; an event that the stream ends in the middle of is dropped.

    An event is oversized when its data lines, with the line being read, are longer than the limit. Comments do not
    count.

    Attributes:
        limit: The limit of one event in bytes (`sse_event_bytes`).
        last_event_id: What `Last-Event-ID` of a reconnection says: the id in force at the last complete event.
        retry: The reconnection time in milliseconds that the stream asked for last, or None.
    """

    __slots__ = (
        "_after_cr", "_data", "_event", "_event_retry", "_first", "_id", "_line", "_size", "_skipping", "last_event_id",
        "limit", "retry",
    )  # fmt: skip

    def __init__(self, *, limit: int = EVENT_BYTES) -> None:
        self.limit = limit
        self.last_event_id = ""
        self.retry: int | None = None
        self._line = bytearray()  # the line whose end has not come
        self._data: list[bytes] = []
        self._size = 0  # of the data lines of this event
        self._event = ""
        self._event_retry: int | None = None
        self._id = ""
        self._first = True  # no line is complete yet: a byte order mark may come
        self._after_cr = False  # the last chunk ended in a CR, so a LF that comes first belongs to it
        self._skipping = False  # this event is oversized

    @property
    def unfinished(self) -> bool:
        """Whether an event was begun whose end has not come."""
        return bool(self._data or self._event or self._skipping or (self._line and self._line[0] != _COLON))

    def feed(self, chunk: bytes) -> list[Event | Oversized]:
        """The events that this chunk completes, in order."""
        events: list[Event | Oversized] = []
        if self._after_cr or _CR in chunk:
            chunk = self._with_line_feeds(chunk)
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and (self._line or self._first):
            lines[0] = self._begun(lines[0])
        for line in lines:
            if not line:
                self._end(events)
            elif self._skipping or line[0] == _COLON:
                continue
            elif self._size + len(line) > self.limit:
                self._skip(events)
            elif line[:5] == b"data:":
                self._size += len(line)
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line == b"event: message":  # what most servers say of every event
                self._event = "message"
            else:
                self._field(line)
        if rest:
            self._keep(rest, events)
        return events

    def _with_line_feeds(self, chunk: bytes) -> bytes:
        """The chunk with each kind of line end as a line feed; a CR LF may be cut in two."""
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[0] == _LF:
                chunk = chunk[1:]
        if _CR in chunk:
            self._after_cr = chunk[-1] == _CR
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk

    def _begun(self, line: bytes) -> bytes:
        """The first line that ends in a chunk, with what came of it before."""
        if self._line:
            line = bytes(self._line + line)
            self._line = bytearray()
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        return line

    def _keep(self, rest: bytes, events: list[Event | Oversized]) -> None:
        """Hold a line whose end has not come, as far as it matters: of a comment, only that it is one."""
        line = self._line
        if self._skipping:
            line[:] = b":"
            return
        if not line.startswith(b":"):
            line += rest
        if self._first and not self._past_mark():
            return
        if line.startswith(b":"):
            del line[1:]
        elif self._size + len(line) > self.limit:
            self._skip(events)
            line[:] = b":"

    def _past_mark(self) -> bool:
        """Whether enough of the stream came to know that no byte order mark begins it (one that does is stripped)."""
        line = self._line
        if len(line) < len(_BOM) and _BOM.startswith(line):
            return False
        self._first = False
        if line.startswith(_BOM):
            del line[: len(_BOM)]
        return True

    def _field(self, line: bytes) -> None:
        """Any field but `data:`. Unknown ones are ignored."""
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry":
            if value.isdigit() and len(value) <= _LONGEST_RETRY:
                self.retry = self._event_retry = int(value)
        elif name == b"data":
            self._size += len(line)
            self._data.append(b"")

    def _skip(self, events: list[Event | Oversized]) -> None:
        events.append(Oversized(self.limit, self._event or "message", self._id))
        self._skipping = True
        self._data.clear()
        self._size = 0

    def _end(self, events: list[Event | Oversized]) -> None:
        """An empty line ends the event. Without data there is none, but its id counts."""
        self.last_event_id = self._id
        data = self._data
        if data:
            joined = data[0] if len(data) == 1 else b"\n".join(data)
            events.append(Event(joined, self._event or "message", self._id, self._event_retry))
            data.clear()
            self._size = 0
        self._event = ""
        self._event_retry = None
        self._skipping = False
