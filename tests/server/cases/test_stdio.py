"""Cases from people's bug reports: a server over stdio, as a process (T01, T04, T06, T08, T13, T15)."""

from __future__ import annotations

import contextvars
import json
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from mcprelay import Context, Server
from mcprelay.revisions import NEWEST, NEWEST_HANDSHAKE
from tests.server.ask import connected
from tests.server.test_asgi import Modern
from tests.server.wire import INFO, Http, notification, request, until

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = """
import logging, os, subprocess, sys
from mcprelay import Server

server = Server("cases")

@server.tool
def noise(kind: str) -> str:
    if kind == "print":
        print("x")
    elif kind == "write":
        sys.stdout.write("x")
    elif kind == "descriptor":
        os.write(1, b"x")
    elif kind == "log":
        log = logging.Logger("l")
        log.addHandler(logging.StreamHandler(sys.stdout))
        log.warning("x")
    else:
        subprocess.run([sys.executable, "-c", "print('x')"], check=True)
    return kind

server.run()
"""

HELLO = request(
    "initialize", {"protocolVersion": NEWEST_HANDSHAKE.name, "capabilities": {}, "clientInfo": INFO}, id="hello"
)


class Program:
    """A server as a process, spoken to line by line."""

    def __init__(self) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM], **pipes)  # type: ignore[call-overload]
        self.lines: list[bytes] = []

    def send(self, message: Any) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        line: bytes = self.process.stdout.readline()
        self.lines.append(line)
        message: dict[str, Any] = json.loads(line)
        return message

    def ask(self, method: str, params: Any = None, *, id: Any = 1) -> dict[str, Any]:
        self.send(request(method, params, id=id))
        return self.receive()

    def end(self) -> tuple[bytes, bytes, int]:
        out, err = self.process.communicate(timeout=20)
        return out, err, self.process.returncode


@pytest.fixture
def program() -> Iterator[Program]:
    made = Program()
    made.send(HELLO)
    assert made.receive()["result"]["serverInfo"]["name"] == "cases"
    made.send(notification("notifications/initialized"))
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.process.communicate()


def test_t01_an_idle_server_is_gone_within_a_second_of_the_end_of_its_input(program: Program) -> None:
    assert program.ask("ping")["result"] == {}
    since = time.monotonic()
    out, _, code = program.end()
    assert time.monotonic() - since < 1
    assert (out, code) == (b"", 0)


def test_t04_nothing_but_the_protocol_is_on_standard_output(program: Program) -> None:
    kinds = ["print", "write", "descriptor", "log", "child"]
    for kind in kinds:
        assert program.ask("tools/call", {"name": "noise", "arguments": {"kind": kind}})["result"]["content"][0] == {
            "type": "text",
            "text": kind,
        }
    out, err, _ = program.end()
    assert out == b""
    assert err.count(b"x") == len(kinds)


def test_t06_a_malformed_line_is_answered_and_the_next_one_too(program: Program) -> None:
    program.send(b"{not json}")
    program.send(request("ping", id=41))
    first = program.receive()
    assert first["error"]["code"] == -32700
    assert first.get("id") is None
    assert program.receive() == {"jsonrpc": "2.0", "id": 41, "result": {}}


@pytest.mark.parametrize("bad", [None, 1.5, {}, True])
def test_t08_an_illegal_id_is_an_invalid_request_and_never_a_notification(program: Program, bad: Any) -> None:
    answer = program.ask("tools/list", id=bad)
    assert answer["error"]["code"] == -32600
    assert answer.get("id") is None


@pytest.mark.parametrize("bad", [None, 1.5, {}, True])
async def test_t08_an_illegal_id_is_status_400_over_http(bad: Any) -> None:
    message = json.dumps(request("tools/list", id=bad)).encode()
    modern = Modern(Server("cases").asgi())
    refused = modern.post(message, mcp_protocol_version=NEWEST.name, mcp_method="tools/list")
    assert json.loads(await refused.body())["error"]["code"] == -32600
    assert refused.status == 400
    legacy = Http(modern.app)
    await legacy.initialize()
    refused = legacy.post(message)
    assert json.loads(await refused.body())["error"]["code"] == -32600
    assert refused.status == 400


async def test_t13_slow_sync_tools_delay_no_ping_and_run_at_once_and_see_the_callers_context() -> None:
    server = Server("cases")
    entered, release = threading.Barrier(5), threading.Event()
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")

    @server.middleware
    async def name(call: Any, call_next: Any) -> Any:
        who.set("ada")
        return await call_next(call)

    @server.tool
    def slow() -> str:
        entered.wait(10)
        assert release.wait(10), "the loop is blocked"
        return who.get()

    async with connected(server) as client:
        calls = [await client.request("tools/call", {"name": "slow", "arguments": {}}) for _ in range(4)]
        arrived = threading.Thread(target=entered.wait, args=(10,))
        arrived.start()
        await until(lambda: not arrived.is_alive())  # four of them are inside at once
        ping = await client.request("server/discover")
        assert (await client.receive())["id"] == ping
        release.set()
        answers = [await client.receive() for _ in calls]
    assert {answer["id"] for answer in answers} == set(calls)
    assert [answer["result"]["structuredContent"] for answer in answers] == ["ada"] * 4


async def test_t15_progress_comes_in_order_before_the_result_and_only_where_it_was_asked_for() -> None:
    server = Server("cases")

    @server.tool
    def work(ctx: Context) -> str:
        for step in (1, 2, 3):
            ctx.progress(step)
        return "done"

    params = {"name": "work", "arguments": {}}
    async with connected(server) as client:
        await client.result("tools/call", params, progressToken="p")
        assert [(each["params"]["progressToken"], each["params"]["progress"]) for each in client.notices] == [
            ("p", 1),
            ("p", 2),
            ("p", 3),
        ]
        client.notices.clear()
        await client.result("tools/call", params)
        assert client.notices == []
    http = Modern(server.asgi())
    *told, last = await http.rest(http.ask("tools/call", {**params, "_meta": {"progressToken": "p"}}))
    assert [each["params"]["progress"] for each in told] == [1, 2, 3]
    assert last["result"]["structuredContent"] == "done"
    assert (await http.result(http.ask("tools/call", params)))["structuredContent"] == "done"
