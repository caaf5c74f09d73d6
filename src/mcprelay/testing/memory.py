"""A connected pair of channels in this process."""

from __future__ import annotations

from mcprelay.ports import Channel

BUFFERED_BYTES = 2**20


def memory_channels(*, buffered_bytes: int = BUFFERED_BYTES) -> tuple[Channel, Channel]:
    """Two ends: what one sends, the other receives. Real bytes, no sockets.

    `send` waits while more than `buffered_bytes` wait for the other end.

    Raises:
        ConfigurationError: That is no number.
    """
    from mcprelay.client import misuse
    from mcprelay.server.inprocess import MemoryChannel, Pipe

    misuse.number("buffered_bytes", buffered_bytes)
    there, back = Pipe(buffered_bytes), Pipe(buffered_bytes)
    return MemoryChannel(back, there), MemoryChannel(there, back)
