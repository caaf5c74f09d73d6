"""A server that takes no more requests, and may still answer what it has."""

import asyncio
import os
import signal
import sys
import textwrap

import pytest

from mcprelay import CallFailed, Client, Evidence
from mcprelay.errors import ConnectionLost

BODY = """
    import json, os, signal, sys
    mode = sys.argv[1]
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
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
            os.close(0)
            if mode == "late":
                signal.sigwait({signal.SIGUSR1})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
        if message["method"] == "tools/call":
            if mode == "ends":
                sys.exit(0)
            signal.pause()
"""


@pytest.fixture
def serving(tmp_path):
    from mcprelay.revisions import NEWEST

    path = tmp_path / "server.py"
    path.write_text(textwrap.dedent(BODY) % NEWEST.name, encoding="utf-8")
    return lambda mode: [sys.executable, str(path), mode]


async def muted(client):
    """The link, once it is known that the server takes no more."""
    link = client._connection.current
    while not link.mute:  # noqa: ASYNC110 - the loop finds out by itself
        await asyncio.sleep(0)
    return link


async def test_the_call_after_a_server_closed_its_input_finds_another_server(serving):
    async with Client(serving("closes"), close_timeout=0.1) as client:
        first = await client.call_tool("t")
        await muted(client)
        second = await client.call_tool("t")
        assert first.text != second.text


async def test_what_a_server_owes_that_closed_its_input_still_comes(serving):
    async with Client(serving("late"), close_timeout=0.1) as client:
        owed = asyncio.ensure_future(client.call_tool("t"))
        await asyncio.sleep(0)
        link = await muted(client)
        assert not owed.done()
        os.kill(link.channel.pid, signal.SIGUSR1)
        assert (await owed).text == str(link.channel.pid)


async def test_whoever_repeats_at_once_what_was_not_sent_gets_through(serving):
    async with Client(serving("ends"), close_timeout=0.1) as client:
        seen, failures = set(), []
        while len(seen) < 5:
            try:
                seen.add((await client.call_tool("t", timeout=20)).text)
            except CallFailed as error:
                failures.append(error.evidence)
        assert Evidence.ANSWERED not in failures


async def test_what_never_left_for_a_server_that_takes_no_more_fails_without_its_deadline(serving, clock):
    client = Client(serving("late"), close_timeout=0.1)
    await client.connect()
    calls = [asyncio.ensure_future(client.call_tool("t", {"text": "x" * 70_000}, timeout=600)) for _ in range(6)]
    await asyncio.sleep(0)
    link = await muted(client)
    assert not any(call.done() for call in calls)  # the end may follow at once, and says more
    await clock.advance(1)
    unsent = [call for call in calls if call.done()]
    assert len(unsent) >= 3
    for call in unsent:
        error = call.exception()
        assert type(error) is ConnectionLost
        assert error.evidence is Evidence.NOT_SENT
        assert "closed its input" in str(error)
    os.kill(link.channel.pid, signal.SIGUSR1)
    assert (await calls[0]).text == str(link.channel.pid)
    closing = asyncio.ensure_future(client.aclose())
    while not closing.done():
        await clock.advance(1)
    owed = [call for call in calls[1:] if call not in unsent]
    errors = await asyncio.gather(*owed, return_exceptions=True)
    assert {error.evidence for error in errors} <= {Evidence.MAYBE_SENT}
