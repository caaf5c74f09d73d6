"""A question that is kept: another client goes on with the call, as the first one would have."""

import json
import pickle

import pytest

from mcprelay import (
    CallFailed,
    Client,
    ConfigurationError,
    Context,
    Evidence,
    InputRequired,
    NeedsInput,
    Server,
    Succeeded,
    define,
)
from mcprelay.client.pool import ClientPool


def shop(**options):
    server = Server("shop", **options)
    seen = []

    @server.tool
    async def book(ctx: Context, seat: int) -> str:
        who = await ctx.elicit("Who?", str, key="who")
        sure = await ctx.elicit("Sure?", bool, key="sure")
        seen.append((ctx.idempotency_key("book"), ctx.correlation_id))
        return f"{seat} for {who.value}: {sure.value}"

    return server, seen


async def test_another_client_finishes_what_the_first_began_with_the_same_keys():
    server, seen = shop()
    async with Client(server) as first:
        options = {"idempotency_key": "order-1", "correlation_id": "c-1"}
        question = await first.try_call_tool("book", {"seat": 3}, output=str, **options)
    data = question.dump()
    assert isinstance(json.loads(data), dict)
    async with Client(server) as second:
        loaded = second.load_question(data, output=str)
        assert loaded.requests == question.requests
        following = await loaded.answer({"who": {"value": "Ada"}})
        assert isinstance(following, InputRequired)
        kept = following.dump()
    async with Client(server) as third:
        outcome = await third.load_question(kept, output=define("book", input=dict, output=str)).answer(
            {"sure": {"value": True}}
        )
    assert isinstance(outcome, Succeeded)
    assert outcome.value == "3 for Ada: True"
    async with Client(server) as alone:
        asked = await alone.try_call_tool("book", {"seat": 3}, **options)
        asked = await asked.answer({"who": {"value": "Ada"}})
        await asked.answer({"sure": {"value": True}})
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "dump"),
        (b"[]", "dump"),
        (b"\xff", "dump"),
        (b'{"format":2}', "format 2"),
        (b'{"format":1}', "dump"),
        ("text", "bytes"),
        (None, "bytes"),
    ],
)
async def test_what_no_question_gave_is_refused(data, said):
    with pytest.raises(ConfigurationError, match=said):
        Client(shop()[0]).load_question(data)


async def test_a_question_of_a_session_is_none_that_can_be_kept():
    server, _ = shop()
    async with Client(server) as client:
        question = await client.try_call_tool("book", {"seat": 3})
        data = question.dump()
    told = json.loads(data)
    for revision in ("2025-11-25", "1999-01-01"):
        with pytest.raises(ConfigurationError, match="cannot be kept"):
            client.load_question(json.dumps({**told, "revision": revision}).encode())
    async with Client(server, revision="2025-11-25") as older:
        with pytest.raises(ConfigurationError, match="2025-11-25 is spoken"):
            older.load_question(data)


async def test_a_question_that_nobody_can_answer_is_refused_where_it_is_loaded():
    server, _ = shop()
    async with Client(server) as client:
        told = json.loads((await client.try_call_tool("book", {"seat": 3})).dump())
        for request in ({"method": "x"}, {"method": "elicitation/create", "params": {"message": 5}}):
            with pytest.raises(ConfigurationError, match="nobody can answer: 'who'|nobody can answer: \"who\""):
                client.load_question(json.dumps({**told, "requests": {"who": request}}).encode())


async def test_a_pickle_says_what_to_use_in_its_place():
    server, _ = shop()
    async with Client(server) as client:
        question = await client.try_call_tool("book", {"seat": 3})
    with pytest.raises(TypeError, match=r"question\.dump\(\)"):
        pickle.dumps(question)


async def test_what_a_pool_let_go_says_how_its_question_goes_on():
    server, _ = shop()
    async with ClientPool(clients=1) as pool:
        client = await pool.get(server)
        question = await client.try_call_tool("book", {"seat": 3})
        await pool.get(shop()[0])
        with pytest.raises(Exception, match=r"load_question\(question\.dump\(\)\)"):
            await question.answer({"who": {"value": "Ada"}})
        loaded = (await pool.get(server)).load_question(question.dump())
        assert isinstance(await loaded.answer({"who": {"value": "Ada"}}), InputRequired)


async def test_a_failure_of_one_that_goes_on_says_that_something_was_begun_before():
    server, _ = shop()
    async with Client(server) as client:
        data = (await client.try_call_tool("book", {"seat": 3})).dump()
    closed = Client(server)
    with pytest.raises(CallFailed) as caught:
        await closed.load_question(data).answer({"who": {"value": "Ada"}})
    assert caught.value.evidence is Evidence.MAYBE_SENT


async def test_a_question_of_a_prompt_goes_on_as_a_prompt():
    server = Server("prompts")

    @server.prompt
    async def greeting(ctx: Context) -> str:
        return f"Hello, {(await ctx.elicit('Who?', str, key='who')).value}!"

    async with Client(server) as client:
        with pytest.raises(NeedsInput) as asked:
            await client.get_prompt("greeting")
    async with Client(server) as other:
        outcome = await other.load_question(asked.value.question.dump()).answer({"who": {"value": "Ada"}})
    assert outcome.value.messages[0].content.text == "Hello, Ada!"
