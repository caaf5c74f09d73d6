"""What is kept is bounded in number and in bytes, whatever a server makes of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.relay.kept import Kept


def test_what_was_put_first_goes_first():
    kept = Kept(entries=2)
    for key in "abc":
        kept.put(key, key.upper(), size=1)
    assert [kept.get(key) for key in "abc"] == [None, "B", "C"]


def test_what_is_too_large_is_not_kept_and_costs_the_others_their_place_alone():
    kept = Kept(entries=10, size=10)
    kept.put("a", 1, size=11)
    assert kept.get("a") is None
    kept.put("b", 2, size=10)
    assert kept.get("b") == 2
    kept.put("b", 3, size=1)
    assert kept.get("b") == 3
    kept.drop("b")
    kept.drop("b")
    assert len(kept) == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 12))))
def test_there_is_never_more_than_room(puts):
    kept = Kept(entries=3, size=10)
    sizes = {}
    for key, size in puts:
        kept.put(key, size, size=size)
        sizes[key] = size
        held = [key for key in sizes if kept.get(key) is not None]
        assert len(held) == len(kept) <= 3
        assert sum(kept.get(key) for key in held) <= 10
        assert (kept.get(key) == size) is (size <= 10)


@pytest.mark.parametrize("entries", [1, 3])
def test_one_that_is_put_again_takes_no_second_place(entries):
    kept = Kept(entries=entries, size=10)
    for value in range(5):
        kept.put("a", value, size=6)
        assert (kept.get("a"), len(kept)) == (value, 1)
