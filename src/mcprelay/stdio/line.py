"""Lines out of a byte stream, in time linear in its length, whatever the chunks are.

Knows LF and CRLF, empty lines (skipped) and the limit on a line's length. Knows no descriptor, no loop and no JSON.
"""

from __future__ import annotations

from typing import TypeAlias

from mcprelay.errors import LimitExceeded

MESSAGE_BYTES = 64 * 2**20
"""How long a line may be unless told otherwise."""

CR, LF = 13, 10
"""Line ends as integers: CPython looks for one byte in others several times as fast by its number."""

EXCERPT = 1024
"""How many bytes of either end of a line that was too long are kept."""


class LineTooLong(LimitExceeded):
    """A line was longer than `message_bytes`. It was discarded as it streamed, and what follows it is intact.

    Attributes:
        head: The first bytes of the line: enough to see what it was.
        tail: The last bytes of it, which overlap with nothing that was discarded in between.
    """

    def __init__(self, allowed: int, *, actual: int, head: bytes, tail: bytes) -> None:
        super().__init__("message_bytes", allowed, actual=actual, what="a line")
        self.head = head
        self.tail = tail


class Unended(bytes):
    """The last line of a stream that ended without a line end: whole for those who end no lines, or cut off."""


Line: TypeAlias = "bytes | LineTooLong"


class Splitter:
    """Turns chunks into lines. A line that is too long is reported once, in its place, when it ends."""

    __slots__ = ("_head", "_kept", "_limit", "_size", "_tail")

    def __init__(self, *, limit: int = MESSAGE_BYTES) -> None:
        """`limit` is in bytes, line end not counted."""
        self._limit = limit
        self._kept: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None  # set while a line that is too long is being discarded
        self._tail = b""

    def whole(self, chunk: bytes) -> bytes:
        """The line that a chunk is, if it is one and nothing else, as most are where one waits for the other."""
        if self._size or chunk[-1] != LF:
            return b""
        line = chunk[:-1]
        return b"" if LF in line or CR in line or len(line) > self._limit else line

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that this chunk completes, in order."""
        lines: list[Line]
        pieces = chunk.split(b"\n")
        rest = pieces.pop()
        if (self._size and pieces) or len(chunk) > self._limit or CR in chunk:
            lines = self._completed(pieces)
        else:
            lines = [piece for piece in pieces if piece]
        if rest:
            self._keep(rest)
        return lines

    def end(self) -> list[Line]:
        """What is left when the stream ends: the last line, as `Unended`, if it had no line end, else nothing."""
        return [Unended(line) if isinstance(line, bytes) else line for line in self._completed([b""])]

    def _completed(self, pieces: list[bytes]) -> list[Line]:
        lines: list[Line] = []
        for piece in pieces:
            self._keep(piece)
            if line := self._take():
                lines.append(line)
        return lines

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._head is not None:
            self._tail = (self._tail + piece)[-EXCERPT:]
            return
        self._kept.append(piece)
        if self._size > self._limit + 1:  # one more, which may be the CR of the line end
            self._head, self._tail = _ends(self._kept, self._size)
            self._kept.clear()

    def _take(self) -> Line:
        size, self._size = self._size, 0
        if self._head is not None:
            head, self._head = self._head, None
            return LineTooLong(self._limit, actual=size, head=head, tail=self._tail)
        line = b"".join(self._kept).removesuffix(b"\r")
        self._kept.clear()
        if len(line) > self._limit:
            return LineTooLong(self._limit, actual=size, head=line[:EXCERPT], tail=line[EXCERPT:][-EXCERPT:])
        return line


def _ends(pieces: list[bytes], size: int) -> tuple[bytes, bytes]:
    """The first and the last bytes of a long line in pieces, without a copy of the line: a hostile one is large."""
    head = tail = b""
    for piece in pieces:
        head += piece[: EXCERPT - len(head)]
        if len(head) == EXCERPT:
            break
    wanted = min(EXCERPT, max(0, size - EXCERPT))
    for piece in reversed(pieces):
        if len(tail) >= wanted:
            break
        tail = piece[-(wanted - len(tail)) :] + tail
    return head, tail
