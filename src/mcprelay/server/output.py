"""From what a handler returned to the result that is sent, held against what was published.

A return annotation that is data is published as the output schema, whatever JSON type it is; a revision that knows only
objects shapes that down later. Every value is written and then checked, so that structured content always is what the
schema says: once with msgspec's own speed, and only if that does not pass a second time, part by part. What does not
pass then is an error that names the place.

Annotations that are content (blocks, pictures, files, bytes, streams, generators), `None`, `Any`, lists of anything and
none at all publish nothing; `mcprelay.server.results` says what becomes of their values.
"""

from __future__ import annotations

import inspect
import io
import types
import typing
from collections import abc
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from mcprelay.server.encoding import ResultInvalid, encode, encode_scalar
from mcprelay.server.file import FILE_BYTES, File
from mcprelay.server.results import BLOCKS, own_result, tool_result
from mcprelay.server.scalar import Scalar, scalar
from mcprelay.server.shape import JsonSchema, Misfit, Publisher, Shape
from mcprelay.server.shape.noted import Noted, is_remark, note
from mcprelay.server.shape.scalar import ANYTHING, BOOLEAN, INTEGER, STRING
from mcprelay.server.shape.scope import Scope
from mcprelay.server.shape.walk import Walk
from mcprelay.server.validator import Validator
from mcprelay.server.words import place
from mcprelay.types import InputRequiredResult, PromptMessage, ResourceContents, Text, ToolResult

_CONTENT = frozenset(
    {*BLOCKS, File, ResourceContents, ToolResult, InputRequiredResult, PromptMessage, bytes, bytearray, memoryview}
)
_STREAMS = frozenset({typing.IO, typing.BinaryIO, typing.TextIO})
_ITEMS = frozenset({list, tuple, abc.Sequence, abc.Iterable, abc.Collection})
_GENERATORS = frozenset({abc.Generator, abc.AsyncGenerator, abc.Iterator, abc.AsyncIterator, abc.AsyncIterable})
_AWAITED = frozenset({abc.Awaitable, abc.Coroutine})
_LISTS = frozenset(
    {list, tuple, set, frozenset, abc.Sequence, abc.Iterable, abc.Collection, typing.Union, types.UnionType}
)
_NOTHING = (Any, object, inspect.Signature.empty, typing.NoReturn, typing.Never)
_SAFE: dict[Shape, type] = {STRING: str, INTEGER: int, BOOLEAN: bool}
"""What is its own JSON whatever its value, so that there is nothing to check."""


class Output:
    """What becomes of the values of one handler.

    Attributes:
        schema: The output schema to publish, or None.
    """

    def __init__(self, shape: Shape | None, schema: JsonSchema | None, *, silent: bool = False) -> None:
        """Set up. What checks the values is made for the first of them.

        Args:
            shape: What the handler is annotated to return, or None where that is content or is not said.
            schema: What is published.
            silent: Whether None means that there is nothing to say.
        """
        self.schema = schema
        self._shape = shape
        self._silent = silent
        self._safe = None if shape is None else _SAFE.get(_without_remarks(shape))
        self._write: Callable[[Any], Any] | None = None
        self._decode: Callable[[bytes], Any] = msgspec.json.decode
        self._lift: Callable[[Any], Any] | None = None
        self._validator: Validator | None = None
        self._compiled = False

    def compile(self) -> None:
        """Make what writes and checks the values.

        Raises:
            DefinitionError: A schema that the user wrote is no valid JSON Schema 2020-12.
        """
        if self._shape is not None:
            self._write = self._shape.writer(careful=False)
            reader = self._shape.reader("output")
            self._decode, self._lift = msgspec.json.Decoder(reader.type).decode, reader.lift
        elif self.schema is not None:
            self._validator = Validator(self.schema)
        self._compiled = True

    def outcome(self, value: Any, *, file_bytes: int = FILE_BYTES) -> Scalar | ToolResult | InputRequiredResult:
        """What a call comes to: its result, which is left as it is where it is a scalar and nothing is to be checked.

        Raises:
            ResultInvalid: The value has no JSON form, or is not what was published.
            LimitExceeded: A file or stream is longer than `file_bytes`.
        """
        if type(value) is self._safe:
            return scalar(value, encode_scalar(value))
        return self.result(value, file_bytes=file_bytes)

    def result(self, value: Any, *, file_bytes: int = FILE_BYTES) -> ToolResult | InputRequiredResult:
        """The result of a call, whole also where it is a scalar.

        Raises:
            ResultInvalid: The value has no JSON form, or is not what was published.
            LimitExceeded: A file or stream is longer than `file_bytes`.
        """
        if isinstance(value, InputRequiredResult):
            return value
        if isinstance(value, ToolResult):
            return self._checked(own_result(value, file_bytes=file_bytes))
        if self.schema is None:
            if value is None and self._silent:
                return ToolResult(content=())
            return tool_result(value, file_bytes=file_bytes)
        data = self.structured(value)
        text = msgspec.json.decode(data) if isinstance(value, str) else data.decode()
        return ToolResult(content=(Text(text),), structured_content=Raw(data))

    def structured(self, value: Any) -> bytes:
        """The JSON of a value, which the output schema accepts.

        Raises:
            ResultInvalid: There is none.
        """
        if not self._compiled:
            self.compile()
        if isinstance(value, abc.Iterator):  # which can be read only once, and may have to be written twice
            value = list(value)
        try:
            data = encode(value if self._write is None else self._write(value))
        except Misfit:
            return self._written_carefully(value)
        return data if self._passes(data) else self._written_carefully(value)

    def _written_carefully(self, value: Any) -> bytes:
        """The second attempt: part by part, then as what a plain value would be read as."""
        shape = self._shape or ANYTHING
        write = shape.writer(careful=True) or _as_it_is
        data = b""
        try:
            data = encode(write(value))
            if self._passes(data):
                return data
            made = encode(write(shape.read(data)))
        except Misfit as misfit:
            raise self._refusal(data, misfit) from misfit
        if not self._passes(made):
            raise self._refusal(made)
        return made

    def _passes(self, data: bytes) -> bool:
        if self._validator is not None:
            return self._validator.accepts(msgspec.json.decode(data))
        try:
            value = self._decode(data)
            if self._lift is not None:
                self._lift(value)
        except (msgspec.DecodeError, Misfit, RecursionError):
            return False
        return True

    def _refusal(self, data: bytes, misfit: Misfit | None = None) -> ResultInvalid:
        """What is wrong, part by part where something was written, else by what could not be."""
        misfits = self._explained(msgspec.json.decode(data)) if data else []
        if not misfits and misfit is not None:
            misfits = [misfit]
        if not misfits:
            return ResultInvalid("the result is not what the output schema says")
        return ResultInvalid("; ".join(dict.fromkeys(f"{place(m.path, 'the result')}: {m.reason}" for m in misfits)))

    def _explained(self, value: Any) -> list[Misfit]:
        if self._validator is not None:
            return self._validator.misfits(value)
        return (self._shape or ANYTHING).explain(value, "output")

    def _checked(self, value: ToolResult) -> ToolResult:
        """A result that the handler made itself: what it says must still be what was published."""
        if self.schema is None or value.is_error:
            return value
        if value.structured_content is UNSET:
            raise ResultInvalid("the tool publishes an output schema, so its ToolResult needs structured_content")
        if not self._compiled:
            self.compile()
        data = encode(value.structured_content)
        if not self._passes(data):
            raise self._refusal(data)
        return value


NO_OUTPUT = Output(None, None)
"""Of a handler whose annotation says nothing."""


def output_of(annotation: Any, scope: Scope, walk: Walk, *, description: str | None) -> Output:
    """What becomes of the values of a handler with this return annotation.

    Args:
        annotation: The annotation, evaluated or not; `inspect.Signature.empty` for none.
        scope: Where the names of a postponed one are found.
        walk: The walk that the parameters were met on.
        description: What the docstring says of the result.

    Raises:
        DefinitionError: The type has no JSON form.
    """
    while isinstance(annotation, (str, typing.ForwardRef)):
        annotation = scope.resolve(annotation)
    if typing.get_origin(annotation) in _AWAITED:
        return output_of(typing.get_args(annotation)[-1], scope, walk, description=description)
    if annotation is None or annotation is types.NoneType:
        return Output(None, None, silent=True)
    if _says_nothing(annotation) or is_content_type(annotation):
        return NO_OUTPUT
    shape, notes = walk.noted(annotation, scope)
    if description is not None and (notes is None or "description" not in notes.keywords):
        shape = note(shape, {"description": description})
    publisher = Publisher("output")
    output = Output(shape, publisher.publish(shape))
    if publisher.stated:
        output.compile()
    return output


def is_content_type(annotation: Any) -> bool:
    """Whether a return annotation means content blocks rather than data."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return is_content_type(typing.get_args(annotation)[0])
    if origin in _GENERATORS or origin in _STREAMS or annotation in _STREAMS:
        return True
    if origin in _LISTS:
        return any(is_content_type(argument) for argument in typing.get_args(annotation))
    return isinstance(annotation, type) and (
        annotation in _CONTENT or annotation in _GENERATORS or _is_path(annotation) or issubclass(annotation, io.IOBase)
    )


def _is_path(annotation: type) -> bool:
    return annotation.__module__.partition(".")[0] == "pathlib"


def _says_nothing(annotation: Any) -> bool:
    """`Any`, `object`, no annotation, types that no value has, and lists that may hold anything, blocks too."""
    if typing.get_origin(annotation) in _ITEMS:
        return all(item is ... or _is_any(item) for item in typing.get_args(annotation))
    return _is_any(annotation) or any(annotation is kind for kind in (*_ITEMS, typing.List, typing.Tuple))  # noqa: UP006


def _is_any(annotation: Any) -> bool:
    return any(annotation is nothing for nothing in _NOTHING)


def _without_remarks(shape: Shape) -> Shape:
    while isinstance(shape, Noted) and not shape.checks and all(is_remark(keyword) for keyword in shape.keywords):
        shape = shape.inner
    return shape


def _as_it_is(value: Any) -> Any:
    return value
