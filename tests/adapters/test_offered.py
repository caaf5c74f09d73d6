"""What a relay has let through, every adapter can show."""

import importlib

import pytest

from mcprelay.adapters.offered import offered
from mcprelay.wire.dialect import gemini, openai_strict, plain
from mcprelay.wire.reference import SchemaRefused
from mcprelay.wire.schema import SchemaLimits, Validator

LIMITS = SchemaLimits(schema_depth=200)


def nested(levels):
    schema = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize("dialect", [plain, openai_strict, gemini])
@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        {"type": ["object", "null"]},
        {"$ref": "#/nope"},
        {"properties": {"a": {"$ref": "https://x.example/s"}}},
        {"properties": []},
        {"properties": {"a": True, "b": False}},
        {"properties": {"c": {"$ref": "#"}}},
        {"properties": {"a": {"pattern": "("}}},
        {"anyOf": [{"required": ["a"]}]},
        {"$defs": {"a": {"$dynamicAnchor": "x"}}, "properties": {"q": {"$dynamicRef": "#x"}}},
        {"definitions": {"x": {"type": "string"}}, "properties": {"a": {"$ref": "#/definitions/x"}}},
        nested(25),
        nested(60),
        nested(250),
    ],
    ids=lambda schema: str(schema)[:40],
)
def test_a_schema_that_arguments_can_be_checked_against_can_be_shown(schema, dialect):
    try:
        Validator(schema, limits=LIMITS)
    except SchemaRefused:
        with pytest.raises(SchemaRefused):
            dialect(schema, limits=LIMITS)
    else:
        dialect(schema, limits=LIMITS)


def test_a_mapping_of_guarded_tools_is_no_tool_set(tools):
    with pytest.raises(TypeError, match=r"await relay\.tools"):
        offered(dict(tools.items()))


@pytest.mark.parametrize("arguments", ["\ud800", '{"name": "\ud800"}'])
async def test_half_a_character_in_arguments_is_answered(tools, arguments):
    pytest.importorskip("openai")
    adapter = importlib.import_module("mcprelay.adapters.openai")
    answer = await adapter.call(tools, "house__greet", arguments)
    assert answer.failed
