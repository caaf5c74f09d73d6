"""A server of the official Python SDK 2: TRANSPORT [PORT]."""

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import Completion, CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("peer", version="1.0", instructions="Look around.")


class Name(BaseModel):
    name: str


def who() -> Elicit[Name]:
    return Elicit("Who?", Name)


def spoken() -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text="Say something."))
    return Sample([message], max_tokens=10)


def listed() -> ListRoots:
    return ListRoots()


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def refuse() -> str:
    """Say no."""
    raise ToolError("not today")


@server.tool()
def picture() -> Image:
    """Show a picture."""
    return Image(data=b"\x89PNG", format="png")


@server.tool()
async def walk(steps: int, ctx: Context) -> str:
    """Report every step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return "arrived"


@server.tool()
async def chat(ctx: Context) -> str:
    """Log."""
    await ctx.info("a fact")
    await ctx.warning("a warning")
    return "said"


@server.tool()
async def ask_form(name: Annotated[Name, Resolve(who)]) -> str:
    """Ask a person."""
    return f"hello {name.name}"


@server.tool()
async def ask_model(said: Annotated[CreateMessageResult, Resolve(spoken)]) -> str:
    """Ask a model."""
    return f"{said.model}: {said.content.text}"


@server.tool()
async def ask_roots(roots: Annotated[ListRootsResult, Resolve(listed)]) -> str:
    """Ask for roots."""
    return str(roots.roots[0].uri)


@server.tool()
async def change(ctx: Context) -> str:
    """Say that the tools changed."""
    await ctx.notify_tools_changed()
    if ctx.protocol_version < "2026":
        await ctx.session.send_tool_list_changed()
    return "changed"


@server.resource("peer://text", mime_type="text/plain")
def text() -> str:
    """A text."""
    return "some text"


@server.resource("peer://bytes", mime_type="application/octet-stream")
def data() -> bytes:
    """Bytes."""
    return b"\x00\xff"


@server.resource("peer://files/{name}")
def file(name: str) -> str:
    """A file."""
    return f"file {name}"


@server.prompt()
def review(language: str) -> str:
    """Ask for a review."""
    return f"Review this {language}."


@server.completion()
async def complete(ref, argument, context):
    return Completion(values=[word for word in ("python", "perl") if word.startswith(argument.value)])


transport, *port = sys.argv[1:]
if transport == "stdio":
    server.run()
else:
    server.run({"http": "streamable-http", "sse": "sse"}[transport], port=int(port[0]))
