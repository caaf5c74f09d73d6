"""Our client against the reference servers: what each is for, and how it says no."""

import asyncio
import contextlib
import functools
import http.server
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcprelay import CallFailed, Client, EmbeddedResource, Image, ResourceLink, ResourceUpdated, ToolError
from mcprelay.client.memory import Memory
from tests.interop.process import free_port, served
from tests.interop.run import REFERENCES, Run

pytestmark = pytest.mark.interop

PATIENCE = 15


def runs(name: str) -> Any:
    """The runs against one of them."""
    return pytest.mark.parametrize("run", [run for run in REFERENCES if run.name == name], ids=lambda run: run.id)


@contextlib.asynccontextmanager
async def connected(
    run: Run, *arguments: str, env: dict[str, str] | None = None, **options: Any
) -> AsyncIterator[Client]:
    """Our client, connected to a server that is a child process."""
    run.peer.install()
    options = {"memory": Memory(), "request_timeout": 30, **options}
    async with Client(run.peer.command(run.program, *arguments), env=env, **options) as client:
        await client.discover()
        assert client.server.revision == run.revision
        yield client


# ----------------------------------------------------------------------------------------------------------- everything


def fill_in(question: Any) -> Any:
    """Answer a form with what it offers."""
    if question.mode == "url":
        return question.accept()
    return question.accept({"name": "Ada", **question.defaults()})


@contextlib.asynccontextmanager
async def everything(run: Run, tmp_path: Path) -> AsyncIterator[Client]:
    """Our client, connected to the server that has everything."""
    options: dict[str, Any] = {
        "on_elicit": fill_in,
        "on_sample": lambda question: "A sampled text.",
        "on_roots": ["file:///work"],
    }
    if run.transport == "stdio":
        async with connected(run, "stdio", **options) as client:
            yield client
        return
    run.peer.install()
    port = free_port()
    command = run.peer.command(run.program, {"http": "streamableHttp", "sse": "sse"}[run.transport])
    url = f"http://127.0.0.1:{port}/{'mcp' if run.transport == 'http' else 'sse'}"
    async with (
        served(run.peer, command, port, tmp_path / "log", env={"PORT": str(port)}),
        Client(url, memory=Memory(), request_timeout=30, **options) as client,
    ):
        await client.discover()
        assert client.server.revision == run.revision
        yield client


@runs("everything")
async def test_everything_is_used(run: Run, tmp_path: Path):
    async with everything(run, tmp_path) as client:
        assert len(await client.list_tools()) > 10
        assert (await client.call_tool("echo", {"message": "hi"})).text == "Echo: hi"
        weather = await client.call_tool("get-structured-content", {"location": "New York"}, output=dict[str, Any])
        assert weather.value.keys() == {"temperature", "conditions", "humidity"}
        kinds = [type(block) for block in (await client.call_tool("get-tiny-image")).content]
        assert Image in kinds
        links = (await client.call_tool("get-resource-links", {"count": 2})).content
        assert sum(isinstance(block, ResourceLink) for block in links) == 2
        inside = await client.call_tool("get-resource-reference", {"resourceType": "Text", "resourceId": 1})
        assert any(isinstance(block, EmbeddedResource) for block in inside.content)
        with pytest.raises(ToolError, match="expected number"):
            await client.call_tool("get-sum", {"a": "x", "b": 2})
        with pytest.raises((ToolError, CallFailed), match="not found"):
            await client.call_tool("nobody")
        await read_everything(client)
        await ask_everything(client)
        await hear_everything(client)


async def read_everything(client: Client) -> None:
    """Resources, templates, prompts, completion."""
    resources = await client.list_resources()
    assert (await client.read_resource(resources[0].uri)).contents[0].text
    templates = {template.uri_template for template in await client.list_resource_templates()}
    assert "demo://resource/dynamic/blob/{resourceId}" in templates
    assert (await client.read_resource("demo://resource/dynamic/blob/1")).contents[0].blob
    with pytest.raises(CallFailed, match="not found"):
        await client.read_resource("demo://resource/nowhere")
    prompts = {prompt.name for prompt in await client.list_prompts()}
    assert {"simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"} <= prompts
    prompt = await client.get_prompt("args-prompt", {"city": "Bern"})
    assert "Bern" in str(prompt.messages[0].content)
    found = await client.complete("completable-prompt", "department", "E")
    assert "Engineering" in found.values


async def ask_everything(client: Client) -> None:
    """Progress, and what the server asks."""
    steps: list[float] = []
    result = await client.call_tool(
        "trigger-long-running-operation",
        {"duration": 0.2, "steps": 4},
        on_progress=lambda one: steps.append(one.progress),
    )
    assert "completed" in result.text
    assert steps == [1, 2, 3, 4]
    assert "Ada" in (await client.call_tool("trigger-elicitation-request")).text
    assert "A sampled text." in (await client.call_tool("trigger-sampling-request", {"prompt": "x"})).text
    assert "file:///work" in (await client.call_tool("get-roots-list")).text


async def hear_everything(client: Client) -> None:
    """Log messages and updates that come by themselves."""
    heard = asyncio.Event()
    await client.request("logging/setLevel", {"level": "debug"})
    await client.call_tool("toggle-simulated-logging", on_log=lambda one: heard.set())
    async with client.listen(updates=["demo://resource/dynamic/text/1"]) as events:
        await client.call_tool("toggle-subscriber-updates")
        event = await asyncio.wait_for(anext(events), PATIENCE)
        assert event == ResourceUpdated("demo://resource/dynamic/text/1")
    assert heard.is_set()


# ------------------------------------------------------------------------------------------------------- one job each


@runs("filesystem")
async def test_files_are_read_and_written_where_it_is_allowed(run: Run, tmp_path: Path):
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "a.txt").write_text("some text")
    async with connected(run, str(tmp_path), on_roots=[allowed]) as client:
        assert "read_text_file" in {tool.name for tool in await client.list_tools()}
        path = str(allowed / "a.txt")
        assert (await client.call_tool("read_text_file", {"path": path})).text == "some text"
        await client.call_tool("write_file", {"path": str(allowed / "b.txt"), "content": "more"})
        assert (allowed / "b.txt").read_text() == "more"
        assert str(allowed) in (await client.call_tool("list_allowed_directories")).text  # from our roots
        with pytest.raises(ToolError, match="Access denied"):
            await client.call_tool("read_text_file", {"path": "/etc/hostname"})


@runs("memory")
async def test_a_graph_is_kept_and_read(run: Run, tmp_path: Path):
    env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    ada = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    async with connected(run, env=env) as client:
        await client.call_tool("create_entities", {"entities": [ada]})
        graph = (await client.call_tool("read_graph", output=dict[str, Any])).value
        assert graph["entities"] == [ada]
        (resource,) = await client.list_resources()
        assert "Ada" in ((await client.read_resource(resource.uri)).contents[0].text or "")
        with pytest.raises((ToolError, CallFailed)):
            await client.call_tool("create_entities", {"entities": "none"})


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a new file."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text("new")
    return tmp_path


@runs("server-git")
async def test_a_repository_is_looked_at(run: Run, repository: Path):
    async with connected(run, "--repository", str(repository)) as client:
        assert "git_status" in {tool.name for tool in await client.list_tools()}
        status = await client.call_tool("git_status", {"repo_path": str(repository)})
        assert "new.txt" in status.text
        with pytest.raises(ToolError, match="outside"):
            await client.call_tool("git_log", {"repo_path": "/nowhere"})


@runs("server-time")
async def test_a_time_is_converted(run: Run):
    asked = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Asia/Kolkata"}
    async with connected(run) as client:
        assert {tool.name for tool in await client.list_tools()} == {"get_current_time", "convert_time"}
        assert "08:30" in (await client.call_tool("convert_time", asked)).text
        with pytest.raises(ToolError, match="Invalid timezone"):
            await client.call_tool("get_current_time", {"timezone": "Nowhere"})


@contextlib.contextmanager
def page(folder: Path) -> Iterator[str]:
    """The address of a page on this machine."""
    (folder / "page.html").write_text("<html><body><main><p>Some words on a page.</p></main></body></html>")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/page.html"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@runs("server-fetch")
async def test_a_page_is_fetched(run: Run, tmp_path: Path):
    with page(tmp_path) as url:
        async with connected(run, "--ignore-robots-txt", "--allow-private-ips") as client:
            assert [tool.name for tool in await client.list_tools()] == ["fetch"]
            assert "Some words on a page." in (await client.call_tool("fetch", {"url": url})).text
            assert [prompt.name for prompt in await client.list_prompts()] == ["fetch"]
            prompt = await client.get_prompt("fetch", {"url": url})
            assert "Some words on a page." in str(prompt.messages[0].content)
            with pytest.raises(ToolError, match="404"):
                await client.call_tool("fetch", {"url": url + "x"})
