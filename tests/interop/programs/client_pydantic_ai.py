"""Pydantic AI's MCP toolset in an agent with a model that calls what it is told to: TRANSPORT TARGET. Prints JSON."""

# ruff: noqa: T201 - it reports on stdout

import asyncio
import base64
import json
import sys

from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

CALLS = [("add", {"a": 1, "b": 2}), ("weather", {"city": "Bern"}), ("say", {"text": "hello"})]
RETURNS = {}
OFFERED = []


async def elicited(message, kind, params, context):
    return kind(row=3, meal=True)


async def sampled(messages, params, context):
    return "A sampled text."


def model(messages, info):
    """A model that makes the calls, one after the other, and then is done."""
    OFFERED[:] = [tool.name for tool in info.function_tools]
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                RETURNS[part.tool_name] = part.content
    left = [call for call in CALLS if call[0] not in RETURNS]
    if not left:
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(parts=[ToolCallPart(*left[0])])


async def main(transport, target):
    if transport == "stdio":
        command, *arguments = json.loads(target)
        wire = StdioTransport(command, arguments, keep_alive=False)
    else:
        wire = {"http": StreamableHttpTransport, "sse": SSETransport}[transport](target)
    toolset = MCPToolset(
        wire, elicitation_handler=elicited, sampling_handler=sampled, roots=["file:///work"], read_timeout=10
    )
    agent = Agent(FunctionModel(model), toolsets=[toolset])
    async with toolset:
        said = (await agent.run("go")).output
        try:
            refused = await toolset.direct_call_tool("refuse", {})
        except ModelRetry as error:
            refused = error.message
        prompt = await toolset.get_prompt("review", {"language": "php"})
        report = {
            "revision": await toolset.direct_call_tool("spoken", {}),
            "server": toolset.client.server_info.name,
            "agent": [said, len(OFFERED), RETURNS],
            "tools": len(await toolset.list_tools()),
            "add": [str(RETURNS["add"]), RETURNS["add"]],
            "refuse": [True, refused],
            "resources": len(await toolset.list_resources()),
            "templates": len(await toolset.list_resource_templates()),
            "prompts": len(await toolset.list_prompts()),
            "text": await toolset.read_resource("house://text"),
            "bytes": base64.b64encode((await toolset.read_resource("house://bytes")).data).decode(),
            "template": await toolset.read_resource("house://files/a"),
            "prompt": prompt.messages[0].content.content,
            "form": await toolset.direct_call_tool("ask_form", {}),
            "model": await toolset.direct_call_tool("ask_model", {}),
            "roots": json.dumps(await toolset.direct_call_tool("ask_roots", {})),
        }
        print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
