"""What comes in abundance, from a client or from a handler, is answered in little: by what was told, or by a limit."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from datetime import date
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from mcprelay import Client, Limits, Schema, Server, ToolError
from mcprelay.errors import RemoteError
from mcprelay.server.report import LISTED, ArgumentsInvalid
from mcprelay.server.signature import compile_call


class Model(BaseModel):
    a: int


def refused(annotation: Any, value: bytes) -> ArgumentsInvalid:
    def take(x: Any) -> None: ...

    take.__annotations__["x"] = annotation
    with pytest.raises(ArgumentsInvalid) as caught:
        compile_call(take).decode(b'{"x":' + value + b"}")
    return caught.value


MANY = 3000
ITEMS = b"[" + b",".join(b'"x"' for _ in range(MANY)) + b"]"
KEYS = b"{" + b",".join(b'"k%d":"x"' % at for at in range(MANY)) + b"}"


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[int], ITEMS),
        (set[date], ITEMS),
        (list[UUID], ITEMS),
        (dict[str, int], KEYS),
        (dict[int, str], KEYS),
        (dict[str, date], KEYS),
        (Model, KEYS),
        (list[Model], ITEMS),
        (Annotated[list[Any], Schema(definition={"type": "array", "items": {"type": "integer"}})], ITEMS),
    ],
)
def test_a_thousand_misfits_are_told_as_a_hundred(annotation: Any, value: bytes):
    error = refused(annotation, value)
    assert len(error.errors) == LISTED
    assert str(error).splitlines()[-1] == "- … and many more"
    assert len(str(error)) < 5000


def test_a_few_more_than_are_shown_are_counted():
    error = refused(list[int], b"[" + b",".join([b'"x"'] * 23) + b"]")
    assert len(error.errors) == 23
    assert str(error).splitlines()[-1] == "- … and 3 more"


@pytest.mark.parametrize("annotation", [int, str | None, date, UUID, Decimal, Annotated[str, Schema(max_length=3)]])
def test_what_came_is_not_repeated_at_length(annotation: Any):
    error = refused(
        annotation, b'["' + b"y" * 100_000 + b'"]' if annotation == str | None else b'"' + b"y" * 100_000 + b'"'
    )
    assert len(str(error)) + sum(len(str(each)) for each in error.data()) < 2000


def test_a_giant_key_is_not_repeated_in_an_expectation():
    error = refused(dict[int, str], b'{"' + b"k" * 100_000 + b'":"x"}')
    assert len(error.errors[0].message) < 100_500


class Nested(BaseModel):
    zip: int = 0


class Closed(BaseModel):
    model_config = {"extra": "forbid"}

    address: Nested


def test_a_model_that_forbids_unknown_keys_does_so_for_the_models_in_it():
    def take(x: Closed) -> None: ...

    compiled = compile_call(take)
    assert compiled.input_schema["$defs"]["Nested"]["additionalProperties"] is False
    assert refused(Closed, b'{"address":{"zpi":1}}').errors[0].path == "/x/address/zpi"


def endless() -> Server:
    server = Server("endless", limits=Limits(file_bytes=10_000))

    @server.tool
    def plain() -> Iterator[str]:
        while True:
            yield "x"

    @server.tool(inline=True)
    def inline() -> Iterator[bytes]:
        while True:
            yield b"x"

    @server.tool
    async def coroutine() -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
        finally:
            closed.append("coroutine")

    @server.tool
    def given() -> Any:
        return plain()

    @server.resource("a://b")
    def resource() -> Iterator[str]:
        return plain()

    closed: list[str] = []
    server.closed = closed  # type: ignore[attr-defined]
    return server


@pytest.mark.parametrize("name", ["plain", "inline", "coroutine", "given"])
async def test_a_generator_that_never_ends_hits_the_limit_of_files(name: str):
    server = endless()
    async with Client(server) as client:
        with pytest.raises(ToolError, match="what the generator of a handler gave is over the limit: file_bytes=10000"):
            await client.call_tool(name)
    assert server.closed == (["coroutine"] if name == "coroutine" else [])  # type: ignore[attr-defined]


async def test_a_resource_that_never_ends_hits_it_too():
    async with Client(endless()) as client:
        with pytest.raises(RemoteError, match="file_bytes=10000"):
            await client.read_resource("a://b")


@pytest.mark.parametrize("error", [StopIteration, GeneratorExit, KeyboardInterrupt, SystemExit])
async def test_what_ends_more_than_a_call_ends_only_the_call_of_a_thread(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
):
    server = Server("s")

    @server.tool
    def fall() -> str:
        raise error

    @server.tool
    def stand() -> str:
        return "here"

    async with Client(server) as client:
        with (
            caplog.at_level(logging.CRITICAL, "mcprelay"),
            pytest.raises((ToolError, RemoteError), match="Internal error"),
        ):
            await client.call_tool("fall")
        assert (await client.call_tool("stand")).text == "here"
