"""Values out of content blocks, where no structured content says them: bytes, blocks, and nothing at all.

Knows which blocks hold bytes, and what a server says for null. Knows neither JSON nor texts that hold it.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from mcprelay.client.outcome import Block
from mcprelay.errors import told
from mcprelay.types import Audio, EmbeddedResource, Image, ResourceLink, Text, ToolResult

if TYPE_CHECKING:
    from mcprelay.client.answer import ToolAnswer

NULL = "(null)"
"""The one text that a server of ours sends for None where a tool says nothing of what it returns."""

_BYTES = (bytes, bytearray, memoryview)
_BLOCKS = typing.get_args(Block)
_MANY = (list, tuple, set, frozenset)
_MOST = 8


def is_content(kind: Any) -> bool:
    """Whether the values of a type are made of content: bytes or blocks, perhaps several of them, perhaps none."""
    return bool(leaves := set(_leaves(kind))) and leaves <= {True}


def _leaves(kind: Any) -> Iterator[bool]:
    """Of each type inside one whether it is content; nothing of None, which is not told by content."""
    origin = typing.get_origin(kind)
    if origin is Annotated:
        yield from _leaves(typing.get_args(kind)[0])
    elif origin is not None and (origin in _MANY or not isinstance(origin, type) or typing.get_args(kind)):
        parts = (part for part in typing.get_args(kind) if part not in (None, type(None), ...))
        for part in parts:
            yield from _leaves(part)
    elif kind is not None and kind is not type(None):
        yield kind in _BYTES or is_block(kind)


def is_block(kind: Any) -> bool:
    """Whether a type is one of content blocks."""
    return isinstance(kind, type) and issubclass(kind, _BLOCKS)


def is_null(content: tuple[Block, ...]) -> bool:
    """Whether content says that there is no value."""
    return not content or (len(content) == 1 and type(content[0]) is Text and content[0].text == NULL)


def text_inside(content: tuple[Block, ...]) -> str | None:
    """The text of the only block, where it is a resource that holds one."""
    one = content[0] if len(content) == 1 else None
    return one.resource.text if isinstance(one, EmbeddedResource) else None


def candidates(content: tuple[Block, ...]) -> Iterator[Any]:
    """What content may be as a value: the bytes of its blocks, or the blocks; of one block first without a list."""
    held = [_bytes(block) for block in content]
    if held and None not in held:
        yield from [held[0], held] if len(held) == 1 else [held]
    yield from [content[0], list(content)] if len(content) == 1 else [list(content)]


def _bytes(block: Block) -> bytes | None:
    if isinstance(block, (Image, Audio)):
        return block.data
    if not isinstance(block, EmbeddedResource):
        return None
    inside = block.resource
    return inside.text.encode() if inside.blob is None and inside.text is not None else inside.blob


def whole(answer: ToolAnswer) -> ToolResult:
    """An answer as the result that a handler may have returned."""
    return ToolResult(
        content=answer.content,
        structured_content=plain_of(answer.structured),
        meta=answer.meta or None,
    )


def plain_of(structured: Any) -> Any:
    """Structured content as plain data, absent as it is."""
    return msgspec.json.decode(structured) if isinstance(structured, msgspec.Raw) else structured


def described(content: tuple[Block, ...]) -> str:
    """What came in place of a value, in words."""
    named = ", ".join(map(_described, content[:_MOST])) + ", …" * (len(content) > _MOST)
    return f"what came is {named}" if named else "neither JSON nor a text came"


def _described(block: Block) -> str:
    if isinstance(block, (Image, Audio)):
        kind = "a picture" if isinstance(block, Image) else "sound"
        return f"{kind} ({told(block.mime_type)}, {len(block.data)} bytes)"
    if isinstance(block, EmbeddedResource):
        inside = block.resource
        size = f"{len(inside.blob or b'')} bytes" if inside.text is None else "text"
        return f"an embedded resource ({told(inside.mime_type or 'of no media type')}, {size})"
    if isinstance(block, ResourceLink):
        return f"a link to {told(block.uri)}"
    return "a text" if isinstance(block, Text) else f"content of the kind {told(block.type)}"
