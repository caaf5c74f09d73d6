"""A server for the tests of the command line: everything that a terminal may meet. Importing it prints."""

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import dataclass

from mcprelay import Context, Image, Server, Text, ToolError

print("noise while importing")  # noqa: T201 - that is the point
server = Server("served", version="1.2.3")


@dataclass
class Seat:
    row: int
    side: str = "left"


@server.tool
def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


@server.tool
def refuse() -> str:
    """Refuse."""
    raise ToolError("not today")


@server.tool
def noisy(ctx: Context) -> str:
    """Print in every way there is."""
    print("x1")  # noqa: T201 - that is the point
    sys.stdout.write("x2\n")
    os.write(1, b"x3\n")
    subprocess.run([sys.executable, "-c", "print('x4')"], check=True)
    return "quiet"


@server.tool
def block() -> str:
    """Block a thread for a long time."""
    time.sleep(60)
    return "late"


@server.tool
async def slow() -> str:
    """Wait for a long time."""
    await asyncio.sleep(60)
    return "late"


@server.tool
async def book(ctx: Context) -> str:
    """Ask for a seat."""
    answer = await ctx.elicit("Which seat?", Seat, key="seat")
    return f"row {answer.value.row} {answer.value.side}" if answer.accepted else "nothing booked"


@server.tool
def hostile():
    """Say things that a terminal would obey."""
    return [Text("\x1b[2Jcleared \u202egnol"), Image(b"\x89PNG", "image/png")]


@server.resource("data://bytes", mime_type="application/octet-stream")
def data() -> bytes:
    return bytes(range(256))


@server.resource("city://{name}/weather")
def weather(name: str) -> str:
    """The weather in a city."""
    return f"rain in {name}"


@server.prompt
def review(language: str, focus: str = "general") -> str:
    """Ask for a review."""
    return f"Review {language}, {focus}"


@server.tool
async def grow(ctx: Context) -> str:
    """Offer one more tool."""
    ctx.server.add_tool(lambda: "new", name="grown", description="Grown.")
    return "grown"
