"""Decoration, beside the official SDK in the same process: CPU, least of several rounds."""

from __future__ import annotations

import time
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
    exec("from typing import Literal" + "".join(source.format(n=number) for number in range(count)), names)
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


if __name__ == "__main__":
    decoration()
