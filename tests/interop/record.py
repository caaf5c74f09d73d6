"""Records what clients and servers of other people say: `python -m tests.interop.record`.

Their halves are played to our server and our client by `tests/matrix/test_foreign.py`, where nobody needs them.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from mcprelay import Client
from mcprelay.client.memory import Memory
from mcprelay.stdio import ChildChannel
from tests.interop.process import output_of
from tests.interop.run import CLIENTS, SERVERS, Run
from tests.interop.visit import ANSWERS, use_everything
from tests.matrix import conversation
from tests.matrix.tape import Passed, Tape, TapedChannel

HOUSE = Path(__file__).parent / "house.py"
RECORDED = [run for run in (*CLIENTS, *SERVERS) if run.transport == "stdio" and run.name.startswith(("python", "type"))]


def name_of(run: Run) -> str:
    """The name of a recorded conversation."""
    return f"{'client' if run in CLIENTS else 'server'} of {run.name}"


async def client_of(run: Run, folder: Path) -> list[Passed]:
    """What passes between a client of other people and our server."""
    tape = folder / "tape"
    house = json.dumps([sys.executable, str(HOUSE), str(tape)])
    ending = ".mjs" if run.name.startswith("type") else ".py"
    await output_of(run.peer, run.peer.command(run.program + ending, "stdio", house, *run.arguments))
    return [Passed(*entry) for one in json.loads(tape.read_text(encoding="utf-8")) for entry in one.items()]


async def server_of(run: Run) -> list[Passed]:
    """What passes between our client and a server of other people."""
    ending = ".mjs" if run.name.startswith("type") else ".py"
    tape = Tape(None)
    channel = TapedChannel(await ChildChannel.spawn(run.peer.command(run.program + ending, "stdio")), tape)
    async with Client(channel, revision=run.revision, memory=Memory(), **ANSWERS) as client:
        await use_everything(client, run)
    return tape.passed


async def main() -> None:
    """Record all of them."""
    for run in RECORDED:
        run.peer.install()
        with tempfile.TemporaryDirectory() as folder:
            passed = await (client_of(run, Path(folder)) if run in CLIENTS else server_of(run))
        known = dict(conversation.read(run.revision))
        conversation.read.cache_clear()
        conversation.write(run.revision, {**known, name_of(run): passed})


if __name__ == "__main__":
    asyncio.run(main())
