"""How long a handler may go on, and what it learns of it."""

import asyncio
import threading

import pytest

from mcprelay import Client, Context, DefinitionError, Limits, Server, ToolError
from mcprelay.errors import ConfigurationError, RemoteError

SOON = 0.02


async def wait() -> None:
    await asyncio.Event().wait()


async def test_a_handler_that_takes_too_long_is_ended_with_the_name_of_the_limit():
    server = Server("slow", limits=Limits(call_seconds=SOON))
    ended = []

    @server.tool
    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("wait")
        return "never"

    @server.resource("slow://resource")
    async def resource() -> str:
        await asyncio.Event().wait()
        return "never"

    async with Client(server) as client:
        with pytest.raises(ToolError, match=r"the time that this call took is over the limit: call_seconds=0.02"):
            await client.call_tool("wait")
        with pytest.raises(RemoteError, match="call_seconds=0.02"):
            await client.read_resource("slow://resource")
    assert ended == ["wait"]


async def test_a_handler_may_have_a_time_of_its_own_or_as_much_as_it_takes():
    server = Server("slow", limits=Limits(call_seconds=SOON))

    @server.tool(timeout=SOON / 2)
    async def quick() -> str:
        await asyncio.Event().wait()
        return "never"

    @server.tool(timeout=0)
    async def patient(ctx: Context) -> str:
        return str(ctx.time_left)

    @server.tool(timeout=3600)
    async def long(ctx: Context) -> bool:
        return 3590 < ctx.time_left <= 3600

    async with Client(server) as client:
        with pytest.raises(ToolError, match=r"timeout=0.01. Raise timeout to allow more"):
            await client.call_tool("quick")
        assert (await client.call_tool("patient")).value == "None"
        assert (await client.call_tool("long")).value is True


async def test_a_thread_sees_that_its_call_was_given_up():
    server = Server("slow")
    seen = threading.Event()

    @server.tool(timeout=SOON)
    def poll(ctx: Context) -> str:
        while not ctx.cancelled:
            seen.wait(0.001)
        seen.set()
        return "late"

    async with Client(server) as client:
        with pytest.raises(ToolError, match="timeout=0.02"):
            await client.call_tool("poll")
        assert await asyncio.to_thread(seen.wait, 5)


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_the_time_that_a_person_takes_does_not_count(revision):
    server = Server("asks", limits=Limits(call_seconds=0.2))
    left = []

    @server.tool
    async def ask(ctx: Context) -> str:
        answers = await asyncio.gather(ctx.elicit("A?", str, key="a"), ctx.elicit("B?", str, key="b"))
        left.append(ctx.time_left)
        return " ".join(answer.value for answer in answers)

    async def answer(question) -> dict:
        await asyncio.sleep(0.25)  # longer than a call may take: this is what is tested
        return {"value": question.message[0]}

    async with Client(server, revision=revision, on_elicit=answer) as client:
        assert (await client.call_tool("ask")).text == "A B"
    assert 0 < left[-1] <= 0.2


async def test_a_timeout_inside_of_a_handler_is_its_own():
    server = Server("inner", limits=Limits(call_seconds=60))

    @server.tool
    async def inner() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "caught"
        return "never"

    @server.tool
    async def raises() -> str:
        raise TimeoutError("postgres://secret")

    async with Client(server) as client:
        assert (await client.call_tool("inner")).value == "caught"
        with pytest.raises(ToolError, match="reference"):
            await client.call_tool("raises")


@pytest.mark.parametrize("timeout", [-1, "5", True, float("nan"), float("inf")])
def test_a_timeout_that_is_no_number_of_seconds_is_refused_with_its_place(timeout):
    server = Server("wrong")
    with pytest.raises(DefinitionError, match=r"timeout is a number of seconds.*test_patience.py"):
        server.tool(timeout=timeout)(wait)


def test_the_limit_is_a_number():
    with pytest.raises(ConfigurationError, match="call_seconds"):
        Limits(call_seconds=-1)
