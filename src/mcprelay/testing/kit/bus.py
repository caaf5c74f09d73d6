"""Whether a `Bus` keeps its promises."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

from mcprelay.ports import Bus
from mcprelay.testing.kit.promise import PATIENCE, Make, close, made, promise, within

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def check_bus(make: Make[Bus], *, patience: float = PATIENCE) -> None:
    """Hold a bus against the promises of `ports.Bus`.

    Args:
        make: Gives a bus each time; others may use the same one, on other topics.
        patience: Seconds that an event may be on its way.

    Raises:
        AssertionError: A promise is broken; the message says which.
    """
    bus = await made(make)
    try:
        for check in _CHECKS:
            await check(bus, patience)
    finally:
        await close(bus)


def _topic() -> str:
    return f"check-bus/{uuid.uuid4().hex}"


async def _expect(
    events: AsyncIterator[tuple[str, bytes]], wanted: list[tuple[str, bytes]], what: str, patience: float
) -> None:
    for each in wanted:
        got = await within(patience, anext(events), f"{what}: an event did not arrive")
        promise(got == each, f"{what}: {got} arrived instead of {each}")


async def _hands_events_to_every_subscriber(bus: Bus, patience: float) -> None:
    topic = _topic()
    data = [b"{}", b"\x00\xff\r\n", "é 漢 🎉".encode(), b"x" * 100_000, b""]
    async with bus.subscribe(topic) as one, bus.subscribe(topic) as other:
        for each in data:
            await bus.publish(topic, each)
        for events in (one, other):
            wanted = [(topic, each) for each in data]
            await _expect(events, wanted, "every subscriber gets every event, whole and in order", patience)


async def _gives_only_the_topics_asked_for(bus: Bus, patience: float) -> None:
    one, other, foreign = _topic(), _topic(), _topic()
    async with bus.subscribe(one, other) as events:
        for topic, data in (
            (foreign, b"0"),
            (one, b"1"),
            (one + "x", b"0"),
            (other, b"2"),
            (foreign, b"0"),
            (one, b"3"),
        ):
            await bus.publish(topic, data)
        what = "a subscriber gets the events of its topics and no others"
        await _expect(events, [(one, b"1"), (other, b"2"), (one, b"3")], what, patience)


async def _begins_and_ends_with_the_context(bus: Bus, patience: float) -> None:
    topic = _topic()
    what = "a subscription begins when its context is entered and ends when it is left"
    await within(patience, bus.publish(topic, b"early"), "publish() without a subscriber returns")
    async with bus.subscribe(topic) as events:
        await bus.publish(topic, b"first")
        await _expect(events, [(topic, b"first")], what, patience)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    await within(patience, bus.publish(topic, b"late"), "publish() after the last subscriber has left returns")
    async with bus.subscribe(topic) as events:
        await bus.publish(topic, b"again")
        await _expect(events, [(topic, b"again")], what, patience)


async def _waits_for_no_slow_subscriber(bus: Bus, patience: float) -> None:
    topic = _topic()
    async with bus.subscribe(topic), bus.subscribe(topic) as quick:
        for number in range(200):
            data = b"%d" % number
            await within(patience, bus.publish(topic, data), "publish() waits for a subscriber that reads nothing")
            await _expect(quick, [(topic, data)], "a slow subscriber holds up nobody else", patience)


async def _keeps_order_under_load(bus: Bus, patience: float) -> None:
    topics = [_topic() for _ in range(3)]

    async def publish(topic: str) -> None:
        for number in range(30):
            await bus.publish(topic, b"%d" % number)

    seen: dict[str, list[int]] = {topic: [] for topic in topics}
    async with bus.subscribe(*topics) as events:
        publishing = asyncio.gather(*map(publish, topics))
        for _ in range(30 * len(topics)):
            topic, data = await within(patience, anext(events), "events that are read as they come arrive")
            seen[topic].append(int(data))
        await publishing
    for numbers in seen.values():
        promise(numbers == sorted(numbers), f"events of one topic from one publisher keep their order: {numbers}")


_CHECKS = (
    _hands_events_to_every_subscriber,
    _gives_only_the_topics_asked_for,
    _begins_and_ends_with_the_context,
    _waits_for_no_slow_subscriber,
    _keeps_order_under_load,
)
