"""Rounds of questions are bounded: in number, and in what one round holds."""

import asyncio

import pytest

from mcprelay import CallLimitExceeded, Evidence, InputRequired
from tests.client.peer import connected


def asking(count):
    """A result that asks so many questions at once."""
    form = {"type": "object", "properties": {"x": {"type": "string"}}}
    question = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": form}}
    return {"resultType": "input_required", "inputRequests": {f"q{n}": question for n in range(count)}}


@pytest.mark.parametrize("handlers", [{}, {"on_elicit": lambda question: question.accept(x="y")}])
async def test_more_questions_in_one_round_than_allowed_are_an_error_that_names_the_limit(handlers):
    async with connected(input_requests=3, **handlers) as (client, channel):
        calling = asyncio.ensure_future(client.try_call_tool("ask"))
        channel.reply(await channel.expect("tools/call"), asking(4))
        with pytest.raises(CallLimitExceeded, match=r"questions in one round .*\(4\): input_requests=3") as caught:
            await calling
        assert caught.value.evidence is Evidence.ANSWERED
        assert len([sent for sent in channel.sent if b"tools/call" in sent]) == 1


async def test_as_many_questions_as_allowed_are_asked():
    async with connected(input_requests=3) as (client, channel):
        calling = asyncio.ensure_future(client.try_call_tool("ask"))
        channel.reply(await channel.expect("tools/call"), asking(3))
        asked = await calling
        assert isinstance(asked, InputRequired)
        assert len(asked.requests) == 3
