import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcprelay.wire.sse import EVENT_BYTES, Event, Oversized, Parser, comment, frame

PIECES = st.sampled_from(
    [
        b"data",
        b"data:",
        b"data: x",
        b"data:  y",
        b"event: ping",
        b"event",
        b"event: message",
        b"id: 1",
        b"id:",
        b"id: a\0b",
        b"id: \xff",
        b"retry: 500",
        b"retry: 5x",
        b"retry:",
        b"retry: " + b"9" * 5000,
        b": comment",
        b":",
        b"unknown: z",
        b"datax: no",
        b" data: no",
        b"\xef\xbb\xbf",
        b"\xef\xbb",
        b"\xe4\xb8\x96",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"\r\n\r\n",
        b"\r\r",
    ]
)
STREAMS = st.lists(PIECES, max_size=30).map(b"".join) | st.binary(max_size=60)
WIRE_TEXT = st.text(alphabet=st.characters(codec="utf-8"))


def read(stream, *, limit=EVENT_BYTES):
    parser = Parser(limit=limit)
    return parser.feed(stream), parser


def by_the_standard(stream):
    """The event stream interpretation of the HTML standard, section 9.2.6, word by word, over a whole stream."""
    events, data, kind, last, buffer = [], None, "", "", ""
    text = stream.removeprefix(b"\xef\xbb\xbf")
    lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]
    for line in lines:
        if line == b"":
            last = buffer
            if data is not None:
                events.append((b"\n".join(data), kind or "message", last))
            data, kind = None, ""
        elif not line.startswith(b":"):
            field, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if field == b"data":
                data = [*(data or []), value]
            elif field == b"event":
                kind = value.decode("utf-8", "replace")
            elif field == b"id" and b"\0" not in value:
                buffer = value.decode("utf-8", "replace")
    return events, last


@given(STREAMS)
def test_a_stream_is_read_as_the_standard_says(stream):
    events, parser = read(stream)
    wanted, last = by_the_standard(stream)
    assert [(event.data, event.event, event.id) for event in events] == wanted
    assert parser.last_event_id == last


@given(STREAMS, st.lists(st.integers(min_value=0, max_value=80)), st.integers(min_value=0, max_value=20))
@example(b"\xef\xbb\xbf\n: x", [1, 2], 0)
@example(b"data: x\r\n\r\ndata: y\r\n\r\n", [8, 9, 10, 11], 20)
def test_any_chunking_gives_the_same_events(stream, cuts, limit):
    whole, parser = read(stream, limit=limit)
    chunked = Parser(limit=limit)
    events, start = [], 0
    for end in [*sorted(min(cut, len(stream)) for cut in cuts), len(stream)]:
        events += chunked.feed(stream[start:end])
        start = end
    assert events == whole
    assert (chunked.last_event_id, chunked.retry, chunked.unfinished) == (
        parser.last_event_id,
        parser.retry,
        parser.unfinished,
    )


@given(STREAMS)
def test_one_byte_at_a_time_gives_the_same_events(stream):
    parser = Parser()
    events = [event for index in range(len(stream)) for event in parser.feed(stream[index : index + 1])]
    assert events == read(stream)[0]


@pytest.mark.parametrize("cut", range(7))
def test_a_byte_order_mark_is_stripped_wherever_it_is_cut(cut):
    stream = b"\xef\xbb\xbfdata: x\n\n"
    parser = Parser()
    assert [*parser.feed(stream[:cut]), *parser.feed(stream[cut:])] == [Event(b"x")]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_each_line_end_ends_a_line(end):
    stream = end.join([b"event: ping", b"data: a", b"data: b", b"id: 7", b"", b"data: c", b"", b""])
    assert read(stream)[0] == [Event(b"a\nb", "ping", "7"), Event(b"c", "message", "7")]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data\n\n", [Event(b"")]),
        (b"data:\n\n", [Event(b"")]),
        (b"data\ndata\n\n", [Event(b"\n")]),
        (b"data:  two spaces\n\n", [Event(b" two spaces")]),
        (b"event: ping\n\n", []),
        (b"event: ping\n\ndata: x\n\n", [Event(b"x")]),
        (b"event: a\nevent: message\ndata: x\n\n", [Event(b"x")]),
        (b"event: a\nevent:\ndata: x\n\n", [Event(b"x")]),
        (b"data: unterminated", []),
        (b"data: unterminated\n", []),
        (b": nothing\n\n", []),
        (b":\r\n:\r\n", []),
        (b"\xef\xbb\xbfdata: x\n\n", [Event(b"x")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n", []),
        (b"\ndata: x\n\n", [Event(b"x")]),
        (b"id: 1\ndata: x\n\nid: a\0b\ndata: y\n\n", [Event(b"x", "message", "1"), Event(b"y", "message", "1")]),
        (b"id: 1\ndata: x\n\nid\ndata: y\n\n", [Event(b"x", "message", "1"), Event(b"y")]),
        (b"Data: x\nDATA: x\n data: x\n\n", []),
        ("event: 世\ndata: 界\n\n".encode(), [Event("界".encode(), "世")]),
        (b"event: \xff\ndata: \xff\n\n", [Event(b"\xff", "\ufffd")]),
    ],
)
def test_each_rule_of_the_format(stream, events):
    assert read(stream)[0] == events


def test_an_id_counts_for_a_reconnection_only_once_its_event_is_complete():
    parser = Parser()
    assert parser.feed(b"id: 1\n") == []
    assert parser.last_event_id == ""
    assert parser.feed(b"\n") == []
    assert parser.last_event_id == "1"


@pytest.mark.parametrize(
    ("value", "retry"),
    [(b"500", 500), (b"0", 0), (b"-1", None), (b"1.5", None), (b"5e3", None), (b"", None), (b"9" * 99, None)],
)
def test_retry_takes_digits_only(value, retry):
    events, parser = read(b"retry: " + value + b"\ndata: x\n\n")
    assert events == [Event(b"x", retry=retry)]
    assert parser.retry == retry


def test_the_retry_of_an_event_is_its_own_and_that_of_the_stream_stays():
    events, parser = read(b"retry: 5\n\ndata: x\n\n")
    assert events == [Event(b"x")]
    assert parser.retry == 5


def test_an_unfinished_event_can_be_told_from_a_clean_end():
    parser = Parser()
    for chunk, unfinished in [
        (b"data: x", True),
        (b"\n", True),
        (b"\n", False),
        (b": keep", False),
        (b"-alive\n", False),
        (b"event: a\n", True),
    ]:
        parser.feed(chunk)
        assert parser.unfinished == unfinished


def test_an_event_over_the_limit_is_reported_in_its_place_and_the_stream_goes_on():
    stream = b"data: a\n\nid: 2\nevent: big\ndata: 0123456789\ndata: more\n\ndata: b\n\n"
    events, parser = read(stream, limit=12)
    assert events == [Event(b"a"), Oversized(12, "big", "2"), Event(b"b", "message", "2")]
    assert "sse_event_bytes=12" in events[1].message
    assert parser.last_event_id == "2"


def test_an_event_that_never_ends_is_reported_before_it_does_and_is_not_held():
    parser = Parser(limit=1000)
    events = []
    for _ in range(100):
        events += parser.feed(b"data: " + b"x" * 100 + b"\n")
    for _ in range(100):
        events += parser.feed(b"y" * 100)
        assert len(parser._line) <= 1000
    assert events == [Oversized(1000)]
    assert parser._data == []
    assert parser.unfinished


@pytest.mark.parametrize("line", [b": " + b"x" * 100, b":\n" * 100])
def test_comments_cost_nothing_however_long(line):
    parser = Parser(limit=20)
    for _ in range(50):
        assert parser.feed(line) == []
    assert len(parser._line) <= 1
    assert parser.feed(b"\ndata: x\n\n") == [Event(b"x")]


def test_a_large_event_in_thousands_of_chunks_is_read_whole():
    data = b"x" * (4 << 20)
    stream = frame(data)
    parser = Parser()
    events = [event for start in range(0, len(stream), 256) for event in parser.feed(stream[start : start + 256])]
    assert events == [Event(data)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_data_of_several_lines_has_a_field_for_each(end):
    assert frame(b"a" + end + b"b") == b"data: a\ndata: b\n\n"


def test_a_frame_is_data_and_a_blank_line():
    assert frame(b'{"a":1}') == b'data: {"a":1}\n\n'
    assert frame(b"x", id="1", event="message", retry=5) == b"event: message\nid: 1\nretry: 5\ndata: x\n\n"
    assert frame(b"", id="1") == b"id: 1\ndata: \n\n"


@pytest.mark.parametrize(
    "bad", [{"id": "a\nb"}, {"id": "a\rb"}, {"id": "a\0"}, {"event": "a\nb"}, {"event": "\r"}, {"retry": -1}]
)
def test_what_a_reader_would_not_get_back_is_not_framed(bad):
    with pytest.raises(ValueError, match=r"line end|NUL|milliseconds"):
        frame(b"x", **bad)


FIELD = WIRE_TEXT.map(lambda text: text.translate({0: None, 10: None, 13: None}))


@given(st.binary(), FIELD, FIELD, st.integers(min_value=0, max_value=10**15 - 1))
def test_what_is_framed_is_read_back_with_line_ends_as_line_feeds(data, id, event, retry):
    framed = frame(data, id=id, event=event, retry=retry)
    wanted = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert read(framed)[0] == [Event(wanted, event or "message", id, retry)]
    assert read(frame(data))[0] == [Event(wanted)]


@given(WIRE_TEXT)
def test_a_comment_is_ignored_whatever_it_says(text):
    events, parser = read(b"id: 1\ndata: a\n\n" + comment(text) + frame(b"x"))
    assert events == [Event(b"a", "message", "1"), Event(b"x", "message", "1")]
    assert not parser.unfinished


def test_a_comment_is_the_keep_alive_of_the_specification():
    assert comment() == b": \n\n"
    assert comment("two\nlines") == b": two\n: lines\n\n"
