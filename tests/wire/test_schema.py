"""A validator for schemas and values that nobody here wrote: bounded, offline, masked."""

import contextlib
import enum
import json
import math
import socket
import threading
from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcprelay.wire import schema as schema_module
from mcprelay.wire.automaton import girth
from mcprelay.wire.dialect import gemini, openai_strict, plain
from mcprelay.wire.pattern import LARGEST
from mcprelay.wire.reference import REFERENCES
from mcprelay.wire.schema import DEFAULT_LIMITS, SchemaLimits, SchemaRefused, Validator, inspect, weigh, well_formed

SEARCH = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "limit": {"type": "integer", "maximum": 5}},
    "required": ["q"],
    "additionalProperties": False,
}
JSON_VALUE = {
    "anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "array", "items": {"$ref": "#"}},
        {"type": "object", "additionalProperties": {"$ref": "#"}},
    ]
}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def fan(levels, keyword="allOf"):
    """A small schema whose every level refers to the next one twice."""
    shelf = {f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**shelf, f"d{levels}": {"type": "string"}}}


def watched(levels):
    """Schemas inside each other that each watch what the inner ones did not look at."""
    schema = {"properties": {"a": True}}
    for _ in range(levels):
        schema = {"allOf": [schema], "unevaluatedProperties": False}
    return schema


def nested(levels, value):
    for _ in range(levels):
        value = {"a": value}
    return value


# --- what fits --------------------------------------------------------------------------------------------------------


def test_a_value_that_fits_has_no_violations():
    validator = Validator(SEARCH)
    assert validator.check({"q": "a", "limit": 5}) == []
    assert validator.accepts({"q": "a"})


def test_an_unknown_member_is_named_with_the_one_that_was_meant():
    (violation,) = Validator(SEARCH).check({"q": "a", "limt": 5})
    assert (violation.path, violation.message) == ("", 'there is no member "limt"; did you mean "limit"?')
    assert violation.expected == "only members that the schema has, q, limit"


def test_an_unknown_member_far_from_any_other_is_named_alone():
    (violation,) = Validator({"unevaluatedProperties": False}).check({"zzz": 1})
    assert violation.message == 'there is no member "zzz"'


def test_a_missing_member_is_named_at_the_object_that_lacks_it():
    schema = {"properties": {"filter": SEARCH}}
    (violation,) = Validator(schema).check({"filter": {}})
    assert (violation.path, violation.expected) == ("filter", 'a member "q"')
    assert violation.message == 'filter: the member "q" is missing'


def test_all_that_is_wrong_is_told_at_once_and_no_more_than_allowed():
    schema = {"items": {"type": "string"}}
    found = Validator(schema, limits=SchemaLimits(errors=3)).check([1, 2, 3, 4, 5])
    assert [violation.path for violation in found] == ["[0]", "[1]", "[2]"]


def test_the_same_sentence_is_told_once():
    (violation,) = Validator(fan(5)).check(3)
    assert violation.expected == "a string"


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "integer"}, "s", "an integer"),
        ({"type": ["array", "null"]}, "s", "an array or null"),
        ({"enum": ["a", 1, None]}, "s", 'one of "a", 1, null'),
        ({"enum": ["a"]}, "s", '"a"'),
        ({"enum": list(range(20))}, "s", "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 or 8 more"),
        ({"const": {"a": 1}}, "s", '{"a":1}'),
        ({"minimum": 3}, 1, "a number of at least 3"),
        ({"exclusiveMaximum": 3}, 3, "a number below 3"),
        ({"minLength": 2}, "s", "at least 2 characters"),
        ({"pattern": "^a"}, "s", 'a text that matches the pattern "^a"'),
        ({"maxItems": 0}, [1], "at most 0 items"),
        ({"uniqueItems": True}, [1, 1], "items that differ from each other"),
        ({"not": {"type": "string"}}, "s", "a value other than those that the schema forbids"),
        (False, "s", "nothing here"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "s", "an integer or null"),
        ({"anyOf": [{"type": "integer"}, {"minLength": 2}]}, "s", "a value that fits one of the 2 alternatives"),
        ({"oneOf": [{}, {}]}, "s", "a value that fits exactly one of the alternatives"),
        ({"contains": {"type": "null"}}, [1], "an array with an item of the kind that the schema asks for"),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "member names that the schema allows"),
        (
            {"minContains": 2, "contains": {"const": 1}},
            [1],
            "an array with an item of the kind that the schema asks for",
        ),
    ],
)
def test_what_is_expected_is_said_in_words(schema, value, expected):
    (violation,) = Validator(schema).check(value)
    assert violation.expected == expected


def test_places_are_written_so_that_they_can_be_found_again():
    schema = {"additionalProperties": {"items": {"additionalProperties": {"type": "null"}}}}
    (violation,) = Validator(schema).check({"a b": [0, {"c": 1}]})
    assert violation.path == '["a b"][1].c'


def test_no_value_stands_in_a_message_unless_it_is_asked_for():
    secret = {"q": "hunter2" * 3, "limit": "hunter2"}
    hidden = Validator({"additionalProperties": {"type": "null"}}).check(secret)
    assert "hunter2" not in repr(hidden)
    shown = Validator({"additionalProperties": {"type": "null"}}, values="shown").check(secret)
    assert shown[1].message == 'limit: expected null, not "hunter2"'


def test_a_long_value_is_shown_shortened():
    (violation,) = Validator({"type": "null"}, values="shown").check("x" * 1_000)
    assert len(violation.message) < 120


# --- what is refused before anything runs -----------------------------------------------------------------------------


@pytest.mark.clause("index.schema-ref-not-fetched", "index.schema-ref-unresolved")
@pytest.mark.parametrize("reference", ["http://127.0.0.1:9/x", "file:///etc/passwd", "other.json", "//h/x"])
def test_a_reference_out_of_the_schema_is_refused_and_not_fetched(reference):
    with pytest.raises(SchemaRefused, match="points outside of the schema; nothing is fetched"):
        Validator({"properties": {"a": {"$ref": reference}}})


@pytest.mark.clause("index.schema-valid", "index.schema-dialect-unsupported")
@pytest.mark.parametrize(
    "schema", [{"type": "strin"}, {"required": "q"}, {"properties": []}, {"$schema": "http://x/y"}]
)
def test_what_is_no_schema_is_refused(schema):
    with pytest.raises(SchemaRefused, match="not a valid schema"):
        Validator(schema)
    with pytest.raises(SchemaRefused, match="not a valid schema"):
        well_formed(schema)


@pytest.mark.parametrize("schema", [None, [], "true", 1])
def test_a_schema_is_an_object_or_a_boolean(schema):
    with pytest.raises(SchemaRefused, match="an object or a boolean"):
        Validator(schema)


@pytest.mark.clause("index.schema-bounded")
@pytest.mark.parametrize(
    ("schema", "limit"),
    [
        ({"description": "x" * 300}, "schema_bytes"),
        ({"enum": list(range(60))}, "schema_nodes"),
        (nested(9, {}), "schema_depth"),
        ({"patternProperties": {str(n): True for n in range(4)}}, "schema_patterns"),
        ({"allOf": [{"pattern": str(n)} for n in range(4)]}, "schema_patterns"),
    ],
)
def test_a_limit_says_its_own_name(schema, limit):
    limits = SchemaLimits(schema_bytes=200, schema_nodes=50, schema_depth=8, schema_patterns=3)
    with pytest.raises(SchemaRefused, match=f"{limit}=.*Raise {limit} to allow more") as caught:
        Validator(schema, limits=limits)
    assert caught.value.limit == limit


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": -math.inf}, b"x", {1: 2}, ("a",), "\ud800", {"\udfff": 1}])
def test_what_json_does_not_have_is_no_value_and_no_schema(value):
    assert not Validator(True).accepts(value)
    assert Validator(True).check(value)[0].expected == "a JSON value within the limits"
    with pytest.raises(SchemaRefused):
        inspect({"default": value})


def test_a_value_that_nests_too_deep_is_refused_by_name():
    validator = Validator({"properties": {"a": {"$ref": "#"}}})
    assert validator.check(nested(127, 1)) == []
    (violation,) = validator.check(nested(100_000, 1))
    assert "value_depth=128" in violation.message


def test_a_value_that_contains_itself_is_refused():
    value = []
    value.append(value)
    assert "value_depth" in Validator(JSON_VALUE).check(value)[0].message


@settings(deadline=None)
@given(json_values)
def test_a_json_value_is_weighed_as_it_is(value):
    weight = weigh(value, depth=("d", 100))

    def depth(inner):
        inside = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
        return 1 + max(map(depth, inside), default=0)

    assert weight.depth == depth(value)
    assert weight.chars <= len(json.dumps(value, ensure_ascii=False))


@pytest.mark.clause("index.schema-ref-not-fetched", "index.schema-ref-opt-in")
def test_nothing_is_ever_fetched():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        places = [*(REFERENCES), "$schema", "$id", "$anchor"]
        for place in places:
            for schema in ({place: address}, {"properties": {"a": {place: address}}}, {"enum": [{place: address}]}):
                for use in (Validator, well_formed, plain, gemini, openai_strict):
                    with contextlib.suppress(SchemaRefused):
                        use(schema)
        with pytest.raises(BlockingIOError):
            server.accept()


# --- work is bounded --------------------------------------------------------------------------------------------------


@pytest.mark.clause("index.schema-bounded")
@pytest.mark.parametrize("schema", [fan(40), fan(40, "anyOf"), fan(40, "oneOf"), watched(25)])
def test_a_small_schema_that_means_a_huge_one_is_refused(schema):
    with pytest.raises(SchemaRefused, match="schema_work=2000000") as caught:
        Validator(schema)
    assert caught.value.limit == "schema_work"


@pytest.mark.parametrize("use", [Validator, well_formed, plain])
def test_a_schema_that_only_a_compiler_unfolds_is_refused_before_it_is_compiled(use):
    shelf = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2, "unevaluatedProperties": False} for i in range(14)}
    schema = {"properties": {"b": {"$ref": "#/$defs/d0"}}, "$defs": {**shelf, "d14": {}}}
    with pytest.raises(SchemaRefused, match="compiling the schema takes more work: schema_work"):
        use(schema)


def test_a_schema_that_multiplies_only_with_the_depth_of_a_value_is_refused_for_such_a_value():
    validator = Validator({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "required": ["a"]})
    assert validator.check(nested(3, 1)) == []
    assert "schema_work" in validator.check(nested(60, {}))[0].message


def test_a_recursive_schema_that_does_not_multiply_is_checked_to_the_depth_allowed():
    validator = Validator(JSON_VALUE)
    assert validator.check(nested(120, "x")) == []
    assert validator.check({"a": [1, {"b": None}]}) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"type": "string"}, {"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}},
    ],
)
def test_a_reference_that_leads_back_without_entering_the_value_is_refused(schema):
    with pytest.raises(SchemaRefused, match="leads back to itself"):
        Validator(schema)


def test_schemas_too_deep_inside_each_other_are_refused():
    shelf = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(600)}
    with pytest.raises(SchemaRefused, match="deep inside each other"):
        Validator({"$ref": "#/$defs/d0", "$defs": {**shelf, "d600": {}}})


def test_a_chain_of_references_below_a_deep_value_does_not_end_the_process():
    links = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(50)}
    schema = {"$ref": "#/$defs/d0", "$defs": {**links, "d50": {"properties": {"a": {"$ref": "#"}}}}}
    found = []
    thread = threading.Thread(target=lambda: found.append(Validator(schema).check(nested(100, 1))))
    thread.start()
    thread.join()
    assert "schema_work" in found[0][0].message


def test_a_value_with_more_parts_than_can_be_counted_is_refused():
    limits = SchemaLimits(schema_work=2_000)
    assert "schema_work" in Validator(JSON_VALUE, limits=limits).check(list(range(500)))[0].message
    wide = {"patternProperties": {f"^{n}": {"$ref": "#"} for n in range(20)}}
    assert "schema_work" in Validator(wide, limits=limits).check({str(n): 1 for n in range(20)})[0].message


def test_errors_of_a_schema_too_involved_are_not_itemized():
    validator = Validator({"allOf": [{"type": "string"}] * 6_000})
    (violation,) = validator.check(1)
    assert "too involved" in violation.message


def test_a_long_text_against_many_patterns_counts_as_work():
    validator = Validator(
        {"allOf": [{"pattern": f"^a{n}"} for n in range(200)]}, limits=SchemaLimits(schema_work=20_000)
    )
    assert "schema_work" not in validator.check("a")[0].message
    assert "schema_work" in validator.check("a" * 50_000)[0].message


def test_a_pattern_in_a_recursive_schema_counts_once_for_each_text():
    schema = {
        "pattern": "^a",
        "items": {"$ref": "#"},
        "additionalProperties": {"$ref": "#"},
        "patternProperties": {"^b": {}},
    }
    validator = Validator(schema, limits=SchemaLimits(schema_work=10_000))
    assert validator.check(["a", ["ab"]]) == []
    assert "schema_work" in validator.check(["a" * 1_000_000])[0].message


def test_a_recursive_schema_is_counted_through_every_place_of_a_value():
    schema = {
        "type": ["object", "array", "string"],
        "properties": {"a": {"$ref": "#"}, "b": True},
        "additionalProperties": {"$ref": "#"},
        "propertyNames": {"maxLength": 9},
        "prefixItems": [{"$ref": "#"}],
        "items": {"$ref": "#"},
        "contains": {"$ref": "#"},
        "dependentSchemas": {"a": {"minProperties": 1}},
        "$defs": {"unused": {"type": "null"}},
    }
    validator = Validator(schema)
    assert validator.check({"a": ["x", ["y"]], "c": {"a": "z"}}) == []
    assert validator.check({"a": 1})[0].path == "a"


# --- regular expressions ----------------------------------------------------------------------------------------------


def test_a_pattern_that_would_backtrack_runs_in_linear_time():
    validator = Validator({"pattern": "^(a+)+$"})
    assert validator.changes == ()
    assert validator.check("a" * 100_000 + "!") != []


@pytest.mark.parametrize("pattern", [r"^(?=.*[A-Z])", r"(a)\1", "[^]", "(?<!x)y", "(?:a{900}){900}"])
def test_a_pattern_that_cannot_run_in_linear_time_is_not_run_and_listed(pattern):
    validator = Validator({"properties": {"p": {"type": "string", "pattern": pattern}, "q": {"pattern": "^a"}}})
    assert validator.changes == (
        "#/properties/p: pattern is not checked here: a pattern in it cannot run in linear time",
    )
    assert validator.check({"p": "anything", "q": "a"}) == []
    assert [violation.path for violation in validator.check({"p": 1, "q": "b"})] == ["p", "q"]


AHEAD = "^(?=a)"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"not": {"pattern": AHEAD}}, "b"),
        ({"oneOf": [{"pattern": AHEAD}, {"type": "string", "minLength": 1}]}, "b"),
        ({"if": {"pattern": AHEAD}, "then": {"minLength": 9}, "else": {"maxLength": 9}}, "b"),
        ({"patternProperties": {AHEAD: {}, "^b": {}}, "additionalProperties": False}, {"ab": 1}),
        ({"patternProperties": {AHEAD: {}}, "unevaluatedProperties": False}, {"ab": 1}),
        ({"contains": {"pattern": AHEAD}, "maxContains": 1}, ["ab", "b"]),
        ({"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"pattern": AHEAD}}}, "b"),
        ({"not": {"items": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"pattern": AHEAD}}}, ["b"]),
        ({"not": {"unevaluatedProperties": {"type": "null"}}, "allOf": [{"pattern": AHEAD}]}, {"a": 1}),
        ({"anyOf": [{"pattern": AHEAD}, {"type": "null"}]}, "ab"),
        ({"if": True, "then": {"pattern": AHEAD}}, "ab"),
        ({"maxContains": 1, "pattern": AHEAD}, "ab"),
    ],
)
def test_a_schema_without_a_pattern_still_accepts_what_the_schema_accepts(schema, value):
    validator = Validator(schema)
    assert validator.changes
    assert validator.check(value) == []


def test_what_does_not_depend_on_the_pattern_is_checked_all_the_same():
    schema = {"allOf": [{"pattern": AHEAD}, {"not": {"const": "x"}}, {"if": True, "then": {"maxLength": 3}}]}
    validator = Validator({**schema, "contains": True, "maxContains": 2, "oneOf": [{"minLength": 1}]})
    assert validator.check("x")[0].expected == "a value other than those that the schema forbids"
    assert validator.check("abcd")[0].expected == "at most 3 characters"
    assert validator.check([1, 2, 3]) != []


def test_a_schema_wrong_beside_its_pattern_is_refused():
    with pytest.raises(SchemaRefused, match="not a valid schema"):
        Validator({"pattern": AHEAD, "type": "strin"})


def test_the_schema_is_not_changed():
    schema = {
        "pattern": AHEAD,
        "not": {"pattern": AHEAD},
        "patternProperties": {AHEAD: {}},
        "items": {"pattern": AHEAD},
    }
    before = json.dumps(schema)
    Validator(schema).check("x")
    assert json.dumps(schema) == before


def test_a_pattern_that_is_no_text_is_no_schema():
    with pytest.raises(SchemaRefused, match="not a valid schema"):
        Validator({"pattern": ["^(?=a)"], "items": {"pattern": AHEAD}})


@settings(deadline=None)
@given(
    st.recursive(
        st.booleans() | st.just({}),
        lambda inner: st.dictionaries(
            st.sampled_from(
                ["not", "items", "if", "then", "additionalProperties", "contains", "propertyNames", "type", "$ref"]
            ),
            inner | st.just("#") | st.sampled_from(["string", "object"]),
            max_size=3,
        ),
        max_leaves=8,
    ),
    json_values,
)
def test_any_schema_is_refused_or_decides_about_any_value(schema, value):
    try:
        validator = Validator(schema)
    except SchemaRefused:
        return
    found = validator.check(value)
    assert validator.accepts(value) == (found == [])
    with contextlib.suppress(UnicodeEncodeError):
        assert validator.check(value, size=len(json.dumps(value).encode())) == found


def test_what_is_read_from_few_bytes_is_not_measured_and_what_is_too_much_for_its_schema_is(monkeypatch):
    validator = Validator({"type": "object", "properties": {"a": {"type": "string"}}})
    heavy = Validator({"items": {"allOf": [{"type": "number"}] * 100}}, limits=SchemaLimits(schema_work=2_000))
    recursive = Validator({"items": {"$ref": "#"}})
    measured = []

    def measure(value, **bounds):
        measured.append(value)
        return weigh(value, **bounds)

    monkeypatch.setattr(schema_module, "weigh", measure)
    assert validator.check({"a": "b"}, size=9) == []
    assert validator.check({"a": "b"}, size=10_000) == []
    assert "schema_work" in heavy.check([1] * 30, size=60)[0].message
    assert recursive.check([], size=2) == []
    assert validator.check({"a": 1}, size=7)[0].path == "a"
    assert measured == [{"a": "b"}, [1] * 30, [], {"a": 1}]


def test_values_of_kinds_of_the_plain_types_are_weighed_like_these():
    class Word(str):
        __slots__ = ()

    class Words(list): ...

    class Number(enum.IntEnum):
        ONE = 1

    class Fraction(float):
        __slots__ = ()

    usual = {"a": ["bc", 1, 0.1]}
    odd = OrderedDict({Word("a"): Words([Word("bc"), Number.ONE, Fraction(0.1)])})
    assert weigh(odd, depth=("d", 9)) == weigh(usual, depth=("d", 9))


WIDE = {"properties": {f"p{i}": {"pattern": rf"^\w{{300}}{i}$"} for i in range(40)}}


@pytest.fixture
def compiled(monkeypatch):
    """What is given to the compiler."""
    seen = []
    real = schema_module._built
    monkeypatch.setattr(schema_module, "_built", lambda one: seen.append(json.dumps(one)) or real(one))
    return seen


def test_patterns_are_compiled_when_the_first_value_is_checked(compiled):
    made = Validator(WIDE)
    assert not any(r"\\w" in one for one in compiled)
    assert made.accepts({"p1": "a" * 300 + "1"})
    assert not made.accepts({"p1": "a"})
    assert sum(r"\\w" in one for one in compiled) == 1


def test_patterns_are_bounded_by_what_they_take_and_not_by_their_number():
    assert Validator(WIDE).weight.memory > 40 * 30_000
    with pytest.raises(SchemaRefused, match="schema_pattern_bytes=500000. Raise schema_pattern_bytes"):
        Validator(WIDE, limits=SchemaLimits(schema_pattern_bytes=500_000))
    assert Validator({"properties": {f"p{i}": {"pattern": "a"} for i in range(200)}}).accepts({})


@pytest.mark.parametrize(
    "wrong",
    [
        {"pattern": "a", "type": "nothing"},
        {"pattern": 1},
        {"patternProperties": {"a": {"type": 1}}},
    ],
)
def test_schemas_that_are_none_are_refused_before_any_pattern_is_compiled(wrong):
    with pytest.raises(SchemaRefused, match="not a valid schema"):
        Validator(wrong)


def test_references_may_lead_through_a_pattern():
    made = Validator(
        {"patternProperties": {"^a": {"type": "string"}}, "properties": {"b": {"$ref": "#/patternProperties/%5Ea"}}}
    )
    assert made.accepts({"ab": "x", "b": "y"})
    assert not made.accepts({"b": 1})
    well_formed({"patternProperties": {"^a": {}}, "properties": {"b": {"$ref": "#/patternProperties/%5Ea"}}})


def test_a_schema_that_needs_what_cannot_run_takes_no_value():
    made = Validator({"oneOf": [{"pattern": "(?=a)"}], "properties": {"b": {"$ref": "#/oneOf/0"}}})
    assert not made.accepts({})
    assert made.check({"b": "a"})
    assert made.changes == ("#: no value is taken, because the schema cannot be compiled here",)


def test_what_was_meant_is_looked_for_only_where_it_is_told(monkeypatch):
    looked = []
    monkeypatch.setattr("mcprelay.wire.violation.closest", lambda word, known: looked.append(word))
    found = Validator(SEARCH, limits=SchemaLimits(errors=3)).check({f"q{i}": 1 for i in range(500)} | {"q": ""})
    assert len(found) == len(looked) == 3


ORDINARY = [
    r"^\d{4}-\d{2}-\d{2}$",
    r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$",
    r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$",
    r"^[a-z]{1,64}$",
    r"[a-z]{1,64}",
    r"^.{1,50}$",
    r"^.{1,2000}$",
    r"^[\s\S]{1,2000}$",
    r"^[A-Za-z0-9_-]{1,256}$",
    r"[A-Za-z0-9_-]{1,2000}",
    r"^[a-zA-Z0-9 .,'-]{1,2000}$",
    r"^[a-z][a-z0-9_]*$",
    r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    r"\S",
    r"^\s*\S.*$",
    r"^https?://",
    r"^https?://[^/]+/.*$",
    r"^(?:[a-z0-9-]{1,63}\.)+[a-z]{2,63}$",
    r"^[\p{L}\p{N} .'-]{1,100}$",
    r"^\p{L}+$",
    r"^(GET|POST|PUT|DELETE|PATCH)$",
    r"(?i)^(true|false|yes|no)$",
    r"^arn:aws:[a-z0-9-]+:[a-z0-9-]*:\d{12}:[\w+=/,.@-]{1,512}$",
    r"^(?=.*\d).{8,}$",
    r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$",
    r"^\+?[1-9]\d{1,14}$",
    r"\.(jpg|jpeg|png|gif|webp|svg)$",
    r"^(25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$",
    r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?$",
    r"^v\d+(\.\d+)*$",
    r"[\u0009\u000A\u000D\u0020-\u00FF]{1,1024}",
]


def is_over(violations):
    return any("schema_work=" in violation.message for violation in violations)


@pytest.mark.parametrize("pattern", ORDINARY)
def test_an_ordinary_pattern_runs_on_ordinary_arguments(pattern):
    # given a tool with ten such parameters and a list
    text = {"type": "string", "pattern": pattern}
    members = {f"p{number}": text for number in range(10)}
    validator = Validator({"properties": {**members, "list": {"items": text}}})
    # then one text of 10,000 characters is looked at, and so are 2,000 of 20
    assert not is_over(validator.check({"p0": "ab12-" * 2_000}))
    assert not is_over(validator.check({"list": ["ab12-" * 4] * 2_000}))
    assert not is_over(validator.check({f"p{number}": "x" * 100 for number in range(10)}))


HOSTILE = [
    "[ab]*a[ab]{@}c",
    "^[ab]*a[ab]{@}c",
    "^(?:[ab]*a[ab]{@}c|[ab]*b[ab]{@}d)$",
    "(?:a|b)*a(?:a|b){@}c",
    "a(?:[ab]b?){@}c",
    "^(?:a?b?){@}c",
    "(?:a+b+){@}c",
    "(?m)^[ab]{@}c",
    "(?i)[abk]*a[abk]{@}c",
    "^[^a]*a?[ab]{@}$",
]


@pytest.mark.parametrize("copies", [30, 90, 300])
@pytest.mark.parametrize("pattern", HOSTILE)
def test_patterns_made_to_be_slow_do_not_run_on_long_texts(pattern, copies):
    # given as many of them as the other limits let pass
    one = girth(pattern.replace("@", str(copies)), most=LARGEST)
    number = min(256, DEFAULT_LIMITS.schema_pattern_bytes // (one + 1_000))
    every = [{"pattern": pattern.replace("@", str(copies + at % 2))} for at in range(number)]
    # then neither a long text nor many short ones are worth a second, and the answer names the limit
    assert is_over(Validator({"allOf": every}).check("ab" * 5_000))
    assert is_over(Validator({"items": {"allOf": every}}).check(["ab" * 50] * 100))


@pytest.mark.parametrize("keyword", ["patternProperties", "propertyNames", "recursive", "nested"])
def test_patterns_on_names_and_in_recursion_count_in_the_same_way(keyword):
    slow = [f"[ab]*a[ab]{{{copies}}}c" for copies in range(100, 130)]
    every = {"allOf": [{"pattern": one} for one in slow]}
    schema, value = {
        "patternProperties": ({"patternProperties": dict.fromkeys(slow, True)}, {"ab" * 5_000: 1}),
        "propertyNames": ({"propertyNames": every}, {"ab" * 5_000: 1}),
        "recursive": ({**every, "items": {"$ref": "#"}}, ["ab" * 5_000]),
        "nested": ({"items": {"patternProperties": {one: {"$ref": "#"} for one in slow}}}, [{"ab" * 5_000: []}]),
    }[keyword]
    assert is_over(Validator(schema).check(value))


def test_what_cannot_run_is_not_counted_as_if_it_ran():
    # given patterns of which it is known only once they are compiled that they are not run
    every = {"allOf": [{"pattern": f"^(?=.{{1,{number}}}[a-z]*$)[a-z]*[a-z]{{999}}"} for number in range(20)]}
    validator = Validator({**every, "maxLength": 9})
    # then the rest of the schema is checked on texts of any length
    assert not is_over(validator.check("a" * 50_000))
    assert validator.accepts("a" * 9)
    assert len(validator.changes) == 20


def test_errors_about_a_long_text_are_not_itemized_where_each_would_repeat_it():
    short, long = "a" * 100, "a" * 1_000_000
    validator = Validator({"allOf": [{"const": number} for number in range(100)]})
    assert len(validator.check(short)) == 20
    assert [violation.message for violation in validator.check(long)] == [
        "the value does not fit the schema, which is too involved to say where"
    ]


@pytest.mark.parametrize("number", [10**400, -(10**400)])
def test_a_number_that_no_reader_of_json_holds_is_no_value(number):
    (violation,) = Validator({"minimum": 1}).check([number])
    assert violation.message == "an integer is larger than numbers are in JSON"
    assert Validator({"minimum": -(2**70)}).check([2**70]) == []
