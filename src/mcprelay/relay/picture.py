"""How large a picture is when it is unpacked, by what it says itself: a few bytes may stand for gigabytes.

A program that unpacks it may go by any of the sizes that stand in it: its own, that of a frame, that of a second head.
So all of them are read, and the largest counts. Nothing is unpacked. Where one reader may find a size that another one
does not, or where there is none, there is no telling; and what would take very long to go through is no picture either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from struct import error, unpack_from

Sizes = Iterator[tuple[int, int]]


class _Unsure(Exception):
    """No reader can be sure of what the picture says."""


def pixels(data: bytes, mime_type: str) -> int | None:
    """Pixels of a picture at most; 0 for what is of no type of pictures, None where the size cannot be told."""
    read = _SIZES.get(mime_type)
    if read is None:
        return 0
    width = height = 0
    try:
        for wide, high in read(data):
            width, height = max(width, wide), max(height, high)
    except error:
        pass  # it breaks off: no reader finds more than what stands before
    except _Unsure:
        return None
    return width * height or None


def _steps(data: bytes) -> Iterator[int]:
    """As many parts as a picture of this length has, and many more."""
    return iter(range(1_024 + len(data) // 32))


def _png(data: bytes) -> Sizes:
    if data[8:16] != b"\x00\x00\x00\x0dIHDR":
        raise _Unsure
    at = 8
    for _ in _steps(data):
        length, kind = unpack_from(">I4s", data, at)
        if kind == b"IHDR":
            yield unpack_from(">II", data, at + 8)
        elif kind == b"fcTL":  # a frame of an animation
            yield unpack_from(">II", data, at + 12)
        at += 12 + length
        if kind == b"IEND":
            return
    raise _Unsure


def _gif(data: bytes) -> Sizes:
    width, height, flags = unpack_from("<HHB", data, 6)
    at = 13 + _colors(flags)
    steps = _steps(data)
    for _ in steps:
        (kind,) = unpack_from("B", data, at)
        if kind == 0x3B:  # the end
            return
        if kind == 0x2C:
            left, top, wide, high, flags = unpack_from("<HHHHB", data, at + 1)
            yield max(width, left + wide), max(height, top + high)
            at += 11 + _colors(flags)
        elif kind == 0x21:
            at += 2
        else:
            raise _Unsure
        at = _behind(data, at, steps)
    raise _Unsure


def _colors(flags: int) -> int:
    """Bytes of a table of colors."""
    return 6 << (flags & 7) if flags & 0x80 else 0


def _behind(data: bytes, at: int, steps: Iterator[int]) -> int:
    """Where the blocks of data end that begin here."""
    for _ in steps:
        (length,) = unpack_from("B", data, at)
        at += 1 + length
        if not length:
            return at
    raise _Unsure


_MARKER = re.compile(rb"\xff+([^\x00\xff])")
"""Fill bytes may stand before a marker."""
_SCAN_END = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
"""What ends a scan: inside, 0xFF stands before 0, or before the number of a restart."""
_LONE = frozenset([0x01, *range(0xD0, 0xD9)])
"""Markers without a length, which have no business between segments."""
_FRAMES = frozenset([*range(0xC0, 0xD0), 0xDE]) - {0xC4, 0xC8, 0xCC}
"""Markers of frames, and of what goes before several."""


def _jpeg(data: bytes) -> Sizes:
    at = 2
    for _ in _steps(data):
        found = _MARKER.match(data, at)
        if found is None:
            if at < len(data):
                raise _Unsure
            return
        kind = found[1][0]
        if kind == 0xD9:  # the end
            return
        at = found.end()
        (length,) = unpack_from(">H", data, at)
        if length < 2 or kind in _LONE:
            raise _Unsure
        if kind in _FRAMES:
            high, wide = unpack_from(">HH", data, at + 3)
            yield wide, high
        elif kind == 0xDC:  # the height, told afterwards
            (high,) = unpack_from(">H", data, at + 2)
            yield 0, high
        at += length
        if kind == 0xDA:
            ended = _SCAN_END.search(data, at)
            at = len(data) if ended is None else ended.start()
    raise _Unsure


def _webp(data: bytes) -> Sizes:
    at = 12
    if data[at : at + 4] not in _WEBP:
        raise _Unsure
    for _ in _steps(data):
        kind, length = unpack_from("<4sI", data, at)
        read = _WEBP.get(kind)
        if read is not None:
            yield read(data, at + 8)
        at += 24 if kind == b"ANMF" else 8 + length + length % 2  # a frame has parts of its own behind its size
    raise _Unsure


def _canvas(data: bytes, at: int, before: int = 4) -> tuple[int, int]:
    low, high, height, more = unpack_from("<HBHB", data, at + before)
    return 1 + low + (high << 16), 1 + height + (more << 16)


def _frame(data: bytes, at: int) -> tuple[int, int]:
    return _canvas(data, at, 6)


def _lossy(data: bytes, at: int) -> tuple[int, int]:
    start, width, height = unpack_from("<3s2H", data, at + 3)
    if start != b"\x9d\x01\x2a":
        raise _Unsure
    return width & 0x3FFF, height & 0x3FFF


def _lossless(data: bytes, at: int) -> tuple[int, int]:
    start, bits = unpack_from("<BI", data, at)
    if start != 0x2F:
        raise _Unsure
    return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)


_WEBP: dict[bytes, Callable[[bytes, int], tuple[int, int]]] = {
    b"VP8X": _canvas,
    b"VP8L": _lossless,
    b"VP8 ": _lossy,
    b"ANMF": _frame,
}
_SIZES: dict[str, Callable[[bytes], Sizes]] = {
    "image/png": _png,
    "image/gif": _gif,
    "image/jpeg": _jpeg,
    "image/webp": _webp,
}
