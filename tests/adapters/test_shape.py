"""Definitions and results in the very types of each SDK, checked by the SDK's own models."""

import base64
import json

import msgspec
import pytest
from pydantic import TypeAdapter

from tests.adapters.house import PDF, PNG, WAV


async def framed(tools, name, /, **arguments):
    return await tools[f"house__{name}"].run(arguments)


# --- Anthropic


async def test_anthropic_takes_definitions_and_every_kind_of_result(tools):
    pytest.importorskip("anthropic")
    from anthropic.types import ToolParam, ToolResultBlockParam

    from mcprelay.adapters import anthropic as adapter

    TypeAdapter(list[ToolParam]).validate_python(adapter.tools(tools))
    for tool in tools.values():
        made = adapter.result(await tool.run({}), "toolu_1")
        TypeAdapter(ToolResultBlockParam).validate_python(made)
    _, picture = adapter.result(await framed(tools, "picture"), "toolu_1")["content"]
    assert picture["source"] == {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    _, paper = adapter.result(await framed(tools, "paper"), "toolu_1")["content"]
    assert (paper["type"], base64.b64decode(paper["source"]["data"])) == ("document", PDF)
    failure = adapter.result(await framed(tools, "fail"), "toolu_1")
    assert failure["is_error"] is True


# --- OpenAI


async def test_openai_takes_definitions_strict_only_where_the_meaning_stays(tools):
    pytest.importorskip("openai")
    from openai.types.responses import FunctionToolParam

    from mcprelay.adapters import openai as adapter

    made = {one["name"]: one for one in adapter.tools(tools)}
    TypeAdapter(list[FunctionToolParam]).validate_python(list(made.values()))
    assert made["house__greet"]["strict"] is True
    assert made["house__greet"]["parameters"]["required"] == ["name", "title"]
    assert made["house__anything"]["strict"] is False


async def test_openai_takes_every_kind_of_result(tools):
    pytest.importorskip("openai")
    from openai.types.responses.response_input_item_param import FunctionCallOutput

    from mcprelay.adapters import openai as adapter

    for tool in tools.values():
        TypeAdapter(FunctionCallOutput).validate_python(adapter.result(await tool.run({}), "call_1"))
    text, picture = adapter.result(await framed(tools, "picture"), "call_1")["output"]
    assert text["type"] == "input_text"
    assert picture["image_url"] == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    _, paper = adapter.result(await framed(tools, "paper"), "call_1")["output"]
    assert (paper["type"], paper["filename"]) == ("input_file", "attachment.pdf")
    assert isinstance(adapter.result(await framed(tools, "greet", name="Ada"), "call_1")["output"], str)


@pytest.mark.parametrize("arguments", ["{", "[]", "null", '"x"', "1", "", "{" * 10_000])
async def test_openai_answers_arguments_that_are_no_object(tools, arguments):
    pytest.importorskip("openai")
    from mcprelay.adapters import openai as adapter

    answer = await adapter.call(tools, "house__greet", arguments)
    assert answer.failed
    assert "hello" not in answer.text


async def test_openai_chat_holds_text_alone_and_lets_pictures_follow(tools):
    pytest.importorskip("openai")
    from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessage, ChatCompletionMessageParam

    from mcprelay.adapters import openai_chat as adapter

    TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(adapter.tools(tools))
    calls = [
        {"id": f"call_{at}", "type": "function", "function": {"name": f"house__{name}", "arguments": "{}"}}
        for at, name in enumerate(["picture", "paper", "fail_with_picture"])
    ]
    reply = ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": calls})
    messages = await adapter.run(tools, reply)
    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(messages)
    assert [message["role"] for message in messages] == ["tool", "tool", "tool", "user"]
    assert all(isinstance(message["content"], str) for message in messages[:3])
    assert "application/pdf" in messages[1]["content"]
    assert "was left out" in messages[1]["content"]
    follow = messages[3]["content"]
    assert [part["type"] for part in follow] == ["text", "image_url", "text", "image_url"]
    assert ["call_0" in follow[0]["text"], "call_2" in follow[2]["text"]] == [True, True]


# --- Google


async def test_google_takes_definitions_and_every_kind_of_result(tools):
    pytest.importorskip("google.genai")
    from google.genai import types

    from mcprelay.adapters import google as adapter

    [made] = adapter.tools(tools)
    assert isinstance(made, types.Tool)
    assert [one.name for one in made.function_declarations] == list(tools.keys())
    picture = adapter.result(await framed(tools, "picture"), "house__picture", "1").function_response
    assert (picture.id, picture.parts[0].inline_data.data) == ("1", PNG)
    sound = adapter.result(await framed(tools, "sound"), "house__sound").function_response
    assert sound.parts is None
    assert "audio/wav" in sound.response["output"]
    failure = adapter.result(await framed(tools, "fail"), "house__fail").function_response
    assert list(failure.response) == ["error"]


async def test_google_gives_no_tool_at_all_for_an_empty_set(tools):
    pytest.importorskip("google.genai")
    from mcprelay.adapters import google as adapter
    from mcprelay.relay import Report, ToolSet

    assert adapter.tools(ToolSet([], report=Report())) == []


# --- pydantic-ai


async def test_pydantic_ai_gets_content_and_the_program_the_answer(tools):
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import BinaryContent, ToolFailed

    from mcprelay.adapters import pydantic_ai as adapter

    made = adapter.result(await framed(tools, "picture"))
    assert made.return_value[1] == BinaryContent(PNG, media_type="image/png")
    assert made.metadata.content[0].text == "a picture"
    with pytest.raises(ToolFailed, match="out of paper"):
        adapter.result(await framed(tools, "fail"))
    sound = await framed(tools, "sound")
    assert "was left out" in adapter.result(sound).return_value
    assert adapter.result(sound, carried={"audio/wav"}).return_value[1] == BinaryContent(WAV, media_type="audio/wav")


# --- LangChain


async def test_langchain_gets_blocks_a_status_and_an_artifact_through_its_own_call(tools):
    pytest.importorskip("langchain_core")
    from langchain_core.messages import ToolMessage

    from mcprelay.adapters import langchain as adapter

    made = {tool.name: tool for tool in adapter.tools(tools)}

    async def call(name, /, **arguments):
        asked = {"type": "tool_call", "id": "call_1", "name": f"house__{name}", "args": arguments}
        return await made[f"house__{name}"].ainvoke(asked)

    greeted = await call("greet", name="Ada")
    assert isinstance(greeted, ToolMessage)
    assert (greeted.status, "hello Ada" in greeted.content) == ("success", True)
    picture = await call("picture")
    assert picture.content[1] == {"type": "image", "base64": base64.b64encode(PNG).decode(), "mime_type": "image/png"}
    assert picture.artifact.content[0].text == "a picture"
    failure = await call("fail_with_picture")
    assert (failure.status, failure.content[1]["type"]) == ("error", "image")
    assert (await call("erase")).status == "error"
    same = await call("configure", config="c", run_manager="r", callbacks="k")
    assert "c r k" in same.content
    wrong = await call("greet")
    assert (wrong.status, "nothing was sent" in wrong.content) == ("error", True)


async def test_langchain_says_that_its_tools_are_asynchronous(tools):
    pytest.importorskip("langchain_core")
    from mcprelay.adapters import langchain as adapter

    with pytest.raises(RuntimeError, match="ainvoke"):
        adapter.tools(tools)[0].invoke({"name": "Ada"})


# --- OpenAI Agents


async def test_openai_agents_keep_the_schema_that_they_are_given(tools):
    pytest.importorskip("agents")
    from agents.tool_context import ToolContext

    from mcprelay.adapters import openai_agents as adapter

    made = {tool.name: tool for tool in adapter.tools(tools)}
    loose = made["house__anything"]
    assert loose.strict_json_schema is False
    assert (
        loose.params_json_schema["additionalProperties"]
        == tools["house__anything"].input_schema["additionalProperties"]
    )
    tool = made["house__greet"]
    given = json.dumps({"name": "Ada", "title": None})
    context = ToolContext(context=None, tool_name=tool.name, tool_call_id="call_1", tool_arguments=given)
    assert "hello Ada" in await tool.on_invoke_tool(context, given)
    text, picture = await made["house__picture"].on_invoke_tool(context, "{}")
    assert (text.type, picture.type) == ("text", "image")
    assert "no JSON" in await tool.on_invoke_tool(context, "{")


def test_a_schema_is_worked_out_once_for_each_definition_and_provider(tools):
    from mcprelay.adapters.offered import form
    from mcprelay.wire.dialect import gemini, plain

    tool = tools["house__keep"]
    assert form(tool, plain) is form(tool, plain)
    assert form(tool, gemini) is not form(tool, plain)
    assert msgspec.json.encode(form(tool, plain).schema)
