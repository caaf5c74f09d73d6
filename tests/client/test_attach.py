"""Channels that hand messages over without a task between, where they can."""

import asyncio
import os

from mcprelay import Server
from mcprelay.errors import LimitExceeded
from mcprelay.stdio import LineChannel


def channel(**options):
    """A channel, and what writes to it: `(channel, write, read)`."""
    reads, write = os.pipe()
    read, writes = os.pipe()
    return LineChannel(reads, writes, **options), write, read


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - the pipe is another world
            await asyncio.sleep(0.001)


async def test_what_came_before_is_handed_over_first_and_the_end_once():
    line, write, read = channel()
    os.write(write, b"one\ntwo\n")
    assert await line.receive() == b"one"
    got = []
    line.attach(got.append)
    assert got == [b"two"]
    os.write(write, b"three\nfo")
    await until(lambda: len(got) == 2)
    os.write(write, b"ur")
    os.close(write)
    await until(lambda: got[-1] == b"")
    assert got == [b"two", b"three", b"four", b""]
    await line.aclose()
    os.close(read)
    assert got.count(b"") == 1


async def test_a_line_that_is_too_long_is_handed_over_as_such():
    line, write, read = channel(message_bytes=10)
    got = []
    line.attach(got.append)
    os.write(write, b"x" * 50 + b"\nok\n")
    await until(lambda: len(got) == 2)
    assert isinstance(got[0], LimitExceeded)
    assert got[1] == b"ok"
    os.close(write)
    os.close(read)
    await line.aclose()


async def test_a_channel_that_has_ended_says_so_at_once():
    line, write, read = channel()
    os.close(write)
    assert await line.receive() == b""
    got = []
    line.attach(got.append)
    assert got == [b""]
    await line.aclose()
    os.close(read)


async def test_a_server_in_this_process_hands_over_too():
    near = Server("near").connect()
    got = []
    near.attach(got.append)
    assert not near.congested
    assert near.send_nowait(b'{"jsonrpc":"2.0","id":1,"method":"nope"}') == near.handed == 1
    await until(lambda: got)
    assert b'"id":1' in got[0]
    await near.room()
    assert near.lost is None
    await near.aclose()
    assert got[1:] == [b""]
    assert near.lost is not None
