"""Schemas that are small and mean much: every walk over them is linear in their text, or counted."""

import json
from collections import Counter

import pytest

from mcprelay.wire import pattern, restore
from mcprelay.wire.change import MOST, Changes, inside
from mcprelay.wire.dialect import RULES, gemini, openai_strict, plain
from mcprelay.wire.pattern import Loosened
from mcprelay.wire.reference import Document, SchemaRefused
from mcprelay.wire.restore import Nulls, member_names, without_fill, without_names
from mcprelay.wire.schema import DEFAULT_LIMITS, Validator

WORK = DEFAULT_LIMITS.schema_work
FORMS = [plain, openai_strict, gemini]


def doubled(levels, *, width=2):
    """Each definition has so many references to the next one: there are `width ** levels` ways to the last."""
    steps = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * width} for i in range(levels)}
    last = {f"d{levels}": {"type": "string"}}
    return {"type": "object", "$defs": steps | last, "properties": {"e": {"$ref": "#/$defs/d0"}}}


@pytest.fixture
def looked(monkeypatch):
    """How often the references of a schema are looked up; more than so often is too often."""
    times = Counter()
    real = Document.references

    def references(document, node):
        times["all"] += 1
        assert times["all"] < 50_000, "a walk over the schema does not end"
        return real(document, node)

    monkeypatch.setattr(Document, "references", references)
    return times


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("schema", [doubled(60), doubled(3, width=100)], ids=["deep", "wide"])
def test_many_ways_to_one_definition_are_walked_once(form, schema, looked):
    # given the ways through the references, of which there are more than anybody can walk
    made = form(json.loads(json.dumps(schema)))
    # then the form is there, and says why it still has references
    assert made is not None
    assert any("references stay" in change for change in made.changes)
    assert looked["all"] < 10_000


def test_arguments_come_back_through_many_ways(looked):
    assert without_fill({"e": None}, json.loads(json.dumps(doubled(60))), work=WORK) == {}
    assert without_fill({"e": "x"}, json.loads(json.dumps(doubled(60))), work=WORK) == {"e": "x"}


def test_nulls_are_decided_through_every_kind_of_neighbor():
    schema = {
        "$defs": {
            "s": {"type": "string"},
            "n": {"type": ["null", "string"]},
            "loop": {"allOf": [{"$ref": "#/$defs/loop"}]},
        },
        "properties": {
            "every": {"allOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/s"}]},
            "some": {"anyOf": [{"$ref": "#/$defs/s"}, {"$ref": "#/$defs/n"}]},
            "both": {"anyOf": [True], "oneOf": [False]},
            "loop": {"$ref": "#/$defs/loop"},
        },
    }
    nulls = Nulls(Document(schema))
    found = {name: nulls.fit(inner) for name, inner in schema["properties"].items()}
    assert found == {"every": False, "some": True, "both": False, "loop": True}
    assert (nulls.fit(True), nulls.fit(False)) == (True, False)


def test_arguments_are_held_against_so_many_schemas_at_most():
    wide = {"type": "object", "anyOf": [{"properties": {f"p{i}": {"type": "string"}}} for i in range(400)]}
    back = without_fill({f"p{i}": None for i in range(400)}, wide, work=WORK)
    assert len(back) == 400 - restore._WIDEST + 1  # what is not looked at any more stays as it is


def test_names_that_fold_to_one_are_numbered_and_not_tried(monkeypatch):
    asked = Counter()
    real = restore.count

    def counted(start):
        asked["numberings"] += 1
        return real(start)

    monkeypatch.setattr(restore, "count", counted)
    made = member_names([f"{'é' * 57}{i}" for i in range(3_000)], RULES["gemini"])
    assert len(set(made.values())) == 3_000
    assert asked["numberings"] == 1


def test_names_of_members_are_worked_out_once_for_all_items():
    item = {"type": "object", "properties": {"a b": {"type": "string"}, "c": {"type": "string"}}}
    schema = {"type": "object", "properties": {"all": {"type": "array", "items": item}}}
    items = [{"a_b": str(i), "c": ""} for i in range(3)]
    assert gemini(schema).restore({"all": items}) == {"all": [{"a b": str(i), "c": ""} for i in range(3)]}


ALTERNATIVES = [{"properties": {f"m{i}": {"type": "string"}, f"é{i}": {"$ref": "#"}}} for i in range(200)]


def test_what_describes_the_items_of_a_list_is_found_out_once(looked):
    schema = {"properties": {"all": {"type": "array", "items": {"anyOf": ALTERNATIVES}}}}
    items = [{"m7": None, "é7": "x"} for _ in range(20_000)]
    assert without_fill({"all": items}, schema, work=WORK) == {"all": [{"é7": "x"}] * 20_000}
    assert looked["all"] < 1_000


def test_what_schemas_make_of_a_value_is_counted_and_the_rest_of_it_stays_as_it_is():
    # given a schema of which each member leads to all others
    schema = {"type": "object", "anyOf": ALTERNATIVES, "properties": {"all": {"items": {"$ref": "#"}}}}
    items = [{f"é{i % 200}": {f"m{i % 199}": None}} for i in range(20_000)]
    # when the work suffices for some of it
    (back,) = without_fill({"all": items}, schema, work=WORK).values()
    # then the first nulls are dropped, and the last ones are not
    assert back[:3] == [{f"é{i}": {}} for i in range(3)]
    assert back[-3:] == items[-3:]


def test_items_that_are_described_alike_are_counted_once():
    lists = [{"items": {"properties": {f"m{i}": {"type": "string"}}}} for i in range(200)]
    schema = {"properties": {"all": {"anyOf": lists}}}
    items = [{"m7": None} for _ in range(20_000)]
    assert without_fill({"all": items}, schema, work=200_000) == {"all": [{}] * 20_000}


def test_the_names_of_members_are_counted_wherever_they_are_worked_out():
    inner = {"anyOf": [{"properties": {f"é{i}{j}": True for j in range(500)}} for i in range(20)]}
    schema = {"properties": {f"p{i}": {"allOf": [{"title": str(i)}, inner]} for i in range(9)}}
    shown = {f"p{i}": {"_00": 1} for i in range(9)}
    back = without_names(shown, schema, RULES["gemini"], work=200_000)
    assert back["p0"] == {"é00": 1}
    assert back["p8"] == {"_00": 1}


def test_names_that_there_is_no_work_left_for_stay_as_they_are():
    schema = {"properties": {"é": {"type": "string"}}, "allOf": [{"properties": {"ü": {"type": "string"}}}]}
    shown = {"_": "a"}
    assert without_names(shown, schema, RULES["gemini"], work=WORK) == {"é": "a"}
    assert without_names(shown, schema, RULES["gemini"], work=1) == shown


def test_references_that_stay_copy_each_schema_once():
    # given schemas inside each other, all of them meant by references, and too many references to replace
    inner = {"type": "string"}
    for level in range(20):
        inner = {"type": "object", "properties": {"in": inner}, "title": str(level) * 50}
    at, refs = "#/properties/e", {}
    for level in range(20):
        refs |= {f"r{level}_{i}": {"$ref": at} for i in range(40)}
        at += "/properties/in"
    schema = {"type": "object", "properties": {"e": inner, **refs}}
    # when the references stay
    made = plain(json.loads(json.dumps(schema)))
    # then what is nested is not copied for each schema around it, and means the same
    assert any("references stay" in change for change in made.changes)
    assert len(json.dumps(made.schema)) < 2 * len(json.dumps(schema))
    fits = {"e": {"in": {"in": {}}}, "r0_0": {"in": {}}, "r3_1": {"in": {"in": {}}}}
    wrong = {"r19_0": {"in": 1}}
    for one in (schema, made.schema):
        assert Validator(one).accepts(fits)
        assert not Validator(one).accepts(wrong)


@pytest.mark.parametrize("keyword", ["x" * 3_000, "properties"])
def test_long_names_count_where_references_repeat_them(keyword):
    held = {"x" * 3_000: True} if keyword == "properties" else 1
    refs = {f"p{i}": {"$ref": "#/$defs/a"} for i in range(1_000)}
    schema = {"type": "object", "$defs": {"a": {keyword: held}}, "properties": refs}
    made = plain(schema)
    assert len(json.dumps(made.schema)) < 300_000  # and not three thousand characters for each of a thousand


def test_parts_of_all_are_taken_in_without_copying_what_is_there(monkeypatch):
    parts = [{"properties": {f"p{i}": {"type": "string"}}, "required": [f"p{i}"]} for i in range(500)]
    made = gemini({"type": "object", "allOf": parts}).schema
    assert list(made["properties"]) == made["required"] == [f"p{i}" for i in range(500)]
    clash = gemini({"type": "object", "allOf": [parts[0], {"properties": {"p0": {"type": "integer"}}}]})
    assert clash.schema["properties"] == {"p0": {"type": "string"}}
    assert "allOf" in clash.schema["description"]


@pytest.mark.parametrize(
    ("keyword", "draft"),
    [("$id", "https://json-schema.org/draft/2020-12/schema"), ("id", "http://json-schema.org/draft-04/schema#")],
)
def test_an_address_that_every_other_one_would_repeat_is_refused(keyword, draft):
    inner = {f"p{i}": {keyword: f"{i}"} for i in range(50)} | {"all": {"not": {}, "additionalProperties": False}}
    short = {"$schema": draft, keyword: "http://example.com/", "properties": inner}
    nested = {"$schema": draft, keyword: "http://example.com/", "properties": {"a": {keyword: "a/" * 1_020, "not": {}}}}
    Validator(short)
    for long in (short | {keyword: "http://example.com/" + "a/" * 2_000}, nested):
        with pytest.raises(SchemaRefused, match=r"an \$id in the schema is an address of more than 2048 characters"):
            Validator(long)


def test_what_goes_is_found_once_however_deep_it_lies(monkeypatch):
    seen = Counter()
    real = pattern.subschemas

    def counted(node):
        seen["all"] += 1
        return real(node)

    monkeypatch.setattr(pattern, "subschemas", counted)
    schema = {"not": {"pattern": "(?=a)"}}
    for _ in range(100):
        schema = {"properties": {"a": schema}, "oneOf": [{"minimum": 1}], "if": {"minimum": 1}, "then": {"minimum": 2}}
    made = Loosened(schema, without=frozenset(["(?=a)"]))
    assert [change.partition("…: ")[2] for change in made.changes] == [
        "not is not checked here: a pattern in it cannot run in linear time"
    ]
    assert seen["all"] < 1_000


def test_changes_are_told_within_a_bound():
    changes = Changes()
    changes.extend(f"#: {i}" for i in range(MOST + 5))
    changes.append("#: 1")
    assert len(changes.told) == MOST + 1
    assert changes.told[-1] == "#: and 5 other changes"
    long = Changes()
    long.append("x" * 1_000)
    assert long.told == ("x" * 300 + "…",)


def test_places_are_no_longer_than_it_takes_to_find_them():
    assert inside("#", "properties", "a", 3) == "#/properties/a/3"
    assert inside("#", "x" * 100) == "#/" + "x" * 64 + "…"
    deep = "#"
    for _ in range(1_000):
        deep = inside(deep, "properties", "name")
    assert len(deep) < 300
    assert deep.endswith("/…")


@pytest.mark.parametrize("form", FORMS)
def test_a_reference_to_the_inside_of_what_is_being_replaced_ends(form):
    inner = {"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/properties/a"}, {"type": "string"}]}}
    schema = {"type": "object", "properties": {"a": inner}, "required": ["a"], "additionalProperties": False}
    made = form(schema)
    assert made is not None
    for value, fits in (({"a": [{"a": []}, ["x", [{"a": ["y"]}]]]}, True), ({"a": [[1]]}, False), ({"a": [{}]}, False)):
        assert Validator(made.schema).accepts(value) is Validator(schema).accepts(value) is fits


def test_no_part_of_all_is_lost_where_parts_have_parts():
    parts = [{"allOf": [{"minLength": 1}, {"minLength": 2}]}, {"allOf": [{"minLength": 3}]}, {"not": {"const": 4}}]
    made = gemini({"type": "object", "properties": {"a": {"type": "string", "allOf": parts}}})
    assert all(f'"minLength":{number}' in made.schema["properties"]["a"]["description"] for number in (1, 2, 3))
