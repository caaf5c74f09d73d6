"""Both sides in one file: a server over HTTP, and a client that calls its function, typed.

Run it:   python examples/serve_and_call.py
"""

import asyncio

from mcprelay import Client, Server

server = Server("greeter", version="1.0.0")


@server.tool
def greet(name: str, times: int = 1) -> str:
    """Greet somebody."""
    return ", ".join(["Hello"] * times) + f", {name}!"


async def main():
    async with server.serve("http", port=0) as running, Client(running.url) as client:
        print([tool.name for tool in await client.list_tools()])
        print((await client.call_tool("greet", {"name": "Ada"})).value)
        print(await client.tool(greet)(name="Ada", times=2))  # the type checker knows what it takes and gives
        refused = await client.try_call_tool("greet", {"nme": "Ada"})
        print(refused.text)


if __name__ == "__main__":
    asyncio.run(main())
