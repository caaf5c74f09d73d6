"""What a resource's handler returned, as contents.

| a handler returns | contents | media type, where the resource declares none |
|---|---|---|
| a `ReadResourceResult` | itself | |
| `ResourceContents`, an `EmbeddedResource` | itself, what is in it | its own |
| a string | text | guessed: JSON, HTML, XML, else `text/plain` |
| a mapping of `text`, perhaps with `uri`, `mimeType`, `_meta` | that | `text/plain` |
| the same of `blob`, which is base64 and wins over `text` | that | octets |
| `bytes`, an open file | text where the media type says text, else bytes | by the first bytes, else octets |
| a path, a `File` | the same | by the name |
| `Image`, `Audio` | bytes | its own |
| a list with any of these in it, any generator | one after the other | |
| an empty list, any other list, mapping, dataclass, model, number, true, false | its JSON | `application/json` |
| `None` | an error: a resource has contents | |

"Octets" is `application/octet-stream`. A media type that the resource declares holds for everything that says no other
itself.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from types import GeneratorType
from typing import Any

from msgspec.structs import replace

from mcprelay.server.block import sound_contents
from mcprelay.server.encoding import ResultInvalid, encode
from mcprelay.server.file import (
    FILE_BYTES,
    OCTETS,
    PLAIN,
    File,
    contents_of_bytes,
    is_path,
    is_stream,
    read_path,
    read_stream,
    sniff,
)
from mcprelay.server.results import Items, drawn
from mcprelay.types import Audio, EmbeddedResource, Image, Meta, ReadResourceResult, ResourceContents, Text

JSON = "application/json"
_KEYS = frozenset({"uri", "text", "blob", "mimeType", "mime_type", "_meta"})
_CONTENT = (ResourceContents, EmbeddedResource, File, Image, Audio, Text, bytes, bytearray, memoryview)


def resource_result(
    value: Any, *, uri: str, mime_type: str | None = None, meta: Meta | None = None, file_bytes: int = FILE_BYTES
) -> ReadResourceResult:
    """Whatever a handler returned, as the result of `resources/read`.

    Args:
        value: What it returned.
        uri: The address that was asked for.
        mime_type: The media type that the resource declares.
        meta: The resource's `_meta`, which contents have where they have none of their own.
        file_bytes: How much is read of a file or stream.

    Raises:
        ResultInvalid: The value is no contents and has no JSON form.
        LimitExceeded: A file or stream is longer than `file_bytes`.
    """
    if isinstance(value, ReadResourceResult):
        for at, contents in enumerate(value.contents):
            sound_contents(contents, f" (contents[{at}])")
        return value
    made = _Maker(uri, mime_type, file_bytes).contents(value)
    if meta is not None:
        made = [item if item.meta is not None else replace(item, meta=meta) for item in made]
    return ReadResourceResult(contents=tuple(made))


class _Maker:
    """Makes contents for one address."""

    def __init__(self, uri: str, mime_type: str | None, limit: int) -> None:
        self._uri = uri
        self._declared = mime_type
        self._limit = limit

    def contents(self, value: Any) -> list[ResourceContents]:
        """One value as contents, a list of them as several."""
        if isinstance(value, GeneratorType):
            return [self.one(item) for item in drawn(value, self._limit)]
        if isinstance(value, Items):
            return [self.one(item) for item in value]
        if isinstance(value, (list, tuple)) and any(_is_contents(item) for item in value):
            return [self.one(item) for item in value]
        return [self.one(value)]

    def one(self, value: Any) -> ResourceContents:
        """One value as contents."""
        if isinstance(value, ResourceContents):
            return sound_contents(value)
        if isinstance(value, EmbeddedResource):
            return sound_contents(value.resource)
        if isinstance(value, str):
            return self._text(str(value), self._declared or guess_text_type(value))
        if isinstance(value, Text):
            return self._text(value.text, self._declared or PLAIN)
        if isinstance(value, (Image, Audio)):
            return ResourceContents(uri=self._uri, mime_type=self._declared or value.mime_type, blob=value.data)
        if _is_spelled_out(value):
            return self._spelled_out(value)
        return self._file(value) if _is_file(value) else self._json(value)

    def _text(self, text: str, mime_type: str) -> ResourceContents:
        return ResourceContents(uri=self._uri, mime_type=mime_type, text=text)

    def _file(self, value: Any) -> ResourceContents:
        if is_path(value):
            value = read_path(value, limit=self._limit)
        if isinstance(value, File):
            return value.contents(self._uri, self._declared)
        if is_stream(value):
            value = read_stream(value, limit=self._limit)
            if isinstance(value, str):
                return self._text(value, self._declared or guess_text_type(value))
        data = bytes(value)
        return contents_of_bytes(data, uri=self._uri, mime_type=self._declared or sniff(data) or OCTETS)

    def _spelled_out(self, value: Mapping[str, Any]) -> ResourceContents:
        kind = value.get("mimeType") or value.get("mime_type") or self._declared
        uri, meta = value.get("uri") or self._uri, value.get("_meta")
        if isinstance(value.get("blob"), (str, bytes)):
            return ResourceContents(uri=uri, mime_type=kind or OCTETS, blob=_decoded(value["blob"]), meta=meta)
        return ResourceContents(uri=uri, mime_type=kind or PLAIN, text=value["text"], meta=meta)

    def _json(self, value: Any) -> ResourceContents:
        if value is None:
            raise ResultInvalid(f"the handler of {self._uri} returned None, and a resource has contents")
        return self._text(encode(value).decode(), self._declared or JSON)


def guess_text_type(text: str) -> str:
    """The media type of a text that says none: by how it begins and ends, nothing is parsed."""
    stripped = text.strip()
    if stripped.startswith("<") and stripped.endswith(">"):
        lowered = stripped[:1000].lower()
        if "<html" in lowered or "<!doctype html" in lowered:
            return "text/html"
        return "application/xml" if lowered.startswith("<?xml") else PLAIN
    if (stripped.startswith("{") and stripped.endswith("}")) or (stripped.startswith("[") and stripped.endswith("]")):
        return JSON
    return PLAIN


def _is_file(value: Any) -> bool:
    return isinstance(value, (File, bytes, bytearray, memoryview)) or is_path(value) or is_stream(value)


def _is_contents(value: Any) -> bool:
    """Whether a list with this in it is a list of contents, rather than data."""
    return isinstance(value, _CONTENT) or _is_file(value) or _is_spelled_out(value)


def _is_spelled_out(value: Any) -> bool:
    if not isinstance(value, Mapping) or not value.keys() <= _KEYS:
        return False
    return isinstance(value.get("blob"), (str, bytes)) or isinstance(value.get("text"), str)


def _decoded(blob: str | bytes) -> bytes:
    if isinstance(blob, bytes):
        return blob
    try:
        return base64.b64decode(blob, validate=True)
    except binascii.Error as error:
        raise ResultInvalid("'blob' is not base64", path="blob") from error
