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
    from collections.abc import Callable, Generator


async def typed(prompt: str) -> str:
    """The next line, without what ends it.

    Raises:
        EOFError: There is none: the person pressed Ctrl-D.
        KeyboardInterrupt: The person pressed Ctrl-C.
    """
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[str] = loop.create_future()

    def ended(by: str) -> None:
        if not waiting.done():
            waiting.set_result(by)

    try:
        loop.add_reader(sys.stdin.fileno(), ended, "line")
    except NotImplementedError:  # a loop of Windows
        return input(prompt)  # noqa: ASYNC250 - nothing better is there
    try:
        with _told(loop, lambda: ended("Ctrl-C")):
            print(prompt, end="", flush=True)
            if await waiting == "Ctrl-C":
                raise KeyboardInterrupt
    finally:
        loop.remove_reader(sys.stdin.fileno())
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.removesuffix("\n")


@contextlib.contextmanager
def _told(loop: asyncio.AbstractEventLoop, told: Callable[[], None]) -> Generator[None]:
    """Call a function at Ctrl-C, in place of what is done else."""
    before = signal.getsignal(signal.SIGINT)
    loop.add_signal_handler(signal.SIGINT, told)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
