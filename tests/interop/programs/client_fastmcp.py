"""FastMCP's client, told what to talk to: TRANSPORT TARGET [MODE]. Prints JSON."""

# ruff: noqa: T201 - it reports on stdout

import asyncio
import contextlib
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from mcp import MCPError
from mcp_types import ToolListChangedNotification

LOGS = []
CHANGED = asyncio.Event()


async def elicited(message, kind, params, context):
    return kind(row=3, meal=True)


async def sampled(messages, params, context):
    return "A sampled text."


async def logged(message):
    LOGS.append(message.level)


async def heard(message):
    if isinstance(message, ToolListChangedNotification):
        CHANGED.set()


async def attempt(call):
    try:
        return await call
    except MCPError as error:
        return error.error.code


def unwrapped(value):
    return value["result"] if isinstance(value, dict) else value


async def visit(client):
    progress = []

    async def progressed(done, total, message):
        progress.append(done)

    modern = client.protocol_version >= "2026"
    if not modern:
        await client.set_logging_level("warning")
    refused = await client.call_tool("refuse", raise_on_error=False)
    with contextlib.suppress(ToolError):
        await client.call_tool("refuse")
        sys.exit("a refusal was not raised")
    added = await client.call_tool("add", {"a": 1, "b": 2})
    prompt = await client.get_prompt("review", {"language": "php"})
    completed = await client.complete({"type": "ref/prompt", "name": "review"}, {"name": "language", "value": "p"})
    await client.call_tool("walk", {"steps": 3}, progress_handler=progressed)
    await client.call_tool("chat", meta={"io.modelcontextprotocol/logLevel": "warning"} if modern else None)
    report = {
        "revision": (await client.call_tool("spoken")).content[0].text,
        "server": client.server_info.name,
        "tools": len(await client.list_tools()),
        "resources": len(await client.list_resources()),
        "templates": len(await client.list_resource_templates()),
        "prompts": len(await client.list_prompts()),
        "add": [added.content[0].text, unwrapped(added.structured_content)],
        "blocks": [(await client.call_tool(name)).content[0].type for name in ("picture", "sound", "link")],
        "refuse": [refused.is_error, refused.content[0].text],
        "unknown tool": await attempt(client.call_tool("nobody")),
        "unknown resource": await attempt(client.read_resource("house://nowhere")),
        "text": (await client.read_resource("house://text"))[0].text,
        "bytes": (await client.read_resource("house://bytes"))[0].blob,
        "template": (await client.read_resource("house://files/a"))[0].text,
        "prompt": prompt.messages[0].content.text,
        "complete": completed.values,
        "progress": progress,
        "logs": LOGS,
        "form": (await client.call_tool("ask_form")).content[0].text,
        "model": (await client.call_tool("ask_model")).content[0].text,
        "roots": (await client.call_tool("ask_roots")).content[0].text,
    }
    if not modern:
        await client.call_tool("change", {"what": "tools"})
        await asyncio.wait_for(CHANGED.wait(), 5)
        report["changes"] = True
        await client.call_tool("change", {"what": "tools"})
    return report


async def main(transport, target, mode="auto"):
    if transport == "stdio":
        command, *arguments = json.loads(target)
        wire = StdioTransport(command, arguments, keep_alive=False)
    else:
        wire = {"http": StreamableHttpTransport, "sse": SSETransport}[transport](target)
    async with Client(
        wire,
        mode=mode,
        roots=["file:///work"],
        sampling_handler=sampled,
        elicitation_handler=elicited,
        log_handler=logged,
        message_handler=heard,
        timeout=10,
    ) as client:
        print(json.dumps(await visit(client)))


asyncio.run(main(*sys.argv[1:]))
