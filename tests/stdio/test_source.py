import asyncio
import os
import pty

import pytest

from mcprelay.stdio.source import CHUNK, PolledSource, ThreadSource, open_source
from tests.stdio.program import descriptors


class Sink:
    """Collects what a source feeds."""

    def __init__(self):
        self.chunks = []
        self.changed = asyncio.Event()

    def feed(self, chunk: bytes):
        self.chunks.append(chunk)
        self.changed.set()

    async def until(self, done):
        async with asyncio.timeout(10):
            while not done(self.chunks):
                self.changed.clear()
                await self.changed.wait()


def ended(chunks):
    return chunks[-1:] == [b""]


async def test_a_pipe_is_polled_to_its_end():
    reads, writes = os.pipe()
    sink = Sink()
    source = open_source(reads, sink.feed, loop=asyncio.get_running_loop())
    assert isinstance(source, PolledSource)
    os.write(writes, b"one")
    await sink.until(bool)
    os.close(writes)
    await sink.until(ended)
    assert sink.chunks == [b"one", b""]
    source.resume()
    await asyncio.sleep(0)
    source.close()
    source.close()
    assert sink.chunks == [b"one", b""]


async def test_a_regular_file_is_read_to_its_end(tmp_path):
    path = tmp_path / "in"
    path.write_bytes(b"x" * (3 * CHUNK + 5))
    sink = Sink()
    source = open_source(os.open(path, os.O_RDONLY), sink.feed, loop=asyncio.get_running_loop())
    assert isinstance(source, ThreadSource)
    await sink.until(ended)
    assert b"".join(sink.chunks) == path.read_bytes()
    source.close()


async def test_a_terminal_is_read_and_left_in_its_mode():
    controller, terminal = pty.openpty()
    sink = Sink()
    source = open_source(os.dup(terminal), sink.feed, loop=asyncio.get_running_loop())
    os.write(controller, b"typed\n")
    await sink.until(bool)
    assert sink.chunks == [b"typed\n"]
    assert os.get_blocking(terminal)
    os.write(controller, b"\x04")  # end of file, as typed
    await sink.until(ended)
    source.close()
    os.close(controller)
    os.close(terminal)


async def test_a_thread_that_waits_for_a_terminal_ends_when_it_is_wanted_no_more():
    controller, terminal = pty.openpty()
    sink = Sink()
    before = descriptors()
    source = ThreadSource(os.dup(terminal), sink.feed, loop=asyncio.get_running_loop())
    source.close()
    source.close()
    async with asyncio.timeout(10):
        while descriptors() != before:  # noqa: ASYNC110 - nothing tells when a thread has ended
            await asyncio.sleep(0.001)
    os.write(controller, b"late\n")
    await asyncio.sleep(0)
    assert sink.chunks == []
    os.close(controller)
    os.close(terminal)


@pytest.mark.parametrize("kind", [PolledSource, ThreadSource])
async def test_nothing_comes_while_paused(kind):
    reads, writes = os.pipe()
    sink = Sink()
    source = kind(reads, sink.feed, loop=asyncio.get_running_loop())
    source.pause()
    os.write(writes, b"one")
    await asyncio.sleep(0.02)
    assert sink.chunks == []
    source.resume()
    await sink.until(bool)
    assert sink.chunks == [b"one"]
    os.close(writes)
    source.close()


async def test_when_the_writer_is_gone_what_is_there_is_the_rest_although_others_hold_the_pipe():
    reads, writes = os.pipe()
    sink = Sink()
    source = PolledSource(reads, sink.feed, loop=asyncio.get_running_loop())
    os.write(writes, b"last words")
    source.finish()
    assert sink.chunks == [b"last words", b""]
    source.close()
    os.close(writes)


async def test_when_the_writer_goes_while_paused_the_rest_comes_on_resuming():
    reads, writes = os.pipe()
    sink = Sink()
    source = PolledSource(reads, sink.feed, loop=asyncio.get_running_loop())
    source.pause()
    os.write(writes, b"last words")
    source.finish()
    assert sink.chunks == []
    source.resume()
    source.resume()
    await sink.until(ended)
    assert sink.chunks == [b"last words", b""]
    source.close()
    os.close(writes)


async def test_a_holder_of_the_pipe_that_never_stops_writing_does_not_keep_it_open():
    reads, writes = os.pipe()

    def feed(chunk):
        chunks.append(chunk)
        if chunk:
            os.write(writes, b"more")

    chunks = []
    source = PolledSource(reads, feed, loop=asyncio.get_running_loop())
    os.write(writes, b"first")
    source.finish()
    assert chunks[-1] == b""
    source.close()
    os.close(writes)
