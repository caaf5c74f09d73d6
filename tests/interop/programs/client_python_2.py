"""The client of the official Python SDK 2, told what to talk to: TRANSPORT TARGET [MODE]. Prints JSON."""

# ruff: noqa: T201 - it reports on stdout

import asyncio
import json
import sys

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

LOGS = []
CHANGED = asyncio.Event()


async def elicited(context, params):
    return types.ElicitResult(action="accept", content={"row": 3, "meal": True})


async def sampled(context, params):
    content = types.TextContent(type="text", text="A sampled text.")
    return types.CreateMessageResult(role="assistant", content=content, model="none", stop_reason="endTurn")


async def listed(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///work")])


async def logged(params):
    LOGS.append(params.level)


async def heard(message):
    if isinstance(message, types.ToolListChangedNotification):
        CHANGED.set()


async def everything(ask, field):
    found, cursor = [], None
    while True:
        page = await ask(cursor=cursor)
        found += getattr(page, field)
        cursor = page.next_cursor
        if cursor is None:
            return found


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

    tools = await everything(client.list_tools, "tools")
    refused = await client.call_tool("refuse", {})
    text = await client.read_resource("house://text")
    data = await client.read_resource("house://bytes")
    file = await client.read_resource("house://files/a")
    prompt = await client.get_prompt("review", {"language": "php"})
    reference = types.PromptReference(type="ref/prompt", name="review")
    completed = await client.complete(reference, {"name": "language", "value": "p"})
    added = await client.call_tool("add", {"a": 1, "b": 2})
    await client.call_tool("walk", {"steps": 3}, progress_callback=progressed)
    await client.call_tool("chat", {})
    report = {
        "revision": (await client.call_tool("spoken", {})).content[0].text,
        "server": client.server_info.name,
        "tools": len(tools),
        "resources": len(await everything(client.list_resources, "resources")),
        "templates": len(await everything(client.list_resource_templates, "resource_templates")),
        "prompts": len(await everything(client.list_prompts, "prompts")),
        "add": [added.content[0].text, unwrapped(added.structured_content)],
        "blocks": [(await client.call_tool(name, {})).content[0].type for name in ("picture", "sound", "link")],
        "refuse": [refused.is_error, refused.content[0].text],
        "unknown tool": await attempt(client.call_tool("nobody", {})),
        "unknown resource": await attempt(client.read_resource("house://nowhere")),
        "text": text.contents[0].text,
        "bytes": data.contents[0].blob,
        "template": file.contents[0].text,
        "prompt": prompt.messages[0].content.text,
        "complete": completed.completion.values,
        "progress": progress,
        "logs": LOGS,
        "form": (await client.call_tool("ask_form", {})).content[0].text,
        "model": (await client.call_tool("ask_model", {})).content[0].text,
        "roots": (await client.call_tool("ask_roots", {})).content[0].text,
    }
    if client.protocol_version < "2026":
        await client.call_tool("change", {"what": "tools"})
        await asyncio.wait_for(CHANGED.wait(), 5)
    else:
        async with client.listen(tools_list_changed=True) as events:
            await client.call_tool("change", {"what": "tools"})
            await asyncio.wait_for(anext(aiter(events)), 5)
    report["changes"] = True
    await client.call_tool("change", {"what": "tools"})
    return report


async def main(transport, target, mode="auto"):
    if transport == "stdio":
        command, *arguments = json.loads(target)
        target = StdioServerParameters(command=command, args=arguments)
    elif transport == "sse":
        target = sse_client(target)
    async with Client(
        target,
        mode=mode,
        elicitation_callback=elicited,
        sampling_callback=sampled,
        list_roots_callback=listed,
        logging_callback=logged,
        log_level="warning",
        message_handler=heard,
        read_timeout_seconds=10,
    ) as client:
        print(json.dumps(await visit(client)))


asyncio.run(main(*sys.argv[1:]))
