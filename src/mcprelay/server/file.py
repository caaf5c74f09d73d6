"""Bytes on their way into a result: files, streams, media types.

`File` is what a handler returns for content that is neither a picture nor sound: it becomes an embedded resource, as
text where it is text.
"""

from __future__ import annotations

import os
from typing import Any, Self

from msgspec import Struct

from mcprelay.errors import LimitExceeded
from mcprelay.types import Audio, ContentBlock, EmbeddedResource, Image, ResourceContents, guess_mime_type, read_file

OCTETS = "application/octet-stream"
PLAIN = "text/plain"
FILE_BYTES = 16 * 1024 * 1024
"""How much is read of a file or stream that a handler returns, unless told otherwise."""

_NEVER_READ = frozenset((str, bytes, int, float, bool, dict, type(None)))

_TEXTUAL = frozenset({
    "application/json", "application/xml", "application/javascript", "application/ecmascript", "application/yaml",
    "application/x-yaml", "application/toml", "application/sql", "application/graphql", "application/x-sh",
    "application/x-httpd-php", "application/x-ndjson", "application/jsonl", "image/svg+xml",
})  # fmt: skip

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF8", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
    (b"WAVE", 8, "audio/wav"),
    (b"ID3", 0, "audio/mpeg"),
    (b"OggS", 0, "audio/ogg"),
    (b"fLaC", 0, "audio/flac"),
    (b"%PDF-", 0, "application/pdf"),
    (b"PK\x03\x04", 0, "application/zip"),
    (b"\x1f\x8b", 0, "application/gzip"),
)
"""How a file of a kind begins: the bytes, where they stand, and the media type."""


class File(Struct, frozen=True):
    """A file in a result.

    Attributes:
        data: What is in it.
        name: What it is called; it ends up in the resource's address.
        mime_type: Its media type, guessed from the name and the first bytes unless given.
        uri: The resource's address, made from the name unless given.
    """

    data: bytes
    name: str = "file"
    mime_type: str | None = None
    uri: str | None = None

    @classmethod
    def from_path(cls, path: str | os.PathLike[str], *, mime_type: str | None = None) -> Self:
        """Read a file now; the media type is guessed from its name unless given."""
        named = os.fspath(path)
        name = named.replace("\\", "/").rpartition("/")[2]
        return cls(read_file(path), name, mime_type or guess_mime_type(named, "") or None)

    def contents(self, uri: str | None = None, mime_type: str | None = None) -> ResourceContents:
        """The file as contents of a resource."""
        from urllib.parse import quote  # only for a file

        kind = mime_type or self.mime_type or guess_mime_type(self.name, "") or sniff(self.data)
        kind = kind or (PLAIN if _reads_as_text(self.data) else OCTETS)
        return contents_of_bytes(self.data, uri=uri or self.uri or f"attachment:{quote(self.name)}", mime_type=kind)

    def block(self) -> ContentBlock:
        """The file as a content block: a picture, sound, or an embedded resource."""
        contents = self.contents()
        return block_of_bytes(self.data, contents.mime_type) or EmbeddedResource(contents)


def _reads_as_text(data: bytes) -> bool:
    """Whether a file whose name does not tell is text: UTF-8 without the one character that no text has."""
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def contents_of_bytes(data: bytes, *, uri: str, mime_type: str) -> ResourceContents:
    """Contents as text where the media type says text and the bytes are UTF-8, else as they are."""
    if is_textual(mime_type):
        try:
            return ResourceContents(uri=uri, mime_type=mime_type, text=data.decode())
        except UnicodeDecodeError:
            pass
    return ResourceContents(uri=uri, mime_type=mime_type, blob=data)


def block_of_bytes(data: bytes, mime_type: str | None) -> ContentBlock | None:
    """A picture or sound, by the media type given or by the first bytes; None for anything else."""
    kind = mime_type or sniff(data) or ""
    if kind.startswith("image/") and not is_textual(kind):
        return Image(data, kind)
    return Audio(data, kind) if kind.startswith("audio/") else None


def is_textual(mime_type: str) -> bool:
    """Whether content of this media type is text."""
    kind = mime_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind in _TEXTUAL or kind.endswith(("+json", "+xml", "+yaml"))


def sniff(data: bytes) -> str | None:
    """The media type that the first bytes tell, or None."""
    for signature, at, kind in _SIGNATURES:
        if data.startswith(signature, at):
            return kind
    return None


def is_stream(value: Any) -> bool:
    """Whether a value is a file object, open for reading."""
    return callable(getattr(value, "read", None)) and not isinstance(value, type)


def read_stream(stream: Any, *, limit: int = FILE_BYTES) -> bytes | str:
    """What is left in a stream, which is then closed.

    Raises:
        LimitExceeded: There is more than `limit` bytes (or characters).
    """
    try:
        data: bytes | str = stream.read(limit + 1)
        part = data
        while part and len(data) <= limit:
            part = stream.read(limit + 1 - len(data))
            data += part
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()
    if len(data) > limit:
        raise LimitExceeded("file_bytes", limit, what="the file or stream that a handler returned")
    return data


def read_path(path: Any, *, limit: int = FILE_BYTES) -> File:
    """The file at a path that a handler returned.

    Raises:
        LimitExceeded: It has more than `limit` bytes.
    """
    with open(path, "rb") as file:  # noqa: PTH123 - keeps pathlib out of the cost of importing this
        data = read_stream(file, limit=limit)
    name = os.fspath(path).replace("\\", "/").rpartition("/")[2]
    return File(bytes(data), name, guess_mime_type(path, "") or None)  # type: ignore[arg-type]


def is_read(value: Any) -> bool:
    """Whether content is made of a value by reading a file or a stream, which may take its time."""
    if type(value) in _NEVER_READ:
        return False
    if isinstance(value, (list, tuple)):
        return any(type(item) not in _NEVER_READ and (is_path(item) or is_stream(item)) for item in value)
    return is_path(value) or is_stream(value)


def is_path(value: Any) -> bool:
    """Whether a value is a path to a file, without importing what paths are made of."""
    return hasattr(value, "__fspath__") and not isinstance(value, (str, bytes))
