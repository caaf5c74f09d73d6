import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.wire.header import (
    HeaderInvalid,
    Headers,
    method_disagreement,
    standard,
    version_disagreement,
)

WIRE_TEXT = st.text(alphabet=st.characters(codec="utf-8"))


def received(*pairs):
    return Headers.lowered(pairs)


def test_a_request_gets_the_headers_that_mirror_it():
    assert standard("tools/call", "get_weather", version="v") == [
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "get_weather"),
        ("MCP-Protocol-Version", "v"),
    ]
    assert standard("tools/list") == [("Mcp-Method", "tools/list")]


@pytest.mark.parametrize("method", ["a\r\nX-Evil: 1", "日本", " tools/call", "a\tb"])
def test_a_method_that_no_header_can_carry_is_refused_before_it_is_sent(method):
    with pytest.raises(HeaderInvalid, match="Mcp-Method takes printable ASCII only"):
        standard(method)


@given(WIRE_TEXT)
def test_what_one_side_emits_the_other_accepts(name):
    assert method_disagreement(received(*standard("prompts/get", name)), "prompts/get", name) is None


@given(WIRE_TEXT, WIRE_TEXT)
def test_a_name_agrees_with_no_other_name(sent, wanted):
    reason = method_disagreement(received(*standard("tools/call", sent)), "tools/call", wanted)
    assert (reason is None) == (sent == wanted)


@pytest.mark.parametrize("spelling", ["Mcp-Method", "mcp-method", "MCP-METHOD"])
def test_header_names_have_no_case(spelling):
    assert method_disagreement(received((spelling, "tools/list")), "tools/list") is None


@pytest.mark.parametrize("value", ["echo", "  echo ", "echo\t", "=?base64?ZWNobw==?=", " =?base64?ZWNobw==?= "])
def test_a_name_is_trimmed_and_unwrapped_before_it_is_compared(value):
    headers = received(("Mcp-Method", " tools/call "), ("Mcp-Name", value))
    assert method_disagreement(headers, "tools/call", "echo") is None


def test_the_disagreement_is_said_as_the_specification_says_it():
    headers = received(("Mcp-Method", "tools/call"), ("Mcp-Name", "foo"))
    assert (
        method_disagreement(headers, "tools/call", "bar")
        == "Mcp-Name header value 'foo' does not match body value 'bar'"
    )


@pytest.mark.parametrize(
    ("headers", "method", "name", "said"),
    [
        ((), "tools/call", "a", "Mcp-Method header is missing; it must say what the body says, 'tools/call'"),
        ((("Mcp-Method", "tools/call"),), "tools/call", "a", "Mcp-Name header is missing"),
        ((("Mcp-Method", "TOOLS/CALL"),), "tools/call", None, "'TOOLS/CALL' does not match body value 'tools/call'"),
        ((("Mcp-Method", "=?base64?YQ==?="),), "a", None, "does not match"),
        ((("Mcp-Method", b"caf\xe9"),), "café", None, "not printable ASCII"),
        ((("Mcp-Method", b"a\x01b"),), "a\x01b", None, "not printable ASCII"),
        ((("Mcp-Method", "m"), ("Mcp-Name", "Echo")), "m", "echo", "'Echo' does not match"),
        ((("Mcp-Method", "m"), ("Mcp-Name", b"caf\xe9")), "m", "café", "Mcp-Name header value is invalid"),
        ((("Mcp-Method", "m"), ("Mcp-Name", "=?base64?SGVsbG8?=")), "m", "Hello", "Mcp-Name header value is invalid"),
        ((("Mcp-Method", "m"), ("Mcp-Name", "=?base64?QQ==?=")), "m", "=?base64?QQ==?=", "'A' does not match"),
        ((("Mcp-Method", "m"), ("Mcp-Name", "a"), ("Mcp-Name", "b")), "m", "a", "mcp-name header came more than once"),
        ((("Mcp-Method", "m"), ("Mcp-Method", "n")), "m", None, "mcp-method header came more than once"),
    ],
)
def test_each_way_to_disagree_is_told_exactly(headers, method, name, said):
    reason = method_disagreement(received(*headers), method, name)
    assert reason is not None
    assert said in reason


def test_a_method_without_a_name_ignores_the_name_header():
    assert method_disagreement(received(("Mcp-Method", "m"), ("Mcp-Name", "x")), "m") is None


def test_a_long_value_of_a_peer_is_not_repeated_in_full():
    headers = received(("Mcp-Method", "m"), ("Mcp-Name", "x" * 100_000))
    assert len(method_disagreement(headers, "m", "y" * 100_000)) < 400


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ((("MCP-Protocol-Version", "v2"),), None),
        ((("MCP-Protocol-Version", " v2 "),), None),
        ((("MCP-Protocol-Version", "v1"),), "header value 'v1' does not match body value 'v2'"),
        ((), "MCP-Protocol-Version header is missing"),
        ((("MCP-Protocol-Version", "v2"), ("MCP-Protocol-Version", "v1")), "came more than once"),
    ],
)
def test_the_version_header_says_what_the_body_says(headers, said):
    reason = version_disagreement(received(*headers), "v2")
    assert (reason is None) if said is None else said in reason


def test_a_plain_mapping_that_joins_repeated_fields_is_checked_as_well():
    assert method_disagreement({b"mcp-method": b"m"}, "m") is None
    assert "does not match" in method_disagreement({b"mcp-method": b"m, n"}, "m")
