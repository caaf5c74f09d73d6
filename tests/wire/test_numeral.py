"""What it takes to compare numbers is counted before any are compared."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.wire.numeral import DEAREST, Numerals, Rarity, numerals, price
from mcprelay.wire.reference import Document
from mcprelay.wire.schema import Validator, weigh
from mcprelay.wire.workload import appraise, count

DEEP = ("value_depth", 128)
TINY, HUGE, LARGE = 1e-300, 1e300, 10**300
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.integers().map(lambda n: n * 10**90)


@pytest.mark.parametrize("number", [0, -7, 2**63 - 1, 1 - 2**63])
def test_integers_of_a_machines_word_cost_nothing(number):
    assert price(number) == 0


def test_a_number_costs_by_its_digits():
    assert 0 < price(0.0) <= price(0.1) < price(1e-30) < price(TINY) <= DEAREST
    assert price(7.5) < price(HUGE)
    assert 0 < price(2**63) < price(LARGE)


def test_what_is_not_finite_costs_nothing_because_it_is_refused():
    assert price(math.inf) == price(math.nan) == 0


def test_the_numbers_of_a_schema_are_its_bounds_and_its_constants():
    node = {"minimum": 0, "multipleOf": 0.5, "const": {"a": [TINY, True, "x"]}, "enum": [1, 2.5, None, [3]]}
    assert numerals(node) == Numerals(
        bounds=6, steps=2 * price(0.5) + price(TINY) - price(0.5) + price(2.5), inside=2, unique=0
    )
    assert numerals({"uniqueItems": True, "enum": "no list", "properties": {"a": {"const": 1}}}) == Numerals(unique=1)
    assert numerals({"uniqueItems": "no"}) == Numerals()


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"not": {"enum": list(range(15_000))}}}, [TINY] * 20),
        ({"properties": {"v": {"items": {"not": {"enum": list(range(15_000))}}}}}, {"v": [TINY] * 20}),
        ({"items": {"not": {"enum": [TINY * n for n in range(1, 15_000)]}}}, list(range(20))),
        ({"not": {"enum": [[n, n] for n in range(6_000)]}}, [TINY, TINY]),
        ({"not": {"enum": [{"a": n, "b": n} for n in range(6_000)]}}, {"a": TINY, "b": TINY}),
        ({"uniqueItems": True}, [LARGE + n for n in range(2_000)]),
        ({"uniqueItems": True}, [[LARGE + n] for n in range(2_000)]),
        ({"items": {"uniqueItems": True}}, [[TINY * n for n in range(1, 15)]] * 1_000),
        ({"items": {"allOf": [{"minimum": TINY}, {"maximum": HUGE}] * 4}}, [TINY] * 3_000),
        ({"items": {"multipleOf": TINY}}, list(range(20_000))),
        ({"items": {"$ref": "#"}, "not": {"enum": list(range(15_000))}}, [[TINY] * 100]),
        ({"items": {"$ref": "#"}, "uniqueItems": True}, [[LARGE + n for n in range(300)]]),
    ],
)
def test_numbers_made_to_be_slow_meet_schema_work(schema, value):
    (violation,) = Validator(schema).check(value)
    assert "schema_work" in violation.message


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"type": "number", "minimum": -1, "maximum": 1}}, [math.sin(n) for n in range(10_000)]),
        ({"items": {"type": "number", "minimum": 0.0, "maximum": 1.0}}, [n / 5_000 for n in range(5_000)]),
        ({"items": {"type": "integer", "minimum": 0, "multipleOf": 5}}, [5 * n for n in range(50_000)]),
        ({"items": {"enum": [0.5, 1.0, 2.5]}}, [0.5, 2.5] * 1_000),
        ({"items": {"anyOf": [{"const": 0}, {"type": "number"}]}}, [n / 7 for n in range(5_000)]),
        ({"properties": {"rate": {"multipleOf": 0.01}}}, {"rate": 0.25}),
        ({"uniqueItems": True}, [n / 7 for n in range(50_000)]),
        ({"uniqueItems": True}, [HUGE / n for n in range(1, 5_000)]),
        ({"uniqueItems": True}, list(range(20_000))),
        ({"items": {"uniqueItems": True}}, [[n / 7, n / 9, n / 11] for n in range(1, 1_000)]),
        ({"uniqueItems": True}, [{"a": n / 7} for n in range(500)]),
        ({"items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"enum": [1, 2, 3]}}}, [1, 2, 3] * 5_000),
        ({"items": {"maximum": LARGE}}, [2**70, LARGE]),
    ],
)
def test_ordinary_numbers_do_not(schema, value):
    assert Validator(schema).check(value) == []


@given(st.recursive(NUMBERS | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_what_is_counted_without_looking_is_no_less_than_what_is_counted_place_by_place(value):
    schema = {
        "minimum": 0.5,
        "enum": [1, [2.5], {"a": 10**90}],
        "uniqueItems": True,
        "items": {"multipleOf": TINY, "uniqueItems": True, "items": {"const": [1, TINY]}},
        "additionalProperties": {"maximum": 7},
    }
    document = Document(schema)
    load, weight = appraise(document), weigh(value, depth=DEEP)
    exact = count(document, value, pairs=10**6, tolls=load.tolls, rarity=weight.rarity)
    bound = load.numerals.at_most(weight.rarity, values=weight.nodes, depth=weight.depth)
    assert exact.steps <= load.steps * weight.nodes + bound


def test_a_weight_knows_what_its_numbers_take():
    assert weigh([1, "a", True, None], depth=DEEP).rarity == Rarity()
    assert weigh({"a": [2.5, {"b": LARGE}]}, depth=DEEP).rarity == Rarity(price(2.5) + price(LARGE), price(LARGE))
