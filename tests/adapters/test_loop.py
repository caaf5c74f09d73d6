"""Whole agent loops: the real SDK, the provider's HTTP API played by a server of ours, tools of a real relay."""

import pytest

pytest.importorskip("aiohttp")

from examples.agent import LOOPS, OUT_OF_STEPS, Task
from examples.scripted_provider import Call, Provider

pytestmark = [
    # Clients that SDKs make for themselves, and keep.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]

SDKS = {
    "anthropic": ["anthropic"],
    "openai": ["openai"],
    "openai-chat": ["openai"],
    "google": ["google.genai"],
    "pydantic-ai": ["pydantic_ai"],
    "langchain": ["langchain_core", "langchain_openai"],
    "openai-agents": ["agents"],
}
MODELS = {
    "pydantic-ai": {
        "anthropic:claude-scripted": "anthropic",
        "openai-responses:gpt-scripted": "openai",
        "openai-chat:gpt-scripted": "openai",
        "google:gemini-scripted": "google.genai",
    }
}
CASES = [(provider, model) for provider in LOOPS for model in MODELS.get(provider, {"scripted": ""})]
OWN_FLAG = {"anthropic", "google", "anthropic:claude-scripted"}
"""Where the API says by itself that a call failed, and the adapter uses it."""


@pytest.fixture(params=CASES, ids=lambda case: " ".join(case).removesuffix(" scripted"))
def case(request):
    provider, model = request.param
    for name in (*SDKS[provider], MODELS.get(provider, {}).get(model, "")):
        if name:
            pytest.importorskip(name)
    return provider, model


@pytest.fixture
def run(case, tools):
    """Run a script to its end: the provider, and what the agent said last."""

    async def play(*script, **settings):
        async with Provider(script) as provider:
            task = Task(tools=tools, prompt="Go.", model=case[1], base_url=provider.url, key="scripted", **settings)
            said = await LOOPS[case[0]](task)
        assert provider.refused == []
        return provider, said

    return play


async def test_a_call_is_made_and_the_model_is_told_what_the_server_said(run):
    provider, said = await run([Call("house__greet", {"name": "Ada", "title": "Countess"})], "Done.")
    assert said == "Done."
    [answer] = provider.answers
    assert answer.name == "house__greet"
    assert "hello Countess Ada" in answer.text
    assert "<untrusted-data " in answer.text
    assert not answer.failed


async def test_every_tool_that_is_guarded_is_offered_to_the_model(run, tools):
    provider, _ = await run("Nothing to do.")
    assert sorted(provider.tools) == sorted(tools.keys())


async def test_calls_at_once_are_answered_each_in_its_place(run):
    calls = [Call("house__greet", {"name": f"n{number}"}) for number in range(5)]
    provider, _ = await run([*calls, Call("house__fail")], "Done.")
    for number, answer in enumerate(provider.answers[:5]):
        assert f"hello n{number}" in answer.text
    assert "out of paper" in provider.answers[5].text


async def test_a_failure_is_told_as_one(run, case):
    provider, said = await run([Call("house__fail")], "A pity.")
    [answer] = provider.answers
    assert "The tool reports an error." in answer.text
    assert "out of paper" in answer.text
    if OWN_FLAG & set(case):
        assert answer.failed is True
    assert said == "A pity."


async def test_pictures_and_papers_reach_the_model(run):
    provider, _ = await run([Call("house__picture")], [Call("house__paper")], "Seen.")
    media = [kind for turn in provider.told for answer in turn for kind in answer.media]
    assert "image/png" in media
    texts = "\n".join(answer.text for turn in provider.told for answer in turn)
    assert "application/pdf" in media or "cannot be shown here" in texts


async def test_a_failure_keeps_its_picture(run):
    provider, _ = await run([Call("house__fail_with_picture")], "Seen.")
    [answer] = provider.answers
    assert answer.media == ("image/png",)
    assert "The tool reports an error." in answer.text


async def test_what_cannot_be_carried_is_said_in_text(run):
    provider, _ = await run([Call("house__sound")], "Heard nothing.")
    [answer] = provider.answers
    assert "audio/wav, " in answer.text
    assert "cannot be shown here and was left out" in answer.text
    assert answer.media == ()


async def test_a_link_is_words_and_never_an_address_to_fetch(run):
    provider, _ = await run([Call("house__link")], "Read.")
    [answer] = provider.answers
    assert "not fetched" in answer.text
    assert answer.media == ()


async def test_what_is_too_large_is_refused_with_its_size(run):
    provider, _ = await run([Call("house__huge")], "Too much.")
    [answer] = provider.answers
    assert "20,000 bytes" in answer.text
    assert "xxx" not in answer.text


async def test_a_denied_call_is_told_with_the_reason(run):
    provider, _ = await run([Call("house__erase")], "Understood.")
    [answer] = provider.answers
    assert "not on my watch" in answer.text


async def test_arguments_that_do_not_fit_are_told_and_nothing_is_sent(run):
    provider, _ = await run([Call("house__greet", {"name": 5})], [Call("house__greet", {"name": "Ada"})], "Done.")
    assert "nothing was sent" in provider.told[0][0].text
    assert "hello Ada" in provider.told[1][0].text


async def test_members_with_names_of_their_own_come_back_as_the_server_wants_them(run):
    provider, _ = await run("Show me.")
    item = provider.tools["house__keep"]["properties"]["item"]
    shown = list(item["properties"])
    values = dict(zip(shown, ["chair", 3], strict=True))
    provider, _ = await run([Call("house__keep", {"item": values})], "Kept.")
    assert "kept chair, 3, 1" in provider.answers[0].text


async def test_arguments_may_be_called_like_parameters_of_an_sdk(run):
    given = {"config": "c", "run_manager": "r", "callbacks": "k"}
    provider, _ = await run([Call("house__configure", given)], "Done.")
    assert "c r k" in provider.answers[0].text


async def test_a_loop_ends_when_it_has_no_steps_left(run):
    calls = [[Call("house__greet", {"name": "again"})] for _ in range(5)]
    provider, said = await run(*calls, max_steps=3)
    assert said == OUT_OF_STEPS
    assert len(provider.requests) == 3


async def test_a_system_prompt_and_a_bound_on_tokens_reach_the_provider(run):
    provider, _ = await run("Hello.", system="Speak Latin.", max_tokens=77)
    [request] = provider.requests
    assert "Speak Latin." in str(request)
    assert "77" in str(request)


async def test_a_tool_that_does_not_exist_is_told(run, case):
    if case[0] == "openai-agents":
        pytest.skip("the SDK itself ends a run in which the model calls what is not there")
    provider, said = await run([Call("house__nothing", {})], "Sorry.")
    assert said == "Sorry."
    assert provider.answers[0].text


@pytest.mark.parametrize("arguments", ['{"name": ', "[1]", "null", '"x"', "nonsense"])
async def test_arguments_that_are_no_object_are_told(run, case, arguments):
    if "openai" not in case[0] and "openai" not in case[1] and case[0] != "langchain":
        pytest.skip("the API carries objects only")
    if case[0] == "langchain" and arguments in {"[1]", "null", '"x"'}:
        pytest.skip("langchain-openai itself raises for JSON that is no object")
    provider, said = await run([Call("house__greet", arguments)], "Sorry.")
    assert said == "Sorry."
    assert "hello" not in provider.answers[0].text


async def test_a_null_for_a_member_that_may_be_left_out_is_taken_out(run, case):
    if "openai" not in case[0]:
        pytest.skip("only OpenAI requires every member")
    provider, _ = await run([Call("house__greet", {"name": "Ada", "title": None})], "Done.")
    assert "hello Ada" in provider.answers[0].text
    assert provider.tools["house__greet"]["required"] == ["name", "title"]
