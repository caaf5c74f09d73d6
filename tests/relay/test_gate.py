"""Gates decide per call, with final arguments, and whatever goes wrong in one denies."""

import asyncio
import contextlib
import logging
import math

import pytest

from mcprelay.relay import Relay, errand
from mcprelay.relay.errors import CallDenied, SettingWrong
from mcprelay.relay.gate import (
    Call,
    Verdict,
    admit,
    allow,
    ask,
    consult,
    deny,
)
from mcprelay.relay.names import public_name
from mcprelay.relay.rule import by_scopes, either, every, from_callable, read_only
from mcprelay.testing import FakeClock
from tests.relay.far import Far, servers, settle


def call(tool="create_issue", *, server="github", principal=None, **arguments):
    return Call(server=server, tool=tool, name=f"{server}__{tool}", arguments=arguments, principal=principal)


async def refusal(gate, made=None):
    """Why a gate does not let a call pass, and what said so; None where it passes."""
    try:
        await admit(gate, made or call())
    except CallDenied as denied:
        return denied.reason, denied.gate
    return None


async def test_without_a_gate_every_call_passes():
    await admit(None, call())


async def test_a_verdict_decides_and_a_denial_says_why_and_by_what():
    def office_hours(call):
        return deny("the office is closed")

    assert await refusal(lambda call: allow()) is None
    assert await refusal(office_hours) == ("the office is closed", "office_hours")
    assert await refusal(lambda call: deny("")) == ("no reason was given", "<lambda>")
    assert await refusal(lambda call: Verdict(reason="", gate="g")) == ("no reason was given", "g")
    assert allow().allows
    assert not deny("x").allows
    assert not ask(bool).allows


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (True, None),
        (False, "the policy of this application does not allow it"),
        (None, "the check of this application failed"),
        (1, "the check of this application failed"),
        ("not now", "not now"),
    ],
)
async def test_only_true_allows(answer, reason):
    async def later(call):
        return answer

    for gate in (lambda call: answer, later):
        found = await refusal(gate)
        assert found == (None if reason is None else (reason, gate.__name__))


@pytest.mark.parametrize("asks", [("x",), "x", None, (ask(lambda question: True),)])
async def test_a_verdict_that_asks_nobody_who_can_be_asked_denies_and_says_what_asks_is(asks):
    def gate(call):
        return Verdict(asks=asks)

    for made in (gate, every(gate), either(gate)):
        with pytest.raises(CallDenied, match="the check of this application failed") as denied:
            await admit(made, call())
        assert isinstance(denied.value.__cause__, SettingWrong)
        assert "Verdict: asks is" in str(denied.value.__cause__)


async def test_a_gate_that_fails_denies_and_keeps_its_words_to_itself(caplog):
    class Broken:
        def __call__(self, call):
            raise RuntimeError(call.arguments["title"]) from KeyError(call.arguments["title"])

    with pytest.raises(CallDenied) as denied:
        await admit(Broken(), call(title="secret"))
    assert (denied.value.reason, denied.value.gate) == ("the check of this application failed", "Broken")
    assert str(denied.value.__cause__) == "secret"  # the program has all of it
    assert "secret" not in caplog.text
    for part in ("KeyError", "Traceback", "test_gate.py", "in __call__", "RuntimeError"):
        assert part in caplog.text


@pytest.mark.parametrize("answer", [None, 1, ["yes"], allow])
async def test_a_gate_that_gives_something_else_is_told_so(answer, caplog):
    with pytest.raises(CallDenied) as denied:
        await admit(lambda call: answer, call())
    said = f"the gate <lambda> gave {type(answer).__name__}, and not a verdict, True, False or a text"
    assert (type(denied.value.__cause__), str(denied.value.__cause__)) == (TypeError, said)
    assert said in caplog.text


async def test_a_gate_that_says_no_raises_no_alarm(caplog):
    for answer in (False, "no", deny("no")):
        with pytest.raises(CallDenied) as denied:
            await admit(lambda call, answer=answer: answer, call())
        assert denied.value.__cause__ is None
    assert not caplog.records


async def test_what_a_gate_inside_of_another_one_raised_is_the_cause():
    def broken(call):
        raise KeyError("x")

    for gate in (every(lambda call: True, broken), either(broken, lambda call: False)):
        with pytest.raises(CallDenied) as denied:
            await admit(gate, call())
        assert isinstance(denied.value.__cause__, KeyError)
        assert denied.value.gate == "broken"


async def test_a_gate_that_fails_in_a_relay_is_found_by_the_program(caplog):
    caplog.set_level(logging.INFO, logger="mcprelay.relay")

    def broken(call):
        return call.arguments["q"]["SECRET"]

    async with Relay(servers=servers(far=Far()), gate=broken) as relay:
        framed = await (await relay.tools())["far__search"](q="SECRET")
    with pytest.raises(CallDenied) as denied:
        framed.require()
    assert isinstance(denied.value.__cause__, TypeError)
    audited = [record for record in caplog.records if record.name == "mcprelay.relay.audit"]
    assert audited
    assert not any("SECRET" in record.getMessage() or "Traceback" in record.getMessage() for record in audited)
    assert "in broken" in caplog.text


async def test_a_gate_sees_the_final_arguments_and_no_claim_of_the_server():
    seen = []
    await admit(lambda call: seen.append(call) or True, call(title="x", principal="ada"))
    assert seen[0].arguments == {"title": "x"}
    assert seen[0].principal == "ada"
    assert not hasattr(seen[0], "annotations")


# --- asking a person --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (True, None),
        (allow(), None),
        (False, "the person who was asked said no"),
        ("yes", "the question about it failed in this application"),
        (deny("not that one"), "not that one"),
        (ask(bool), "the question about it led to another question"),
    ],
)
async def test_a_person_decides(answer, reason):
    async def later(question):
        return answer

    for human in (lambda question: answer, later):
        found = await refusal(lambda call, human=human: ask(human))
        assert found == (None if reason is None else (reason, "<lambda>"))


async def test_a_person_sees_the_call_with_everything_visible():
    seen = []
    gate = lambda call: ask(lambda question: seen.append(question) or True, why="it writes")  # noqa: E731
    await admit(gate, call("cre\u200bate", title="x\u202e"))
    assert seen[0].text == (
        "Run github__cre⟨U+200B ZERO WIDTH SPACE⟩ate, which is cre⟨U+200B ZERO WIDTH SPACE⟩ate of github?\nit writes\n"
        '{\n  "title": "x⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩"\n}'
    )
    assert seen[0].why == "it writes"
    assert seen[0].call.arguments == {"title": "x\u202e"}


async def test_a_person_sees_which_of_two_long_names_it_is():
    texts = []
    for end in ("_safe", "_evil"):
        tool = "a" * 125 + end
        made = Call(server="s", tool=tool, name=public_name("s", tool), arguments={})
        await admit(lambda call: ask(lambda question: texts.append(question.text) or True), made)
        assert public_name("s", tool) in texts[-1]
    assert len(set(texts)) == 2


async def test_what_a_gate_does_to_the_arguments_reaches_nobody_else():
    seen = []

    def changing(call):
        call.arguments["to"] = call.arguments["deep"]["list"][0] = "changed"
        return ask(lambda question: seen.append(question) or question.call.arguments.clear() or True)

    def looking(call):
        seen.append(call)
        return True

    made = call(to="ann", deep={"list": ["x"]})
    assert await refusal(every(changing, changing, looking), made) is None
    assert made.arguments == {"to": "ann", "deep": {"list": ["x"]}}
    assert seen[0].arguments == made.arguments
    assert '"ann"' in seen[2].text
    assert "changed" not in seen[1].text + seen[2].text


async def test_who_does_not_answer_in_time_says_no():
    never = asyncio.Event()

    async def human(question):
        await never.wait()
        return True

    reason, _ = await refusal(lambda call: ask(human, patience=0))
    assert reason == "nobody agreed to it within 0 seconds"


async def test_without_anyone_to_ask_the_answer_is_no():
    reason, _ = await refusal(lambda call: ask(None))
    assert reason == "it needs a person's consent, and there is nobody to ask"


async def test_a_question_that_cannot_be_asked_is_a_no(caplog):
    def human(question):
        raise OSError(question.why)

    with pytest.raises(CallDenied) as denied:
        await admit(lambda call: ask(human, why="secret"), call())
    assert denied.value.reason == "the question about it could not be asked"
    assert str(denied.value.__cause__) == "secret"
    assert "secret" not in caplog.text.replace('why="secret"', "")
    assert "in human" in caplog.text


@pytest.mark.parametrize("answer", [None, "yes", 1])
async def test_a_person_who_gives_something_else_does_not_agree_and_that_is_told(answer, caplog):
    with pytest.raises(CallDenied) as denied:
        await admit(lambda call: ask(lambda question: answer), call())
    assert denied.value.reason == "the question about it failed in this application"
    told = (
        f"the function <lambda>, which asks the person, gave {type(answer).__name__}, and not True, False or a verdict"
    )
    assert str(denied.value.__cause__) == told
    assert told in caplog.text


@pytest.mark.parametrize(
    ("gate", "rule"),
    [
        (lambda call: ask(bool, patience=call.arguments["title"]), "ask: patience is a number of seconds"),
        (lambda call: deny(call.arguments), "deny: the reason is a text"),
        (lambda call: ask(lambda: True), "ask: human is a function of 1 argument (question)"),
    ],
)
async def test_a_mistake_in_a_verdict_is_told_to_the_log_by_what_is_right_without_the_value(gate, rule, caplog):
    with pytest.raises(CallDenied) as denied:
        await admit(gate, call(title="secret words"))
    assert f"the gate <lambda> raised SettingWrong ({rule}); the call is denied" in caplog.text
    assert "secret words" not in caplog.text
    assert rule in str(denied.value.__cause__)


async def test_what_an_application_says_by_an_error_of_the_relay_is_in_no_log(caplog):
    def closed(call):
        raise SettingWrong(f"{call.arguments['title']}, and more")

    with pytest.raises(CallDenied):
        await admit(closed, call(title="secret words"))
    assert "raised SettingWrong; the call is denied" in caplog.text
    assert "secret words" not in caplog.text


@pytest.mark.parametrize("gate", [lambda call: None, lambda call: 1 / 0, lambda call: ask(lambda _: None)])
async def test_a_denial_that_is_a_failure_says_where_its_cause_is_and_others_do_not(gate):
    with pytest.raises(CallDenied, match=r"; `__cause__` of this error, and the log, say how$"):
        await admit(gate, call())
    with pytest.raises(CallDenied) as denied:
        await admit(lambda call: False, call())
    assert "__cause__" not in str(denied.value)


async def test_a_call_that_cannot_be_shown_is_a_no():
    assert (await refusal(lambda call: ask(lambda question: True), call(x="\ud800")))[0] == (
        "the question about it could not be asked"
    )


async def test_a_call_that_is_cancelled_while_a_person_is_asked_is_cancelled():
    asked = asyncio.Event()

    async def human(question):
        asked.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(admit(lambda call: ask(human), call()))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# --- gates of gates ---------------------------------------------------------------------------------------------------


def named(name, answer):
    def gate(call):
        return answer

    gate.__name__ = name
    return gate


async def test_every_gate_has_to_allow_and_a_denial_is_final_before_anyone_is_asked():
    asked = []
    asks = named("asks", ask(lambda question: asked.append(1) or True))
    with pytest.raises(SettingWrong, match="every call"):
        every()
    assert await refusal(every(named("a", allow()), named("b", True))) is None
    assert await refusal(every(asks, named("no", deny("no")))) == ("no", "no")
    assert asked == []
    assert await refusal(every(asks, asks)) is None
    assert asked == [1, 1]


async def test_everyone_who_is_asked_has_to_agree():
    gate = every(named("a", ask(lambda question: True)), named("b", ask(lambda question: False)))
    assert await refusal(gate) == ("the person who was asked said no", "every_gate")


async def test_one_gate_that_allows_is_enough_and_then_nobody_is_asked():
    asked = []
    asks = named("asks", ask(lambda question: asked.append(1) or False))
    assert await refusal(either(asks, named("yes", True))) is None
    assert asked == []
    assert await refusal(either(named("no", deny("first")), asks)) == ("the person who was asked said no", "asks")
    assert await refusal(either(named("no", deny("first")), named("no2", deny("second")))) == ("first", "no")
    assert await refusal(either()) == ("no gate allows it", "either_gate")


async def test_gates_of_gates_are_gates():
    gate = every(either(named("no", False), named("yes", True)), named("last", deny("last word")))
    assert await refusal(gate) == ("last word", "last")


async def test_consulting_a_gate_never_raises():
    found = await consult(lambda call: call.missing, call())
    assert (found.reason, found.gate) == ("the check of this application failed", "<lambda>")
    assert isinstance(found.cause, AttributeError)


# --- gates from what an application has -------------------------------------------------------------------------------


async def test_a_function_of_server_tool_and_arguments_is_a_gate():
    async def may(server, tool, arguments):
        return (server, tool, arguments) == ("github", "create_issue", {"a": 1})

    assert await refusal(from_callable(may), call(a=1)) is None
    assert (await refusal(from_callable(may), call(a=2)))[1] == "may"


class Principal:
    def __init__(self, *scopes):
        self.scopes = scopes


async def test_scopes_of_the_principal_are_a_gate():
    gate = by_scopes({"github": {"create_issue": ["write"], "*": ["read"]}, "files": ["files"]})
    assert await refusal(gate, call(principal=Principal("write"))) is None
    assert await refusal(gate, call("list", principal=Principal("read"))) is None
    assert await refusal(gate, call("get", server="files", principal=Principal("files"))) is None
    assert await refusal(gate, call(principal=Principal("read"))) == ("it takes the scope write", "scope_gate")
    assert await refusal(gate, call()) == ("it takes the scope write", "scope_gate")
    assert await refusal(gate, call(server="other", principal=Principal("write"))) == (
        "no scope is set for it",
        "scope_gate",
    )
    narrow = by_scopes({"github": {"create_issue": []}})
    assert await refusal(narrow, call()) is None
    assert await refusal(narrow, call("other")) == ("no scope is set for it", "scope_gate")


async def test_scopes_may_be_read_in_another_way():
    gate = by_scopes({"github": ["a", "b"]}, scopes_of=lambda principal: principal["scope"].split())
    assert await refusal(gate, call(principal={"scope": "a b c"})) is None
    assert (await refusal(gate, call(principal={"scope": ""})))[0] == "it takes the scope a, b"


@pytest.mark.parametrize(
    ("scopes", "passes"),
    [("ab", False), ("a", True), ("b a", True), ("ba ab", False), ({"a": False}, False), (b"a", False), (5, False)],
)
async def test_scopes_in_one_text_are_words_and_no_letters(scopes, passes):
    principal = Principal()
    principal.scopes = scopes
    assert (await refusal(by_scopes({"github": ["a"]}), call(principal=principal)) is None) is passes


@pytest.mark.parametrize("scopes", ["write", 5])
def test_scopes_that_are_no_list_are_a_mistake(scopes):
    with pytest.raises(SettingWrong, match="github/"):
        by_scopes({"github": scopes})


async def test_read_only_is_our_own_list():
    gate = read_only({"github": ["list_issues"], "docs": "*"}, otherwise=ask(None))
    assert await refusal(gate, call("list_issues")) is None
    assert await refusal(gate, call("anything", server="docs")) is None
    assert "consent" in (await refusal(gate, call("delete_all")))[0]
    assert "consent" in (await refusal(gate, call("list_issues", server="other")))[0]


# --- gates that take their time ---------------------------------------------------------------------------------------


async def test_a_gate_that_hangs_denies_when_its_time_is_over_and_says_which_setting_that_is(caplog):
    ended = []

    async def hanging(call):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(call.tool)

    for gate, name in ((hanging, "hanging"), (every(hanging), "every_gate"), (either(hanging, hanging), "either_gate")):
        with pytest.raises(CallDenied, match=r"within gate_timeout=0 seconds") as denied:
            await admit(gate, call(), timeout=0)
        assert denied.value.gate == name
    assert ended == ["create_issue"] * 3
    assert "gate_timeout=0" in caplog.text


async def test_a_gate_or_a_person_that_takes_no_notice_of_the_end_of_its_time_admits_nothing():
    async def stubborn(_):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return True

    for gate in (stubborn, every(stubborn)):
        with pytest.raises(CallDenied, match=r"within gate_timeout=0 seconds"):
            await admit(gate, call(), timeout=0)
    with pytest.raises(CallDenied, match="nobody agreed to it within 0 seconds"):
        await admit(lambda call: ask(stubborn, patience=0), call())


@pytest.fixture
async def clock(monkeypatch):
    """The loop's own time, which passes when it is told to."""
    clock = FakeClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.monotonic)
    return clock


async def test_a_gate_that_hangs_leaves_the_next_one_of_either_its_share_of_the_time(clock, caplog):
    async def hanging(call):
        clock.advance(40)
        await asyncio.Event().wait()

    async def patient(call):
        clock.advance(30)
        await asyncio.sleep(0)
        return True

    await admit(either(hanging, hanging, patient), call(), timeout=120)  # 40, then 40 of the 80 that are left
    await admit(either(either(hanging, hanging), patient), call(), timeout=160)
    with pytest.raises(CallDenied) as denied:
        await admit(either(hanging, deny_all), call(), timeout=80)
    assert (denied.value.gate, denied.value.reason) == (
        "hanging",
        "its check did not answer within 40 of gate_timeout=80 seconds",
    )
    assert "the gate hanging did not answer within 40 of gate_timeout=120 seconds; the call is denied" in caplog.text


async def deny_all(call):
    return False


async def test_a_quick_gate_leaves_the_next_one_of_either_all_the_time(clock):
    async def slow(call):
        clock.advance(99)
        await asyncio.sleep(0)
        return True

    await admit(either(deny_all, slow), call(), timeout=100)


async def test_a_gate_of_either_that_takes_no_notice_of_the_end_of_its_time_leaves_no_next_one_without_end(clock):
    asked = []

    def deaf(times):
        async def takes_no_notice(call):
            for _ in range(times):
                clock.advance(60)
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
            return True

        return takes_no_notice

    async def hanging(call):
        asked.append(call.tool)
        clock.advance(60)
        await asyncio.Event().wait()

    for times in (1, 2):  # it hears of the end of its share, and of the end of all
        async with asyncio.timeout(500):
            with pytest.raises(CallDenied, match=r"within gate_timeout=100 seconds"):
                await admit(either(deaf(times), hanging), call(), timeout=100)
    assert len(asked) == 1


@pytest.mark.parametrize("combined", [lambda gate: gate, every, either, lambda gate: lambda call: ask(gate)])
async def test_a_call_that_is_given_up_is_not_made_whatever_its_gate_makes_of_that(combined):
    waits, after = asyncio.Event(), []

    async def stubborn(_):
        waits.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return True

    async def made():
        await admit(combined(stubborn), call())
        after.append("made")

    task = asyncio.ensure_future(made())
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert after == []


async def test_a_gate_may_have_times_and_tasks_of_its_own_that_end():
    async def broken():
        raise ValueError

    async def gate(call):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        with contextlib.suppress(BaseExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(broken())
                await asyncio.Event().wait()
        return True

    for one in (gate, every(gate, gate), either(every(gate), gate)):
        await admit(one, call())


async def test_a_time_that_a_program_sets_is_over_though_a_gate_takes_no_notice():
    async def stubborn(call):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return True

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await admit(stubborn, call())


async def somebody_elses(_):
    other = asyncio.ensure_future(asyncio.Event().wait())
    other.cancel()
    return await other


async def its_own(_):
    asyncio.current_task().cancel()
    return True


def at_once(_):
    raise asyncio.CancelledError


@pytest.mark.parametrize("cancelled", [somebody_elses, its_own, at_once])
@pytest.mark.parametrize("combined", [lambda gate: gate, every, either])
async def test_a_gate_that_was_cancelled_while_nobody_gave_up_the_call_denies(combined, cancelled):
    with pytest.raises(CallDenied) as denied:
        await admit(combined(cancelled), call())
    assert denied.value.reason == "the check of this application failed"
    assert "cancelled, by somebody else" in str(denied.value.__cause__)
    with pytest.raises(CallDenied) as denied:
        await admit(lambda call: ask(cancelled), call())
    assert denied.value.reason == "the question about it could not be asked"
    assert isinstance(denied.value.__cause__.__cause__, asyncio.CancelledError)
    assert not asyncio.current_task().cancelling()


async def test_a_gate_that_hears_of_the_end_of_the_call_beside_it_is_cancelled_with_it():
    def ending(call):
        asyncio.current_task().cancel()
        raise asyncio.CancelledError

    task = asyncio.ensure_future(admit(ending, call()))
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("combined", [lambda gate: gate, every, lambda gate: lambda call: ask(gate, patience=0)])
async def test_a_call_ends_though_its_gate_never_does(combined, caplog):
    release, waits = asyncio.Event(), asyncio.Event()

    async def deaf(_):
        while not release.is_set():
            waits.set()
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        return True

    with pytest.raises(CallDenied, match="within"):
        await admit(combined(deaf), call(), timeout=0)
    assert "takes no notice of being cancelled: its task is left behind, as 1 in all" in caplog.text
    waits.clear()
    task = asyncio.ensure_future(admit(combined(deaf), call(), timeout=math.inf) if combined is every else late(deaf))
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "as 2 in all" in caplog.text
    release.set()
    await settle()
    assert not errand._ending


async def late(gate):
    await admit(lambda call: ask(gate), call())


async def test_a_time_that_ran_out_inside_of_a_gate_is_a_failure_of_its_own():
    async def impatient(call):
        raise TimeoutError

    assert await refusal(impatient) == ("the check of this application failed", "impatient")


async def test_whom_a_gate_asks_has_its_own_patience():
    async def slow(question):
        for _ in range(20):
            await asyncio.sleep(0)
        return True

    async def gate(call):
        return ask(slow)

    await admit(gate, call(), timeout=math.inf)
    await admit(lambda call: ask(slow), call(), timeout=0)


async def test_a_call_whose_gate_hangs_is_denied_in_words_and_nothing_is_sent():
    async def hanging(call):
        await asyncio.Event().wait()

    far = Far()
    async with Relay(servers=servers(far=far), gate=hanging, gate_timeout=0) as relay:
        framed = await (await relay.tools())["far__search"](q="x")
    assert framed.withheld == "denied"
    assert "gate_timeout=0" in framed.text
    assert not far.of("tools/call")


@pytest.mark.parametrize("wrong", [-1, math.nan, "5", True, None])
def test_the_time_of_a_gate_is_a_number_of_seconds(wrong):
    with pytest.raises(SettingWrong, match="gate_timeout is a number of seconds"):
        Relay(gate_timeout=wrong)


async def test_one_gate_in_two_relays_is_one_gate():
    far = Far()

    def gate(call):
        return True

    async with Relay(servers=servers(far=far), gate=gate) as relay:
        assert len(await relay.tools() + await relay.tools()) == 2
