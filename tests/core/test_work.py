"""Under which id a message is answered."""

import pytest

from mcprelay.core.work import EndSession, InSession, request_id, single
from mcprelay.wire import jsonrpc


@pytest.mark.parametrize(
    ("text", "answered"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"ping"}', 7),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', None),
        (b'{"jsonrpc":"2.0","id":7,"result":{}}', None),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":NaN}', 7),
        (b'{"jsonrpc":"2.0","id":7,"result":NaN}', None),
        (b"nonsense", None),
    ],
)
def test_a_message_is_answered_under_the_id_of_a_request_as_far_as_it_can_be_read(text: bytes, answered: object):
    assert request_id(jsonrpc.parse(text)) == answered


def test_what_is_no_single_message_has_no_id():
    message = jsonrpc.parse(b'{"jsonrpc":"2.0","id":7,"method":"ping"}')
    assert request_id(None) is None
    assert single(InSession(None, "s", [message], False)) is message
    assert single(InSession(None, "s", [message], True)) is None
    assert single(EndSession(None, "s")) is None
