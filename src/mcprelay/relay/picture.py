"""How large a picture is when it is unpacked, by what its head says: a few bytes may stand for gigabytes.

Only the head is read, and nothing is unpacked. What a head does not say is for whoever unpacks it to refuse.
"""

from __future__ import annotations

from struct import error, unpack_from


def pixels(data: bytes, mime_type: str) -> int:
    """Pixels of a picture, or 0 where the head does not say."""
    try:
        width, height = _SIZES[mime_type](data)
    except (KeyError, error):
        return 0
    return width * height


def _png(data: bytes) -> tuple[int, int]:
    return unpack_from(">II", data, 16) if data[12:16] == b"IHDR" else (0, 0)


def _gif(data: bytes) -> tuple[int, int]:
    return unpack_from("<HH", data, 6)


def _jpeg(data: bytes) -> tuple[int, int]:
    """The frame's size: the first segment that is one, after those that are none."""
    at = 2
    while data[at : at + 1] == b"\xff":
        kind, length = unpack_from(">xBH", data, at)
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + length
    return 0, 0


def _webp(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        low, high, height, more = unpack_from("<HBHB", data, 24)
        return 1 + low + (high << 16), 1 + height + (more << 16)
    if kind == b"VP8L":
        (bits,) = unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


_SIZES = {"image/png": _png, "image/gif": _gif, "image/jpeg": _jpeg, "image/webp": _webp}
