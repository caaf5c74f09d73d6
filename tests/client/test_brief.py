"""Definitions without what nobody reads: what is kept, what is not even decoded, and what is too long."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import DecodeError, Raw

from mcprelay.client import brief
from mcprelay.client.brief import briefly
from mcprelay.client.listing import TooLong
from mcprelay.relay.errors import DefinitionRefused
from mcprelay.relay.pins import define
from tests.client.peer import fresh, tool_result
from tests.client.scripted_http import ScriptedHttp
from tests.client.test_listing import MIRRORED, listed, page, tool

UNREADABLE = "1e999"
"""A number that no decoder here takes."""


def read(text, most=1_000):
    return brief._brief(Raw(text.encode()), most)


def test_what_programs_alone_read_is_neither_decoded_nor_kept():
    nothing = f'{{"x": {UNREADABLE}}}'
    found = read(
        f'{{"_meta": {nothing}, "name": "a", "outputSchema": {nothing}, "annotations": 7, "inputSchema": {{"x": 1}},'
        ' "title": null, "icons": "none"}'
    )
    assert found.name == "a"
    assert bytes(found.raw) == b'{"name":"a","title":null,"inputSchema":{"x": 1}}'
    assert found.input_schema == {"x": 1}
    assert found.output_schema is None


def test_the_schema_is_not_decoded_before_somebody_wants_it():
    found = read(f'{{"name": "a", "inputSchema": {{"x": {UNREADABLE}}}}}')
    with pytest.raises(DecodeError):
        _ = found.input_schema


@pytest.mark.parametrize("name", ['"a"', '"\\u0061"', "7", '"' + "n" * 20_000 + '"', '""'])
def test_what_is_too_long_is_not_read_and_is_called_what_it_calls_itself(name):
    with pytest.raises(TooLong, match="definition_bytes=1000") as caught:
        read('{{"name": {}, "inputSchema": {{"x": [{}]}}}}'.format(name, ", ".join([UNREADABLE] * 300)))
    assert caught.value.limit == "definition_bytes"
    assert caught.value.name == ("a" if name in {'"a"', '"\\u0061"'} else "(no name)")


def test_how_long_the_rest_is_does_not_matter():
    assert read('{"name": "a", "inputSchema": {}, "_meta": {"x": "%s"}}' % ("q" * 100_000)).name == "a"


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"name": "a"}',
        '{"inputSchema": {}}',
        '{"name": 7, "inputSchema": {}}',
        '{"name": "a", "inputSchema": "(left out)"}',
        '{"name": "a", "inputSchema": {}, "description": 7}',
        '{"name": "a", "inputSchema": {}, "title": []}',
        '{"name": "\\ud800", "inputSchema": {}}',
    ],
)
def test_what_is_no_definition_is_not_read(text):
    with pytest.raises(DecodeError):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "a", "inputSchema": {}, "inputSchema": {"x": 1}}',
        '{"name": "a", "inputSchema": {}, "n\\u0061me": "b"}',
        '{"name": "a", "inputSchema": {}, "inputSchema": {}, "\\u0022": 1, "\\u0022\\u0022": 2}',
        '{"name": "a", "inputSchema": {}, "\\"": 1, "\\u0022": 2}',
        '{"name": "a", "inputSchema": {}, "\\"\\"": 1, "\\u0022\\u0022": 2}',
    ],
)
def test_a_member_that_comes_twice_is_left_to_whoever_pins_it(text):
    found = read(text)
    assert bytes(found.raw) == text.encode()
    with pytest.raises(DefinitionRefused, match="twice"):
        define(found.raw)


names = st.sampled_from(["title", "description", "outputSchema", "_meta", 'a"b', "é"])
values = st.recursive(st.none() | st.text("aé\\\"'{", max_size=5), lambda inner: st.lists(inner, max_size=3))


@given(st.dictionaries(names, values), st.dictionaries(st.text(max_size=3), values), st.booleans())
def test_what_is_kept_says_the_same_to_whoever_pins_it(others, schema, ascii_only):
    others = {name: value for name, value in others.items() if name not in {"title", "description"} or value is None}
    text = json.dumps({"name": "a", **others, "inputSchema": schema}, ensure_ascii=ascii_only)
    assert define(read(text, most=len(text) * 6).raw) == define(text.encode())


async def test_a_list_names_what_is_too_long_beside_what_is_not():
    found, _ = await listed(
        [page("a", tool("long", description="q" * 2_000), "b")],
        walk=lambda client: briefly(client, definition_bytes=1_000).list_tools(),
    )
    assert [one.name for one in found] == ["a", "b"]
    (left,) = found.excluded
    assert (left.name, left.limit) == ("long", "definition_bytes")


async def test_parameters_are_mirrored_all_the_same():
    async def respond(exchange):
        if exchange.asks == "tools/list":
            await exchange.result(page(tool("sql", inputSchema=MIRRORED, outputSchema={"type": "string"}), "plain"))
        else:
            await exchange.result(tool_result())

    async with ScriptedHttp(respond) as http, fresh(http.url, check_output=False) as client:
        await briefly(client, definition_bytes=1_000).list_tools()
        await client.call_tool("sql", {"region": "Bern"})
        await client.call_tool("plain", {"region": "Bern"})
    assert [one.headers.get("mcp-param-region") for one in http.exchanges[1:]] == ["Bern", None]
