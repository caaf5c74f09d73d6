"""The ladder between the eras, as a table: what each answer means, without any wire."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from mcprelay import revisions
from mcprelay.core import probe
from mcprelay.core.probe import Step
from mcprelay.revisions import NEWEST, NEWEST_HANDSHAKE, Era
from mcprelay.wire.jsonrpc import ErrorObject

ALL = tuple(revisions.ALL.values())
MODERN_ONLY = (NEWEST,)
OLDER = tuple(revisions.of_era(Era.HANDSHAKE))


def error(code, data=UNSET):
    return ErrorObject(code, "no", data if data is UNSET else Raw(msgspec.json.encode(data)))


def unsupported(*names):
    return error(-32022, {"supported": list(names), "requested": NEWEST.name})


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32700, -32603, -32000, -32002, 0, 1])
def test_any_other_error_to_a_probe_is_an_older_server(code):
    step = probe.after_error(error(code), sent=NEWEST, offered=ALL, probe=True)
    assert step == probe.Next(Step.HANDSHAKE, NEWEST_HANDSHAKE)
    assert probe.after_error(error(code), sent=NEWEST, offered=MODERN_ONLY, probe=True).step is Step.SURFACE


@pytest.mark.parametrize("status", [400, 404, 405, 406, 415])
def test_an_error_that_is_not_recognized_with_a_status_of_another_wire_is_an_older_server(status):
    assert probe.after_error(error(-32600), sent=NEWEST, offered=ALL, status=status).step is Step.HANDSHAKE
    assert probe.after_status(status, offered=ALL).step is Step.HANDSHAKE


@pytest.mark.parametrize("status", [401, 403, 407, 408, 413, 429, 500, 502, 503])
def test_other_statuses_say_nothing_about_the_era(status):
    assert probe.after_error(error(-32600), sent=NEWEST, offered=ALL, status=status) is probe.SURFACE
    assert probe.after_status(status, offered=ALL) is probe.SURFACE


@pytest.mark.parametrize("status", [409, 410, 422, 501])
def test_what_any_server_may_say_of_its_work_is_settled_by_asking(status):
    assert probe.after_error(error(-32600), sent=NEWEST, offered=ALL, status=status).step is Step.ASK
    assert probe.after_status(status, offered=ALL).step is Step.ASK
    assert probe.after_status(status, offered=ALL, probe=True).step is Step.HANDSHAKE  # nobody works on this


@pytest.mark.parametrize("failed", [-32602, -32020, -32021, -32022])
def test_with_success_the_error_may_be_of_either_era(failed):
    assert probe.after_error(error(failed), sent=NEWEST, offered=ALL, status=200).step is Step.ASK


def test_a_list_of_revisions_speaks_for_itself_whatever_the_status():
    for status in (None, 200, 400, 500):
        assert probe.after_error(unsupported(NEWEST.name), sent=NEWEST, offered=ALL, status=status).step is Step.REPEAT


@pytest.mark.parametrize(("code", "status"), [(-32020, 400), (-32021, 400), (-32601, 404)])
def test_a_recognized_error_is_surfaced(code, status):
    assert probe.after_error(error(code), sent=NEWEST, offered=ALL, status=status) is probe.SURFACE
    assert probe.is_modern(error(code), status)


def test_a_supported_revision_is_spoken_and_the_same_one_only_once_more():
    assert probe.after_error(unsupported(NEWEST.name), sent=NEWEST, offered=ALL).step is Step.REPEAT
    again = probe.after_error(unsupported(NEWEST.name), sent=NEWEST, offered=ALL, repeated=True)
    assert again == probe.Next(Step.UNSUPPORTED, None, (NEWEST.name,))


def test_an_older_revision_that_is_named_is_greeted_and_another_is_not():
    step = probe.after_error(unsupported("2025-03-26", "2025-06-18"), sent=NEWEST, offered=ALL)
    assert (step.step, step.revision.name) == (Step.HANDSHAKE, "2025-06-18")
    assert probe.after_error(unsupported("2025-06-18"), sent=NEWEST, offered=MODERN_ONLY).step is Step.UNSUPPORTED


@given(
    st.one_of(
        st.none(),
        st.integers(),
        st.text(),
        st.lists(st.one_of(st.integers(), st.text())),
        st.dictionaries(st.text(), st.text()),
    )
)
def test_what_a_server_calls_supported_may_be_anything(data):
    for wrapped in (data, {"supported": data}):
        step = probe.after_error(error(-32022, wrapped), sent=NEWEST, offered=ALL)
        assert step.step in (Step.UNSUPPORTED, Step.REPEAT, Step.HANDSHAKE)
        assert all(isinstance(name, str) for name in step.supported)


def test_a_discovery_names_what_is_spoken():
    assert probe.after_discover(["x", NEWEST.name], offered=ALL).revision is NEWEST
    assert probe.after_discover(["2025-06-18"], offered=ALL).step is Step.HANDSHAKE
    assert probe.after_discover([], offered=ALL).step is Step.UNSUPPORTED
    assert probe.after_discover([NEWEST.name], offered=OLDER).step is Step.UNSUPPORTED


def test_a_handshake_fixes_a_revision_that_we_have():
    assert probe.after_initialize("2025-03-26", offered=ALL).revision.name == "2025-03-26"
    for name in ("1999-01-01", NEWEST.name, ""):
        assert probe.after_initialize(name, offered=ALL).step is Step.UNSUPPORTED


@pytest.mark.parametrize(
    ("status", "step"),
    [
        (400, Step.PAIR),
        (404, Step.PAIR),
        (405, Step.PAIR),
        (406, Step.SURFACE),
        (200, Step.SURFACE),
        (500, Step.SURFACE),
    ],
)
def test_a_refused_greeting_may_mean_the_pair(status, step):
    refused = probe.after_initialize_refused(None, status=status, proposed=NEWEST_HANDSHAKE, offered=ALL)
    assert refused.step is step
    only = probe.after_initialize_refused(None, status=status, proposed=NEWEST_HANDSHAKE, offered=(NEWEST_HANDSHAKE,))
    assert only.step is Step.SURFACE  # where the oldest revision is not offered, its wire is not opened


def test_a_greeting_that_a_newer_server_refuses_is_not_the_pair():
    refused = probe.after_initialize_refused(error(-32601), status=404, proposed=NEWEST_HANDSHAKE, offered=ALL)
    assert refused.step is Step.SURFACE
    refused = probe.after_initialize_refused(
        unsupported(NEWEST.name), status=400, proposed=NEWEST_HANDSHAKE, offered=ALL
    )
    assert (refused.step, refused.revision) == (Step.REPEAT, NEWEST)


@pytest.mark.parametrize("code", [-32602, -32600, -32700, -32603, -32000, -32001, -32020, -32022, -32099, 7])
def test_with_success_an_error_may_be_what_came_of_the_work(code):
    assert not probe.proves_refusal(error(code), 200)
    assert not probe.proves_refusal(error(code), None)


@pytest.mark.parametrize("status", [None, 200, 400])
def test_a_method_or_a_revision_that_there_is_not_was_not_carried_out(status):
    assert probe.proves_refusal(error(-32601), status)
    assert probe.proves_refusal(unsupported("2025-06-18"), status)


@pytest.mark.parametrize("status", [400, 404, 405, 406, 415])
def test_a_status_that_refuses_the_request_as_such_proves_that_nothing_ran(status):
    for refused in (None, error(-32600), error(-32602), error(-32000)):
        assert probe.proves_refusal(refused, status)
    for failed in (error(-32603), error(7)):
        assert not probe.proves_refusal(failed, status)


@pytest.mark.parametrize("status", [408, 409, 410, 413, 422, 429, 500, 501, 502, 503, 504])
def test_any_other_status_may_come_after_the_work(status):
    assert not probe.proves_refusal(None, status)
    assert not probe.proves_refusal(error(-32601), status)


def test_an_error_with_another_failing_status_is_surfaced():
    assert probe.after_error(error(-32603), sent=NEWEST, offered=ALL, status=500) is probe.SURFACE


def test_an_answer_that_is_no_discovery_is_an_older_servers():
    assert probe.after_foreign(ALL) == probe.Next(Step.HANDSHAKE, NEWEST_HANDSHAKE)
    assert probe.after_foreign(MODERN_ONLY) is probe.SURFACE


def test_an_unsupported_revision_is_told_apart():
    assert probe.is_unsupported(unsupported())
    assert not probe.is_unsupported(error(-32601))


def test_a_revision_list_that_is_no_object_names_nothing():
    assert probe.after_error(error(-32022), sent=NEWEST, offered=ALL).supported == ()
    for data in (7, "x", ["2025-06-18"], None):
        assert probe.after_error(error(-32022, data), sent=NEWEST, offered=ALL).supported == ()
