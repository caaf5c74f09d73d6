"""Type parameters and aliases in the syntax of Python 3.12."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from mcprelay.server.signature import compile_call

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is new in 3.12")

SOURCE = """
from __future__ import annotations
from dataclasses import dataclass
from typing import NamedTuple

type Json = str | int | list[Json] | dict[str, Json] | None
type Pair[A, B] = tuple[A, B]
type Ids = list[int]

@dataclass
class Box[T]:
    item: T

class Named[T](NamedTuple):
    value: T

def plain(a: Json, b: Pair[int, str], c: Ids, d: Box[int], e: Named[str]): ...
def generic[T: int](a: T, b: Box[T]) -> Box[T]: ...
"""


@pytest.fixture(params=["postponed", "evaluated"])
def module(request) -> dict[str, Any]:
    source = SOURCE if request.param == "postponed" else SOURCE.replace("from __future__ import annotations\n", "")
    names: dict[str, Any] = {"__name__": __name__}
    exec(compile(source, "new", "exec", dont_inherit=True), names)  # noqa: S102 - older Pythons cannot read it
    before = dict(vars(sys.modules[__name__]))
    vars(sys.modules[__name__]).update(names)
    yield names
    for name in names.keys() - before.keys():
        del vars(sys.modules[__name__])[name]


def test_aliases_and_generic_classes(module):
    compiled = compile_call(module["plain"])
    properties = compiled.input_schema["properties"]
    assert properties["a"] == {"$ref": "#/$defs/Json"}
    assert properties["b"]["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert properties["c"] == {"type": "array", "items": {"type": "integer"}}
    assert properties["d"]["properties"] == {"item": {"type": "integer"}}
    assert properties["e"]["properties"] == {"value": {"type": "string"}}
    values = compiled.decode(b'{"a":{"x":[1,null]},"b":[1,"z"],"c":["1"],"d":{"item":3},"e":{"value":"v"}}')
    assert values == ({"x": [1, None]}, (1, "z"), [1], module["Box"](3), module["Named"]("v"))


def test_a_generic_function_is_read_by_its_bounds(module):
    compiled = compile_call(module["generic"])
    assert compiled.input_schema["properties"]["a"] == {"type": "integer"}
    assert compiled.input_schema["properties"]["b"]["properties"] == {"item": {"type": "integer"}}
    assert compiled.output_schema["properties"] == {"item": {"type": "integer"}}
