"""A server that takes no more requests, and may still answer what it has."""

import asyncio
import sys
import textwrap

import pytest

from mcprelay import CallFailed, Client, Evidence

BODY = """
    import json, os, sys, time
    mode = sys.argv[1]
    print(json.dumps({"pid": os.getpid()}), file=sys.stderr, flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "server/discover":
            result = {"supportedVersions": ["%s"], "capabilities": {"tools": {}}, "resultType": "complete",
                      "serverInfo": {"name": "s", "version": "1"}, "ttlMs": 0, "cacheScope": "private"}
        else:
            result = {"content": [{"type": "text", "text": str(os.getpid())}], "resultType": "complete"}
        if mode != "ends" and message["method"] == "tools/call":
            os.close(0)
            time.sleep(0.05 if mode == "late" else 0)
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
        if message["method"] == "tools/call":
            if mode == "ends":
                sys.exit(0)
            time.sleep(0.5)
"""


@pytest.fixture
def serving(tmp_path):
    from mcprelay.revisions import NEWEST

    path = tmp_path / "server.py"
    path.write_text(textwrap.dedent(BODY) % NEWEST.name, encoding="utf-8")
    return lambda mode: [sys.executable, str(path), mode]


@pytest.mark.parametrize("mode", ["closes", "late"])
async def test_the_call_after_a_server_closed_its_input_finds_another_server(serving, mode):
    async with Client(serving(mode)) as client:
        first = await client.call_tool("t")
        link = client._connection.current
        while not link.mute:  # noqa: ASYNC110 - the loop finds out by itself
            await asyncio.sleep(0)
        second = await client.call_tool("t")
        assert first.text != second.text


async def test_whoever_repeats_at_once_what_was_not_sent_gets_through(serving):
    async with Client(serving("ends")) as client:
        seen, failures = set(), []
        while len(seen) < 5:
            try:
                seen.add((await client.call_tool("t", timeout=20)).text)
            except CallFailed as error:
                failures.append(error.evidence)
        assert Evidence.ANSWERED not in failures
