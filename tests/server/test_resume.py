"""Questions in the middle of a call: one body, rounds that replay it, and state that nobody can bend."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from mcprelay import Context, Limits, Server
from mcprelay.server.call import Principal
from mcprelay.server.resume import KeyRing
from tests.server.rawclient import RawClient

if TYPE_CHECKING:
    from collections.abc import Callable

FORM = {"elicitation": {"form": {}}}


@dataclass
class Seat:
    seat: str


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


@pytest.fixture
def server() -> Server:
    return Server("s", state_keys=["0123456789abcdef"])


async def call(
    client: RawClient, tool: str = "t", arguments: dict[str, Any] | None = None, **params: Any
) -> dict[str, Any]:
    return await client.result("tools/call", {"name": tool, "arguments": arguments or {}, **params})


def text(result: dict[str, Any]) -> str:
    assert result["resultType"] == "complete", result
    return str(result["content"][0]["text"])


async def test_a_question_ends_the_round_and_its_answer_runs_the_body_again(server: Server) -> None:
    rounds: list[int] = []

    @server.tool
    async def t(ctx: Context) -> str:
        rounds.append(ctx.round)
        answer = await ctx.elicit("Which seat?", Seat, key="seat")
        return f"booked {answer.value.seat}"

    client = RawClient(server.connect(), **FORM)
    asked = await call(client)
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"]["seat"]["method"] == "elicitation/create"
    assert asked["inputRequests"]["seat"]["params"]["requestedSchema"]["properties"]["seat"]["type"] == "string"

    done = await call(client, requestState=asked["requestState"], inputResponses={"seat": accept(seat="3A")})
    assert text(done) == "booked 3A"
    assert rounds == [1, 2]


@pytest.mark.parametrize("together", ["gather", "group"])
async def test_questions_that_are_awaited_together_go_out_in_one_round(server: Server, together: str) -> None:
    @server.tool
    async def t(ctx: Context) -> str:
        asking = [ctx.elicit(name, Seat, key=name) for name in ("one", "two", "three")]
        if together == "gather":
            answers = await asyncio.gather(*asking)
        else:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(question) for question in asking]
            answers = [task.result() for task in tasks]
        return "".join(answer.value.seat for answer in answers)

    client = RawClient(server.connect(), **FORM)
    asked = await call(client)
    assert list(asked["inputRequests"]) == ["one", "two", "three"]
    answers = {"three": accept(seat="c"), "one": accept(seat="a"), "two": accept(seat="b")}
    assert text(await call(client, requestState=asked["requestState"], inputResponses=answers)) == "abc"


async def test_answers_are_remembered_over_several_rounds(server: Server) -> None:
    @server.tool
    async def t(ctx: Context) -> str:
        first = await ctx.elicit("1", Seat, key="first")
        second = await ctx.elicit("2", Seat, key="second")
        return f"{first.value.seat}{second.value.seat}{ctx.round}"

    client = RawClient(server.connect(), **FORM)
    one = await call(client)
    two = await call(client, requestState=one["requestState"], inputResponses={"first": accept(seat="a")})
    assert list(two["inputRequests"]) == ["second"]
    assert two["requestState"] != one["requestState"]
    assert (
        text(await call(client, requestState=two["requestState"], inputResponses={"second": accept(seat="b")})) == "ab3"
    )


async def test_an_answer_that_arrives_unasked_is_used_and_a_foreign_one_is_ignored(server: Server) -> None:
    @server.tool
    async def t(ctx: Context) -> str:
        return (await ctx.elicit("1", Seat, key="seat")).value.seat

    client = RawClient(server.connect(), **FORM)
    assert text(await call(client, inputResponses={"seat": accept(seat="x"), "other": accept(seat="y")})) == "x"


@pytest.mark.parametrize("wrong", [{"action": "accept", "content": {"seat": 7}}, {"action": "maybe"}, {}, 7, None])
async def test_an_ill_typed_or_missing_answer_is_asked_again(server: Server, wrong: Any) -> None:
    @server.tool
    async def t(ctx: Context) -> str:
        return (await ctx.elicit("1", Seat, key="seat")).value.seat

    client = RawClient(server.connect(), **FORM)
    asked = await call(client)
    again = await call(client, requestState=asked["requestState"], inputResponses={"seat": wrong})
    assert list(again["inputRequests"]) == ["seat"]
    again = await call(client, requestState=asked["requestState"], inputResponses={})
    assert list(again["inputRequests"]) == ["seat"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_say_no_and_value_then_raises(server: Server, action: str) -> None:
    @server.tool
    async def t(ctx: Context) -> str:
        answer = await ctx.elicit("1", Seat, key="seat")
        return "yes" if answer.accepted else answer.action

    @server.tool
    async def careless(ctx: Context) -> str:
        return (await ctx.elicit("1", Seat, key="seat")).value.seat

    client = RawClient(server.connect(), **FORM)
    assert text(await call(client, inputResponses={"seat": {"action": action}})) == action
    failed = await call(client, "careless", inputResponses={"seat": {"action": action}})
    assert failed["isError"]


def flip(state: str) -> str:
    return state[:-5] + ("A" if state[-5] != "A" else "B") + state[-4:]


@pytest.mark.parametrize(
    "bend",
    [
        flip,
        lambda state: state + "-TAMPERED",
        lambda _: "",
        lambda _: "nonsense",
        lambda _: "ä",
        lambda state: state[:20],
    ],
)
async def test_state_that_was_tampered_with_is_refused_before_the_handler_runs(
    server: Server, bend: Callable[[str], str]
) -> None:
    ran: list[int] = []

    @server.tool
    async def t(ctx: Context) -> str:
        ran.append(1)
        return (await ctx.elicit("1", Seat, key="seat")).value.seat

    client = RawClient(server.connect(), **FORM)
    asked = await call(client)
    params = {"name": "t", "arguments": {}, "requestState": bend(asked["requestState"])}
    error = await client.error("tools/call", {**params, "inputResponses": {"seat": accept(seat="x")}})
    assert error["code"] == -32602
    assert "requestState" in error["message"]
    assert len(ran) == 1


async def test_state_is_bound_to_the_tool_the_arguments_and_the_caller(server: Server) -> None:
    @server.tool
    async def t(ctx: Context, n: int) -> str:
        return (await ctx.elicit("1", Seat, key="seat")).value.seat

    server.add_tool(t, name="u")
    ada = RawClient(server.connect(principal=Principal("ada")), **FORM)
    bob = RawClient(server.connect(principal=Principal("bob")), **FORM)
    state = (await call(ada, arguments={"n": 1}))["requestState"]
    answers = {"seat": accept(seat="x")}

    for client, tool, n in ((ada, "u", 1), (ada, "t", 2), (bob, "t", 1)):
        params = {"name": tool, "arguments": {"n": n}, "requestState": state, "inputResponses": answers}
        assert (await client.error("tools/call", params))["code"] == -32602
    assert text(await call(ada, arguments={"n": 1}, requestState=state, inputResponses=answers)) == "x"


async def test_state_expires() -> None:
    now = [1000.0]
    server = Server("s", limits=Limits(state_seconds=60))
    server.state_keys = type(server.state_keys)(KeyRing(["0123456789abcdef"]), 65536, 60.0, lambda: now[0])

    @server.tool
    async def t(ctx: Context) -> str:
        return (await ctx.elicit("1", Seat, key="seat")).value.seat

    client = RawClient(server.connect(), **FORM)
    state = (await call(client))["requestState"]
    now[0] += 61
    params = {"name": "t", "arguments": {}, "requestState": state, "inputResponses": {"seat": accept(seat="x")}}
    assert "expired" in (await client.error("tools/call", params))["message"]


async def test_state_is_good_in_every_process_that_has_the_key_and_in_no_other() -> None:
    def make(*keys: str) -> Server:
        server = Server("s", state_keys=keys)

        @server.tool
        async def t(ctx: Context) -> str:
            return (await ctx.elicit("1", Seat, key="seat")).value.seat

        return server

    state = (await call(RawClient(make("old-key-old-key-old").connect(), **FORM)))["requestState"]
    answers = {"seat": accept(seat="x")}
    rotated = RawClient(make("new-key-new-key-new", "old-key-old-key-old").connect(), **FORM)
    assert text(await call(rotated, requestState=state, inputResponses=answers)) == "x"
    stranger = RawClient(make("new-key-new-key-new").connect(), **FORM)
    params = {"name": "t", "arguments": {}, "requestState": state, "inputResponses": answers}
    assert (await stranger.error("tools/call", params))["code"] == -32602


async def test_state_that_grows_too_large_is_an_error_that_names_the_limit() -> None:
    server = Server("s", limits=Limits(state_bytes=2000))

    @server.tool
    async def t(ctx: Context) -> str:
        await ctx.once("big", lambda: "x" * 3000)
        return (await ctx.elicit("1", Seat, key="seat")).value.seat

    client = RawClient(server.connect(), **FORM)
    answer = await call(client)
    assert answer["isError"]
    assert "state_bytes=2000" in answer["content"][0]["text"]


async def test_nothing_is_asked_that_the_client_did_not_declare(server: Server) -> None:
    @server.tool
    async def form(ctx: Context) -> str:
        return (await ctx.elicit("1", Seat, key="seat")).value.seat

    @server.tool
    async def url(ctx: Context) -> str:
        return (await ctx.elicit_url("1", "https://x.example", key="seat")).action

    @server.tool
    async def model(ctx: Context) -> str:
        return (await ctx.sample("hi", max_tokens=5)).text

    @server.tool
    async def roots(ctx: Context) -> str:
        return str(len(await ctx.roots()))

    bare = RawClient(server.connect())
    for tool, capability in (
        ("form", "elicitation"),
        ("url", "elicitation"),
        ("model", "sampling"),
        ("roots", "roots"),
    ):
        error = await bare.error("tools/call", {"name": tool, "arguments": {}})
        assert error["code"] == -32021
        assert capability in error["data"]["requiredCapabilities"]
    implicit = RawClient(server.connect(), elicitation={})  # no mode named means the form mode
    assert (await call(implicit, "form"))["resultType"] == "input_required"
    assert (await implicit.error("tools/call", {"name": "url", "arguments": {}}))["code"] == -32021


async def test_a_body_that_asks_something_else_on_the_retry_is_told_so(server: Server) -> None:
    asked: list[str] = ["first", "second"]

    @server.tool
    async def t(ctx: Context) -> str:
        return (await ctx.elicit(asked.pop(0), Seat, key="seat")).value.seat

    client = RawClient(server.connect(), **FORM)
    state = (await call(client))["requestState"]
    failed = await call(client, requestState=state, inputResponses={"seat": accept(seat="x")})
    assert failed["isError"]


async def test_two_questions_under_one_key_are_an_error(server: Server) -> None:
    @server.tool
    async def t(ctx: Context) -> str:
        await asyncio.gather(ctx.elicit("1", Seat, key="k"), ctx.elicit("2", Seat, key="k"))
        return "never"

    client = RawClient(server.connect(), **FORM)
    assert (await call(client)).get("isError")


async def test_once_computes_in_the_first_round_only(server: Server) -> None:
    computed: list[int] = []

    @server.tool
    async def t(ctx: Context) -> str:
        async def expensive() -> dict[str, int]:
            computed.append(1)
            return {"n": len(computed)}

        value = await ctx.once("n", expensive)
        await ctx.elicit("1", Seat, key="seat")
        return str(value["n"])

    client = RawClient(server.connect(), **FORM)
    asked = await call(client)
    assert (
        text(await call(client, requestState=asked["requestState"], inputResponses={"seat": accept(seat="x")})) == "1"
    )
    assert computed == [1]


async def test_an_idempotency_key_is_the_same_in_every_round_and_different_in_every_call(server: Server) -> None:
    keys: list[str] = []

    @server.tool
    async def t(ctx: Context) -> str:
        keys.append(ctx.idempotency_key("charge"))
        assert ctx.idempotency_key("other") != keys[-1]
        return (await ctx.elicit("1", Seat, key="seat")).value.seat

    client = RawClient(server.connect(), **FORM)
    asked = await call(client)
    await call(client, requestState=asked["requestState"], inputResponses={"seat": accept(seat="x")})
    await call(client)
    assert keys[0] == keys[1] != keys[2]


async def test_a_clients_own_key_makes_repeated_calls_the_same_call(server: Server) -> None:
    keys: list[str] = []

    @server.tool
    async def t(ctx: Context) -> str:
        keys.append(ctx.idempotency_key("charge"))
        return "ok"

    client = RawClient(server.connect())
    for given in ("k1", "k1", "k2"):
        await client.result("tools/call", {"name": "t", "arguments": {}}, **{"mcprelay.dev/idempotencyKey": given})
    assert keys[0] == keys[1] != keys[2]
    bad = {"mcprelay.dev/idempotencyKey": "with space"}
    answer = await client.ask("tools/call", {"name": "t", "arguments": {}}, **bad)
    assert answer["error"]["code"] == -32602


async def test_a_body_that_swallows_being_ended_still_answers_the_question(server: Server) -> None:
    @server.tool
    async def swallow(ctx: Context) -> str:
        try:
            return (await ctx.elicit("1", Seat, key="seat")).value.seat
        except BaseException:  # noqa: BLE001 - the point of the test
            return "swallowed"

    @server.tool
    async def cleanup(ctx: Context) -> str:
        try:
            return (await ctx.elicit("1", Seat, key="seat")).value.seat
        finally:
            await asyncio.sleep(0)

    client = RawClient(server.connect(), **FORM)
    for tool in ("swallow", "cleanup"):
        assert (await call(client, tool))["resultType"] == "input_required"
    assert (await client.result("tools/list"))["tools"]


async def test_sampling_and_roots_are_asked_and_read(server: Server) -> None:
    @server.tool
    async def t(ctx: Context) -> str:
        reply = await ctx.sample("Capital?", max_tokens=10, system_prompt="short", key="capital")
        (root,) = await ctx.roots(key="roots")
        return f"{reply.text} {reply.model} {root.uri}"

    client = RawClient(server.connect(), sampling={}, roots={})
    one = await call(client)
    request = one["inputRequests"]["capital"]
    assert request["params"]["maxTokens"] == 10
    reply = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}
    two = await call(client, requestState=one["requestState"], inputResponses={"capital": reply})
    assert two["inputRequests"]["roots"]["method"] == "roots/list"
    answers = {"roots": {"roots": [{"uri": "file:///r"}]}}
    assert text(await call(client, requestState=two["requestState"], inputResponses=answers)) == "Paris m file:///r"


async def test_prompts_and_resources_ask_too(server: Server) -> None:
    @server.prompt
    async def p(ctx: Context) -> str:
        return (await ctx.elicit("1", Seat, key="seat")).value.seat

    @server.resource("x://r")
    async def r(ctx: Context) -> str:
        return (await ctx.elicit("1", Seat, key="seat")).value.seat

    client = RawClient(server.connect(), **FORM)
    for method, params in (("prompts/get", {"name": "p"}), ("resources/read", {"uri": "x://r"})):
        asked = await client.result(method, params)
        assert asked["resultType"] == "input_required"
        assert "ttlMs" not in asked
        answers = {"seat": accept(seat="3A")}
        done = await client.result(method, {**params, "requestState": asked["requestState"], "inputResponses": answers})
        assert "3A" in str(done)
