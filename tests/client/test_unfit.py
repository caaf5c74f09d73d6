"""What is wrong with an answer, a program reads from the error: which question, which field, or that there is one."""

import asyncio
import dataclasses

import pytest

from mcprelay import (
    AlreadyAnswered,
    AnswerInvalid,
    CallFailed,
    Client,
    ConfigurationError,
    Context,
    Elicitation,
    Evidence,
    InputRequired,
    Server,
)


@dataclasses.dataclass
class Form:
    name: str
    age: int
    mail: str


WRONG = {"name": 5, "age": "x"}
FIELDS = {
    "mail": "is required",
    "name": "must be string, not 5",
    "age": "must be integer, not 'x'",
}
RIGHT = {"name": "Ada", "age": 3, "mail": "a@b"}


def asking() -> Server:
    server = Server("asking")

    @server.tool
    async def register(ctx: Context) -> str:
        """Ask for a form."""
        return (await ctx.elicit("Who?", Form, key="who")).action

    return server


async def asked(client: Client) -> InputRequired:
    outcome = await client.try_call_tool("register")
    assert isinstance(outcome, InputRequired)
    return outcome


async def test_an_answer_that_does_not_fit_says_which_question_and_fields_and_leaves_it_open():
    async with Client(asking()) as client:
        question = await asked(client)
        with pytest.raises(AnswerInvalid) as caught:
            await question.answer({"who": WRONG})
        assert (caught.value.key, caught.value.fields) == ("who", FIELDS)
        assert all(f"{field!r} {fault}" in str(caught.value) for field, fault in FIELDS.items())
        assert (await question.answer({"who": RIGHT})).value == "accept"


@pytest.mark.parametrize(
    ("answers", "key"),
    [
        ({}, None),
        ({"who": RIGHT, "else": None}, None),
        ({"who": "Ada"}, "who"),
        ({"who": {"action": "accept"}}, "who"),
        ({"who": {"action": "perhaps"}}, "who"),
        ({"who": {"action": "decline", "content": RIGHT}}, "who"),
    ],
)
async def test_an_answer_that_is_wrong_otherwise_has_no_fields(answers, key):
    async with Client(asking()) as client:
        question = await asked(client)
        with pytest.raises(AnswerInvalid) as caught:
            await question.answer(answers)
        assert (caught.value.key, caught.value.fields) == (key, {})


@pytest.mark.parametrize("again", [RIGHT, WRONG, None])
async def test_a_second_answer_is_told_apart_from_a_wrong_one(again):
    async with Client(asking()) as client:
        question = await asked(client)
        await question.answer({"who": RIGHT})
        with pytest.raises(AlreadyAnswered):
            await question.answer({"who": again})


async def test_of_two_answers_at_once_one_counts():
    async with Client(asking()) as client:
        question = await asked(client)
        both = await asyncio.gather(*[question.answer({"who": RIGHT}) for _ in range(2)], return_exceptions=True)
        assert sum(isinstance(each, AlreadyAnswered) for each in both) == 1


async def test_what_a_program_gets_wrong_is_neither():
    async with Client(asking()) as client:
        question = await asked(client)
        with pytest.raises(ConfigurationError) as caught:
            await question.answer(["who"])
        assert type(caught.value) is ConfigurationError


async def test_a_form_that_is_accepted_wrongly_says_so_alike():
    async with Client(asking()) as client:
        form = (await asked(client)).questions["who"]
        with pytest.raises(ValueError, match="does not fit the form") as caught:
            form.accept(WRONG)
    assert isinstance(caught.value, AnswerInvalid)
    assert (caught.value.key, caught.value.fields) == (None, FIELDS)


async def test_a_handler_that_accepts_wrongly_ends_its_call_as_one_that_returns_the_same():
    def accepts(form: Elicitation) -> object:
        return form.accept(WRONG)

    for handler in (accepts, lambda form: WRONG):
        async with Client(asking(), on_elicit=handler) as client:
            with pytest.raises(CallFailed, match="'mail' is required") as caught:
                await client.call_tool("register")
        assert caught.value.evidence is Evidence.ANSWERED
