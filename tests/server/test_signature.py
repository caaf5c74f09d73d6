"""Callables of every kind become one definition and one call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec, TypedDict, Unpack

import pytest

from mcprelay.errors import DefinitionError
from mcprelay.server.report import ArgumentsInvalid
from mcprelay.server.schema import Schema
from mcprelay.server.signature import Compiled, arms, compile_call

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypeCheckers


class Context:
    """What is injected in these tests."""


class Depends:
    def __init__(self, function):
        self.function = function


def injects(_name: str, annotation: Any) -> Any:
    for arm, metadata in arms(annotation):
        if arm is Context:
            return "context"
        for item in metadata:
            if isinstance(item, Depends):
                return item
    return None


def run(compiled: Compiled, arguments: str, *injected: Any) -> Any:
    return compiled.call(compiled.decode(arguments.encode()), injected)


def properties(function: Any, **options: Any) -> dict[str, Any]:
    return compile_call(function, **options).input_schema["properties"]


# --- T33: postponed annotations and injection


def test_postponed_annotations_are_evaluated_and_the_context_is_in_no_schema():
    def first(q: str, ctx: Context) -> str:
        return q

    def second(q: str, c: "Context | None" = None) -> str:  # noqa: UP037 - the other spelling
        return q

    for function in (first, second):
        schema = compile_call(function, injects=injects).input_schema
        assert schema["properties"] == {"q": {"type": "string"}}
        assert schema["required"] == ["q"]


def test_injected_values_go_where_the_signature_wants_them():
    def handler(a: int, ctx: Context, b: int, *, db: Annotated[str, Depends(len)], c: int = 3) -> tuple[Any, ...]:
        return (a, ctx, b, db, c)

    compiled = compile_call(handler, injects=injects)
    assert [injection.name for injection in compiled.injections] == ["ctx", "db"]
    assert isinstance(compiled.injections[1].token, Depends)
    assert run(compiled, '{"a":1,"b":2}', "the context", "the db") == (1, "the context", 2, "the db", 3)


@pytest.mark.parametrize("order", ["first", "last"])
def test_a_context_at_either_end_is_passed_there(order):
    def first(ctx: Context, a: int) -> Any:
        return (ctx, a)

    def last(a: int, ctx: Context) -> Any:
        return (ctx, a)

    compiled = compile_call(first if order == "first" else last, injects=injects)
    assert run(compiled, '{"a":1}', "ctx") == ("ctx", 1)


def test_a_name_that_exists_only_for_type_checkers_is_named_with_function_and_place():
    def handler(price: OnlyForTypeCheckers) -> str: ...

    with pytest.raises(DefinitionError) as caught:
        compile_call(handler)
    message = str(caught.value)
    assert "'OnlyForTypeCheckers'" in message
    assert "handler" in message
    assert f"test_signature.py:{handler.__code__.co_firstlineno}" in message
    assert "'price'" in message


def test_a_name_that_exists_only_for_type_checkers_can_be_given():
    def handler(price: OnlyForTypeCheckers) -> str: ...

    assert compile_call(handler, names={"OnlyForTypeCheckers": int}).input_schema["properties"] == {
        "price": {"type": "integer"}
    }


@pytest.mark.parametrize(
    ("annotation", "default"), [(int, "a"), (str, 3), (int, True), (bool, 0), (int, 1.5), (list[int], "a")]
)
def test_a_default_that_its_own_schema_refuses_is_named_at_definition(annotation, default):
    def handler(x=default): ...

    handler.__annotations__["x"] = annotation
    with pytest.raises(DefinitionError, match=r"parameter 'x': its default .* is no \w+") as caught:
        compile_call(handler)
    assert repr(default) in str(caught.value)


def test_a_default_that_fits_or_says_that_there_is_none_is_left_alone():
    def handler(a: float = 1, b: int = 2.0, c: int = None, d: int | str = "d", e: int = float("inf")) -> Any:  # noqa: RUF013
        return (a, b, c, d, e)

    assert run(compile_call(handler), "{}") == (1, 2.0, None, "d", float("inf"))


def test_an_injected_value_in_the_middle_is_passed_there():
    def handler(a: int, ctx: Context, b: int) -> Any:
        return (a, ctx, b)

    assert run(compile_call(handler, injects=injects), '{"a":1,"b":2}', "ctx") == (1, "ctx", 2)


def test_an_annotation_that_is_no_type_says_so():
    def handler(x: "print + 1"): ...  # noqa: UP037 - the point

    with pytest.raises(DefinitionError, match="cannot be evaluated"):
        compile_call(handler)

    def other(x: "Missing[print + 1]"): ...  # noqa: F821, UP037 - the point

    with pytest.raises(DefinitionError, match="'Missing'"):
        compile_call(other)


def test_a_class_whose_call_takes_everything_takes_everything():
    class Sink:
        def __call__(*given: Any) -> Any:
            return given

    compiled = compile_call(Sink)
    assert compiled.on(len)(compiled.decode(b'{"given":[[1,2]]}'), ()) == 2


def test_a_class_defined_in_the_same_function_is_found():
    @dataclass
    class Point:
        x: int
        y: Other | None = None

    @dataclass
    class Other:
        z: int

    def handler(point: Point) -> int:
        return point.x

    compiled = compile_call(handler)
    assert run(compiled, '{"point":{"x":3,"y":{"z":4}}}') == 3


def test_arms_look_through_unions_and_annotations():
    assert arms(Annotated[Context | None, 1]) == [(Context, (1,))]
    assert arms(None | int | str) == [(int, ()), (str, ())]
    assert arms(list[int]) == [(list[int], ())]


# --- T35: everything that can be called


class Adder:
    """Adds."""

    def __init__(self, base: int = 10) -> None:
        self.base = base

    def add(self, x: int) -> int:
        """Add to the base."""
        return self.base + x

    def __call__(self, x: int) -> int:
        return self.base + x

    @staticmethod
    def plus(x: int, y: int = 10) -> int:
        return x + y

    @classmethod
    def made(cls, x: int) -> int:
        return cls().base + x


def add(x: int, y: int) -> int:
    """Add."""
    return x + y


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (functools.partial(add, y=10), "add"),
        (functools.partial(add, 10), "add"),
        (Adder().add, "add"),
        (Adder(), "Adder"),
        (Adder.plus, "plus"),
        (Adder().plus, "plus"),
        (vars(Adder)["plus"], "plus"),
        (Adder.made, "made"),
        (functools.partial(functools.partial(add, 10)), "add"),
    ],
)
def test_anything_that_can_be_called_has_its_own_parameters(function, name):
    compiled = compile_call(function)
    known = dict(compiled.input_schema["properties"])
    only = known.pop("x", None) or known.pop("y")
    assert only == {"type": "integer"}
    assert all(part == {"type": "integer", "default": 10} for part in known.values())
    assert "self" not in known
    assert "cls" not in known
    assert compiled.name == name
    key = compiled.input_schema["required"][0]
    assert run(compiled, f'{{"{key}":1}}') == 11


def test_a_wrapper_keeps_the_signature_of_what_it_wraps():
    def loud(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return str(function(*args, **kwargs)).upper()

        return wrapper

    @loud
    def greet(name: str, times: int = 1) -> str:
        """Greet somebody."""
        return name * times

    compiled = compile_call(greet)
    assert compiled.description == "Greet somebody."
    assert list(compiled.keys) == ["name", "times"]
    assert run(compiled, '{"name":"ada"}') == "ADA"


def test_a_cached_function_is_compiled_like_a_plain_one():
    @functools.lru_cache
    def square(x: int) -> int:
        """Square."""
        return x * x

    compiled = compile_call(square)
    assert (compiled.name, compiled.description) == ("square", "Square.")
    assert run(compiled, '{"x":3}') == 9


def test_a_class_is_called_through_an_instance_that_comes_later():
    compiled = compile_call(Adder)
    assert compiled.owner is Adder
    assert compiled.name == "Adder"
    assert compiled.description == "Adds."
    assert compiled.on(Adder(5))(compiled.decode(b'{"x":1}'), ()) == 6


def test_a_method_of_a_class_is_called_on_an_instance_that_comes_later():
    compiled = compile_call(Adder.add, owner=Adder)
    assert list(compiled.keys) == ["x"]
    assert compiled.on(Adder(5), "add")(compiled.decode(b'{"x":1}'), ()) == 6


def test_a_method_taken_from_its_class_is_refused_with_advice():
    with pytest.raises(DefinitionError, match=r"Adder.add is a method without its object .*free decorators"):
        compile_call(Adder.add)
    with pytest.raises(DefinitionError, match="method without its object"):
        compile_call(functools.partial(Adder.add, x=1))
    assert compile_call(Adder().add).keys == ("x",)


def test_a_wrapper_that_hides_what_it_wraps_takes_anything():
    P = ParamSpec("P")  # noqa: N806 - as users write it

    def loud(function: Callable[P, Any]) -> Any:
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
            return function(*args, **kwargs)

        return wrapper

    compiled = compile_call(loud(add))
    assert run(compiled, '{"args":[1],"y":2}') == 3


def test_a_lambda_needs_a_name():
    with pytest.raises(DefinitionError, match="name="):
        compile_call(lambda x: x)
    compiled = compile_call(lambda x: x, name="same")
    assert run(compiled, '{"x":1}') == 1


def test_a_class_without_call_and_a_classmethod_object_are_refused():
    class Silent: ...

    with pytest.raises(DefinitionError, match="no __call__"):
        compile_call(Silent)
    with pytest.raises(DefinitionError, match="classmethod"):
        compile_call(vars(Adder)["made"])
    with pytest.raises(DefinitionError, match="cannot be called"):
        compile_call(3)


def test_flavors_of_functions_are_told_apart():
    async def coroutine(): ...

    def generator():
        yield 1

    async def agenerator():
        yield 1

    class Caller:
        async def __call__(self): ...

    def flavor(function):
        compiled = compile_call(function)
        return (compiled.is_async, compiled.is_generator)

    assert flavor(coroutine) == (True, False)
    assert flavor(functools.partial(coroutine)) == (True, False)
    assert flavor(Caller()) == (True, False)
    assert flavor(Caller) == (True, False)
    assert flavor(generator) == (False, True)
    assert flavor(agenerator) == (False, True)
    assert flavor(add) == (False, False)


def test_a_builtin_without_a_signature_says_so():
    assert compile_call(len).name == "len"
    with pytest.raises(DefinitionError, match="signature"):
        compile_call(vars(dict)["update"])


# --- parameters of every kind


def test_parameters_of_every_kind_arrive_where_they_belong():
    def handler(a: int, /, b: int, *rest: int, c: int, d: int = 4, **others: str) -> Any:
        return (a, b, rest, c, d, others)

    compiled = compile_call(handler)
    assert compiled.takes_others
    schema = compiled.input_schema
    assert schema["properties"]["rest"] == {"type": "array", "items": {"type": "integer"}, "default": []}
    assert schema["additionalProperties"] == {"type": "string"}
    assert schema["required"] == ["a", "b", "c"]
    assert run(compiled, '{"a":1,"b":2,"c":3}') == (1, 2, (), 3, 4, {})
    assert run(compiled, '{"a":1,"b":2,"rest":[5,6],"c":3,"x":"y"}') == (1, 2, (5, 6), 3, 4, {"x": "y"})
    with pytest.raises(ArgumentsInvalid, match=r"x: expected a string, got the number 7"):
        compiled.decode(b'{"a":1,"b":2,"c":3,"x":7}')


def test_other_arguments_cannot_take_the_name_of_an_injected_one():
    def handler(ctx: Context, **others: Any) -> Any:
        return others

    compiled = compile_call(handler, injects=injects)
    assert run(compiled, '{"a":1}', "ctx") == {"a": 1}
    with pytest.raises(ArgumentsInvalid, match="ctx"):
        compiled.decode(b'{"ctx":1}')


class Options(TypedDict, total=False):
    size: int
    color: str


def test_keyword_arguments_unpacked_from_a_typed_dict_are_named():
    def handler(a: int, **options: Unpack[Options]) -> Any:
        return (a, options)

    compiled = compile_call(handler)
    assert compiled.input_schema["properties"] == {
        "a": {"type": "integer"},
        "size": {"type": "integer"},
        "color": {"type": "string"},
    }
    assert compiled.input_schema["additionalProperties"] is False
    assert run(compiled, '{"a":1,"color":"red"}') == (1, {"color": "red"})


def test_parameters_may_have_any_name_that_python_allows():
    def handler(self: int, model_config: int, _x: int, kwargs: int, p0: int, type: str, schema: int, 数: int) -> Any:  # noqa: N803, PLC2401, PLR0917
        return (self, model_config, _x, kwargs, p0, type, schema, 数)

    compiled = compile_call(handler)
    assert run(compiled, '{"self":1,"model_config":2,"_x":3,"kwargs":4,"p0":5,"type":"6","schema":7,"数":8}') == (
        1,
        2,
        3,
        4,
        5,
        "6",
        7,
        8,
    )


def test_a_callable_without_parameters_takes_nothing():
    def handler() -> int:
        return 7

    compiled = compile_call(handler)
    assert compiled.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert compiled.decode(None) == ()
    assert run(compiled, "{}") == 7
    assert run(compiled, "null") == 7
    with pytest.raises(ArgumentsInvalid, match="none is taken"):
        compiled.decode(b'{"x":1}')


def test_unannotated_parameters_take_anything():
    def handler(value, other=3):
        return (value, other)

    compiled = compile_call(handler)
    assert compiled.input_schema["properties"] == {"value": {}, "other": {"default": 3}}
    assert run(compiled, '{"value":[1,{"a":null}]}') == ([1, {"a": None}], 3)


# --- T38: optional and default


def test_optional_and_default_are_two_things():
    def handler(q: str, limit: int | None = None, n: int = 3) -> Any:
        return (q, limit, n)

    compiled = compile_call(handler)
    assert compiled.input_schema["required"] == ["q"]
    assert compiled.input_schema["properties"]["n"] == {"type": "integer", "default": 3}
    assert compiled.input_schema["properties"]["limit"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "default": None,
    }
    assert run(compiled, '{"q":"a"}') == run(compiled, '{"q":"a","limit":null}') == ("a", None, 3)
    with pytest.raises(ArgumentsInvalid, match="q: is missing"):
        compiled.decode(b"{}")
    with pytest.raises(ArgumentsInvalid, match="n: expected an integer, got null"):
        compiled.decode(b'{"q":"a","n":null}')


def test_nullable_without_a_default_must_be_given():
    def handler(x: str | None) -> Any:
        return x

    compiled = compile_call(handler)
    assert compiled.input_schema["required"] == ["x"]
    assert run(compiled, '{"x":null}') is None


def test_a_mutable_default_is_the_very_object_that_python_would_use():
    kept: list[int] = []

    def handler(x: list[int] = kept) -> Any:
        return x

    assert run(compile_call(handler), "{}") is kept


def test_defaults_are_published_where_json_can_say_them():
    class Unsayable:
        pass

    def handler(
        when: Annotated[Any, "d"] = Unsayable(),  # noqa: B008 - the point
        point: Literal["a", "b"] = "b",
        ratio: float = float("inf"),
        pair: tuple[int, int] = (1, 2),
    ) -> Any: ...

    known = properties(handler)
    assert "default" not in known["when"]
    assert known["point"]["default"] == "b"
    assert "default" not in known["ratio"]
    assert known["pair"]["default"] == [1, 2]


# --- T42 and the callable's own Schema


def test_an_unknown_argument_is_refused_with_what_was_probably_meant():
    ran = []

    def handler(q: str, limit: int | None = None) -> None:
        ran.append(q)

    compiled = compile_call(handler)
    assert compiled.input_schema["additionalProperties"] is False
    with pytest.raises(ArgumentsInvalid) as caught:
        compiled.decode(b'{"q":"a","limt":5}')
    assert "limt" in str(caught.value)
    assert "did you mean 'limit'" in str(caught.value)
    assert caught.value.errors[0].path == "/limt"
    assert not ran


def test_a_schema_for_the_whole_adds_to_single_parameters_and_the_parameter_has_the_last_word():
    def handler(first: float, second: Annotated[float, Schema(maximum=5)], precision: int = 2) -> Any:
        """Calculate.

        Args:
            first: From the docstring
            second: From the docstring
        """
        return (first, second, precision)

    compiled = compile_call(
        handler,
        schema=Schema(
            title="Range",
            properties={
                "first": Schema("From the schema", minimum=0, maximum=1000),
                "second": {"minimum": 0, "maximum": 1000},
                "precision": {"multipleOf": 2, "maximum": 10},
            },
            required=["precision"],
        ),
    )
    assert compiled.input_schema == {
        "type": "object",
        "properties": {
            "first": {"type": "number", "description": "From the schema", "minimum": 0, "maximum": 1000},
            "second": {"type": "number", "maximum": 5, "description": "From the docstring", "minimum": 0},
            "precision": {"type": "integer", "multipleOf": 2, "maximum": 10, "default": 2},
        },
        "required": ["first", "second"],
        "additionalProperties": False,
        "title": "Range",
    }
    assert run(compiled, '{"first":1,"second":5,"precision":4}') == (1, 5, 4)
    for wrong in ('{"first":-1,"second":1}', '{"first":1,"second":6}', '{"first":1,"second":1,"precision":3}'):
        with pytest.raises(ArgumentsInvalid):
            compiled.decode(wrong.encode())


def test_a_schema_for_the_whole_can_constrain_arguments_together():
    def handler(a: int = 0, b: int = 0) -> Any:
        return (a, b)

    compiled = compile_call(handler, schema=Schema(min_properties=1, extra={"dependentRequired": {"a": ["b"]}}))
    assert compiled.input_schema["dependentRequired"] == {"a": ["b"]}
    assert run(compiled, '{"a":1,"b":2}') == (1, 2)
    for wrong in (b"{}", b'{"a":1}'):
        with pytest.raises(ArgumentsInvalid):
            compiled.decode(wrong)


def test_a_definition_replaces_the_whole_schema_and_is_enforced():
    definition = {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 3}, "note": {"type": "string"}},
        "required": ["a"],
    }

    def handler(a: int, b: int = 7) -> Any:
        return (a, b)

    compiled = compile_call(handler, schema=Schema(definition=definition))
    assert compiled.input_schema == definition
    assert run(compiled, '{"a":"4","note":"passed over"}') == (4, 7)
    with pytest.raises(ArgumentsInvalid, match="at least 3"):
        compiled.decode(b'{"a":1}')


def test_a_definition_that_asks_for_less_than_the_function_is_told_at_the_call():
    def handler(a: int) -> Any:
        return a

    compiled = compile_call(handler, schema=Schema(definition={"type": "object"}))
    with pytest.raises(ArgumentsInvalid, match="a: is missing"):
        compiled.decode(b"{}")


def test_what_is_no_schema_is_refused_at_decoration():
    def handler(a: int) -> Any: ...

    for wrong in (
        Schema(definition={"type": "array"}),
        Schema(properties={"b": {"minimum": 3}}),
        Schema(properties={"a": {"minLength": 3}}),
        Schema(extra={"dependentRequired": 3}),
    ):
        with pytest.raises(DefinitionError, match="handler"):
            compile_call(handler, schema=wrong)


def test_more_arguments_are_welcome_where_the_schema_says_so():
    def handler(a: int) -> Any:
        return a

    compiled = compile_call(handler, schema=Schema(additional_properties=True))
    assert compiled.input_schema["additionalProperties"] is True
    assert run(compiled, '{"a":1,"b":2}') == 1
    typed = compile_call(handler, schema=Schema(additional_properties={"type": "string"}))
    with pytest.raises(ArgumentsInvalid, match="b"):
        typed.decode(b'{"a":1,"b":2}')


def test_two_parameters_cannot_have_one_name_in_json():
    def handler(a: Annotated[int, Schema(alias="b")], b: int) -> Any: ...

    with pytest.raises(DefinitionError, match="'b'"):
        compile_call(handler)


def test_an_alias_is_the_name_in_json_only():
    def handler(class_: Annotated[str, Schema(alias="class")] = "x") -> Any:
        return class_

    compiled = compile_call(handler)
    assert compiled.input_schema["properties"] == {"class": {"type": "string", "default": "x"}}
    assert run(compiled, '{"class":"y"}') == "y"
    assert compiled.arguments(compiled.decode(b'{"class":"y"}')) == {"class": "y"}


# --- headers


def test_a_header_is_published_on_the_parameter():
    def handler(
        region: Annotated[str, Schema(header="Region")],
        count: Annotated[int | None, Schema(header="Count")] = None,
    ) -> Any:
        return (region, count)

    compiled = compile_call(handler)
    assert compiled.input_schema["properties"]["region"] == {"type": "string", "x-mcp-header": "Region"}
    # one primitive type, as the specification wants; that null may stand for nothing is not said
    assert compiled.input_schema["properties"]["count"]["type"] == "integer"
    assert run(compiled, '{"region":"eu","count":null}') == ("eu", None)
    assert run(compiled, '{"region":"eu","count":"3"}') == ("eu", 3)
    with pytest.raises(ArgumentsInvalid):
        compiled.decode(b'{"region":"eu","count":"x"}')


# --- docstrings, prompts, resources


def test_the_description_is_the_docstring_without_its_parsed_sections():
    def handler(a: int, b: Annotated[int, "From the annotation."]) -> int:
        """Do it.

        With care.

        Args:
            a: From the docstring.
            b: Not this one.

        Returns:
            int: What came out.

        Raises:
            ValueError: Never.
        """
        return a + b

    compiled = compile_call(handler)
    assert compiled.description == "Do it.\n\nWith care."
    assert compiled.input_schema["properties"]["a"]["description"] == "From the docstring."
    assert compiled.input_schema["properties"]["b"]["description"] == "From the annotation."
    assert compiled.output_schema == {"type": "integer", "description": "What came out."}


def test_a_prompt_has_arguments_instead_of_a_schema():
    def review(language: Literal["python", "go"], depth: Annotated[int, Schema("How deep", title="Depth")] = 2) -> str:
        return f"{language} {depth}"

    compiled = compile_call(review, kind="prompt")
    first, second = compiled.prompt_arguments
    assert (first.name, first.required, first.description) == ("language", True, None)
    assert (second.name, second.title, second.description, second.required) == ("depth", "Depth", "How deep", False)
    assert compiled.output_schema is None
    assert compiled.call(compiled.decode(b'{"language":"go","depth":"3"}'), ()) == "go 3"


def test_values_that_are_already_read_are_bound_by_name():
    def handler(user_id: int, path: list[str], flag: bool = False) -> Any:
        return (user_id, path, flag)

    compiled = compile_call(handler, kind="resource")
    assert compiled.bind({"user_id": "42", "path": ["a", "b"], "flag": "true"}) == (42, ["a", "b"], True)
    with pytest.raises(ArgumentsInvalid, match="user_id"):
        compiled.bind({"user_id": "x", "path": []})


@pytest.mark.parametrize("kind", ["prompt", "resource"])
def test_what_comes_as_strings_is_read_from_strings_even_where_tools_are_strict(kind):
    def handler(n: int) -> Any:
        return n

    assert compile_call(handler, kind=kind, strict=True).bind({"n": "3"}) == (3,)
    with pytest.raises(ArgumentsInvalid):
        compile_call(handler, kind="tool", strict=True).bind({"n": "3"})


def test_what_has_no_json_form_is_refused_with_advice():
    class Connection: ...

    def handler(db: Connection) -> Any: ...

    with pytest.raises(DefinitionError) as caught:
        compile_call(handler)
    assert "'db'" in str(caught.value)
    assert "Connection" in str(caught.value)
    assert "Depends" in str(caught.value)


@pytest.mark.parametrize("annotation", [complex, type, inspect.Signature, dict[tuple[int, int], str], "3 +"])
def test_types_that_json_cannot_say_are_refused(annotation):
    def handler(x): ...

    handler.__annotations__["x"] = annotation
    with pytest.raises(DefinitionError, match="'x'"):
        compile_call(handler)
