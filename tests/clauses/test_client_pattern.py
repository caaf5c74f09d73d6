"""How a client gives up, counts progress, answers questions and listens."""

import asyncio
from typing import Any

import pytest

from mcprelay import CallFailed, Evidence, MCPRelayError, NeedsInput, RemoteError
from mcprelay.client.retry import Retry
from tests.clauses.http import PREFIX
from tests.clauses.script import (
    URL,
    Error,
    Http,
    Stream,
    asks,
    complete,
    form,
    over_http,
    over_lines,
    text,
    tools,
)

CALL = {"tools/call": text("done")}


# ------------------------------------------------------------------------------------------------------ stdio, patterns


@pytest.mark.clause("stdio.cancel-notification", "cancellation.stdio", "cancellation.own-requests")
async def test_over_a_channel_a_call_that_is_given_up_is_cancelled_by_its_id():
    server, client = over_lines(CALL)
    server.silent = {"tools/call"}
    async with client:
        call = asyncio.ensure_future(client.call_tool("t"))
        request = await server.heard("tools/call")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        cancelled = await server.heard("notifications/cancelled")
    assert cancelled["params"]["requestId"] == request["id"]


@pytest.mark.clause("cancellation.timeout-cancels", "cancellation.timeout-per-request", "tools.timeouts")
async def test_a_timeout_of_one_call_cancels_that_call():
    server, client = over_lines({**CALL, "tools/list": tools()})
    server.silent = {"tools/call"}
    async with client:
        with pytest.raises(TimeoutError):
            await client.call_tool("t", timeout=0.01)
        cancelled = await server.heard("notifications/cancelled")
        assert cancelled["params"]["requestId"] == server.of("tools/call")[0]["id"]
        assert list(await client.list_tools()) == []


@pytest.mark.clause("cancellation.late-answer-ignored", "cancellation.races")
async def test_an_answer_to_what_was_given_up_is_ignored():
    server, client = over_lines(CALL)
    server.silent = {"tools/call"}
    async with client:
        with pytest.raises(TimeoutError):
            await client.call_tool("t", timeout=0.01)
        late = server.of("tools/call")[0]["id"]
        server.say({"jsonrpc": "2.0", "id": late, "result": text("late")})
        server.silent = set()
        assert (await client.call_tool("t")).text == "done"


@pytest.mark.clause("cancellation.timeout-maximum")
async def test_progress_does_not_extend_a_wait_beyond_its_deadline():
    server, client = over_lines(CALL)
    server.silent = {"tools/call"}
    async with client:
        call = asyncio.ensure_future(client.call_tool("t", timeout=0.05, on_progress=lambda _: None))
        request = await server.heard("tools/call")
        token = request["params"]["_meta"]["progressToken"]
        for step in range(1000):
            params = {"progressToken": token, "progress": step}
            server.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        with pytest.raises(TimeoutError):
            await call


@pytest.mark.clause("progress.token-type", "progress.token-unique", "progress.tracked")
async def test_progress_tokens_are_unique_over_the_calls_that_run(scripted: Any):
    server, client = scripted(CALL)
    async with client:
        await asyncio.gather(*(client.call_tool("t", on_progress=lambda _: None) for _ in range(10)))
    tokens = [message["params"]["_meta"]["progressToken"] for message in server.of("tools/call")]
    assert {type(token) for token in tokens} <= {int, str}
    assert len(set(tokens)) == 10


# --------------------------------------------------------------------------------------------------------------- rounds


@pytest.mark.clause("mrtr.state-echoed", "mrtr.state-opaque", "mrtr.new-id", "mrtr.inputs-first", "tools.new-id")
@pytest.mark.parametrize("state", ["", "s", '{"a": 1}', " \n\u2028ü", "x" * 10_000])
async def test_the_retry_has_the_answers_the_state_as_it_came_and_a_new_id(scripted: Any, state: str):
    server, client = scripted(
        {"tools/call": [asks(state, q=form()), text("done")]}, on_elicit=lambda question: {"name": "Ada"}
    )
    async with client:
        assert (await client.call_tool("t", {"a": 1})).text == "done"
    first, second = server.of("tools/call")
    assert first["id"] != second["id"]
    assert second["params"]["requestState"] == state
    assert second["params"]["inputResponses"] == {"q": {"action": "accept", "content": {"name": "Ada"}}}
    for field in ("name", "arguments"):
        assert first["params"][field] == second["params"][field]
    assert "requestState" not in first["params"]


@pytest.mark.clause("mrtr.state-not-invented", "mrtr.not-for-others")
async def test_without_state_there_is_none_in_the_retry_and_never_in_another_request(scripted: Any):
    server, client = scripted(
        {"tools/call": [asks(q=form()), text("done"), text("done")], "tools/list": tools()},
        on_elicit=lambda question: {"name": "Ada"},
    )
    async with client:
        await client.call_tool("t")
        await client.call_tool("u")
        await client.list_tools()
    first, second, third = server.of("tools/call")
    assert "requestState" not in second["params"]
    assert "inputResponses" in second["params"]
    for message in (first, third, *server.of("tools/list")):
        assert message["params"].keys() & {"requestState", "inputResponses"} == set()


@pytest.mark.clause("elicitation.default-form", "elicitation.defaults")
async def test_a_question_without_a_mode_is_a_form_filled_in_with_its_defaults(scripted: Any):
    question = form(name={"type": "string", "default": "Ada"}, age={"type": "integer", "default": 7})
    del question["params"]["mode"]
    server, client = scripted(
        {"tools/call": [asks(q=question), text("done")]}, on_elicit=lambda question: question.accept()
    )
    async with client:
        await client.call_tool("t")
    answers = server.of("tools/call")[1]["params"]["inputResponses"]
    assert answers == {"q": {"action": "accept", "content": {"name": "Ada", "age": 7}}}


@pytest.mark.clause("elicitation.answers-validated")
@pytest.mark.parametrize("answer", [{}, {"name": 5}, {"name": "Eve"}])
async def test_an_answer_that_does_not_fit_its_form_never_leaves(scripted: Any, answer: dict[str, Any]):
    question = form(name={"type": "string", "enum": ["Ada", "Bob"]})
    question["params"]["requestedSchema"]["required"] = ["name"]
    server, client = scripted({"tools/call": asks("s", q=question)}, on_elicit=lambda _: answer)
    async with client:
        with pytest.raises(Exception, match="name"):
            await client.call_tool("t")
    assert len(server.of("tools/call")) == 1


@pytest.mark.clause("elicitation.url-no-prefetch", "elicitation.url-consent", "elicitation.url-careful")
async def test_an_address_is_handed_to_the_handler_and_not_touched():
    url = "https://scripted.example/sign-in?token=1"
    question = {"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in", "url": url}}
    seen: list[Any] = []

    def consent(asked: Any) -> Any:
        seen.append((asked.mode, asked.url))
        return asked.decline()

    server, client = over_http({"tools/call": [asks("s", q=question), text("done")]}, on_elicit=consent)
    async with client:
        await client.call_tool("t")
    assert seen == [("url", url)]
    assert {request.url for request in server.sent} == {URL}
    assert server.of("tools/call")[1]["params"]["inputResponses"] == {"q": {"action": "decline"}}


@pytest.mark.clause("elicitation.capability", "elicitation.one-mode", "sampling.capability", "roots.capability")
@pytest.mark.parametrize(
    ("options", "declared"),
    [
        ({"on_elicit": lambda _: None}, {"elicitation"}),
        ({"on_sample": lambda _: "x"}, {"sampling"}),
        ({"on_roots": []}, {"roots"}),
    ],
)
async def test_what_a_client_can_be_asked_is_declared_on_each_request(
    scripted: Any, options: dict[str, Any], declared: set[str]
):
    server, client = scripted({**CALL, "tools/list": tools()}, **options)
    async with client:
        await client.call_tool("t")
        await client.list_tools()
    for message in server.requests:
        capabilities = message["params"]["_meta"][PREFIX + "clientCapabilities"]
        assert declared <= capabilities.keys()
        assert {"sampling", "roots"} & capabilities.keys() <= declared


@pytest.mark.clause("sampling.tools-declared")
async def test_sampling_with_tools_is_declared_only_by_who_says_so(scripted: Any):
    server, client = scripted(CALL, on_sample=lambda _: "x")
    async with client:
        await client.call_tool("t")
    capabilities = server.requests[-1]["params"]["_meta"][PREFIX + "clientCapabilities"]
    assert "tools" not in capabilities["sampling"]


@pytest.mark.clause("roots.file-uri")
async def test_roots_are_file_uris(scripted: Any, tmp_path: Any):
    question = {"method": "roots/list"}
    server, client = scripted({"tools/call": [asks(q=question), text("done")]}, on_roots=[tmp_path, "file:///srv/data"])
    async with client:
        await client.call_tool("t")
    roots = server.of("tools/call")[1]["params"]["inputResponses"]["q"]["roots"]
    assert [root["uri"] for root in roots] == [tmp_path.as_uri(), "file:///srv/data"]


async def test_a_question_without_a_handler_is_handed_to_the_caller(scripted: Any):
    _, client = scripted({"tools/call": [asks("s", q=form()), text("done")]})
    async with client:
        with pytest.raises(NeedsInput):
            await client.call_tool("t")


# ------------------------------------------------------------------------------------------------------------ listening


@pytest.mark.clause("subscriptions.correlated", "stdio.correlate-subscription", "subscriptions.acknowledged-checked")
async def test_listeners_on_one_channel_hear_their_own_subscription_only():
    server, client = over_lines({})
    server.silent = {"subscriptions/listen"}

    def notice(method: str, subscription: Any, **params: Any) -> dict[str, Any]:
        meta = {PREFIX + "subscriptionId": subscription}
        return {"jsonrpc": "2.0", "method": method, "params": {"_meta": meta, **params}}

    async def listen(number: int, **wanted: Any) -> list[str]:
        async with client.listen(**wanted) as events:
            return [type(event).__name__ + str(number) async for event in events]

    async with client:
        first = asyncio.ensure_future(listen(1, tools=True))
        await server.heard("subscriptions/listen")
        second = asyncio.ensure_future(listen(2, prompts=True))
        await server.heard("subscriptions/listen", count=2)
        for message, honored in zip(
            server.of("subscriptions/listen"), ({"toolsListChanged": True}, {"promptsListChanged": True}), strict=True
        ):
            acknowledged = "notifications/subscriptions/acknowledged"
            server.say(notice(acknowledged, message["id"], notifications=honored))
        one, two = (message["id"] for message in server.of("subscriptions/listen"))
        server.say(notice("notifications/tools/list_changed", one))
        server.say(notice("notifications/prompts/list_changed", two))
        for id in (one, two):
            result = complete()
            result["_meta"][PREFIX + "subscriptionId"] = id
            server.say({"jsonrpc": "2.0", "id": id, "result": result})
        heard = await asyncio.wait_for(asyncio.gather(first, second), 10)
    assert [len(events) for events in heard] == [1, 1]


async def test_retries_happen_only_where_they_were_asked_for(scripted: Any):
    server, client = scripted({"tools/call": Error(-32603, "broken", status=200)}, retry=Retry(attempts=3))
    async with client:
        with pytest.raises(RemoteError):
            await client.call_tool("t")
    assert len(server.of("tools/call")) == 1


async def test_an_http_error_is_told_with_its_status():
    _, client = over_http({"tools/call": Http(500, b'{"detail":"db down"}')})
    async with client:
        with pytest.raises(CallFailed) as caught:
            await client.call_tool("t")
    assert "500" in str(caught.value)


# ------------------------------------------------------------------------------------------------------ what is checked


@pytest.mark.clause("roots.validated")
@pytest.mark.parametrize(
    "root",
    ["file:///srv/../etc", "file:///srv/%2e%2E/etc", "file:///srv/..%2fetc", r"file:///srv\..\etc", "file:///%zz"],
)
async def test_a_root_that_leads_elsewhere_than_it_seems_never_leaves(scripted: Any, root: str):
    server, client = scripted({"tools/call": [asks(q={"method": "roots/list"}), text("done")]}, on_roots=lambda: [root])
    async with client:
        with pytest.raises(CallFailed, match="plain address") as caught:
            await client.call_tool("t")
    assert caught.value.evidence is Evidence.ANSWERED
    assert len(server.of("tools/call")) == 1


@pytest.mark.clause("roots.validated", "roots.file-uri")
async def test_a_root_that_is_no_file_never_leaves(scripted: Any):
    script = {"tools/call": [asks(q={"method": "roots/list"}), text("done")]}
    server, client = scripted(script, on_roots=lambda: {"roots": [{"uri": "https://example.com"}]})
    async with client:
        with pytest.raises(CallFailed, match="file://") as caught:
            await client.call_tool("t")
    assert caught.value.evidence is Evidence.ANSWERED
    assert len(server.of("tools/call")) == 1


@pytest.mark.clause("roots.validated")
async def test_a_folder_given_by_a_detour_is_named_without_it(scripted: Any, tmp_path: Any):
    script = {"tools/call": [asks(q={"method": "roots/list"}), text("done")]}
    server, client = scripted(script, on_roots=[tmp_path / "a" / ".." / "b"])
    async with client:
        await client.call_tool("t")
    roots = server.of("tools/call")[1]["params"]["inputResponses"]["q"]["roots"]
    assert roots == [{"uri": (tmp_path / "b").as_uri(), "name": "b"}]


USE = {"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "t", "input": {}}}
HELLO = {"role": "user", "content": {"type": "text", "text": "hello"}}


@pytest.mark.clause("sampling.content-validated")
@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "system", "content": {"type": "text", "text": "obey"}}],
        [{"role": "user", "content": {"type": "image", "data": "?"}}],
        [{"role": "user"}],
        "hello",
        [USE, HELLO],
        [HELLO, USE],
    ],
)
async def test_a_conversation_that_is_none_reaches_no_model(scripted: Any, messages: Any):
    question = {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 5}}
    asked: list[Any] = []
    server, client = scripted({"tools/call": [asks(q=question), text("done")]}, on_sample=asked.append)
    async with client:
        with pytest.raises(MCPRelayError):
            await client.call_tool("t")
    assert asked == []
    assert len(server.of("tools/call")) == 1


@pytest.mark.clause("logging.validated")
async def test_a_log_message_that_is_none_is_not_handed_on(scripted: Any):
    def log(**params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}

    odd = [log(level="loud", data=1), log(level=5, data=1), log(data=1), log(level="info", data=1, logger=[])]
    heard: list[Any] = []
    stream = Stream(*odd, log(level="info", data="good"), text("done"))
    _, client = scripted({"tools/call": stream}, on_log=heard.append)
    async with client:
        assert (await client.call_tool("t")).text == "done"
    assert [message.data for message in heard] == ["good"]
