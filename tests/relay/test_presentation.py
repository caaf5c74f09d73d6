"""What a model is shown of a definition: texts cleaned, names and constants as they are or not at all."""

import re
from pathlib import Path

import pytest

from mcprelay.relay.budget import Limits
from mcprelay.relay.errors import DefinitionRefused
from mcprelay.relay.pins import define
from mcprelay.relay.presentation import presented
from mcprelay.relay.reveal import reveal


def shown(limits=None, **more):
    return presented(define({"name": "t", **more}), limits=limits or Limits())


def test_texts_are_cleaned_and_the_digest_is_of_what_was_sent():
    definition = define(
        {"name": "t", "description": "Do\u200b it", "inputSchema": {"properties": {"a": {"description": "x\u202e"}}}}
    )
    made = presented(definition, limits=Limits())
    assert made.description == "Do it"
    assert made.schema == {"properties": {"a": {"description": "x"}}}
    assert definition != define({"name": "t", "description": "Do it", "inputSchema": made.schema})


def test_the_one_control_character_that_json_does_not_escape_is_cleaned_too():
    assert shown(inputSchema={"description": "a\x7fb"}).schema == {"description": "ab"}


def test_a_schema_with_nothing_to_clean_is_the_very_one():
    definition = define({"name": "t", "inputSchema": {"description": 'two\nlines and a "quote"'}})
    assert presented(definition, limits=Limits()).schema is definition.input_schema


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a\u200b": {}}},
        {"properties": {"a": {"enum": ["x\u200b"]}}},
        {"properties": {"a": {"const": "x\x1b"}}},
        {"properties": {"a": {"default": ["x\u00ad"]}}},
        {"required": ["a\u202e"]},
        {"required": ["a\x7f"]},
        {"properties": {"p": {"const": {"description": "a\u200bb"}}}},
        {"items": {"enum": [{"title": "q\u202er"}, ["b"]]}},
        {"default": {"$comment": "a\u200bb"}},
        {"anyOf": [{"examples": [{"x": {"description": "a\u200bb"}}]}]},
        {"properties": {"p": {"const": {"description\u200b": 1}}}},
        {"x-more": {"description": "a\u200bb"}},
        {"description": ["a\u200bb"]},
        {"dependencies": {"a": ["b\u200b"]}},
        {"not": {"properties": {"title": {"const": "a\u200bb"}}}},
    ],
)
def test_a_name_or_a_constant_that_cannot_be_seen_refuses_the_tool(schema):
    with pytest.raises(DefinitionRefused, match="cannot see"):
        shown(inputSchema=schema)


def test_texts_are_cleaned_wherever_a_schema_is_and_data_stays():
    schema = {
        "properties": {"description": {"title": "x\u202e", "const": {"title": "ß"}}, "title": True},
        "anyOf": [{"description": "y\u200b"}, False],
        "not": {"patternProperties": {"^ü": {"$comment": "z\u200b", "items": [{"title": "\u200bé"}, {}]}}},
        "additionalProperties": False,
    }
    assert shown(inputSchema=schema).schema == {
        "properties": {"description": {"title": "x", "const": {"title": "ß"}}, "title": True},
        "anyOf": [{"description": "y"}, False],
        "not": {"patternProperties": {"^ü": {"$comment": "z", "items": [{"title": "é"}, {}]}}},
        "additionalProperties": False,
    }


def test_honest_constants_stay():
    schema = {"properties": {"größe": {"enum": ["👩‍💻", "ß", 1, None]}}}
    assert shown(inputSchema=schema).schema == schema


def test_a_definition_too_large_is_refused_by_name_of_the_limit():
    with pytest.raises(DefinitionRefused, match="definition_bytes=100"):
        shown(limits=Limits(definition_bytes=100), description="x" * 100)


DOCUMENTED = Path(__file__).parents[2] / "docs/relay.md"
ROWS = re.findall(r"^\| (.+?: .+) \| (stay|taken out|a line feed) \| (stay|tool left out) \| (stay|marked) \|$",
                  DOCUMENTED.read_text(encoding="utf-8"), re.MULTILINE)  # fmt: skip


def characters(row):
    """What a row of the table is about: single ones, whole ranges, or sequences that stand in it."""
    numbers = re.findall(r"U\+([0-9A-F]+)(?: to U\+([0-9A-F]+))?", row)
    if not numbers:
        return row.rpartition(": ")[2].split(", ")
    return [chr(code) for first, last in numbers for code in range(int(first, 16), int(last or first, 16) + 1)]


def test_the_table_of_characters_has_all_its_rows():
    assert len(ROWS) == 11


@pytest.mark.parametrize(("row", "text", "compared", "review"), ROWS)
def test_the_table_of_characters_that_nobody_sees_says_what_is_so(row, text, compared, review):
    for char in characters(row):
        word = f"pass{char}word"
        cleaned = {"stay": word, "taken out": "password", "a line feed": "pass\nword"}[text]
        told = shown(description=word, inputSchema={"properties": {"a": {"description": word, "title": word}}})
        assert (told.description, told.schema["properties"]["a"]["title"]) == (cleaned, cleaned)
        assert told.schema["properties"]["a"]["description"] == cleaned
        for schema in ({"properties": {word: {}}}, {"enum": [word]}, {"default": word}, {word: 1}):
            if compared == "stay":
                assert shown(inputSchema=schema).schema == schema
            else:
                with pytest.raises(DefinitionRefused, match="cannot see"):
                    shown(inputSchema=schema)
        assert (reveal(word) == word) is (review == "stay")
