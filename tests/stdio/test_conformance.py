"""The channels over descriptors keep the promises of `Channel`, on both loops."""

import asyncio
import os
import socket

from mcprelay.stdio import ChildChannel, LineChannel
from mcprelay.testing import check_channel
from tests.stdio.program import command


def over_pipes() -> tuple[LineChannel, LineChannel]:
    there, back = os.pipe(), os.pipe()
    return LineChannel(back[0], there[1]), LineChannel(there[0], back[1])


def over_a_socket(end: socket.socket) -> LineChannel:
    channel = LineChannel(os.dup(end.fileno()), os.dup(end.fileno()))
    end.close()
    return channel


async def test_lines_over_pipes():
    await check_channel(over_pipes, largest=3 * 2**20)


async def test_lines_over_a_socket():
    await check_channel(lambda: tuple(map(over_a_socket, socket.socketpair())))


async def test_lines_with_little_room():
    def make():
        there, back = os.pipe(), os.pipe()
        return LineChannel(back[0], there[1], high_water=1), LineChannel(there[0], back[1], high_water=1)

    await check_channel(make)


BRIDGE = """
import socket
from mcprelay.stdio import LineChannel, open_stdio

async def pump(source, sink):
    try:
        while line := await source.receive():
            await sink.send(line)
    finally:
        await asyncio.gather(source.aclose(), sink.aclose())

async def main():
    end = socket.socket(socket.AF_UNIX)
    end.connect({path!r})
    fd = end.detach()
    far, near = LineChannel(fd, os.dup(fd)), await open_stdio()
    await asyncio.gather(pump(near, far), pump(far, near), return_exceptions=True)

run(main)
"""


async def test_both_ends_of_standard_streams(tmp_path):
    """A child serves its standard streams and hands every line on to a socket, which the test holds."""
    loop = asyncio.get_running_loop()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path := str(tmp_path / "socket"))
    listener.listen()
    listener.setblocking(False)
    words = command(BRIDGE.format(path=path), loop="uvloop" if "uvloop" in type(loop).__module__ else "asyncio")

    async def make():
        child = await ChildChannel.spawn(words)
        connection, _ = await loop.sock_accept(listener)
        return child, over_a_socket(connection)

    await check_channel(make, largest=2**19)
    listener.close()
