"""A script that is wrong is told where it is written, and is never taken for a network that fails."""

import re

import pytest

from mcprelay import CallFailed, Client, Retry, ToolError, ToolsChanged
from mcprelay.client.memory import Memory
from mcprelay.errors import CallLimitExceeded, ConfigurationError, ConnectionLost, Evidence, NotSent
from mcprelay.ports import Request
from mcprelay.testing import Answer, Cut, ScriptedSender, ScriptFault, result

URL = "http://server.example/mcp"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"cut": "AFTER_REQUEST"}, "cut is a Cut, and not 'AFTER_REQUEST' (str): write cut=Cut.AFTER_REQUEST"),
        ({"cut": "after_request"}, "cut is a Cut, and not 'after_request' (str): write cut=Cut.AFTER_REQUEST"),
        ({"cut": "later"}, "write one of Cut.BEFORE_CONNECT, Cut.CONNECTING, Cut.BEFORE_FIRST_BYTE"),
        ({"cut": Cut}, "cut is a Cut, and not the type Cut: write one of"),
        ({"status": "503"}, "status is an HTTP status from 100 to 599, and not '503' (str)"),
        ({"status": True}, "status is an HTTP status from 100 to 599, and not True (bool)"),
        ({"status": 600}, "status is an HTTP status from 100 to 599, and not 600 (int)"),
        ({"headers": [("a", "b")]}, "headers is a mapping from names to values, and not [('a', 'b')] (list)"),
        ({"headers": None}, "headers is a mapping from names to values, and not None (NoneType)"),
        ({"headers": {"retry-after": 5}}, "headers is a mapping from strings to strings, and holds ('retry-after', 5)"),
        ({"chunks": b"{}"}, "the pieces of the body, and not b'{}' (bytes): write chunks=(b'{}',)"),
        ({"chunks": "{}"}, "chunks is a tuple of bytes, the pieces of the body, and not '{}' (str)"),
        ({"chunks": ("x",)}, "chunks is a tuple of bytes, and holds 'x' (str)"),
        ({"chunks": iter([b"x"])}, "chunks is a tuple of bytes, the pieces of the body, and not"),
        ({"cut": Cut.AFTER_REQUEST, "then": "hangs"}, "then is 'fail' or 'hang', and not 'hangs' (str)"),
        ({"then": "hang"}, "then says what happens where it is cut, and it is not: give cut= as well"),
    ],
)  # fmt: skip
def test_an_answer_that_can_be_none_is_refused_where_it_is_made(fields, said):
    with pytest.raises(ScriptFault, match=re.escape(said)) as caught:
        Answer(**fields)
    assert str(caught.value).startswith("Answer: ")


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"a": 1}, "and not {'a': 1} (dict): write result({…}) around the JSON of a result"),
        ("x", "and not 'x' (str)"),
        (None, "and not None (NoneType)"),
        (result, "(function): call it with the JSON of the result"),
        (Answer, "and not the type Answer: call it"),
        (Cut.AFTER_REQUEST, "write Answer(cut=Cut.AFTER_REQUEST)"),
        (NotSent("x"), "and not NotSent('x')"),
        (ToolError, "and not the type ToolError"),
    ],
)
def test_a_step_that_is_none_is_refused_where_the_script_is_written(step, said):
    begins = "a step is an Answer(…), a result({…}), or a function that gets the request and gives an Answer, "
    for script in (ScriptedSender, ScriptedSender().add):
        with pytest.raises(ScriptFault, match=re.escape(said)) as caught:
            script(Answer(), step)
        assert str(caught.value).startswith(begins)


def test_a_coroutine_function_is_no_step():
    async def answers(_: Request) -> Answer:
        return Answer()

    with pytest.raises(ScriptFault, match="it gets no await"):
        ScriptedSender(answers)


@pytest.mark.parametrize("value", [object(), {"a": object()}, {"a": "\ud800"}])
def test_a_result_that_json_cannot_carry_is_refused_where_it_is_made(value):
    with pytest.raises(ScriptFault, match="result: JSON cannot carry"):
        result(value)


async def coroutine() -> None:
    pass


def mutated(_: Request) -> Answer:
    answer = Answer()
    answer.cut = "AFTER_REQUEST"
    return answer


def refuses(_: Request) -> Answer:
    raise ToolError("no")


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (lambda: None, "raised TypeError("),
        (lambda _: {"a": 1}, "gave {'a': 1}, and not an Answer: write result({…}) around the JSON of a result"),
        (lambda _: coroutine(), "gave <coroutine object coroutine"),
        (lambda _: Answer(status="503"), "Answer: status is an HTTP status from 100 to 599, and not '503' (str)"),
        (mutated, "gave an Answer that is none: cut is a Cut"),
        (refuses, "raised ToolError('no')"),
        (lambda _: Client(5), "raised ConfigurationError("),
    ],
)
async def test_what_goes_wrong_in_a_step_is_no_failure_of_the_call(step, said):
    sender = ScriptedSender(step)
    with pytest.raises(ScriptFault, match=re.escape(said)) as caught:
        async with Client(URL, sender=sender, memory=Memory()) as client:
            await client.call_tool("pay", {"amount": 5}, retry=Retry(attempts=3, backoff=0), idempotency_key="k")
    assert not isinstance(caught.value, (CallFailed, ConfigurationError))
    assert len(sender.requests) == 1


@pytest.mark.parametrize(
    "error",
    [NotSent("full"), ConnectionLost("gone", evidence=Evidence.MAYBE_SENT), CallLimitExceeded("a", 1, evidence="x")],
)
async def test_a_step_may_raise_what_a_sender_may(error):
    def raises(_: Request) -> Answer:
        raise error

    with pytest.raises(type(error)):
        async with ScriptedSender(raises).send(Request(url=URL, body=b"{}")):
            pass


async def test_a_notification_is_answered_with_no_result():
    sender = ScriptedSender(result({}))
    with pytest.raises(
        ScriptFault, match=r"POST tell asks for no result, so it is no answer: give Answer\(status=202\)"
    ):
        async with sender.send(Request(url=URL, body=b'{"jsonrpc":"2.0","method":"tell"}')):
            pass


async def test_the_names_of_headers_may_be_written_as_people_write_them():
    async with ScriptedSender(Answer(headers={"Retry-After": "0"})).send(Request(url=URL, body=b"{}")) as reply:
        assert reply.headers == {"retry-after": "0"}


WHO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "x", "version": "1"},
}


async def test_a_script_without_the_stream_that_is_listened_to_is_told_to_whoever_listens():
    sender = ScriptedSender(result(WHO), Answer(status=202))
    async with Client(URL, sender=sender, revision="2025-11-25", memory=Memory()) as client:
        await client.discover()
        async with client.listen(tools=True) as events:
            with pytest.raises(ScriptFault, match="the script has no answer for GET"):
                assert [event async for event in events] == [ToolsChanged()]
