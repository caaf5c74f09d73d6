"""What is pinned, and the digest that stands for it."""

import hashlib
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcprelay.relay.errors import DefinitionRefused, SettingWrong
from mcprelay.relay.pins import canonical, define, matches
from mcprelay.types import Tool, ToolAnnotations

DATA = Path(__file__).parent / "data"
CORPUS = json.loads((DATA / "tool-digest.json").read_text(encoding="utf-8"))
CONTAINERS = json.loads((DATA / "container-identity.json").read_text(encoding="utf-8"))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


def wire(value, **how):
    return json.dumps(value, **how).encode()


# --- the published corpus ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", CORPUS, ids=lambda row: row["id"])
def test_a_row_of_the_published_corpus_reproduces(row):
    payload = row["payload"]
    for source in (
        payload,
        wire(payload),
        wire(payload, ensure_ascii=False, separators=(",", ":")),
        wire(payload, indent=2),
    ):
        definition = define(source)
        assert definition.digest.startswith(row["digest"])
        assert matches(row["digest"], definition.digest)
        assert matches(definition.digest, definition.digest)
        assert len(definition.digest) == len("sha256:") + 64
        if "material" in row:
            assert definition.canonical.decode() == row["material"]


@pytest.mark.parametrize("row", CONTAINERS, ids=lambda row: row["id"])
def test_what_only_looks_equal_in_other_languages_has_two_digests(row):
    left, right = (
        define(b'{"name":"t","inputSchema":' + row[side].encode() + b"}").digest for side in ("left", "right")
    )
    assert left != right


# --- what is in it ----------------------------------------------------------------------------------------------------


def test_the_digest_is_of_the_canonical_form_and_nothing_else():
    definition = define({"name": "t", "title": "", "description": "d", "inputSchema": {"b": [1], "a": {}}})
    text = b'{"description":"d","inputSchema":{"a":{},"b":[1]},"name":"t","title":""}'
    assert definition.canonical == text
    assert definition.digest == "sha256:" + hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("schema", ["null", "{}", "[]", None])
def test_an_absent_schema_is_an_empty_one(schema):
    member = b"" if schema is None else b',"inputSchema":' + schema.encode()
    assert define(b'{"name":"t"' + member + b"}") == define({"name": "t"})


@pytest.mark.parametrize("title", [None, 5, ["T"]])
def test_a_title_that_is_no_text_is_none(title):
    assert define({"name": "t", "title": title}) == define({"name": "t"})
    assert define({"name": "t", "title": ""}) != define({"name": "t"})


@pytest.mark.parametrize("description", [None, 5, {}])
def test_a_description_that_is_no_text_is_empty(description):
    assert define({"name": "t", "description": description}) == define({"name": "t", "description": ""})


def test_what_lies_outside_of_the_pin_never_matters():
    bare = {"name": "t", "description": "d", "inputSchema": {"type": "object"}}
    more = {
        **bare,
        "annotations": {"readOnlyHint": True},
        "_meta": {"x": 1},
        "outputSchema": {"type": "object"},
        "icons": [{"src": "https://x"}],
        "execution": {},
    }
    assert define(wire(more)) == define(bare)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "T"},
        {"name": "t "},
        {"title": "x"},
        {"description": "d."},
        {"description": "d\u200b"},
        {"inputSchema": {"type": "object", "properties": {"a": {"description": "p"}}}},
        {"inputSchema": {"type": "object", "properties": {"a": {"enum": ["y", "x"]}}}},
        {"inputSchema": {"type": "object", "properties": {"a": {"enum": ["x"]}}}},
        {"inputSchema": {"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {}}}},
        {"inputSchema": {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": []}},
    ],
)
def test_what_a_model_reads_always_matters(change):
    base = {
        "name": "t",
        "description": "d",
        "inputSchema": {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}},
    }
    assert define({**base, **change}) != define(base)


def test_an_object_with_numbers_for_names_is_no_list():
    one = define({"name": "t", "inputSchema": {"properties": {"0": {"a": 1}, "1": {"b": 1}}}})
    other = define({"name": "t", "inputSchema": {"properties": [{"a": 1}, {"b": 1}]}})
    assert one != other
    assert b'"10":1,"9":1' in define({"name": "t", "inputSchema": {"9": 1, "10": 1}}).canonical


def test_names_are_sorted_by_code_point():
    keys = ["\ue000", "\U0001f600", "a", "A", "", "é", "\uffff"]
    form = canonical(dict.fromkeys(keys, 1)).decode()
    assert form == '{"":1,"A":1,"a":1,"é":1,"\ue000":1,"\uffff":1,"😀":1}'


@pytest.mark.parametrize(
    ("number", "form"),
    [
        ("1", "1"),
        ("1.0", "1"),
        ("-2.50", "-2.5"),
        ("1e2", "100"),
        ("0.5", "0.5"),
        ("-0.0", "0"),
        ("-0", "0"),
        ("0.0", "0"),
        ("1e16", "10000000000000000"),
        ("1e17", "1.0e+17"),
        ("15e16", "1.5e+17"),
        ("0.0001", "0.0001"),
        ("0.00001", "1.0e-5"),
        ("1.5e-7", "1.5e-7"),
        ("1e300", "1.0e+300"),
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551617", "18446744073709551617"),
    ],
)
def test_a_number_has_one_form(number, form):
    definition = define(f'{{"name":"t","inputSchema":{{"n":{number}}}}}'.encode())
    assert f'"n":{form}}}'.encode() in definition.canonical
    assert define({"name": "t", "inputSchema": {"n": json.loads(number)}}) == definition


@settings(deadline=None)
@given(json_values)
@example(-0.0)
@example(6.424064206111193e16)
def test_the_form_does_not_depend_on_how_the_wire_wrote_it(value):
    payload = {"name": "t", "description": "é\u2028\x7f/<>&'\"", "inputSchema": {"x": value}}
    forms = [
        define(payload),
        define(wire(payload)),
        define(wire(payload, ensure_ascii=False, separators=(",", ":"))),
        define(wire(payload, ensure_ascii=False, indent=1)),
        define(wire({key: payload[key] for key in reversed(payload)})),
    ]
    assert len({form.canonical for form in forms}) == 1
    assert canonical(json.loads(forms[0].canonical)) == forms[0].canonical


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"t","inputSchema":{"n":1e999}}',
        '{"name":"t","inputSchema":{"n":-1e999}}',
        '{"name":"t","inputSchema":{"n":NaN}}',
        '{"name":"t","inputSchema":{"n":Infinity}}',
        '{"name":"t","inputSchema":{"n":1e-7,"m":1e999}}',
        '{"name":"t","inputSchema":{"n":1e-7,"m":NaN}}',
        '{"name":"t","description":"\\ud800"}',
        '{"name":"t","inputSchema":{"n":1e-7,"d":"\\udfff"}}',
        '{"name":"t","name":"u"}',
        '{"name":"t","inputSchema":{"a":1,"a":1}}',
        '{"name":"t","inputSchema":{"a":1,"a":"\\u0022\\u0022"}}',
        '{"name":"t","inputSchema":{"n":1e-7,"a":1,"a":2}}',
        '{"name":"t","inputSchema":"x"}',
        '{"name":"t","inputSchema":[1]}',
        '{"name":"t","inputSchema":true}',
        '{"description":"no name"}',
        '{"name":""}',
        '{"name":" \\t"}',
        '{"name":5}',
        "[]",
        "null",
        "{",
        "",
        '{"name":"t","inputSchema":' + '{"a":' * 500 + "1" + "}" * 501,
        '{"name":"t","inputSchema":' + '{"a":' * 5_000 + "1" + "}" * 5_001,
        '{"name":"t","inputSchema":{"n":1e-7,"a":' + "[" * 50_000 + "]" * 50_000 + "}}",
        '{"name":"t","inputSchema":{"n":' + "9" * 5_000 + "}}",
    ],
)
def test_what_is_no_definition_is_refused_and_has_no_digest(text):
    with pytest.raises(DefinitionRefused) as caught:
        define(text.encode())
    assert "no name" not in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {"\udc00": 1}, {1: 2}, b"x", object()])
def test_what_json_does_not_have_is_refused_in_decoded_values_too(value):
    with pytest.raises(DefinitionRefused):
        define({"name": "t", "inputSchema": {"x": value}})


def test_a_decoded_value_too_deep_or_too_long_is_refused():
    deep = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(DefinitionRefused, match="too deep"):
        define({"name": "t", "inputSchema": {"x": deep}})
    with pytest.raises(DefinitionRefused, match="too many digits"):
        define({"name": "t", "inputSchema": {"x": 10**5_000}})


def test_the_tools_without_a_number_do_not_share_one_digest():
    digests = set()
    for name in ("a", "b"):
        with pytest.raises(DefinitionRefused, match="not finite"):
            digests.add(define(f'{{"name":"{name}","inputSchema":{{"n":1e999}}}}'.encode()).digest)
    assert digests == set()


# --- tools ------------------------------------------------------------------------------------------------------------


def test_a_tool_is_defined_by_what_its_server_wrote_where_that_is_kept():
    raw = msgspec.Raw(b'{"name":"t","inputSchema":{"a":1,"a":2}}')
    tool = Tool(name="t", input_schema={"a": 2})
    assert define(tool).input_schema == {"a": 2}
    tool.__dict__["raw"] = raw
    with pytest.raises(DefinitionRefused, match="twice"):
        define(tool)


def test_a_tool_made_here_has_the_digest_of_its_wire_form():
    tool = Tool(
        name="t",
        title="T",
        description="d",
        input_schema={"type": "object"},
        annotations=ToolAnnotations(read_only_hint=True),
    )
    definition = define(tool)
    assert definition == define(msgspec.json.encode(tool))
    assert (definition.name, definition.title, definition.description) == ("t", "T", "d")
    assert hash(definition) == hash(define(msgspec.json.encode(tool)))
    assert definition != "t"


# --- pins -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pin", [None, 5, "", "sha256:", "sha256:" + "A" * 32, "sha256:" + "a" * 31, "a" * 64, "sha256:" + "a" * 64 + "\n"]
)
def test_a_pin_that_is_none_is_a_mistake_and_not_a_mismatch(pin):
    with pytest.raises(SettingWrong, match="64"):
        matches(pin, "sha256:" + "a" * 64)


def test_a_pin_matches_its_digest_alone():
    digest = define({"name": "t"}).digest
    assert not matches("sha256:" + "0" * 64, digest)
    assert not matches("sha256:" + "0" * 32, digest)
    assert matches(digest[:39], digest)
