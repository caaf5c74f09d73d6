"""What changed between two definitions, for a person who decides."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from mcprelay.relay.difference import differences
from mcprelay.relay.pins import define

BASE = {
    "name": "t",
    "description": "Search issues in a repository.",
    "inputSchema": {"type": "object", "properties": {"q": {"enum": ["a", "b"]}}, "allOf": [{"minProperties": 1}]},
}


def changed(**change):
    return differences(define(BASE), define({**BASE, **change}))


def schema(**change):
    return changed(inputSchema={**BASE["inputSchema"], **change})


def test_the_same_in_another_order_is_no_change():
    assert changed(inputSchema=dict(reversed(BASE["inputSchema"].items()))) == []


@pytest.mark.parametrize(
    ("found", "path", "before", "after"),
    [
        (changed(title="T"), "title", None, "T"),
        (changed(name="u"), "name", "t", "u"),
        (schema(properties={}), "inputSchema.properties.q", {"enum": ["a", "b"]}, UNSET),
        (schema(properties={"q": {"enum": ["a", "b"], "x y": 1}}), 'inputSchema.properties.q["x y"]', UNSET, 1),
        (schema(properties={"q": {"enum": ["b", "a"]}}), "inputSchema.properties.q.enum", ["a", "b"], ["b", "a"]),
        (schema(allOf=[{"minProperties": True}]), "inputSchema.allOf[0].minProperties", 1, True),
        (schema(allOf=[{"minProperties": 1}, {}]), "inputSchema.allOf[1]", UNSET, {}),
        (schema(allOf=[]), "inputSchema.allOf", [{"minProperties": 1}], []),
        (schema(allOf={}), "inputSchema.allOf", [{"minProperties": 1}], {}),
    ],
)
def test_a_change_is_told_at_its_place(found, path, before, after):
    (change,) = found
    assert (change.path, change.before, change.after) == (path, before, after)


def test_a_change_in_a_long_text_is_shown_with_a_little_around_it():
    before = define({"name": "t", "description": "a" * 500 + "OLD" + "b" * 500})
    after = define({"name": "t", "description": "a" * 500 + "NEW" + "b" * 500})
    (change,) = differences(before, after)
    assert change.lines() == ("description", f"  - …{'a' * 30}OLD{'b' * 30}…", f"  + …{'a' * 30}NEW{'b' * 30}…")


def test_a_change_shows_what_cannot_be_seen():
    (change,) = changed(description="Search issues in a repository\u200b.")
    assert change.lines()[2] == "  + Search issues in a repository⟨U+200B ZERO WIDTH SPACE⟩."
    (path,) = schema(properties={"q": {"enum": ["a", "b"]}, "\x1b[2J": 1})
    assert "\x1b" not in "".join(path.lines())


def test_a_change_over_several_lines_stays_below_its_place():
    (change,) = changed(description="one\ntwo")
    assert [line[:2] for line in change.lines()[1:]] == ["  "] * 3


def test_a_change_too_long_for_a_terminal_says_how_long_it_is():
    (change,) = changed(title="x" * 5_000)
    assert change.lines()[2].endswith("… and 1,000 characters more")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 0.5, "", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(json_values, json_values)
def test_there_is_a_difference_exactly_where_the_digests_differ(one, other):
    before, after = (define({"name": "t", "inputSchema": {"x": value}}) for value in (one, other))
    found = differences(before, after)
    assert (found == []) == (before.digest == after.digest)
    assert all(change.lines() for change in found)
