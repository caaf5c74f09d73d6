"""What compiles, and as what. Read by type checkers only; nothing here runs."""
# pyright: strict

from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass
from typing import Annotated, assert_type

from mcprelay import (
    Annotations,
    Client,
    Context,
    Contract,
    Depends,
    Server,
    ToolResult,
    define,
    prompt,
    resource,
    tool,
)
from mcprelay.client.outcome import Result
from mcprelay.proxy import proxy
from mcprelay.server.call import Call, HttpRequest, Principal
from mcprelay.server.dispatch import CallNext, Outcome
from mcprelay.server.event import Event, Handling


@dataclass
class Greet:
    name: str


@dataclass
class Tenant:
    id: int


class Db:
    def close(self) -> None: ...


async def living(server: Server) -> AsyncIterator[Db]:
    yield Db()


def context(request: HttpRequest, principal: Principal | None) -> Tenant:
    return Tenant(1)


server = Server("s", lifespan=living, context=context)


# --- a decorated function stays the function it was


@server.tool
def add(a: int, b: int) -> int:
    return a + b


@server.tool(name="other", title="T", read_only=True, tags=["x"], requires={"s"}, replace=True)
async def later(a: int) -> str:
    return str(a)


@server.tool("by_position", idempotent=False)
def positional(text: str) -> str:
    return text


@server.resource("a://{b}", mime_type="text/plain", annotations=Annotations(priority=0.5), ttl_ms=5)
def page(b: str) -> bytes:
    return b.encode()


@server.prompt
def review(code: str) -> str:
    return code


@tool(destructive=False)
def marked(a: int) -> int:
    return a


@resource("a://c")
def settings() -> dict[str, int]:
    return {}


@prompt(title="P")
class Prompter:
    def __call__(self, text: str) -> str:
        return text

    @tool
    def method(self, a: int) -> int:
        return a


assert_type(add(1, 2), int)
assert_type(positional("x"), str)
assert_type(page("x"), bytes)
assert_type(review("x"), str)
assert_type(marked(1), int)
assert_type(settings(), dict[str, int])
assert_type(Prompter().method(1), int)
assert_type(Prompter()("x"), str)


def awaited() -> Awaitable[str]:
    return later(1)


# --- by hand

server.add_tool(add, name="plus", output_schema={"type": "integer"})
server.add_tool((Prompter, "method"))
server.add_resource("a://d", page, size=5)
server.add_prompt(Prompter)
server.discover("handlers", exclude=["old"], cache="found.json")
server.mount("x", Server("y"))


# --- what is injected


def get_db() -> Iterator[Db]:
    yield Db()


@server.tool
async def uses(ctx: Context[Tenant], db: Annotated[Db, Depends(get_db)]) -> str:
    assert_type(ctx.state, Tenant)
    answer = await ctx.elicit("Which?", Greet)
    assert_type(answer.value, Greet)
    return answer.value.name


@server.tool
def plain(ctx: Context, a: int) -> int:
    ctx.progress(1)
    return a


# --- contracts

greet = define("greet", input=Greet, output=str)
assert_type(greet, Contract[Greet, str])


def greet_user(who: Greet) -> str:
    return who.name


async def greet_later(who: Greet) -> str:
    return who.name


def greet_in_context(who: Greet, ctx: Context) -> str:
    return who.name


def greet_anything(who: object) -> str:
    return str(who)


server.handle(greet, greet_user)
server.handle(greet, greet_later, replace=True, requires=["s"])
server.handle(greet, greet_in_context, replace=True)
server.handle(greet, greet_anything, replace=True)


async def at_the_other_end(client: Client) -> None:
    assert_type(await client.call_tool(greet, Greet("Ada")), Result[str])
    assert_type(await client.tool(add)(a=1, b=2), int)
    assert_type(await client.tool(add, name="plus", timeout=5)(a=1, b=2), int)
    assert_type(await client.tool(later)(1), str)
    assert_type(await client.tool(plain)(a=1), int)


# --- around calls


@server.middleware
async def audit(call: Call, call_next: CallNext) -> Outcome:
    outcome = await call_next(call)
    if isinstance(outcome, ToolResult) and outcome.is_error:
        assert_type(call.target, str | None)
    return outcome


@server.observe
def count(event: Event) -> None:
    if isinstance(event, Handling):
        assert_type(event.seconds, float)


def run() -> None:
    server.run()
    server.run("stdio", state=Tenant(1))
    server.run("http", host="127.0.0.1", port=8000)
    proxy(Client("https://example.com/mcp")).run("http")
