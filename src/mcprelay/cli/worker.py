"""One server over HTTP, in a process of its own, on a listening socket that it inherits. See `succession`.

The process gets what it needs as JSON, says through a pipe that it is reachable, and ends when its standard input does,
so that it outlives nobody.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from mcprelay.cli.exit import Exit, ended
from mcprelay.cli.serve import EXIT_SECONDS

if TYPE_CHECKING:
    from mcprelay.server import Server


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What the process is to do.

    Attributes:
        source: What it serves; see `source.find_server`.
        socket: The descriptor it listens on.
        ready: The descriptor of the pipe to say through that it is reachable.
        options: Further options of `Server.serve`.
    """

    source: str
    socket: int
    ready: int
    options: dict[str, Any]


class Reachable(msgspec.Struct, frozen=True):
    """What the process says when it is."""

    name: str
    url: str


def main() -> None:
    """Serve as the first argument says, and end the process."""
    task = msgspec.json.decode(sys.argv[1], type=Task)
    for descriptor in (task.socket, task.ready):
        os.set_inheritable(descriptor, False)  # what the handlers start has no business with them
    sys.exit(ended(lambda: _serve(task), as_json=False))


def _serve(task: Task) -> Exit:
    from mcprelay.cli.source import find_server
    from mcprelay.server.running import fastest_loop
    from mcprelay.stdio.server import exit_within

    server = find_server(task.source)
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        runner.run(_serving(server, task))
    exit_within(EXIT_SECONDS)
    return Exit.DONE


async def _serving(server: Server, task: Task) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, over.set)  # nothing is ever written there: readable is ended
    async with server.serve("http", fd=task.socket, **task.options) as running:
        os.write(task.ready, msgspec.json.encode(Reachable(server.info.name, running.url)))
        os.close(task.ready)
        await over.wait()


if __name__ == "__main__":
    main()
