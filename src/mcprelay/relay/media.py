"""Pictures, sounds and files of a server: which kinds go on to a model, and what they really are.

A declared type is checked against the first bytes where these tell. What a provider would refuse, or would read as
something else, is left out by `admitted`; its sentence becomes a note.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["image", "audio", "file"]

KINDS: dict[str, Kind] = {
    "image/png": "image",
    "image/jpeg": "image",
    "image/gif": "image",
    "image/webp": "image",
    "audio/wav": "audio",
    "audio/x-wav": "audio",
    "audio/mpeg": "audio",
    "audio/mp3": "audio",
    "audio/ogg": "audio",
    "audio/flac": "audio",
    "audio/aac": "audio",
    "audio/mp4": "audio",
    "audio/webm": "audio",
    "application/pdf": "file",
}
"""The types that go on to a model."""
_STARTS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"%PDF-", "application/pdf"),
    (b"\x1a\x45\xdf\xa3", "audio/webm"),
)
_TELLING = frozenset(["image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav", "audio/ogg", "audio/flac"])
"""Types that their first bytes always tell."""
_MARKUP = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<[!?a-zA-Z]")
_TYPE = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]{0,60}")
_ALIASES = {"audio/x-wav": "audio/wav", "audio/mp3": "audio/mpeg"}


class Media(Struct, frozen=True):
    """A picture, sound or file that may go on to a model."""

    kind: Kind
    data: bytes
    mime_type: str


def admitted(data: bytes, mime_type: str | None) -> Media | str:
    """The part that goes on to a model, or the reason why none does. Both hold local words only."""
    declared = plain_type(mime_type)
    kind = KINDS.get(declared)
    if kind is None:
        return f"{declared} is not passed on"
    if not data:
        return f"{declared} without content"
    found = sniffed(data)
    if found == "markup":
        return f"declared as {declared}, but it is markup"
    if found is None and _ALIASES.get(declared, declared) in _TELLING:
        return f"declared as {declared}, and it is none"  # a provider would refuse the whole request for it
    if found is None or found == _ALIASES.get(declared, declared):
        return Media(kind, data, declared)
    if KINDS[found] == kind:
        return Media(kind, data, found)  # a wrong label among the same kind would make a provider refuse the request
    return f"declared as {declared}, but it is {found}"


def plain_type(mime_type: str | None) -> str:
    """A media type without parameters, in lower case, if it is written as one."""
    bare = (mime_type or "").partition(";")[0].strip().lower()
    return bare if _TYPE.fullmatch(bare) else "content of an unnamed type"


def sniffed(data: bytes) -> str | None:
    """The type that the first bytes tell, `markup`, or None where they tell nothing."""
    for start, mime_type in _STARTS:
        if data.startswith(start):
            return mime_type
    if data.startswith(b"RIFF"):
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12])
    if data[4:8] == b"ftyp":
        return "audio/mp4"
    return "markup" if _MARKUP.match(data[:256]) else None
