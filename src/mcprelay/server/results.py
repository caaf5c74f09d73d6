"""What a tool returned, as content blocks.

| a handler returns | content |
|---|---|
| a `ToolResult` | itself; strings, bytes and files in its content become blocks |
| a content block | the block |
| `File`, a path, `bytes`, an open file | a picture or sound where it is one, else an embedded resource |
| a string | one text |
| true, false, a number | one text, as JSON writes it |
| `None` | one text `(null)`; nothing at all from a function that is annotated `-> None` |
| a list, tuple or set with a block, file, path or bytes in it | item by item, by these rules |
| a generator | item by item, by these rules |
| any other list, mapping, dataclass, model | one text, its JSON; the same value is the structured content |

Here a value's type alone decides. What a return annotation says goes first, in `mcprelay.server.output`.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import operator
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator, Mapping
from types import GeneratorType
from typing import Any

from msgspec import UNSET, Raw
from msgspec.structs import replace

from mcprelay.errors import LimitExceeded
from mcprelay.server.block import is_written, sound, written
from mcprelay.server.encoding import ResultInvalid, encode
from mcprelay.server.file import (
    FILE_BYTES,
    OCTETS,
    File,
    block_of_bytes,
    contents_of_bytes,
    is_path,
    is_stream,
    read_path,
    read_stream,
    sniff,
)
from mcprelay.types import (
    Audio,
    ContentBlock,
    EmbeddedResource,
    Image,
    ResourceContents,
    ResourceLink,
    Text,
    ToolResult,
    Unknown,
)

BLOCKS = (Text, Image, Audio, ResourceLink, EmbeddedResource)
NULL = "(null)"
_ITEM_BYTES = 32
"""What an item of a generator weighs in itself, however little is in it: as a block it is longer than that."""


def tool_result(value: Any, *, file_bytes: int = FILE_BYTES) -> ToolResult:
    """A result without an output schema.

    Raises:
        ResultInvalid: The value has no JSON form.
        LimitExceeded: A file, stream or generator is longer than `file_bytes`.
    """
    if isinstance(value, ToolResult):
        return own_result(value, file_bytes=file_bytes)
    if type(value) is dict or _is_data(value):
        data = encode(value)
        return ToolResult(content=(Text(data.decode()),), structured_content=Raw(data))
    return ToolResult(content=tuple(_blocks(value, file_bytes)), structured_content=UNSET)


def own_result(result: ToolResult, *, file_bytes: int = FILE_BYTES) -> ToolResult:
    """A result that a handler made itself, with content that is some: strings and files in it become blocks.

    Raises:
        ResultInvalid: It holds what is no content.
    """
    content = own_content(result.content, file_bytes=file_bytes)
    return result if content is result.content else replace(result, content=content)


def own_content(content: Any, *, file_bytes: int = FILE_BYTES) -> tuple[ContentBlock, ...]:
    """What a handler gave as a list of content blocks, as that.

    Raises:
        ResultInvalid: It is none; the text says what, and where.
    """
    if isinstance(content, (str, Mapping)) or is_content(content):
        content = (content,)
    if not isinstance(content, (list, tuple)):
        raise ResultInvalid(f"content is a list of content blocks, and not of the type {type(content).__name__}")
    given: tuple[Any, ...] = tuple(content)
    blocks = tuple(_own_block(item, f" (content[{at}])", file_bytes) for at, item in enumerate(given))
    return given if all(map(operator.is_, blocks, given)) else blocks


def _own_block(value: Any, where: str, limit: int) -> ContentBlock:
    if isinstance(value, BLOCKS):
        return sound(value, where)
    if isinstance(value, Unknown):  # of another server's answer, which the handler passes on
        return value  # type: ignore[return-value]
    if isinstance(value, str):
        return Text(str(value))
    if is_written(value):
        return written(value, where)
    if is_content(value):
        return _block(value, limit)
    wanted = "content is a content block, a string, bytes or a file"
    raise ResultInvalid(f"{wanted}, and not of the type {type(value).__name__}{where}")


def content_of(value: Any, *, file_bytes: int = FILE_BYTES) -> tuple[ContentBlock, ...]:
    """Any value as content blocks.

    Raises:
        ResultInvalid: The value has no JSON form.
        LimitExceeded: A file, stream or generator is longer than `file_bytes`.
    """
    return tuple(_blocks(value, file_bytes))


class Items(list[Any]):
    """What a generator gave, which is content item by item, whatever the items are."""


async def collect(items: AsyncIterable[Any], *, limit: int = FILE_BYTES) -> Items:
    """What an asynchronous generator gives.

    Raises:
        LimitExceeded: It gives more than `limit` bytes.
    """
    taken = Items()
    weigh = _Scale(limit).add
    try:
        async for item in items:
            weigh(item)
            taken.append(item)
    except LimitExceeded:
        if isinstance(items, AsyncGenerator):
            await items.aclose()
        raise
    return taken


def drawn(items: Iterable[Any], limit: int) -> Iterator[Any]:
    """What a generator gives, one by one. One that never ends is ended.

    Raises:
        LimitExceeded: It gives more than `limit` bytes.
    """
    weigh = _Scale(limit).add
    for item in items:
        weigh(item)
        yield item


class _Scale:
    """Adds up what the items of a generator weigh."""

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit

    def add(self, item: Any) -> None:
        data = getattr(item, "text", None) or getattr(item, "data", None) or item
        self._left -= _ITEM_BYTES + (len(data) if isinstance(data, (str, bytes, bytearray)) else 0)
        if self._left < 0:
            raise LimitExceeded("file_bytes", self._limit, what="what the generator of a handler gave")


def is_content(value: Any) -> bool:
    """Whether a value is content by itself, rather than data that becomes JSON."""
    return (
        isinstance(value, (*BLOCKS, File, ResourceContents, bytes, bytearray, memoryview))
        or is_path(value)
        or is_stream(value)
    )


def _is_data(value: Any) -> bool:
    """Whether a value is a structure: neither a scalar nor content."""
    if value is None or isinstance(value, (str, int, float, GeneratorType, Items)) or is_content(value):
        return False
    return not (isinstance(value, (list, tuple, set, frozenset)) and any(is_content(item) for item in value))


def _blocks(value: Any, limit: int) -> Iterator[ContentBlock]:
    if isinstance(value, BLOCKS):
        yield sound(value)
    elif isinstance(value, str):
        yield Text(str(value))
    elif value is None:
        yield Text(NULL)
    elif is_content(value):
        yield _block(value, limit)
    elif isinstance(value, GeneratorType):
        for item in drawn(value, limit):
            yield from _blocks(item, limit)
    elif isinstance(value, Items) or (not _is_data(value) and _is_array(value)):
        for item in value:
            yield from _blocks(item, limit)
    else:
        yield Text(encode(value).decode())


def _is_array(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))


def _block(value: Any, limit: int) -> ContentBlock:
    if isinstance(value, ResourceContents):
        return sound(EmbeddedResource(value))
    if isinstance(value, File):
        return value.block()
    if is_path(value):
        return read_path(value, limit=limit).block()
    if is_stream(value):
        value = read_stream(value, limit=limit)
        if isinstance(value, str):
            return Text(value)
    data = bytes(value)
    return block_of_bytes(data, None) or EmbeddedResource(
        contents_of_bytes(data, uri="attachment:data", mime_type=sniff(data) or OCTETS)
    )
