"""Everything once, for real: a server of ours, called by us and by the official SDK; a server of others, called by us.

    make demo

The official SDK and the other server come from PyPI, each into an environment of its own under .tools/. The program
ends with exit code 0 only if every step gave the answer that it must give.
"""

import asyncio
import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from mcprelay import Client, __version__

HERE = Path(__file__).resolve().parent
TOOLS = HERE.parent / ".tools" / "demo"
OFFICIAL = "mcp==2.3.0"
OTHERS = "mcp-server-time"


def step(number: int, title: str) -> None:
    print(f"\n{number}. {title}")


def say(text: str) -> None:
    print(f"   {text}")


def must(true: object, text: str) -> None:
    if not true:
        raise SystemExit(f"   FAILED: {text}")
    say(f"✓ {text}")


# ---------------------------------------------------------------------------------------------- environments of others


def environment(name: str, package: str) -> Path:
    """The Python of an environment that has `package`, made on first use."""
    place = TOOLS / name
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    stamp = place / ".installed"
    if not stamp.exists() or stamp.read_text() != package:
        say(f"(installing {package} into {place.relative_to(HERE.parent)} …)")
        venv.create(place, with_pip=True, clear=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
        done = subprocess.run(pip, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"   FAILED: pip cannot install {package}:\n{done.stderr}")
        stamp.write_text(package)
    return python


OFFICIAL_CLIENT = """
import asyncio, json, sys
from importlib.metadata import version
from mcp import Client

async def main():
    async with Client(sys.argv[1]) as client:
        tools = await client.list_tools()
        result = await client.call_tool("add", {"a": 2, "b": 40})
        profile = await client.read_resource("user://ada/profile")
        prompt = await client.get_prompt("review", {"language": "python", "code": "x = 1"})
        print(json.dumps({
            "version": version("mcp"),
            "tools": [tool.name for tool in tools.tools],
            "text": result.content[0].text,
            "value": result.structured_content,
            "profile": profile.contents[0].text,
            "prompt": prompt.messages[0].content.text,
        }))

asyncio.run(main())
"""

# ----------------------------------------------------------------------------------------------------------- the steps


@contextlib.contextmanager
def served():
    """The calculator over HTTP on a free port; gives its address."""
    command = [sys.executable, "-m", "mcprelay.cli", "serve", str(HERE / "calculator.py"), "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            line = server.stderr.readline()
            address = re.search(r"http://\S+", line)
            must(address, f"the server said where it is: {line.strip()}")
            yield address[0]
        finally:
            server.terminate()
            must(server.wait(10) == 0, "the server ended cleanly when it was told to")


async def our_client(url: str) -> None:
    async with Client(url) as client:
        tools = await client.list_tools()
        must([tool.name for tool in tools] == ["add"], f"it offers {len(tools)} tool, add: {tools[0].description!r}")
        result = await client.call_tool("add", {"a": 2, "b": 40})
        must(result.value == 42, f"add(a=2, b=40) is {result.value}")
        profile = await client.read_resource("user://ada/profile")
        must(json.loads(profile.contents[0].text)["name"] == "Ada Lovelace", "user://ada/profile is Ada Lovelace")
        prompt = await client.get_prompt("review", {"language": "python", "code": "x = 1"})
        first = prompt.messages[0].content.text.splitlines()[0]
        must(first.startswith("Review this python code"), f"the prompt says: {first!r}")
        say(f"spoken: MCP {client.server.revision}, with {client.server.info.name} {client.server.info.version}")


def official_client(url: str) -> None:
    python = environment("official", OFFICIAL)
    done = subprocess.run([python, "-c", OFFICIAL_CLIENT, url], capture_output=True, text=True, timeout=60, check=False)
    must(done.returncode == 0, f"the official client ran{': ' + done.stderr if done.returncode else ''}")
    seen = json.loads(done.stdout)
    must(seen["tools"] == ["add"], f"mcp {seen['version']} lists the same tool")
    must(seen["text"] == "42", f"… and is told that add(a=2, b=40) is {seen['text']}")
    must("Ada Lovelace" in seen["profile"], "… and reads the same profile")
    must(seen["prompt"].startswith("Review this python code"), "… and gets the same prompt")


async def server_of_others() -> None:
    python = environment("time", OTHERS)
    async with Client([str(python), "-m", "mcp_server_time", "--local-timezone", "UTC"]) as client:
        names = [tool.name for tool in await client.list_tools()]
        must("convert_time" in names, f"it offers {', '.join(names)}")
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        result = await client.call_tool("convert_time", arguments)
        there = json.loads(result.text)["target"]["datetime"]
        must("T21:00:00+09:00" in there, f"12:00 UTC is {there} in Tokyo, it says")
        say(f"spoken: MCP {client.server.revision}, with {client.server.info.name} {client.server.info.version}")


def invitation() -> str:
    """A command that works where this program was started, whether or not its environment is the shell's."""
    ours = Path(sys.executable).with_name("mcprelay")
    found = shutil.which("mcprelay")
    words = ["mcprelay"] if found and Path(found) == ours else [from_here(ours)]
    return shlex.join([*words, "call", from_here(HERE / "calculator.py"), "add", "a=1", "b=2"])


def from_here(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def main() -> None:
    print(f"mcprelay {__version__}: serve Python to any MCP client, call any MCP server.")
    step(1, "We serve examples/calculator.py over HTTP")
    with served() as url:
        step(2, "Our own client calls it")
        asyncio.run(our_client(url))
        step(3, "The official Python SDK's client calls it")
        official_client(url)
        step(4, "We end it")
    step(5, f"Our client starts a server that others wrote, {OTHERS}, and calls it over stdio")
    asyncio.run(server_of_others())
    print(f"\nAll of it worked. Next: {invitation()}")


if __name__ == "__main__":
    main()
