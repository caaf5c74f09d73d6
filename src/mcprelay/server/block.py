"""Content blocks that a handler made itself, held to what they are: a constructor looks at no types.

Knows what each kind of block must hold. What a plain value becomes is in `results` and `messages`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

import msgspec

from mcprelay.server.encoding import ResultInvalid
from mcprelay.types import Audio, ContentBlock, EmbeddedResource, Image, ResourceContents, ResourceLink, Text

KINDS = frozenset({"text", "image", "audio", "resource", "resource_link"})
_BYTES = (bytes, bytearray, memoryview)


def sound(block: ContentBlock, where: str = "") -> ContentBlock:
    """The block, which holds what its kind must.

    Raises:
        ResultInvalid: It does not; the text says which member, and what it is.
    """
    if type(block) is Text and type(block.text) is str:
        return block
    wrong = _wrong(block)
    if wrong is not None:
        raise ResultInvalid(f"the content block {type(block).__name__}{where} {wrong}")
    return block


def sound_contents(contents: ResourceContents, where: str = "") -> ResourceContents:
    """The same of a resource's contents."""
    wrong = _wrong_contents(contents)
    if wrong is not None:
        raise ResultInvalid(f"the contents{where} {wrong.removeprefix('holds contents that ')}")
    return contents


def is_written(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether a value is meant as a content block in the wire's own words."""
    return isinstance(value, Mapping) and isinstance(value.get("type"), str)


def written(value: Mapping[str, Any], where: str = "") -> ContentBlock:
    """A content block in the wire's own words, as a value.

    Raises:
        ResultInvalid: It is none.
    """
    kind = value["type"]
    if kind not in KINDS:
        raise ResultInvalid(f"Invalid content type {kind!r}{where}. Known are {', '.join(sorted(KINDS))}.")
    try:
        block: ContentBlock = msgspec.convert(dict(value), ContentBlock)
    except msgspec.ValidationError as error:
        raise ResultInvalid(f"Invalid {kind!r} content{where}: {error}") from error
    if isinstance(block, EmbeddedResource) and _wrong(block) is not None:
        raise ResultInvalid(f"Invalid 'resource' content{where}: it must have 'text' or 'blob'.")
    return block


def _wrong(block: Any) -> str | None:
    """What is wrong with a block, as the end of a sentence about it."""
    return next((check(block) for kind, check in _CHECKS.items() if isinstance(block, kind)), None)


def _wrong_text(block: Text) -> str | None:
    return _unlike(block, "text", str, "a string")


def _wrong_data(block: Image | Audio) -> str | None:
    return _unlike(block, "data", _BYTES, "the bytes themselves") or _unlike(block, "mime_type", str, "a string")


def _wrong_link(block: ResourceLink) -> str | None:
    return _unlike(block, "uri", str, "a string") or _unlike(block, "name", str, "a string")


def _wrong_resource(block: EmbeddedResource) -> str | None:
    return _unlike(block, "resource", ResourceContents, "ResourceContents") or _wrong_contents(block.resource)


def _wrong_contents(contents: Any) -> str | None:
    if not isinstance(contents, ResourceContents):
        return f"are ResourceContents, and not of the type {type(contents).__name__}"
    if (contents.text is None) is (contents.blob is None):
        return "holds contents that have text or blob, and just one of them"
    wrong = _unlike(contents, "uri", str, "a string")
    if wrong is None and contents.text is not None:
        wrong = _unlike(contents, "text", str, "a string")
    if wrong is None and contents.blob is not None:
        wrong = _unlike(contents, "blob", _BYTES, "the bytes themselves")
    return None if wrong is None else f"holds contents that {wrong.replace('has', 'have', 1)}"


def _unlike(value: Any, member: str, kind: Any, wanted: str) -> str | None:
    given = getattr(value, member)
    return (
        None
        if isinstance(given, kind)
        else f"has for {member} {wanted}, and not a value of the type {type(given).__name__}"
    )


_CHECKS: dict[type, Callable[[Any], str | None]] = {
    Text: _wrong_text,
    Image: _wrong_data,
    Audio: _wrong_data,
    ResourceLink: _wrong_link,
    EmbeddedResource: _wrong_resource,
}
