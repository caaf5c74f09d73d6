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


def sides(width, height, order):
    return width.to_bytes(2, order) + height.to_bytes(2, order)


def chunk(kind, data=b""):
    return len(data).to_bytes(4, "big") + kind + data + bytes(4)


def header(width, height):
    return chunk(b"IHDR", width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\x00\x00\x00")


def png(width, height, *more):
    return b"\x89PNG\r\n\x1a\n" + header(width, height) + b"".join(more)


def segment(kind, data=b""):
    return bytes([0xFF, kind]) + (2 + len(data)).to_bytes(2, "big") + data


def frame(width, height, kind=0xC0):
    return segment(kind, b"\x08" + sides(height, width, "big") + b"\x01\x01\x11\x00")


TABLES = segment(0xC4, b"ab") + segment(0xE0, b"JFIF\x00" + bytes(9))
SCAN = segment(0xDA, bytes(6)) + b"ab\xff\x00\xff\xd0cd\xff\xff\xd1"
END = b"\xff\xd9"


def jpeg(*parts):
    return b"\xff\xd8" + b"".join(parts)


def part(kind, data):
    return kind + len(data).to_bytes(4, "little") + data + bytes(len(data) % 2)


def three(*sides):
    return b"".join((side - 1).to_bytes(3, "little") for side in sides)


def lossy(width, height, start=b"\x9d\x01\x2a"):
    return part(b"VP8 ", b"\x30\x01\x00" + start + sides(width, height, "little"))


def webp(*parts):
    return b"RIFF\x00\x00\x00\x00WEBP" + b"".join(parts)


def canvas(width, height):
    return part(b"VP8X", bytes(4) + three(width, height))


def image(width, height, left=0, top=0):
    place = sides(left, top, "little") + sides(width, height, "little")
    return b"\x2c" + place + b"\x80" + bytes(6) + b"\x02\x02LZ\x00"


def gif(width, height, *parts):
    return b"GIF89a" + sides(width, height, "little") + b"\x80\x00\x00" + bytes(6) + b"".join(parts)


NOTE = b"\x21\xfe\x04note\x03two\x00"


@given(st.integers(1, 65_535), st.integers(1, 65_535))
def test_the_sides_are_read_as_each_kind_writes_them(width, height):
    written = {
        "image/png": [png(width, height)],
        "image/gif": [gif(width, height, NOTE, image(1, 1), b"\x3b")],
        "image/jpeg": [jpeg(TABLES, frame(width, height, kind), SCAN, END) for kind in (0xC0, 0xC2, 0xCF)],
        "image/webp": [webp(canvas(width, height))],
    }
    for kind, pictures in written.items():
        for data in pictures:
            assert pixels(data, kind) == width * height


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("image/png", png(1, 1, header(30, 20), chunk(b"IEND"))),
        ("image/png", png(1, 1, chunk(b"acTL", bytes(8)), chunk(b"fcTL", bytes(4) + header(30, 20)[8:16] + bytes(14)))),
        ("image/gif", gif(1, 1, image(30, 20), image(1, 1), b"\x3b")),
        ("image/gif", gif(1, 1, image(10, 10, left=20, top=10))),
        ("image/jpeg", jpeg(b"\xff\xff\xff", frame(30, 20))),
        ("image/jpeg", jpeg(frame(1, 1), frame(30, 20), SCAN, END)),
        ("image/jpeg", jpeg(frame(1, 1), SCAN, frame(30, 20), SCAN)),
        ("image/jpeg", jpeg(frame(1, 1, 0xDE), SCAN, TABLES, frame(30, 20), SCAN, END + b"more")),
        ("image/jpeg", jpeg(frame(30, 0), SCAN, segment(0xDC, b"\x00\x14"), END)),
        ("image/webp", webp(canvas(1, 1), part(b"ALPH", b"odd"), lossy(30, 20))),
        ("image/webp", webp(canvas(1, 1), part(b"ANMF", bytes(6) + three(30, 20) + bytes(4) + lossy(1, 1)))),
        ("image/webp", webp(canvas(1, 1), part(b"ANMF", bytes(6) + three(1, 1) + bytes(4) + lossy(30, 20)))),
        ("image/webp", webp(part(b"VP8L", b"\x2f" + (29 | 19 << 14).to_bytes(4, "little")))),
    ],
)
def test_of_several_sizes_that_a_picture_states_the_largest_counts(kind, data):
    assert pixels(data, kind) == 600


UNSURE = [
    ("image/png", b"\x89PNG\r\n\x1a\n"),
    ("image/png", png(0, 5)),
    ("image/png", b"\x89PNG\r\n\x1a\n" + chunk(b"CgBI", bytes(4)) + header(1, 1)),
    ("image/png", png(1, 1, *[chunk(b"tEXt")] * 5_000)),
    ("image/gif", gif(1, 1)),
    ("image/gif", gif(1, 1, image(1, 1), b"?")),
    ("image/gif", gif(1, 1, *[b"\x21\xfe\x00"] * 5_000)),
    ("image/gif", gif(1, 1, *[b"\x21\xfe\x00"] * 5_010)),
    ("image/gif", gif(1, 1, b"\x21\xfe" + b"\x01x" * 5_000)),
    ("image/jpeg", jpeg(END)),
    ("image/jpeg", jpeg(b"\xff\xd0", frame(1, 1))),
    ("image/jpeg", jpeg(b"\xff\x01", frame(1, 1))),
    ("image/jpeg", jpeg(b"\xff\xd8", frame(1, 1))),
    ("image/jpeg", jpeg(TABLES, b"junk", frame(1, 1))),
    ("image/jpeg", jpeg(b"\xff\xe0\x00\x00", frame(1, 1))),
    ("image/jpeg", jpeg(frame(30, 0), SCAN, END)),
    ("image/jpeg", jpeg(*[segment(0xE1)] * 5_000, frame(1, 1))),
    ("image/webp", webp(part(b"JUNK", b""), lossy(1, 1))),
    ("image/webp", webp(lossy(1, 1, start=b"...") + lossy(1, 1))),
    ("image/webp", webp(part(b"VP8L", bytes(5)))),
    ("image/webp", webp(canvas(1, 1), *[part(b"JUNK", b"")] * 5_000)),
]


@pytest.mark.parametrize(("kind", "data"), UNSURE)
def test_a_picture_whose_size_no_reader_can_be_sure_of_is_left_out_with_a_note(kind, data):
    assert pixels(data, kind) is None
    framed = Funnel("s").result(ToolResult(content=(Image(data, kind),)))
    assert len(framed.parts) == 1
    assert f"[left out: {kind} whose size cannot be told; {len(data):,} bytes]" in framed.text


@given(st.binary(max_size=80), st.sampled_from(KINDS))
def test_whatever_stands_in_a_picture_breaks_nothing(data, kind):
    for start in (b"", jpeg(), webp(b"VP8L"), webp(b"VP8X"), webp(b"VP8 "), gif(1, 1), png(1, 1)):
        assert pixels(start + data, kind) != 0


@given(st.binary(max_size=80))
def test_what_is_no_picture_has_no_size(data):
    assert pixels(data, "audio/wav") == 0


def test_a_few_bytes_that_stand_for_gigabytes_are_refused_with_the_name_of_the_limit():
    framed = Funnel("s").result(ToolResult(content=(Image(png(60_000, 60_000), "image/png"),)))
    assert framed.withheld == "too_large"
    assert "3,600,000,000 pixels, and media_pixels allows 64,000,000" in framed.text
    assert len(framed.parts) == 1
    allowed = Funnel("s", limits=Limits(media_pixels=4_000_000_000))
    assert len(allowed.result(ToolResult(content=(Image(png(60_000, 60_000), "image/png"),))).parts) == 2
