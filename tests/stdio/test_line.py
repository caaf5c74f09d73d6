import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcprelay.errors import LimitExceeded
from mcprelay.stdio.line import EXCERPT, LineTooLong, Splitter

line = st.binary(max_size=40).map(lambda text: text.replace(b"\n", b"n").replace(b"\r", b"r"))


def split(data: bytes, cuts: list[int], *, limit: int) -> list[bytes | LineTooLong]:
    """The lines of `data` when it comes in pieces that end at `cuts`."""
    splitter = Splitter(limit=limit)
    lines: list[bytes | LineTooLong] = []
    start = 0
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        if cut > start:
            lines += splitter.feed(data[start:cut])
            start = cut
    return lines + splitter.end()


@settings(deadline=None)  # the machine may be busy
@given(
    lines=st.lists(line),
    ends=st.lists(st.sampled_from([b"\n", b"\r\n"]), min_size=1),
    cuts=st.lists(st.integers(0, 999)),
)
def test_lines_come_out_whole_in_order_and_without_empty_ones_whatever_the_chunks(lines, ends, cuts):
    data = b"".join(line + ends[at % len(ends)] for at, line in enumerate(lines))
    assert split(data, cuts, limit=40) == [line for line in lines if line]


@settings(deadline=None)  # the machine may be busy
@given(lines=st.lists(line), limit=st.integers(1, 20), cuts=st.lists(st.integers(0, 999)))
def test_a_line_over_the_limit_is_reported_in_its_place_and_the_others_are_untouched(lines, limit, cuts):
    data = b"".join(line + b"\n" for line in lines)
    got = [("long", line.actual) if isinstance(line, LineTooLong) else line for line in split(data, cuts, limit=limit)]
    assert got == [("long", len(line)) if len(line) > limit else line for line in lines if line]


@pytest.mark.parametrize(
    ("before", "chunk", "whole"),
    [
        (b"", b"12345\n", b"12345"),
        (b"", b"123456\n", b""),  # too long
        (b"", b"12\r\n", b""),  # its line end is longer
        (b"", b"1\n2\n", b""),  # two of them
        (b"", b"12", b""),
        (b"", b"\n", b""),
        (b"0", b"12\n", b""),  # the rest of another one
        (b"0000000", b"12\n", b""),  # of one that is discarded
    ],
)
def test_a_chunk_is_a_whole_line_where_it_is_one_and_nothing_else(before, chunk, whole):
    splitter = Splitter(limit=5)
    assert splitter.feed(before) == []
    assert splitter.whole(chunk) == whole


@settings(deadline=None)  # the machine may be busy
@given(lines=st.lists(st.sampled_from([b"1", b"12", b"123"])), cuts=st.lists(st.integers(0, 99)))
def test_lines_are_the_same_where_whole_ones_are_taken_as_they_are(lines, cuts):
    data = b"".join(line + b"\n" for line in lines)
    splitter, got, start = Splitter(limit=5), [], 0
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        if cut > start:
            one = splitter.whole(data[start:cut])
            got += [one] if one else splitter.feed(data[start:cut])
            start = cut
    assert got == lines


@settings(deadline=None)  # the machine may be busy
@given(data=st.binary(max_size=200), cuts=st.lists(st.integers(0, 999)))
def test_chunking_makes_no_difference(data, cuts):
    assert split(data, cuts, limit=10_000) == split(data, [], limit=10_000)


def test_a_last_line_without_a_line_end_is_a_line():
    assert split(b'{"a":1}\n{"b":2}', [], limit=100) == [b'{"a":1}', b'{"b":2}']


@pytest.mark.parametrize("chunk", [7, 2**16, 2**22])
def test_what_a_long_line_was_can_still_be_seen(chunk):
    splitter = Splitter(limit=100_000)
    data = b"HEAD" + b"-" * 3_000_000 + b"TAIL"
    for start in range(0, len(data), chunk):
        assert splitter.feed(data[start : start + chunk]) == []
    (error,) = splitter.feed(b"\n")
    assert isinstance(error, LimitExceeded)
    assert (error.limit, error.allowed, error.actual) == ("message_bytes", 100_000, len(data))
    assert error.head.startswith(b"HEAD")
    assert error.tail.endswith(b"TAIL")
    assert len(error.head) == len(error.tail) == EXCERPT
    assert "message_bytes=100000" in str(error)
    assert splitter.feed(b"next\n") == [b"next"]


def test_a_long_line_that_is_discarded_is_not_kept_in_memory():
    splitter = Splitter(limit=1000)
    for _ in range(1000):
        splitter.feed(b"x" * 10_000)
        held = sum(map(len, splitter._kept)) + len(splitter._head or b"") + len(splitter._tail)
        assert held <= 2 * EXCERPT


def test_a_line_of_exactly_the_limit_passes_with_either_line_end():
    assert split(b"12345\r\n12345\n123456\n", [], limit=5)[:2] == [b"12345", b"12345"]
    assert split(b"12345\r\n", [3, 6], limit=5) == split(b"12345\r\n", [], limit=9) == [b"12345"]


def test_a_carriage_return_inside_a_line_stays():
    assert split(b"a\rb\r\nc\r", [], limit=50) == [b"a\rb", b"c"]


def test_work_grows_with_the_length_of_a_line_and_not_with_its_square():
    """Each byte is looked at a fixed number of times: kept by reference, and joined once."""
    splitter = Splitter()
    pieces = 20_000
    for _ in range(pieces):
        splitter.feed(b"x" * 100)
    assert len(splitter._kept) == pieces  # nothing was joined on the way
    assert splitter.feed(b"\n") == [b"x" * 100 * pieces]
