"""W3C trace context in `_meta`, read by its grammar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.wire.trace import KEYS, TraceContext, trace_of

PARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, None),
        ({"traceparent": PARENT}, TraceContext(PARENT)),
        ({"traceparent": PARENT, "tracestate": "a=b,c=d"}, TraceContext(PARENT, "a=b,c=d")),
        ({"traceparent": PARENT, "baggage": "k=v;p=1"}, TraceContext(PARENT, None, "k=v;p=1")),
        ({"baggage": "k=v"}, TraceContext(None, None, "k=v")),
        ({"tracestate": "a=b"}, None),
        (
            {"traceparent": "01" + PARENT[2:] + "-what-comes-later"},
            TraceContext("01" + PARENT[2:] + "-what-comes-later"),
        ),
    ],
)
def test_what_is_well_formed_is_kept(meta, expected):
    assert trace_of(meta) == expected


@pytest.mark.parametrize(
    "parent",
    [
        None,
        5,
        {},
        "",
        PARENT.upper(),
        PARENT[:-1],
        PARENT + "-extra",
        PARENT + "\n",
        "ff" + PARENT[2:],
        "00-" + "0" * 32 + PARENT[35:],
        PARENT[:36] + "0" * 16 + "-01",
        PARENT.replace("-", "_"),
    ],
)
def test_a_parent_that_is_none_is_dropped_and_its_state_with_it(parent):
    assert trace_of({"traceparent": parent, "tracestate": "a=b"}) is None
    assert trace_of({"traceparent": parent, "tracestate": "a=b", "baggage": "k=v"}) == TraceContext(baggage="k=v")


@pytest.mark.parametrize("value", [5, "", "a=b\r\nx: y", "ä=b", "x" * 513])
def test_a_state_that_is_none_is_dropped_alone(value):
    assert trace_of({"traceparent": PARENT, "tracestate": value}) == TraceContext(PARENT)


def test_baggage_is_bounded():
    assert trace_of({"baggage": "x" * 8193}) is None


ALPHABET = "0aF-=,;é \n\x00"


@given(st.dictionaries(st.sampled_from(KEYS), st.one_of(st.text(ALPHABET), st.integers(), st.none())))
def test_whatever_comes_nothing_is_raised_and_what_is_kept_is_read_as_itself(meta):
    found = trace_of(meta)
    if found is not None:
        assert trace_of(found.members()) == found
