import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.errors import MCPRelayError
from mcprelay.wire.field import SAFE_INTEGER, HeaderInvalid, Headers, decode, encode, shown

ENCODINGS = [
    ("us-west1", "us-west1"),
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    (" us-west1", "=?base64?IHVzLXdlc3Qx?="),
    ("us-west1 ", "=?base64?dXMtd2VzdDEg?="),
    (" us-west1 ", "=?base64?IHVzLXdlc3QxIA==?="),
    ("us west 1", "us west 1"),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?="),
    ("\tindented", "=?base64?CWluZGVudGVk?="),
    ("日本語", "=?base64?5pel5pys6Kqe?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ("", ""),
    ("file:///path/to/file%20name.txt", "file:///path/to/file%20name.txt"),
    ("https://example.com/resource?id=123", "https://example.com/resource?id=123"),
    ("=?base64?half", "=?base64?half"),
    ("half?=", "half?="),
    (True, "true"),
    (False, "false"),
    (42, "42"),
    (-7, "-7"),
    (0, "0"),
    (SAFE_INTEGER, "9007199254740991"),
    (-SAFE_INTEGER, "-9007199254740991"),
]


@pytest.mark.parametrize(("value", "header"), ENCODINGS)
def test_a_value_is_encoded_as_the_specification_shows(value, header):
    assert encode(value) == header


@pytest.mark.parametrize(("value", "header"), [pair for pair in ENCODINGS if isinstance(pair[0], str)])
def test_an_encoded_string_decodes_to_itself(value, header):
    assert decode(header) == value


def test_a_tab_inside_is_wrapped_by_the_sender_and_accepted_by_the_receiver():
    assert encode("a\tb") == "=?base64?YQli?="
    assert decode("a\tb") == "a\tb"


@pytest.mark.parametrize("value", [SAFE_INTEGER + 1, -SAFE_INTEGER - 1, 10**400])
def test_an_integer_that_not_everyone_reads_exactly_is_not_emitted(value):
    with pytest.raises(HeaderInvalid, match=r"outside the range ±9007199254740991"):
        encode(value)


def test_what_is_refused_belongs_to_the_tree_and_is_a_value_error():
    with pytest.raises(MCPRelayError):
        decode("\x00")
    with pytest.raises(ValueError, match="visible ASCII"):
        decode("\x00")


def test_a_lone_surrogate_is_not_emitted():
    with pytest.raises(HeaderInvalid, match="lone surrogate at position 1"):
        encode("a\ud800")


@pytest.mark.parametrize(
    "text", ["SGVsbG8=", "=?base64?SGVsbG8=", "=?BASE64?SGVsbG8=?=", "SGVsbG8=?=", "=?base64?=", "=?base64", "?="]
)
def test_what_is_not_wholly_wrapped_is_literal(text):
    assert decode(text) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("=?base64?SGVsbG8?=", "canonical"),
        ("=?base64?SGVs!!!bG8=?=", "'!' in"),
        ("=?base64?SGVs bG8=?=", "' ' in"),
        ("=?base64?SGVsbG8==?=", "canonical"),
        ("=?base64?=SGVsbG8?=", "'=' in"),
        ("=?base64?SGVsbG9=?=", "canonical"),  # bits beyond the last octet are not zero
        ("=?base64?=?=", "canonical"),
        ("=?base64?QQ==QQ==?=", "'=' in"),
        ("=?base64?_-8=?=", "'_' in"),
        ("=?base64?/w==?=", "UTF-8"),
        ("=?base64?7aCA?=", "UTF-8"),  # a surrogate
        ("=?base64?é?=", "'é' in"),
        ("caf\xe9", "'é' at position 3"),
        ("a\x00b", r"'\\x00' at position 1"),
        ("a\nb", r"'\\n' at position 1"),
        ("a\x7f", r"'\\x7f'"),
    ],
)
def test_a_header_value_that_breaks_a_rule_is_refused_with_the_reason(text, why):
    with pytest.raises(HeaderInvalid, match=why):
        decode(text)


def test_nothing_wrapped_is_the_empty_string():
    assert decode("=?base64??=") == ""


def test_whitespace_around_a_value_is_not_part_of_it():
    assert decode("  foo\t") == "foo"
    assert decode(" =?base64?IGE=?= ") == " a"


@given(st.text())
def test_every_string_survives_and_what_travels_is_a_field_value(value):
    header = encode(value)
    assert decode(header) == value
    assert re.fullmatch(r"([!-~]([ -~]*[!-~])?)?", header)


@given(st.text(alphabet=st.characters(max_codepoint=255)))
def test_any_received_value_decodes_or_is_refused(text):
    try:
        value = decode(text)
    except HeaderInvalid:
        return
    assert decode(encode(value)) == value


@given(st.binary().map(lambda octets: octets.decode("latin-1")))
def test_any_wrapped_value_decodes_canonically_or_is_refused(inner):
    text = f"=?base64?{inner}?="
    try:
        value = decode(text)
    except HeaderInvalid:
        return
    assert encode(value) in (text, value)


def test_headers_are_looked_up_by_lower_cased_name():
    headers = Headers.of([(b"mcp-method", b"tools/call"), (b"host", b" a ")])
    assert headers[b"mcp-method"] == b"tools/call"
    assert headers.text(b"host") == "a"
    assert headers.text(b"origin") is None
    assert list(headers.conflicts) == []


def test_names_in_any_case_are_lowered_where_the_source_does_not():
    headers = Headers.lowered([("Mcp-Method", "tools/call"), (b"MCP-NAME", b"x"), ("X", "ü")])
    assert headers == {b"mcp-method": b"tools/call", b"mcp-name": b"x", b"x": "ü".encode()}


def test_repeated_headers_are_joined_and_cookies_as_cookies_are():
    headers = Headers.of([(b"accept", b"a"), (b"accept", b"b"), (b"cookie", b"c=1"), (b"cookie", b"d=2")])
    assert headers == {b"accept": b"a, b", b"cookie": b"c=1; d=2"}
    assert list(headers.conflicts) == []


def test_a_protocol_header_repeated_with_the_same_value_is_that_value():
    headers = Headers.of([(b"mcp-name", b"a"), (b"mcp-name", b" a ")])
    assert headers[b"mcp-name"] == b"a"
    assert list(headers.conflicts) == []


def test_a_protocol_header_repeated_with_another_value_is_a_conflict():
    headers = Headers.of([(b"mcp-name", b"a"), (b"mcp-param-x", b"1"), (b"mcp-name", b"b"), (b"mcp-param-x", b"1")])
    assert list(headers.conflicts) == [b"mcp-name"]


def test_a_shown_value_is_bounded():
    assert shown("short") == "'short'"
    assert len(shown("x" * 10_000)) == 101
    assert shown(10**5000).startswith("of 16610 bits")
