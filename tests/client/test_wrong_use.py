"""What is wrong with a target, a listening or an answer is told in the caller's words, and nothing waits for ever."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from mcprelay import (
    Client,
    ConfigurationError,
    ConnectFailed,
    LocalFault,
    PromptsChanged,
    RemoteError,
    Server,
    ToolsChanged,
)
from mcprelay.client.catalogue import needs_input
from mcprelay.client.question import InputRequired
from mcprelay.types import InputRequest
from tests.client.peer import connected, fresh
from tests.client.test_listening import begun, tell


class Source:
    """Connects as a test says."""

    def __init__(self, connect):
        self.connect = connect


@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        ("http://[::1", {}, "the address 'http://[::1' is none: Invalid IPv6 URL"),
        ("http://\u2100/", {}, "invalid characters under NFKC"),
        ([""], {}, "a command is a list that begins with a program"),
        ([], {}, "a command is a list that begins with a program"),
        (["x", "a\0secret"], {}, "a command holds no null character, and its item 1 does"),
        (["x", 5], {}, "a command is a list of strings and paths, and its item 1 is 5 (int)"),
        (["x", "y", None], {}, "its item 2 is None (NoneType)"),
        (["x", b"y"], {}, "its item 1 is b'y' (bytes)"),
        (["x"], {"env": {"A=B": "secret"}}, "env: 'A=B' is not the name of a variable"),
        (["x"], {"env": {"": "secret"}}, "env: '' is not the name of a variable"),
        (["x"], {"env": {"A": "sec\0ret"}}, "env: the value of 'A' holds a null character"),
    ],
)
def test_a_target_that_can_be_none_is_told_where_it_is_given(target, options, said):
    with pytest.raises(ConfigurationError) as caught:
        Client(target, **options)
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_a_path_may_be_an_item_of_a_command(tmp_path):
    program = tmp_path / "near.py"
    program.write_text("from mcprelay import Server\nServer('near').run()\n", encoding="utf-8")
    async with Client([Path(sys.executable), program]) as client:
        await client.discover()
        assert client.server.info.name == "near"


@pytest.mark.parametrize("given", [None, 5])
@pytest.mark.parametrize("wait", [False, True])
async def test_a_source_that_gives_no_channel_is_told(given, wait):
    async def later():
        return given

    with pytest.raises(ConfigurationError, match=r"connect\(\) of 'Source' gives a Channel, and not") as caught:
        await fresh(Source(later if wait else lambda: given)).connect()
    assert str(given) in str(caught.value)


async def test_what_a_source_raises_is_a_connection_that_did_not_come_about():
    def connect():
        raise ZeroDivisionError("by zero")

    with pytest.raises(ConnectFailed, match=r"connect\(\) of 'Source' failed \(ZeroDivisionError") as caught:
        await fresh(Source(connect)).connect()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"tools": "no"}, "tools is True or False, and not 'no'"),
        ({"prompts": 1}, "prompts is True or False"),
        ({"resources": None}, "resources is True or False"),
        ({"updates": [""]}, "updates= names resources by their URIs, and '' is none"),
        ({"updates": ["\ud800"]}, "updates= names resources by their URIs"),
    ],
)
def test_what_cannot_be_listened_for_is_told_at_once(what, said):
    with pytest.raises(ConfigurationError) as caught:
        Client(["x"]).listen(**what)
    assert said in str(caught.value)


async def test_a_listening_that_was_not_entered_does_not_wait_for_ever():
    with pytest.raises(LocalFault, match="entered before it is read"):
        await anext(Client(["x"]).listen(tools=True))


async def test_two_who_read_one_listening_each_get_an_event_and_its_end():
    async with connected() as (client, channel):
        events, request = await begun(client, channel, tools=True, prompts=True)
        readers = [asyncio.ensure_future(anext(events)) for _ in range(4)]
        await asyncio.sleep(0)
        readers.pop().cancel()
        tell(channel, request, "tools/list_changed")
        tell(channel, request, "prompts/list_changed")
        assert [await one for one in readers[:2]] == [ToolsChanged(), PromptsChanged()]
        await events.aclose()
        with pytest.raises(StopAsyncIteration):
            await readers[2]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (None, "a question is answered with a mapping from its keys, not None"),
        ([("q", None)], "a question is answered with a mapping"),
        ({1: None, "x": None}, "no answer for 'q'; nobody asked 'x', 1"),
    ],
)
async def test_answers_that_are_none_are_told(answers, said):
    async def go_on(*_):
        raise AssertionError("nothing is sent")

    question = InputRequired({"q": InputRequest("elicitation/create", {"message": "Who?"})}, go_on)
    with pytest.raises(ConfigurationError) as caught:
        await question.answer(answers)
    assert said in str(caught.value)


def test_a_question_is_shown_in_one_line_that_a_terminal_is_safe_from():
    async def go_on(*_):
        raise AssertionError("nothing is sent")

    params = {"message": "Who?\n\x1b[31m" * 10_000}
    question = InputRequired({"q": InputRequest("elicitation/create", params)}, go_on)
    assert question.message.isprintable()
    assert len(question.message) < 1100
    assert question.questions["q"].message == params["message"]


FORM = {"message": "Who?\n", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
ADDRESS = {"mode": "url", "message": "Pay", "url": "https://pay.example/1"}
MODEL = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}


def asked_for(**questions):
    """A question that waits for answers."""

    async def go_on(*_):
        raise AssertionError("nothing is sent")

    requests = {key: InputRequest(method, params) for key, (method, params) in questions.items()}
    return InputRequired(requests, go_on)


@pytest.mark.parametrize(
    ("questions", "shown", "options", "keys"),
    [
        ({"q": ("elicitation/create", FORM)}, "'q': Who? (name)", "on_elicit=", "'q': …"),
        ({"q": ("elicitation/create", ADDRESS)}, "'q': Pay (https://pay.example/1)", "on_elicit=", "'q': …"),
        ({"q": ("elicitation/create", {"message": "Sure?"})}, "'q': Sure?", "on_elicit=", "'q': …"),
        (
            {"a": ("sampling/createMessage", MODEL), "b": ("roots/list", {})},
            "'a': sampling/createMessage; 'b': roots/list",
            "on_roots= and on_sample=",
            "'a': …, 'b': …",
        ),
    ],
)
def test_a_question_shows_what_is_asked_and_its_exception_who_may_answer(questions, shown, options, keys):
    question = asked_for(**questions)
    assert str(question) == shown
    assert repr(question).startswith("InputRequired(")
    error = needs_input(question)
    assert error.question is question
    assert str(error).startswith("the server asks, and no handler answers: ")
    assert str(error).endswith(f"; give the client {options}, or go on with error.question.answer({{{keys}}})")
    assert str(error).isprintable()


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda client: client.request(5, {}), "method is the name of a method, such as 'tools/list', and not 5 (int)"),
        (lambda client: client.request(None), "such as 'tools/list', and not None (NoneType)"),
        (lambda client: client.request("", {}), "such as 'tools/list', and not '' (str)"),
        (
            lambda client: client.request("tools/list", [1]),
            "params is a mapping from names to values, and not [1] (list)",
        ),
        (
            lambda client: client.request("tools/list", []),
            "params is a mapping from names to values, and not [] (list)",
        ),
        (
            lambda client: client.request("tools/list", "x"),
            "params is a mapping from names to values, and not 'x' (str)",
        ),
        (lambda client: client.request("tools/list", 0), "params is a mapping from names to values, and not 0 (int)"),
        (
            lambda client: client.request("x", {"_meta": 5}),
            "params: _meta is a mapping from names to values, and not 5",
        ),
        (lambda client: client.request("x", meta=[1]), "meta is a mapping from names to values, and not [1] (list)"),
        (lambda client: client.request("x", name=5), "name is a string, and not 5 (int)"),
        (lambda client: client.notify(5), "method is the name of a method, such as 'tools/list', and not 5 (int)"),
        (lambda client: client.notify("x", [1]), "params must be a mapping, not [1] (list)"),
        (lambda client: client.read_resource(5), "uri is a resource's URI, which is a string, and not 5 (int)"),
        (lambda client: client.get_prompt(None), "name is the name of a prompt, which is a string, and not None"),
        (lambda client: client.get_prompt("p", [1]), "arguments is a mapping from names to values, and not [1] (list)"),
        (lambda client: client.get_prompt("p", ""), "arguments is a mapping from names to values, and not '' (str)"),
        (
            lambda client: client.complete("p", "a", context=[1]),
            "context is a mapping from names to values, and not [1]",
        ),
        (lambda client: client.call_tool(serves), "a function that serves one: `await client.tool(serves)(…)`"),
    ],
)
async def test_what_is_no_method_no_params_and_no_name_is_refused_before_anything_is_sent(ask, said):
    async with connected() as (client, channel):
        with pytest.raises(ConfigurationError, match=re.escape(said)):
            await ask(client)
        assert len(channel.sent) == 1  # the probe


@Server("books").tool
def serves(title: str) -> int:
    """Count a book's pages."""
    return 1


async def test_a_function_that_serves_no_tool_is_not_said_to_be_called_as_one():
    async with connected() as (client, _):
        with pytest.raises(ConfigurationError) as caught:
            await client.call_tool(len)
        assert "client.tool" not in str(caught.value)


@pytest.mark.off_schema
async def test_params_that_the_server_will_refuse_are_sent_all_the_same():
    async with connected() as (client, channel):
        asking = asyncio.ensure_future(client.request("resources/read", {"uri": [1], "_meta": {"a": 1}}, meta={"b": 2}))
        request = await channel.expect("resources/read")
        assert request["params"]["uri"] == [1]
        assert {"a": 1, "b": 2}.items() <= request["params"]["_meta"].items()
        channel.refuse(request, -32602)
        with pytest.raises(RemoteError):
            await asking
