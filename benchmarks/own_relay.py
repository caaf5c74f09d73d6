"""What guarding costs: a call through the relay beside the same call of a bare client, in this process. CPU.

The server, the client and the relay share one event loop, so the difference is the relay's own work: trust, the pin,
the arguments against the schema, the funnel. Batches of both alternate. Told are the difference of the quickest batches
(the work itself) and the median of the differences (what the machine makes of it), in microseconds; then the time for
`relay.tools()` with 20 servers of 50 tools from a warm cache, in milliseconds.

    python benchmarks/own_relay.py [rounds]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

from mcprelay import Client, Server
from mcprelay.relay import Lock, Relay
from mcprelay.relay.lock import save
from mcprelay.relay.pins import define

BATCH = 20
TEXTS = {
    "1 KB": "x" * 1024,
    "20 KB of ASCII": "lorem ipsum dolor \n" * 1078,
    "20 KB of mixed text": "Grüße 世界 🙂 " * 853,
}
server = Server("bench")


@server.tool
async def echo(size: str) -> str:
    """Give a text."""
    return TEXTS[size]


async def cost(call: Callable[[], Awaitable[Any]], number: int) -> float:
    """CPU of one call, in microseconds."""
    begun = time.process_time()
    for _ in range(number):
        await call()
    return (time.process_time() - begun) / number * 1e6


async def guarding(rounds: int, lock: Path | None) -> None:
    """The rows for calls."""
    servers = {"bench": {"target": server, "allow": "*"}}
    async with Client(server) as client, Relay(servers=servers, lock=lock) as relay:
        if lock is not None:
            tools = await client.list_tools()
            save(lock, Lock().reviewed("bench", [define(tool) for tool in tools], revision=client.server.revision))
        tool = (await relay.tools())["bench__echo"]
        for size, text in TEXTS.items():
            given = {"size": size}
            assert text in (await tool.run(given)).text
            bare, guarded = [], []
            for _ in range(rounds):
                bare.append(await cost(lambda given=given: client.call_tool("echo", given), BATCH))  # type: ignore[misc]
                guarded.append(await cost(lambda given=given: tool.run(given), BATCH))  # type: ignore[misc]
            apart = median(one - other for one, other in zip(guarded, bare, strict=True))
            under = " with a lock file" if lock is not None else ""
            print(
                f"| {size}{under} | {min(bare):.1f} | {min(guarded):.1f} | {min(guarded) - min(bare):.1f} | {apart:.1f} |"
            )


async def listing() -> None:
    """The row for a warm list."""
    farm = {}
    for number in range(20):
        one = Server(f"s{number}")
        for tool in range(50):
            one.add_tool(echo, name=f"tool_{tool}", description=f"Does the thing {tool}. " * 5)
        farm[f"s{number}"] = {"target": one, "allow": "*", "cache": 600}
    async with Relay(servers=farm) as relay:
        assert len(await relay.tools()) == 1000
        taken = min([await cost(relay.tools, 1) for _ in range(20)])
    print(f"\n`relay.tools()`, 20 servers of 50 tools, warm: {taken / 1000:.1f} ms")


async def main() -> None:
    """All of it."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print("| result | client | relay | difference of the quickest | median of the differences |\n|---|---|---|---|---|")
    await guarding(rounds, None)
    with tempfile.TemporaryDirectory() as folder:
        await guarding(rounds, Path(folder) / "mcprelay.lock")
    await listing()


if __name__ == "__main__":
    asyncio.run(main())
