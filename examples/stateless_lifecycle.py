"""One server for clients that shake hands and for those that do not: no session, and a question that survives.

Serve it at http://127.0.0.1:8080/mcp:   python examples/stateless_lifecycle.py
Any process can answer any request:       STATE_KEY=$(openssl rand -hex 32) python examples/stateless_lifecycle.py
"""

import os
from dataclasses import dataclass
from typing import Annotated

from mcprelay import Context, Schema, Server

key = os.environ.get("STATE_KEY")
server = Server(
    "Stateless Lifecycle",
    version="1.0.0",
    instructions="Every request says everything: what was asked before is in the request itself.",
    ttl_ms=60_000,
    cache_scope="public",
    sessions="optional",
    state_keys=[key] if key else None,  # what seals a call that waits for its answer
)


@dataclass
class Name:
    name: Annotated[str, Schema("How shall I call you?")]


@server.tool(read_only=True)
def get_weather(city: Annotated[str, Schema("The city", header="City")]) -> str:
    """Current weather; over HTTP a proxy can route by the city without reading the body."""
    return f"Weather in {city}: 18°C, Cloudy"


@server.tool
def reindex(ctx: Context, documents: Annotated[int, Schema("How many", minimum=1, maximum=1000)] = 3) -> str:
    """Index documents, and say how far it is."""
    for done in range(1, documents + 1):
        ctx.progress(done, documents, f"document {done}")
    return f"{documents} documents indexed"


@server.tool
async def greet(ctx: Context) -> str:
    """Greet somebody, whose name is asked for: to the newest clients that is a second request."""
    answer = await ctx.elicit("What is your name?", Name, key="name")
    return f"Hello, {answer.value.name}!" if answer.accepted else "Hello, stranger!"


if __name__ == "__main__":
    server.run("http", port=int(os.environ.get("PORT", "8080")))
