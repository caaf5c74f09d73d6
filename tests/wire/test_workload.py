"""The work of a schema is counted before anything runs."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcprelay.wire import workload
from mcprelay.wire.automaton import strain
from mcprelay.wire.numeral import Rarity
from mcprelay.wire.pattern import LARGEST, Toll
from mcprelay.wire.reference import Document
from mcprelay.wire.workload import appraise, count, weight

LEAF = {"type": "string"}


def counted(schema, value, *, pairs, rarity=Rarity()):  # noqa: B008 - it is a value
    document = Document(schema)
    return count(document, value, pairs=pairs, tolls=appraise(document).tolls, rarity=rarity)


def test_a_boolean_schema_is_one_step():
    assert appraise(Document(True)).steps == 1
    assert counted(False, {"a": 1}, pairs=10).steps == 1


def test_every_way_to_a_schema_counts():
    schema = {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"not": LEAF}}}
    assert appraise(Document(schema)).steps == 1 + 2 + 2 + 2
    assert counted(schema, "x", pairs=100).steps == 7


def test_what_watches_the_schemas_beside_it_counts_them_again():
    schema = {"allOf": [LEAF], "unevaluatedProperties": LEAF}
    assert appraise(Document(schema)).steps == 1 + 3 + 1
    assert counted(schema, {}, pairs=100).steps == 1 + 3


def test_what_a_compiler_unfolds_is_counted_with_every_reference_followed():
    inner = {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "unevaluatedItems": False}
    schema = {"items": inner, "$defs": {"a": {"not": LEAF}}}
    assert appraise(Document(schema)).building == 1 + 3 * 2 * (1 + 2)


def test_recursion_makes_the_work_depend_on_the_value():
    schema = {"pattern": "^a", "items": {"$ref": "#"}}
    assert appraise(Document(schema)).steps is None
    assert counted(schema, [[[]]], pairs=100).steps == 5


def test_the_depth_of_pairs_is_counted():
    schema = {"allOf": [{"items": {"$ref": "#"}}]}
    assert counted(schema, [[]], pairs=100).chain == 5


def test_counting_stops_at_its_own_bound():
    schema = {"items": {"$ref": "#"}}
    assert counted(schema, [[0], [1], [2], [3]], pairs=8) is None
    assert counted(schema, [0, 1, 2, 3], pairs=3) is None


def test_a_value_that_contains_itself_is_more_than_can_be_counted():
    value = []
    value.append(value)
    assert counted({"items": {"$ref": "#"}}, value, pairs=1_000) is None
    assert counted({"items": {"$ref": "#"}}, value, pairs=1) is None


def test_long_lists_inside_a_schema_weigh():
    assert weight({"required": list("abcd") * 40}) == 11
    assert weight({"enum": ["a" * 638]}) == weight({"const": "a" * 640}) == weight({"const": {"a": "a" * 634}}) == 11
    assert weight({"enum": "no list"}) == 1


def test_a_pattern_weighs_with_the_texts_that_it_runs_on():
    # given patterns on values and on names
    schema = {"pattern": "^a", "patternProperties": {"^b": {}, "^c": {}}}
    own, named = strain("^a", most=LARGEST), strain("^b", most=LARGEST)
    # then each value counts with all of them where nothing is known of it
    toll = appraise(Document(schema)).toll
    assert toll == Toll(patterns=3, strain=own + 2 * named)
    assert toll.steps(texts=2, chars=640) == 6 + 10 * (own + 2 * named)
    # and a value at hand with those that run on it
    assert counted(schema, "a" * 640, pairs=10).steps == 1 + 1 + 10 * own
    assert counted(schema, {"b" * 320: 1, "c" * 320: 2}, pairs=10).steps == 1 + 4 + 10 * 2 * named + 2 + 2
    assert counted(schema, [1], pairs=10).steps == 1
    assert appraise(Document({"patternProperties": 5})).toll == appraise(Document({"pattern": 5})).toll == Toll()


def test_a_pattern_weighs_with_the_names_that_a_schema_for_names_has_it_for():
    schema = {"propertyNames": {"pattern": "^a"}, "items": {"$ref": "#"}}
    one = counted(schema, {"a" * 640: 1}, pairs=10).steps - counted({"propertyNames": LEAF}, {"a": 1}, pairs=10).steps
    assert one == 1 + 10 * strain("^a", most=LARGEST)


def test_a_pattern_that_is_not_run_weighs_nothing():
    schema = {"pattern": "^a", "allOf": [{"pattern": "^b"}]}
    both, one = appraise(Document(schema)), appraise(Document(schema), without=frozenset(["^b"]))
    assert (both.toll.patterns, one.toll.patterns) == (2, 1)
    assert appraise(Document(schema), without=frozenset(["^a", "^b"])).toll == Toll()


@pytest.mark.parametrize(
    ("schema", "value", "steps"),
    [
        ({"properties": {"a": LEAF, "b": LEAF}}, {"a": 1, "c": 2}, 2),
        ({"properties": {"a": True}, "additionalProperties": LEAF}, {"a": 1, "c": 2}, 2),
        ({"properties": 5, "additionalProperties": LEAF}, {"a": 1, "c": 2}, 3),
        ({"patternProperties": {"^a": LEAF}}, {"a": 1, "c": 2}, 5),
        ({"propertyNames": LEAF}, {"a": 1, "c": 2}, 3),
        ({"prefixItems": [LEAF, LEAF]}, [1], 2),
        ({"items": LEAF}, [1, 2], 3),
        ({"contains": LEAF}, {"a": 1}, 1),
        ({"contentSchema": LEAF}, {"a": 1}, 1),
        ({"contentSchema": LEAF}, [1], 1),
        ({"items": LEAF}, "text", 1),
        ({"not": True}, "text", 1),
        ({"$ref": "#/$defs/t", "$defs": {"t": True}}, "text", 1),
    ],
)
def test_a_schema_counts_for_the_parts_it_applies_to(schema, value, steps):
    assert counted(schema, value, pairs=100).steps == steps


@settings(deadline=None)
@given(st.integers(1, 12))
def test_the_bound_for_any_value_is_no_less_than_the_count_for_one(levels):
    shelf = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(levels)}
    schema = {"$ref": "#/$defs/d0", "$defs": {**shelf, f"d{levels}": LEAF}}
    assert appraise(Document(schema)).steps >= counted(schema, 1, pairs=10_000).steps >= 2**levels


def test_alternatives_that_are_no_objects_weigh():
    assert weight({"oneOf": [False] * 10, "anyOf": [LEAF, True], "allOf": 5}) == 12


def test_a_text_that_is_decoded_weighs_with_its_length():
    schema = {"contentMediaType": "application/json", "contentEncoding": "base64"}
    assert counted(schema, "a" * 640, pairs=10).steps == 1 + 2 + 10 * 32
    assert appraise(Document(schema)).toll == Toll(patterns=2, strain=32)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"properties": {f"p{i}": LEAF for i in range(5_000)}}}, [{} for _ in range(90)]),
        ({"items": {"$ref": "#"}, "$defs": {f"p{i}": LEAF for i in range(5_000)}}, [[] for _ in range(90)]),
        ({"items": {"$ref": "#"}, "allOf": [True] * 5_000}, [[] for _ in range(90)]),
    ],
)
def test_what_a_schema_is_made_of_is_looked_at_once_and_not_for_each_part_of_a_value(schema, value, monkeypatch):
    asked = Counter()

    def listed(node):
        asked["all"] += 1
        return real(node)

    real = workload.subschemas
    monkeypatch.setattr(workload, "subschemas", listed)
    assert counted(schema, value, pairs=1_000) is not None
    assert asked["all"] <= 2


def test_counting_stops_where_members_that_are_no_pairs_are_too_many():
    inner = {"properties": {f"p{i}": True for i in range(40)}, "additionalProperties": LEAF}
    value = [{f"p{i}": 1 for i in range(40)} for _ in range(50)]
    assert counted({"items": inner}, value, pairs=400).steps == 1 + 50 * 3
    assert counted({"items": inner}, value, pairs=100) is None
