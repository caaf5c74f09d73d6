"""The server that clients of other people visit: that of the matrix, and a tool that takes its time.

`python house.py` serves it over stdio; tests serve it over HTTP.
"""

import asyncio
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "src")]  # it is started by its path

from mcprelay import Context, Server  # noqa: E402 - found by the line above
from tests.matrix.house import make as make_house  # noqa: E402 - the same

PAUSE = 0.02
"""Seconds. Some clients drop progress that arrives in one piece with the result."""


def make() -> Server:
    """A server of its own."""
    server = make_house()

    @server.tool
    async def walk(ctx: Context, steps: int) -> str:
        """Report every step, and rest after it."""
        for step in range(1, steps + 1):
            ctx.progress(step, steps)
            await asyncio.sleep(PAUSE)
        return "arrived"

    @server.tool
    async def spoken(ctx: Context) -> str:
        """Say which revision the call is in."""
        return ctx.protocol_version

    return server


if __name__ == "__main__":
    make().run()
