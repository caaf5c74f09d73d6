"""The first example of the documentation does what it says, in process and as a program."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from mcprelay import Client, RemoteError

PATH = Path(__file__).parents[2] / "examples" / "calculator.py"


@pytest.fixture
def calculator():
    spec = importlib.util.spec_from_file_location("calculator_example", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_decorated_function_stays_the_function_it_was(calculator):
    assert calculator.add(1, 2) == 3


@pytest.fixture(params=["in process", "as a program"])
async def client(request, calculator):
    target = calculator.server if request.param == "in process" else [sys.executable, str(PATH)]
    env = {"PYTHONPATH": str(PATH.parents[1] / "src")}
    async with Client(target, env=env if isinstance(target, list) else None) as client:
        yield client


async def test_it_offers_a_tool_a_resource_a_family_of_resources_and_a_prompt(client):
    assert [tool.name for tool in await client.list_tools()] == ["add"]
    assert [resource.uri for resource in await client.list_resources()] == ["config://calculator/settings"]
    assert [one.uri_template for one in await client.list_resource_templates()] == ["user://{user_id}/profile"]
    assert [prompt.name for prompt in await client.list_prompts()] == ["review"]


async def test_it_answers(client):
    assert (await client.call_tool("add", {"a": 1, "b": 2})).value == 3
    settings = await client.read_resource("config://calculator/settings")
    assert json.loads(settings.contents[0].text) == {"precision": 2}
    profile = await client.read_resource("user://ada/profile")
    assert json.loads(profile.contents[0].text) == {"id": "ada", "name": "Ada Lovelace"}
    with pytest.raises(RemoteError, match="user://nobody/profile"):
        await client.read_resource("user://nobody/profile")
    prompt = await client.get_prompt("review", {"language": "python", "code": "x = 1"})
    assert prompt.messages[0].content.text == "Review this python code, focusing on general:\n\nx = 1"
