import asyncio
import os
import socket
import time

import pytest

from mcprelay.errors import LocalFault, NotSent
from mcprelay.ports import Channel
from mcprelay.stdio.channel import READ_AHEAD, TURN, LineChannel
from mcprelay.stdio.line import LineTooLong
from tests.stdio.program import descriptors


class Wire:
    """A channel over a socket, and the other end of the socket, which the test plays."""

    def __init__(self, **options):
        ours, self.peer = socket.socketpair()
        self.channel = LineChannel(os.dup(ours.fileno()), os.dup(ours.fileno()), **options)
        ours.close()
        self.peer.setblocking(False)

    async def say(self, data: bytes):
        await asyncio.get_running_loop().sock_sendall(self.peer, data)

    async def hear(self, size: int = 2**16) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self.peer, size)

    async def aclose(self):
        self.peer.close()
        await self.channel.aclose()


@pytest.fixture
async def wire():
    wire = Wire()
    yield wire
    await wire.aclose()


async def turns(count: int = 3):
    for _ in range(count):
        await asyncio.sleep(0)


async def test_it_is_a_channel(wire):
    assert isinstance(wire.channel, Channel)


async def test_lines_come_as_messages_and_messages_leave_as_lines(wire):
    await wire.say(b'{"a":1}\r\n\n{"b":2}\n')
    assert [await wire.channel.receive(), await wire.channel.receive()] == [b'{"a":1}', b'{"b":2}']
    await wire.channel.send(b'{"c":3}')
    assert await wire.hear() == b'{"c":3}\n'


async def test_receiving_does_not_suspend_while_a_message_is_there(wire):
    await wire.say(b"1\n2\n3\n")
    assert await wire.channel.receive() == b"1"
    for expected in (b"2", b"3"):
        with pytest.raises(StopIteration) as done:
            wire.channel.receive().send(None)
        assert done.value.value == expected


async def test_the_end_of_the_stream_is_an_empty_message_and_stays_the_end(wire):
    await wire.say(b"last")
    wire.peer.shutdown(socket.SHUT_WR)
    assert [await wire.channel.receive() for _ in range(3)] == [b"last", b"", b""]


async def test_a_receive_that_is_cancelled_loses_nothing(wire):
    pending = asyncio.ensure_future(wire.channel.receive())
    await turns()
    pending.cancel()
    await wire.say(b"1\n2\n")
    assert [await wire.channel.receive(), await wire.channel.receive()] == [b"1", b"2"]


async def test_two_who_receive_at_once_are_told(wire):
    pending = asyncio.ensure_future(wire.channel.receive())
    await turns()
    with pytest.raises(LocalFault, match="another task"):
        await wire.channel.receive()
    await wire.say(b"1\n")
    assert await pending == b"1"


async def test_a_message_over_the_limit_is_told_in_its_place_and_the_channel_goes_on():
    wire = Wire(message_bytes=100)
    await wire.say(b"1\n" + b"x" * 1000 + b"\n2\n")
    assert await wire.channel.receive() == b"1"
    with pytest.raises(LineTooLong, match="message_bytes=100") as caught:
        await wire.channel.receive()
    assert caught.value.head == b"x" * 1000
    assert await wire.channel.receive() == b"2"
    await wire.channel.send(b"answer")
    assert await wire.hear() == b"answer\n"
    await wire.aclose()


@pytest.mark.parametrize("chunk", [1_000, 65_536, 1_000_003])
async def test_a_message_of_16_mib_passes_both_ways_in_any_chunking(wire, chunk):
    message = b'{"text":"' + b"x" * 2**24 + b'"}'

    async def say():
        data = memoryview(message + b"\n")
        for start in range(0, len(data), chunk):
            await wire.say(data[start : start + chunk])

    async def hear():
        got = bytearray()
        while not got.endswith(b"\n"):
            got += await wire.hear(2**20)
        return bytes(got)

    saying = asyncio.ensure_future(say())
    assert await wire.channel.receive() == message
    await saying
    hearing = asyncio.ensure_future(hear())
    await wire.channel.send(message)
    assert await hearing == message + b"\n"


async def test_messages_of_one_turn_are_received_as_one_batch_and_answered_in_one_write(wire):
    await wire.say(b"".join(b"%d\n" % number for number in range(32)))
    for _ in range(32):
        await wire.channel.send(await wire.channel.receive())
    assert await wire.hear() == b"".join(b"%d\n" % number for number in range(32))


async def test_reading_pauses_while_nobody_receives(wire):
    line = b"x" * 999 + b"\n"
    count = 16 * READ_AHEAD // len(line)
    saying = asyncio.ensure_future(wire.say(line * count))
    await asyncio.wait([saying], timeout=0.2)
    assert not saying.done()
    assert len(wire.channel._ready) * len(line) < 2 * READ_AHEAD
    for _ in range(count):
        assert await wire.channel.receive() == line[:-1]
    await saying


async def test_lines_can_be_taken_as_they_come_and_the_end_comes_once():
    wire = Wire(message_bytes=100)
    await wire.say(b"1\n2\n")
    assert await wire.channel.receive() == b"1"
    taken = []
    wire.channel.attach(taken.append)
    assert taken == [b"2"]
    await wire.say(b"3\n" + b"x" * 1000 + b"\nlast")
    wire.peer.shutdown(socket.SHUT_WR)
    async with asyncio.timeout(10):
        while taken[-1:] != [b""]:  # noqa: ASYNC110 - what is tested is that nothing has to wait
            await asyncio.sleep(0)
    assert [line if isinstance(line, bytes) else type(line) for line in taken] == [
        b"2",
        b"3",
        LineTooLong,
        b"last",
        b"",
    ]
    await wire.aclose()
    assert taken.count(b"") == 1


async def test_whoever_attaches_after_the_end_is_told_what_was_missed():
    wire = Wire()
    await wire.say(b"1\n2\n")
    wire.peer.shutdown(socket.SHUT_WR)
    assert await wire.channel.receive() == b"1"
    await turns(10)
    taken = []
    wire.channel.attach(taken.append)
    assert taken == [b"2", b""]
    await wire.aclose()


async def test_whoever_attaches_when_reading_had_paused_lets_it_go_on(wire):
    line = b"x" * 999 + b"\n"
    count = 16 * READ_AHEAD // len(line)
    saying = asyncio.ensure_future(wire.say(line * count))
    await asyncio.wait([saying], timeout=0.2)
    assert not saying.done()
    taken = []
    wire.channel.attach(taken.append)
    await saying
    async with asyncio.timeout(10):
        while len(taken) < count:  # noqa: ASYNC110 - what is tested is that nothing has to wait
            await asyncio.sleep(0)


async def test_a_message_is_still_here_exactly_if_its_number_is_higher_than_what_was_handed_over(wire):
    first = wire.channel.send_nowait(b"first")
    assert wire.channel.handed == first == 1
    wire.peer.close()
    second = wire.channel.send_nowait(b"second")
    await turns()
    assert wire.channel.handed < second
    assert wire.channel.lost
    with pytest.raises(NotSent):
        await wire.channel.send(b"third")


async def test_sending_waits_for_room_and_fails_when_the_other_side_goes():
    wire = Wire(high_water=1000)
    line = b"x" * 100_000
    while not wire.channel.congested:
        await wire.channel.send(line)
        await turns(10)
    sending = asyncio.ensure_future(wire.channel.send(b"late"))
    await turns()
    assert not sending.done()
    wire.peer.close()
    with pytest.raises(NotSent):
        await sending
    await wire.aclose()


async def test_closing_hands_over_what_was_sent(wire):
    await wire.channel.send(b"one")
    await wire.channel.send(b"two")
    await wire.channel.aclose()
    got = b""
    while data := await wire.hear():
        got += data
    assert got == b"one\ntwo\n"


async def test_closing_ends_a_pending_receive_and_twice_is_once(wire):
    pending = asyncio.ensure_future(wire.channel.receive())
    await turns()
    await asyncio.gather(wire.channel.aclose(), wire.channel.aclose())
    assert await pending == b""
    await wire.channel.aclose()
    assert await wire.channel.receive() == b""
    with pytest.raises(NotSent, match="closed"):
        await wire.channel.send(b"late")


async def test_what_was_not_received_before_closing_is_gone(wire):
    await wire.say(b"1\n2\n")
    assert await wire.channel.receive() == b"1"
    await wire.channel.aclose()
    assert await wire.channel.receive() == b""


async def test_closing_does_not_wait_long_for_a_peer_that_reads_nothing(wire, monkeypatch):
    monkeypatch.setattr("mcprelay.stdio.channel.FLUSH_SECONDS", 0.05)
    await wire.channel.send(b"x" * 2**24)
    start = time.monotonic()
    await wire.channel.aclose()
    assert time.monotonic() - start < 1


async def test_closing_goes_on_when_the_task_that_closes_is_cancelled(wire):
    await wire.channel.send(b"x" * 2**20)
    closing = asyncio.ensure_future(wire.channel.aclose())
    await turns()
    closing.cancel()
    await asyncio.wait([closing])
    size = 0
    while data := await wire.hear(2**20):
        size += len(data)
    assert size == 2**20 + 1


async def test_closing_leaves_no_descriptor(wire):
    before = descriptors()
    other = Wire()
    await other.say(b"1\n")
    await other.channel.receive()
    await other.aclose()
    await turns()
    assert descriptors() == before


def test_a_channel_can_be_closed_after_its_loop():
    before = descriptors()

    async def open_wire():
        return Wire()

    wire = asyncio.run(open_wire())
    asyncio.run(wire.aclose())
    assert descriptors() == before


async def test_who_is_attached_gets_much_at_once_in_parts_so_that_the_loop_keeps_its_turns(wire):
    loop = asyncio.get_running_loop()
    lines, parts, before = [], [], 0
    over = loop.create_future()

    def turn():
        nonlocal before
        if len(lines) != before:
            parts.append(len(lines) - before)
            before = len(lines)
        if not over.done():
            loop.call_soon(turn)

    def take(line):
        lines.append(line)
        if not line:
            over.set_result(None)

    said = [b"%d" % n for n in range(10 * TURN)]
    wire.channel.attach(take)
    loop.call_soon(turn)
    await wire.say(b"\n".join(said) + b"\nthe rest")
    wire.peer.close()
    await over
    assert lines == [*said, b"the rest", b""]
    assert max(parts) <= 2 * TURN  # the end may come in the turn of the last part
    assert len(parts) >= 10
