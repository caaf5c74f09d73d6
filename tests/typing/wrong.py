"""What does not compile: each line that ends with `# error` is one for every checker, and no other line is."""
# pyright: strict

from dataclasses import dataclass
from typing import TypedDict

from mcprelay import Client, Context, Server, define, resource, tool
from mcprelay.server.call import Call


@dataclass
class Greet:
    name: str


@dataclass
class Tenant:
    id: int


server = Server("s")
greet = define("greet", input=Greet, output=str)


# --- a handler of another type than its contract


def other_input(who: int) -> str:
    return str(who)


def other_output(who: Greet) -> int:
    return len(who.name)


async def other_output_later(who: Greet) -> int:
    return len(who.name)


def nothing() -> str:
    return ""


def right(who: Greet) -> str:
    return who.name


def other_after_context(ctx: Context, who: int) -> str:
    return str(who)


server.handle(greet, other_input)  # error
server.handle(greet, other_after_context)  # error
server.handle(right)  # error
server.handle(greet, other_output)  # error
server.handle(greet, other_output_later)  # error
server.handle(greet, nothing)  # error
server.handle("greet", other_input)  # error

# --- options that there are not


def add(a: int, b: int) -> int:
    return a + b


server.add_tool(add, nam="x")  # error
server.add_tool(add, name=5)  # error
server.add_tool(add, size=5)  # error
server.add_prompt(add, read_only=True)  # error
server.add_resource("a://b", add, mimetype="text/plain")  # error
server.add_resource(add, "a://b")  # error
server.resource(add)  # error
server.tool(read_only="yes")  # error
server.handle(greet, right, title="T")  # error
tool(idempotant=True)  # error
resource(5)  # error
server.run("carrier pigeon")  # error
server.run("http", prot=1)  # error
server.discover(5)  # error
server.mount(server, "x")  # error


# --- what a decorated function still refuses


@server.tool
def plus(a: int, b: int) -> int:
    return a + b


@server.tool(name="x")
def text(value: str) -> str:
    return value


plus("a", 2)  # error
text(5)  # error


# --- the state of a request


@server.tool
def state(ctx: Context[Tenant]) -> str:
    return ctx.state.name  # error


# --- a function called at the other end


async def at_the_other_end(client: Client) -> None:
    await client.tool(add)(a="1", b=2)  # error
    await client.tool(add)(a=1)  # error


# --- middleware


def not_async(call: Call) -> str:
    return call.method.name


server.middleware(not_async)  # error


# --- a contract called with something else than its input


class Look(TypedDict):
    name: str


look = define("look", input=Look, output=int)


async def by_contract(client: Client) -> None:
    await client.call_tool(look, {"nam": "typo"})  # error
    await client.call_tool(greet, Look(name="a"))  # error
    await client.call_tool(greet, 5)  # error
    await client.call_tool(greet)  # error
    await client.try_call_tool(look, {"nam": "typo"})  # error
    await client.try_call_tool(greet, 5)  # error
    await client.call_tool("x", {}, timout=3)  # error
    await client.try_call_tool("x", {}, timout=3)  # error
