"""A thousand calls in flight at once: each gets its own answer, in whatever order they come."""

import asyncio
import random
import resource
import sys

import pytest

from tests.client.peer import fresh, tool_result
from tests.client.scripted_http import ScriptedHttp

COUNT = 1000

HOARDER = f"""
import json, random, sys

held = []
for line in sys.stdin:
    message = json.loads(line)
    result = {{"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {{}}}}
    if message["method"] == "tools/call":
        held.append(message)
        if len(held) < {COUNT}:
            continue
        random.Random(7).shuffle(held)
        for one in held:
            content = {{"resultType": "complete", "content": [], "structuredContent": one["params"]["arguments"]}}
            print(json.dumps({{"jsonrpc": "2.0", "id": one["id"], "result": content}}))
        sys.stdout.flush()
    elif "id" in message:
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"""
"""A server that answers nothing before all have asked, and then in no order."""


async def asked(client):
    """What each of the calls got, in the order in which they were made."""
    results = await asyncio.gather(*(client.call_tool("x", {"n": n}) for n in range(COUNT)))
    return [result.value["n"] for result in results]


async def test_on_one_child_none_is_lost_and_none_is_crossed():
    async with fresh([sys.executable, "-c", HOARDER]) as client:
        assert await asked(client) == list(range(COUNT))


@pytest.fixture
def descriptors():
    """As many as a connection for each call takes, at both ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 3 * COUNT
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"the system allows {hard} descriptors, and {needed} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("descriptors")
async def test_over_http_none_is_lost_and_none_is_crossed():
    held = []

    async def respond(exchange):
        held.append(exchange)
        if len(held) == COUNT:
            random.Random(7).shuffle(held)
            for one in held:
                await one.result(tool_result(one.message["params"]["arguments"]))

    async with (
        ScriptedHttp(respond) as http,
        fresh(http.url, probe_timeout=60.0) as client,
    ):  # however slow this machine is
        assert await asked(client) == list(range(COUNT))
        assert http.connections == COUNT
