"""Decoration and calls with models, beside the official SDK in the same process: CPU, least of several rounds."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

ROUNDS = 5


def least(work: Any, number: int) -> float:
    """CPU microseconds for one of `number`, least of the rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best / number * 1e6


def functions(count: int) -> list[Any]:
    """Typical functions: a docstring with sections, defaults, a literal, an optional."""
    source = '''
def tool_{n}(query: str, limit: int = 10, order: Literal["asc", "desc"] = "asc", tag: str | None = None) -> list[str]:
    """Search for something.

    Args:
        query: What to look for.
        limit: How many at most.
        order: In which order.
        tag: Only with this tag.

    Returns:
        The names that were found.
    """
    return [query] * limit
'''
    names: dict[str, Any] = {}
    exec("from typing import Literal" + "".join(source.format(n=number) for number in range(count)), names)  # noqa: S102
    return [names[f"tool_{number}"] for number in range(count)]


def decoration() -> None:
    """1,000 typical functions."""
    from mcp.server.mcpserver import MCPServer

    from mcprelay import Server

    made = functions(1000)

    def ours() -> None:
        server = Server("bench")
        for function in made:
            server.add_tool(function)

    def official() -> None:
        server = MCPServer("bench", log_level="ERROR")
        for function in made:
            server.add_tool(function)

    mine, theirs = least(ours, 1000), least(official, 1000)
    print(f"decorating one of 1,000 functions: mcprelay {mine:.0f} us, official {theirs:.0f} us (x{theirs / mine:.1f})")


@dataclass
class Order:
    item: str
    amount: int
    price: float
    tags: list[str]


@dataclass
class Receipt:
    order: Order
    total: float
    paid: bool


def models() -> None:
    """A call with a dataclass argument and a dataclass result, in process: JSON to JSON, without a transport."""
    from mcp.server.mcpserver import MCPServer

    from mcprelay import Server
    from mcprelay.revisions import NEWEST
    from mcprelay.server.call import Call

    async def buy(order: Order) -> Receipt:
        return Receipt(order, order.amount * order.price, True)

    server = Server("bench")
    server.add_tool(buy)
    official = MCPServer("bench", log_level="ERROR")
    official.add_tool(buy)
    order = {"item": "book", "amount": 3, "price": 9.5, "tags": ["a", "b"]}
    method = NEWEST.methods["tools/call"]
    raw = json.dumps({"name": "buy", "arguments": {"order": order}}).encode()

    async def ours(count: int) -> None:
        for _ in range(count):
            await server.dispatcher.handle(Call(NEWEST, 1, method, method.decode(raw), raw, None))  # type: ignore[arg-type]

    async def theirs(count: int) -> None:
        for _ in range(count):
            result = await official.call_tool("buy", json.loads(raw)["arguments"])
            result.model_dump_json(by_alias=True, exclude_none=True) if hasattr(result, "model_dump_json") else json.dumps(
                str(result)
            )

    mine = least(lambda: asyncio.run(ours(2000)), 2000)
    other = least(lambda: asyncio.run(theirs(500)), 500)
    print(f"a call with a dataclass in and out: mcprelay {mine:.1f} us, official {other:.1f} us (x{other / mine:.1f})")


if __name__ == "__main__":
    decoration()
    models()
