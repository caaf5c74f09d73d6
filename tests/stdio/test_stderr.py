import logging

from hypothesis import given, settings
from hypothesis import strategies as st

from mcprelay.stdio.stderr import LINE_BYTES, Stderr


@settings(deadline=None)  # the machine may be busy
@given(chunks=st.lists(st.binary(max_size=50)), size=st.integers(0, 60))
def test_the_tail_is_the_end_of_what_was_said(chunks, size):
    stderr = Stderr(tail_bytes=size)
    for chunk in chunks:
        stderr.feed(chunk)
    whole = b"".join(chunks)
    assert stderr.tail == whole[max(0, len(whole) - size) :].decode(errors="replace")
    assert len(stderr._kept) <= 2 * size + 50


def test_each_line_is_handed_on_and_the_tail_is_kept_too():
    lines = []
    stderr = Stderr(on_line=lines.append)
    for chunk in (b"one\ntw", b"o\r\n\xff\n", b"last", b""):
        stderr.feed(chunk)
    assert lines == ["one", "two", "\ufffd", "last"]
    assert stderr.tail == "one\ntwo\r\n\ufffd\nlast"


def test_a_line_without_end_is_handed_on_in_part():
    lines = []
    stderr = Stderr(on_line=lines.append)
    stderr.feed(b"x" * (2 * LINE_BYTES) + b"\n")
    assert len(lines) == 1
    assert 0 < len(lines[0]) < LINE_BYTES


def test_a_callback_that_fails_is_logged_once_and_hurts_nobody(caplog):
    def fail(line: str):
        raise ValueError(line)

    stderr = Stderr(on_line=fail)
    with caplog.at_level(logging.ERROR, "mcprelay.stdio"):
        stderr.feed(b"one\ntwo\n")
        stderr.feed(b"three\n")
    assert len(caplog.records) == 1
    assert stderr.tail == "one\ntwo\nthree\n"
