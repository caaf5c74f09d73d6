"""The client of the official Python SDK 1, told what to talk to: TRANSPORT TARGET [REVISION]. Prints JSON.

The SDK proposes its newest revision; REVISION makes it propose another one.
"""

# ruff: noqa: T201 - it reports on stdout

import asyncio
import json
import sys
from datetime import timedelta

from mcp import ClientSession, McpError, StdioServerParameters, stdio_client, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

LOGS = []
CHANGED = asyncio.Event()


async def elicited(context, params):
    return types.ElicitResult(action="accept", content={"row": 3, "meal": True})


async def sampled(context, params):
    content = types.TextContent(type="text", text="A sampled text.")
    return types.CreateMessageResult(role="assistant", content=content, model="none", stopReason="endTurn")


async def listed(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///work")])


async def logged(params):
    LOGS.append(params.level)


async def heard(message):
    if isinstance(message, types.ServerNotification) and isinstance(message.root, types.ToolListChangedNotification):
        CHANGED.set()


async def everything(ask, field):
    found, cursor = [], None
    while True:
        page = await ask(params=types.PaginatedRequestParams(cursor=cursor))
        found += getattr(page, field)
        cursor = page.nextCursor
        if cursor is None:
            return found


async def attempt(call):
    try:
        return await call
    except McpError as error:
        return error.error.code


async def words(call):
    try:
        return (await call).content[0].text
    except McpError as error:
        return str(error)


async def visit(session):
    greeting = await session.initialize()
    progress = []

    async def progressed(done, total, message):
        progress.append(done)

    await session.set_logging_level("warning")
    refused = await session.call_tool("refuse", {})
    prompt = await session.get_prompt("review", {"language": "php"})
    reference = types.PromptReference(type="ref/prompt", name="review")
    completed = await session.complete(reference, {"name": "language", "value": "p"})
    added = await session.call_tool("add", {"a": 1, "b": 2})
    await session.call_tool("walk", {"steps": 3}, progress_callback=progressed)
    await session.call_tool("chat", {})
    report = {
        "revision": (await session.call_tool("spoken", {})).content[0].text,
        "server": greeting.serverInfo.name,
        "tools": len(await everything(session.list_tools, "tools")),
        "resources": len(await everything(session.list_resources, "resources")),
        "templates": len(await everything(session.list_resource_templates, "resourceTemplates")),
        "prompts": len(await everything(session.list_prompts, "prompts")),
        "add": [added.content[0].text, (added.structuredContent or {}).get("result")],
        "blocks": [(await session.call_tool(name, {})).content[0].type for name in ("picture", "sound", "link")],
        "refuse": [refused.isError, refused.content[0].text],
        "unknown tool": await attempt(session.call_tool("nobody", {})),
        "unknown resource": await attempt(session.read_resource(AnyUrl("house://nowhere"))),
        "text": (await session.read_resource(AnyUrl("house://text"))).contents[0].text,
        "bytes": (await session.read_resource(AnyUrl("house://bytes"))).contents[0].blob,
        "template": (await session.read_resource(AnyUrl("house://files/a"))).contents[0].text,
        "prompt": prompt.messages[0].content.text,
        "complete": completed.completion.values,
        "progress": progress,
        "logs": LOGS,
        "form": await words(session.call_tool("ask_form", {})),
        "model": (await session.call_tool("ask_model", {})).content[0].text,
        "roots": (await session.call_tool("ask_roots", {})).content[0].text,
    }
    await session.call_tool("change", {"what": "tools"})
    await asyncio.wait_for(CHANGED.wait(), 5)
    report["changes"] = True
    await session.call_tool("change", {"what": "tools"})
    await session.send_ping()
    return report


async def main(transport, target, revision=None):
    if revision is not None:
        types.LATEST_PROTOCOL_VERSION = revision
    if transport == "stdio":
        command, *arguments = json.loads(target)
        streams = stdio_client(StdioServerParameters(command=command, args=arguments))
    else:
        streams = {"http": streamable_http_client, "sse": sse_client}[transport](target)
    async with (
        streams as (read, write, *_),
        ClientSession(
            read,
            write,
            read_timeout_seconds=timedelta(seconds=10),
            elicitation_callback=elicited,
            sampling_callback=sampled,
            list_roots_callback=listed,
            logging_callback=logged,
            message_handler=heard,
        ) as session,
    ):
        print(json.dumps(await visit(session)))


asyncio.run(main(*sys.argv[1:]))
