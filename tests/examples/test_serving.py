"""The examples of ways to serve: called at once, mounted in an app, protected."""

import re
import subprocess
import sys

import pytest

from mcprelay import AuthorizationRequired, Client, RemoteError
from tests.examples.program import EXAMPLES, environment, listening


def test_both_sides_fit_in_one_file():
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "serve_and_call.py")],
        env=environment(), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "['greet']",
        "Hello, Ada!",
        "Hello, Hello, Ada!",
        "Invalid arguments for greet:",
        "- name: is missing, expected a string",
        "- nme: there is no such argument; did you mean 'name'?",
    ]


async def test_each_tenant_of_a_mounted_server_sees_its_own():
    async with listening("mount.py") as origin:
        for tenant, books in [("north", ["Emma", "Persuasion"]), ("south", ["Moby-Dick"])]:
            async with Client(f"{origin}/mcp", headers={"X-Tenant": tenant}) as client:
                assert (await client.call_tool("books")).value == books
        with pytest.raises(RemoteError, match="the header X-Tenant names no tenant"):
            async with Client(f"{origin}/mcp") as client:
                await client.call_tool("books")


async def test_who_has_a_token_is_let_in_and_who_has_the_scope_sees_more():
    async with listening("protect.py") as origin:
        async with Client(f"{origin}/mcp", auth="ada-token") as client:
            assert (await client.call_tool("whoami")).value == "ada"
            assert [tool.name for tool in await client.list_tools()] == ["whoami"]
            with pytest.raises(RemoteError, match="restart"):
                await client.call_tool("restart", {"service": "mail"})
        async with Client(f"{origin}/mcp", auth="grace-token") as client:
            assert (await client.call_tool("restart", {"service": "mail"})).value == "mail restarted"
        for token in (None, "guessed"):
            with pytest.raises(AuthorizationRequired) as refused:
                async with Client(f"{origin}/mcp", auth=token) as client:
                    await client.list_tools()
            assert refused.value.status == 401


def test_every_example_that_the_list_names_is_there():
    links = re.findall(r"\]\(([^)]+)\)", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 20
    assert [link for link in links if not (EXAMPLES / link).is_file()] == []
