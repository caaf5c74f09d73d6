"""The client that the conformance suite examines: one small program for each scenario.

Written as a user would write it, against the public names alone. The suite starts it with the server's address as last
argument, and says the scenario in MCP_CONFORMANCE_SCENARIO and what belongs to it in MCP_CONFORMANCE_CONTEXT.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from mcprelay import Client, ToolError

ANSWERS_ANYTHING = {"initialize", "sse-retry"}
"""Scenarios whose server answers a request of any revision, so that a client cannot find out which one is meant."""

Scenario = Callable[[Client], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(*names: str) -> Callable[[Scenario], Scenario]:
    """Register a function for the scenarios of these names."""

    def register(function: Scenario) -> Scenario:
        SCENARIOS.update(dict.fromkeys(names, function))
        return function

    return register


@scenario("initialize", "request-metadata", "json-schema-ref-no-deref")
async def look(client: Client) -> None:
    """List the tools."""
    await client.list_tools()


@scenario("tools_call")
async def add(client: Client) -> None:
    """Add two numbers."""
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


@scenario("elicitation-sep1034-client-defaults")
async def answer_with_defaults(client: Client) -> None:
    """Call a tool that asks, and take every default."""
    await client.list_tools()
    await client.call_tool("test_client_elicitation_defaults", {})


@scenario("sse-retry")
async def reconnect(client: Client) -> None:
    """Wait for an answer whose stream breaks off."""
    await client.list_tools()
    await client.call_tool("test_reconnection", {})


@scenario("http-standard-headers")
async def use_everything(client: Client) -> None:
    """Use everything that the server has."""
    for tool in await client.list_tools():
        await client.call_tool(tool.name, {})
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name)


@scenario("http-custom-headers")
async def repeat_calls(client: Client) -> None:
    """Make the calls that the suite lists."""
    await client.list_tools()
    for call in context()["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


@scenario("http-invalid-tool-headers")
async def call_what_is_left(client: Client) -> None:
    """Call the tools whose definitions are right."""
    for tool in await client.list_tools():
        await client.call_tool(tool.name, dict.fromkeys(tool.input_schema.get("properties", {}), "x"))


@scenario("sep-2322-client-request-state")
async def answer_rounds(client: Client) -> None:
    """Call tools that ask, with state and without."""
    await client.list_tools()
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{name}", {})


@scenario("json-schema-2020-12-preservation")
async def return_schema(client: Client) -> None:
    """Send a schema back as it came."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


# --------------------------------------------------------------------------------------------------------- surroundings


def context() -> dict[str, Any]:
    """What the suite says about this scenario."""
    value: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    return value


SAMPLES: dict[str, Any] = {"string": "conformance", "integer": 1, "number": 1.5, "boolean": True, "array": []}


def fill_in(question: Any) -> Any:
    """Answer a form: each field with its default, or with something of its type."""
    if question.mode == "url":
        return question.accept()
    values = {
        name: field.get("default", field.get("enum", [SAMPLES.get(field.get("type", ""))])[0])
        for name, field in question.fields.items()
    }
    return question.accept(values)


async def main(url: str) -> None:
    """Run the scenario that the suite asks for."""
    name = os.environ["MCP_CONFORMANCE_SCENARIO"]
    auth = None
    run = SCENARIOS.get(name)
    if name.startswith("auth/"):
        import client_auth  # type: ignore[import-not-found]  # beside this program, which is started by its path

        auth, run = client_auth.credentials(name, context()), client_auth.run(name)
    if run is None:
        raise SystemExit(f"nothing is written for the scenario {name}")
    options: dict[str, Any] = {
        "auth": auth,
        "on_elicit": fill_in,
        "on_sample": lambda _: "A sampled answer.",
        "on_roots": ["file:///conformance"],
    }
    if name in ANSWERS_ANYTHING:
        options["revision"] = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    async with Client(url, **options) as client:
        await run(client)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[-1]))
    except ToolError as error:
        sys.exit(f"a tool said no: {error}")
