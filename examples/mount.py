"""A server in a Starlette app, for several tenants: a header says which one, and no handler reads it.

Serve it at http://127.0.0.1:8000/mcp:   python examples/mount.py     (needs starlette)
"""

import os
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from mcprelay import Context, RequestRefused, Server


@dataclass(frozen=True)
class Tenant:
    name: str
    books: tuple[str, ...]


TENANTS = {
    "north": Tenant("north", ("Emma", "Persuasion")),
    "south": Tenant("south", ("Moby-Dick",)),
}


def tenant_of(request) -> Tenant:
    name = request.headers.get("x-tenant", "")
    if name not in TENANTS:
        raise RequestRefused(400, "the header X-Tenant names no tenant")
    return TENANTS[name]


server = Server("library", version="1.0.0", context=tenant_of)


@server.tool
def books(ctx: Context[Tenant]) -> list[str]:
    """What is on the shelves of the tenant that asks."""
    return list(ctx.state.books)


async def health(_):
    return PlainTextResponse("ok")


app = Starlette(routes=[Route("/health", health), Mount("/", server.asgi())])

if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")))
