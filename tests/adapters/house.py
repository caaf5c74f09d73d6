"""A server whose tools answer with everything that an adapter has to carry, and a relay that has reviewed it."""

from contextlib import asynccontextmanager
from typing import Annotated, TypedDict

from mcprelay import Client, Server, ToolError
from mcprelay.relay import Limits, Lock, Relay, deny
from mcprelay.relay.pins import define
from mcprelay.types import Audio, EmbeddedResource, Image, ResourceContents, ResourceLink, Text, ToolResult

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x10\x00\x00\x00\x10" + bytes(range(64))
PDF = b"%PDF-1.7\n" + bytes(range(64))
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(range(64))

Odd = TypedDict("Odd", {"@type": str, "a b": int})


def house() -> Server:  # noqa: C901 - one tool for each kind of answer
    server = Server("house")

    @server.tool
    def greet(name: str, title: str = "") -> str:
        """Greet somebody."""
        return f"hello {title} {name}".replace("  ", " ")

    @server.tool
    def keep(item: Odd, size: Annotated[int, "how many"] = 1) -> str:
        """Keep an item whose members have names that providers do not take."""
        return f"kept {item['@type']}, {item['a b']}, {size}"

    @server.tool
    def configure(config: str, run_manager: str, callbacks: str, ctx_: str = "") -> str:
        """Take arguments that are called like parameters of SDKs."""
        return f"{config} {run_manager} {callbacks}"

    @server.tool
    def anything(**members: int) -> str:
        """Take members of any name."""
        return str(sorted(members.items()))

    @server.tool
    def picture() -> ToolResult:
        """Give a picture."""
        return ToolResult(content=(Text("a picture"), Image(PNG, "image/png")))

    @server.tool
    def sound() -> ToolResult:
        """Give a sound."""
        return ToolResult(content=(Audio(WAV, "audio/wav"),))

    @server.tool
    def paper() -> ToolResult:
        """Give a PDF."""
        blob = ResourceContents(uri="file:///paper.pdf", mime_type="application/pdf", blob=PDF)
        return ToolResult(content=(EmbeddedResource(resource=blob),))

    @server.tool
    def link() -> ToolResult:
        """Give a link."""
        return ToolResult(content=(ResourceLink(uri="https://evil.example/pixel.png", name="pixel"),))

    @server.tool
    def fail() -> str:
        """Fail."""
        raise ToolError("out of paper")

    @server.tool
    def fail_with_picture() -> ToolResult:
        """Fail, and give a picture of it."""
        return ToolResult(content=(Text("out of ink"), Image(PNG, "image/png")), is_error=True)

    @server.tool
    def huge(query: str = "") -> str:
        """Give too much."""
        return "x" * 20_000

    @server.tool
    def erase() -> str:
        """Erase everything."""
        raise AssertionError("the gate is before this")

    return server


def gate(call):
    return deny("not on my watch") if call.tool == "erase" else True


@asynccontextmanager
async def guarded(server: Server | None = None, *, allow="*"):
    """The tools of the house, trusted, pinned and gated."""
    served = server or house()
    async with Client(served) as client:
        listed = [
            {"name": one.name, "description": one.description, "inputSchema": one.input_schema}
            for one in await client.list_tools()
        ]
    lock = Lock().reviewed("house", [define(one) for one in listed], revision=None)
    servers = {"house": {"target": served, "allow": allow}}
    async with Relay(servers=servers, lock=lock, gate=gate, limits=Limits(result_bytes=10_000)) as relay:
        tools = await relay.tools("house", strict=True)
        assert not tools.report().unpinned
        yield tools
