"""What an adapter lacks, and what it is wrongly given, is told in words that say what to do."""

import importlib
import pkgutil
import sys
import types

import pytest

import mcprelay.adapters
from mcprelay.adapters import anthropic, google, langchain, openai, openai_chat
from mcprelay.adapters.sdk import Sdk

PACKAGES = {
    "anthropic": ("anthropic.types", "anthropic"),
    "google": ("google.genai", "google-genai"),
    "langchain": ("langchain_core.messages", "langchain-core"),
    "openai": ("openai.types.responses", "openai"),
    "openai_agents": ("agents", "openai-agents"),
    "openai_chat": ("openai.types.chat", "openai"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai-slim"),
}
OF_OURS = {"attachment", "offered", "sdk"}
TAKES = {
    anthropic: "a Message, the reply of messages.create(…)",
    google: "a GenerateContentResponse, the reply of generate_content(…)",
    langchain: "an AIMessage, the reply of model.ainvoke(…)",
    openai: "a Response, the reply of responses.create(…)",
    openai_chat: "a ChatCompletionMessage, completion.choices[0].message",
}
COMPLETION = types.SimpleNamespace(choices=[])


def test_every_adapter_is_looked_at():
    assert {module.name for module in pkgutil.iter_modules(mcprelay.adapters.__path__)} == {*PACKAGES, *OF_OURS}


@pytest.mark.parametrize("adapter", PACKAGES)
def test_an_sdk_that_is_not_installed_is_named_as_it_is_installed(adapter, monkeypatch):
    module, package = PACKAGES[adapter]
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"mcprelay.adapters.{adapter}", raising=False)
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(f"mcprelay.adapters.{adapter}")
    assert f"needs the package {package} (pip install {package})" in str(caught.value)


def test_an_sdk_that_is_too_old_is_told_as_that(monkeypatch):
    monkeypatch.setitem(sys.modules, "agents", types.ModuleType("agents"))
    monkeypatch.delitem(sys.modules, "mcprelay.adapters.openai_agents", raising=False)
    with pytest.raises(ImportError, match=r"needs a newer openai-agents \(pip install -U openai-agents\): "):
        importlib.import_module("mcprelay.adapters.openai_agents")


def test_another_mistake_stays_what_it_is():
    with pytest.raises(ValueError, match="another"), Sdk("openai"):
        raise ValueError("another")


@pytest.mark.parametrize("adapter", TAKES, ids=lambda adapter: adapter.__name__.rpartition(".")[2])
@pytest.mark.parametrize(
    "reply", [COMPLETION, {"role": "assistant"}, None, "text"], ids=["completion", "dict", "none", "text"]
)
async def test_what_is_no_reply_is_refused_by_the_name_of_what_is_one(adapter, reply, tools):
    with pytest.raises(TypeError) as caught:
        await adapter.run(tools, reply)
    assert str(caught.value) == f"run() takes {TAKES[adapter]}, and not a value of the type {type(reply).__name__}"


@pytest.mark.parametrize("adapter", TAKES, ids=lambda adapter: adapter.__name__.rpartition(".")[2])
async def test_a_reply_that_nobody_awaited_is_told_as_that(adapter, tools):
    async def create():
        """Nothing comes of it."""

    with pytest.raises(TypeError, match="of the type coroutine: await it"):
        await adapter.run(tools, create())


@pytest.mark.parametrize("adapter", TAKES, ids=lambda adapter: adapter.__name__.rpartition(".")[2])
async def test_tools_that_are_no_guarded_ones_are_told_before_the_reply(adapter):
    with pytest.raises(TypeError, match="an adapter takes guarded tools"):
        await adapter.run([], COMPLETION)
