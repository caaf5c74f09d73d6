"""Where schemas lie inside a document, and which of them a reference means."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.wire.reference import Document, SchemaRefused, mapped, pointed, subschemas, walked


def target(schema, reference, node=None):
    return Document(schema).target(schema if node is None else node, reference)


def test_keywords_hold_schemas_and_data_holds_none():
    inner = {"type": "string"}
    schema = {
        "properties": {"not": inner, "data": 5},
        "allOf": [inner, True, "no schema"],
        "items": [inner],
        "not": inner,
        "if": True,
        "enum": [{"properties": {"a": inner}}],
        "default": {"not": inner},
        "dependencies": {"a": ["b"], "c": inner},
        "minLength": 3,
    }
    assert [(keyword, name) for keyword, name, _ in subschemas(schema)] == [
        ("properties", "not"),
        ("allOf", 0),
        ("allOf", 1),
        ("items", 0),
        ("not", None),
        ("if", None),
        ("dependencies", "c"),
    ]


def test_a_pointer_finds_what_it_names():
    schema = {"$defs": {"a/b": {"x": 1}, "c~d": True, "e f": {"y": [{"z": 1}]}}}
    assert target(schema, "#/$defs/a~1b") == {"x": 1}
    assert target(schema, "#/$defs/c~0d") is True
    assert target(schema, "#/$defs/e%20f/y/0") == {"z": 1}
    assert target(schema, "#") is schema


@pytest.mark.parametrize(
    "reference", ["#/a", "#/a/b", "#/enum/3", "#/enum/-1", "#/enum/x", "#/type/0", "#/enum/999999999999"]
)
def test_a_reference_at_nothing_is_refused(reference):
    with pytest.raises(SchemaRefused, match="points at no schema"):
        target({"enum": [1, 2], "type": "string"}, reference)


@given(st.text(max_size=6), st.sampled_from(["", "https://a.example/s"]))
def test_a_pointer_finds_any_name_whether_or_not_the_document_has_an_address(name, base):
    escaped = name.replace("~", "~0").replace("/", "~1")
    inner = {"title": name}
    schema = {"$defs": {name: inner}} | ({"$id": base} if base else {})
    assert target(schema, "#/$defs/" + quote(escaped, safe="~")) is inner
    if name.isascii() and name.isprintable() and "%" not in name:
        assert target(schema, f"#/$defs/{escaped}") is inner


def test_an_anchor_is_found_within_its_resource():
    schema = {
        "$defs": {"a": {"$anchor": "here"}, "b": {"$dynamicAnchor": "there"}, "c": {"$id": "#old"}},
        "$id": "https://x.example/root",
    }
    assert target(schema, "#here") is schema["$defs"]["a"]
    assert target(schema, "#there") is schema["$defs"]["b"]
    assert target(schema, "#old") is schema["$defs"]["c"]
    assert target(schema, "root#here") is schema["$defs"]["a"]
    assert target(schema, "https://x.example/root#/$defs/a") is schema["$defs"]["a"]
    with pytest.raises(SchemaRefused, match="points at no schema"):
        target(schema, "#nowhere")


def test_an_embedded_resource_has_a_base_of_its_own():
    inner = {"$id": "inner", "$defs": {"x": {"type": "null"}}, "properties": {"p": {"$ref": "#/$defs/x"}}}
    schema = {"$id": "https://x.example/root", "$defs": {"x": {"type": "string"}, "inner": inner}}
    assert target(schema, "#/$defs/x", inner["properties"]["p"]) == {"type": "null"}
    assert target(schema, "#/$defs/x") == {"type": "string"}
    assert target(schema, "inner") is inner


def test_a_reference_from_a_node_out_of_the_document_means_the_root():
    schema = {"$id": "urn:x", "x-hidden": {"$ref": "#"}}
    assert target(schema, "#", schema["x-hidden"]) is schema


@pytest.mark.parametrize("schema", [{"$id": "http://["}, {"$id": "https://x.example/", "items": {"$id": "http://["}}])
def test_an_address_that_is_none_is_refused(schema):
    with pytest.raises(SchemaRefused, match="no URI reference"):
        target(schema, "#")


def test_a_document_that_shares_or_contains_itself_is_indexed_once():
    shared = {"$anchor": "s"}
    schema = {"allOf": [shared, shared]}
    schema["not"] = schema
    assert target(schema, "#s") is shared


def test_what_applies_because_a_schema_does_is_told_with_where():
    inner, shelf = {"type": "string"}, {"type": "null"}
    schema = {
        "items": inner,
        "allOf": [inner, True],
        "$ref": "#/$defs/n",
        "$dynamicRef": "#/$defs/t",
        "$defs": {"n": shelf, "t": True},
    }
    assert list(Document(schema).edges(schema)) == [(False, inner), (True, inner), (True, shelf)]


def test_a_reference_that_is_no_text_is_none():
    assert list(Document({"$ref": 5}).references({"$ref": 5})) == []


def test_walking_leaves_the_document_as_none():
    assert walked({"a": [1]}, ["a", 0]) == 1
    assert walked({"a": [1]}, ["a", 1]) is None
    assert walked(5, ["a"]) is None
    assert pointed({"": {"a": 1}}, "//a") == 1


def test_a_mapped_copy_leaves_the_original_alone():
    schema = {"properties": {"a": {}}, "anyOf": [{}], "not": {}, "dependencies": {"b": ["c"]}}
    made = mapped(schema, "#", lambda inner, place: {"at": place})
    assert made["properties"]["a"] == {"at": "#/properties/a"}
    assert made["anyOf"] == [{"at": "#/anyOf/0"}]
    assert made["not"] == {"at": "#/not"}
    assert schema == {"properties": {"a": {}}, "anyOf": [{}], "not": {}, "dependencies": {"b": ["c"]}}
