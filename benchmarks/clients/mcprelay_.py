# bench: {"python": "peers", "import": "mcprelay.client", "modes": ["http", "stdio", "memory"], "variants": {"mcprelay": {}, "mcprelay-uvloop": {"env": {"UV": "1"}}}}
"""mcprelay's Client, as documented. memory: `Client(server)`, in process."""

import json
import os
from contextlib import asynccontextmanager

from _common import main

from mcprelay import Client
from mcprelay.revisions import NEWEST_HANDSHAKE


@asynccontextmanager
async def connect(mode, target, era):
    if mode == "http":
        where = target
    elif mode == "stdio":
        where = json.loads(target)
    else:
        from mcprelay import Server

        where = Server("bench")

        @where.tool
        async def echo(text: str) -> str:
            return text

    options = {"env": dict(os.environ)} if mode == "stdio" else {}
    if era == "legacy":
        options["revision"] = NEWEST_HANDSHAKE.name
    async with Client(where, **options) as client:
        await client.list_tools()

        async def call(text):
            result = await client.call_tool("echo", {"text": text})
            value = result.structured
            return value["result"] if isinstance(value, dict) else value

        yield call


main(connect, os.environ.get("UV") == "1")
