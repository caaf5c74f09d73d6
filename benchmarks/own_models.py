"""A call with a dataclass argument and a dataclass result, and a ping beside blocking calls: whole servers over stdio.

CPU is the server process's own, read from /proc, so this needs Linux. Ours and the official SDK take turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TICK = os.sysconf("SC_CLK_TCK")
PREFIX = "io.modelcontextprotocol/"
META = {
    PREFIX + "protocolVersion": "2026-07-28",
    PREFIX + "clientInfo": {"name": "bench", "version": "1"},
    PREFIX + "clientCapabilities": {},
}
SERVER = """
import time
from dataclasses import dataclass

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

async def buy(order: Order) -> Receipt:
    return Receipt(order, order.amount * order.price, True)

def block() -> str:
    time.sleep(0.2)
    return "done"

async def quick() -> str:
    return "pong"
"""
OURS = (
    SERVER
    + """
from mcprelay import Server
server = Server("bench")
for function in (buy, block, quick):
    server.add_tool(function)
server.run()
"""
)
OFFICIAL = (
    SERVER
    + """
from mcp.server.mcpserver import MCPServer
server = MCPServer("bench", log_level="ERROR")
for function in (buy, block, quick):
    server.add_tool(function)
server.run("stdio")
"""
)


class Peer:
    """A server process, spoken to in lines."""

    def __init__(self, program: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._next = 0

    def send(self, tool: str, arguments: dict[str, Any]) -> int:
        self._next += 1
        params = {"name": tool, "arguments": arguments, "_meta": META}
        message = {"jsonrpc": "2.0", "id": self._next, "method": "tools/call", "params": params}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        return self._next

    def flush(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert "result" in message, message
        assert not message["result"].get("isError"), message
        return message

    def cpu(self) -> float:
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        fields = stat.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(20)


ORDER = {"order": {"item": "book", "amount": 3, "price": 9.5, "tags": ["a", "b"]}}


def calls(peer: Peer, count: int, at_once: int = 32) -> None:
    """So many calls, so many at once."""
    for _ in range(count // at_once):
        for _ in range(at_once):
            peer.send("buy", ORDER)
        peer.flush()
        for _ in range(at_once):
            peer.receive()


def models(rounds: int = 3) -> None:
    """CPU of one call."""
    peers = {"mcprelay": (Peer(OURS), 16_000), "official": (Peer(OFFICIAL), 1_600)}
    best: dict[str, float] = {}
    for peer, _ in peers.values():
        calls(peer, 320)
    for _ in range(rounds):
        for name, (peer, count) in peers.items():
            before = peer.cpu()
            calls(peer, count)
            best[name] = min(best.get(name, 1e9), (peer.cpu() - before) / count * 1e6)
    for peer, _ in peers.values():
        peer.close()
    ratio = best["official"] / best["mcprelay"]
    print(
        f"a call with a dataclass in and out, stdio, 32 at once: mcprelay {best['mcprelay']:.1f} us,"
        f" official {best['official']:.1f} us (x{ratio:.1f})"
    )


def ping() -> None:
    """How long a quick call takes while 32 blocking ones run."""
    for name, program in (("mcprelay", OURS), ("official", OFFICIAL)):
        peer = Peer(program)
        peer.send("quick", {})
        peer.flush()
        peer.receive()
        for _ in range(32):
            peer.send("block", {})
        peer.flush()
        start = time.perf_counter()
        wanted = peer.send("quick", {})
        peer.flush()
        received = 0
        while peer.receive()["id"] != wanted:
            received += 1
        delay = time.perf_counter() - start
        while received < 32:
            peer.receive()
            received += 1
        whole = time.perf_counter() - start
        peer.close()
        shown = f"{name} {delay * 1e3:.1f} ms; all of them {whole * 1e3:.0f} ms"
        print(f"a quick call beside 32 that block 200 ms: {shown}")


if __name__ == "__main__":
    models()
    ping()
