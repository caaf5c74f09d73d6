"""What compiles, and as what. Read by type checkers only; nothing here runs."""
# pyright: strict

from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional, TypedDict, assert_type

from mcprelay import (
    Annotations,
    Client,
    Context,
    Contract,
    Depends,
    InputRequired,
    Refused,
    Server,
    Succeeded,
    ToolResult,
    define,
    prompt,
    resource,
    tool,
)
from mcprelay.client.outcome import Result
from mcprelay.client.question import Outcome
from mcprelay.proxy import proxy
from mcprelay.server import dispatch
from mcprelay.server.call import Call, HttpRequest, Principal
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


def greet_after_context(ctx: Context, who: Greet) -> str:
    return who.name


async def greet_after_context_later(ctx: Context[Tenant], who: Greet, db: Annotated[Db, Depends(get_db)]) -> str:
    return who.name


@server.handle(greet, replace=True)
async def greet_decorated(who: Greet) -> str:
    return who.name


server.handle(greet, greet_user)
server.handle(greet, greet_after_context, replace=True)
server.handle(greet, greet_after_context_later, replace=True)
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
async def audit(call: Call, call_next: dispatch.CallNext) -> dispatch.Outcome:
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


# --- calls by name and by contract: what is a class keeps its type, and what is none is `Any`


class Look(TypedDict):
    name: str


look = define("look", input=Look, output=int)
maybe = define("maybe", input=Greet, output=int | None)
word = define("word", input=Greet, output=Literal["x", "y"])


async def by_name(client: Client) -> None:
    assert_type(await client.call_tool("x"), Result[Any])
    assert_type(await client.call_tool("x", {"a": 1}, timeout=5), Result[Any])
    assert_type(await client.call_tool("x", output=None), Result[Any])
    assert_type(await client.call_tool("x", output=int), Result[int])
    assert_type(await client.call_tool("x", output=list[int]), Result[list[int]])
    assert_type(await client.call_tool("x", output=bytes), Result[bytes])
    await client.call_tool("x", output=int | None)
    await client.call_tool("x", output=Optional[int])  # noqa: UP045 - as many write it
    await client.call_tool("x", output=Literal["a"])
    await client.call_tool("x", output=Annotated[int, "a"])
    await client.call_tool("x", output=Any)
    assert_type(await client.call_tool(look, {"name": "a"}), Result[int])
    await client.call_tool(maybe, Greet("Ada"))
    await client.call_tool(word, Greet("Ada"))


async def tried(client: Client) -> str:
    assert_type(await client.try_call_tool("x"), Outcome[Any])
    assert_type(await client.try_call_tool("x", output=int), Outcome[int])
    assert_type(await client.try_call_tool(greet, Greet("Ada")), Outcome[str])
    await client.try_call_tool("x", output=int | None)
    outcome = await client.try_call_tool("greet")
    while isinstance(outcome, InputRequired):
        outcome = await outcome.answer({"name": {"value": "Ada"}})
    match outcome:
        case Succeeded(value):
            return str(value)
        case Refused() as no:
            return no.text


async def matched(client: Client) -> None:
    match await client.try_call_tool("buy", {"item": "moon"}):
        case Succeeded(value):
            str(value)
        case Refused() as no:
            str(no.text)
        case InputRequired() as question:
            str(question)
