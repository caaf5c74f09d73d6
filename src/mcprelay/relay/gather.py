"""What a server answered, gathered for the frame: texts in their order, notes where something cannot be text, media.

Measuring comes first and makes no copy, so that a hostile size costs nothing. What comes out is raw: it is cleaned,
filtered and framed by `frame`, all of it at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from mcprelay.relay.budget import Limits
from mcprelay.relay.errors import ResultTooLarge
from mcprelay.relay.media import Media, admitted, plain_type
from mcprelay.relay.picture import pixels
from mcprelay.relay.repeat import Repeats
from mcprelay.types import Audio, EmbeddedResource, Image, ResourceContents, ResourceLink, Text, Unknown

_CHUNK = 1 << 16
_WIDEST = 4
"""Bytes that a character has at most in UTF-8."""
_LONGEST_NAME = 500
"""Characters of a name, an address or a description inside a note."""


class Gathered(Struct):
    """Texts and notes in order, and the media that the notes speak of."""

    texts: list[str]
    media: list[Media]


def gather(content: Iterable[Any], structured: Any, *, limits: Limits) -> Gathered:
    """Gather content blocks and structured content (`msgspec.UNSET` for none).

    Raises:
        ResultTooLarge: A limit is exceeded. Nothing was copied.
    """
    gathered = Gathered([], [])
    blocks = content if type(content) is tuple else tuple(content)
    if len(blocks) > limits.result_blocks:
        raise ResultTooLarge("result_blocks", allowed=limits.result_blocks, actual=len(blocks))
    for block in blocks:
        if type(block) is Text:
            gathered.texts.append(block.text)
        else:
            _take(block, gathered, limits)
    repeats = _elided(gathered, limits) if gathered.media else None
    texts = gathered.texts
    if len(texts) != 1 or len(texts[0]) * _WIDEST > limits.result_bytes:
        fits(texts, limits.result_bytes)
    if structured is not UNSET and structured not in texts and _structured(structured, gathered, repeats, limits):
        fits(texts, limits.result_bytes)
    return gathered


def fits(texts: Iterable[str], allowed: int) -> None:
    """See that texts, one line apart, are within a bound.

    Raises:
        ResultTooLarge: They are not; the error has their size.
    """
    texts = tuple(texts)
    if sum(map(len, texts)) * _WIDEST <= allowed:
        return
    actual = sum(map(size, texts))
    if actual > allowed:
        raise ResultTooLarge("result_bytes", allowed=allowed, actual=actual)


def size(text: str) -> int:
    """Bytes of a text in UTF-8, without a copy of more than a part of it."""
    if text.isascii():
        return len(text)
    if len(text) <= _CHUNK:
        return len(text.encode("utf-8", "surrogatepass"))
    parts = (text[start : start + _CHUNK] for start in range(0, len(text), _CHUNK))
    return sum(len(part.encode("utf-8", "surrogatepass")) for part in parts)


def _take(block: Any, gathered: Gathered, limits: Limits) -> None:
    """Put one content block that is no text where it belongs."""
    if isinstance(block, Image | Audio):
        _medium(block.data, block.mime_type, gathered, limits)
    elif isinstance(block, EmbeddedResource):
        _contents(block.resource, gathered, limits)
    elif isinstance(block, ResourceLink):
        gathered.texts.append(_link(block))
    elif isinstance(block, Unknown):
        gathered.texts.append(f"[content of the kind {_short(block.type)} is not passed on]")
    else:
        gathered.texts.append("[content of an unknown kind is not passed on]")


def _contents(resource: ResourceContents, gathered: Gathered, limits: Limits) -> None:
    """Take what is in a resource: its text below a line that names it, or its bytes as a medium."""
    if resource.text is not None:
        gathered.texts.append(f"[resource {_short(resource.uri)}]\n{resource.text}")
    else:
        gathered.texts.append(f"[resource {_short(resource.uri)}]")
        _medium(resource.blob or b"", resource.mime_type, gathered, limits)


def _medium(data: bytes, mime_type: str | None, gathered: Gathered, limits: Limits) -> None:
    """Take a medium, and leave a note in its place."""
    if len(data) > limits.media_bytes:
        raise ResultTooLarge("media_bytes", allowed=limits.media_bytes, actual=len(data))
    found = admitted(data, mime_type)
    if isinstance(found, str):
        gathered.texts.append(f"[left out: {found}; {len(data):,} bytes]")
        return
    area = pixels(data, found.mime_type)
    if area is None:
        gathered.texts.append(f"[left out: {found.mime_type} whose size cannot be told; {len(data):,} bytes]")
        return
    if area > limits.media_pixels:
        raise ResultTooLarge("media_pixels", allowed=limits.media_pixels, actual=area)
    gathered.media.append(found)
    together = sum(len(medium.data) for medium in gathered.media)
    if together > limits.result_media_bytes:
        raise ResultTooLarge("result_media_bytes", allowed=limits.result_media_bytes, actual=together)
    gathered.texts.append(f"[attachment {len(gathered.media)}: {found.mime_type}, {len(data):,} bytes]")


def _link(link: ResourceLink) -> str:
    """A link in words. It is never fetched and never becomes an address in a provider's own field."""
    said = [f"link to {_short(link.title or link.name)}: {_short(link.uri)}"]
    if link.description:
        said.append(_short(link.description))
    if link.mime_type:
        said.append(plain_type(link.mime_type))
    return f"[{'; '.join(said)}; not fetched]"


def _short(text: str) -> str:
    """A word of the server's inside a note, on one line. Shortening is marked, and a note is not a result."""
    return " ".join(text[:_LONGEST_NAME].split()) + ("…" if len(text) > _LONGEST_NAME else "")


def _elided(gathered: Gathered, limits: Limits) -> Repeats:
    """Take what repeats a medium out of the texts.

    Raises:
        ResultTooLarge: There is more text than may be searched.
    """
    repeats = Repeats(gathered.media, steps=limits.media_steps)
    counted = sum(map(len, gathered.texts))
    if counted > limits.result_bytes + repeats.room:
        raise ResultTooLarge("result_bytes", allowed=limits.result_bytes, actual=counted)
    gathered.texts = repeats.without(gathered.texts)
    return repeats


# --- structured content -----------------------------------------------------------------------------------------------


def _structured(value: Any, gathered: Gathered, repeats: Repeats | None, limits: Limits) -> bool:
    """Take structured content, unless a text says the same already: whether it was taken."""
    if _only(value) in gathered.texts:
        return False  # told at once, because it is what most servers send
    bound = limits.result_bytes + (0 if repeats is None else repeats.room)
    counted = _at_least(value, bound)
    if counted > bound:
        raise ResultTooLarge("result_bytes", allowed=limits.result_bytes, actual=counted)
    if repeats is not None:
        value = repeats.without(value)
    text = msgspec.json.encode(value).decode()
    if _is_said(gathered.texts, value, text):
        return False
    gathered.texts.append(text)
    return True


def _only(value: Any) -> Any:
    """The one value inside an object of one member, in which revisions that demand an object wrap it; or the value."""
    if isinstance(value, dict) and len(value) == 1:
        (only,) = value.values()
        return only
    return value


def _at_least(value: Any, bound: int) -> int:
    """A lower bound of a JSON value's size, counted no further than to `bound`."""
    counted = 0
    waiting = [value]
    while waiting and counted <= bound:
        item = waiting.pop()
        if isinstance(item, str):
            counted += len(item) + 2
        elif isinstance(item, dict | list | tuple):
            counted += 2 + len(item)
            if counted > bound:
                break
            if isinstance(item, dict):
                waiting.extend(item)
                waiting.extend(item.values())
            else:
                waiting.extend(item)
        else:
            counted += 1
    return counted


def _is_said(texts: list[str], value: Any, text: str) -> bool:
    """Whether a text block carries the structured content: as its JSON, or as the one value inside it."""
    only = _only(value)
    written = text if only is value else msgspec.json.encode(only).decode()
    if text in texts or written in texts:
        return True
    ordered = b""
    marks = tuple(map(text.count, _MARKS))
    for said in texts:
        if said[:1] not in _JSON_STARTS or tuple(map(said.count, _MARKS)) != marks:
            continue  # so nothing is read that takes more memory than the structured content does already
        try:
            read = msgspec.json.decode(said)
            if read == value:
                ordered = ordered or _sorted(value)
                if _sorted(read) == ordered:  # true is not 1, though Python says so
                    return True
        except (msgspec.DecodeError, RecursionError):
            continue
    return False


def _sorted(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


_JSON_STARTS = frozenset('{["-0123456789tfn \n')
_MARKS = "[{,"
