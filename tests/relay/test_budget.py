"""Limits have one name wherever they are hit, and accounts hold what was shown."""

import pytest

from mcprelay.client.setting import DEFAULTS, Settings
from mcprelay.relay import Limits, ResultTooLarge
from mcprelay.relay.budget import NAMES, Ledger

WAITS_AND_SHELVES = {
    "request_timeout",  # `timeout` of the server
    "connect_timeout",
    "probe_timeout",
    "close_timeout",
    "reconnections",  # the relay never gives up to listen
    "cache_entries",  # the relay keeps lists itself
    "cache_bytes",
}


def test_every_limit_of_a_client_is_a_setting_of_its_server():
    assert set(Settings.__struct_fields__) - WAITS_AND_SHELVES == set(NAMES)
    assert set(NAMES.values()) <= set(Limits.__struct_fields__)


def test_a_clients_limits_are_its_defaults_but_for_those_that_the_relay_sets():
    own = {"list_items": 1_000, "response_values": 1_000_000}
    assert Limits().client == {name: getattr(DEFAULTS, name) for name in NAMES} | own
    assert Limits(message_bytes=5).client["list_bytes"] == Limits(message_bytes=5).client["response_bytes"] == 5


def test_an_account_holds_what_was_shown_and_a_refusal_takes_nothing():
    ledger = Ledger()
    assert ledger.spent() == (0, 0)
    limits = Limits(run_bytes=10, run_tokens=5)
    ledger.spend("a", size=4, tokens=2, limits=limits)
    ledger.spend("b", size=6, tokens=3, limits=limits)
    for size, tokens, limit in ((1, 0, "run_bytes"), (0, 1, "run_tokens")):
        with pytest.raises(ResultTooLarge) as refused:
            ledger.spend("a", size=size, tokens=tokens, limits=limits)
        assert (refused.value.limit, refused.value.actual) == (limit, 11 if size else 6)
    assert ledger.spent() == (10, 5)
    assert (ledger.spent("a"), ledger.spent("b")) == ((4, 2), (6, 3))
