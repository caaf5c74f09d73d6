"""What is injected: the context anywhere in a signature, and dependencies that are made once and closed in order."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest

from mcprelay import Context, DefinitionError, Depends, Server
from mcprelay import Context as Ctx
from tests.server.ask import call, connected, result

events: list[str] = []


@pytest.fixture(autouse=True)
def _no_events() -> None:
    events.clear()


class Db:
    def __init__(self, name: str = "db") -> None:
        self.name = name
        self.open = True


async def get_db() -> AsyncIterator[Db]:
    db = Db()
    events.append("db opened")
    try:
        yield db
    finally:
        await asyncio.sleep(0)
        db.open = False
        events.append("db closed")


def get_session(db: Annotated[Db, Depends(get_db)]) -> Iterator[str]:
    events.append("session opened")
    yield f"session of {db.name}"
    events.append(f"session closed, db {'open' if db.open else 'closed'}")


def served(function: Any, **options: Any) -> Server:
    server = Server("s")
    server.add_tool(function, name="f", **options)
    return server


# --- the context


async def test_the_context_is_injected_wherever_it_stands_and_is_in_no_schema():
    def first(ctx: Context, q: str) -> str:
        return f"{q} {ctx.request_id}"

    def middle(a: str, ctx: Context, q: str = "") -> str:
        return f"{a}{q} {ctx.request_id}"

    def by_name(q: str, *, ctx: Context) -> str:
        return f"{q} {ctx.request_id}"

    def by_position(ctx: Context, /, q: str) -> str:
        return f"{q} {ctx.request_id}"

    def optional(q: str, c: Ctx | None = None) -> str:
        return f"{q} {c and c.request_id}"

    def postponed(q: str, c: "Ctx[Any] | None" = None) -> str:  # noqa: UP037 - that is what is tested
        return f"{q} {c and c.request_id}"

    def others(ctx: Context, **q: str) -> str:
        return f"{q['q']} {ctx.request_id}"

    for function in (first, by_name, by_position, optional, postponed):
        server = served(function)
        schema = server.catalog.tools.entries["f"].definition.input_schema  # type: ignore[union-attr]
        assert schema["properties"] == {"q": {"type": "string"}}, function
        assert schema["required"] == ["q"]
        assert await call(server, "f", {"q": "a"}) == "a 1", function
    assert await call(served(middle), "f", {"a": "x", "q": "y"}) == "xy 1"
    assert await call(served(others), "f", {"q": "a"}) == "a 1"


async def test_the_context_reaches_resources_prompts_and_dependencies():
    server = Server("s")

    def who(ctx: Context) -> str:
        return str(ctx.request_id)

    @server.resource("a://{b}")
    def resource(b: str, ctx: Context) -> str:
        return f"{b} {ctx.request_id}"

    @server.prompt
    async def prompt(ctx: Context, b: str, who: Annotated[str, Depends(who)]) -> str:
        return f"{b} {ctx.request_id} {who}"

    assert (await result(server, "resources/read", {"uri": "a://x"}))["contents"][0]["text"] == "x 1"
    got = await result(server, "prompts/get", {"name": "prompt", "arguments": {"b": "x"}})
    assert got["messages"][0]["content"]["text"] == "x 1 1"
    assert (await result(server, "prompts/list"))["prompts"][0]["arguments"] == [{"name": "b", "required": True}]


async def test_a_subclass_of_the_context_is_one_too():
    class Mine(Context[str]):
        pass

    def f(ctx: Mine) -> str:
        return type(ctx).__name__

    assert await call(served(f), "f") == "Context"


# --- dependencies


@pytest.mark.parametrize("kind", ["async", "sync", "class", "callable object", "partial", "method", "awaitable"])
async def test_a_dependency_is_any_callable(kind: str):
    async def asynchronous() -> Db:
        return Db("async")

    def synchronous() -> Db:
        return Db(f"sync {threading.current_thread() is threading.main_thread()}")

    class Made(Db):
        def __init__(self) -> None:
            super().__init__("class")

    class Maker:
        def __call__(self) -> Db:
            return Db("callable object")

        def method(self) -> Db:
            return Db("method")

    chosen: Any = {
        "async": asynchronous,
        "sync": synchronous,
        "class": Made,
        "callable object": Maker(),
        "partial": functools.partial(Db, "partial"),
        "method": Maker().method,
        "awaitable": lambda: asynchronous(),  # noqa: PLW0108 - not a coroutine function itself
    }[kind]

    def f(db: Annotated[Db, Depends(chosen)]) -> str:
        return db.name

    f.__annotations__["db"] = Annotated[Db, Depends(chosen)]
    expected = {"sync": "sync False", "awaitable": "async"}.get(kind, kind)
    assert await call(served(f), "f") == expected


async def test_a_dependency_without_a_function_is_the_annotated_class():
    class Clock:
        def __init__(self, ctx: Context) -> None:
            self.id = ctx.request_id

    def f(one: Annotated[Clock, Depends()], other: Annotated[Clock, Depends]) -> str:
        return f"{one.id} {one is other}"

    assert await call(served(f), "f") == "1 True"


async def test_a_dependency_is_made_once_per_call_however_many_need_it():
    made = []

    def number() -> int:
        made.append(1)
        return len(made)

    def twice(n: Annotated[int, Depends(number)]) -> int:
        return n * 2

    def f(
        a: Annotated[int, Depends(number)], b: Annotated[int, Depends(twice)], c: Annotated[int, Depends(number)]
    ) -> str:
        return f"{a} {b} {c}"

    server = served(f)
    assert [await call(server, "f"), await call(server, "f")] == ["1 2 1", "2 4 2"]


@pytest.mark.parametrize("handler", ["async", "sync"])
async def test_generators_are_closed_in_reverse_order_after_the_result_is_made(handler: str):
    async def f(s: Annotated[str, Depends(get_session)], db: Annotated[Db, Depends(get_db)]) -> AsyncIterator[str]:
        yield s
        events.append(f"result made, db {'open' if db.open else 'closed'}")

    def g(s: Annotated[str, Depends(get_session)], db: Annotated[Db, Depends(get_db)]) -> Iterator[str]:
        yield s
        events.append(f"result made, db {'open' if db.open else 'closed'}")

    assert await call(served(f if handler == "async" else g), "f") == "session of db"
    assert events == [
        "db opened",
        "session opened",
        "result made, db open",
        "session closed, db open",
        "db closed",
    ]


async def test_generators_see_what_the_handler_raised_and_cannot_swallow_it():
    async def swallowing() -> AsyncIterator[str]:
        with contextlib.suppress(ValueError):
            try:
                yield "x"
            except ValueError as error:
                events.append(f"saw {error}")
                raise

    def also() -> Iterator[str]:
        try:
            yield "x"
        except ValueError:
            events.append("and so did this")

    def f(a: Annotated[str, Depends(swallowing)], b: Annotated[str, Depends(also)]) -> str:
        raise ValueError("no")

    answer = await call(served(f), "f")

    assert answer.startswith("error: Internal error")
    assert "no" not in answer.replace("Internal", "")
    assert events == ["and so did this"], "the outer one sees that the inner one let nothing through"


async def test_an_error_while_closing_is_an_error_of_the_call():
    def failing() -> Iterator[str]:
        yield "x"
        raise ValueError("while closing")

    def f(a: Annotated[str, Depends(failing)]) -> str:
        return a

    assert (await call(served(f), "f")).startswith("error: Internal error")


async def test_dependencies_are_closed_when_a_later_one_fails():
    def failing(db: Annotated[Db, Depends(get_db)]) -> str:
        raise ValueError("later")

    def f(a: Annotated[str, Depends(failing)]) -> str:
        return a

    assert (await call(served(f), "f")).startswith("error:")
    assert events == ["db opened", "db closed"]


async def test_dependencies_are_closed_when_the_call_is_cancelled():
    entered = asyncio.Event()

    async def f(s: Annotated[str, Depends(get_session)]) -> str:
        entered.set()
        await asyncio.Event().wait()
        return s

    async with connected(served(f)) as client:
        request_id = await client.request("tools/call", {"name": "f", "arguments": {}})
        await entered.wait()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
        await client.send(cancel)
        await client.ask("server/discover")
    assert events == ["db opened", "session opened", "db closed"]


async def test_context_variables_of_the_call_are_seen_in_the_thread_of_a_dependency():
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    server = Server("s")

    @server.middleware
    async def setting(call: Any, call_next: Any) -> Any:
        variable.set("set")
        return await call_next(call)

    def read() -> str:
        return variable.get()

    @server.tool
    def f(a: Annotated[str, Depends(read)]) -> str:
        return f"{a} {variable.get()}"

    assert await call(server, "f") == "set set"


async def test_a_dependency_may_have_a_context_defaults_and_names_that_are_local():
    class Local:
        value = 5

    def local() -> Local:
        return Local()

    def needs(ctx: Context, found: Annotated[Local, Depends(local)], limit: int = 3, *rest: int, **more: int) -> str:
        return f"{ctx.request_id} {found.value} {limit}"

    def f(a: Annotated[str, Depends(needs)]) -> str:
        return a

    assert await call(served(f), "f") == "1 5 3"


# --- what is wrong


def test_a_parameter_that_nothing_provides_is_an_error_at_decoration():
    def needs(limit: int) -> int:
        return limit

    def f(a: Annotated[int, Depends(needs)]) -> int:
        return a

    with pytest.raises(DefinitionError, match=r"needs has a parameter 'limit' that nothing provides"):
        served(f)


def test_dependencies_that_need_each_other_are_named():
    def one(b: Annotated[int, Depends(lambda: two)]) -> int:
        return b

    def two(a: Annotated[int, Depends(one)]) -> int:
        return a

    one.__annotations__["b"] = Annotated[int, Depends(two)]

    def f(a: Annotated[int, Depends(one)]) -> int:
        return a

    f.__annotations__["a"] = Annotated[int, Depends(one)]
    with pytest.raises(DefinitionError, match=r"need each other: .*one → .*two → .*one"):
        served(f)


def test_a_context_manager_in_the_place_of_its_generator_is_an_error_that_says_so():
    @contextlib.contextmanager
    def managed() -> Iterator[int]:
        yield 1

    def f(a: Annotated[int, Depends(managed)]) -> int:
        return a

    with pytest.raises(DefinitionError, match="without @contextmanager"):
        served(f)


def test_what_cannot_be_called_is_no_dependency():
    def f(a: Annotated[int, Depends(5)]) -> int:  # type: ignore[arg-type]
        return a

    with pytest.raises(DefinitionError, match="names nothing that can be called"):
        served(f)


# --- tests of users


async def test_a_dependency_can_be_overridden_for_a_while():
    def name() -> str:
        return "real"

    def shout(name: Annotated[str, Depends(name)]) -> str:
        return name.upper()

    def f(a: Annotated[str, Depends(name)], b: Annotated[str, Depends(shout)]) -> str:
        return f"{a} {b}"

    def fake(ctx: Context) -> Iterator[str]:
        yield f"fake {ctx.request_id}"

    server = served(f)
    assert await call(server, "f") == "real REAL"
    with server.override(name, fake):
        assert await call(server, "f") == "fake 1 FAKE 1"
        with server.override(name, lambda: "inner"):
            assert await call(server, "f") == "inner INNER"
        assert await call(server, "f") == "fake 1 FAKE 1"
    assert await call(server, "f") == "real REAL"
