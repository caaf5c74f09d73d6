"""basic/patterns/mrtr, client/elicitation, client/sampling and client/roots: what a server asks, and how."""

import json
from typing import Any

import pytest

from mcprelay import ConfigurationError, Context, Server
from mcprelay.server.call import Principal
from mcprelay.types import SamplingMessage, Text, Tool, ToolUse, ToolUseResult
from tests.clauses.house import Workshop
from tests.clauses.http import HttpWire
from tests.server.rawclient import RawClient

FORM = {"form": {"action": "accept", "content": {"name": "Ada"}}}
CALL = {"name": "ask"}
ASKING: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "ask"}),
    ("prompts/get", {"name": "asking"}),
    ("resources/read", {"uri": "work://asking"}),
]


def back(asked: dict[str, Any], answers: Any = FORM, **changes: Any) -> dict[str, Any]:
    """The params of the retry."""
    return {**CALL, "inputResponses": answers, "requestState": asked["requestState"], **changes}


@pytest.mark.clause("mrtr.only-way", "mrtr.requests-or-state", "mrtr.kinds", "mrtr.keys-unique", "sampling.role")
async def test_several_questions_are_one_result_with_a_key_for_each(wire: Any):
    asked = await wire.result("tools/call", {"name": "ask_all"})
    assert asked["resultType"] == "input_required"
    methods = {key: request["method"] for key, request in asked["inputRequests"].items()}
    assert methods == {"form": "elicitation/create", "said": "sampling/createMessage", "roots": "roots/list"}
    [message] = asked["inputRequests"]["said"]["params"]["messages"]
    assert (message["role"], message["content"]["type"]) == ("user", "text")
    assert wire.notices == []


@pytest.mark.clause("mrtr.supported-requests")
@pytest.mark.parametrize(("method", "params"), ASKING)
async def test_calls_prompts_and_reads_may_ask(wire: Any, method: str, params: dict[str, Any]):
    asked = await wire.result(method, params)
    assert asked["inputRequests"]["form"]["method"] == "elicitation/create"
    done = await wire.result(method, {**params, "inputResponses": FORM, "requestState": asked["requestState"]})
    assert done["resultType"] == "complete"


@pytest.mark.clause("mrtr.no-assumed-retry", "mrtr.new-id")
async def test_a_question_that_nobody_answers_leaves_nothing_running(wire: Any, workshop: Workshop):
    for _ in range(3):
        await wire.result("tools/call", CALL)
    assert workshop.runs == 0
    assert (await wire.result("tools/call", {"name": "echo", "arguments": {"text": "a"}}))["resultType"] == "complete"


@pytest.mark.clause("mrtr.state-integrity", "mrtr.state-untrusted")
@pytest.mark.parametrize("damage", ["truncate", "extend", "flip", "empty", "foreign", "json"])
async def test_state_that_was_tampered_with_is_refused_before_the_handler_runs(
    wire: Any, workshop: Workshop, damage: str
):
    asked = await wire.result("tools/call", CALL)
    state = asked["requestState"]
    foreign = await HttpWire(Workshop().server.asgi(), elicitation={}).result("tools/call", CALL)
    damaged = {
        "truncate": state[:-1],
        "extend": state + "-TAMPERED",
        "flip": state[:9] + ("A" if state[9] != "A" else "B") + state[10:],
        "empty": "",
        "foreign": foreign["requestState"],
        "json": json.dumps({"round": 2}),
    }[damage]
    error = await wire.error("tools/call", back(asked, requestState=damaged))
    assert error["code"] == -32602
    assert workshop.runs == 0


@pytest.mark.clause("mrtr.state-request")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "ask_all"}),
        ("tools/call", {"name": "ask", "arguments": {"topic": "another"}}),
        ("prompts/get", {"name": "asking"}),
        ("resources/read", {"uri": "work://asking"}),
    ],
)
async def test_state_of_one_request_is_refused_with_another(wire: Any, method: str, params: dict[str, Any]):
    asked = await wire.result("tools/call", CALL)
    error = await wire.error(method, {**params, "inputResponses": FORM, "requestState": asked["requestState"]})
    assert error["code"] == -32602


@pytest.mark.clause("mrtr.asked-again")
@pytest.mark.parametrize("answers", [{}, {"other": {"action": "accept", "content": {"name": "Ada"}}}])
async def test_what_is_missing_is_asked_for_again(wire: Any, answers: dict[str, Any], workshop: Workshop):
    asked = await wire.result("tools/call", CALL)
    again = await wire.result("tools/call", back(asked, answers))
    assert again["inputRequests"].keys() == {"form"}
    assert workshop.runs == 0


@pytest.mark.clause("mrtr.extra-ignored")
async def test_an_answer_that_nobody_asked_for_is_ignored(wire: Any):
    asked = await wire.result("tools/call", CALL)
    done = await wire.result("tools/call", back(asked, {**FORM, "extra": {"action": "decline"}}))
    assert done["content"][0]["text"].startswith("accept")


@pytest.mark.clause("mrtr.responses-validated", "mrtr.protocol-errors", "elicitation.received-validated")
@pytest.mark.parametrize(
    "answers", [5, None, [], {"form": 5}, {"form": {"action": "perhaps"}}, {"form": {"roots": []}}]
)
async def test_answers_that_are_none_never_reach_the_handler(http: HttpWire, workshop: Workshop, answers: Any):
    asked = await http.result("tools/call", CALL)
    message = http.message("tools/call", back(asked, answers))
    answer = await http.answer(message)
    assert answer.get("error", {}).get("code") == -32602 or answer["result"]["resultType"] == "input_required"
    assert workshop.runs == 0


@pytest.mark.clause("elicitation.received-validated")
@pytest.mark.parametrize(
    "content",
    [{}, {"name": 5}, {"name": "Ada", "size": "huge"}, {"name": "Ada", "count": 1.5}, {"name": "Ada", "gift": "x"}],
)
async def test_a_form_that_is_filled_in_wrongly_is_asked_for_again(
    wire: Any, workshop: Workshop, content: dict[str, Any]
):
    asked = await wire.result("tools/call", CALL)
    again = await wire.result("tools/call", back(asked, {"form": {"action": "accept", "content": content}}))
    assert again["resultType"] == "input_required"
    assert workshop.runs == 0


@pytest.mark.clause("elicitation.declined")
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_handler_hears_that_its_question_was_declined(wire: Any, action: str):
    asked = await wire.result("tools/call", CALL)
    done = await wire.result("tools/call", back(asked, {"form": {"action": action}}))
    assert done["content"][0]["text"].startswith(action)


@pytest.mark.clause("elicitation.form", "elicitation.parameters")
async def test_a_form_has_a_message_and_a_flat_schema(wire: Any):
    asked = await wire.result("tools/call", CALL)
    params = asked["inputRequests"]["form"]["params"]
    assert (params.get("mode", "form"), params["message"]) == ("form", "Fill this in, please")
    schema = params["requestedSchema"]
    assert schema["type"] == "object"
    assert schema["required"] == ["name"]
    assert {name: field["type"] for name, field in schema["properties"].items()} == {
        "name": "string",
        "size": "string",
        "count": "integer",
        "weight": "number",
        "gift": "boolean",
    }
    assert schema["properties"]["weight"]["default"] == 1.5


@pytest.mark.clause("elicitation.url", "elicitation.url-valid", "elicitation.parameters")
async def test_an_address_question_has_mode_message_and_address(wire: Any):
    asked = await wire.result("tools/call", {"name": "ask_url"})
    params = asked["inputRequests"]["url"]["params"]
    assert params == {"mode": "url", "message": "Sign in, please", "url": "https://example.com/sign-in"}


@pytest.mark.clause("elicitation.modes", "mrtr.declared-kinds", "roots.capability-checked")
@pytest.mark.parametrize(
    ("declared", "name", "missing"),
    [
        ({}, "ask", "elicitation"),
        ({"elicitation": {"url": {}}}, "ask", "elicitation"),
        ({"elicitation": {}}, "ask_url", "elicitation"),
        ({"elicitation": {"form": {}}}, "ask_url", "elicitation"),
        ({}, "ask_all", "elicitation"),
    ],
)
async def test_nothing_is_asked_that_the_client_did_not_declare(
    wire: Any, declared: dict[str, Any], name: str, missing: str
):
    wire.capabilities = declared
    error = await wire.error("tools/call", {"name": name})
    assert error["code"] == -32021
    assert missing in error["data"]["requiredCapabilities"]


@pytest.mark.clause("mrtr.declared-kinds")
async def test_what_is_asked_beside_an_undeclared_question_is_declared(wire: Any):
    wire.capabilities = {"sampling": {}, "roots": {}}
    asked = await wire.result("tools/call", {"name": "ask_all"})
    assert asked["inputRequests"].keys() == {"said", "roots"}
    said = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
    params = {"inputResponses": {"said": said, "roots": {"roots": []}}, "requestState": asked["requestState"]}
    error = await wire.error("tools/call", {"name": "ask_all", **params})
    assert (error["code"], error["data"]["requiredCapabilities"]) == (-32021, {"elicitation": {"form": {}}})


@pytest.mark.clause("elicitation.modes")
async def test_a_client_that_names_no_mode_gets_forms(wire: Any):
    wire.capabilities = {"elicitation": {}}
    assert (await wire.result("tools/call", CALL))["resultType"] == "input_required"


@pytest.mark.clause("sampling.tools-undeclared")
async def test_tools_are_sent_only_to_a_client_that_samples_with_tools(server: Server, wire: Any):
    tool = Tool(name="t", input_schema={"type": "object"})

    @server.tool
    async def with_tools(ctx: Context) -> str:
        """Let the model call something."""
        return (await ctx.sample("go", max_tokens=5, tools=[tool], key="m")).text

    wire.capabilities = {"sampling": {}}
    assert (await wire.error("tools/call", {"name": "with_tools"}))["code"] == -32021
    wire.capabilities = {"sampling": {"tools": {}}}
    asked = await wire.result("tools/call", {"name": "with_tools"})
    assert asked["inputRequests"]["m"]["params"]["tools"][0]["name"] == "t"


@pytest.mark.clause("mrtr.state-principal", "elicitation.bound")
async def test_state_belongs_to_the_one_who_was_asked(server: Server):
    ends = [server.connect(principal=Principal(name)) for name in ("ada", "bob")]
    ada, bob = (RawClient(end, elicitation={}) for end in ends)
    asked = await ada.result("tools/call", CALL)
    assert (await bob.error("tools/call", back(asked)))["code"] == -32602
    assert (await ada.result("tools/call", back(asked)))["resultType"] == "complete"
    for end in ends:
        await end.aclose()
    await server.stop()


@pytest.mark.clause("mrtr.state-expiry")
async def test_state_is_refused_after_its_time(workshop: Workshop):
    server = workshop.server
    now = [1000.0]
    keys = server.state_keys
    server.state_keys = type(keys)(keys.sealer, keys.state_bytes, 60.0, lambda: now[0])
    http = HttpWire(server.asgi(), elicitation={})
    asked = await http.result("tools/call", CALL)
    now[0] += 61
    error = await http.error("tools/call", back(asked))
    assert error["code"] == -32602
    assert "expired" in error["message"]


@pytest.mark.clause("sampling.context-declared")
async def test_no_other_servers_context_is_asked_for(wire: Any):
    asked = await wire.result("tools/call", {"name": "ask_all"})
    assert "includeContext" not in asked["inputRequests"]["said"]["params"]


USE = ToolUse(id="1", name="t", input={})
RESULT = ToolUseResult(tool_use_id="1", content=(Text("done"),))


@pytest.mark.clause("sampling.tool-results-only", "sampling.tool-use-balanced")
@pytest.mark.parametrize(
    "conversation",
    [
        [SamplingMessage("assistant", USE), SamplingMessage("user", (RESULT, Text("and")))],
        [SamplingMessage("assistant", USE), "what did it say?", SamplingMessage("user", RESULT)],
        ["go", SamplingMessage("assistant", USE)],
        [SamplingMessage("user", RESULT)],
    ],
)
async def test_a_conversation_whose_tool_uses_have_no_results_is_never_sent(
    server: Server, wire: Any, conversation: list[Any]
):
    caught = []

    @server.tool
    async def go_on(ctx: Context) -> str:
        """Ask the model about a conversation."""
        try:
            return (await ctx.sample(conversation, max_tokens=5, key="m")).text
        except ConfigurationError as error:
            caught.append(str(error))
            return "not asked"

    done = await wire.result("tools/call", {"name": "go_on"})
    assert done["content"][0]["text"] == "not asked"
    assert "tool" in caught[0]


@pytest.mark.clause("sampling.tool-use-balanced")
async def test_a_conversation_whose_tool_uses_have_their_results_is_sent_as_it_is(server: Server, wire: Any):
    @server.tool
    async def go_on(ctx: Context) -> str:
        """Ask the model about a conversation."""
        conversation = ["go", SamplingMessage("assistant", USE), SamplingMessage("user", RESULT)]
        return (await ctx.sample(conversation, max_tokens=5, key="m")).text

    asked = await wire.result("tools/call", {"name": "go_on"})
    kinds = [message["content"]["type"] for message in asked["inputRequests"]["m"]["params"]["messages"]]
    assert kinds == ["text", "tool_use", "tool_result"]


@pytest.mark.clause("sampling.content-validated")
@pytest.mark.parametrize(
    "said",
    [
        {},
        {"role": "assistant", "model": "m"},
        {"role": "robot", "content": {"type": "text", "text": "hi"}, "model": "m"},
        {"role": "assistant", "content": {"type": "image", "data": 5}, "model": "m"},
        {"role": "assistant", "content": {"type": "dance"}, "model": "m"},
    ],
)
async def test_what_no_model_says_is_asked_for_again(server: Server, http: HttpWire, said: dict[str, Any]):
    @server.tool
    async def muse(ctx: Context) -> str:
        """Ask the model."""
        return (await ctx.sample("go", max_tokens=5, key="m")).text

    asked = await http.result("tools/call", {"name": "muse"})
    params = {"name": "muse", "inputResponses": {"m": said}, "requestState": asked["requestState"]}
    answer = await http.answer(http.message("tools/call", params))
    assert answer.get("error", {}).get("code") == -32602 or answer["result"]["inputRequests"].keys() == {"m"}
