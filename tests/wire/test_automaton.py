"""How large a regular expression is, before it is compiled."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.wire import automaton
from mcprelay.wire.automaton import girth, strain
from mcprelay.wire.pattern import PATTERN_BYTES, runnable

FREE = 1 << 60


@pytest.mark.parametrize("pattern", [r"^\w{@}", "^a{@}", "^(ab|c){@}", "^[a-z]{1,@}", "^.{@,}", "^(?:(?<n>a)b){@}"])
def test_repeating_multiplies(pattern):
    one, five, ten = (girth(pattern.replace("@", number), most=FREE) for number in ("20", "60", "110"))
    assert 2.1 < (ten - one) / (five - one) < 2.4


def test_repetitions_inside_each_other_multiply_and_stop_growing():
    assert girth("(a{10}){10}", most=FREE) < girth("((a{10}){10}){10}", most=FREE)
    assert girth("(" * 30 + "a" + "{999}){999}" * 15, most=FREE) <= FREE
    assert girth("a{99999999999999999999}", most=1_000) == girth("", most=0) + 1_000
    assert strain("a{9,99999999999999999999}$", most=FREE) > strain("a{9,999}$", most=FREE)


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
    assert girth(pattern, most=5) <= girth("", most=5) + 5 * 9
    assert 1 <= strain(pattern, most=5) <= strain(pattern, most=FREE)


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 50_000,
        ")" * 50_000,
        "(?i" * 50_000,
        "a|" * 50_000,
        "[" * 50_000,
        "[" * 50_000 + "\\",
        "\\p{" * 50_000,
        "(?<a" * 50_000,
        "a{1" * 50_000,
    ],
)
def test_estimating_takes_one_look_at_each_character(pattern, monkeypatch):
    monkeypatch.setattr(automaton, "_LONGEST", len(pattern))  # so that all of it is looked at
    girth(pattern, most=FREE)  # in the square of it, this would be minutes
    strain(pattern, most=FREE)


def test_a_pattern_too_long_to_be_looked_at_is_taken_for_the_largest():
    assert girth("[]" * 5_000, most=1_000_000) > 1_000_000
    assert strain("[]" * 5_000, most=FREE) > strain("[ab]*a[ab]{9999}c", most=FREE)


def test_what_the_engine_cannot_take_is_estimated_beyond_its_bound():
    for pattern in (r"\w{5000}", "(a{100}){100}", r"\p{L}{100}"):
        assert not runnable(pattern)
        assert girth(pattern, most=FREE) > PATTERN_BYTES


@pytest.mark.parametrize(
    ("small", "large"),
    [
        ("^a{60}", "(?i)^k{60}"),
        ("^[a-z]{60}", "(?i)^[a-z]{60}"),
        (r"^\w{60}", r"^(?i:\w{60})"),
        ("^[à-ü]{60}", "(?i)^[à-ü]{60}"),
        ("(?i)^a{60}", "(?i)^s{60}"),
        ("^a{60}", r"^\u4e2d{60}"),
        ("^a{60}", r"^\U0001F600{60}"),
        ("^a{60}", r"^\u{1F600}{60}"),
        ("[ab]{60}", "(?x)(?:[ab]{10}) {6}"),
        (r"\p{L}{2}", rf"\p{{{'_' * 70}L}}{{9}}"),
        ("^(?:[abc][def]){60}", "^([abc][def]){60}"),
        ("^(?:[abc][def]){60}", r"^\b(?:[abc][def]){60}"),
        ("^(?<n>[abc][def]){60}", "^(?<n>[abc][dé]){60}"),
        ("^([abc][def]){60}", "^([abc].){60}"),
    ],
)
def test_what_takes_more_is_estimated_at_more(small, large):
    assert girth(large, most=FREE) > 1.2 * girth(small, most=FREE)


@pytest.mark.parametrize(
    ("calm", "wild"),
    [
        ("^[ab]{400}", "[ab]{400}c"),
        ("^[ab]{1,400}$", "^[ab]*[ab]{1,400}$"),
        ("[ab]{1,400}", "[ab]{1,400}$"),
        ("^(?:ab|cd){400}$", "^(?:ab|c){400}$"),
        ("^(?:ab|cd)+[ab]{2}$", "^(?:ab|cd)+[ab]{400}$"),
        ("^[ab]{400}$", "(?m)^[ab]{400}$"),
        ("^[ab]{400}$", "(?x)^[ab]{400}$"),
        ("^[ab]{400}$", "^[ab]{400}$|[ab]{400}$"),
        ("^(?:^[ab]{400})$", "(?:a|^b)[ab]{400}$"),
        ("^[^:]*:[ab]{400}$", "^[^:]*[ab]{400}$"),
        ("^[^:]*:[ab]{400}$", "^[^:]*:*[ab]{400}$"),
        (r"^[\w.]{1,9}@[ab]{400}$", r"^[\w.@]{1,40}@[ab]{400}$"),
        (r"^\w+ [ab]{400}$", r"^\w+a[ab]{400}$"),
        (r"^\w+\.[ab]{400}$", r"^.+\.[ab]{400}$"),
        ("^[a-b]*-[ab]{400}$", "^[b-a]*-[ab]{400}$"),
        ("^[ab]*-[ab]{400}$", "^[a&&b]*-[ab]{400}$"),
        ("^[ab]*-[ab]{400}$", "^[" + "ab" * 99 + "]*-[ab]{400}$"),
        ("^(?:[a-z]{1,63}-){9}$", "^(?:[a-z]{1,63}-?){9}$"),
        ("^a?[ab]{400}$", "^(?:a-)*[ab]{400}$"),
        ("^(?:[^:]*:|[^-]*-)$", "^(?:[^:]*:|[^-]*-)[ab]{400}$"),
        ("^a{0,1}[^:]*:[ab]{4}$", "^a{0,1}[^:]*:[ab]{400}$"),
        ("^(?:a|bc)(?:[^:]*:)[ab]{4}$", "^(?:a|bc)(?:[^:]*:)[ab]{400}$"),
        ("^[ab]{0}$", "[ab]*a[ab]{400}$"),
        ("^(?:[ab]{20}){20}$", "^(?:[ab]{1,20}){20}$"),
        ("^(?:a){400}$", "^(?:|a){400}$"),
    ],
)
def test_what_may_be_in_many_places_at_once_takes_more_steps(calm, wild):
    assert strain(wild, most=FREE) > 3 * strain(calm, most=FREE)


@pytest.mark.parametrize("pattern", ["a)b", ")a", "(a", "((a", "a(?i)b", "^^a$", "(^a)|(^b$)"])
def test_what_is_no_pattern_and_what_is_rare_in_one_is_estimated(pattern):
    assert girth(pattern, most=FREE) > girth("", most=FREE)
    assert strain(pattern, most=FREE) > strain("", most=FREE)


def shaped(kind, copies):
    """Patterns that were measured to cost most for what they are."""
    return kind.replace("@", str(copies))


@pytest.mark.parametrize(
    "kind", ["[ab]*a[ab]{@}c", "^[ab]*a[ab]{@}c", "(?:a|b)*a(?:a|b){@}c", "a(?:[ab]b?){@}c", "(?:a+b+){@}c", ".*a.{@}c"]
)
@pytest.mark.parametrize("copies", [16, 64, 256, 700])
def test_steps_stand_for_the_time_that_was_measured(kind, copies):
    # each copy took some 13 ns for each character where all may be at work, and a step stands for 125
    assert strain(shaped(kind, copies), most=FREE) / 64 >= copies * 13 / 125
