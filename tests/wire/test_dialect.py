"""Schemas rewritten for providers: nothing lost in silence, and a way back."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcprelay.wire.dialect import RULES, gemini, openai_strict, plain
from mcprelay.wire.reference import Document
from mcprelay.wire.restore import Nulls, member_names
from mcprelay.wire.schema import SchemaLimits, SchemaRefused, Validator

OPTIONAL = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "after": {"type": "string"}, "tag": {"type": ["string", "null"]}},
    "required": ["q"],
}
TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node"}, "at": {"$ref": "#/$defs/Point", "description": "where"}},
    "required": ["root"],
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "required": ["v"],
        },
        "Point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
    },
}


def properties(**members):
    return {"type": "object", "properties": members, "required": list(members)}


# --- plain ------------------------------------------------------------------------------------------------------------


def test_references_are_replaced_by_what_they_mean():
    made = plain(TREE).schema
    point = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"], "description": "where"}
    assert made["properties"]["at"] == point


def test_references_are_replaced_wherever_a_schema_lies():
    schema = {
        "type": "object",
        "$defs": {"s": {"type": "string"}},
        "properties": {"a": {"anyOf": [{"$ref": "#/$defs/s"}, True]}},
        "additionalProperties": {"$ref": "#/$defs/s"},
    }
    made = plain(schema).schema
    assert made["properties"]["a"]["anyOf"] == [{"type": "string"}, True]
    assert made["additionalProperties"] == {"type": "string"}


@pytest.mark.parametrize("more", [{"x-a": 1}, {"$comment": "a"}, {"definitions": {"a": True}}])
def test_what_is_left_out_is_left_out_where_nothing_else_is(more):
    inner = {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}
    assert plain({**inner, **more}).schema == inner
    assert plain(properties(b={**inner, **more})).schema["properties"]["b"] == inner


def test_a_document_without_references_is_the_same_one():
    schema = {"type": "object", "properties": {"a": {"allOf": [{"minLength": 1}, True], "default": "a$"}}}
    made = plain(schema)
    assert made.schema == schema
    assert made.changes == ()


def test_recursion_stays_a_reference_whose_target_stays_with_it():
    made = plain(TREE).schema
    kids = made["properties"]["root"]["properties"]["kids"]
    assert kids == {"type": "array", "items": {"$ref": "#/$defs/schema1"}}
    assert made["$defs"]["schema1"]["properties"]["kids"] == kids
    assert Validator(made).check({"root": {"v": 1, "kids": [{"v": "x"}]}})[0].path == "root.kids[0].v"


def test_a_root_that_refers_to_itself_stays_one():
    schema = {"type": "object", "properties": {"inner": {"$ref": "#"}}}
    assert plain(schema).schema == schema


def test_what_demands_nothing_is_left_out_and_listed():
    made = plain(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "x-hint": 1,
            "$comment": "c",
            "properties": {"x-real": {"type": "string", "x-mcp-header": "H"}},
        }
    )
    assert made.schema == {"type": "object", "properties": {"x-real": {"type": "string"}}}
    assert made.changes == (
        "#: $schema left out",
        "#: x-hint left out",
        "#: $comment left out",
        "#/properties/x-real: x-mcp-header left out",
    )


def test_arguments_are_an_object_whatever_the_schema_says():
    assert plain({}).schema == {"type": "object", "properties": {}}
    assert plain({"type": ["object", "null"], "properties": {}}).schema["type"] == "object"


@pytest.mark.parametrize(
    ("around", "made"),
    [
        ({}, {"type": "string"}),
        ({"title": "T"}, {"type": "string", "title": "T"}),
        ({"minLength": 1}, {"minLength": 1, "allOf": [{"type": "string"}]}),
        ({"allOf": [{}]}, {"allOf": [{}, {"type": "string"}]}),
    ],
)
def test_demands_beside_a_reference_still_hold(around, made):
    schema = {"properties": {"a": {"$ref": "#/$defs/s", **around}}, "$defs": {"s": {"type": "string"}}}
    assert plain(schema).schema["properties"]["a"] == made


def test_a_reference_to_a_boolean_schema_keeps_its_meaning():
    schema = {"properties": {"a": {"$ref": "#/$defs/t"}, "b": {"$ref": "#/$defs/f"}}, "$defs": {"t": True, "f": False}}
    assert plain(schema).schema["properties"] == {"a": {}, "b": {"not": {}}}


@pytest.mark.parametrize("levels", [30, 150])
def test_a_document_that_would_grow_too_large_keeps_its_references(levels):
    shelf = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)}
    schema = {
        "properties": {"a": {"$ref": "#/$defs/d0"}, "b": {"$ref": "#/$defs/t"}, "c": {"$ref": "#"}},
        "$defs": {**shelf, f"d{levels}": {"type": "string"}, "t": True},
    }
    made = plain(schema)
    assert made.changes[-2] == "#: references stay, because the schema without them would be too large"
    assert len(json.dumps(made.schema)) < 20_000
    assert made.schema["properties"]["a"] == {"$ref": "#/$defs/schema1"}
    assert len(made.schema["$defs"]) == levels + 1


def test_a_schema_over_a_limit_is_refused_in_every_dialect():
    for dialect in (plain, openai_strict, gemini):
        with pytest.raises(SchemaRefused, match="schema_nodes"):
            dialect(TREE, limits=SchemaLimits(schema_nodes=5))


def test_a_schema_that_is_known_to_be_well_formed_is_not_looked_at_again():
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}}}
    for dialect in (plain, openai_strict, gemini):
        known = dialect(schema, limits=SchemaLimits(schema_bytes=5), formed="known")
        assert known.schema == dialect(schema).schema


def test_who_is_given_a_schema_may_change_it():
    made = plain({"type": "object", "properties": {"a": {"type": "string"}}})
    made.schema["properties"].clear()
    assert list(made.schema["properties"]) == ["a"]


def test_names_of_members_that_a_provider_refuses_are_shown_as_others_and_given_back():
    schema = properties(**{"a b": properties(**{"$x": {"type": "array", "items": properties(é={})}}), "ok.-": {}})
    made = plain(schema, members="anthropic")
    assert made.schema["properties"]["a_b"]["required"] == ["_x"]
    assert "ok.-" in made.schema["properties"]
    assert "#: member 'a b' shown as 'a_b'" in made.changes
    sent = {"a_b": {"_x": [{"_": 1}]}, "ok.-": 2, "unknown": 3}
    assert made.restore(sent) == {"a b": {"$x": [{"é": 1}]}, "ok.-": 2, "unknown": 3}


def test_a_name_stays_renamed_where_another_part_requires_it():
    schema = {
        "allOf": [{"properties": {"a b": {}}}, {"required": ["a b"]}],
        "properties": {"c": True},
        "required": ["a b"],
    }
    made = plain(schema, members="anthropic").schema
    assert made["required"] == ["a_b"]


@settings(deadline=None)
@given(st.lists(st.text(max_size=70), unique=True, max_size=8), st.sampled_from(["anthropic", "gemini"]))
def test_renamed_members_keep_the_rule_and_stay_apart(names, members):
    made = member_names(names, RULES[members])
    assert list(made) == names
    assert len(set(made.values())) == len(names)
    assert all(RULES[members].fullmatch(name) for name in made.values())


# --- OpenAI, strict ---------------------------------------------------------------------------------------------------


def test_strict_requires_every_member_and_null_stands_for_left_out():
    made = openai_strict(OPTIONAL)
    assert made.schema == {
        "type": "object",
        "properties": {
            "q": {"type": "string"},
            "after": {"type": ["string", "null"]},
            "tag": {"type": ["string", "null"]},
        },
        "required": ["q", "after", "tag"],
        "additionalProperties": False,
    }
    assert made.restore({"q": "a", "after": None, "tag": None}) == {"q": "a", "tag": None}


def test_strict_takes_an_object_that_is_closed_already():
    assert openai_strict({"type": "object", "properties": {}, "additionalProperties": False}).changes == ()


def test_strict_gives_a_tool_without_parameters_empty_properties():
    assert openai_strict({"type": "object"}).schema["properties"] == {}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": True},
        {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
        {"anyOf": [{"type": "object"}]},
        {"properties": {"a": {"type": "object"}}},
        {"properties": {"a": {}}},
        {"properties": {"a": {"description": "anything"}}},
        {"properties": {"a": True}},
        {"properties": {"a": {"pattern": "^a"}}},
        {"properties": {"a": {"type": "array"}}},
        {"properties": {"a": {"type": "string", "minLength": 1}}},
        {"properties": {"a": {"oneOf": [{"type": "string"}, {"type": "null"}]}}},
        {"properties": {"a": {"anyOf": [{"type": "string"}], "pattern": "^a"}}},
        {"properties": {"a": {"$ref": "#", "type": "object"}}},
        {"properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"properties": {"a": {"enum": list(range(1_001))}}},
        {"properties": {"a": {"enum": ["x" * 120_001]}}},
        {"properties": {f"a{n}": {"type": "string"} for n in range(5_001)}},
    ],
)
def test_strict_is_none_where_the_meaning_would_change_or_a_bound_is_exceeded(schema):
    assert openai_strict(schema) is None


def test_strict_is_none_where_schemas_lie_too_deep():
    schema = {"type": "string"}
    for _ in range(11):
        schema = properties(a=schema)
    assert openai_strict(schema) is None


def test_strict_is_none_for_a_type_that_is_none():
    assert (
        openai_strict({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": {"type": "string"}}})
        is not None
    )
    with pytest.raises(SchemaRefused, match="not a valid schema"):
        openai_strict({"properties": {"a": {"type": "any"}}})


def test_strict_leaves_out_what_demands_nothing_and_lists_it():
    schema = {
        "properties": {
            "a": {"type": "string", "format": "uri", "default": "x", "myOwn": 1},
            "b": {"type": "string", "format": "date"},
        },
        "required": ["a", "b"],
    }
    made = openai_strict(schema)
    assert made.schema["properties"] == {"a": {"type": "string"}, "b": {"type": "string", "format": "date"}}
    assert set(made.changes) >= {f"#/properties/a: {keyword} left out" for keyword in ("format", "default", "myOwn")}


@pytest.mark.parametrize(
    ("member", "widened"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": ["string", "integer"]}, {"type": ["string", "integer", "null"]}),
        ({"type": "string", "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"enum": ["a"]}, {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}),
        ({"type": "string", "const": "a"}, {"anyOf": [{"type": "string", "const": "a"}, {"type": "null"}]}),
        (
            {"anyOf": [{"type": "string"}, {"type": "integer"}], "title": "T"},
            {"anyOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}], "title": "T"}, {"type": "null"}]},
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": "array", "items": {"type": "string"}}, {"type": ["array", "null"], "items": {"type": "string"}}),
    ],
)
def test_strict_widens_what_may_be_left_out(member, widened):
    assert openai_strict({"properties": {"a": member}}).schema["properties"]["a"] == widened


def test_strict_keeps_recursion_and_the_way_back_follows_it():
    made = openai_strict(TREE)
    assert made.schema["$defs"]["schema1"]["required"] == ["v", "kids"]
    sent = {"root": {"v": 1, "kids": [{"v": 2, "kids": None}]}, "at": None}
    assert made.restore(sent) == {"root": {"v": 1, "kids": [{"v": 2}]}}
    assert Validator(TREE).check(made.restore(sent)) == []


def test_the_way_back_keeps_a_null_where_any_alternative_takes_it():
    schema = {
        "properties": {
            "a": {
                "anyOf": [
                    properties(x={"type": "string"}),
                    {"type": "object", "properties": {"x": {"type": "null"}, "y": {"type": "string"}}},
                ]
            }
        }
    }
    made = plain(schema, members="any")
    assert made.restore({"a": {"x": None, "y": None}}) == {"a": {"x": None, "y": None}}
    strict = {"properties": {"a": schema["properties"]["a"]["anyOf"][1]}, "required": ["a"]}
    assert openai_strict(strict).restore({"a": {"x": None, "y": None}}) == {"a": {"x": None}}


def test_the_way_back_leaves_alone_what_it_does_not_know():
    made = openai_strict(OPTIONAL)
    assert made.restore({"q": None, "new": None, "after": [None], "tag": {"after": None}}) == {
        "q": None,
        "new": None,
        "after": [None],
        "tag": {"after": None},
    }


def test_the_way_back_follows_every_place_of_a_schema():
    optional = {"properties": {"o": {"type": "string"}}}
    schema = {
        "properties": {
            "list": {"prefixItems": [optional], "items": {"if": True, "then": optional, "else": True}},
            "open": {"additionalProperties": optional, "properties": 5},
            "free": {"items": True},
        }
    }
    from mcprelay.wire.restore import without_fill

    sent = {"list": [{"o": None}, {"o": None}], "open": {"k": {"o": None}}, "free": [{"o": None}]}
    assert without_fill(sent, schema, work=1_000_000) == {"list": [{}, {}], "open": {"k": {}}, "free": [{"o": None}]}


def test_the_way_back_stops_at_a_depth_that_no_validator_takes():
    made = openai_strict(TREE)
    sent = {"v": 1, "kids": None}
    for _ in range(400):
        sent = {"v": 1, "kids": [sent]}
    assert made.restore({"root": sent})["root"]["v"] == 1


@pytest.mark.parametrize(
    ("schema", "accepts"),
    [
        (True, True),
        (False, False),
        ({}, True),
        ({"type": "null"}, True),
        ({"type": "string"}, False),
        ({"type": ["string", "null"]}, True),
        ({"enum": ["a", None]}, True),
        ({"enum": ["a"]}, False),
        ({"const": None}, True),
        ({"const": "a"}, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"oneOf": [{"type": "string"}]}, False),
        ({"anyOf": [{"type": "null"}], "oneOf": [{"type": "string"}]}, False),
        ({"allOf": [{"type": "null"}, {"type": "string"}]}, False),
        ({"$ref": "#"}, True),
    ],
)
def test_whether_null_fits(schema, accepts):
    assert Nulls(Document(schema)).fit(schema) is accepts


@settings(deadline=None)
@given(st.fixed_dictionaries({"q": st.text()}, optional={"after": st.text(), "tag": st.none() | st.text()}))
def test_strict_arguments_come_back_as_the_original_ones(arguments):
    made = openai_strict(OPTIONAL)
    sent = {"q": None, "after": None, **arguments}
    assert Validator(made.schema).check({"tag": None, **sent}) == []
    assert made.restore(sent) == arguments


# --- Gemini -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "made"),
    [
        ({"type": "string", "minLength": 3}, {"type": "string", "description": "(minLength: 3)"}),
        (
            {"type": "string", "description": "d", "pattern": "^a", "default": "b"},
            {"type": "string", "description": 'd (pattern: "^a"; default: "b")'},
        ),
        ({"const": "a"}, {"enum": ["a"]}),
        ({"const": True}, {"description": "(const: true)"}),
        ({"enum": ["a", None]}, {"description": '(enum: ["a",null])'}),
        (
            {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9},
            {"type": "integer", "minimum": 1, "maximum": 8},
        ),
        (
            {"type": "integer", "exclusiveMinimum": 0, "minimum": 5},
            {"type": "integer", "minimum": 5, "description": "(exclusiveMinimum: 0)"},
        ),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "description": "(exclusiveMinimum: 0)"}),
        ({"type": "string", "myOwn": 1, "examples": ["a"]}, {"type": "string"}),
        ({"allOf": [{"type": "string"}, {"description": "d"}]}, {"type": "string", "description": "d"}),
        (
            {"allOf": [{"type": "string"}, {"type": "integer"}]},
            {"type": "string", "description": '(allOf: [{"type":"integer"}])'},
        ),
        ({"allOf": [True]}, {"description": "(allOf: [true])"}),
        (
            {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]},
            {"properties": {"b": {}, "a": {}}, "required": ["a", "b"]},
        ),
        (
            {"properties": {"a": {"type": "string"}}, "allOf": [{"properties": {"a": {"maximum": 3}}}]},
            {"properties": {"a": {"type": "string"}}, "description": '(allOf: [{"properties":{"a":{"maximum":3}}}])'},
        ),
        (
            {"properties": {"a": {}}, "additionalProperties": False, "allOf": [{"properties": {"b": {}}}]},
            {
                "properties": {"a": {}},
                "additionalProperties": False,
                "description": '(allOf: [{"properties":{"b":{}}}])',
            },
        ),
        (
            {"properties": {"a": True, "b": False}, "anyOf": [True, False, {"type": "null"}]},
            {"properties": {"a": {}}, "anyOf": [{}, {"type": "null"}]},
        ),
        ({"type": "array", "items": True}, {"type": "array"}),
        ({"not": {"const": "x" * 300}}, {"description": '(not: {"const":"' + "x" * 190 + "…)"}),
    ],
)
def test_gemini_is_told_in_words_what_its_keywords_cannot_say(member, made):
    found = gemini({"properties": {"m": member}}).schema["properties"]["m"]
    assert found == made or (
        "properties" in made and found["properties"] == made["properties"] and found == {**found, **made}
    )


def test_gemini_gets_tuples_of_older_drafts_as_tuples():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"m": {"type": "array", "items": [{"type": "string"}]}},
    }
    assert gemini(schema).schema["properties"]["m"] == {"type": "array", "prefixItems": [{"type": "string"}]}


def test_every_change_for_gemini_is_listed():
    made = gemini(
        {
            "properties": {
                "a-b": {"const": 1, "maxLength": 3, "allOf": [{"type": "integer", "exclusiveMinimum": 0}], "z": 1}
            }
        }
    )
    assert made.changes == (
        "#: type set to object, as arguments are",
        "#: member 'a-b' shown as 'a_b'",
        "#/properties/a_b: a part of allOf taken into the schema",
        "#/properties/a_b: exclusiveMinimum as minimum",
        "#/properties/a_b: const as enum",
        "#/properties/a_b: maxLength told in the description",
        "#/properties/a_b: z left out",
    )
    assert made.restore({"a_b": 1}) == {"a-b": 1}


def test_an_exclusive_bound_of_an_older_draft_is_no_number():
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"m": {"type": "integer", "exclusiveMinimum": True, "minimum": 1}},
    }
    assert gemini(schema).schema["properties"]["m"]["minimum"] == 1


# --- all --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", [plain, openai_strict, gemini])
def test_a_dialect_changes_nothing_that_it_was_given_and_shares_nothing_with_it(dialect):
    schema = {
        "properties": {"e": {"type": "string", "enum": ["a"]}, "n": TREE},
        "required": ["e"],
        "$defs": TREE["$defs"],
    }
    before = copy.deepcopy(schema)
    made = dialect(schema)
    made.schema["properties"]["e"].get("enum", []).append("evil")
    made.schema["required"].append("evil")
    assert schema == before
