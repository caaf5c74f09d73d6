"""Who asked whom what, and what is still owed."""

from __future__ import annotations

import itertools
import json
import weakref
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from mcprelay.core.peer import (
    CANCELLED,
    Called,
    Cancelled,
    Dropped,
    Expired,
    Garbled,
    Lost,
    Notified,
    Peer,
    Refused,
    Rejected,
    Replied,
)
from mcprelay.errors import Evidence, LocalFault
from mcprelay.wire import jsonrpc


def peer(**options: Any) -> Peer:
    return Peer(ids=itertools.count(1), **options)


def data(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def cancelled(**params: Any) -> bytes:
    return data(method=CANCELLED, params=params)


# ------------------------------------------------------------------------------------------------------- what comes in


@pytest.mark.parametrize(
    "answer", [b'{"id":1,"result":{"x":NaN}}', b'{"result":{"text":"\\ud800"},"id":1}', b'{"jsonrpc":"2.0","id":1}']
)
def test_an_answer_that_cannot_be_read_settles_the_request_whose_id_it_has(answer: bytes) -> None:
    us = peer()
    pending, _ = us.request("a", b"{}")
    (event,) = us.receive(answer)
    assert isinstance(event, Garbled)
    assert event.pending is pending
    assert pending.evidence is Evidence.ANSWERED
    assert us.pending == {}
    assert us.receive(data(id=1, result={})) == [Dropped(1, late=False)]


def test_what_nests_too_deep_costs_a_page_its_item_and_another_answer_all_of_it() -> None:
    deep = data(id=1, result={"tools": [{"name": "a"}, {"name": "b", "x": [[[[[]]]]]}]})

    us = peer(depth=6)
    us.request("tools/list", b"{}")
    (page,) = us.receive(deep)
    assert isinstance(page, Replied)
    assert json.loads(bytes(page.result))["tools"][0] == {"name": "a"}

    us = peer(depth=6)
    us.request("a", b"{}")
    (event,) = us.receive(deep)
    assert isinstance(event, Garbled)
    assert (event.deep, event.crowded) == (True, False)


def test_an_answer_of_too_many_values_settles_its_request_and_says_so() -> None:
    us = peer(values=20)
    us.request("a", b"{}")
    (event,) = us.receive(data(id=1, result={"x": [0] * 50}))
    assert isinstance(event, Garbled)
    assert (event.deep, event.crowded) == (False, True)


def test_a_broken_request_is_answered_under_its_id_unless_that_is_in_use() -> None:
    us = peer()
    broken = b'{"jsonrpc":"2.0","id":1,"method":"m","params":NaN}'
    (event,) = us.receive(broken)
    assert isinstance(event, Rejected)
    assert json.loads(event.answer)["id"] == 1
    us.receive(data(id=1, method="ping"))
    (event,) = us.receive(broken)
    assert isinstance(event, Rejected)
    assert "id" not in json.loads(event.answer)
    assert us.in_flight.keys() == {1}


def test_of_a_message_that_was_too_long_to_read_the_ends_say_whose_it_was() -> None:
    us = peer()
    pending, _ = us.request("a", b"{}")
    asked = us.unread(b'{"jsonrpc":"2.0","id":"q","method":"m","params":{"te', b'xt"}}', "too long")
    assert isinstance(asked, Rejected)
    assert json.loads(asked.answer) == {"jsonrpc": "2.0", "id": "q", "error": {"code": -32600, "message": "too long"}}
    answered = us.unread(b'{"result":{"te', b'xt"},"id":1}', "too long")
    assert isinstance(answered, Garbled)
    assert answered.pending is pending
    unknown = us.unread(b"", b"", "too long")
    assert isinstance(unknown, Rejected)
    assert "id" not in json.loads(unknown.answer)


def test_a_request_of_the_peer_with_an_id_of_ours_settles_nothing() -> None:
    us = peer()
    pending, _ = us.request("a", b"{}")
    (event,) = us.receive(b'{"jsonrpc":"2.0","id":1,"method":"m","params":NaN}')
    assert isinstance(event, Rejected)
    assert us.pending == {1: pending}


def test_a_request_is_owed_one_answer() -> None:
    us = peer()
    assert us.receive(data(id="a", method="ping")) == [Called("a", "ping", UNSET)]
    assert json.loads(us.answer("a", b'{"x":1}')) == {"jsonrpc": "2.0", "id": "a", "result": {"x": 1}}
    assert us.answer("a", b"{}") == b""


def test_an_id_is_in_use_until_its_request_is_answered() -> None:
    us = peer()
    us.receive(data(id=1, method="ping"))
    (event,) = us.receive(data(id=1, method="ping"))
    assert type(event) is Rejected
    assert us.rejected == 1
    us.settle(1, b"answer")
    assert type(us.receive(data(id=1, method="ping"))[0]) is Called


def test_a_number_and_its_digits_are_two_ids() -> None:
    us = peer()
    us.receive(data(id=1, method="ping"))
    assert type(us.receive(data(id="1", method="ping"))[0]) is Called


def test_too_many_requests_at_once_are_told_the_limits_name() -> None:
    us = peer(concurrent_requests=1)
    us.receive(data(id=1, method="ping"))
    (event,) = us.receive(data(id=2, method="ping"))
    assert type(event) is Rejected
    answer = json.loads(event.answer)
    assert answer["id"] == 2
    assert "concurrent_requests=1" in answer["error"]["message"]


def test_a_cancelled_request_is_owed_nothing() -> None:
    us = peer()
    (call,) = us.receive(data(id=1, method="tools/call"))
    assert us.receive(cancelled(requestId=1, reason="enough")) == [Cancelled(call, "enough")]
    assert us.answer(1, b"{}") == b""
    assert us.settle(1, b"late") == b""


@pytest.mark.parametrize("params", [{"requestId": 9}, {}, {"requestId": "1"}, {"requestId": [1]}, {"requestId": None}])
def test_the_cancellation_of_what_is_unknown_or_malformed_is_ignored(params: Any) -> None:
    us = peer()
    us.receive(data(id=1, method="tools/call"))
    assert type(us.receive(cancelled(**params))[0]) is Notified
    assert us.answer(1, b"{}") != b""


def test_a_notification_is_told_with_its_params() -> None:
    (event,) = peer().receive(data(method="notifications/x", params={"a": 1}))
    assert type(event) is Notified
    assert bytes(event.params) == b'{"a": 1}'  # type: ignore[arg-type]


@pytest.mark.parametrize("nonsense", [b"", b"{", b"1", b"[]", b'{"jsonrpc":"1.0","id":1,"method":"x"}', b"\xff"])
def test_nonsense_is_an_event_with_the_answer_that_is_owed(nonsense: bytes) -> None:
    (event,) = peer().receive(nonsense)
    assert type(event) is Rejected
    assert "error" in json.loads(event.answer)


def test_a_batch_is_nonsense_unless_there_are_batches() -> None:
    both = b"[" + data(id=1, method="ping") + b"," + data(method="notifications/x") + b",1]"
    assert [type(event) for event in peer().receive(both)] == [Rejected]
    assert [type(event) for event in peer(batches=True).receive(both)] == [Called, Notified, Rejected]
    assert [type(event) for event in peer(batches=True).receive(b"[]")] == [Rejected]


@given(st.binary(max_size=200))
def test_receiving_never_raises(anything: bytes) -> None:
    for event in peer(batches=True).receive(anything):
        assert isinstance(event, Called | Notified | Rejected | Dropped)


# ------------------------------------------------------------------------------------------------------- what goes out


def test_an_answer_settles_the_request_of_its_id() -> None:
    us = peer()
    pending, message = us.request("roots/list", b"{}")
    assert json.loads(message) == {"jsonrpc": "2.0", "id": 1, "method": "roots/list", "params": {}}
    assert pending.evidence is Evidence.NOT_SENT
    (event,) = us.receive(data(id=1, result={"roots": []}))
    assert type(event) is Replied
    assert event.pending is pending
    assert pending.evidence is Evidence.ANSWERED
    assert us.pending == {}


def test_an_error_settles_it_too() -> None:
    us = peer()
    us.request("roots/list", b"{}")
    (event,) = us.receive(data(id=1, error={"code": -1, "message": "no"}))
    assert type(event) is Refused
    assert (event.error.code, event.error.message) == (-1, "no")


def test_an_answer_of_another_type_or_value_is_nobodys() -> None:
    us = peer()
    us.request("roots/list", b"{}")
    for stray in ("1", 2):
        assert us.receive(data(id=stray, result={})) == [Dropped(stray, late=False)]
    assert us.receive(data(id=None, error={"code": -1, "message": "unreadable"})) == [Dropped(None, late=False)]
    assert us.dropped == 3
    assert len(us.pending) == 1


def test_a_request_that_was_sent_is_given_up_with_a_notice_and_its_answer_is_late() -> None:
    us = peer()
    pending, _ = us.request("roots/list", b"{}")
    pending.evidence = Evidence.MAYBE_SENT
    assert json.loads(us.abandon(pending, "enough"))["params"] == {"requestId": 1, "reason": "enough"}
    assert us.abandon(pending) == b""
    assert us.receive(data(id=1, result={})) == [Dropped(1, late=True)]
    assert us.receive(data(id=1, result={})) == [Dropped(1, late=False)]


def test_a_request_that_was_not_sent_is_given_up_in_silence() -> None:
    us = peer()
    pending, _ = us.request("roots/list", b"{}")
    assert us.abandon(pending) == b""
    assert us.pending == {}


def test_what_was_given_up_is_remembered_up_to_a_bound() -> None:
    us = peer()
    for _ in range(2000):
        pending, _ = us.request("x", b"{}")
        pending.evidence = Evidence.MAYBE_SENT
        us.abandon(pending)
    assert us.receive(data(id=1, result={})) == [Dropped(1, late=False)]
    assert us.receive(data(id=2000, result={})) == [Dropped(2000, late=True)]


def test_an_id_that_is_pending_is_not_used_again() -> None:
    us = Peer(ids=iter((1, 1)))
    us.request("x", b"{}")
    with pytest.raises(LocalFault):
        us.request("x", b"{}")


# --------------------------------------------------------------------------------------------------- time, and the end


def test_a_deadline_that_passes_expires_its_request_and_no_other() -> None:
    us = peer()
    soon, _ = us.request("x", b"{}", deadline=5.0)
    us.request("x", b"{}", deadline=9.0)
    us.request("x", b"{}")
    soon.evidence = Evidence.MAYBE_SENT
    assert us.next_deadline == 5.0
    assert us.tick(4.9) == []
    (event,) = us.tick(5.0)
    assert type(event) is Expired
    assert event.pending is soon
    assert json.loads(event.notice)["method"] == CANCELLED
    assert us.next_deadline == 9.0


def test_what_is_settled_has_no_deadline_any_more() -> None:
    us = peer()
    us.request("x", b"{}", deadline=5.0)
    us.receive(data(id=1, result={}))
    assert us.next_deadline is None
    assert us.tick(99.0) == []


def test_a_deadline_can_be_moved_and_taken_away() -> None:
    us = peer()
    pending, _ = us.request("x", b"{}", deadline=5.0)
    us.extend(pending, 8.0)
    assert us.tick(7.0) == []
    us.extend(pending, None)
    assert us.next_deadline is None
    assert us.tick(99.0) == []


def test_a_reminder_keeps_nothing_of_a_request_that_was_answered() -> None:
    class Kept:
        """What a driver has noted with a request."""

    us = peer()
    first, second = us.expect("m", 5.0, Kept()), us.expect("m", 9.0, Kept())
    noted = weakref.ref(first.slot), weakref.ref(second.slot)
    assert us.next_deadline == 5.0
    for owed in (first, second):
        us.receive(jsonrpc.response(owed.id, b"{}"))
    del first, second, owed
    assert us._reminders
    assert [each() for each in noted] == [None, None]


@pytest.mark.parametrize("later", [1, 0, -1])
def test_reminders_of_settled_requests_do_not_pile_up(later: int) -> None:
    us = peer()
    for number in range(1, 1001):
        us.request("x", b"{}", deadline=5000.0 + later * number)
        us.receive(data(id=number, result={}))
    assert len(us._reminders) < 200
    assert us.next_deadline is None


class Deed(NamedTuple):
    """Something that happens to the requests of a peer: `which` of them is meant, and a time."""

    what: Literal["ask", "answer", "move", "look"]
    which: int
    time: int | None


deeds = st.builds(
    Deed, st.sampled_from(["ask", "ask", "answer", "move", "look"]), st.integers(0, 30), st.none() | st.integers(1, 40)
)


@given(st.lists(deeds, max_size=60))
def test_whatever_is_asked_answered_and_moved_in_any_order_the_nearest_deadline_is_known(happened: list[Deed]) -> None:
    us, owed, now = peer(), [], 0
    for deed in happened:
        due = None if deed.time is None else float(now + deed.time)
        if deed.what == "ask":
            owed.append(us.request("x", b"{}", deadline=due)[0])
        elif deed.what == "look":
            now += deed.time or 0
            late = {event.pending.id for event in us.tick(now) if isinstance(event, Expired)}
            assert late == {each.id for each in owed if each.deadline is not None and each.deadline <= now}
            owed = [each for each in owed if each.id not in late]
        elif owed:
            meant = owed[deed.which % len(owed)]
            if deed.what == "move":
                us.extend(meant, due)
            else:
                owed.remove(meant)
                us.receive(data(id=meant.id, result={}))
        if deed.which % 3 == 0:  # to look changes what is kept, and nothing else
            assert us.next_deadline == min((each.deadline for each in owed if each.deadline is not None), default=None)


def test_when_the_wire_is_gone_every_debt_is_settled() -> None:
    us = peer()
    us.receive(data(id=1, method="ping"))
    one, _ = us.request("x", b"{}")
    two, _ = us.request("x", b"{}", deadline=5.0)
    assert us.lost() == [Lost(one), Lost(two)]
    assert us.lost() == []
    assert us.answer(1, b"{}") == b""
    assert us.next_deadline is None
