"""One event stream: order, slow readers, readers that go and come, keep-alive, the end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcprelay.server.eventlog import MemoryEventLog
from mcprelay.server.stream import COMMENT, Pace, Reply, Stream, Track
from mcprelay.wire import jsonrpc
from mcprelay.wire.sse import Event, Parser
from tests.server.wire import until

QUIET = Pace(keep_alive=0, stream_bytes=1000)


class Reader:
    """The far side of a response: what was written on it, and whether it takes more."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.ended = False
        self.ready = asyncio.Event()
        self.ready.set()
        self.broken = False
        self.reply = Reply(self._send)
        self._parser = Parser()
        self.events: list[Event] = []

    async def _send(self, message: Any) -> None:
        await self.ready.wait()
        if self.broken:
            raise ConnectionResetError
        if message["type"] == "http.response.body":
            assert not self.ended
            self.written.append(message["body"])
            self.events += [event for event in self._parser.feed(message["body"]) if isinstance(event, Event)]
            self.ended = not message["more_body"]

    @property
    def data(self) -> list[bytes]:
        return [event.data for event in self.events if event.data]


def tracked(log: MemoryEventLog, *, primed: bool = False) -> Track:
    return Track(log, "stream", "label~", primed)


async def test_messages_are_written_in_order_and_the_last_one_ends_the_response() -> None:
    reader = Reader()
    stream = Stream(QUIET, reader.reply)
    for message in (b"1", b"2"):
        stream.push(message)
    await stream.drain()
    assert (reader.data, reader.ended) == ([b"1", b"2"], False)
    await stream.finish(b"3")
    assert (reader.data, reader.ended) == ([b"1", b"2", b"3"], True)
    stream.push(b"4")
    await stream.drain()
    assert reader.data == [b"1", b"2", b"3"]


async def test_what_is_pushed_at_once_is_written_at_once() -> None:
    reader = Reader()
    stream = Stream(QUIET, reader.reply)
    stream.push(b"1")
    await stream.finish(b"2")
    assert len(reader.written) == 1


async def test_pushing_alone_writes_when_the_loop_turns() -> None:
    reader = Reader()
    stream = Stream(QUIET, reader.reply)
    stream.push(b"1")
    assert reader.written == []
    for _ in range(5):
        await asyncio.sleep(0)
    assert reader.data == [b"1"]


async def test_draining_waits_for_a_slow_reader_and_nothing_is_written_twice() -> None:
    reader = Reader()
    reader.ready.clear()
    stream = Stream(QUIET, reader.reply)
    stream.push(b"1")
    drains = [asyncio.ensure_future(stream.drain()) for _ in range(3)]
    for _ in range(5):
        await asyncio.sleep(0)
    stream.push(b"2")
    assert not any(drain.done() for drain in drains)
    reader.ready.set()
    await asyncio.gather(*drains)
    assert reader.data == [b"1", b"2"]


async def test_a_flood_for_a_slow_reader_is_bounded() -> None:
    reader = Reader()
    reader.ready.clear()
    stream = Stream(QUIET, reader.reply)
    for value in range(10_000):
        params = jsonrpc.encode({"progressToken": "t", "progress": value})
        stream.push(jsonrpc.notification("notifications/progress", params))
        if value % 1000 == 0:
            await asyncio.sleep(0)
    reader.ready.set()
    await stream.finish(b"answer")
    assert len(reader.data) < 40
    assert b'"progress":9999' in reader.data[-2]
    assert reader.data[-1] == b"answer"


async def test_a_reader_that_breaks_ends_the_writing() -> None:
    reader = Reader()
    reader.broken = True
    stream = Stream(QUIET, reader.reply)
    stream.push(b"1")
    await stream.finish(b"2")
    assert reader.reply.over


async def test_finishing_without_anything_ends_the_response() -> None:
    reader = Reader()
    await Stream(QUIET, reader.reply).finish()
    assert reader.ended
    assert reader.data == []


# ----------------------------------------------------------------------------------------------------- kept and resumed


async def test_each_event_has_the_id_under_which_it_is_kept() -> None:
    log, reader = MemoryEventLog(), Reader()
    stream = Stream(QUIET, reader.reply, track=tracked(log))
    stream.push(b"1")
    await stream.finish(b"2")
    assert [event.id for event in reader.events] == ["label~1", "label~2"]
    assert [event async for event in log.after("stream", "1")] == [("2", b"2")]


async def test_a_primed_stream_begins_with_an_id_and_no_data() -> None:
    log, reader = MemoryEventLog(), Reader()
    stream = Stream(QUIET, reader.reply, track=tracked(log, primed=True))
    stream.wake()
    await stream.drain()
    assert b"".join(reader.written) == b"id: label~1\ndata: \n\n"


async def test_what_comes_while_nobody_reads_is_replayed_and_then_the_stream_goes_on() -> None:
    log, first, second = MemoryEventLog(), Reader(), Reader()
    stream = Stream(QUIET, first.reply, track=tracked(log))
    stream.push(b"1")
    await stream.drain()
    stream.detach(first.reply)
    for message in (b"2", b"3"):
        stream.push(message)
    await stream.drain()
    assert (first.data, stream._reply) == ([b"1"], None)
    stream.attach(second.reply, "1")
    await stream.drain()
    stream.push(b"4")
    await stream.finish(b"5")
    assert second.data == [b"2", b"3", b"4", b"5"]
    assert second.ended
    assert [event.id for event in second.events] == ["label~2", "label~3", "label~4", "label~5"]


async def test_what_waits_when_a_reader_comes_back_is_not_told_twice() -> None:
    log, first, second = MemoryEventLog(), Reader(), Reader()
    stream = Stream(QUIET, first.reply, track=tracked(log))
    stream.push(b"1")
    await stream.drain()
    stream.push(b"2")
    stream.attach(second.reply, "1")
    stream.push(b"3")
    await stream.drain()
    assert (first.data, first.ended) == ([b"1"], True)
    assert second.data == [b"2", b"3"]


@pytest.mark.parametrize("log", [MemoryEventLog(), None], ids=["log", "no log"])
async def test_who_resumes_from_an_unknown_place_is_not_the_reader_and_is_told_so(log: MemoryEventLog | None) -> None:
    before, reader = Reader(), Reader()
    stream = Stream(QUIET, track=None if log is None else tracked(log))
    assert await stream.attach(before.reply) == "joined"
    stream.push(b"1")
    await stream.drain()
    joined = stream.attach(reader.reply, "99")
    stream.push(b"2")
    await stream.drain()
    assert await joined == "unknown"
    assert (before.data, reader.data) == ([b"1", b"2"], [])
    assert not reader.reply.begun


async def test_of_two_that_want_to_join_at_once_the_last_does() -> None:
    one, two, three = Reader(), Reader(), Reader()
    stream = Stream(QUIET)
    first, second = stream.attach(one.reply), stream.attach(two.reply)
    assert (await first, await second) == ("superseded", "joined")
    third = stream.attach(three.reply)
    stream.close()
    assert await third == "superseded"


async def test_a_reader_that_leaves_while_it_joins_is_not_the_reader() -> None:
    log, reader = MemoryEventLog(), Reader()
    stream = Stream(QUIET, track=tracked(log))
    reader.ready.clear()
    stream.attach(reader.reply, "1")
    for _ in range(3):
        await asyncio.sleep(0)
    stream.detach(reader.reply)
    reader.ready.set()
    await stream.drain()
    assert stream._reply is None


async def test_parting_ends_the_response_after_what_waits_and_says_when_to_come_back() -> None:
    log, first, second = MemoryEventLog(), Reader(), Reader()
    stream = Stream(QUIET, first.reply, track=tracked(log, primed=True))
    stream.push(b"1")
    stream.part(250)
    await stream.drain()
    assert first.ended
    assert b"".join(first.written).endswith(b"retry: 250\n\n")
    assert not stream.ended
    stream.push(b"2")
    await stream.drain()
    stream.attach(second.reply, "2")
    await stream.finish(b"3")
    assert second.data == [b"2", b"3"]


async def test_a_stream_that_is_not_kept_does_not_part() -> None:
    reader = Reader()
    stream = Stream(QUIET, reader.reply)
    stream.part(250)
    await stream.finish(b"1")
    assert (reader.data, reader.ended) == ([b"1"], True)


# ------------------------------------------------------------------------------------------------------------- a source


async def test_a_source_is_asked_while_someone_reads_and_its_end_ends_the_stream() -> None:
    reader = Reader()
    waiting: list[list[bytes] | None] = [[b"1", b"2"], [], [b"3"], None]
    stream = Stream(QUIET, source=lambda: waiting.pop(0))
    stream.wake()
    await stream.drain()
    assert len(waiting) == 4
    stream.attach(reader.reply)
    await stream.drain()
    assert reader.data == [b"1", b"2"]
    stream.wake()
    await stream.drain()
    assert reader.data == [b"1", b"2", b"3"]
    assert reader.ended
    assert stream.ended


# ----------------------------------------------------------------------------------------------------------- keep-alive


async def comments(reader: Reader, number: int) -> None:
    await until(lambda: b"".join(reader.written).count(COMMENT) >= number)


async def test_a_quiet_stream_gets_comments_until_it_ends() -> None:
    reader = Reader()
    stream = Stream(Pace(keep_alive=0.01, stream_bytes=1000), reader.reply)
    stream.push(b"1")
    await comments(reader, 2)
    await stream.finish(b"2")
    assert reader.data == [b"1", b"2"]
    assert stream._timer is None


async def test_nobody_is_kept_alive_who_does_not_read() -> None:
    log, reader = MemoryEventLog(), Reader()
    stream = Stream(Pace(keep_alive=0.01, stream_bytes=1000), reader.reply, track=tracked(log))
    stream.push(b"1")
    await comments(reader, 1)
    stream.detach(reader.reply)
    later = Reader()
    stream.attach(later.reply)
    await comments(later, 3)
    await stream.finish()


@pytest.mark.parametrize("keep_alive", [0, -1])
async def test_no_comments_where_none_are_wanted(keep_alive: float) -> None:
    reader = Reader()
    stream = Stream(Pace(keep_alive=keep_alive, stream_bytes=1000), reader.reply)
    stream.push(b"1")
    await stream.drain()
    assert stream._timer is None
