"""What nests too deep is left out of a message, and nothing else is touched."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.wire import prune
from mcprelay.wire.jsonrpc import parse, too_deep
from mcprelay.wire.prune import LEFT_OUT, pruned

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


def listed(*items):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": list(items)}}).encode()


def nested(levels):
    value = "}]"
    for _ in range(levels):
        value = {'"a[': value}
    return value


@given(st.lists(JSON, max_size=4), st.integers(7, 12))
def test_what_is_left_is_as_deep_as_allowed_and_what_is_shallow_is_as_it_was(items, depth):
    data = listed(*({"name": "a", "inputSchema": item} for item in items))
    left = pruned(data, depth)
    assert not too_deep(left, depth)
    kept = json.loads(left)["result"]["tools"]
    for item, one in zip(items, kept, strict=True):
        if too_deep(json.dumps(item).encode(), depth - prune.LEVEL + 1):
            assert one == {"name": "a", "inputSchema": json.loads(LEFT_OUT)}
        else:
            assert one == {"name": "a", "inputSchema": item}


def test_any_depth_costs_its_item_alone():
    data = listed({"name": "a"}, {"name": "b", "inputSchema": nested(3)}).replace(b'"}]"', b"[" * 10**5 + b"]" * 10**5)
    left = parse(pruned(data, 100))
    assert json.loads(bytes(left.result))["tools"] == [
        {"name": "a"},
        {"name": "b", "inputSchema": json.loads(LEFT_OUT)},
    ]


@pytest.mark.parametrize("data", [b"", b"}}}}", b"[[[[[[[[", b'{"a":"[[[[[[[[', b"]" * 9 + b"[" * 9])
def test_what_is_no_json_stays_none(data):
    assert pruned(data, 7) == data


def test_what_has_too_many_brackets_to_count_is_left_alone_however_short_it_is(monkeypatch):
    data = listed({"inputSchema": nested(200), "description": "x" * 10_000})
    assert pruned(data, 100) != data
    monkeypatch.setattr(prune, "LOOK", 1000)
    assert pruned(data, 100) != data
    monkeypatch.setattr(prune, "LOOK", 300)
    assert pruned(data, 100) == data
