import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.errors import DefinitionError
from mcprelay.wire.field import HeaderInvalid, Headers
from mcprelay.wire.mirror import HeaderParam, HeaderSchemaInvalid, disagreement, may_mirror, mirror, params_of

SAFE = 2**53 - 1


def prop(name="Region", **schema):
    return {"type": "string", "x-mcp-header": name, **schema}


def root(**properties):
    return {"type": "object", "properties": properties}


def received(*pairs):
    return Headers.lowered(pairs)


REGION = params_of(root(region=prop()))
COUNT = params_of(root(count=prop("Count", type="integer")))
FLAG = params_of(root(flag=prop("Flag", type="boolean")))


@given(st.integers(0, len("x-mcp-header") - 1))
def test_an_annotation_is_not_overlooked_however_its_name_is_written(at):
    name = "x-mcp-header"
    escaped = f"{name[:at]}\\u00{ord(name[at]):02x}{name[at + 1 :]}"
    assert may_mirror(b'{"%b": "Region"}' % name.encode())
    assert may_mirror(b'{"%b": "Region"}' % escaped.encode())
    assert not may_mirror(b'{"x-mcp-other": "Region"}')


def test_a_schema_without_annotations_mirrors_nothing():
    assert params_of(root(a={"type": "number"}, b={"type": "array", "items": {"type": "string"}})) == ()
    assert params_of({"type": "object"}) == ()


def test_an_annotated_property_is_compiled_once_into_its_header_and_path():
    assert (HeaderParam(header="Mcp-Param-Region", key=b"mcp-param-region", path=("region",), type="string"),) == REGION


def test_nested_properties_are_reached_by_properties_alone():
    schema = root(options={"type": "object", "properties": {"limit": prop("Limit", type="integer")}}, region=prop())
    assert [param.path for param in params_of(schema)] == [("options", "limit"), ("region",)]


def test_a_nullable_primitive_is_a_primitive():
    assert params_of(root(a=prop(type=["string", "null"])))[0].type == "string"


@pytest.mark.parametrize("name", ["Method", "Name", "x-y_z.1", "!#$%&'*+-.^_`|~"])
def test_every_token_is_a_name(name):
    assert params_of(root(a=prop(name)))[0].header == f"Mcp-Param-{name}"


@pytest.mark.parametrize(
    ("schema", "where", "why"),
    [
        (root(a=prop("")), "properties.a", "not empty"),
        (root(a=prop(5)), "properties.a", "a string that is not empty, not 5"),
        (root(a=prop(None)), "properties.a", "not None"),
        (root(a=prop("My Region")), "properties.a", "has ' '"),
        (root(a=prop("Region:Primary")), "properties.a", "has ':'"),
        (root(a=prop("Région")), "properties.a", "has 'é'"),
        (root(a=prop("Region\t1")), "properties.a", r"has '\t'"),
        (root(a=prop("Region\r\nX: 1")), "properties.a", r"has '\r'"),
        (root(a=prop("Region"), b=prop("Region")), "properties.b", "also given to a"),
        (root(a=prop("Region"), b=prop("REGION")), "properties.b", "also given to a"),
        (root(a=prop(type="number")), "properties.a", "'number'"),
        (root(a=prop(type="object")), "properties.a", "'object'"),
        (root(a=prop(type="array")), "properties.a", "'array'"),
        (root(a=prop(type="null")), "properties.a", "'null'"),
        (root(a=prop(type=["string", "integer"])), "properties.a", "only string, integer and boolean"),
        (root(a=prop(type=["null"])), "properties.a", "only string, integer and boolean"),
        (root(a={"x-mcp-header": "A"}), "properties.a", "states no type"),
        (root(a={"x-mcp-header": "A", "$ref": "#/$defs/A"}), "properties.a", "states no type"),
        ({"type": "string", "x-mcp-header": "A"}, "", "a chain of `properties`"),
        (root(a={"type": "array", "items": prop()}), "properties.a.items", "a chain"),
        (root(a={"type": "array", "prefixItems": [prop()]}), "properties.a.prefixItems.0", "a chain"),
        (root(a={"anyOf": [{"type": "null"}, prop()]}), "properties.a.anyOf.1", "a chain"),
        ({"allOf": [root(a=prop())]}, "allOf.0.properties.a", "a chain"),
        ({"oneOf": [root(a=prop())]}, "oneOf.0.properties.a", "a chain"),
        ({"not": root(a=prop())}, "not.properties.a", "a chain"),
        ({"if": root(a=prop())}, "if.properties.a", "a chain"),
        ({"then": root(a=prop())}, "then.properties.a", "a chain"),
        ({"else": root(a=prop())}, "else.properties.a", "a chain"),
        ({"$defs": {"A": prop()}}, "$defs.A", "a chain"),
        ({"definitions": {"A": prop()}}, "definitions.A", "a chain"),
        ({"patternProperties": {"^a": prop()}}, "patternProperties.^a", "a chain"),
        ({"additionalProperties": prop()}, "additionalProperties", "a chain"),
        ({"propertyNames": prop()}, "propertyNames", "a chain"),
        ({"dependentSchemas": {"a": root(b=prop())}}, "dependentSchemas.a.properties.b", "a chain"),
        ({"x-vendor": {"deep": [prop()]}}, "x-vendor.deep.0", "a chain"),
    ],
)
def test_an_annotation_that_breaks_a_rule_is_refused_with_its_place_and_the_reason(schema, where, why):
    with pytest.raises(HeaderSchemaInvalid) as caught:
        params_of(schema)
    assert isinstance(caught.value, DefinitionError)
    assert caught.value.where == where
    assert why in str(caught.value)
    assert (where or "the root") in str(caught.value)


def test_the_annotations_name_is_no_annotation_where_it_is_data_or_a_name():
    data = {"x-mcp-header": ""}
    schema = root(**{"x-mcp-header": {"type": "object", "default": data, "enum": [data], "examples": [data]}})
    assert params_of({**schema, "const": data}) == ()
    assert params_of(root(properties=root(a=prop())))[0].path == ("properties", "a")


def test_a_schema_that_nests_without_end_is_walked_without_recursion():
    schema = prop()
    for _ in range(5_000):
        schema = {"items": schema}
    with pytest.raises(HeaderSchemaInvalid):
        params_of(schema)


def test_values_are_mirrored_by_their_type():
    params = params_of(root(a=prop("A"), b=prop("B", type="integer"), c=prop("C", type="boolean")))
    assert mirror(params, {"a": "Hello, 世界", "b": -7, "c": True}) == [
        ("Mcp-Param-A", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("Mcp-Param-B", "-7"),
        ("Mcp-Param-C", "true"),
    ]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"region": None}, {"region": ["a"]}, {"region": {}}, {"other": "x"}, {"region": float("nan")}],
)
def test_a_value_that_is_absent_or_no_primitive_has_no_header(arguments):
    assert mirror(REGION, arguments) == []


def test_a_nested_value_is_read_at_its_exact_path():
    params = params_of(root(options={"properties": {"limit": prop("Limit", type="integer")}}))
    assert mirror(params, {"options": {"limit": 3}, "limit": 4}) == [("Mcp-Param-Limit", "3")]
    for absent in ({}, {"options": None}, {"options": []}, {"options": "limit"}, {"options": {"limit": None}}):
        assert mirror(params, absent) == []
        assert disagreement(params, absent, received()) is None


def test_a_number_that_is_whole_is_mirrored_as_an_integer_and_any_other_as_it_stands():
    assert mirror(COUNT, {"count": 42.0}) == [("Mcp-Param-Count", "42")]
    assert mirror(COUNT, {"count": 1.5}) == [("Mcp-Param-Count", "1.5")]


@pytest.mark.parametrize("value", [SAFE + 1, -SAFE - 1, 2.0**60])
def test_an_integer_outside_the_safe_range_is_not_mirrored(value):
    with pytest.raises(HeaderInvalid, match="outside the range"):
        mirror(COUNT, {"count": value})


JSON = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-SAFE, max_value=SAFE),
    st.floats(min_value=-1e6, max_value=1e6),
    st.text(alphabet=st.characters(codec="utf-8")),
    st.lists(st.integers(), max_size=2),
)


@given(JSON)
def test_what_the_client_mirrors_the_server_accepts(value):
    headers = received(*mirror(REGION, {"region": value}))
    assert disagreement(REGION, {"region": value}, headers) is None


@given(st.text(alphabet=st.characters(codec="utf-8")), st.text(alphabet=st.characters(codec="utf-8")))
def test_a_string_agrees_with_no_other_string(sent, held):
    headers = received(*mirror(REGION, {"region": sent}))
    assert (disagreement(REGION, {"region": held}, headers) is None) == (sent == held)


@pytest.mark.parametrize("text", ["42", "42.0", "4.2e1", "420e-1", " 42 ", "=?base64?NDI=?="])
@pytest.mark.parametrize("value", [42, 42.0])
def test_integers_are_compared_as_numbers(text, value):
    assert disagreement(COUNT, {"count": value}, received(("Mcp-Param-Count", text))) is None


@pytest.mark.parametrize(
    "text",
    [
        "43",
        "42.5",
        "042",
        "+42",
        "0x2a",
        "4_2",
        "",
        "true",
        "forty-two",
        "1e999999999",
        "1e99999999999999999999",
        "4" * 99,
    ],
)
def test_what_is_not_the_same_number_disagrees(text):
    reason = disagreement(COUNT, {"count": 42}, received(("Mcp-Param-Count", text)))
    assert reason.endswith("does not match; the body has 42 at count")


def test_neighbors_in_the_safe_range_are_not_rounded_together():
    headers = received(("Mcp-Param-Count", f"{SAFE}.4"))
    assert disagreement(COUNT, {"count": SAFE}, headers) is not None


def test_an_integer_outside_the_safe_range_agrees_with_nothing():
    value = SAFE + 1
    assert disagreement(COUNT, {"count": value}, received(("Mcp-Param-Count", str(value)))) is not None


@pytest.mark.parametrize(("text", "agrees"), [("true", True), ("True", False), ("1", False), ("false", False)])
def test_a_boolean_is_spelled_in_lower_case(text, agrees):
    assert (disagreement(FLAG, {"flag": True}, received(("Mcp-Param-Flag", text))) is None) == agrees


@pytest.mark.parametrize(
    ("arguments", "headers", "said"),
    [
        ({"region": "a"}, (), "Mcp-Param-Region header is missing; the body has 'a' at region"),
        ({"region": "a"}, (("Mcp-Param-Region", "b"),), "value 'b' does not match; the body has 'a' at region"),
        ({"region": "a"}, (("Mcp-Param-Region", "A"),), "value 'A' does not match"),
        ({}, (("Mcp-Param-Region", "b"),), "is present, but the body has no value at region"),
        (None, (("Mcp-Param-Region", "b"),), "is present, but the body has no value at region"),
        ({"region": None}, (("Mcp-Param-Region", "b"),), "is present, but the body has no value at region"),
        ({"region": ["b"]}, (("Mcp-Param-Region", "b"),), "does not match"),
        ({"region": "Hello"}, (("Mcp-Param-Region", "=?base64?SGVsbG8?="),), "value is invalid"),
        ({"region": "Hello"}, (("Mcp-Param-Region", "=?base64?SGVs!!!bG8=?="),), "value is invalid"),
        ({"region": "é"}, (("Mcp-Param-Region", b"\xe9"),), "value is invalid"),
        ({"region": "a"}, (("Mcp-Param-Region", "a"), ("Mcp-Param-Region", "b")), "came more than once"),
    ],
)
def test_each_way_to_disagree_is_told_exactly(arguments, headers, said):
    reason = disagreement(REGION, arguments, received(*headers))
    assert reason is not None
    assert reason.startswith("Mcp-Param-Region header ")
    assert said in reason


@pytest.mark.parametrize("arguments", [None, {}, {"region": None}, {"region": ["not a primitive"]}])
def test_no_header_is_expected_without_a_value_to_mirror(arguments):
    assert disagreement(REGION, arguments, received()) is None


def test_a_header_that_the_tool_does_not_declare_is_ignored():
    assert disagreement(REGION, {}, received(("Mcp-Param-Other", "\x00"))) is None
    assert disagreement((), {"region": "a"}, received(("Mcp-Param-Region", "b"))) is None
