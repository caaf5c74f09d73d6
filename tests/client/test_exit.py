"""An interpreter that ends without closing its clients leaves nothing behind, and says nothing."""

import os
import select
import subprocess
import sys
import textwrap

import pytest

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
            http = await Client("http://127.0.0.1:9/mcp").connect()
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
    import asyncio

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
