"""How large a regular expression is, before it is compiled."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.wire.automaton import girth
from mcprelay.wire.pattern import PATTERN_BYTES, runnable

FREE = 1 << 60


@pytest.mark.parametrize("pattern", [r"\w{@}", "a{@}", "(ab|c){@}", "[a-z]{1,@}", ".{@,}", "(?:(?<n>a)b){@}"])
def test_repeating_multiplies(pattern):
    once, ten, hundred = (girth(pattern.replace("@", number), most=FREE) for number in ("10", "100", "1000"))
    assert 8 < (hundred - once) / (ten - once) < 12


def test_repetitions_inside_each_other_multiply_and_stop_growing():
    assert girth("(a{10}){10}", most=FREE) < girth("((a{10}){10}){10}", most=FREE)
    assert girth("(" * 30 + "a" + "{999}){999}" * 15, most=FREE) <= FREE
    assert girth("a{99999999999999999999}", most=1_000) == girth("", most=0) + 1_000


def test_larger_classes_are_told_apart():
    sizes = [girth(pattern, most=FREE) for pattern in ("a", r"\d", r"\s", ".", r"\p{L}")]
    assert all(one < other for one, other in pairwise(sizes))
    assert (
        girth("[a-z]", most=FREE)
        < girth("[à-ü]", most=FREE)
        < girth("[^a-z]", most=FREE)
        < girth(r"[\p{L}]", most=FREE)
    )
    assert girth("é", most=FREE) > girth("e", most=FREE)
    assert girth("a+", most=FREE) > girth("a", most=FREE)


@given(st.text() | st.text("(){}[]^\\pw?*+,019a|<:", max_size=60))
def test_whatever_the_text_is_there_is_an_estimate(pattern):
    size = girth(pattern, most=FREE)
    assert size >= girth("", most=FREE)
    assert girth(pattern, most=5) <= girth("", most=5) + 5


@pytest.mark.parametrize(
    "pattern", ["[" * 50_000, "[" * 50_000 + "\\", "\\p{" * 50_000, "(?<a" * 50_000, "a{1" * 50_000]
)
def test_estimating_takes_one_look_at_each_character(pattern):
    girth(pattern, most=FREE)  # in the square of it, this would be minutes


def test_what_the_engine_cannot_take_is_estimated_beyond_its_bound():
    for pattern in (r"\w{5000}", "(a{100}){100}", r"\p{L}{100}"):
        assert not runnable(pattern)
        assert girth(pattern, most=FREE) > PATTERN_BYTES
