import asyncio
import re
from contextlib import asynccontextmanager

import pytest

from mcprelay.testing import check_bus


class Bus:
    """A bus that keeps its promises."""

    def __init__(self):
        self.subscribers = []

    async def publish(self, topic: str, data: bytes) -> None:
        for topics, queue in self.subscribers:
            if topic in topics:
                queue.put_nowait((topic, data))

    @asynccontextmanager
    async def subscribe(self, *topics: str):
        queue = asyncio.Queue()
        self.subscribers.append(entry := (topics, queue))
        try:
            yield self.events(queue)
        finally:
            self.subscribers.remove(entry)

    async def events(self, queue):
        while True:
            yield await queue.get()


class TellsOne(Bus):
    async def publish(self, topic, data):
        for topics, queue in self.subscribers:
            if topic in topics:
                queue.put_nowait((topic, data))
                return


class TellsAll(Bus):
    async def publish(self, topic, data):
        for _, queue in self.subscribers:
            queue.put_nowait((topic, data))


class MatchesPrefixes(Bus):
    async def publish(self, topic, data):
        for topics, queue in self.subscribers:
            if topic.startswith(topics):
                queue.put_nowait((topic, data))


class Remembers(Bus):
    """Gives what was published before, too."""

    def __init__(self):
        super().__init__()
        self.past = []

    async def publish(self, topic, data):
        self.past.append((topic, data))
        await super().publish(topic, data)

    @asynccontextmanager
    async def subscribe(self, *topics):
        async with super().subscribe(*topics) as events:
            for topic, data in self.past:
                if topic in topics:
                    self.subscribers[-1][1].put_nowait((topic, data))
            yield events


class Waits(Bus):
    """Publishing waits until every subscriber has room for one."""

    @asynccontextmanager
    async def subscribe(self, *topics):
        queue = asyncio.Queue(50)
        self.subscribers.append(entry := (topics, queue))
        try:
            yield self.events(queue)
        finally:
            self.subscribers.remove(entry)

    async def publish(self, topic, data):
        for topics, queue in self.subscribers:
            if topic in topics:
                await queue.put((topic, data))


class Reorders(Bus):
    async def publish(self, topic, data):
        if data and data.isdigit() and int(data) % 7 == 3:
            asyncio.get_running_loop().call_later(
                0.01, lambda: asyncio.ensure_future(super(Reorders, self).publish(topic, data))
            )
            return
        await super().publish(topic, data)


class NeedsASubscriber(Bus):
    async def publish(self, topic, data):
        while not self.subscribers:  # noqa: ASYNC110 - it is broken
            await asyncio.sleep(0.01)
        await super().publish(topic, data)


class SubscribesLate(Bus):
    @asynccontextmanager
    async def subscribe(self, *topics):
        queue = asyncio.Queue()
        entry = (topics, queue)
        asyncio.get_running_loop().call_later(0.05, self.subscribers.append, entry)
        try:
            yield self.events(queue)
        finally:
            if entry in self.subscribers:
                self.subscribers.remove(entry)


class ChangesData(Bus):
    async def publish(self, topic, data):
        await super().publish(topic, data.replace(b"\r\n", b"\n"))


BROKEN = [
    (TellsOne, "every subscriber gets every event, whole and in order"),
    (TellsAll, "a subscriber gets the events of its topics and no others"),
    (MatchesPrefixes, "a subscriber gets the events of its topics and no others"),
    (Remembers, "a subscription begins when its context is entered and ends when it is left"),
    (Waits, "publish() waits for a subscriber that reads nothing"),
    (Reorders, "keep their order"),
    (NeedsASubscriber, "publish() without a subscriber returns"),
    (SubscribesLate, "every subscriber gets every event, whole and in order: an event did not arrive"),
    (ChangesData, "every subscriber gets every event, whole and in order"),
]


async def test_a_bus_that_keeps_its_promises_passes():
    await check_bus(Bus)


@pytest.mark.parametrize(("broken", "sentence"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
async def test_a_bus_that_breaks_a_promise_is_found_out(broken, sentence):
    with pytest.raises(AssertionError, match=re.escape(sentence)):
        await check_bus(broken, patience=0.3)
