"""The server that clients of other people visit: that of the matrix, and a tool that takes its time.

`python house.py [TAPE]` serves it over stdio, and writes what passes into a file; tests serve it over HTTP.
"""

import asyncio
import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "src")]  # it is started by its path

from mcprelay import Context, Server  # noqa: E402 - found by the line above
from mcprelay.stdio import open_stdio  # noqa: E402 - the same
from tests.matrix.house import make as make_house  # noqa: E402 - the same
from tests.matrix.tape import Tape, TapedChannel  # noqa: E402 - the same

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


async def taped(path: Path) -> None:
    """Serve one client over stdio, and write down what passes."""
    tape = Tape(None)
    try:
        await make().serve_channel(TapedChannel(await open_stdio(), tape))
    finally:
        swapped = [{"server" if one.sender == "client" else "client": one.message} for one in tape.passed]
        await asyncio.to_thread(path.write_text, json.dumps(swapped), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        asyncio.run(taped(Path(sys.argv[1])))
    else:
        make().run()
