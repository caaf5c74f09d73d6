"""An interpreter that ends without closing its clients leaves nothing behind, and says nothing."""

import asyncio
import contextlib
import gc
import http.server
import json
import os
import select
import subprocess
import sys
import textwrap
import threading

import pytest

from mcprelay import Client, Server
from mcprelay.client.http import HttpSender
from mcprelay.client.listening import ToolsChanged
from mcprelay.ports import Request
from tests.client.scripted_http import ScriptedHttp
from tests.client.test_lifetime import SERVER

ENDS = {
    "returns": "",
    "raises": "raise SystemExit(3)",
    "exits": "sys.exit(3)",
    "is interrupted": "raise KeyboardInterrupt",
}


def run(body, ending, tmp_path):
    script = textwrap.dedent(
        """
        import asyncio, os, sys
        from mcprelay import Client

        async def main():
            client = Client([sys.executable, "-c", SERVER, "mcprelay-child"], cwd=FOLDER)
            await client.connect()
            print(client._connection.current.channel.pid, flush=True)
            waiting = asyncio.ensure_future(client.call_tool("x", {"a": 1}))
            await waiting
            ENDING
        asyncio.run(main())
        """
    ).replace("ENDING", ending or "pass")
    script = script.replace("SERVER", repr(body)).replace("FOLDER", repr(str(tmp_path)))
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)


def ended(pid, *, within):
    """Wait for the end of a process that is not a child of this one."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], within)[0])
    finally:
        os.close(process)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux tells of the end of another's child")
@pytest.mark.parametrize("ending", ENDS.values(), ids=ENDS.keys())
def test_a_child_of_a_client_that_was_not_closed_is_gone(ending, tmp_path):
    stubborn = SERVER + "\nimport time\ntime.sleep(60)"  # does not end when its input does
    finished = run(stubborn, ending, tmp_path)
    pid = int(finished.stdout.split()[0])
    assert ended(pid, within=5)
    if not ending:
        assert finished.stderr == ""


class Answers(http.server.BaseHTTPRequestHandler):
    """A server of both eras; a call of `slow` is never answered."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Says nothing."""

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}}
            result["serverInfo"] = {"name": "s", "version": "1"}
        elif message["method"] == "server/discover":
            result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
        else:
            result = {"resultType": "complete", "content": []}
        if message.get("params", {}).get("name") == "slow":
            self.rfile.read(1)
            return
        body = b"" if "id" not in message else json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        self.send_response(200 if body else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode() if body else b"")

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.rfile.read(1)


@pytest.fixture
def address():
    """The address of such a server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    server.shutdown()
    serving.join()
    server.server_close()


LEFT = {
    "nothing": "",
    "a listening": "keep.append(client.listen(tools=True)); await keep[-1].__aenter__()",
    "a call": "keep.append(asyncio.ensure_future(client.call_tool('slow'))); await settled(client)",
    "a pool": "keep.append(ClientPool()); await (await keep[-1].get(ADDRESS)).call_tool('x')",
}


OF_BOTH = [(revision, left) for revision in ("2026-07-28", "2025-11-25") for left in ("nothing", "a call", "a pool")]


@pytest.mark.parametrize(("revision", "left"), [*OF_BOTH, ("2025-11-25", "a listening")])
@pytest.mark.parametrize("ending", ["", "raise SystemExit(0)"], ids=["returns", "raises"])
def test_a_client_over_http_that_was_not_closed_says_nothing(address, left, ending, revision):
    script = textwrap.dedent(
        """
        import asyncio
        from mcprelay import Client, ClientPool
        keep = []

        async def settled(client):
            while not client._connection.current.peer.pending:
                await asyncio.sleep(0)

        async def main():
            client = await Client(ADDRESS, revision=REVISION).connect()
            keep.append(client)
            await client.call_tool("x")
            LEFT
            ENDING
        asyncio.run(main())
        """
    )
    for name, value in (("LEFT", LEFT[left] or "pass"), ("ENDING", ending or "pass")):
        script = script.replace(name, value)
    script = script.replace("ADDRESS", repr(address)).replace("REVISION", repr(revision))
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", script]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


def test_a_client_that_is_closed_while_its_loop_ends_is_closed_once(address):
    script = textwrap.dedent(
        """
        import asyncio
        from mcprelay import Client
        keep = []

        async def values():
            async with Client(ADDRESS, revision="2025-11-25") as client:
                while True:
                    yield await client.call_tool("x")

        async def main():
            keep.append(values())
            await anext(keep[0])
        asyncio.run(main())
        """
    ).replace("ADDRESS", repr(address))
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", script]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


async def test_an_http_client_that_is_dropped_closes_its_connections(caplog):
    gone = asyncio.Event()

    async def respond(exchange):
        await exchange.reply(200, b"{}")
        await exchange.left()
        gone.set()

    async with ScriptedHttp(respond) as server:
        sender = HttpSender()
        async with sender.send(Request(url=server.url, body=b"{}")) as reply:
            await reply.read(100)
        del sender, reply
        gc.collect()
        await asyncio.wait_for(gone.wait(), 10)
    assert caplog.records == []


async def test_a_client_that_is_dropped_ends_its_child():
    client = await Client([sys.executable, "-c", SERVER]).connect()
    assert (await client.call_tool("x", {"a": 1})).value == {"a": 1}
    gone = asyncio.Event()
    process = os.pidfd_open(client._connection.current.channel.pid)
    loop = asyncio.get_running_loop()
    loop.add_reader(process, gone.set)
    try:
        del client
        gc.collect()
        await asyncio.wait_for(gone.wait(), 10)
    finally:
        loop.remove_reader(process)
        os.close(process)


async def test_a_client_that_is_dropped_stays_for_whoever_still_listens():
    server = Server("x")

    @server.tool
    async def first() -> int:
        return 1

    client = await Client(server).connect()
    listening = client.listen(tools=True)
    async with listening as events:
        del client
        gc.collect()

        @server.tool
        async def second() -> int:
            return 2

        event = await asyncio.wait_for(anext(events), 10)
    assert isinstance(event, ToolsChanged)


async def test_a_client_that_is_dropped_leaves_the_server_in_this_process():
    ended = asyncio.Event()

    @contextlib.asynccontextmanager
    async def lifespan(_server):
        yield {}
        ended.set()

    client = await Client(Server("x", lifespan=lifespan)).connect()
    await client.discover()
    del client
    gc.collect()
    await asyncio.wait_for(ended.wait(), 10)


def test_a_loop_that_was_only_closed_is_said_nothing_of_either(address):
    script = textwrap.dedent(
        """
        import asyncio
        from mcprelay import Client
        client = Client(ADDRESS)

        async def main():
            await client.connect()
            await client.call_tool("x")
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        loop.close()
        """
    ).replace("ADDRESS", repr(address))
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")


def test_a_command_gets_its_environment_and_its_folder(tmp_path):
    body = "import json, os, sys\n" + textwrap.dedent(
        """
        for line in sys.stdin:
            message = json.loads(line)
            found = {"cwd": os.getcwd(), "set": os.environ.get("SET_BY_TEST"), "kept": "SECRET_OF_TEST" in os.environ}
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "structuredContent": found}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
        """
    )
    from mcprelay import Client

    os.environ["SECRET_OF_TEST"] = "x"
    try:

        async def main():
            async with Client([sys.executable, "-c", body], cwd=tmp_path, env={"SET_BY_TEST": "yes"}) as client:
                return (await client.call_tool("x")).value

        found = asyncio.run(main())
    finally:
        del os.environ["SECRET_OF_TEST"]
    assert found == {"cwd": str(tmp_path), "set": "yes", "kept": False}
