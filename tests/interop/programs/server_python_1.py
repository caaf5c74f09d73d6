"""A server of the official Python SDK 1: TRANSPORT [PORT]."""

import sys

from mcp.server.fastmcp import Context, FastMCP, Image
from mcp.server.fastmcp.exceptions import ToolError
from mcp.types import Completion, SamplingMessage, TextContent
from pydantic import BaseModel

transport, *port = sys.argv[1:]
server = FastMCP("peer", instructions="Look around.", port=int(port[0]) if port else 0)


class Name(BaseModel):
    name: str


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
async def ask_form(ctx: Context) -> str:
    """Ask a person."""
    answer = await ctx.elicit("Who?", Name)
    return f"hello {answer.data.name}"


@server.tool()
async def ask_model(ctx: Context) -> str:
    """Ask a model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text="Say something."))
    said = await ctx.session.create_message([message], max_tokens=10)
    return f"{said.model}: {said.content.text}"


@server.tool()
async def ask_roots(ctx: Context) -> str:
    """Ask for roots."""
    return str((await ctx.session.list_roots()).roots[0].uri)


@server.tool()
async def change(ctx: Context) -> str:
    """Say that the tools changed."""
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


server.run({"stdio": "stdio", "http": "streamable-http", "sse": "sse"}[transport])
