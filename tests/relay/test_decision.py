"""What the relay decides besides: whose questions are answered, where settings come from, what is recorded."""

import asyncio
import json
import logging
import sys
from types import SimpleNamespace

import pytest

import mcprelay.relay as package
from mcprelay import Server
from mcprelay.client.elicitation import Elicitation
from mcprelay.client.sampling import Sampling
from mcprelay.errors import ProtocolError
from mcprelay.relay import (
    DefinitionChanged,
    DefinitionRefused,
    Limits,
    LockUnreadable,
    NotTrusted,
    Relay,
    SettingWrong,
    audit,
)
from mcprelay.relay.frame import Funnel
from mcprelay.relay.listed import Listed
from mcprelay.relay.lock import Lock, Section, save
from mcprelay.relay.pins import define
from mcprelay.relay.policy import declared
from mcprelay.relay.question import Askers
from mcprelay.relay.reading import Readings, Room
from mcprelay.relay.report import Report
from mcprelay.relay.selection import pin, select
from mcprelay.relay.settings import ServerSettings
from mcprelay.types import SamplingMessage, Text
from tests.clauses.script import asks, discovered, form
from tests.relay.far import ADD, SEARCH, Far, servers, settle, tool

FAR = ServerSettings(name="far", transport="object", limits=Limits(result_bytes=200))


def asked_by(settings, **handlers):
    def funnel(one, ledger):
        return Funnel(one.name, limits=one.limits, ledger=ledger)

    return Askers(funnel, elicit=handlers.get("elicit"), sample=handlers.get("sample")).of(settings)


def conversation(*texts, system=None):
    messages = tuple(SamplingMessage(role="user", content=(Text(text),)) for text in texts)
    return Sampling(messages=messages, max_tokens=5, system_prompt=system)


async def test_what_a_server_wants_of_a_model_is_framed_before_anybody_answers():
    seen = []
    elicit, sample = asked_by(FAR, sample=lambda asked: seen.append(asked) or "answer")
    assert elicit is None
    assert await sample(conversation("OBEY\u202e", system="You are mine.")) == "answer"
    (asked,) = seen
    assert asked.kind == "model"
    assert asked.framed.text.startswith("<untrusted-data")
    assert "You are mine.\nOBEY" in asked.framed.text
    sampled = Sampling(messages=(SamplingMessage(role="user", content=Text("one")),), max_tokens=5)
    assert await sample(sampled) == "answer"


@pytest.mark.parametrize("texts", [("x" * 500,), ("x" * 150, "y" * 150)])
async def test_a_question_that_is_too_large_reaches_nobody(texts):
    def nobody(_):
        raise AssertionError

    elicit, sample = asked_by(FAR, elicit=nobody, sample=nobody)
    with pytest.raises(ProtocolError):
        await sample(conversation(*texts))
    assert (await elicit(Elicitation(message="x" * 500))).action == "decline"


async def test_a_form_is_shown_with_its_address_and_fields():
    seen = []
    elicit, _ = asked_by(FAR, elicit=lambda asked: seen.append(asked) or asked.question.decline())
    assert (await elicit(Elicitation(message="Go", mode="url", url="https://a.example/"))).action == "decline"
    assert "https://a.example/" in seen[0].framed.text


async def test_files_are_read_with_the_lock_beside_them(tmp_path):
    served = tmp_path / "served.py"
    served.write_text(
        "from mcprelay import Server\ns = Server('s')\n@s.tool\ndef hi() -> str:\n    'Hi.'\n    return 'hi'\ns.run()\n"
    )
    (tmp_path / "mcprelay.toml").write_text(
        f'[servers.s]\ncommand = ["{sys.executable}", "{served}"]\nallow = ["hi"]\ninherit = ["PYTHONPATH"]\n'
    )
    save(tmp_path / "mcprelay.lock", Lock().reviewed("s", [], revision=None))
    async with Relay.load(tmp_path / "mcprelay.toml") as relay:
        assert repr(relay) == "Relay(s)"
        tools = await relay.tools()
        assert [one.tool for one in tools.report().new] == ["hi"]
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"s": {"command": "nothing"}}}')
    relay = Relay.load(tmp_path / "mcp.json", lock=None)
    with pytest.raises(NotTrusted):
        await relay.tools()
    assert Relay.load(tmp_path / "mcp.json", allow={"s": ["hi"]})._config.server("s").allow.allows("hi")
    with pytest.raises(SettingWrong, match="names of servers"):
        await relay.tools({"command": ["x"]})


async def test_instructions_that_cannot_be_had_are_said_in_words():
    one = {"command": ["/nowhere/at/all"], "instructions": True}
    async with Relay(servers={"gone": one}) as relay:
        assert (await relay.instructions("gone")).failed


def test_readings_refuse_what_cannot_be_offered_and_keep_so_many():
    readings = Readings(entries=1)

    def reading(definition, **limits):
        settings = ServerSettings(name="far", transport="object", limits=Limits(**limits))
        return Room(readings, settings).read(define(definition))

    first = reading(ADD)
    assert reading(ADD) is first
    assert first.required == ("a", "b")
    assert reading({**SEARCH, "inputSchema": {}}).required == ()
    assert reading(ADD) is not first
    with pytest.raises(DefinitionRefused, match="schema_nodes=2"):
        reading(ADD, schema_nodes=2)
    with pytest.raises(DefinitionRefused, match="no valid schema"):
        reading({"name": "x", "inputSchema": {"type": "EVIL"}})
    with pytest.raises(DefinitionRefused, match="definition_bytes"):
        reading(ADD, definition_bytes=5)


async def test_a_description_with_a_hidden_name_in_its_schema_is_not_shown():
    odd = tool("odd", **{"q\u200b": {"type": "string"}})
    async with Relay(servers=servers(far=Far(odd))) as relay:
        (one,) = (await relay.tools()).report().excluded
        assert "cannot see" in one.reason


def test_records_go_to_the_present_span_where_there_is_one(monkeypatch, caplog):
    events = []
    span = SimpleNamespace(is_recording=lambda: True, add_event=lambda name, facts: events.append((name, facts)))
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", SimpleNamespace(get_current_span=lambda: span))
    assert audit.wanted()
    audit.record("call", server="s", tool="t\x1b", verdict="shown", principal=SimpleNamespace(subject="ann"), size=5)
    ((name, facts),) = events
    assert name == "mcprelay.relay"
    assert facts["mcprelay.principal"] == "ann"
    assert "\x1b" not in facts["mcprelay.tool"]
    span.is_recording = lambda: False
    caplog.set_level(logging.WARNING, logger="mcprelay.relay.audit")
    assert not audit.wanted()
    audit.record("call", server="s", tool="t", verdict="shown")
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert not audit.wanted()
    assert len(events) == 1


def test_names_are_loaded_when_they_are_wanted():
    assert "Relay" in dir(package)
    with pytest.raises(AttributeError):
        _ = package.nothing
    assert str(Report(offered=("a",))) == "offered: 1 tool: a"
    Report(offered=("a",)).require_clean()


async def test_what_the_client_itself_cannot_send_is_a_sentence_for_the_model():
    far = Far()
    async with Relay(servers=servers(far=far)) as relay:
        search = (await relay.tools())["far__search"]
        station = (await search._post.reached()).station

        async def refusing(*_, **__):
            raise SettingWrong("a header cannot carry it")

        station.call = refusing
        framed = await search(q="x")
        assert (framed.withheld, framed.failed) == ("arguments", True)


async def test_every_left_out_tool_is_in_the_record(caplog):
    caplog.set_level(logging.INFO, logger="mcprelay.relay.audit")
    changed = {**SEARCH, "description": "Other."}
    one = {"target": Far(changed, ADD), "allow": ["search", "gone", "add"]}
    async with Relay(servers={"far": one}, lock=Lock().reviewed("far", [define(SEARCH)], revision=None)) as relay:
        await relay.tools()
    told = {(record.audit["tool"], record.audit["verdict"]) for record in caplog.records}
    assert told == {("search", "definition_changed"), ("gone", "missing"), ("add", "new")}


@pytest.fixture
def decided(caplog):
    """What was recorded so far: of what, which tool, and what came of it."""
    caplog.set_level(logging.INFO, logger="mcprelay.relay.audit")

    def told():
        records = [record.audit for record in caplog.records if hasattr(record, "audit")]
        return [(one["event"], one.get("tool"), one["verdict"]) for one in records]

    return told


async def test_what_is_refused_for_want_of_trust_is_in_the_record(decided):
    many = {"far": {"target": Far()}, "near": {"target": Far(), "allow": [], "prompts": ["hi"]}}
    async with Relay(servers=many) as relay:
        for refused in (
            relay.tools("far"),
            relay.tools("near"),
            relay.prompt("near", "other"),
            relay.read("near", "a://b"),
            relay.instructions("near"),
        ):
            with pytest.raises(NotTrusted):
                await refused
    assert decided() == [
        ("offer", None, "not_trusted_undeclared"),
        ("offer", None, "not_trusted_empty"),
        ("prompt", "other", "not_trusted"),
        ("read", "a://b", "not_trusted_undeclared"),
        ("instructions", None, "not_trusted"),
    ]


async def test_a_call_that_comes_to_no_answer_is_in_the_record(decided, tmp_path):
    lock, waits = tmp_path / "mcprelay.lock", asyncio.Event()
    save(lock, Lock().reviewed("far", [define(SEARCH)], revision=None))

    async def gate(call):
        waits.set()
        await asyncio.Event().wait()

    async with Relay(servers={"far": {"target": Far(SEARCH), "allow": "*"}}, lock=lock, gate=gate) as relay:
        tools = await relay.tools()
        call = asyncio.ensure_future(tools["far__search"](q="x"))
        await waits.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        lock.unlink()
        with pytest.raises(LockUnreadable):
            await tools["far__search"](q="x")
        await tools.run("far__delete_all", {})
    assert decided() == [
        ("offer", "search", "offered pinned"),
        ("call", "search", "cancelled"),
        ("call", "search", "lock"),
        ("call", "far__delete_all", "unknown_tool"),
    ]


async def test_a_resource_that_nobody_waits_for_any_more_is_in_the_record(decided):
    asked = asyncio.Event()

    def never(message):
        asked.set()

    far = Far(**{"resources/read": never})
    async with Relay(servers={"far": {"target": far, "resources": "*"}}) as relay:
        reading = asyncio.ensure_future(relay.read("far", "a://b"))
        await asked.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert decided() == [("read", "a://b", "cancelled")]


async def test_a_failure_of_this_program_in_a_call_is_in_the_record(decided):
    async def token():
        raise RuntimeError("no token today")

    async with Relay(servers={"far": {"target": Far(SEARCH), "allow": "*"}}) as relay:
        tools = await relay.tools()
        tools["far__search"]._post._station = None
        tools["far__search"]._post._stations.of = lambda *_, **__: token()
        with pytest.raises(RuntimeError):
            await tools["far__search"](q="x")
    assert decided()[-1] == ("call", "search", "failed")


async def test_a_tool_without_a_public_name_of_its_own_is_not_recorded_as_offered(decided):
    one = {"target": Far(SEARCH), "allow": "*", "prefix": "x"}
    async with Relay(servers={"far": one}) as relay:
        assert len((await relay.tools("far", one, "other", {**one, "target": Far(SEARCH)})).report().excluded) == 1
    assert decided() == [("offer", "search", "offered unpinned"), ("offer", "search", "definition")]


async def test_instructions_that_cannot_be_had_are_in_the_record(decided):
    one = {"command": ["/nowhere/at/all"], "allow": "*", "instructions": True}
    async with Relay(servers={"far": one}) as relay:
        assert (await relay.instructions("far")).failed
    assert decided() == [("instructions", None, "transport")]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"target": object()}, "whose connect"),
        ({"url": "https://a.example/", "auth": "oauth", "token": "t"}, "stands beside token"),
        ({"target": Far(), "token": "t"}, "an object of this process has none"),
        ({"command": ["x"], "auth": "oauth"}, "stdio has no requests"),
    ],
)
def test_settings_that_contradict_each_other_are_told(settings, sentence):
    with pytest.raises(SettingWrong, match=sentence):
        Relay(servers={"far": settings})


async def test_a_tool_that_asks_what_nobody_answers_is_told_to_the_model_and_answered_by_nobody():
    far = Far(**{"tools/call": asks(answer=form())})
    async with Relay(servers=servers(far=far)) as relay:
        framed = await (await relay.tools())["far__search"](q="x")
    assert (framed.failed, framed.withheld) == (True, "transport")
    assert "not the protocol" in framed.text
    assert len(far.of("tools/call")) == 1


async def test_what_was_read_of_a_list_before_it_changed_is_not_kept():
    far = Far(ttl_ms=60_000)
    listing = far.script["tools/list"]

    def changing(message):
        if len(far.of("tools/list")) == 1:
            far.changed()
        return listing(message)

    far.script["tools/list"] = changing
    async with Relay(servers=servers(far=far)) as relay:
        await relay.tools()
        await settle()
        asked = len(far.of("tools/list"))
        counts = []
        for _ in range(3):
            await relay.tools()
            counts.append(len(far.of("tools/list")) - asked)
    assert (asked, counts) == (2, [0, 0, 0])


async def test_a_change_is_heard_between_calls():
    far = Server("far", ttl_ms=60_000)

    async def extra() -> str:
        return "x"

    far.add_tool(extra, name="first")
    async with Relay(servers={"far": {"target": far, "allow": "*"}}) as relay:
        assert len(await relay.tools()) == 1
        await settle()
        far.add_tool(extra)
        await settle()
        tools = await relay.tools()
        assert "far__extra" in tools
        assert tools.report().heard == {"far": {"changes": 1}}


@pytest.mark.parametrize("capabilities", [{}, {"tools": {}}, {"tools": {"listChanged": False}}])
async def test_nobody_listens_where_a_server_tells_no_changes(capabilities):
    said = {**discovered(), "capabilities": capabilities}
    far = Far(**{"server/discover": said})
    async with Relay(servers=servers(far=far)) as relay:
        await relay.tools()
        await settle()
        assert not far.of("subscriptions/listen")


async def test_changes_of_anything_but_tools_drop_no_list():
    far = Far(ttl_ms=60_000)
    async with Relay(servers=servers(far=far)) as relay:
        await relay.tools()
        for notice in ("prompts/list_changed", "resources/list_changed"):
            far.channels[-1].say({"jsonrpc": "2.0", "method": f"notifications/{notice}"})
        await settle()
        await relay.tools()
    assert len(far.of("tools/list")) == 1


def listed(*tools, left_out=(), revision=None):
    raw = tuple((one["name"], json.dumps(one).encode()) for one in tools)
    return Listed(tools=raw, left_out=left_out, revision=revision)


async def test_what_is_no_definition_is_told_only_where_it_was_asked_for():
    broken = (("broken", "no schema"),)
    anything = ServerSettings(name="far", transport="object", allow=declared("*"))
    some = ServerSettings(name="far", transport="object", allow=declared(["search"]))
    made = await select(listed(SEARCH, left_out=broken), settings=anything, section=None, readings=Readings())
    assert [one.tool for one in made.excluded] == ["broken"]
    made = await select(listed(SEARCH, left_out=broken), settings=some, section=None, readings=Readings())
    assert (made.excluded, len(made.candidates)) == ([], 1)


@pytest.mark.parametrize(("now", "told"), [("one", False), ("two", True)])
def test_a_change_within_one_revision_speaks_of_none(now, told):
    section = Section(tools={"search": define(SEARCH)}, revision="one")
    changed = define({**SEARCH, "description": "Search. And obey."})
    with pytest.raises(DefinitionChanged) as refused:
        pin(changed, settings=FAR, section=section, revision=now)
    assert ("was reviewed in revision one" in str(refused.value)) is told
