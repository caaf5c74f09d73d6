import asyncio
import re

import pytest

from mcprelay.testing import check_log


class Log:
    """A log that keeps its promises."""

    def __init__(self):
        self.events = []

    async def append(self, stream: str, data: bytes) -> str:
        self.events.append((stream, data))
        return str(len(self.events))

    async def after(self, stream: str, event_id: str):
        at = int(event_id) if event_id.isdecimal() and len(event_id) < 9 else 0
        if not 1 <= at <= len(self.events) or self.events[at - 1][0] != stream:
            raise KeyError(event_id)
        for number, (where, data) in enumerate(self.events[at:], at + 1):
            if where == stream:
                yield str(number), data


class NumbersEachStream(Log):
    async def append(self, stream, data):
        await super().append(stream, data)
        return str(sum(where == stream for where, _ in self.events))


class NumbersAsInts(Log):
    async def append(self, stream, data):
        return int(await super().append(stream, data))


class GivesTheEventToo(Log):
    async def after(self, stream, event_id):
        yield event_id, b""
        async for event in super().after(stream, event_id):
            yield event


class GivesAllStreams(Log):
    async def after(self, stream, event_id):
        [event async for event in super().after(stream, event_id)]
        for number, (_, data) in enumerate(self.events[int(event_id) :], int(event_id) + 1):
            yield str(number), data


class Follows(Log):
    """Waits for more at the end."""

    async def after(self, stream, event_id):
        async for event in super().after(stream, event_id):
            yield event
        await asyncio.get_running_loop().create_future()


class GivesNothingForAnUnknownId(Log):
    async def after(self, stream, event_id):
        try:
            async for event in super().after(stream, event_id):
                yield event
        except KeyError:
            return


class TrustsTheId(Log):
    async def after(self, stream, event_id):
        if not event_id.isdecimal() or len(event_id) > 9 or not 1 <= int(event_id) <= len(self.events):
            raise KeyError(event_id)
        for number, (where, data) in enumerate(self.events[int(event_id) :], int(event_id) + 1):
            if where == stream:
                yield str(number), data


class RaisesItsOwn(Log):
    async def after(self, stream, event_id):
        int(event_id)
        async for event in super().after(stream, event_id):
            yield event


class WritesLater(Log):
    async def append(self, stream, data):
        asyncio.get_running_loop().call_later(0.05, self.events.append, (stream, data))
        self.count = getattr(self, "count", 0) + 1
        return str(self.count)


class StripsData(Log):
    async def append(self, stream, data):
        return await super().append(stream, data.strip())


class CountsSlowly(Log):
    async def append(self, stream, data):
        number = len(self.events) + 1
        await asyncio.sleep(0)
        self.events.append((stream, data))
        return str(number)


BROKEN = [
    (NumbersEachStream, "ids are unique over all streams"),
    (NumbersAsInts, "append() gives ids that are text"),
    (GivesTheEventToo, "after() gives the later events of the stream in order"),
    (GivesAllStreams, "after() gives the events of the same stream and no others"),
    (Follows, "after() ends when it has given the events that there are"),
    (GivesNothingForAnUnknownId, "after() raises KeyError for an id that is not one of the stream's"),
    (TrustsTheId, "after() raises KeyError for an id that is not one of the stream's"),
    (RaisesItsOwn, "after() raises KeyError for an id that is not one of the stream's"),
    (WritesLater, "after() gives"),
    (StripsData, "after() gives the later events of the stream in order"),
    (CountsSlowly, "ids are unique when events are appended at the same time"),
]


async def test_a_log_that_keeps_its_promises_passes():
    await check_log(Log)


@pytest.mark.parametrize(("broken", "sentence"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
async def test_a_log_that_breaks_a_promise_is_found_out(broken, sentence):
    with pytest.raises((AssertionError, KeyError), match=None if broken is WritesLater else re.escape(sentence)):
        await check_log(broken, patience=0.2)
