"""What a message that cannot be parsed says of itself: found where it stands plainly, and nowhere else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.wire import jsonrpc
from mcprelay.wire.jsonrpc import Malformed
from mcprelay.wire.salvage import END, LOOK, Salvage, of_ends, salvage

BROKEN = [
    b"NaN",
    b"[1, -Infinity]",
    b'{"text":"\\ud800"}',
    b'{"text":"\xed\xa0\x80"}',
    b'{"text":"\\q"}',
    b'{"text":"a\tb\x00"}',
    b"[1,]",
    b"{'a': 1}",
    b"undefined",
    b"\xff",
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("result", BROKEN)
@pytest.mark.parametrize(
    "frame", [b'{"jsonrpc":"2.0","id":7,"result":%b}', b'{"result":%b, "jsonrpc":"2.0" , "id" : 7 }']
)
def test_the_id_of_a_broken_answer_is_found_before_and_after_what_is_broken(frame: bytes, result: bytes) -> None:
    assert salvage(frame.replace(b"%b", result)) == Salvage(7, "response")


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"id":"a","method":"m","params":NaN}', Salvage("a", "request")),
        (b'\xef\xbb\xbf{"id":1,"method":"m"}', Salvage(1, "request")),
        (b'{"id":1,"error":{"code":-1,"message":"\xff"}}', Salvage(1, "response")),
        (b'{"jsonrpc":"2.0","id":12,"result":{"id":7,"text":"cut o', Salvage(12, "response")),
        (b'{"id":NaN,"result":1}', Salvage(None, "response")),
        (b'{"id":1,"id":2,"result":NaN}', Salvage(None, "response")),
        (b'{"id":[1],"result":NaN}', Salvage(None, "response")),
        (b'{"result":{"id":7,"x":NaN}}', Salvage(None, "response")),
        (b'{"x":"\\"id\\":7","result":NaN}', Salvage(None, "response")),
        (b'{"jsonrpc":"2.0","id":123', Salvage()),
        (b'[{"id":1}]', Salvage()),
        (b"Welcome!", Salvage()),
        (b"", Salvage()),
    ],
)
def test_only_a_plain_single_id_of_the_outermost_object_counts(data: bytes, found: Salvage) -> None:
    assert salvage(data) == found


def test_an_answer_that_nests_too_deep_is_known_by_its_id() -> None:
    message = jsonrpc.parse(b'{"result":' + b'{"a":' * 200 + b"1" + b"}" * 200 + b',"id":3}')

    assert isinstance(message, Malformed)
    assert message.id == 3
    assert "depth=100" in message.reason


def test_of_a_long_message_the_end_is_seen_too() -> None:
    broken = b'{"result":{"text":"' + b"x" * LOOK + b'","id":4,"n":NaN}%b'

    assert salvage(broken % b',"jsonrpc":"2.0","id":5}') == Salvage(5, "response")
    assert salvage(broken % b',"id":5,"jsonrpc":"2.0","more":true}\n') == Salvage(5, "response")
    assert salvage(broken % (b',"id":5,"more":"' + b"y" * END + b'"}')) == Salvage(None, "response")
    assert salvage(broken % b"}") == Salvage(None, "response")


def test_of_a_message_that_was_discarded_both_ends_are_enough() -> None:
    assert of_ends(b'{"jsonrpc":"2.0","id":9,"result":{"te', b'xt"}}') == Salvage(9, "response")
    assert of_ends(b'{"result":{"te', b'xt"},"id":9}') == Salvage(9, "response")
    assert of_ends(b"", b"") == Salvage()


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_nothing_makes_it_raise(head: bytes, tail: bytes) -> None:
    of_ends(head, tail)
    of_ends(b'{"id":' + head, tail)


@given(st.integers() | st.text(), st.dictionaries(st.text(), json_values, max_size=4), st.booleans())
def test_of_what_python_writes_the_id_is_found_whatever_the_result_holds(
    request_id: int | str, result: dict[str, object], first: bool
) -> None:
    members = {"id": request_id, "result": result} if first else {"result": result, "id": request_id}

    found = salvage(json.dumps(members).encode())

    unreadable = isinstance(request_id, str) and any("\ud800" <= char <= "\udfff" for char in request_id)
    assert unreadable or found == Salvage(request_id, "response")


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":' + b"[" * 300_000,
        b'{"a":"' + b'\\"' * 150_000,
        b'{"a":' + b'"' * 300_000,
        b'{"a":{' + b'"b":"' * 60_000,
        b'"id":' * 60_000,
        b"{" + b"," * 300_000,
        b"{" + b'"a":1,' * 60_000,
    ],
)
def test_the_look_takes_one_pass_whatever_is_in_it(data: bytes) -> None:
    assert salvage(data).id is None  # minutes, if each character were tried as a beginning
