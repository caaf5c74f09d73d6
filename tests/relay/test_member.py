"""Members whose names have become one are all kept, each under a name of its own."""

from hypothesis import given
from hypothesis import strategies as st

from mcprelay.relay.member import members

NAMES = st.sampled_from(["a", "a (2)", "a (3)", "b", "a (2) (2)"])


def test_names_that_are_different_stay_as_they_are():
    assert members([("a", 1), ("b", 2)]) == {"a": 1, "b": 2}
    assert members([]) == {}


def test_of_names_that_are_one_the_later_ones_have_numbers():
    assert members([("a", 1), ("a", 2), ("a", 3)]) == {"a": 1, "a (2)": 2, "a (3)": 3}
    assert members([("a (2)", 1), ("a", 2), ("a", 3), ("a", 4)]) == {"a (2)": 1, "a": 2, "a (3)": 3, "a (4)": 4}


@given(st.lists(NAMES, max_size=12))
def test_none_is_lost_and_their_order_is_kept(names):
    made = members((name, number) for number, name in enumerate(names))
    assert list(made.values()) == list(range(len(names)))
    assert all(own.startswith(name) for own, name in zip(made, names, strict=True))


def test_so_many_names_that_are_one_are_numbered_in_time_that_grows_with_them_alone():
    assert list(members(("a", 1) for _ in range(20_000)))[-1] == "a (20000)"
