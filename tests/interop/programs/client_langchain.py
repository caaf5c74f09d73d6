"""LangChain's MCP adapters, told what to talk to: TRANSPORT TARGET. Prints JSON."""

# ruff: noqa: T201 - it reports on stdout

import asyncio
import base64
import json
import sys

from langchain_core.messages import ToolMessage
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp.types import ElicitResult

PROGRESS = []
LOGS = []


async def elicited(context, params, where):
    return ElicitResult(action="accept", content={"row": 3, "meal": True})


async def progressed(done, total, message, where):
    PROGRESS.append(done)


async def logged(params, where):
    LOGS.append(params.level)


async def main(transport, target):
    if transport == "stdio":
        command, *arguments = json.loads(target)
        connection = {"transport": "stdio", "command": command, "args": arguments}
    else:
        connection = {"transport": {"http": "streamable_http", "sse": "sse"}[transport], "url": target}
    callbacks = Callbacks(on_progress=progressed, on_logging_message=logged, on_elicitation=elicited)
    client = MultiServerMCPClient({"house": connection}, callbacks=callbacks)
    tools = {tool.name: tool for tool in await client.get_tools()}

    async def call(name, arguments=None):
        request = {"name": name, "args": arguments or {}, "id": name, "type": "tool_call"}
        message = await tools[name].ainvoke(request)
        assert isinstance(message, ToolMessage)
        return message

    added = await call("add", {"a": 1, "b": 2})
    refused = await call("refuse")
    await call("walk", {"steps": 3})
    await call("chat")
    (prompt,) = await client.get_prompt("house", "review", arguments={"language": "php"})
    uris = ["house://text", "house://bytes", "house://files/a"]
    text, data, file = [blob.as_bytes() for blob in await client.get_resources("house", uris=uris)]
    report = {
        "revision": (await call("spoken")).content[0]["text"],
        "tools": len(tools),
        "add": [added.content[0]["text"], added.artifact["structured_content"]["result"]],
        "refuse": [refused.status == "error", refused.content[0]["text"]],
        "text": text.decode(),
        "bytes": base64.b64encode(data).decode(),
        "template": file.decode(),
        "prompt": prompt.content,
        "form": (await call("ask_form")).content[0]["text"],
        "progress": PROGRESS,
        "logs": LOGS[-2:],
    }
    print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
