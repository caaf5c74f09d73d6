import contextlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcprelay.cli.argument import words_to_arguments, words_to_strings
from mcprelay.errors import ConfigurationError

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "options": {"type": "object"},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "level": {"enum": [1, 2, 3]},
        "mode": {"const": "fast"},
        "maybe": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "user": {"$ref": "#/$defs/User"},
        "users": {"type": "array", "items": {"$ref": "#/$defs/User"}},
        "anything": {},
        "open": True,
        "loop": {"$ref": "#/properties/loop"},
        "far": {"$ref": "https://example.com/schema"},
    },
    "$defs": {"User": {"type": "object"}, "a/b": {"type": "integer"}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["text=a b"], {"text": "a b"}),
        (["text=3"], {"text": "3"}),
        (["text=null"], {"text": "null"}),
        (["text="], {"text": ""}),
        (["text=a=b"], {"text": "a=b"}),
        (['text={"a": 1}'], {"text": '{"a": 1}'}),
        (["count=3"], {"count": 3}),
        (["count=3.0"], {"count": 3.0}),
        (["count=-12345678901234567890123"], {"count": -12345678901234567890123}),
        (["ratio=3"], {"ratio": 3}),
        (["ratio=0.5"], {"ratio": 0.5}),
        (["flag=true"], {"flag": True}),
        (["tags=a"], {"tags": ["a"]}),
        (["tags=a", "tags=b"], {"tags": ["a", "b"]}),
        (['tags=["a", "b"]'], {"tags": ["a", "b"]}),
        (["tags=[]"], {"tags": []}),
        (["tags=3"], {"tags": ["3"]}),
        (["sizes=3", "sizes=4"], {"sizes": [3, 4]}),
        (['options={"a": [1]}'], {"options": {"a": [1]}}),
        (["unit=celsius"], {"unit": "celsius"}),
        (["level=2"], {"level": 2}),
        (["mode=fast"], {"mode": "fast"}),
        (["maybe=null"], {"maybe": None}),
        (["maybe=x"], {"maybe": "x"}),
        (["either=3"], {"either": 3}),
        (["either=x"], {"either": "x"}),
        (['user={"name": "a"}'], {"user": {"name": "a"}}),
        (['users={"name": "a"}', 'users={"name": "b"}'], {"users": [{"name": "a"}, {"name": "b"}]}),
        (["anything=3"], {"anything": 3}),
        (["anything=x"], {"anything": "x"}),
        (["open=[1]"], {"open": [1]}),
        (["loop=x", "far=1"], {"loop": "x", "far": 1}),
        ([], {}),
    ],
)
def test_words_get_the_types_that_the_schema_says(words, arguments):
    got = words_to_arguments(words, SCHEMA)
    assert got == arguments
    assert [type(value) for value in got.values()] == [type(value) for value in arguments.values()]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["text"], "'text': an argument is written key=value"),
        (["=x"], "an argument is written key=value"),
        (["count=x"], "count is a whole number, and not 'x'"),
        (["count=1.5"], "count is a whole number, and not '1.5'"),
        (["count=true"], "count is a whole number, and not 'true'"),
        (["ratio=NaN"], "ratio is a number, and not 'NaN'"),
        (["flag=yes"], "flag is true or false, and not 'yes'"),
        (["sizes=a", "sizes=b"], "sizes is a whole number, and not 'a'"),
        (["options=[]"], "options is an object in JSON"),
        (["unit=kelvin"], "unit is one of celsius, fahrenheit, and not 'kelvin'"),
        (["level=2.0"], "level is one of 1, 2, 3"),
        (["mode=slow"], "mode is one of fast"),
        (["count=1", "count=2"], "count is given twice, and it is no list"),
        (["cuont=1"], "the tool has no argument 'cuont'; did you mean count?"),
        (["zzz=1"], "the tool has no argument 'zzz'; it has text, count,"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_is_sent(words, sentence):
    with pytest.raises(ConfigurationError) as caught:
        words_to_arguments(words, SCHEMA)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": 3}, {"properties": {"key": "nonsense"}}])
def test_without_a_useful_schema_a_value_is_json_or_a_text(schema):
    assert words_to_arguments(["key=1", "other=x"], schema) == {"key": 1, "other": "x"}


def test_a_tool_without_arguments_says_so():
    with pytest.raises(ConfigurationError, match="it has none"):
        words_to_arguments(["a=1"], {"type": "object", "additionalProperties": False})


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(deadline=None)
@given(schema=json, word=st.text())
def test_no_schema_and_no_word_is_more_than_an_error(schema, word):
    """The schema is a server's: it may be anything."""
    whole = schema if isinstance(schema, dict) else {"properties": {"key": schema}, "$defs": schema}
    with contextlib.suppress(ConfigurationError):
        assert list(words_to_arguments([f"key={word}"], whole)) == ["key"]


@settings(deadline=None)
@given(value=json)
def test_json_comes_through_where_anything_is_allowed(value):
    text = msgspec.json.encode(value).decode()
    got = words_to_arguments([f"key={text}"], {})["key"]
    assert got == (msgspec.json.decode(text))


def test_the_arguments_of_a_prompt_are_strings():
    assert words_to_strings(["a=1", "b=x=y"]) == {"a": "1", "b": "x=y"}
    with pytest.raises(ConfigurationError, match="a is given twice"):
        words_to_strings(["a=1", "a=2"])


def test_all_that_is_wrong_is_told_at_once():
    schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}}, "additionalProperties": False}
    with pytest.raises(ConfigurationError, match="a is a whole number.*b is true or false.*no argument 'c'"):
        words_to_arguments(["a=x", "b=y", "c=1"], schema)
