"""The size of a picture, read from its head."""

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.relay import Limits
from mcprelay.relay.frame import Funnel
from mcprelay.relay.picture import pixels
from mcprelay.types import Image, ToolResult

KINDS = ["image/png", "image/gif", "image/jpeg", "image/webp"]
SMALLEST = {  # pictures of one pixel, as programs write them
    "image/png": ["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="],
    "image/gif": ["R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"],
    "image/webp": [
        "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA",
        "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==",
        "UklGRkoAAABXRUJQVlA4WAoAAAAQAAAAAAAAAAAAQUxQSAwAAAARBxAR/Q9ERP8DAABWUDggGAAAABQBAJ0BKgEAAQAAAP4AAA3AAP7mtQAAAA==",
    ],
}


@pytest.mark.parametrize(("kind", "written"), [(kind, one) for kind, many in SMALLEST.items() for one in many])
def test_a_picture_of_one_pixel_has_one(kind, written):
    assert pixels(b64decode(written), kind) == 1


def png(width, height):
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + head + b"\x08\x02\x00\x00\x00"


def jpeg(width, height, *, frame=0xC0):
    tables = b"\xff\xc4\x00\x04ab" + b"\xff\xe0\x00\x10JFIF\x00" + bytes(9)
    return b"\xff\xd8" + tables + bytes([0xFF, frame, 0, 17, 8]) + height.to_bytes(2, "big") + width.to_bytes(2, "big")


def webp(width, height):
    sizes = b"".join((side - 1).to_bytes(3, "little") for side in (width, height))
    return b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00" + sizes


def gif(width, height):
    return b"GIF89a" + width.to_bytes(2, "little") + height.to_bytes(2, "little")


@given(st.integers(1, 65_535), st.integers(1, 65_535))
def test_the_sides_are_read_as_each_kind_writes_them(width, height):
    for kind, data in zip(KINDS, (png, gif, jpeg, webp), strict=True):
        assert pixels(data(width, height), kind) == width * height
    assert pixels(jpeg(width, height, frame=0xC2), "image/jpeg") == width * height


@given(st.binary(max_size=80), st.sampled_from([*KINDS, "audio/wav"]))
def test_what_is_no_picture_has_no_size_and_breaks_nothing(data, kind):
    for start in (b"", b"\xff\xd8", b"RIFF\x00\x00\x00\x00WEBPVP8L", b"RIFF\x00\x00\x00\x00WEBPVP8X"):
        assert pixels(start + data, kind) >= 0
    assert pixels(b"\xff\xd8\xff\xe0\x00\x00", "image/jpeg") == 0


def test_a_few_bytes_that_stand_for_gigabytes_are_refused_with_the_name_of_the_limit():
    framed = Funnel("s").result(ToolResult(content=(Image(png(60_000, 60_000), "image/png"),)))
    assert framed.withheld == "too_large"
    assert "3,600,000,000 pixels, and media_pixels allows 64,000,000" in framed.text
    assert len(framed.parts) == 1
    allowed = Funnel("s", limits=Limits(media_pixels=4_000_000_000))
    assert len(allowed.result(ToolResult(content=(Image(png(60_000, 60_000), "image/png"),))).parts) == 2
