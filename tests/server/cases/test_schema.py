"""Cases from people's bug reports: from a Python function to a published schema (T33, T35, T38, T40, T42, T43, T45)."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import json
import re
import typing
from typing import Annotated, Any

import jsonschema_rs
import pydantic
import pytest

from mcprelay import Context, Server, ToolError
from mcprelay.server.element import ERRORS
from tests.server.ask import call, error, result
from tests.server.cases.lib import Context as Ctx


def published(server: Server, name: str) -> Any:
    entry = server.catalog.tools.get(name, None)
    assert entry is not None
    return entry.definition


def offered(function: Any, **options: Any) -> tuple[Server, Any]:
    server = Server("cases")
    server.add_tool(function, name="f", **options)
    return server, published(server, "f")


def plain(q: str, ctx: Context) -> str:
    return q


def optional(q: str, c: Ctx | None = None) -> str:
    return f"{q} {c is not None}"


@pytest.mark.parametrize("function", [plain, optional])
async def test_t33_an_injected_context_is_in_no_schema_however_its_annotation_is_written(function: Any) -> None:
    server, tool = offered(function)
    assert tool.input_schema["properties"] == {"q": {"type": "string"}}
    assert tool.input_schema["required"] == ["q"]
    assert await call(server, "f", {"q": "a"}) == ("a" if function is plain else "a True")


def add(x: int, y: int) -> int:
    return x + y


class Adder:
    def add(self, x: int) -> int:
        return x + 10

    def __call__(self, x: int) -> int:
        return x + 10


@pytest.mark.parametrize("function", [functools.partial(add, y=10), Adder().add, Adder()])
async def test_t35_partials_bound_methods_and_callable_objects_are_what_they_take(function: Any) -> None:
    server, tool = offered(function)
    properties = dict(tool.input_schema["properties"])
    assert properties.pop("y", {"type": "integer", "default": 10}) == {"type": "integer", "default": 10}
    assert properties == {"x": {"type": "integer"}}
    assert await call(server, "f", {"x": 1}) == 11
    named = Server("cases")
    named.add_tool(function)
    assert [*named.catalog.tools.keys] == ["Adder" if isinstance(function, Adder) else "add"]


async def test_t38_what_is_optional_may_be_left_out_and_null_is_null() -> None:
    def f(q: str, limit: int | None = None, n: int = 3) -> list[Any]:
        return [q, limit, n]

    server, tool = offered(f)
    schema = tool.input_schema
    assert schema["required"] == ["q"]
    assert schema["properties"]["n"] == {"type": "integer", "default": 3}
    assert schema["properties"]["limit"] == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    missing = await call(server, "f")
    assert missing.startswith("error:")
    assert "q" in missing
    assert await call(server, "f", {"q": "a"}) == await call(server, "f", {"q": "a", "limit": None}) == ["a", None, 3]
    assert (await call(server, "f", {"q": "a", "n": None})).startswith("error:")


STRINGS = ["123", "007", "1e5", "true", "null", '{"k":1}', "[1]", "3fa85f64-5717-4562-b3fc-2c963f66afa6"]


@pytest.mark.parametrize("annotation", [str, str | None, Annotated[str, pydantic.Field()], Any], ids=str)
@pytest.mark.parametrize("text", STRINGS)
async def test_t40_strings_stay_strings(annotation: Any, text: str) -> None:
    def echo(p: Any) -> Any:
        return {"same": p}

    echo.__annotations__["p"] = annotation
    server, _ = offered(echo)
    assert await call(server, "f", {"p": text}) == {"same": text}


async def test_t42_an_unknown_argument_is_refused_with_the_one_that_was_meant() -> None:
    ran = []

    def f(q: str, limit: int | None = None) -> str:
        ran.append(q)
        return q

    server, tool = offered(f)
    refused = await call(server, "f", {"q": "a", "limt": 5})
    assert refused.startswith("error:")
    assert "limt" in refused
    assert "limit" in refused.replace("limt", "")
    assert ran == []
    assert tool.input_schema["additionalProperties"] is False


class Model(pydantic.BaseModel):
    a: int = pydantic.Field(serialization_alias="A")

    @pydantic.computed_field
    def double(self) -> int:
        return self.a * 2


@dataclasses.dataclass
class Data:
    at: dt.datetime
    inner: list[Data] = dataclasses.field(default_factory=list)


NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Model, Model(a=2)),
        (list[int], [1, 2]),
        (typing.Optional[Model], None),  # noqa: UP045 - as people write it
        (Data, Data(NOW, [Data(NOW)])),
        (dict[str, dt.datetime], {"now": NOW}),
    ],
    ids=str,
)
async def test_t43_the_published_output_schema_takes_the_tools_own_output(annotation: Any, value: Any) -> None:
    def f() -> Any:
        return value

    f.__annotations__["return"] = annotation
    server, tool = offered(f)
    answer = await result(server, "tools/call", {"name": "f", "arguments": {}})
    assert jsonschema_rs.Draft202012Validator(tool.output_schema).is_valid(answer["structuredContent"])
    assert json.loads(answer["content"][0]["text"]) == answer["structuredContent"]


async def test_t45_a_model_reads_what_it_may_and_the_log_has_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    def f(kind: str, count: int = 0) -> str:
        if kind == "secret":
            raise RuntimeError("postgres://u:pw@h/db")
        raise ToolError("no such row")

    server, _ = offered(f)
    hidden = await call(server, "f", {"kind": "secret"})
    assert hidden.startswith("error:")
    assert "postgres" not in hidden
    reference = re.search(r"reference (\w+)", hidden)
    assert reference is not None
    assert reference[1] in caplog.text
    assert "postgres" in caplog.text
    assert await call(server, "f", {"kind": "row"}) == "error: no such row"
    misfit = await result(server, "tools/call", {"name": "f", "arguments": {"kind": "row", "count": "many"}})
    assert misfit["isError"] is True
    assert "count" in misfit["content"][0]["text"]
    assert "integer" in misfit["content"][0]["text"]
    assert misfit["_meta"][ERRORS][0]["path"] == "/count"
    assert (await error(server, "tools/call", {"name": "made_up", "arguments": {}}))["code"] == -32602
