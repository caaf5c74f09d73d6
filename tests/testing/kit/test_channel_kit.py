"""The kit accepts channels that keep their promises, and finds out each kind that does not."""

import asyncio
import os
import re
import socket

import pytest

from mcprelay.errors import NotSent
from mcprelay.stdio import LineChannel
from mcprelay.testing import check_channel, memory_channels


def line_channels() -> tuple[LineChannel, LineChannel]:
    """Two ends of a socket."""
    ends = socket.socketpair()
    near, far = (LineChannel(os.dup(end.fileno()), os.dup(end.fileno())) for end in ends)
    for end in ends:
        end.close()
    return near, far


async def test_channels_over_a_socket_pass():
    await check_channel(line_channels)


async def test_a_coroutine_function_may_make_the_pair():
    async def make():
        return memory_channels()

    await check_channel(make)


class Wrapped:
    """A channel that behaves, around another one."""

    def __init__(self, inner):
        self.inner = inner

    async def receive(self):
        return await self.inner.receive()

    async def send(self, data):
        await self.inner.send(data)

    async def aclose(self):
        await self.inner.aclose()


class Splits(Wrapped):
    async def receive(self):
        if not hasattr(self, "rest"):
            self.rest = b""
        data = self.rest or await self.inner.receive()
        data, self.rest = data[:50_000], data[50_000:]
        return data


class SplitsLikeText(Wrapped):
    async def receive(self):
        data = await self.inner.receive()
        return data.decode().splitlines()[0].encode() if data else b""


class Text(Wrapped):
    async def receive(self):
        return (await self.inner.receive()).decode()


class Swaps(Wrapped):
    kept = None

    async def send(self, data):
        if len(data) == 100_000:
            return
        if self.kept is None and b'"number": 7,' in data:
            self.kept = data
            return
        await self.inner.send(data)
        if self.kept is not None:
            kept, self.kept = self.kept, None
            await self.inner.send(kept)


class Overtakes(Wrapped):
    """Large messages take their time."""

    async def send(self, data):
        if len(data) > 60_000:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await self.inner.send(data)


class LosesOnCancel(Wrapped):
    async def receive(self):
        data = await self.inner.receive()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return data


class LeavesHalfAMessage(Wrapped):
    """A send that is cancelled while it waits has left its first half."""

    async def send(self, data):
        try:
            await self.inner.send(data)
        except asyncio.CancelledError:
            self.half = data[: len(data) // 2]
            raise

    async def aclose(self):
        await self.inner.aclose()

    def __getattribute__(self, name):
        if name == "send" and "half" in self.__dict__:
            return self.send_after_half
        return super().__getattribute__(name)

    async def send_after_half(self, data):
        half = self.__dict__.pop("half")
        await self.inner.send(half + data)


class WaitsOnAfterClosing(Wrapped):
    async def receive(self):
        return await self.inner.receive() or await asyncio.get_running_loop().create_future()


class EndsOnlyOnce(Wrapped):
    ended = False

    async def receive(self):
        data = await self.inner.receive()
        if not data and self.ended:
            return b"more"
        self.ended = not data
        return data


class RaisesAtTheEnd(Wrapped):
    async def receive(self):
        data = await self.inner.receive()
        if not data:
            raise EOFError
        return data


class ClosesOnce(Wrapped):
    closed = False

    async def aclose(self):
        if self.closed:
            await asyncio.get_running_loop().create_future()
        self.closed = True
        await self.inner.aclose()


class SwallowsAfterClosing(Wrapped):
    async def send(self, data):
        try:
            await self.inner.send(data)
        except NotSent:
            return


class RaisesItsOwnAfterClosing(Wrapped):
    async def send(self, data):
        try:
            await self.inner.send(data)
        except NotSent:
            raise OSError("closed") from None


class HangsAfterClosing(Wrapped):
    async def send(self, data):
        try:
            await self.inner.send(data)
        except NotSent:
            await asyncio.get_running_loop().create_future()


class NeverSends(Wrapped):
    async def send(self, data):
        return None


class RefusesLarge(Wrapped):
    async def send(self, data):
        if len(data) > 1_000_000:
            raise NotSent("too large")
        await self.inner.send(data)


class OneAtATime(Wrapped):
    """Sends only while the other end receives, and does not receive meanwhile."""

    def __init__(self, inner):
        super().__init__(inner)
        self.lock = asyncio.Lock()

    async def receive(self):
        async with self.lock:
            return await self.inner.receive()

    async def send(self, data):
        async with self.lock:
            await self.inner.send(data)


BROKEN = [
    (Splits, "messages arrive whole and in order: message 4 is"),
    (SplitsLikeText, "messages arrive whole and in order"),
    (Text, "receive() gave str, and must give bytes"),
    (Swaps, "messages arrive"),
    (Overtakes, "in the order of the calls"),
    (LosesOnCancel, "a receive() that is cancelled loses no message"),
    (LeavesHalfAMessage, "after a send() that was cancelled messages are whole and in order"),
    (WaitsOnAfterClosing, "receive() that waits returns when its end is closed"),
    (EndsOnlyOnce, "b'' is the end and stays the end"),
    (RaisesAtTheEnd, "receive() raised EOFError()"),
    (ClosesOnce, "closing twice is closing once"),
    (
        SwallowsAfterClosing,
        "send() raises NotSent on a channel that this side closed, since no byte can leave; it returned",
    ),
    (RaisesItsOwnAfterClosing, "since no byte can leave; it raised OSError"),
    (HangsAfterClosing, "since no byte can leave, and must not wait"),
    (NeverSends, "messages arrive whole and in order: message 0 of"),
    (RefusesLarge, "did not arrive (waited 0.2 s); send() raised NotSent('too large')"),
    (OneAtATime, "did not"),
]


@pytest.mark.parametrize(("broken", "sentence"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
async def test_a_channel_that_breaks_a_promise_is_found_out(broken, sentence):
    def make():
        near, far = memory_channels()
        return broken(near), broken(far)

    with pytest.raises(AssertionError, match=re.escape(sentence)):
        await check_channel(make, patience=0.2)


async def test_a_broken_end_is_found_out_whichever_end_it_is():
    def make():
        near, far = memory_channels()
        return near, SwallowsAfterClosing(far)

    with pytest.raises(AssertionError, match="send\\(\\) raises NotSent"):
        await check_channel(make, patience=0.2)


async def test_what_makes_no_pair_is_told_what_to_make():
    with pytest.raises(TypeError, match="make gives a connected pair of channels"):
        await check_channel(lambda: memory_channels()[0])
