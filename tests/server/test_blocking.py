"""Plain functions of a user's may block: each runs where it stops nobody else, so a ping is answered meanwhile."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from mcprelay import Complete, Context, Depends, Limits, Server
from mcprelay.auth.resource import Attestation, Bearer
from tests.server.ask import connected
from tests.server.test_asgi import Modern
from tests.server.wire import Http, request, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RESOURCE = "http://server.example/mcp"


class Blocking:
    """Blocks the thread that calls it until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.released = threading.Event()
        self.thread: int | None = None

    def wait(self) -> None:
        self.thread = threading.get_ident()
        self.entered.set()
        assert self.released.wait(5), "it stops the loop"

    def read(self, size: int = -1) -> bytes:
        """A pipe that nobody writes to yet."""
        self.wait()
        return b""


def of_completion(server: Server, blocking: Blocking) -> tuple[str, dict[str, Any]]:
    def suggest(typed: str) -> Iterator[str]:
        blocking.wait()
        yield typed + "!"

    @server.prompt
    def say(word: Annotated[str, Complete(suggest)]) -> str:
        return word

    return "completion/complete", {
        "ref": {"type": "ref/prompt", "name": "say"},
        "argument": {"name": "word", "value": "a"},
    }


def of_tool(server: Server, blocking: Blocking) -> tuple[str, dict[str, Any]]:
    @server.tool
    def block() -> None:
        blocking.wait()

    return "tools/call", {"name": "block", "arguments": {}}


def of_dependency(server: Server, blocking: Blocking) -> tuple[str, dict[str, Any]]:
    def get() -> int:
        blocking.wait()
        return 1

    @server.tool
    async def block(value: Annotated[int, Depends(get)]) -> int:
        return value

    return "tools/call", {"name": "block", "arguments": {}}


def of_stream(server: Server, blocking: Blocking) -> tuple[str, dict[str, Any]]:
    @server.tool
    async def block() -> Any:
        return blocking

    return "tools/call", {"name": "block", "arguments": {}}


def of_streams(server: Server, blocking: Blocking) -> tuple[str, dict[str, Any]]:
    @server.tool
    async def block() -> Any:
        return ["text", blocking]

    return "tools/call", {"name": "block", "arguments": {}}


def of_resource(server: Server, blocking: Blocking) -> tuple[str, dict[str, Any]]:
    @server.resource("a:b")
    async def block(ctx: Context) -> Any:
        return blocking

    return "resources/read", {"uri": "a:b"}


@pytest.mark.parametrize("make", [of_completion, of_tool, of_dependency, of_stream, of_streams, of_resource])
async def test_what_blocks_does_not_delay_another_request(
    make: Callable[[Server, Blocking], tuple[str, dict[str, Any]]],
) -> None:
    server, blocking = Server("blocking"), Blocking()
    method, params = make(server, blocking)
    async with connected(server) as client:
        slow = await client.request(method, params)
        await until(blocking.entered.is_set)
        quick = await client.request("server/discover")
        assert (await client.receive())["id"] == quick
        blocking.released.set()
        answer = await client.receive()
        assert answer["id"] == slow
        assert "result" in answer
    assert blocking.thread != threading.get_ident()


@pytest.mark.parametrize("which", ["context", "verify"])
async def test_what_blocks_at_the_door_does_not_delay_who_is_inside(which: str) -> None:
    blocking = Blocking()

    def context(_request: Any) -> str:
        if which == "context" and "x-slow" in _request.headers:
            blocking.wait()
        return "state"

    def verify(token: str) -> Attestation:
        if which == "verify" and token == "slow":
            blocking.wait()
        return Attestation(subject="ada", audiences=(RESOURCE,))

    server = Server("door", context=context, auth=Bearer(verify, resource=RESOURCE))
    http = Http(server.asgi())
    good = {"authorization": "Bearer quick"}
    slow = http.post(
        request("ping"), **({"authorization": "Bearer slow"} if which == "verify" else {**good, "x_slow": "1"})
    )
    await until(blocking.entered.is_set)
    quick = http.post(request("ping"), **good)
    assert await quick.begun() == 400  # without a session, but answered
    assert slow.status == 0
    blocking.released.set()
    assert await slow.begun() == 400
    assert blocking.thread != threading.get_ident()


async def test_known_tokens_are_looked_at_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcprelay.auth.verifier import StaticTokens

    server = Server(
        "door", auth=Bearer(StaticTokens({"x": Attestation(subject="a", audiences=(RESOURCE,))}), resource=RESOURCE)
    )
    monkeypatch.setattr(server.door_threads, "run", None)
    assert await Http(server.asgi()).post(request("ping"), authorization="Bearer x").begun() == 400


async def test_handlers_that_use_up_the_threads_keep_nobody_from_the_door() -> None:
    blocking = Blocking()
    server = Server("door", context=lambda _request: "state", limits=Limits(worker_threads=1))

    @server.tool
    def block() -> None:
        blocking.wait()

    @server.tool
    async def state(ctx: Context) -> str:
        return str(ctx.state)

    http = Modern(server.asgi())
    slow = http.tool("block")
    await until(blocking.entered.is_set)
    assert (await http.result(http.tool("state")))["structuredContent"] == "state"
    blocking.released.set()
    await http.result(slow)
