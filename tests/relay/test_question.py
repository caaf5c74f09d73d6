"""What servers ask is on the account of the runs that have a call there, and is refused by the name of its limit."""

import asyncio
import logging

import pytest

from mcprelay import Context, Server
from mcprelay.client.elicitation import Elicitation
from mcprelay.client.sampling import Sampling
from mcprelay.errors import ProtocolError
from mcprelay.relay import Limits, Relay
from mcprelay.relay.budget import Joint, Ledger
from mcprelay.relay.errors import CallRefused, ResultTooLarge
from mcprelay.relay.frame import Funnel
from mcprelay.relay.question import Askers
from mcprelay.relay.settings import ServerSettings
from mcprelay.types import SamplingMessage, Text
from tests.clauses.script import asks, complete
from tests.relay.far import Far, servers, text

LIMITS = Limits(run_bytes=3_000, server_bytes=2_000)
FAR = ServerSettings(name="far", transport="object", limits=LIMITS)


def conversation(words):
    return Sampling(messages=(SamplingMessage(role="user", content=Text(words)),), max_tokens=5)


class Handler:
    """Answers, and keeps how much it was shown."""

    def __init__(self):
        self.sizes = []

    def __call__(self, asked):
        self.sizes.append(asked.framed.size)
        return "answer" if asked.kind == "model" else asked.question.decline()


def askers(handler):
    def funnel(one, ledger):
        return Funnel(one.name, limits=one.limits, ledger=ledger)

    return Askers(funnel, elicit=handler, sample=handler)


def asking(method, **params):
    """A server that answers a call with a question first."""

    def answer(message):
        if "inputResponses" in message["params"]:
            return text("done")
        return asks(state="s", q={"method": method, "params": params})

    return answer


SAMPLED = {
    "sampling/createMessage": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Q" * 500}}],
        "maxTokens": 5,
    },
    "elicitation/create": {
        "mode": "form",
        "message": "Q" * 500,
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}


@pytest.mark.parametrize("method", SAMPLED)
async def test_what_a_server_asks_in_calls_is_on_the_account_of_their_run(method):
    seen = Handler()
    far = Far(**{"tools/call": asking(method, **SAMPLED[method])})
    async with Relay(servers=servers(far=far), limits=LIMITS, on_sample=seen, on_elicit=seen) as relay:
        tools = await relay.tools()
        await asyncio.gather(*(tools.run("far__search", {}) for _ in range(5)))
        assert len(seen.sizes) == 2
        assert sum(seen.sizes) <= 2_000
        await (await relay.tools()).run("far__search", {})  # another run
    assert len(seen.sizes) == 3


async def test_what_a_server_asks_when_a_prompt_is_read_is_on_the_account_of_that():
    seen, prompted = Handler(), complete(messages=[{"role": "user", "content": {"type": "text", "text": "hi"}}])
    far = Far(
        **{
            "prompts/get": lambda message: (
                prompted
                if "inputResponses" in message["params"]
                else asks(
                    state="s", q={"method": "sampling/createMessage", "params": SAMPLED["sampling/createMessage"]}
                )
            )
        }
    )
    one = {"target": far, "allow": "*", "prompts": "*"}
    async with Relay(servers={"far": one}, limits=LIMITS, on_sample=seen) as relay:
        for _ in range(4):
            (message,) = await relay.prompt("far", "p")
            assert "hi" in message.framed.text
    assert len(seen.sizes) == 4


async def test_a_question_over_a_budget_is_refused_by_its_name_and_takes_nothing(caplog):
    seen = Handler()
    asked = askers(seen)
    elicit, sample = asked.of(FAR)
    ledger = Ledger()

    async def call():
        assert await sample(conversation("x" * 1_000)) == "answer"
        for _ in range(4):
            with pytest.raises(ProtocolError, match="not passed on: it is over server_bytes$"):
                await sample(conversation("x" * 1_000))
        assert (await elicit(Elicitation(message="x" * 1_000))).action == "decline"
        ledger.spend("other", size=1_500, tokens=None, limits=LIMITS)
        with pytest.raises(ProtocolError, match="it is over run_bytes$"):
            await sample(conversation("x"))

    with caplog.at_level(logging.WARNING, "mcprelay.relay"):
        await asked.charged(ledger, call())
    assert ledger.spent("far") == (seen.sizes[0], 0)
    said = [record.getMessage() for record in caplog.records]
    assert ["server_bytes=2,000" in one for one in said] == [True, True, True]  # the first, second and fourth of six


async def test_each_run_that_has_a_call_there_pays_once_and_those_that_ended_do_not():
    seen = Handler()
    asked = askers(seen)
    _, sample = asked.of(FAR)
    first, second, over = Ledger(), Ledger(), asyncio.Event()
    calls = [asyncio.ensure_future(asked.charged(ledger, over.wait())) for ledger in (first, first, second)]
    await asyncio.sleep(0)
    await sample(conversation("one"))
    calls.pop().cancel()
    await asyncio.sleep(0)
    await sample(conversation("two"))
    over.set()
    await asyncio.gather(*calls)
    await sample(conversation("three"))
    assert first.spent("far") == (sum(seen.sizes[:2]), 0)
    assert second.spent("far") == (seen.sizes[0], 0)


async def test_what_is_asked_without_a_call_is_on_an_account_of_the_connection():
    seen = Handler()
    asked = askers(seen)
    for one in (asked.apart(), asked.apart()):
        _, sample = one.of(FAR)
        await sample(conversation("x" * 1_500))
        with pytest.raises(ProtocolError, match="server_bytes"):
            await sample(conversation("x" * 1_500))
    assert len(seen.sizes) == 2


async def test_a_check_that_fails_is_told_without_the_words_that_it_saw(caplog):
    def sieve(words, _):
        raise ValueError(words)

    asked = Askers(lambda one, ledger: Funnel(one.name, filters=[sieve]), elicit=None, sample=Handler())
    _, sample = asked.of(FAR)
    with caplog.at_level(logging.WARNING, "mcprelay.relay"), pytest.raises(ProtocolError, match="passed on$"):
        await sample(conversation("secret"))
    assert "a check of this application failed" in caplog.text
    assert "secret" not in caplog.text


def test_of_several_accounts_none_pays_where_one_cannot():
    rich, poor = Ledger(), Ledger()
    poor.spend("far", size=1_900, tokens=None, limits=LIMITS)
    for question in (Joint([rich, poor]).spend, Joint([rich, poor]).require):
        with pytest.raises(ResultTooLarge, match="server_bytes"):
            question("far", size=200, tokens=None, limits=LIMITS)
    assert (rich.spent(), poor.spent()) == ((0, 0), (1_900, 0))
    Joint([rich, poor]).spend("far", size=100, tokens=7, limits=LIMITS)
    assert (rich.spent(), poor.spent()) == ((100, 7), (2_000, 7))


async def test_a_question_that_nobody_here_answers_is_needs_input_wherever_it_would_be_asked():
    server = Server("far")

    async def asked(ctx: Context) -> str:
        """Ask."""
        return str((await ctx.elicit("Your name?", str)).value)

    server.tool(asked)
    server.prompt(asked)
    server.resource("a://b")(asked)
    settings = {"target": server, "allow": "*", "prompts": "*", "resources": "*"}
    async with Relay(servers={"far": settings}, lock=None) as relay:
        (message,) = await relay.prompt("far", "asked")
        for framed in (
            await (await relay.tools()).run("far__asked", {}),
            await relay.read("far", "a://b"),
            message.framed,
        ):
            assert (framed.failed, framed.code, framed.withheld) == (True, "needs_input", "needs_input")
            assert framed.text == (
                "The server asks for input before it goes on, and this application has nobody to answer it."
            )
            with pytest.raises(CallRefused, match=r"Relay\(on_elicit=…\) answers"):
                framed.require()
