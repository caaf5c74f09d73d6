"""Words that nobody can guess, each given once: of the system's generator, many at once because asking it costs time.

What waits here is in this process alone: a child that is forked, be it by a host that is not Python, begins with none,
so no two processes give one word.
"""

from __future__ import annotations

import os

SIZE = 16
"""Random bytes of one; it has twice as many hexadecimal digits."""
_MANY = 128
_waiting: dict[int, list[str]] = {}
"""The words of each process that this one was: only those under its own number are its own."""


def nonce() -> str:
    """A word that was never given before. May be called from any thread."""
    process = os.getpid()
    waiting = _waiting.get(process)
    if waiting is None:
        _waiting.clear()
        waiting = _waiting.setdefault(process, [])
    try:
        return waiting.pop()
    except IndexError:
        digits = os.urandom(SIZE * _MANY).hex()
        made = [digits[at : at + 2 * SIZE] for at in range(0, len(digits), 2 * SIZE)]
        own = made.pop()
        waiting.extend(made)
        return own
