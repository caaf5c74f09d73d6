"""What a server asks its client: forms, addresses, models, roots; one body of a tool for every revision."""

import pytest

from mcprelay import CallFailed, Image, SamplingResult, Text, ToolError
from mcprelay.revisions import Feature
from tests.matrix.conftest import House

pytestmark = pytest.mark.asyncio(loop_scope="session")

ELICIT = "elicitation/create"


async def refusal(house: House, tool: str) -> str:
    """How a call fails whose question cannot be asked."""
    with pytest.raises((ToolError, CallFailed)) as caught:
        await house.client.call_tool(tool)
    return str(caught.value)


def questions(house: House, method: str) -> list[dict]:
    """The params of every question of a kind, whether it came by a request or by a result."""
    found = [message.get("params") for message in house.tape.said("server", method)]
    for message in house.tape.said("server"):
        asked = (message.get("result") or {}).get("inputRequests", {})
        found += [one.get("params") for one in asked.values() if one["method"] == method]
    return found


async def test_a_form_is_filled_in(house: House):
    house.elicit = lambda form: form.accept(row=3, meal=True)
    if not (house.can_be_asked and house.has(Feature.ELICITATION)):
        assert "elicitation" in await refusal(house, "ask_form")
        return
    result = await house.client.call_tool("ask_form")
    assert result.text.startswith("accept Seat(row=3, side='window', meal=True")
    (params,) = questions(house, ELICIT)
    assert params["message"] == "Which seat?"
    assert params.get("mode") == ("form" if house.has(Feature.URL_INPUT) else None)
    assert params["requestedSchema"]["required"] == ["row"]


async def test_several_values_are_asked_for_or_it_is_said_that_the_revision_cannot(house: House):
    house.elicit = lambda form: form.accept(days=["monday", "friday"])
    if not (house.can_be_asked and house.has(Feature.ELICITATION)):
        assert "elicitation" in await refusal(house, "ask_list")
    elif not house.has(Feature.URL_INPUT):
        assert "the field 'days' of the form takes several values" in await refusal(house, "ask_list")
        assert house.asked == []
    else:
        assert (await house.client.call_tool("ask_list")).text == "accept Days(days=['monday', 'friday'])"


async def test_a_default_is_shown_where_the_revision_has_it_and_counts_everywhere(house: House):
    house.elicit = lambda form: form.accept(row=3)
    if not (house.can_be_asked and house.has(Feature.ELICITATION)):
        return
    assert (await house.client.call_tool("ask_form")).text.endswith(
        "Seat(row=3, side='window', meal=False, name='nobody', budget=1.5)"
    )
    (params,) = questions(house, ELICIT)
    fields = params["requestedSchema"]["properties"]
    shown = {name for name, field in fields.items() if "default" in field}
    assert shown == ({"side", "meal", "name", "budget"} if house.has(Feature.URL_INPUT) else {"meal"})


async def test_a_form_is_declined(house: House):
    if not (house.can_be_asked and house.has(Feature.ELICITATION)):
        assert "elicitation" in await refusal(house, "ask_form")
        return
    house.elicit = lambda form: form.decline()
    assert (await house.client.call_tool("ask_form")).text == "decline None"
    house.elicit = lambda form: form.cancel()
    assert (await house.client.call_tool("ask_form")).text == "cancel None"


async def test_one_question_follows_the_other(house: House):
    if not (house.can_be_asked and house.has(Feature.ELICITATION)):
        assert "elicitation" in await refusal(house, "ask_twice")
        return
    house.elicit = lambda form: form.accept(name=form.message.lower().strip("?"))
    assert (await house.client.call_tool("ask_twice")).text == "first second"
    assert [question.message for question in house.asked] == ["First?", "Second?"]
    assert len(house.tape.said("client", "tools/call")) == (3 if house.has(Feature.MRTR) else 1)


async def test_an_address_is_visited(house: House):
    house.elicit = lambda question: question.accept()
    if not (house.can_be_asked and house.has(Feature.URL_INPUT)):
        assert "elicitation" in await refusal(house, "ask_address")
        return
    assert (await house.client.call_tool("ask_address")).text == "accept"
    (question,) = house.asked
    assert (question.mode, question.url) == ("url", "https://example.com/sign-in")
    (params,) = questions(house, ELICIT)
    assert ("elicitationId" in params) == (not house.has(Feature.MRTR))


async def test_a_model_is_asked(house: House):
    if not house.can_be_asked:
        assert "sampling" in await refusal(house, "ask_model")
        return
    assert (await house.client.call_tool("ask_model")).text == "unknown: A sampled text."
    (question,) = house.asked
    assert (question.max_tokens, question.system_prompt, question.temperature) == (10, "Be brief.", 0.5)
    assert question.messages[0].content.text == "Say something."
    assert question.stop_sequences == (".",)


async def test_a_model_is_asked_with_several_blocks_or_it_is_said_that_the_revision_cannot(house: House):
    if not house.can_be_asked:
        assert "sampling" in await refusal(house, "ask_blocks")
    elif not house.has(Feature.SAMPLING_TOOLS):
        assert "one content block in this protocol revision, and not 2" in await refusal(house, "ask_blocks")
        assert house.asked == []
    else:
        assert (await house.client.call_tool("ask_blocks")).text == "A sampled text."
        (question,) = house.asked
        assert [type(block) for block in question.messages[0].content] == [Text, Image]


async def test_a_model_answers_with_several_blocks_or_it_is_said_that_the_revision_cannot(house: House):
    house.sample = SamplingResult(role="assistant", content=(Text("two "), Text("texts")), model="m")
    if not house.can_be_asked:
        return
    if house.has(Feature.SAMPLING_TOOLS):
        assert (await house.client.call_tool("ask_model")).text == "m: two texts"
    else:
        assert "one content block in this protocol revision, and not 2" in await refusal(house, "ask_model")
    house.sample = SamplingResult(role="assistant", content=(Text("one text"),), model="m")
    assert (await house.client.call_tool("ask_model")).text == "m: one text"


async def test_roots_are_asked_for(house: House):
    if not house.can_be_asked:
        assert "roots" in await refusal(house, "ask_roots")
        return
    result = await house.client.call_tool("ask_roots", output=list[str])
    assert result.value == house.roots


async def test_two_questions_are_asked_together(house: House):
    house.elicit = lambda form: form.accept(name="Ada")
    if not (house.can_be_asked and house.has(Feature.ELICITATION)):
        assert "elicitation" in await refusal(house, "ask_together")
        assert questions(house, ELICIT) == []
        return
    assert (await house.client.call_tool("ask_together")).text == "Ada A sampled text."
    assert len(house.asked) == 2
    assert len(house.tape.said("client", "tools/call")) == (2 if house.has(Feature.MRTR) else 1)
