"""Contracts: one definition at both ends, handled on the server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from pydantic import BaseModel

from mcprelay import Client, Context, DefinitionError, Depends, Server, ToolError, define
from mcprelay.types import ToolAnnotations
from tests.server.ask import call, connected, error, names


@dataclass
class Greet:
    """Who is greeted."""

    name: str
    times: int = 1


greet = define(
    "greet",
    input=Greet,
    output=str,
    title="Greet",
    description="Greets the user by name.",
    annotations=ToolAnnotations(read_only_hint=True),
    meta={"a": 1},
)


def greet_user(who: Greet) -> str:
    return " ".join([f"Hello {who.name}"] * who.times)


async def test_what_is_published_is_the_contract_and_the_fields_of_its_input():
    server = Server("s")
    server.handle(greet, greet_user)

    async with connected(server) as client:
        [tool] = (await client.result("tools/list"))["tools"]

    assert tool == {
        "name": "greet",
        "title": "Greet",
        "description": "Greets the user by name.",
        "annotations": {"readOnlyHint": True},
        "_meta": {"a": 1},
        "inputSchema": {
            "type": "object",
            "description": "Who is greeted.",
            "properties": {"name": {"type": "string"}, "times": {"type": "integer", "default": 1}},
            "required": ["name"],
            "additionalProperties": False,
        },
        "outputSchema": {"type": "string"},
    }


async def test_both_ends_speak_through_it_with_types():
    server = Server("s")
    server.handle(greet, greet_user)
    async with Client(server) as client:
        result = await client.call_tool(greet, Greet("Ada", 2))
        assert result.value == "Hello Ada Hello Ada"
        assert (await client.call_tool(greet, {"name": "Bob"})).value == "Hello Bob"


async def test_a_handler_may_be_async_and_take_what_is_injected():
    opened: list[str] = []

    def db() -> Iterator[str]:
        opened.append("open")
        yield "db"
        opened.append("closed")

    async def handle(ctx: Context, who: Greet, db: Annotated[str, Depends(db)]) -> str:
        return f"{who.name} {ctx.request_id} {db}"

    handle.__annotations__["db"] = Annotated[str, Depends(db)]
    server = Server("s")
    server.handle(greet, handle)  # type: ignore[arg-type]  # injected parameters come after the input for checkers

    assert await call(server, "greet", {"name": "Ada"}) == "Ada 1 db"
    assert opened == ["open", "closed"]


async def test_a_handler_need_not_repeat_the_type():
    server = Server("s")
    server.handle(greet, lambda who: who.name.upper())
    assert await call(server, "greet", {"name": "Ada"}) == "ADA"


async def test_a_handler_may_be_a_method_a_class_or_a_pair():
    class Greeter:
        def __init__(self) -> None:
            self.word = "Hi"

        def greet(self, who: Greet) -> str:
            return f"{self.word} {who.name}"

        def __call__(self, who: Greet) -> str:
            return f"called {who.name}"

    for handler, expected in (
        (Greeter().greet, "Hi Ada"),
        (Greeter(), "called Ada"),
        (Greeter, "called Ada"),
        ((Greeter, "greet"), "Hi Ada"),
    ):
        server = Server("s")
        server.handle(greet, handler)  # type: ignore[arg-type]
        assert await call(server, "greet", {"name": "Ada"}) == expected


class Typed(TypedDict, total=False):
    name: str


class Packed(msgspec.Struct):
    name: str


class Model(BaseModel):
    name: str


@pytest.mark.parametrize("kind", [Greet, Typed, Packed, Model])
async def test_the_input_is_any_class_with_fields(kind: Any):
    contract = define("c", input=kind, output=dict)
    server = Server("s")

    def handle(value: Any) -> dict[str, Any]:
        return {"name": value["name"] if isinstance(value, dict) else value.name, "kind": type(value).__name__}

    server.handle(contract, handle)
    expected = "dict" if kind is Typed else kind.__name__
    assert await call(server, "c", {"name": "Ada"}) == {"name": "Ada", "kind": expected}
    assert (await call(server, "c", {"name": 5})).startswith("error:")


async def test_wrong_arguments_are_told_by_the_contracts_own_names():
    server = Server("s")
    server.handle(greet, greet_user)
    async with connected(server) as client:
        params = {"name": "greet", "arguments": {"name": 5, "tims": 2, "times": "x"}}
        result = await client.result("tools/call", params)
        text = result["content"][0]["text"]
        paths = [one["path"] for one in result["_meta"]["mcprelay.dev/errors"]]
    assert result["isError"]
    assert sorted(paths) == ["/name", "/times", "/tims"]
    assert "who" not in text
    assert "times" in text


async def test_errors_and_results_are_as_of_any_tool():
    def handle(who: Greet) -> Any:
        if who.name == "error":
            raise ToolError("no")
        return 5

    server = Server("s")
    server.handle(greet, handle)
    assert await call(server, "greet", {"name": "error"}) == "error: no"
    assert (await call(server, "greet", {"name": "wrong"})).startswith("error: Internal error"), "5 is no str"


async def test_its_options_are_those_of_a_handler_and_nothing_of_the_definition():
    server = Server("s")
    server.handle(greet, greet_user, requires=["admin"], tags=["t"], inline=True)
    assert await names(server) == []
    assert (await error(server, "tools/call", {"name": "greet"}))["message"] == "Unknown tool: greet"
    with pytest.raises(TypeError, match="title"):
        server.handle(greet, greet_user, title="T")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (lambda: "", r"the handler of 'greet' .* takes 0 values; a contract's handler takes one, a Greet"),
        (lambda a, b: "", r"takes 2 values"),
    ],
)
def test_a_handler_that_takes_another_number_of_values_is_refused(handler: Any, message: str):
    with pytest.raises(DefinitionError, match=message):
        Server("s").handle(greet, handler)


def test_a_handler_of_another_type_is_refused():
    def other(who: int) -> str:
        return ""

    with pytest.raises(DefinitionError, match=r"takes a int, and the contract's input is Greet"):
        Server("s").handle(greet, other)  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="which is no JSON object"):
        Server("s").handle(define("c", input=int, output=int), lambda value: value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "not empty"),
        ("x" * 129, "has 129 characters.*at most 128"),
        ("a/b", "has '/' in it"),
        ("a b", "has ' ' in it"),
        ("über", "has 'ü' in it"),
        ("a\n", r"has '\\n' in it"),
    ],
)
def test_a_contract_and_a_tool_have_one_rule_for_names(name: str, message: str):
    with pytest.raises(DefinitionError, match=message):
        define(name, input=Greet, output=str)
    if name:
        with pytest.raises(DefinitionError, match=message):
            Server("x").add_tool(lambda: "", name=name)


@pytest.mark.parametrize("name", ["getUser", "DATA_EXPORT_v2", "admin.tools.list", "x" * 128, "-"])
def test_names_that_the_specification_shows_will_do(name: str):
    server = Server("x")
    server.handle(define(name, input=Greet, output=str), lambda _: "")
    server.add_tool(lambda: "", name=name, replace=True)


def test_a_name_that_is_taken_is_taken():
    server = Server("s")
    server.handle(greet, greet_user)
    with pytest.raises(DefinitionError, match="two tools 'greet'"):
        server.handle(greet, greet_user)
    server.handle(greet, greet_user, replace=True)


async def test_a_context_may_come_first_and_a_decorated_function_stays_what_it_was():
    server = Server("s")

    @server.handle(greet, tags=["x"])
    async def after_context(ctx: Context, who: Greet) -> str:
        return f"{type(ctx).__name__} {who.name}"

    assert after_context.__name__ == "after_context"
    async with Client(server) as client:
        assert (await client.call_tool(greet, Greet("Ada"))).value == "Context Ada"


def test_a_decorated_function_may_take_the_place_of_another():
    server = Server("s")
    server.handle(greet, greet_user)
    with pytest.raises(DefinitionError):
        server.handle(greet)(greet_user)
    assert server.handle(greet, replace=True)(greet_user) is greet_user


@pytest.mark.parametrize("given", [greet_user, "greet", None])
def test_what_is_no_contract_is_told_what_to_write(given: Any):
    for arguments in ((given,), (given, greet_user)):
        with pytest.raises(DefinitionError, match=r"server\.handle needs the contract first: .* @server\.tool"):
            Server("s").handle(*arguments)
