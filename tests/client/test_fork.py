"""A client in a fork of its process: its connection is the parent's, and that is what it says."""

import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
import asyncio, os, sys
from mcprelay import Client, LocalFault, Server

server = Server("orders")
server.tool(lambda: 1, name="count")

async def tell(use):
    try:
        await use()
    except LocalFault as fault:
        print(fault)
    else:
        print("fine")

async def main():
    async with Client(server) as client:
        await client.call_tool("count")
        sys.stdout.flush()
        if not (child := os.fork()):
            {child}
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)
        print((await client.call_tool("count")).value)

asyncio.run(main())
"""
TOLD = (
    "this process was forked from the one that this client is open in, and a connection cannot be shared by processes: "
    "make a client in each process, after the fork"
)


def ran(child):
    body = textwrap.indent(textwrap.dedent(child).strip(), " " * 12).strip()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{child}", body)], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.parametrize(
    "use",
    [
        "lambda: client.call_tool('count')",
        "client.connect",
        "client.__aenter__",
        "client.list_tools",
        "client.discover",
    ],
)
def test_a_client_that_a_fork_inherited_says_so(use):
    assert ran(f"await tell({use})") == [TOLD, "1"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_it_says_so_in_a_loop_of_the_forks_own_too():
    child = """
        import threading
        thread = threading.Thread(target=asyncio.run, args=[tell(lambda: client.call_tool('count'))])
        thread.start()
        thread.join()
    """
    assert ran(child) == [TOLD, "1"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_closing_it_in_the_fork_leaves_the_parents_connection_alone():
    assert ran("await tell(client.aclose)") == ["fine", "1"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_listening_in_the_fork_says_so_too():
    assert ran("await tell(client.listen(tools=True).__aenter__)") == [TOLD, "1"]
