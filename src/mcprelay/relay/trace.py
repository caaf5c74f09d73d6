"""Where something of the application's own failed, for its log: frames and kinds of exceptions, none of their words.

An exception's words may hold what it was raised about, such as a model's arguments or a server's text, which belong
into no log. The program finds them in the exception itself, which is the `__cause__` of what it gets.
"""

from __future__ import annotations

import traceback

from mcprelay.relay.failure import chain


def traced(error: BaseException) -> str:
    """The tracebacks of an exception and of its causes, the last one at the end."""
    parts: list[str] = []
    for each in reversed(list(chain(error))):
        parts.append("Traceback (most recent call last):\n")
        parts += traceback.format_tb(each.__traceback__)
        parts.append(f"{type(each).__qualname__}\n")
    return "".join(parts).rstrip("\n")
