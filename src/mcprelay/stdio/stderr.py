"""What a child process says on its standard error: always drained, its tail kept, each line handed on if wanted."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from mcprelay.stdio.line import LineTooLong, Splitter

if TYPE_CHECKING:
    from collections.abc import Callable

TAIL_BYTES = 2**16
"""How much of the end is kept unless told otherwise."""

LINE_BYTES = 2**16
"""How much of one line is handed on."""

_logger = logging.getLogger("mcprelay.stdio")


class Stderr:
    """Takes chunks, keeps the last `tail_bytes` of them, and calls `on_line` with each line."""

    __slots__ = ("_kept", "_on_line", "_splitter", "_tail_bytes")

    def __init__(self, *, tail_bytes: int = TAIL_BYTES, on_line: Callable[[str], None] | None = None) -> None:
        """What `on_line` raises is logged, and it is not called again."""
        self._tail_bytes = tail_bytes
        self._on_line = on_line
        self._kept = bytearray()
        self._splitter = Splitter(limit=LINE_BYTES)

    @property
    def tail(self) -> str:
        """The end of what was said. What is not UTF-8 is replaced."""
        return self._kept[max(0, len(self._kept) - self._tail_bytes) :].decode(errors="replace")

    def feed(self, chunk: bytes) -> None:
        """Take what came; `b""` at the end."""
        self._kept += chunk
        if len(self._kept) > 2 * self._tail_bytes:
            del self._kept[: -self._tail_bytes or None]
        if self._on_line is not None:
            self._hand_on(chunk)

    def _hand_on(self, chunk: bytes) -> None:
        for line in self._splitter.feed(chunk) if chunk else self._splitter.end():
            text = line.head if isinstance(line, LineTooLong) else line
            try:
                if self._on_line is not None:
                    self._on_line(text.decode(errors="replace"))
            except (Exception, asyncio.CancelledError):  # nothing is awaited here: it is the function's own, and no end
                _logger.exception("the callback for a child's standard error failed, and is not called again")
                self._on_line = None
