"""A plain function that asks the client is told to be `async def`: where it is defined, or else where it asks."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from mcprelay import Client, Context, DefinitionError, Depends, RemoteError, Server, revisions
from mcprelay.revisions import Era
from mcprelay.types import Tool
from tests.server.ask import call, connected, error
from tests.server.rawclient import meta as stateless
from tests.server.wire import INFO, request

if TYPE_CHECKING:
    from mcprelay.revisions import Revision


@dataclass
class Seat:
    seat: str


def elicits(ctx: Context) -> str:
    answer = ctx.elicit("Which?", Seat)
    return answer.value.seat  # type: ignore[attr-defined]


def elicits_url(a: int, ctx: Context, b: int = 1) -> Any:
    return ctx.elicit_url("Go", "https://a.example")


def samples(ctx: Context) -> Any:
    if ctx.cancelled:
        return None
    return [ctx.sample("Say", max_tokens=5) for _ in range(2)]


def stores(x: int, ctx: Context) -> Any:
    y = x
    return ctx.roots(), y


def remembers(ctx: Context) -> Any:
    def inner() -> Any:
        return 1

    return ctx.once("k", inner)


def yields(ctx: Context) -> Any:
    yield ctx.roots()


class Called:
    def __call__(self, ctx: Context) -> Any:
        return ctx.roots()


class Methods:
    def ask(self, ctx: Context) -> Any:
        return ctx.roots()


@pytest.mark.parametrize(
    ("function", "asked"),
    [
        (elicits, "ctx.elicit"),
        (elicits_url, "ctx.elicit_url"),
        (samples, "ctx.sample"),
        (remembers, "ctx.once"),
        (stores, "ctx.roots"),
        (yields, "ctx.roots"),
        (Called, "ctx.roots"),
        (Called(), "ctx.roots"),
        (Methods().ask, "ctx.roots"),
        ((Methods, "ask"), "ctx.roots"),
        (functools.partial(elicits_url, b=2), "ctx.elicit_url"),
    ],
)
def test_a_def_that_asks_is_refused_where_it_is_defined(function: Any, asked: str) -> None:
    with pytest.raises(DefinitionError, match=rf"is a `def` and calls {asked}\(…\).*make it `async def") as caught:
        Server("x").add_tool(function, name="t")
    assert "test_asking.py" in str(caught.value)


def test_resources_prompts_and_dependencies_are_looked_at_as_well() -> None:
    server = Server("x")
    with pytest.raises(DefinitionError, match=r"calls ctx\.elicit\("):
        server.add_resource("a:b", elicits)
    with pytest.raises(DefinitionError, match=r"calls ctx\.elicit\("):
        server.add_prompt(elicits)

    async def handler(seat: Annotated[str, Depends(elicits)]) -> str:
        return seat

    with pytest.raises(DefinitionError, match=r"calls ctx\.elicit\("):
        server.add_tool(handler)


def test_what_only_looks_like_asking_is_not_refused() -> None:
    server = Server("x")

    class Survey:
        def sample(self, text: str) -> str:
            return text

    survey = Survey()

    @server.tool
    def other(ctx: Context, sample: int) -> str:
        """It samples something else."""
        ctx.info(sample)
        return survey.sample(str(sample))

    async def asks(ctx: Context) -> str:
        return str(len(await ctx.roots()))

    @functools.wraps(asks)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return asks(*args, **kwargs)

    server.add_tool(wrapper)


async def test_a_def_that_asks_by_other_means_is_told_where_it_asks(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("x")

    def help_me(context: Context) -> Any:
        return context.elicit("Which?", Seat)

    @server.tool
    def hidden(ctx: Context) -> str:
        return str(help_me(ctx))

    assert (await call(server, "hidden")).startswith("error: Internal error")
    assert "only an `async def` can ask the client" in caplog.text
    assert "was never awaited" not in caplog.text


async def test_a_wrapper_of_an_async_handler_may_ask() -> None:
    server = Server("x")

    async def asks(ctx: Context) -> str:
        return (await ctx.elicit("Which?", Seat)).action

    @functools.wraps(asks)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return asks(*args, **kwargs)

    server.add_tool(wrapper)
    failed = await error(server, "tools/call", {"name": "asks", "arguments": {}})
    assert "has not declared" in failed["message"]


async def test_progress_and_logs_from_any_thread_leave_from_the_loops_own() -> None:
    server = Server("x")
    threads: list[int] = []

    def get(ctx: Context) -> int:
        ctx.progress(1)
        return 1

    @server.tool
    async def tell(ctx: Context, value: Annotated[int, Depends(get)]) -> int:
        notify = ctx._call.link.notify

        def watched(message: bytes) -> None:
            threads.append(threading.get_ident())
            notify(message)

        ctx._call.link = _Watched(ctx._call.link, watched)
        await asyncio.to_thread(ctx.progress, 2)
        ctx.progress(3)
        await asyncio.sleep(0)
        return value

    async with connected(server) as client:
        answer = await client.result("tools/call", {"name": "tell", "arguments": {}}, progressToken="p")
    assert answer["structuredContent"] == 1
    assert [notice["params"]["progress"] for notice in client.notices] == [1, 2, 3]
    assert set(threads) == {threading.get_ident()}


class _Watched:
    def __init__(self, link: Any, notify: Any) -> None:
        self._link = link
        self.notify = notify

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)


@pytest.mark.parametrize("revision", revisions.ALL.values(), ids=lambda revision: revision.name)
async def test_what_the_client_has_not_declared_is_refused_with_the_code_of_its_revision(revision: Revision) -> None:
    server = Server("x")

    @server.tool
    async def folders(ctx: Context) -> str:
        return str(await ctx.roots())

    channel = server.connect()
    meta: dict[str, Any] = {}
    if revision.era is Era.HANDSHAKE:
        hello = {"protocolVersion": revision.name, "capabilities": {}, "clientInfo": INFO}
        await channel.send(json.dumps(request("initialize", hello)).encode())
        await channel.receive()
    else:
        meta = {"_meta": stateless()}
    await channel.send(json.dumps(request("tools/call", {"name": "folders", "arguments": {}, **meta}, id=2)).encode())
    failed = json.loads(await channel.receive())["error"]
    assert failed["code"] == (-32602 if revision.era is Era.HANDSHAKE else -32021)
    assert failed["data"] == {"requiredCapabilities": {"roots": {}}}
    await channel.aclose()


@pytest.mark.parametrize(
    ("revision", "tool", "said"),
    [
        ("2025-03-26", "form", "needs elicitation/create (elicitation.form), which 2025-03-26 does not have"),
        ("2025-03-26", "url", "needs elicitation/create (elicitation.url), which 2025-03-26 does not have"),
        ("2025-06-18", "url", "needs elicitation/create (elicitation.url), which 2025-06-18 does not have"),
        ("2025-06-18", "tools", "(sampling.tools), which 2025-06-18 does not have"),
        ("2025-11-25", "tools", "(sampling.tools), which the client has not declared"),
    ],
)
async def test_a_question_that_the_revision_does_not_have_is_told_as_that(revision: str, tool: str, said: str) -> None:
    server = Server("x")

    @server.tool
    async def form(ctx: Context) -> str:
        return (await ctx.elicit("Which?", Seat)).action

    @server.tool
    async def url(ctx: Context) -> str:
        return (await ctx.elicit_url("Open?", "https://a.example/b")).action

    @server.tool
    async def tools(ctx: Context) -> str:
        return (await ctx.sample("Hello", max_tokens=5, tools=[Tool(name="x", input_schema={"type": "object"})])).text

    answers: dict[str, Any] = {"on_elicit": lambda form: True, "on_sample": lambda asked: "x"}
    async with Client(server, revision=revision, **answers) as client:
        with pytest.raises(RemoteError) as caught:
            await client.call_tool(tool)
    assert said in str(caught.value)
    assert "the protocol revision that is spoken has no such question" in str(caught.value)
