"""Words that nobody can guess, each given once: of the system's generator, many at once because asking it costs time.

What waits here is in this process alone: a child that is forked begins with none, so no two processes give one word.
"""

from __future__ import annotations

import contextlib
import os

SIZE = 16
"""Random bytes of one; it has twice as many hexadecimal digits."""
_MANY = 128
_waiting: list[str] = []


def nonce() -> str:
    """A word that was never given before. May be called from any thread."""
    try:
        return _waiting.pop()
    except IndexError:
        digits = os.urandom(SIZE * _MANY).hex()
        made = [digits[at : at + 2 * SIZE] for at in range(0, len(digits), 2 * SIZE)]
        own = made.pop()
        _waiting.extend(made)
        return own


with contextlib.suppress(AttributeError):  # where processes cannot be forked
    os.register_at_fork(after_in_child=_waiting.clear)
