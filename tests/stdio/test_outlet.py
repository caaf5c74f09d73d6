import asyncio
import os

import pytest

from mcprelay.errors import NotSent
from mcprelay.stdio.outlet import Outlet


class Pipe:
    """An outlet, the other end of its pipe, and what was noticed."""

    def __init__(self, *, high_water: int = 2**18):
        self.end, writes = os.pipe()
        self.losses = 0
        self.outlet = Outlet(writes, loop=asyncio.get_running_loop(), on_lost=self.lose, high_water=high_water)

    def lose(self):
        self.losses += 1

    def read(self, size: int = 2**20) -> bytes:
        return os.read(self.end, size)

    def fill(self) -> int:
        """Put lines until the pipe takes no more; how many there were."""
        count = 0
        while not self.outlet._block:
            count = self.outlet.put(b"x" * 9999)
            self.outlet.flush()
        return count

    def hang_up(self):
        fd, self.end = self.end, -1
        if fd >= 0:
            os.close(fd)

    def close(self):
        self.hang_up()
        self.outlet.close()


@pytest.fixture
async def pipe():
    pipe = Pipe()
    yield pipe
    pipe.close()


async def turn():
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_the_first_line_leaves_at_once(pipe):
    assert pipe.outlet.put(b"one") == 1
    assert pipe.outlet.handed == 1
    assert pipe.read() == b"one\n"


async def test_lines_of_one_turn_leave_in_one_write_at_its_end(pipe, monkeypatch):
    pipe.outlet.eager = False
    writes = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: writes.append(fd) or write(fd, data))
    assert [pipe.outlet.put(b"%d" % number) for number in range(32)] == list(range(1, 33))
    assert pipe.outlet.handed == 0
    await turn()
    assert pipe.outlet.handed == 32
    assert pipe.read() == b"".join(b"%d\n" % number for number in range(32))
    assert writes.count(pipe.outlet._fd) == 1


@pytest.mark.clause("stdio.no-newline")
@pytest.mark.clause("stdio.no-newline")
async def test_line_breaks_inside_a_message_leave_as_spaces(pipe):
    pipe.outlet.put(b'{\r\n"a":\n1}')
    assert pipe.read() == b'{  "a": 1}\n'


async def test_a_message_larger_than_the_pipe_leaves_whole_and_in_order(pipe):
    lines = [bytes([65 + at]) * 300_000 for at in range(5)]
    for line in lines:
        pipe.outlet.put(line)
    drained = asyncio.ensure_future(pipe.outlet.drain())
    got = b""
    while not drained.done():
        got += pipe.read()
        await turn()
    pipe.outlet.close()
    while data := pipe.read():
        got += data
    assert got == b"".join(line + b"\n" for line in lines)
    assert pipe.outlet.handed == 5


async def test_a_line_counts_as_handed_over_from_its_first_byte(pipe):
    count = pipe.fill()
    assert pipe.outlet.handed == count  # the last one in part
    late = pipe.outlet.put(b"late")
    await turn()
    assert late == count + 1
    assert pipe.outlet.handed == count


async def test_of_a_block_that_was_taken_in_part_the_lines_not_begun_are_known(pipe):
    pipe.outlet.eager = False
    for _ in range(30):
        pipe.outlet.put(b"x" * 9999)  # 10,000 bytes each with the line end
    await turn()
    taken = 300_000 - pipe.outlet._size
    assert 0 < taken < 300_000
    assert pipe.outlet.handed == -(-taken // 10_000)
    pipe.hang_up()
    while pipe.outlet.lost is None:
        await turn()
    assert pipe.outlet.handed == -(-taken // 10_000)
    assert pipe.losses == 1


async def test_a_line_for_a_broken_pipe_was_not_sent(pipe):
    pipe.outlet.put(b"one")
    pipe.hang_up()
    number = pipe.outlet.put(b"two")
    await turn()
    assert pipe.outlet.handed == 1 < number
    with pytest.raises(NotSent, match="closed its input"):
        pipe.outlet.put(b"three")
    assert pipe.losses == 1


async def test_a_pipe_that_breaks_is_found_out_without_writing(pipe):
    pipe.hang_up()
    async with asyncio.timeout(10):
        while pipe.outlet.lost is None:
            await turn()
    assert pipe.losses == 1


async def test_an_eager_line_for_a_broken_pipe_says_so_at_once(pipe):
    pipe.hang_up()
    with pytest.raises(NotSent):
        pipe.outlet.put(b"one")
    assert pipe.outlet.handed == 0


async def test_senders_wait_above_the_high_water_mark_and_go_on_in_their_order(pipe):
    count = pipe.fill()
    while not pipe.outlet.congested:
        count = pipe.outlet.put(b"y" * 9999)
    order = []

    async def send(name):
        await pipe.outlet.room()
        order.append((name, pipe.outlet.put(b"z" * 200_000)))

    senders = [asyncio.ensure_future(send(name)) for name in range(5)]
    await turn()
    assert order == []
    while len(order) < 5:
        before = len(order)
        pipe.read()
        await turn()
        assert len(order) <= before + 1 or pipe.outlet._size < 2**18 + 200_001
    assert order == [(name, count + 1 + name) for name in range(5)]
    await asyncio.gather(*senders)


async def test_a_sender_that_gives_up_waiting_sent_nothing_and_holds_up_nobody(pipe):
    count = pipe.fill()
    while not pipe.outlet.congested:
        count = pipe.outlet.put(b"y" * 9999)
    first, second = (asyncio.ensure_future(pipe.outlet.room()) for _ in range(2))
    await turn()
    first.cancel()
    while not second.done():
        pipe.read()
        await turn()
    assert first.cancelled()
    assert pipe.outlet.put(b"second") == count + 1


async def test_waiting_senders_learn_that_the_pipe_broke(pipe):
    pipe.fill()
    while not pipe.outlet.congested:
        pipe.outlet.put(b"y" * 9999)

    async def send():
        await pipe.outlet.room()
        pipe.outlet.put(b"late")

    senders = [asyncio.ensure_future(send()) for _ in range(3)]
    await turn()
    pipe.hang_up()
    assert [type(error) for error in await asyncio.gather(*senders, return_exceptions=True)] == [NotSent] * 3


async def test_closing_gives_up_what_waits(pipe):
    pipe.fill()
    pipe.outlet.put(b"late")
    pipe.outlet.close()
    await asyncio.wait_for(pipe.outlet.drain(), 5)
    with pytest.raises(NotSent, match="the channel is closed"):
        pipe.outlet.put(b"later")
    pipe.outlet.close()


async def test_a_regular_file_takes_everything_at_once(tmp_path):
    path = tmp_path / "out"
    outlet = Outlet(os.open(path, os.O_WRONLY | os.O_CREAT), loop=asyncio.get_running_loop(), on_lost=lambda: None)
    lines = [b"x" * 1_000_000, b"y"]
    for line in lines:
        outlet.put(line)
    await outlet.drain()
    outlet.close()
    assert path.read_bytes() == b"".join(line + b"\n" for line in lines)


def test_a_channel_of_a_loop_that_is_closed_sends_nothing():
    reads, writes = os.pipe()

    async def open_outlet():
        return Outlet(writes, loop=asyncio.get_running_loop(), on_lost=lambda: None)

    outlet = asyncio.run(open_outlet())
    with pytest.raises(NotSent, match="event loop"):
        outlet.put(b"late")
    outlet.close()
    assert os.read(reads, 10) == b""
    os.close(reads)


async def test_a_line_is_taken_at_once_only_where_it_would_not_have_to_wait(pipe):
    assert pipe.outlet.offer(b"one") == 1
    waiting = asyncio.ensure_future(pipe.outlet.room())
    await turn()
    assert pipe.outlet.offer(b"overtaking") == 0
    waiting.cancel()
    await turn()
    assert pipe.outlet.offer(b"two") == 2
    pipe.fill()
    while not pipe.outlet.congested:
        pipe.outlet.put(b"y" * 9999)
    assert pipe.outlet.offer(b"beyond the high-water mark") == 0


async def test_a_line_that_the_second_try_takes_whole_is_counted_once_and_so_is_the_next(pipe, monkeypatch):
    """The other side reads between two writes of one line: then nothing waits, and nothing is kept to go on with."""
    write = os.write
    received = b""

    def reads_between(fd, data):
        nonlocal received
        taken = write(fd, data)
        if taken < len(data):
            received += pipe.read()
        return taken

    monkeypatch.setattr(os, "write", reads_between)
    assert pipe.outlet.put(b"x" * 99_999) == 1
    assert pipe.outlet.handed == 1
    pipe.outlet.eager = True
    assert pipe.outlet.put(b"next") == 2
    await turn()
    assert pipe.outlet.handed == 2
    received += pipe.read()
    assert received == b"x" * 99_999 + b"\nnext\n"
    pipe.outlet.put(b"last")
    await turn()
    assert pipe.outlet.handed == 3
