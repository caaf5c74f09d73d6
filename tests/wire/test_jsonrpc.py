"""Envelopes: ids kept exactly, what is no message answered, every byte bounded."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from mcprelay.wire import jsonrpc
from mcprelay.wire.jsonrpc import Envelope, Malformed

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("request_id", [0, 1, -5, 2**80, "1", "", "ä"])
def test_an_id_comes_back_exactly_as_it_came(request_id: int | str) -> None:
    message = jsonrpc.parse(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "m"}).encode())

    assert isinstance(message, Envelope)
    assert message.id == request_id
    assert type(message.id) is type(request_id)
    assert json.loads(jsonrpc.response(request_id, b"{}")) == {"jsonrpc": "2.0", "id": request_id, "result": {}}


@pytest.mark.parametrize("illegal", ["null", "1.5", "1.0", "{}", "[]", "true"])
def test_what_is_no_id_is_an_invalid_request_and_never_a_notification(illegal: str) -> None:
    message = jsonrpc.parse(f'{{"jsonrpc":"2.0","id":{illegal},"method":"tools/list"}}'.encode())

    assert isinstance(message, Malformed)
    assert message.code == jsonrpc.INVALID_REQUEST
    assert "id" not in json.loads(message.answer())


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"{not json}", jsonrpc.PARSE_ERROR),
        (b"", jsonrpc.PARSE_ERROR),
        (b"\xff\xfe", jsonrpc.PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":NaN}}', jsonrpc.PARSE_ERROR),
        (b"[]", jsonrpc.INVALID_REQUEST),
        (b"3", jsonrpc.INVALID_REQUEST),
        (b'{"id":1,"method":"m"}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"1.0","id":1,"method":"m"}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","result":{}}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","result":{}}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":"x","message":"m"}}', jsonrpc.INVALID_REQUEST),
    ],
)
def test_what_is_no_message_gets_the_code_that_says_why(data: bytes, code: int) -> None:
    message = jsonrpc.parse(data)

    assert isinstance(message, Malformed)
    assert message.code == code


def test_a_malformed_request_with_a_good_id_is_answered_under_that_id() -> None:
    message = jsonrpc.parse(b'{"jsonrpc":"2.0","id":"a","method":7}')

    assert isinstance(message, Malformed)
    assert json.loads(message.answer())["id"] == "a"


def test_a_request_that_is_no_json_is_answered_under_its_id_if_that_can_be_read() -> None:
    message = jsonrpc.parse(b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":NaN}}')

    assert isinstance(message, Malformed)
    answer = json.loads(message.answer())
    assert (answer["id"], answer["error"]["code"]) == ("a", jsonrpc.PARSE_ERROR)


@pytest.mark.parametrize("body", [b'"result":NaN', b'"result":{},"error":{"code":1,"message":"m"}', b'"error":7'])
def test_a_malformed_answer_is_never_answered_under_its_id(body: bytes) -> None:
    message = jsonrpc.parse(b'{"jsonrpc":"2.0","id":4,%b}' % body)

    assert isinstance(message, Malformed)
    assert message.id == 4
    assert "id" not in json.loads(message.answer())


def test_an_error_with_a_null_id_is_a_response_without_an_id() -> None:
    message = jsonrpc.parse(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}')

    assert isinstance(message, Envelope)
    assert message.is_response
    assert message.id is UNSET


def test_nesting_is_counted_outside_of_strings_and_bounded_by_name() -> None:
    deep = b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + b'{"a":' * 100 + b"1" + b"}" * 100 + b"}"
    brackets = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": '["{' * 500}}).encode()
    wide = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": [[]] * 500}}).encode()

    refused = jsonrpc.parse(deep)
    assert isinstance(refused, Malformed)
    assert "depth=100" in refused.reason
    assert isinstance(jsonrpc.parse(deep, depth=101), Envelope)
    assert isinstance(jsonrpc.parse(brackets), Envelope)
    assert isinstance(jsonrpc.parse(wide), Envelope)


@pytest.mark.parametrize("ending", [b"", b"\\", b'"'])
def test_the_depth_is_counted_in_linear_time_whatever_is_in_a_string(ending: bytes) -> None:
    text = b"[" + b"[]," * 101 + b'"' + b'\\"' * 500_000 + ending  # hours, if each quote were tried as a beginning

    assert not jsonrpc.too_deep(text, 100)


def test_a_batch_is_its_messages_in_order_each_good_or_bad() -> None:
    batch = jsonrpc.parse_batch(b'[{"jsonrpc":"2.0","id":1,"method":"a"}, 7, {"jsonrpc":"2.0","method":"b"}]')

    assert isinstance(batch, list)
    assert [type(message) for message in batch] == [Envelope, Malformed, Envelope]
    assert jsonrpc.is_batch(b"  [1]")
    assert not jsonrpc.is_batch(b'{"a":[]}')


@pytest.mark.parametrize("data", [b"[]", b"[1", b"[" * 200, b"[" * 100_000 + b"]" * 100_000])
def test_an_empty_broken_or_very_deep_batch_is_malformed(data: bytes) -> None:
    assert isinstance(jsonrpc.parse_batch(data), Malformed)


def test_a_message_of_a_batch_that_nests_too_deep_costs_the_others_nothing() -> None:
    deep = b'{"jsonrpc":"2.0","id":2,"result":{"a":%b}}' % (b"[" * 200 + b"]" * 200)
    batch = jsonrpc.parse_batch(b'[{"jsonrpc":"2.0","id":1,"result":{}},%b]' % deep)

    assert isinstance(batch, list)
    good, bad = batch
    assert isinstance(good, Envelope)
    assert isinstance(bad, Malformed)
    assert (bad.id, bad.role) == (2, "response")
    assert "depth=100" in bad.reason


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [1.0, float("nan")]}, "$.a[1]"),
        (float("inf"), "$"),
        ({"a": {"b": -float("inf")}}, "$.a.b"),
        ({"a": [1, "x", None]}, None),
    ],
)
def test_a_number_that_json_cannot_carry_is_found_by_its_path(value: object, path: str | None) -> None:
    assert jsonrpc.non_finite(value) == path


def test_members_are_put_in_front_of_any_object() -> None:
    assert jsonrpc.splice(b"{}", b'"a":1') == b'{"a":1}'
    assert json.loads(jsonrpc.splice(b'{"b":2}', b'"a":1')) == {"a": 1, "b": 2}


@given(st.integers() | st.text().filter(lambda text: text.isprintable()), st.text(), json_values)
def test_what_is_encoded_is_parsed_to_the_same(request_id: int | str, method: str, value: object) -> None:
    message = jsonrpc.parse(jsonrpc.request(request_id, method, jsonrpc.encode({"v": value})))

    assert isinstance(message, Envelope)
    assert (message.id, message.method) == (request_id, method)
    assert isinstance(message.params, msgspec.Raw)
    assert json.loads(bytes(message.params)) == json.loads(json.dumps({"v": value}))


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(data: bytes) -> None:
    assert isinstance(jsonrpc.parse(data), (Envelope, Malformed))
    assert isinstance(jsonrpc.parse_batch(data), (list, Malformed))


def test_an_error_carries_any_data_and_an_id_only_when_there_is_one() -> None:
    assert json.loads(jsonrpc.refusal(None, -1, "m")) == {"jsonrpc": "2.0", "error": {"code": -1, "message": "m"}}
    assert json.loads(jsonrpc.refusal("x", -1, "m", {"a": 1}))["error"]["data"] == {"a": 1}


def test_a_notification_without_params_leaves_them_out() -> None:
    assert json.loads(jsonrpc.notification("n")) == {"jsonrpc": "2.0", "method": "n"}
    assert json.loads(jsonrpc.notification("n", b'{"a":1}'))["params"] == {"a": 1}


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', "request"),
        (b'{"jsonrpc":"2.0","method":"notifications/x"}', "notification"),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', "response"),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}', "response"),
    ],
)
def test_a_message_is_of_exactly_one_kind(data: bytes, kind: str) -> None:
    message = jsonrpc.parse(data)
    assert isinstance(message, jsonrpc.Envelope)
    kinds = {"request": message.is_request, "notification": message.is_notification, "response": message.is_response}
    assert [name for name, holds in kinds.items() if holds] == [kind]


@example(depth=7, kinds=[True] * 41)
@given(depth=st.integers(1, 40), kinds=st.lists(st.booleans(), min_size=41, max_size=41))
def test_the_shortest_text_that_nests_too_deep_is_found_and_one_level_less_is_not(depth, kinds):
    shortest = [(b"[", b"]") if kind else (b'{"":', b"}") for kind in kinds[: depth + 1]]
    deep = b"".join(opens for opens, _ in shortest) + b"".join(closes for _, closes in reversed(shortest))
    found = jsonrpc.parse(deep.replace(b'{"":}', b"{}"), depth=depth)
    assert f"depth={depth}" in found.reason
    assert "depth=" not in jsonrpc.parse(deep.replace(b'{"":}', b"{}"), depth=depth + 1).reason
