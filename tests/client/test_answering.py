"""What a handler of the user's answers is looked at before it goes out, in every era (client/handler)."""

import asyncio
import datetime as dt

import pytest

from mcprelay import (
    CallFailed,
    Client,
    ConfigurationError,
    Elicitation,
    ElicitResult,
    Evidence,
    Sampling,
    SamplingResult,
    Server,
)
from mcprelay.client.handler import Handlers
from mcprelay.client.question import InputRequired
from mcprelay.types import InputRequest, ListRootsResult, Root, SamplingMessage, Text, Tool, ToolUse, ToolUseResult
from tests.client.peer import connected, in_session, tool_result

SCHEMA = {
    "type": "object",
    "properties": {
        "seat": {"type": "string", "minLength": 2, "maxLength": 3},
        "meals": {"type": "integer", "minimum": 0, "maximum": 9},
        "day": {"type": "string", "format": "date"},
        "extras": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["a", "b"]}},
        "weight": {"type": "number"},
    },
    "required": ["seat"],
}
FORM = {"message": "Which?", "requestedSchema": SCHEMA}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
METHODS = {"on_elicit": "elicitation/create", "on_sample": "sampling/createMessage", "on_roots": "roots/list"}
PARAMS = {"on_elicit": FORM, "on_sample": SAMPLE, "on_roots": {}}

WRONG_FORMS = [
    ({"action": "accept"}, "a form is accepted with its content: a mapping of 'seat', 'meals'"),
    (ElicitResult(action="accept"), "a form is accepted with its content"),
    (
        {"action": "accepted", "content": {"seat": "1A"}},
        "the action is 'accept', 'decline', 'cancel', and not 'accepted'",
    ),
    ({"action": True}, "the action is 'accept', 'decline', 'cancel', and not True"),
    (ElicitResult(action="ok", content={"seat": "1A"}), "and not 'ok'"),
    ({"action": "accept", "content": {}}, "'seat' is required"),
    ({"action": "accept", "content": {"saet": "1A"}}, "'seat' is required; the form has no 'saet'"),
    ({"action": "accept", "content": {"seat": 7}}, "'seat' must be string, not 7"),
    (ElicitResult(action="accept", content={"seat": 7}), "'seat' must be string, not 7"),
    ({"action": "accept", "content": "1A"}, "a form is answered with a mapping"),
    ({"action": "decline", "content": {"seat": "1A"}}, "content belongs to a form that is accepted"),
    ({"seat": "1A", "meals": 10}, "'meals' must be at most 9, not 10"),
    ({"seat": "1A", "meals": -1}, "'meals' must be at least 0, not -1"),
    ({"seat": "1"}, "'seat' must be at least 2 characters long"),
    ({"seat": "12AB"}, "'seat' must be at most 3 characters long"),
    ({"seat": "1A", "extras": []}, "'extras' must be at least 1 items long"),
    ({"seat": "1A", "extras": ["a", "b", "a"]}, "'extras' must be at most 2 items long"),
    ({"seat": "1A", "weight": float("nan")}, "'weight' must be a finite number"),
    ({"seat": object()}, "unsupported"),
]
WRONG_SAMPLES = [
    (None, "a model answers with"),
    (SamplingResult(role="assistant", content=5, model="m"), "content"),
    (SamplingResult(role="robot", content=Text("x"), model="m"), "role"),
    (SamplingResult(role="assistant", content=Text(5), model="m"), "text"),
    (SamplingResult(role="assistant", content=Text("x"), model=None), "model"),
    ({"role": "assistant", "content": {"type": "text", "text": "x"}}, "model"),
    ({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m", "x": object()}, "unsupported"),
    (ToolUse(id="1", name="pay", input={}), "it uses the tool 'pay', and the server gave it no tools"),
    (
        SamplingResult(role="assistant", content=(ToolUseResult(tool_use_id="1", content=()),), model="m"),
        "no tool_result here",
    ),
]
WRONG_ROOTS = [
    (None, "roots are a list of folders, and not None"),
    ("/srv", "roots are a list of folders, and not '/srv'"),
    (b"/srv", "roots are a list of folders"),
    (7, "roots are a list of folders"),
    ([7], "a root is a path, a file:// URI or a Root, and not 7"),
    ([Root(7)], "uri"),
    ([Root("file:///a", name=7)], "name"),
    (ListRootsResult(roots=[Root(uri="https://x.example")]), "file://"),
]
WRONG = [
    *(("on_elicit", *case) for case in WRONG_FORMS),
    *(("on_sample", *case) for case in WRONG_SAMPLES),
    *(("on_roots", *case) for case in WRONG_ROOTS),
]


def giving(option, value):
    """The option with a handler that answers this."""
    return {option: (lambda: value) if option == "on_roots" else (lambda _: value)}


def has(error, said):
    """Whether an error says who answered wrongly, and what was wrong."""
    return said.lower() in str(error).lower()


@pytest.mark.parametrize(("option", "value", "said"), WRONG)
async def test_what_does_not_fit_the_question_is_an_error_of_the_handler_and_is_not_sent(option, value, said):
    async with connected(**giving(option, value)) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        request = await channel.expect("tools/call")
        question = {"method": METHODS[option], "params": PARAMS[option]}
        channel.reply(request, {"resultType": "input_required", "inputRequests": {"q": question}})
        with pytest.raises(CallFailed) as caught:
            await calling
        assert str(caught.value).startswith(f"tools/call 'book': what {option} answered does not fit: ")
        assert has(caught.value, said)
        assert caught.value.evidence is Evidence.ANSWERED
        assert isinstance(caught.value.__cause__, ConfigurationError)
        assert len(channel.sent) == 2  # the greeting, and the call


@pytest.mark.parametrize(("option", "value", "said"), WRONG)
async def test_in_a_session_it_is_logged_and_the_server_is_told_that_there_is_no_answer(option, value, said, caplog):
    async with in_session(**giving(option, value)) as (_, channel):
        channel.call("q", METHODS[option], PARAMS[option])
        answer = await channel.expect()
        assert answer["id"] == "q"
        assert answer["error"]["code"] == -32603
    failed = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert len(failed) == 1
    assert str(failed[0]).startswith(f"what {option} answered does not fit: ")
    assert has(failed[0], said)


@pytest.mark.parametrize(("option", "value", "said"), WRONG)
async def test_a_caller_who_answers_a_question_is_told_the_same(option, value, said):
    async def go_on(*_):
        raise AssertionError("nothing is sent")

    question = InputRequired({"q": InputRequest(METHODS[option], PARAMS[option])}, go_on)
    with pytest.raises(ConfigurationError, match="the answer for 'q' does not fit") as caught:
        await question.answer({"q": value})
    assert has(caught.value, said)


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ({"action": "accept", "content": {"seat": "1A"}}, {"action": "accept", "content": {"seat": "1A"}}),
        (
            ElicitResult(action="accept", content={"seat": "1A", "day": dt.date(2026, 1, 2)}),
            {"action": "accept", "content": {"seat": "1A", "day": "2026-01-02"}},
        ),
        (
            {"action": "accept", "content": {"seat": "1A"}, "_meta": {"x/y": 1}},
            {"action": "accept", "content": {"seat": "1A"}, "_meta": {"x/y": 1}},
        ),
        ({"action": "cancel", "content": {}}, {"action": "cancel"}),
        (None, {"action": "decline"}),
    ],
)
async def test_a_result_that_fits_goes_out_as_it_is(value, sent):
    async with connected(on_elicit=lambda _: value) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        question = {"method": "elicitation/create", "params": FORM}
        channel.reply(
            await channel.expect("tools/call"), {"resultType": "input_required", "inputRequests": {"q": question}}
        )
        request = await channel.expect("tools/call")
        assert request["params"]["inputResponses"] == {"q": sent}
        channel.reply(request, tool_result())
        await calling


def test_bounds_that_are_no_numbers_bound_nothing():
    schema = {"properties": {"a": {"type": "integer", "minimum": "x", "maximum": None}}}
    question = Elicitation(requested_schema=schema)
    assert question.accept(a=3).content == {"a": 3}


def test_names_of_required_fields_that_are_no_names_require_nothing():
    question = Elicitation(requested_schema={"properties": {"a": {}}, "required": [1, None, [], "a"]})
    assert question.accept(a=3).content == {"a": 3}
    with pytest.raises(ValueError, match="'a' is required"):
        question.accept()


def test_an_address_takes_no_content():
    question = Elicitation(mode="url", url="https://x.example")
    assert question.answered(ElicitResult(action="accept", content={})) == ElicitResult(action="accept")
    with pytest.raises(ValueError, match="content belongs to a form"):
        question.answered(ElicitResult(action="accept", content={"a": 1}))


@pytest.mark.parametrize("url", [None, "", "here", "https:", "https://x.example/\x1b[31m", "https://x example"])
async def test_an_address_that_is_none_is_no_question(url):
    asked = []
    async with in_session(on_elicit=asked.append) as (_, channel):
        channel.call("q", "elicitation/create", {"mode": "url", "message": "go"} | ({"url": url} if url else {}))
        answer = await channel.expect()
    assert answer["error"]["code"] == -32602
    assert "url" in answer["error"]["message"]
    assert asked == []


def test_a_model_that_was_given_tools_may_use_one():
    from mcprelay.client.handler import shaped

    message = SamplingMessage("user", Text("hi"))
    tool = Tool(name="pay", input_schema={"type": "object"})
    question = Sampling(messages=(message,), tools=(tool,))
    assert question.tools == (tool,)
    params = {**SAMPLE, "tools": [{"name": "pay", "inputSchema": {"type": "object"}}]}
    answer = shaped(InputRequest("sampling/createMessage", params), ToolUse(id="1", name="pay", input={}))
    assert answer.stop_reason == "toolUse"


@pytest.mark.parametrize(("value", "said"), [case for case in WRONG_ROOTS if case[0] is not None])
def test_a_wrong_list_of_roots_is_told_where_it_is_given(value, said):
    with pytest.raises(ConfigurationError, match="on_roots: ") as caught:
        Client(Server("x"), on_roots=value)
    assert has(caught.value, said)


async def test_roots_that_can_be_read_but_once_are_kept_and_a_list_may_change():
    folders = ["/a"]
    assert b'"file:///a"' in await Handlers(roots=iter(folders)).answer("roots/list", b"{}")
    handlers = Handlers(roots=folders)
    folders.append("/b")
    for _ in range(2):
        assert (await handlers.answer("roots/list", b"{}")).count(b"file:///") == 2
