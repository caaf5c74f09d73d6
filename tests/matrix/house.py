"""The server of the matrix: one element for everything that the revisions say in different ways.

Written against the public names alone. `python house.py [REVISION…]` serves it over stdio.
"""

import asyncio
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from mcprelay import (
    Annotations,
    Audio,
    Complete,
    Context,
    EmbeddedResource,
    Icon,
    Image,
    Limits,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    SamplingMessage,
    Server,
    Text,
    ToolError,
)

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
SOUND = b"RIFF$\0\0\0WAVE"
ICON = Icon(src="https://example.com/icon.png", mime_type="image/png", sizes=("16x16",))
PAGE = 5
"""How many entries a page of a list has: few enough for every list to have several."""


@dataclass
class Weather:
    """A value that is an object."""

    city: str
    degrees: float


@dataclass
class Seat:
    """A form with a field of each kind."""

    row: int
    side: Literal["window", "aisle"] = "window"
    meal: bool = False
    name: str = "nobody"
    budget: float = 1.5


@dataclass
class Days:
    """A form with a field of several values."""

    days: list[Literal["monday", "friday"]]


@dataclass
class Name:
    """A form with one field."""

    name: str


def make(**options: Any) -> Server:
    """A server of its own, with everything in it."""
    server = Server(
        "house",
        version="1.2.3",
        title="The House",
        description="One of everything.",
        instructions="Look around.",
        icons=[ICON],
        website_url="https://example.com/house",
        limits=Limits(page_size=PAGE),
        state_keys=["a key that tests may know"],
        **options,
    )
    _values(server)
    _blocks(server)
    _work(server)
    _questions(server)
    _changes(server)
    _resources(server)
    _prompts(server)
    return server


def furnished(**options: Any) -> Server:
    """A server of its own, with what only some revisions can say besides."""
    server = make(**options)
    _edges(server)
    return server


def _values(server: Server) -> None:
    @server.tool(title="Addition", read_only=True, idempotent=True, icons=[ICON], meta={"example.com/kind": "math"})
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool
    def weather(city: str) -> Weather:
        """Say what the weather is."""
        return Weather(city, 21.5)

    @server.tool
    def count(to: int) -> list[int]:
        """Count."""
        return list(range(1, to + 1))

    @server.tool
    def nothing() -> int | None:
        """Have no number."""
        return None

    @server.tool
    def wrapped() -> dict[str, int]:
        """Return an object that looks like the wrapping of a value that is no object."""
        return {"result": 7}

    @server.tool
    def say(text: str) -> str:
        """Say it again."""
        return text

    @server.tool
    def refuse() -> str:
        """Say no."""
        raise ToolError("not today")

    @server.tool
    def broken() -> str:
        """Break."""
        raise RuntimeError("secret://user:password@internal")


def _blocks(server: Server) -> None:
    @server.tool
    def picture() -> Image:
        """Show a picture."""
        return Image(PIXEL, "image/png", Annotations(audience=("user",), priority=0.5))

    @server.tool
    def sound() -> Audio:
        """Make a sound."""
        return Audio(SOUND, "audio/wav")

    @server.tool
    def link() -> ResourceLink:
        """Point at a resource."""
        return ResourceLink(uri="house://text", name="text", title="A text", mime_type="text/plain", icons=(ICON,))

    @server.tool
    def parcel() -> list[Text | EmbeddedResource]:
        """Pack a resource."""
        inside = ResourceContents(uri="house://inside", mime_type="text/plain", text="inside")
        return [Text("a parcel"), EmbeddedResource(inside)]


def _work(server: Server) -> None:
    begun: list[asyncio.Event] = []

    @server.tool
    async def work(ctx: Context, steps: int) -> str:
        """Report every step."""
        for step in range(1, steps + 1):
            ctx.progress(step, steps, f"step {step}")
        return "worked"

    @server.tool
    async def wait(ctx: Context) -> str:
        """Work until the client gives up."""
        stopped = asyncio.Event()
        begun.append(stopped)
        ctx.progress(1)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            stopped.set()
        return "never"

    @server.tool
    async def given_up() -> bool:
        """Wait until the last call of `wait` has been given up."""
        await begun.pop().wait()
        return True

    @server.tool
    async def chat(ctx: Context) -> str:
        """Log at four levels."""
        ctx.debug("a detail")
        ctx.info("a fact", logger="house")
        ctx.warning({"a": "warning"})
        ctx.error("an error")
        return "said"


def _questions(server: Server) -> None:
    @server.tool
    async def ask_form(ctx: Context) -> str:
        """Ask for a seat."""
        answer = await ctx.elicit("Which seat?", Seat, key="seat")
        return f"{answer.action} {answer.content}"

    @server.tool
    async def ask_twice(ctx: Context) -> str:
        """Ask one question after the other."""
        first = await ctx.elicit("First?", Name, key="first")
        second = await ctx.elicit("Second?", Name, key="second")
        return f"{first.value.name} {second.value.name}"

    @server.tool
    async def ask_address(ctx: Context) -> str:
        """Ask to visit an address."""
        answer = await ctx.elicit_url("Sign in", "https://example.com/sign-in", key="visit")
        return answer.action

    @server.tool
    async def ask_model(ctx: Context) -> str:
        """Ask the client's model."""
        said = await ctx.sample(
            [SamplingMessage("user", Text("Say something."))],
            max_tokens=10,
            system_prompt="Be brief.",
            temperature=0.5,
            stop_sequences=["."],
            model_preferences={"hints": [{"name": "small"}], "costPriority": 1},
            key="model",
        )
        return f"{said.model}: {said.text}"

    @server.tool
    async def ask_roots(ctx: Context) -> list[str]:
        """Ask where it may work."""
        return [root.uri for root in await ctx.roots(key="roots")]

    @server.tool
    async def ask_together(ctx: Context) -> str:
        """Ask a person and a model at once."""
        name, said = await asyncio.gather(
            ctx.elicit("Who?", Name, key="who"), ctx.sample("Say something.", max_tokens=10, key="model")
        )
        return f"{name.value.name} {said.text}"


def _edges(server: Server) -> None:
    @server.tool
    def perhaps(nothing: bool) -> Weather | None:
        """Say what the weather is, or nothing."""
        return None if nothing else Weather("Bern", 21.5)

    @server.tool
    def mixed(number: bool) -> dict[str, int] | int:
        """Return a number, or an object that looks like its wrapping."""
        return 7 if number else {"result": 7}

    @server.tool
    def marked() -> list[Text | EmbeddedResource]:
        """Say when it changed, and what only some revisions can carry besides."""
        dated = Annotations(audience=("user",), last_modified="2026-01-01T00:00:00Z")
        meta = {"example.com/kind": "note"}
        inside = ResourceContents(uri="house://inside", mime_type="text/plain", text="inside", meta=meta)
        return [Text("a note", dated, meta), EmbeddedResource(inside, dated, meta)]

    @server.tool
    async def ask_list(ctx: Context) -> str:
        """Ask for several of a few."""
        answer = await ctx.elicit("Which days?", Days, key="days")
        return f"{answer.action} {answer.content}"

    @server.tool
    async def ask_blocks(ctx: Context) -> str:
        """Ask the client's model with a message of several blocks."""
        message = SamplingMessage("user", (Text("What is this?"), Image(PIXEL, "image/png")))
        return (await ctx.sample([message], max_tokens=10, key="blocks")).text


def _changes(server: Server) -> None:
    def extra() -> str:
        """Exist for a moment."""
        return "here"

    there: set[str] = set()

    @server.tool
    def change(what: Literal["tools", "prompts", "resources"]) -> str:
        """Add something to a list, or take it away again."""
        if what in there:
            there.discard(what)
            remove = {"tools": server.remove_tool, "prompts": server.remove_prompt, "resources": server.remove_resource}
            remove[what]("house://extra" if what == "resources" else "extra")
            return "less"
        there.add(what)
        if what == "tools":
            server.add_tool(extra)
        elif what == "prompts":
            server.add_prompt(extra)
        else:
            server.add_resource("house://extra", extra)
        return "more"

    @server.tool
    async def touch(uri: str) -> str:
        """Say that a resource changed."""
        await server.resource_updated(uri)
        return "touched"


def _resources(server: Server) -> None:
    @server.resource("house://text", title="A text", mime_type="text/plain", size=9, icons=[ICON], ttl_ms=60_000)
    def text() -> str:
        """Some text."""
        return "some text"

    @server.resource("house://bytes", mime_type="application/octet-stream")
    def data() -> bytes:
        """Some bytes."""
        return b"\x00\xff"

    @server.resource("house://broken")
    def broken_resource() -> str:
        """Break."""
        raise RuntimeError("secret://user:password@internal")

    for number in range(PAGE):

        @server.resource(f"house://room/{number}", name=f"room-{number}", annotations=Annotations(priority=0.5))
        def room(number: int = number) -> str:
            """A room."""
            return f"room {number}"

    @server.resource("house://files/{name}", title="Files", mime_type="text/plain")
    def file(name: Annotated[str, Complete(["alpha", "beta", "album"])]) -> str:
        """A file by its name."""
        return f"file {name}"


def _prompts(server: Server) -> None:
    def focuses(typed: str, arguments: Any) -> list[str]:
        return [word for word in (f"{arguments.get('language', 'any')}-style", "speed") if word.startswith(typed)]

    @server.prompt(title="Review", icons=[ICON])
    def review(
        language: Annotated[str, Complete(["python", "perl", "php"])],
        focus: Annotated[str, Complete(focuses)] = "all",
    ) -> str:
        """Ask for a review."""
        return f"Review this {language} for {focus}."

    @server.prompt
    def gallery() -> list[PromptMessage]:
        """Show one of each."""
        inside = ResourceContents(uri="house://text", mime_type="text/plain", text="some text")
        return [
            PromptMessage.user(Image(PIXEL, "image/png")),
            PromptMessage.user(Audio(SOUND, "audio/wav")),
            PromptMessage.assistant(EmbeddedResource(inside)),
            PromptMessage.assistant(ResourceLink(uri="house://text", name="text")),
        ]


if __name__ == "__main__":
    furnished(among=sys.argv[1:] or None).run()
