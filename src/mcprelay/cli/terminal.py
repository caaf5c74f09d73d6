"""A line that a person types at the terminal, while the loop goes on: Ctrl-C ends the waiting at once.

`input` in the loop's thread would keep Ctrl-C from everybody, and in another thread it would keep the process from
ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


async def typed(prompt: str) -> str:
    """The next line, without what ends it. The question goes to standard error, since it is no answer of the command.

    Ctrl-C does what it always does: it cancels what the command is about, and so whoever waits here.

    Raises:
        EOFError: There is none: the person pressed Ctrl-D.
    """
    loop = asyncio.get_running_loop()
    begun = asyncio.Event()
    try:
        loop.add_reader(sys.stdin.fileno(), begun.set)
    except NotImplementedError:  # a loop of Windows
        return input(prompt)  # noqa: ASYNC250 - nothing better is there
    try:
        with _at_once(loop):
            print(prompt, end="", file=sys.stderr, flush=True)
            await begun.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.removesuffix("\n")


def forget_typed() -> None:
    """Forget what was typed before a question is asked: it is no answer to what nobody had seen."""
    with contextlib.suppress(ImportError):  # on Windows
        import termios

        termios.tcflush(sys.stdin, termios.TCIFLUSH)


@contextlib.contextmanager
def _at_once(loop: asyncio.AbstractEventLoop) -> Generator[None]:
    """Have Ctrl-C wake the loop, also in the moment in which it falls asleep."""
    before = signal.getsignal(signal.SIGINT)
    if callable(before):
        loop.add_signal_handler(signal.SIGINT, before, signal.SIGINT, None)
    try:
        yield
    finally:
        if callable(before):
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, before)
