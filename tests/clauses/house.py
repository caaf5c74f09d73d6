"""What the server of the clause tests offers: one element for each rule that needs one."""

import asyncio
import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from mcprelay import (
    Audio,
    Complete,
    Context,
    EmbeddedResource,
    Image,
    Limits,
    PromptMessage,
    ResourceContents,
    Schema,
    Server,
    ToolError,
)


class Color(enum.Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Form:
    """A form with a field of each kind."""

    name: str
    size: Literal["small", "large"] = "small"
    count: int = 3
    weight: float = 1.5
    gift: bool = False


@dataclass
class Weather:
    """A structured answer."""

    city: str
    degrees: float


class Workshop:
    """The server, and the events that its slow tool waits for and sets."""

    def __init__(self, **options: Any) -> None:
        self.started = asyncio.Event()
        self.finish = asyncio.Event()
        self.stopped = asyncio.Event()
        self.runs = 0
        self.server = Server(
            "workshop", version="1.2.3", limits=Limits(page_size=options.pop("page_size", None)), **options
        )
        self._tools()
        self._questions()
        self._resources()
        self._prompts()

    def _tools(self) -> None:
        server = self.server

        @server.tool
        def echo(text: str, times: int = 1) -> str:
            """Say it again."""
            self.runs += 1
            return text * times

        @server.tool
        def weather(city: str) -> Weather:
            """Say what the weather is."""
            return Weather(city, 21.5)

        @server.tool
        def refuse() -> str:
            """Say no."""
            raise ToolError("not today")

        @server.tool
        def broken() -> str:
            """Break."""
            raise RuntimeError("secret://user:password@internal")

        @server.tool
        async def slow(ctx: Context) -> str:
            """Wait until it may finish."""
            ctx.progress(1, 3, "begun")
            self.started.set()
            try:
                await self.finish.wait()
            except asyncio.CancelledError:
                self.stopped.set()
                raise
            return "done"

        @server.tool
        async def chatty(ctx: Context) -> str:
            """Log and report."""
            for number in (1, 2, 2, 1, 3):
                ctx.progress(number, 3)
            ctx.debug("quiet")
            ctx.warning({"loud": True}, logger="workshop")
            return "said"

        @server.tool
        def mirrored(
            region: Annotated[str | None, Schema(header="Region")] = None,
            count: Annotated[int, Schema(header="Count")] = 0,
            loud: Annotated[bool, Schema(header="Loud")] = False,
        ) -> str:
            """Have arguments in headers."""
            return f"{region} {count} {loud}"

    def _questions(self) -> None:
        server = self.server

        @server.tool
        async def ask(ctx: Context, topic: str = "") -> str:
            """Ask for a form."""
            answer = await ctx.elicit("Fill this in, please", Form, key="form")
            self.runs += 1
            return f"{answer.action} {answer.content} {topic}"

        @server.tool
        async def ask_all(ctx: Context) -> str:
            """Ask three questions at once."""
            form, said, roots = await asyncio.gather(
                ctx.elicit("A form", Form, key="form"),
                ctx.sample("Say something", max_tokens=10, key="said"),
                ctx.roots(key="roots"),
            )
            return f"{form.action} {said.text} {len(roots)}"

        @server.tool
        async def ask_url(ctx: Context) -> str:
            """Ask to visit an address."""
            answer = await ctx.elicit_url("Sign in, please", "https://example.com/sign-in", key="url")
            return answer.action

        @server.prompt
        async def asking(ctx: Context) -> str:
            """Ask before answering."""
            return (await ctx.elicit("A form", Form, key="form")).action

        @server.resource("work://asking")
        async def asking_resource(ctx: Context) -> str:
            """Ask before reading."""
            return (await ctx.elicit("A form", Form, key="form")).action

    def _resources(self) -> None:
        server = self.server

        @server.resource("work://text", mime_type="text/plain")
        def text() -> str:
            """A text."""
            return "some text"

        @server.resource("work://bytes", mime_type="application/octet-stream")
        def data() -> bytes:
            """Some bytes."""
            return b"\x00\xff"

        @server.resource("work://broken")
        def broken_resource() -> str:
            """Break."""
            raise RuntimeError("secret://user:password@internal")

        @server.resource("work://files/{name}")
        def file(name: Annotated[str, Complete(["alpha", "beta", "gamma"])]) -> str:
            """A file by name."""
            return f"file {name}"

    def _prompts(self) -> None:
        server = self.server

        @server.prompt
        def review(language: Annotated[str, Complete(["python", "perl", "php"])], focus: str = "all") -> str:
            """Ask for a review."""
            return f"Review this {language} with {focus} in mind."

        @server.prompt
        def gallery() -> list[PromptMessage]:
            """Show one of each."""
            inner = ResourceContents(uri="work://text", mime_type="text/plain", text="some text")
            return [
                PromptMessage.user(Image(b"\x89PNG", "image/png")),
                PromptMessage.user(Audio(b"RIFF", "audio/wav")),
                PromptMessage.assistant(EmbeddedResource(inner)),
            ]

        @server.prompt
        def broken_prompt() -> str:
            """Break."""
            raise RuntimeError("secret://user:password@internal")
