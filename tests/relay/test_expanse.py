"""Lists of tools that are short and mean much: what they take is estimated, bounded and told."""

import asyncio
import json
from types import SimpleNamespace

import msgspec
import pytest

from mcprelay.relay import Limits
from mcprelay.relay.errors import DefinitionRefused, ResultTooLarge
from mcprelay.relay.gather import gather
from mcprelay.relay.kept import memory
from mcprelay.relay.listed import Listed
from mcprelay.relay.names import Shadow
from mcprelay.relay.pins import define
from mcprelay.relay.policy import declared
from mcprelay.relay.reading import Readings, Room
from mcprelay.relay.report import Report
from mcprelay.relay.selection import select
from mcprelay.relay.settings import ServerSettings
from mcprelay.types import Text


def wide(number, *, patterns=20, text=r"\w{200}"):
    members = {f"p{i}": {"type": "string", "pattern": f"{text}{number}_{i}"} for i in range(patterns)}
    return {"name": f"t{number}", "inputSchema": {"type": "object", "properties": members}}


def listed(*tools):
    return Listed(tools=tuple((one["name"], json.dumps(one).encode()) for one in tools))


def far(*, allow="*", timeout=30.0, **limits):
    allowed = declared(allow)
    return ServerSettings(name="far", transport="object", allow=allowed, timeout=timeout, limits=Limits(**limits))


def reading(tool, readings=None):
    return Room(readings or Readings(), far()).read(define(tool))


async def chosen(tools, settings, readings=None):
    return await select(listed(*tools), settings=settings, section=None, readings=readings or Readings())


async def test_a_tool_whose_patterns_take_too_much_is_excluded_by_the_name_of_the_limit():
    made = await chosen([wide(1, patterns=200), wide(2)], far(schema_pattern_bytes=4_000_000))
    assert [one.definition.name for one in made.candidates] == ["t2"]
    (left,) = made.excluded
    assert (
        left.reason
        == "its input schema is over a limit: schema_pattern_bytes=4,000,000; raise schema_pattern_bytes to allow more"
    )


async def test_what_all_tools_of_a_list_take_is_bounded():
    # given tools that are each within every limit
    tools = [wide(number) for number in range(6)]
    one = reading(tools[0]).memory
    # when there is room for three of them
    readings = Readings()
    made = await chosen(tools, far(tools_bytes=int(3.5 * one)), readings)
    # then those that come first are offered, and the others are told by the limit's name
    assert [each.definition.name for each in made.candidates] == ["t0", "t1", "t2"]
    assert [left.tool for left in made.excluded] == ["t3", "t4", "t5"]
    assert all("tools_bytes=" in left.reason for left in made.excluded)
    with pytest.raises(DefinitionRefused, match="tools_bytes"):
        await chosen(tools, far(allow=[f"t{i}" for i in range(6)], tools_bytes=int(3.5 * one)))


def referring(number, *, references):
    members = {f"p{i}": {"$ref": "#/$defs/s"} for i in range(references)}
    return {
        "name": f"t{number}",
        "inputSchema": {"type": "object", "$defs": {"s": {"type": "string"}}, "properties": members},
    }


async def test_what_the_schemas_of_a_list_take_to_be_rewritten_is_bounded_and_references_take_most():
    # given room for as much as two tools with references take
    tools = [referring(number, references=10) for number in range(4)]
    one = reading(tools[0]).work
    assert one > 10 * 32
    made = await chosen([*tools, wide(9)], far(tools_work=int(2.5 * one)))
    # then those that come first are offered, and the others are told by the limit's name
    assert [each.definition.name for each in made.candidates] == ["t0", "t1"]
    assert [left.tool for left in made.excluded] == ["t2", "t3", "t9"]
    assert all(f"tools_work={int(2.5 * one):,}" in left.reason for left in made.excluded)


@pytest.fixture
def defined(monkeypatch):
    """What was decoded, in its order."""
    seen = []

    def counted(raw):
        seen.append(json.loads(raw)["name"])
        return define(raw)

    monkeypatch.setattr("mcprelay.relay.reading.define", counted)
    return seen


async def test_a_list_that_is_larger_than_what_is_shared_is_read_once(defined):
    # given less room for what is kept of all servers than one list takes
    readings = Readings(entries=2)
    tools = listed(*(wide(number) for number in range(5)))
    first, second = [await select(tools, settings=far(), section=None, readings=readings) for _ in range(2)]
    assert defined == ["t0", "t1", "t2", "t3", "t4"]
    assert all(one.reading is two.reading for one, two in zip(first.candidates, second.candidates, strict=True))


async def test_a_definition_that_is_too_long_is_not_decoded(defined):
    long = {"name": "long", "inputSchema": {"type": "object", "x": [[]] * 1_000}}
    made = await chosen([long, wide(1)], far(definition_bytes=2_000))
    assert [left.reason for left in made.excluded] == [
        "its definition is too long: definition_bytes=2,000; raise definition_bytes to allow more"
    ]
    assert defined == ["t1"]


async def test_what_there_is_no_room_for_is_not_decoded_and_what_is_no_definition_takes_room_too(defined):
    # given a list of what is no definition, and room for a few of them
    nothing = [{"name": f"n{number}", "inputSchema": [[]] * 100} for number in range(20)]
    takes = memory(json.dumps(nothing[0]).encode())
    readings, settings = Readings(), far(tools_bytes=int(3.5 * takes))
    for _ in range(2):
        made = await chosen(nothing, settings, readings)
        assert ["tools_bytes" in left.reason for left in made.excluded] == [False] * 3 + [True] * 17
    # then only these were looked at, and once
    assert defined == ["n0", "n1", "n2"]


async def test_what_is_not_allowed_takes_no_room():
    tools = [wide(number) for number in range(6)]
    one = reading(tools[0]).memory
    made = await chosen(tools, far(allow=["t5"], tools_bytes=int(1.5 * one)))
    assert [each.definition.name for each in made.candidates] == ["t5"]


async def test_others_have_the_loop_between_tools_and_time_ends_it(monkeypatch):
    # given a clock that goes on by a second with each look at it
    now = iter(range(1_000))
    monkeypatch.setattr("mcprelay.relay.selection.monotonic", lambda: float(next(now)))
    turns = []

    async def other():
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(other())
    # when there are many tools
    await chosen([wide(number, patterns=1) for number in range(10)], far(timeout=50))
    assert len(turns) >= 10
    with pytest.raises(DefinitionRefused, match="cannot be looked at within timeout=5; allow fewer of them, or raise"):
        await chosen([wide(number, patterns=1) for number in range(10)], far(timeout=5))
    beside.cancel()


async def test_whoever_waits_for_the_tools_may_stop_waiting(monkeypatch):
    now = iter(range(10_000))
    monkeypatch.setattr("mcprelay.relay.selection.monotonic", lambda: float(next(now)))
    waiting = asyncio.ensure_future(chosen([wide(number, patterns=1) for number in range(100)], far(timeout=9_000)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_what_is_kept_is_bounded_by_what_it_takes():
    readings = Readings()
    for number in range(200):
        reading(wide(number, patterns=20), readings)
    kept = [one for one, _ in readings._known._values.values()]
    assert 10 < len(kept) < 100
    assert sum(one.memory for one in kept) < 80_000_000


def test_dense_json_is_known_to_take_more_than_its_text():
    assert memory(b"[" + b"[]," * 1_000 + b"[]]") > 60 * 2_000
    assert memory(b'"' + b"x" * 10_000 + b'"') < 30_000


@pytest.fixture
def decoded(monkeypatch):
    """How long the texts are that are read as JSON."""
    sizes = []
    real = msgspec.json.decode
    decode = lambda text: sizes.append(len(text)) or real(text)  # noqa: E731
    monkeypatch.setattr(
        "mcprelay.relay.gather.msgspec.json", SimpleNamespace(decode=decode, encode=msgspec.json.encode)
    )
    return sizes


DENSE = "[" + ",".join(["[]"] * 80_000) + "]"


@pytest.mark.parametrize("text", [DENSE, f'{{"a":{DENSE}}}', "[" * 100_000, '{"a":' * 50_000], ids=["a", "b", "c", "d"])
@pytest.mark.parametrize("number", [1, 255])
def test_no_text_is_read_that_cannot_say_the_same_as_the_structured_content(number, text, decoded):
    content = [Text(text)] * number
    if number == 1:
        found = gather(content, {"a": 1, "b": [2, {}]}, limits=Limits(result_bytes=1 << 20))
        assert found.texts == [text, '{"a":1,"b":[2,{}]}']
    else:
        with pytest.raises(ResultTooLarge, match="result_bytes"):
            gather(content, {"a": 1, "b": [2, {}]}, limits=Limits(result_bytes=1 << 20))
    assert decoded == []


def test_a_text_that_says_the_same_in_another_order_is_read_once(decoded):
    said = '{ "b": [2, {}], "a": 1 }'
    assert gather([Text(said)], {"a": 1, "b": [2, {}]}, limits=Limits()).texts == [said]
    assert decoded == [len(said)]


def test_a_report_says_how_many_others_a_description_speaks_of():
    shadows = (Shadow(name="a__x", other="b__y", why="mentions", more=7), Shadow(name="a__x", other="c", why="alike"))
    assert str(Report(shadowed=shadows)).splitlines()[1:] == [
        "shadowed: a__x / b__y: mentions, and 7 others",
        "shadowed: a__x / c: alike",
    ]
