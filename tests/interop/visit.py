"""What our client does with a server of other people that has everything; each of them has the same."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mcprelay import CallFailed, Client, Image, ToolError, ToolsChanged
from tests.interop.run import Run

TOOLS = {"add", "refuse", "picture", "walk", "chat", "ask_form", "ask_model", "ask_roots", "change"}
PATIENCE = 5

ANSWERS: dict[str, Callable[..., Any] | list[str]] = {
    "on_elicit": lambda question: question.accept(name="Ada"),
    "on_sample": lambda question: "A sampled text.",
    "on_roots": ["file:///work"],
}
"""What the client answers with."""


async def use_everything(client: Client, run: Run) -> None:
    """Everything that the run shows."""
    await client.discover()
    assert client.server.revision == run.revision
    assert client.server.info is not None
    assert client.server.info.name == "peer"
    assert client.server.instructions == "Look around."
    await use_tools(client)
    await use_elements(client, run)
    await work_and_ask(client, run)
    if run.shows("changes"):
        async with client.listen(tools=True) as events:
            await client.call_tool("change")
            assert await asyncio.wait_for(anext(events), PATIENCE) == ToolsChanged()


async def use_tools(client: Client) -> None:
    """Lists, values, content, refusals."""
    assert {tool.name for tool in await client.list_tools()} == TOOLS
    assert (await client.call_tool("add", {"a": 1, "b": 2}, output=int)).value == 3
    (block,) = (await client.call_tool("picture")).content
    assert isinstance(block, Image)
    assert block.data.startswith(b"\x89PNG")
    with pytest.raises(ToolError, match="not today"):
        await client.call_tool("refuse")
    with pytest.raises((ToolError, CallFailed), match="nobody"):
        await client.call_tool("nobody")


async def use_elements(client: Client, run: Run) -> None:
    """Resources, templates, prompts, completion."""
    assert {resource.uri for resource in await client.list_resources()} == {"peer://text", "peer://bytes"}
    assert [one.uri_template for one in await client.list_resource_templates()] == ["peer://files/{name}"]
    assert (await client.read_resource("peer://text")).contents[0].text == "some text"
    assert (await client.read_resource("peer://bytes")).contents[0].blob == b"\x00\xff"
    assert (await client.read_resource("peer://files/a")).contents[0].text == "file a"
    with pytest.raises(CallFailed, match="nowhere"):
        await client.read_resource("peer://nowhere")
    (prompt,) = await client.list_prompts()
    assert [argument.name for argument in prompt.arguments or ()] == ["language"]
    message = (await client.get_prompt("review", {"language": "php"})).messages[0]
    assert getattr(message.content, "text", None) == "Review this php."
    if run.shows("completion"):
        assert (await client.complete("review", "language", "p")).values == ("python", "perl")


async def work_and_ask(client: Client, run: Run) -> None:
    """Progress, log messages, and what the server asks."""
    steps: list[Any] = []
    levels: list[str] = []
    assert (await client.call_tool("walk", {"steps": 3}, on_progress=steps.append)).text == "arrived"
    assert [(one.progress, one.total) for one in steps] == [(1, 3), (2, 3), (3, 3)]
    result = await client.call_tool("chat", log_level="info", on_log=lambda one: levels.append(one.level))
    assert result.text == "said"
    assert levels == ["info", "warning"]
    if run.shows("forms"):
        assert (await client.call_tool("ask_form")).text == "hello Ada"
    if run.shows("sampling"):
        assert (await client.call_tool("ask_model")).text == "unknown: A sampled text."
    if run.shows("roots"):
        assert (await client.call_tool("ask_roots")).text == "file:///work"
