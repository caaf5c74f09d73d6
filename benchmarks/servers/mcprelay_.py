# bench: {"python": "peers", "import": "mcprelay.server", "listen": true, "variants": {"mcprelay": {}, "mcprelay-sync": {"env": {"BENCH_SYNC": "1"}}}}
"""mcprelay, as documented: `server.run()`. mcprelay-sync: plain `def` tools, which run in worker threads."""

from dataclasses import dataclass

from _common import MODE, NTOOLS, PORT, tool_functions

from mcprelay import Context, Server


@dataclass
class Address:
    street: str
    city: str
    zip: str


@dataclass
class Friend:
    id: int
    name: str


@dataclass
class User:
    id: int
    name: str
    email: str
    active: bool
    tags: list[str]
    address: Address
    friends: list[Friend]


add, echo, get_user, extra = tool_functions(User, Address, Friend)
server = Server("bench", version="1")
for function in (add, echo, get_user):
    server.add_tool(function)


@server.tool
async def bump(ctx: Context) -> str:
    """Tell everyone that the tools changed."""
    ctx.server.catalog.tools.touch()
    return "ok"


for number in range(4, NTOOLS):
    server.add_tool(extra, name=f"tool_{number}")

if __name__ == "__main__":
    if MODE == "stdio":
        server.run()
    else:
        server.run("http", port=PORT)
