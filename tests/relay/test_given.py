"""What a program gives to the relay is looked at where it is given, and what is wrong is told with what is right."""

import math
from functools import partial
from pathlib import Path

import pytest

import mcprelay
from mcprelay.errors import ConfigurationError
from mcprelay.relay import (
    CacheSettings,
    Limits,
    Lock,
    Relay,
    SettingWrong,
    ask,
    by_scopes,
    deny,
    either,
    every,
    from_callable,
    read_only,
)
from mcprelay.relay.gate import Ask, Verdict
from mcprelay.relay.settings import Secret, ServerSettings
from tests.relay.far import Far, servers


def nothing():
    return None


def one(_):
    return None


def two(_, __):
    return None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gate": "x"}, r"gate is a function of 1 argument \(call\), and not 'x' \(str\)"),
        ({"gate": nothing}, r"gate is a function of 1 argument \(call\), and nothing\(\) is not: too many"),
        ({"gate": partial(one, 1)}, r"gate is a function of 1 argument \(call\), and partial\(\) is not"),
        ({"gate_timeout": "x"}, "gate_timeout is a number of seconds, and not 'x'"),
        ({"gate_timeout": True}, "gate_timeout is a number of seconds"),
        ({"gate_timeout": math.nan}, "gate_timeout is a number of seconds"),
        ({"filters": "abc"}, "filters is a list of functions, and not 'abc'"),
        ({"filters": two}, "filters is a list of functions, and not one of them: write filters="),
        ({"filters": 3}, "filters is a list of functions, and not 3"),
        ({"filters": [two, one]}, r"filters\[1\] is a function of 2 arguments \(text, origin\), and one\(_\) is not"),
        ({"tokens": 3}, r"tokens is a function of 1 argument \(text\), and not 3"),
        ({"on_elicit": "x"}, r"on_elicit is a function of 1 argument \(asked\)"),
        (
            {"on_sample": two},
            r"on_sample is a function of 1 argument \(asked\), and two\(_, __\) is not: missing a req",
        ),
        ({"clock": 3}, "clock is a function without arguments, and not 3"),
        ({"clock": one}, r"clock is a function without arguments, and one\(_\) is not"),
        ({"connections": 0}, "connections is a whole number of at least 1, and not 0"),
        ({"connections": "x"}, "connections is a whole number"),
        ({"local": "abc"}, "local is a list of texts, and not 'abc'"),
        ({"local": [3]}, "each of local is a text, and not 3"),
        ({"lock": 3}, "lock is the path of a file, and not 3"),
        ({"lock": ""}, "lock is the path of a file, and not ''"),
        ({"limits": 3}, "settings in code: limits: expected a table, not a number"),
        (
            {"limits": mcprelay.Limits()},
            r"expected a table, or mcprelay\.relay\.Limits\(…\), not mcprelay\.server\.lim",
        ),
        ({"limits": {"run_byte": 3}}, r"limits\.run_byte: is not known here; did you mean 'run_bytes'\?"),
        ({"limits": {"run_bytes": 1.5}}, r"limits\.run_bytes: expected a whole number, not 1\.5"),
        ({"limits": {"run_bytes": math.inf}}, r"limits\.run_bytes: expected a whole number, not inf"),
        ({"cache": "x"}, "settings in code: cache: expected a table, not a text"),
        ({"cache": {"pth": "x"}}, r"cache\.pth: is not known here; did you mean 'path'\?"),
        ({"cache": {"path": 3}}, r"cache\.path: expected a text, not a number"),
        ({"cache": {"path": ""}}, r"cache\.path: is empty"),
        ({"servers": ["x"]}, "servers is a mapping of names of servers and the settings of each, and no list"),
        ({"servers": {"a": {"url": "https://a", "token": one}}}, r"servers\.a\.token: it is a function without argum"),
    ],
)
def test_an_argument_of_a_relay_that_is_none_is_refused(options, said):
    with pytest.raises(SettingWrong, match=said):
        Relay(**{"servers": servers(far=Far()), **options})


async def test_what_the_file_can_say_can_be_given_in_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for limits in ({"result_bytes": 3}, Limits(result_bytes=3)):
        for cache in ({"path": "lists.db"}, CacheSettings(path="lists.db"), CacheSettings(path=Path("lists.db"))):
            async with Relay(servers={"far": {"command": ["x"]}}, limits=limits, cache=cache) as relay:
                assert relay._config.server("far").limits.result_bytes == 3
                assert relay._stations.shelves.key
            assert (tmp_path / "lists.db").is_file()
            (tmp_path / "lists.db").unlink()
    async with Relay(servers={"far": {"target": Far(), "allow": "*", "limits": Limits(result_bytes=3)}}) as relay:
        assert (await (await relay.tools())["far__search"](q="x")).withheld == "too_large"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: deny(3), "deny: the reason is a text, and not 3"),
        (lambda: ask("x"), r"ask: human is a function of 1 argument \(question\), and not 'x'"),
        (lambda: ask(nothing), "ask: human is a function of 1 argument"),
        (lambda: ask(None, patience="x"), "ask: patience is a number of seconds, and not 'x'"),
        (lambda: Verdict(asks=("x",)), r"each of Verdict: asks is what ask\(…\) has there, and no builtins.str"),
        (
            lambda: Verdict(asks="x"),
            r"asks is what ask\(…\)\.asks is, a tuple of those who are asked, and no b",
        ),
        (
            lambda: Verdict(asks=[]),
            r"asks is what ask\(…\)\.asks is, a tuple of those who are asked, and no b",
        ),
        (lambda: Verdict(asks=None), r"Verdict: asks is what ask\(…\)\.asks is"),
        (lambda: Verdict(reason=3), "Verdict: reason is a text, and not 3"),
        (lambda: Verdict(gate=3), "Verdict: gate is a text, and not 3"),
        (lambda: Verdict(reason="x", cause="x"), "Verdict: cause is what was raised, and no builtins.str"),
        (lambda: Ask(human=3, patience=1, why=""), r"ask: human is a function of 1 argument \(question\), and not 3"),
        (lambda: Ask(human=one, patience="x", why=""), "ask: patience is a number of seconds, and not 'x'"),
        (lambda: ask(None, why=3), "ask: why is a text, and not 3"),
        (lambda: every("x"), r"every\[0\] is a function of 1 argument \(call\)"),
        (lambda: either(one, 3), r"either\[1\] is a function of 1 argument \(call\), and not 3"),
        (lambda: from_callable(one), r"from_callable is a function of 3 arguments \(server, tool, arguments\)"),
        (lambda: by_scopes(["x"]), "by_scopes is a mapping of servers and the scopes that their calls take, and no li"),
        (lambda: by_scopes({3: ["x"]}), "by_scopes: a server is a text, and not 3"),
        (lambda: by_scopes({"a": {"t": [3]}}), "each of scopes of a/t is a text, and not 3"),
        (
            lambda: by_scopes({"a": ["x"]}, scopes_of=nothing),
            r"by_scopes: scopes_of is a function of 1 argument \(prin",
        ),
        (lambda: read_only(["x"], otherwise=deny("x")), "read_only is a mapping of servers and the names of their too"),
        (lambda: read_only({"a": "x"}, otherwise=deny("x")), r"read_only: a: 'x' is one text and no list of names"),
        (lambda: read_only({3: ["x"]}, otherwise=deny("x")), "read_only: a server is a text, and not 3"),
        (lambda: read_only({"a": ["x"]}, otherwise=ask), "read_only: otherwise is a verdict, such as ask"),
        (lambda: Limits(run_bytes="x"), "run_bytes is a whole number of at least 1, and not 'x'"),
        (lambda: Limits(result_bytes=None), "result_bytes is a whole number of at least 1, and not None"),
        (lambda: CacheSettings(path=3), "cache: path is the path of a file, and not 3"),
        (lambda: CacheSettings(hintless="x"), "cache: hintless is a number of seconds, and not 'x'"),
        (lambda: Lock(sections=3), "Lock: sections is a mapping of servers and sections, and no int"),
        (lambda: Lock(sections={"a": 3}), "Lock: what is said of a is a section, as reviewed"),
        (lambda: Lock(sections={3: 3}), "Lock: the name of a server is a text, and not 3"),
        (lambda: Lock().reviewed("a", 3, revision=None), "Lock: what was reviewed is a list of definitions, and no b"),
        (lambda: Lock().reviewed("a", [3], revision=None), "each of Lock: what was reviewed is of a list of definitio"),
    ],
)
def test_what_gates_and_values_are_made_of_is_looked_at(make, said):
    with pytest.raises(SettingWrong, match=said):
        make()


def test_what_is_right_is_taken():
    every(one, lambda call, more=3: True)
    either(one)
    from_callable(lambda *given: True)
    ask(one, why="x")
    Limits(run_bytes=None)
    Relay(
        tokens=len, clock=print, filters=(two,), local=("a",), gate=type("G", (), {"__call__": lambda self, call: 1})()
    )


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        (3, {}, "path is the path of a file, and not 3"),
        ("", {}, "path is the path of a file, and not ''"),
        ("mcp.json", {"allow": ["x"]}, "allow is a mapping of servers and what of each may be used, and no list"),
        ("mcp.json", {"allow": {"far": "x"}}, r"allow: far: 'x' is one text and no list of names"),
        ("mcp.json", {"env": 3}, "env is a mapping of names of variables and their values, and no int"),
        (
            "mcp.json",
            {"limits": {}},
            r"limits is what the file says; give the file limits, or make a Relay\(limits=…\)",
        ),
        ("mcp.json", {"cache": {}}, "cache is what the file says"),
        ("mcp.json", {"servers": {}}, "servers is what the file says"),
    ],
)
def test_what_is_loaded_is_looked_at_too(given, options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mcp.json").write_text('{"mcpServers": {"far": {"command": "x"}}}')
    with pytest.raises(SettingWrong, match=said):
        Relay.load(given, **options)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda relay: relay.tools(3), "takes names of servers as texts, .* and not int"),
        (lambda relay: relay.tools("far", 3), "and not int"),
        (lambda relay: relay.tools(strict="x"), "strict is True or False, and not 'x'"),
        (lambda relay: relay.tools(skip_unavailable=1), "skip_unavailable is True or False, and not 1"),
        (lambda relay: relay.prompt(3, "x"), "the name of a server is a text, and not 3"),
        (lambda relay: relay.prompt("far", 3), "prompt: the name is a text, and not 3"),
        (lambda relay: relay.prompt("far", "x", ["a"]), "prompt: arguments is a mapping of names and texts, and no li"),
        (lambda relay: relay.prompt("far", "x", {"a": 3}), "prompt: the argument 'a' is a text, and not 3"),
        (lambda relay: relay.read("far", 3), "read: the URI is a text, and not 3"),
        (lambda relay: relay.instructions(3), "the name of a server is a text, and not 3"),
    ],
)
async def test_a_question_to_a_relay_that_is_none_is_refused(call, said):
    far = Far()
    async with Relay(servers={"far": {"target": far, "allow": "*", "prompts": "*", "resources": "*"}}) as relay:
        with pytest.raises(SettingWrong, match=said):
            await call(relay)
    assert far.connects == 0


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (None, "a token is a text, or a function that gives one, and no NoneType"),
        ("", "the token is empty"),
        (
            "Bearer x",
            "the token holds a character that no token has, such as a space: it is given without the word Bea",
        ),
        (one, "a token is a function without arguments"),
    ],
)
def test_a_token_that_is_none_is_refused_and_not_shown(token, said):
    relay = Relay(servers={"far": {"url": "https://far.example/mcp"}})
    with pytest.raises(SettingWrong, match=said):
        relay.with_token(token)
    with pytest.raises(SettingWrong, match=said):
        relay.with_tokens({"far": token})
    with pytest.raises(
        SettingWrong, match="with_tokens is a mapping of names of servers and the token for each, and no"
    ):
        relay.with_tokens("SECRET")


def test_a_token_may_be_held_already():
    relay = Relay(servers={"far": {"url": "https://far.example/mcp"}})
    assert relay.with_token(Secret("t"))._behalf == relay.with_token("t")._behalf


async def test_a_tool_that_is_asked_for_by_no_name_is_unknown():
    async with Relay(servers=servers(far=Far())) as relay:
        tools = await relay.tools()
        for name in (3, ["far__search"], None):
            assert (await tools.run(name)).code == "unknown_tool"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Relay(gates=[]), "Relay has no option 'gates'; did you mean 'gate'?"),
        (lambda: Relay(zzz=1), "Relay has no option 'zzz'; there are cache, clock, connections,"),
        (
            lambda: Relay(elicitation_handler=print),
            "Relay has no option 'elicitation_handler'; it is called 'on_elicit'",
        ),
        (lambda: Relay.load(alow={}), "Relay.load has no option 'alow'; did you mean 'allow'?"),
        (lambda: Relay.load(lok=None), "Relay.load has no option 'lok'; did you mean 'lock'?"),
        (lambda: Relay.load(servers={}), "servers is what the file says"),
        (lambda: Limits(result_byte=1), "Limits has no option 'result_byte'; did you mean 'result_bytes'?"),
        (lambda: CacheSettings(hintles=1), "CacheSettings has no option 'hintles'; did you mean 'hintless'?"),
    ],
)
def test_an_option_that_there_is_not_is_told_with_the_one_that_was_meant(make, said):
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert str(caught.value).startswith(said)


async def test_an_option_of_tools_that_there_is_not_is_told_before_anything_is_asked():
    far = Far()
    async with Relay(servers={"far": {"target": far, "allow": "*"}}, lock=None) as relay:
        with pytest.raises(SettingWrong, match=r"^tools\(\) has no option 'skip_unavailble'; did you mean 'skip_unav"):
            await relay.tools(skip_unavailble=True)
    assert not far.connects


def test_the_place_of_a_mistake_is_told_of_settings_that_were_made_by_hand_too():
    made = ServerSettings(name="far", transport="http", url="https://x")
    assert made.place == "servers.far"
