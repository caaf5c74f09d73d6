"""How many values a message holds is known before any is made."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcprelay.wire import jsonrpc
from mcprelay.wire.bulk import is_crowded
from mcprelay.wire.jsonrpc import Envelope, Malformed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a,[{"\\\n'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='a,[{"\\'), inner),
)


def values_of(value):
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(values_of, inside))


def empty_in(value):
    """What counts twice."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(empty_in, inside)) if inside else int(isinstance(value, (dict, list)))


@given(JSON, st.integers(0, 30))
@example([[], []], 3)
@example(dict.fromkeys("abcde", ","), 6)
@example([{}, {}], 2)
def test_what_is_crowded_holds_more_than_allowed_and_nothing_else_does(value, most):
    text = json.dumps(value, separators=(",", ":"))
    counted = values_of(value) + empty_in(value)
    if values_of(value) > most:
        assert is_crowded(text.encode(), most)
    elif counted <= most:
        assert not is_crowded(text.encode(), most)


@pytest.mark.parametrize(
    "text", [b'"' + b",[{" * 1_000 + b'"', b'["' + b'\\",' * 1_000 + b'"]', b'"\\\\",' + b'"' + b"," * 900]
)
def test_what_stands_in_a_string_is_no_value(text):
    assert not is_crowded(text, 10)


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"0," * 1_000 + b"0]",
        b"[" + b"[]," * 1_000 + b"0]",
        b'{"a":[' + b'"b",' * 1_000 + b'"c"]}',
        b"[" * 500 + b"]" * 500,
        b'["' + b'","' * 1_000 + b'"]',
    ],
)
def test_many_small_values_are_many(text):
    assert is_crowded(text, 400)
    assert not is_crowded(text, 5_000)


def test_a_message_that_holds_too_many_values_is_not_read_and_keeps_its_id():
    text = b'{"jsonrpc":"2.0","id":7,"result":{"a":[%b0]}}' % (b"0," * 2_000)

    found = jsonrpc.parse(text, values=1_000)
    assert isinstance(found, Malformed)
    assert (found.id, found.role, found.crowded, found.reason) == (
        7, "response", True, "the message holds more than 1000 values"
    )  # fmt: skip
    assert isinstance(jsonrpc.parse(text, values=10_000), Envelope)
    assert isinstance(jsonrpc.parse(text), Envelope)


def test_the_values_of_a_batch_are_counted_together():
    batch = b"[%b]" % b",".join([b'{"jsonrpc":"2.0","id":7,"result":{"a":[0,0,0,0,0,0,0,0]}}'] * 100)

    found = jsonrpc.parse_batch(batch, values=900)
    assert isinstance(found, Malformed)
    assert found.crowded
    assert isinstance(jsonrpc.parse_batch(batch, values=9_000), list)
