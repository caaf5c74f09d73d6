"""Messages that wait for a reader, in order.

What is told without waiting is bounded by `stream_bytes`: beyond it, progress that has not left yet is replaced by
newer progress of the same request, and log messages are dropped. Answers, questions and changes are never dropped:
there are no more of them than were asked for.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("mcprelay.server")

STREAM_BYTES = 2**20
_PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress"'
_LOG = b'{"jsonrpc":"2.0","method":"notifications/message"'


class Outbox:
    """See the module.

    Args:
        stream_bytes: How much may wait.
    """

    __slots__ = ("_messages", "_size", "_thinning", "stream_bytes")

    def __init__(self, stream_bytes: int = STREAM_BYTES) -> None:
        self.stream_bytes = stream_bytes
        self._messages: list[bytes] = []
        self._size = 0
        self._thinning = False

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, message: bytes) -> None:
        """Let a message wait."""
        if self._size + len(message) > self.stream_bytes and self._messages and self._thinned(message):
            return
        self._messages.append(message)
        self._size += len(message)

    def take(self) -> list[bytes]:
        """Everything that waits."""
        messages, self._messages, self._size = self._messages, [], 0
        return messages

    def _thinned(self, message: bytes) -> bool:
        """Whether this message is done without, or stands in the place of an earlier one: the reader is slow."""
        is_log = message.startswith(_LOG)
        if not is_log and not message.startswith(_PROGRESS):
            return False
        if not self._thinning:
            self._thinning = True
            logger.warning("a slow client misses progress or log messages: stream_bytes=%d", self.stream_bytes)
        return is_log or self._replaced(message)

    def _replaced(self, message: bytes) -> bool:
        """Put progress in the place of the last progress of the same token that waits."""
        same = message[: message.find(b',"progress":', len(_PROGRESS))]
        messages = self._messages
        for index in range(len(messages) - 1, -1, -1):
            if messages[index].startswith(same):
                self._size += len(message) - len(messages[index])
                messages[index] = message
                return True
        return False
