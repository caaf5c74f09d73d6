"""What every sentence of `client/failure.py` says of repeating is what `may_have_run` says to a program."""

import msgspec
import pytest

from mcprelay.client import failure
from mcprelay.client.call import Call
from mcprelay.client.retry import Retry
from mcprelay.client.setting import DEFAULTS
from mcprelay.core.peer import Garbled
from mcprelay.errors import CallFailed, Evidence
from mcprelay.wire.jsonrpc import ErrorObject

RAN = ("may have been carried out", "most likely carried out", "the server has begun with the call")
SAFE = ("safe to try again", "carried nothing of it out")
EVIDENCE = (Evidence.NOT_SENT, Evidence.MAYBE_SENT, Evidence.ANSWERED)
STATUSES = (302, 400, 401, 403, 404, 405, 407, 408, 409, 413, 429, 500, 501, 502, 503, 504, 520)
CODES = (-32700, -32600, -32601, -32602, -32603, -32000, -32042, 42)
UNREAD = ErrorObject(-32700, "not JSON")
PAGE = {"content-type": "text/html"}
MADE = {
    **{f"expired, {one}": lambda call, one=one: failure.expired(call, one) for one in EVIDENCE},
    **{f"lost, {one}": lambda call, one=one: failure.lost(call, one, "it ended") for one in EVIDENCE},
    **{f"too long, {one}": lambda call, one=one: failure.too_long(call, "depth", 5, evidence=one) for one in EVIDENCE},
    **{f"HTTP {one}": lambda call, one=one: failure.http(call, one, {}, b"oops") for one in STATUSES},
    **{f"page {one}": lambda call, one=one: failure.http(call, one, PAGE, b"<html>") for one in STATUSES},
    **{f"code {one}": lambda call, one=one: failure.remote(call, ErrorObject(one, "no")) for one in CODES},
    **{
        f"code {one}, HTTP 503": lambda call, one=one: failure.remote(call, ErrorObject(one, "no"), status=503)
        for one in CODES
    },
    "unconnected": lambda call: failure.unconnected(call, "nobody listens"),
    "too many": lambda call: failure.too_many(call, "pending_calls", 5),
    "invalid": lambda call: failure.invalid(call, "no message", b"<html>"),
    "garbled": lambda call: failure.garbled(call, Garbled(1, UNREAD), b"{", settings=DEFAULTS),
    "deep": lambda call: failure.garbled(call, Garbled(1, UNREAD, deep=True), b"{", settings=DEFAULTS),
    "crowded": lambda call: failure.garbled(call, Garbled(1, UNREAD, crowded=True), b"{", settings=DEFAULTS),
    "unsupported": lambda call: failure.unsupported(call, ["1"], ["2"]),
}
EARLIER = {
    "at once": {},
    "once refused": {"refused": True},
    "once begun": {"begun": True},
    "once refused, once begun": {"refused": True, "begun": True},
}
TRIED = Retry(attempts=3)


def agrees(error: CallFailed) -> bool:
    """Whether the text and the flag say the same, and the text no more than that."""
    ran, safe = (any(words in str(error) for words in said) for said in (RAN, SAFE))
    return ran is error.may_have_run and not (safe and ran)


@pytest.mark.parametrize("earlier", list(EARLIER))
@pytest.mark.parametrize("made", list(MADE))
def test_the_text_of_a_call_that_failed_says_what_its_flag_does(made, earlier):
    call = Call("tools/call", name="pay", retry=TRIED, **EARLIER[earlier])
    error = MADE[made](call)
    failure.note_earlier(error, call)
    failure.note_attempts(error, call, 2)
    assert agrees(error), (str(error), error.may_have_run)


@pytest.mark.parametrize("earlier", list(EARLIER))
@pytest.mark.parametrize("made", list(MADE))
@pytest.mark.parametrize("greeting", sorted(failure.GREETINGS))
def test_a_greeting_that_failed_says_of_the_call_that_waits_for_it_what_its_flag_does(made, earlier, greeting):
    call = Call("tools/call", name="pay", retry=TRIED, **EARLIER[earlier])
    error = failure.unmet(MADE[made](Call(greeting)))
    failure.note_earlier(error, call)
    assert agrees(error), (str(error), error.may_have_run)
    assert error.may_have_run is call.begun


def test_a_question_that_is_not_answered_says_what_its_flag_does():
    call = Call("tools/call", name="pay", unanswered=("on_elicit=", ValueError("no")))
    for code in CODES:
        assert agrees(failure.remote(call, ErrorObject(code, "no")))


def test_capabilities_that_are_missing_say_what_their_flag_does():
    data = msgspec.Raw(b'{"requiredCapabilities":{"elicitation":{}}}')
    for code in CODES:
        assert agrees(failure.remote(Call("tools/call", name="pay"), ErrorObject(code, "no", data)))
