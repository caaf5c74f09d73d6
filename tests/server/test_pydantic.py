"""Types of pydantic are read and written by pydantic, and keep our promises."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from typing import Annotated, Any, Literal

import jsonschema
import msgspec
import pydantic
import pytest
from pydantic import (
    AfterValidator,
    AnyUrl,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    StringConstraints,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass

from mcprelay.errors import DefinitionError
from mcprelay.server.encoding import ResultInvalid
from mcprelay.server.report import ArgumentsInvalid
from mcprelay.server.signature import compile_call


class Inner(BaseModel):
    n: int


class Model(BaseModel):
    """A model."""

    a: int = Field(serialization_alias="A", ge=0, description="The a")
    inner: Inner | None = None

    @pydantic.computed_field
    @property
    def double(self) -> int:
        return self.a * 2


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Ignoring(BaseModel):
    model_config = ConfigDict(extra="ignore")
    a: int


class Aliased(BaseModel):
    name: str = Field(alias="fullName")


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]


class Ratio(BaseModel):
    value: float
    label: str = ""


class Maybe(BaseModel):
    share: float | None = None


@pydantic_dataclass
class Point:
    x: int
    y: PositiveInt = 1


def compiled(annotation: Any, **options: Any) -> Any:
    def handler(x): ...

    handler.__annotations__["x"] = annotation
    handler.__annotations__["return"] = annotation
    return compile_call(handler, **options)


def read(annotation: Any, value: Any, **options: Any) -> Any:
    (made,) = compiled(annotation, **options).decode(json.dumps({"x": value}).encode())
    return made


def refused(annotation: Any, value: Any, **options: Any) -> dict[str, str]:
    with pytest.raises(ArgumentsInvalid) as caught:
        read(annotation, value, **options)
    return {error.path: error.message for error in caught.value.errors}


def test_a_model_is_published_without_titles_and_closed():
    schema = compiled(Model).input_schema
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["x"] == {
        "type": "object",
        "description": "A model.",
        "properties": {
            "a": {"type": "integer", "minimum": 0, "description": "The a"},
            "inner": {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}], "default": None},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert schema["$defs"]["Inner"]["additionalProperties"] is False


def test_a_model_is_read_and_every_error_has_its_place():
    assert read(Model, {"a": "3", "inner": {"n": 1}}) == Model(a=3, inner=Inner(n=1))
    assert read(list[Model], [{"a": 1}]) == [Model(a=1)]
    assert read(Model | None, None) is None
    assert read(Model, '{"a": 1}') == Model(a=1)
    assert read(Aliased, {"fullName": "Ada"}) == Aliased(fullName="Ada")
    assert set(refused(Model, {"a": -1, "inner": {"n": "x", "m": 1}})) == {"/x/a", "/x/inner/n", "/x/inner/m"}
    assert set(refused(list[Model], [{"a": 1}, {"b": 1}])) == {"/x/1/a", "/x/1/b"}
    assert set(refused(Model, {"a": "3"}, strict=True)) == {"/x/a"}


def test_a_model_that_says_what_becomes_of_other_keys_has_its_way():
    assert read(Open, {"a": 1, "b": 2}).model_extra == {"b": 2}
    assert compiled(Open).input_schema["properties"]["x"]["additionalProperties"] is True
    assert read(Ignoring, {"a": 1, "b": 2}) == Ignoring(a=1)


def test_numbers_that_are_none_are_refused_even_as_strings():
    assert "finite" in refused(Ratio, {"value": "NaN"})["/x"]
    assert "finite" in refused(Ratio, {"value": "-Infinity"})["/x"]
    assert read(Ratio, {"value": 1, "label": "nan"}).label == "nan"


@pytest.mark.parametrize(
    ("annotation", "schema", "good", "bad"),
    [
        (
            Annotated[int, Field(ge=1, le=5, description="d")],
            {"type": "integer", "minimum": 1, "maximum": 5, "description": "d"},
            3,
            6,
        ),
        (PositiveInt, {"type": "integer", "exclusiveMinimum": 0}, 3, 0),
        (
            Annotated[str, Field(min_length=2, pattern="^a")],
            {"type": "string", "minLength": 2, "pattern": "^a"},
            "ab",
            "b",
        ),
        (
            list[Annotated[int, Field(gt=0)]],
            {"type": "array", "items": {"type": "integer", "exclusiveMinimum": 0}},
            [1],
            [0],
        ),
        (
            Annotated[list[int], Field(max_length=1)],
            {"type": "array", "items": {"type": "integer"}, "maxItems": 1},
            [1],
            [1, 2],
        ),
        (
            Annotated[str, StringConstraints(max_length=2, to_upper=True)],
            {"type": "string", "maxLength": 2},
            "ab",
            "abc",
        ),
        (Annotated[int, AfterValidator(abs)], {"type": "integer"}, 3, "x"),
        (AnyUrl, {"type": "string", "format": "uri", "minLength": 1}, "https://example.com", "x"),
    ],
    ids=str,
)
def test_constraints_of_pydantic_are_published_and_enforced(annotation, schema, good, bad):
    made = compiled(annotation)
    assert made.input_schema["properties"]["x"] == schema
    read(annotation, good)
    refused(annotation, bad)


def test_validators_of_pydantic_run():
    assert read(Annotated[int, AfterValidator(lambda value: value * 2)], 3) == 6
    assert read(Annotated[int, BeforeValidator(len)], "abc") == 3
    assert read(Annotated[str, StringConstraints(strip_whitespace=True)], " a ") == "a"


def test_what_a_field_adds_to_the_schema_is_published():
    annotation = Annotated[
        int, Field(json_schema_extra={"x-unit": "cm"}, examples=[1], deprecated=True, title="Length")
    ]
    assert compiled(annotation).input_schema["properties"]["x"] == {
        "type": "integer",
        "x-unit": "cm",
        "examples": [1],
        "deprecated": True,
        "title": "Length",
    }


def test_strictness_that_only_pydantic_knows_is_pydantics():
    assert refused(Annotated[int, Field(strict=True)], "3")
    assert refused(Annotated[float, Field(allow_inf_nan=False)], "x")


def test_a_default_with_notes_in_front_of_it():
    def handler(n: Annotated[int, "How many"] = Field(5, le=9)):
        return n

    assert compile_call(handler).input_schema["properties"]["n"] == {
        "type": "integer",
        "description": "How many",
        "maximum": 9,
        "default": 5,
    }


def test_a_discriminated_union_is_pydantics_own():
    annotation = Annotated[Cat | Dog, Field(discriminator="kind")]
    assert read(annotation, {"kind": "dog"}) == Dog(kind="dog")
    assert read(Cat | Dog, {"kind": "cat", "lives": "8"}) == Cat(kind="cat", lives=8)


def test_a_dataclass_of_pydantic_is_one():
    assert read(Point, {"x": "1"}) == Point(1)
    assert set(refused(Point, {"x": 1, "y": 0})) == {"/x/y"}


def test_a_field_as_the_default_says_default_constraints_and_name():
    def handler(
        n: int = Field(5, ge=1, description="d"),
        m: int = Field(ge=1),
        k: list = Field(default_factory=list, alias="K"),  # noqa: B008
    ):
        return (n, m, k)

    made = compile_call(handler)
    assert made.input_schema["properties"] == {
        "n": {"type": "integer", "minimum": 1, "description": "d", "default": 5},
        "m": {"type": "integer", "minimum": 1},
        "K": {"type": "array", "items": {}},
    }
    assert made.input_schema["required"] == ["m"]
    assert made.call(made.decode(b'{"m":2}'), ()) == (5, 2, [])


def test_a_default_inside_the_annotation_counts():
    def handler(n: Annotated[int, Field(default=5)], s: Annotated[str, Field()]):
        return (n, s)

    made = compile_call(handler)
    assert made.input_schema["required"] == ["s"]
    assert made.call(made.decode(b'{"s":"007"}'), ()) == (5, "007")


def test_two_models_of_one_name_keep_their_own_definitions():
    def make(kind):
        class Leaf(BaseModel):
            value: kind

        class Root(BaseModel):
            leaf: Leaf

        return Root

    def handler(a, b, c): ...

    first, second = make(int), make(str)
    handler.__annotations__.update(a=first, b=second, c=first)
    made = compile_call(handler)
    jsonschema.validate(
        {"a": {"leaf": {"value": 1}}, "b": {"leaf": {"value": "x"}}, "c": {"leaf": {"value": 2}}}, made.input_schema
    )
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(
            {"a": {"leaf": {"value": "x"}}, "b": {"leaf": {"value": "x"}}, "c": {"leaf": {"value": 2}}},
            made.input_schema,
        )


# --- output


def sent(annotation: Any, value: Any) -> Any:
    output = compiled(annotation).output
    result = output.result(value)
    data = msgspec.json.decode(result.structured_content)
    jsonschema.validate(data, output.schema)
    assert json.loads(result.content[0].text) == data
    return data


def test_what_a_model_sends_is_what_was_published_aliases_and_computed_fields_included():
    schema = compiled(Model).output_schema
    assert set(schema["properties"]) == {"A", "inner", "double"}
    assert sent(Model, Model(a=2)) == {"A": 2, "inner": None, "double": 4}
    assert sent(list[Model], [Model(a=2)]) == [{"A": 2, "inner": None, "double": 4}]
    assert sent(Model | None, None) is None
    assert sent(dict[str, Model], {"k": Model(a=1)})["k"]["A"] == 1
    assert sent(Model, {"a": 2}) == {"A": 2, "inner": None, "double": 4}


def test_times_of_a_model_are_what_was_published():
    class Event(BaseModel):
        at: dt.datetime
        length: dt.timedelta

    naive = Event(at=dt.datetime(2026, 1, 31), length=dt.timedelta(seconds=0.5))  # noqa: DTZ001 - the point
    output = compiled(Event).output
    data = msgspec.json.decode(output.result(naive).structured_content)
    jsonschema.validate(data, output.schema, format_checker=jsonschema.FormatChecker())


def test_a_model_that_holds_what_it_must_not_is_an_error():
    wrong = Model(a=1)
    wrong.a = "x"  # type: ignore[assignment]
    with pytest.raises(ResultInvalid):
        compiled(Model).output.result(wrong)
    with pytest.raises(ResultInvalid, match="finite"):
        compiled(Ratio).output.result(Ratio.model_construct(value=float("nan")))
    with pytest.raises(ResultInvalid, match="share: is a number that is not finite"):
        compiled(Maybe).output.result(Maybe(share=float("inf")))


def test_a_model_inside_what_is_not_typed_is_written_by_alias():
    def handler(): ...

    result = compile_call(handler).output.result({"m": Model(a=1)})
    assert msgspec.json.decode(result.structured_content) == {"m": {"A": 1, "inner": None, "double": 2}}


def test_what_pydantic_cannot_describe_is_refused_at_decoration():
    class Thing:
        pass

    with pytest.raises(DefinitionError, match="pydantic"):
        compiled(Annotated[Thing, AfterValidator(abs)])


def test_pydantic_is_not_imported_for_those_who_do_not_use_it():
    code = (
        "import sys\n"
        "from mcprelay.server.signature import compile_call\n"
        "def f(a: int, b: list[str] | None = None) -> dict[str, int]: ...\n"
        "c = compile_call(f)\n"
        "c.output.result({'a': 1}); c.decode(b'{\"a\":1}')\n"
        "heavy = {'pydantic', 'jsonschema_rs', 'docstring_parser', 'attr'} & set(sys.modules)\n"
        "print(sorted(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": "src"}
    )
    assert done.stdout.strip() == "[]"
