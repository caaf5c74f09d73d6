"""The lifespan: once per process, in one task, with a value that handlers reach."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mcprelay import ConfigurationError, Context, Server
from tests.server.ask import call, connected

events: list[str] = []


@pytest.fixture(autouse=True)
def _no_events() -> None:
    events.clear()


async def living(server: Server) -> AsyncIterator[str]:
    task = asyncio.current_task()
    events.append(f"entered {server.info.name}")
    try:
        yield f"value of {server.info.name}"
    finally:
        assert asyncio.current_task() is task, "it is left where it was entered"
        events.append(f"left {server.info.name}")


def alive(**options: Any) -> Server:
    server = Server("s", **{"lifespan": living, **options})

    @server.tool
    def value(ctx: Context) -> str:
        return str(ctx.lifespan)

    return server


async def test_a_lifespan_is_entered_before_the_first_request_and_its_value_is_in_the_context():
    server = alive()
    assert events == []
    async with connected(server) as client:
        result = await client.result("tools/call", {"name": "value", "arguments": {}})
        assert result["content"][0]["text"] == "value of s"
        assert events == ["entered s"]
    assert events == ["entered s", "left s"]


async def test_a_lifespan_is_entered_once_for_many_who_come_at_once():
    server = alive()
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(server)) for _ in range(5)]
        await asyncio.gather(*(client.ask("server/discover") for client in clients))
        assert events == ["entered s"]
    assert events == ["entered s", "left s"]


async def test_a_server_that_was_started_outlives_those_who_connect():
    server = alive()
    await server.start()
    await server.start()
    assert await call(server, "value") == "value of s"
    assert await call(server, "value") == "value of s"
    assert events == ["entered s"]
    await server.stop()
    await server.stop()
    assert events == ["entered s", "left s"]
    assert await call(server, "value") == "value of s", "a server can live again"


@pytest.mark.parametrize("form", ["a manager", "of nothing", "a decorator", "a class"])
async def test_a_lifespan_may_be_written_in_several_ways(form: str):
    @contextlib.asynccontextmanager
    async def manager(server: Server) -> AsyncIterator[str]:
        async for value in living(server):
            yield value

    async def nothing() -> AsyncIterator[str]:
        yield "value of s"

    class Manager:
        def __init__(self, server: Server) -> None:
            self.name = server.info.name

        async def __aenter__(self) -> str:
            return f"value of {self.name}"

        async def __aexit__(self, *_: object) -> None: ...

    if form == "a decorator":
        server = alive(lifespan=None)
        assert server.lifespan(living) is living
    else:
        server = alive(lifespan={"a manager": manager, "of nothing": nothing, "a class": Manager}[form])

    assert await call(server, "value") == "value of s"


def test_what_is_no_lifespan_is_refused_with_the_way_to_write_one():
    def generator(server: Server) -> Any:
        yield 1

    async def coroutine(server: Server) -> int:
        return 1

    for wrong in (generator, coroutine, 5):
        with pytest.raises(ConfigurationError, match=r"Write `async def lifespan\(server\): …; yield value"):
            Server("s", lifespan=wrong)  # type: ignore[arg-type]
    server = alive()
    with pytest.raises(ConfigurationError, match="one lifespan"):
        server.lifespan(living)


async def test_a_lifespan_that_fails_to_begin_says_why_to_everybody_who_waits_and_may_begin_later():
    attempts: list[int] = []

    async def failing(server: Server) -> AsyncIterator[str]:
        attempts.append(1)
        if len(attempts) == 1:
            await asyncio.sleep(0)
            raise RuntimeError("no database")
        yield "value of s"

    server = alive(lifespan=failing)
    outcomes = await asyncio.gather(server.start(), server.start(), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["no database"] * 2
    assert not server.started
    assert await call(server, "value") == "value of s"


async def test_a_lifespan_that_fails_to_end_says_so_where_it_is_ended():
    async def failing(server: Server) -> AsyncIterator[str]:
        yield "x"
        raise RuntimeError("cannot close")

    server = alive(lifespan=failing)
    await server.start()
    with pytest.raises(RuntimeError, match="cannot close"):
        await server.stop()
    assert not server.started


async def test_who_is_cancelled_while_it_begins_does_not_cancel_it_for_others():
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(server: Server) -> AsyncIterator[str]:
        begun.set()
        await go_on.wait()
        yield "value of s"

    server = alive(lifespan=slow)
    first = asyncio.create_task(server.start())
    await begun.wait()
    first.cancel()
    second = asyncio.create_task(server.start())
    with pytest.raises(asyncio.CancelledError):
        await first
    go_on.set()
    await second
    assert server.started
    await server.stop()


def test_a_lifespan_ends_with_the_event_loop_that_it_belongs_to():
    server = alive()

    async def start() -> None:
        await server.start()

    asyncio.run(start())
    assert events == ["entered s", "left s"]
    asyncio.run(start())
    assert events == ["entered s", "left s"] * 2


async def test_middleware_and_lifespans_are_not_registered_after_the_start():
    server = alive(lifespan=None)
    await server.start()
    with pytest.raises(ConfigurationError, match="before the server starts"):
        server.middleware(lambda call, call_next: call_next(call))
    with pytest.raises(ConfigurationError, match="before it starts"):
        server.lifespan(living)
    await server.stop()
