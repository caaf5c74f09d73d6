"""`tools/list` with 1,000 tools, the first one after a change, beside the official SDK: CPU of the whole server process.

Over stdio, because both sides speak it without a session. Needs Linux (/proc).
"""

from __future__ import annotations

import json

from own_models import META, Peer

COMMON = """
async def extra(a: int, b: int) -> int:
    return a - b
"""
OURS = (
    COMMON
    + """
from mcprelay import Server
server = Server("bench")
for number in range(1000):
    server.add_tool(extra, name=f"tool_{number}")
@server.tool
async def change() -> str:
    server.add_tool(extra, name="tool_0", replace=True)
    return "ok"
server.run()
"""
)
OFFICIAL = (
    COMMON
    + """
from mcp.server.mcpserver import MCPServer
server = MCPServer("bench", log_level="ERROR")
for number in range(1000):
    server.add_tool(extra, name=f"tool_{number}")
@server.tool()
async def change() -> str:
    server.remove_tool("tool_0")
    server.add_tool(extra, name="tool_0")
    return "ok"
server.run("stdio")
"""
)


def listed(peer: Peer) -> None:
    """One list."""
    message = {"jsonrpc": "2.0", "id": "list", "method": "tools/list", "params": {"_meta": META}}
    assert peer.process.stdin is not None
    peer.process.stdin.write(json.dumps(message).encode() + b"\n")
    peer.flush()
    assert len(peer.receive()["result"]["tools"]) == 1001


def changed(peer: Peer) -> None:
    """One change of the tools."""
    peer.send("change", {})
    peer.flush()
    peer.receive()


def main(count: int = 40) -> None:
    """CPU of one list, after a change and repeated."""
    spent: dict[str, tuple[float, float]] = {}
    for name, program in (("mcprelay", OURS), ("official", OFFICIAL)):
        peer = Peer(program)
        listed(peer)
        start = peer.cpu()
        for _ in range(count):
            changed(peer)
            listed(peer)
        middle = peer.cpu()
        for _ in range(count):
            listed(peer)
        spent[name] = ((middle - start) / count * 1e3, (peer.cpu() - middle) / count * 1e3)
        peer.close()
    (mine, again), (theirs, theirs_again) = spent["mcprelay"], spent["official"]
    print(
        f"tools/list of 1,000 after a change: {mine:.2f} ms, official {theirs:.2f} ms (x{theirs / max(mine, 0.01):.0f})"
    )
    print(f"repeated: {again:.2f} ms, official {theirs_again:.2f} ms (x{theirs_again / max(again, 0.01):.0f})")


if __name__ == "__main__":
    main()
