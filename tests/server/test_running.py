"""Running: options, twice the same, and real processes that end as they should."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from mcprelay import Client, ConfigurationError, Context, Server
from tests.server.rawclient import meta

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TIMELY = 2.0
BUSY = 3.0
"""What a machine that does other things beside may add."""


def a_server(**options: Any) -> Server:
    server = Server("s", **options)

    @server.tool
    def state(ctx: Context) -> str:
        return str(ctx.state)

    return server


# --- options


@pytest.mark.parametrize(
    ("transport", "options", "message"),
    [
        ("stdio", {"port": 1}, r"no option 'port' for stdio; there are state"),
        ("http", {"prot": 1}, r"no option 'prot' for http; did you mean 'port'\?"),
        ("http", {"zzz": 1}, r"no option 'zzz' for http; there are host, port, "),
        ("carrier pigeon", {}, r"no transport 'carrier pigeon'; there are 'stdio' and 'http'"),
        ("http", {"port": "8000"}, r"port: a number from 0 to 65535, and not '8000'"),
        ("http", {"port": 65536}, r"port: a number from 0 to 65535"),
        ("http", {"host": ""}, r"host: an address or a name to bind"),
        (
            "http",
            {"host": ".".join("0000")},
            r"0\.0\.0\.0 is reachable from other machines.* has no auth=\. Protect it.*allow_unauthenticated=True",
        ),
        ("http", {"host": "localhost.example.com"}, r"localhost\.example\.com is reachable"),
        ("http", {"host": "127.evil.example"}, r"is reachable"),
        ("http", {"ssl_certfile": "/nowhere.pem"}, r"ssl_certfile: there is no file '/nowhere\.pem'"),
        ("http", {"ssl_keyfile": __file__}, r"ssl_keyfile is of no use without ssl_certfile"),
    ],
)
def test_an_option_that_will_not_do_is_an_error_before_anything_starts(transport: Any, options: Any, message: str):
    with pytest.raises(ConfigurationError, match=message):
        a_server().run(transport, **options)


def test_a_port_that_is_taken_is_an_error_that_says_so():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"cannot listen on 127\.0\.0\.1:{port}: .*Choose another port"):
            a_server().run("http", port=port)


async def test_the_same_server_runs_once_and_may_run_again():
    server = a_server()
    async with server.serve("http", port=0) as running:
        assert running.url.endswith("/mcp")
        with pytest.raises(ConfigurationError, match=r"Server\('s', version='0'\) runs already: .* once per process"):
            async with server.serve("http", port=0):
                pass
        async with Client(running.url) as client:
            assert (await client.call_tool("state")).value == "None"
    async with server.serve("http", port=0) as running, Client(running.url) as client:
        assert (await client.call_tool("state")).value == "None"
    with pytest.raises(ConfigurationError, match="no address"):
        _ = server.serve("http").url


async def test_a_server_in_several_forms_at_once():
    server = a_server()
    async with server.serve("http", port=0) as running, Client(running.url) as one, Client(server) as other:
        assert (await one.call_tool("state")).value == (await other.call_tool("state")).value


# --- processes


PROGRAM = """
import asyncio, sys, threading, time
from contextlib import suppress
from mcprelay import Server

async def living(server):
    print("entered", file=sys.stderr, flush=True)
    yield
    print("left", file=sys.stderr, flush=True)

server = Server("s", lifespan=living)

@server.tool
def echo(text: str) -> str:
    return text

@server.tool
def block() -> str:
    time.sleep(60)

@server.tool(inline=True)
def block_the_loop() -> str:
    print("blocked", file=sys.stderr, flush=True)
    time.sleep(60)

@server.tool
async def swallow() -> str:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)

@server.tool
async def leave_a_thread() -> str:
    threading.Thread(target=time.sleep, args=(60,)).start()
    await asyncio.to_thread(time.sleep, 60)
"""


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Any]:
    """Starts a program that serves."""
    started: list[subprocess.Popen[str]] = []

    def start(run: str) -> subprocess.Popen[str]:
        path = tmp_path / "served.py"
        path.write_text(f"{PROGRAM}\n{run}\nprint('after', file=sys.stderr)\n")
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, str(path)],
            stdin=pipe, stdout=pipe, stderr=pipe, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def say(process: subprocess.Popen[str], number: int, tool: str, **arguments: Any) -> None:
    params = {"name": tool, "arguments": arguments, "_meta": meta()}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    assert process.stdin is not None
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    message: dict[str, Any] = json.loads(process.stdout.readline())
    return message


def ended(process: subprocess.Popen[str], within: float) -> str:
    """What a process wrote to stderr, when it has ended with 0 in time."""
    since = time.monotonic()
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - since < within + BUSY
    assert process.returncode == 0, err
    return err


def test_stdio_ends_with_its_input_and_leaves_its_lifespan(script: Any):
    process = script("server.run()")
    say(process, 1, "echo", text="x")
    assert hear(process)["result"]["content"][0]["text"] == "x"
    assert ended(process, 1.0).split() == ["entered", "left", "after"]


@pytest.mark.parametrize("tool", ["block", "leave_a_thread", "swallow"])
def test_stdio_ends_in_time_whatever_a_handler_does(script: Any, tool: str):
    process = script("server.run()")
    say(process, 1, tool)
    say(process, 2, "echo", text="x")
    assert hear(process)["id"] == 2
    assert "left" in ended(process, TIMELY)


def test_stdio_ends_in_time_although_the_loop_is_blocked(script: Any):
    process = script("server.run()")
    say(process, 1, "block_the_loop")
    assert process.stderr.readline() == "entered\n"
    assert process.stderr.readline() == "blocked\n"
    ended(process, TIMELY)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("busy", ["idle", "block", "block_the_loop"])
def test_stdio_ends_at_a_signal(script: Any, number: int, busy: str):
    process = script("server.run()")
    say(process, 1, "echo", text="x")
    hear(process)
    if busy != "idle":
        say(process, 2, busy)
        if busy == "block_the_loop":
            assert [process.stderr.readline() for _ in range(2)] == ["entered\n", "blocked\n"]
        else:
            say(process, 3, "echo", text="x")
            assert hear(process)["id"] == 3
    process.send_signal(number)
    since = time.monotonic()
    assert process.wait(30) == 0
    assert time.monotonic() - since < TIMELY + BUSY


def test_what_is_piped_in_at_once_is_answered_before_the_end(script: Any):
    process = script("server.run()")
    for number in range(300):
        say(process, number, "echo", text=str(number))
    out, _ = process.communicate(timeout=30)
    assert sorted(json.loads(line)["id"] for line in out.splitlines()) == list(range(300))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_http_ends_at_a_signal_and_the_program_goes_on(script: Any, number: int):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = script(f"server.run('http', port={port})")
    assert process.stderr.readline() == "entered\n"
    with _listening(port) as stream:
        process.send_signal(number)
        assert ended(process, 1.5).split()[-2:] == ["left", "after"]
        assert b'"resultType":"complete"' in _rest(stream), "the stream got its final message"


def _listening(port: int) -> socket.socket:
    """An open stream of changes."""
    params = {"notifications": {"toolsListChanged": True}, "_meta": meta()}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMcp-Method: subscriptions/listen\r\n"
        f"MCP-Protocol-Version: {meta()['io.modelcontextprotocol/protocolVersion']}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    until = time.monotonic() + 20
    while True:
        try:
            stream = socket.create_connection(("127.0.0.1", port), timeout=20)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < until
    stream.sendall(head.encode() + body)
    seen = b""
    while b"acknowledged" not in seen:
        chunk = stream.recv(65536)
        assert chunk, seen
        seen += chunk
    return stream


def _rest(stream: socket.socket) -> bytes:
    parts = []
    while chunk := stream.recv(65536):
        parts.append(chunk)
    return b"".join(parts)


def test_stdio_gives_handlers_its_fixed_state(script: Any):
    process = script(
        "from mcprelay import Context\n"
        "@server.tool\n"
        "def state(ctx: Context[str]) -> str:\n"
        "    return ctx.state\n"
        "server.run('stdio', state='fixed')"
    )
    say(process, 1, "state")
    assert hear(process)["result"]["content"][0]["text"] == "fixed"


def test_a_request_that_is_piped_in_is_answered_although_the_input_ends(tmp_path: Path) -> None:
    program = tmp_path / "piped.py"
    program.write_text(
        "import time\nfrom mcprelay import Server\nserver = Server('piped')\n"
        "@server.tool\ndef slow() -> str:\n    time.sleep(0.05)\n    return 'answered'\nserver.run()\n",
        encoding="utf-8",
    )
    line = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "slow", "arguments": {}, "_meta": meta()},
        }
    )
    done = subprocess.run(
        [sys.executable, str(program)], input=line + "\n", capture_output=True, text=True, timeout=20, check=False
    )
    assert "answered" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("body", ["await asyncio.sleep(60)", "time.sleep(60)"])
def test_http_ends_in_time_although_a_handler_does_not_let_go(tmp_path: Path, body: str) -> None:
    program = tmp_path / "stubborn.py"
    program.write_text(
        "import asyncio, sys, time\nfrom mcprelay import Limits, Server\n"
        "server = Server('stubborn', limits=Limits(shutdown_grace=0.2, cancel_grace=0.3))\n"
        "@server.tool\nasync def hold() -> str:\n"
        "    print('held', file=sys.stderr, flush=True)\n"
        "    while True:\n"
        "        try:\n"
        f"            {body}\n"
        "        except asyncio.CancelledError:\n"
        "            continue\n"
        "server.run('http', port=0)\n",
        encoding="utf-8",
    )
    process = subprocess.Popen([sys.executable, str(program)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url = process.stderr.readline().split(" at ")[1].split(" ")[0]

    async def call() -> None:
        async with Client(url) as client:
            calling = asyncio.ensure_future(client.call_tool("hold"))
            line = await asyncio.to_thread(process.stderr.readline)  # type: ignore[union-attr]
            assert line == "held\n"
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, TIMELY + BUSY) == 0
            with pytest.raises(Exception, match="tools/call"):
                await calling

    try:
        asyncio.run(call())
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
