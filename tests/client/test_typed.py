"""Calling a tool through the function that serves it."""

import dataclasses
import functools
from typing import Annotated

import pytest

from mcprelay import ConfigurationError, Context, Image, Server, Text, ToolError, define
from mcprelay.client import Client


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Shop:
    def __init__(self):
        self.sold = 0

    async def sell(self, count: int, note: str = "") -> int:
        self.sold += count
        return self.sold


def served():
    server = Server("typed")
    ran = []

    @server.tool
    def add(a: int, b: int = 10) -> int:
        ran.append("add")
        return a + b

    @server.tool
    async def move(ctx: Context, point: Point, by: Annotated[int, "how far"]) -> Point:
        return Point(point.x + by, point.y)

    @server.tool
    async def picture() -> Image:
        return Image(b"png", "image/png")

    @server.tool
    async def nothing() -> None:
        return None

    @server.tool
    async def fails() -> int:
        raise ToolError("no such row")

    return server, (add, move, picture, nothing, fails), ran


async def test_a_call_through_a_function_gives_what_the_function_gives():
    server, (add, move, picture, nothing, fails), ran = served()
    async with Client(server) as client:
        assert await client.tool(add)(1, b=2) == 3
        assert await client.tool(add)(a=1) == 11
        assert ran == ["add", "add"]  # on the server, not here
        assert await client.tool(move)(Point(1, 5), by=2) == Point(3, 5)
        assert await client.tool(move)(point=Point(1, 5), by=2) == Point(3, 5)
        assert await client.tool(picture)() == Image(b"png", "image/png")
        assert await client.tool(nothing)() is None
        with pytest.raises(ToolError, match="no such row"):
            await client.tool(fails)()


async def test_a_bound_method_is_a_tool_like_another():
    server, shop = Server("shop"), Shop()
    server.add_tool(shop.sell)
    async with Client(server) as client:
        assert await client.tool(shop.sell)(2) == 2
        assert await client.tool(shop.sell)(count=3, note="x") == 5


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((1, 2, 3), {}, "takes 2 arguments"),
        ((1,), {"a": 1}, "two values"),
        ((), {}, "needs"),
        ((1,), {"c": 1}, "takes no"),
    ],
)
async def test_a_call_that_the_function_would_not_take_is_refused_here(args, kwargs, said):
    server, (add, *_), ran = served()
    async with Client(server) as client:
        with pytest.raises(TypeError, match=said):
            await client.tool(add)(*args, **kwargs)
    assert ran == []


async def test_a_function_that_is_no_tool_is_told():
    server, _, _ = served()
    async with Client(server) as client:
        for other in (len, lambda: 1, Server):
            with pytest.raises(ConfigurationError, match="no tool"):
                client.tool(other)


async def test_a_function_under_two_names_is_called_by_the_one_that_is_said():
    server = Server("two")

    def add(a: int, b: int = 1) -> int:
        return a + b

    server.add_tool(add)
    server.add_tool(add, name="plus", timeout=5)
    server.add_tool(add, name="plus", replace=True)
    server.add_prompt(lambda: "p", name="other")
    async with Client(server) as client:
        for given, said in ((None, "registered as 'add' and 'plus': say which"), ("sum", "'plus', and not as 'sum'")):
            with pytest.raises(ConfigurationError, match=said):
                client.tool(add, name=given)
        assert client.tool(add, name="plus").definition.name == "plus"
        assert [await client.tool(add, name=name)(1, b=2) for name in ("add", "plus")] == [3, 3]
        with pytest.raises(TypeError, match="plus takes no"):
            await client.tool(add, name="plus")(c=1)


async def test_a_function_that_is_more_than_a_tool_is_called_as_a_tool():
    server = Server("many")

    def say() -> str:
        return "said"

    server.add_tool(say)
    server.add_prompt(say, name="prompt")
    server.add_resource("a:b", say)
    async with Client(server) as client:
        assert await client.tool(say)() == "said"


async def test_a_wrapper_is_registered_for_itself():
    server = Server("wrapped")

    @server.tool
    def one() -> int:
        return 1

    @functools.wraps(one)
    def two() -> int:
        return one() + 1

    server.add_tool(two, name="two")
    async with Client(server) as client:
        assert [await client.tool(one)(), await client.tool(two)()] == [1, 2]


async def test_a_tool_of_a_mounted_server_is_called_by_the_name_that_it_has_there():
    server, (add, *_), _ = served()
    outer = Server("outer")
    outer.mount("inner", server)
    async with Client(outer) as client:
        assert await client.tool(add, name="inner_add")(1, 2) == 3


async def test_options_go_with_every_call_through_the_function(clock):
    server = Server("typed")
    seen = []

    @server.tool
    async def slow(ctx: Context) -> str:
        seen.append(ctx.correlation_id)
        await clock.advance(30)
        return ""

    async with Client(server) as client:
        with pytest.raises(TimeoutError):
            await client.tool(slow, timeout=30, correlation_id="c-1")()
    assert seen == ["c-1"]


async def test_one_contract_serves_both_sides():
    move = define("move", input=Point, output=list[Point], description="Moves.")
    server = Server("contract")
    server.handle(move, lambda point: [point, Point(point.x + 1, point.y)])
    async with Client(server) as client:
        result = await client.call_tool(move, Point(1))
        assert result.value == [Point(1), Point(2)]
        assert isinstance(result.content[0], Text)
        assert (await client.list_tools())[0].description == "Moves."


NAMED = "is not a function that serves a tool: names and contracts go to `await client.call_tool"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("price", f"the name 'price' {NAMED}('price', {{…}})`"),
        (define("greet", input=Point, output=str), f"a contract {NAMED}(contract, {{…}})`"),
        (print, "the function 'print' is no tool here"),
    ],
)
async def test_what_is_no_function_says_what_to_call_it_by(given, said):
    async with Client(Server("s")) as client:
        with pytest.raises(ConfigurationError) as caught:
            client.tool(given)
    assert str(caught.value).startswith(said)
