"""Past events: what is kept can be resumed from, and no more is kept than may be."""

from __future__ import annotations

import pytest

from mcprelay.ports import EventLog
from mcprelay.server.eventlog import MemoryEventLog


async def after(log: MemoryEventLog, stream: str, event_id: str) -> list[bytes]:
    return [data async for _, data in log.after(stream, event_id)]


async def test_what_follows_an_event_is_that_of_its_stream_in_order() -> None:
    log: EventLog = MemoryEventLog()
    first = await log.append("a", b"1")
    await log.append("b", b"x")
    second = await log.append("a", b"2")
    third = await log.append("a", b"3")
    assert [event async for event in log.after("a", first)] == [(second, b"2"), (third, b"3")]
    assert [event async for event in log.after("a", third)] == []


async def test_ids_are_unique_over_all_streams() -> None:
    log = MemoryEventLog()
    ids = [await log.append(stream, b"") for stream in "abcabc"]
    assert len(set(ids)) == 6


@pytest.mark.parametrize("guess", ["", "0", "2", "99", "-1", "x", "1" * 30, "²", " 1"])
async def test_an_id_of_another_stream_or_of_none_is_unknown(guess: str) -> None:
    log = MemoryEventLog()
    await log.append("mine", b"1")
    await log.append("yours", b"2")
    with pytest.raises(KeyError):
        await after(log, "mine", guess)


async def test_the_oldest_events_are_forgotten_first_whichever_stream_they_are_of() -> None:
    log = MemoryEventLog(event_log_bytes=5000)
    old = await log.append("old", b"x" * 100)
    ids = [await log.append("new", b"x" * 100) for _ in range(50)]
    assert len(log) < 20
    for stream, event_id in (("old", old), ("new", ids[0])):
        with pytest.raises(KeyError):
            await after(log, stream, event_id)
    assert len(await after(log, "new", ids[-3])) == 2


async def test_empty_events_count_too() -> None:
    log = MemoryEventLog(event_log_bytes=5000)
    for _ in range(1000):
        await log.append("s", b"")
    assert len(log) < 50


async def test_an_event_that_is_larger_than_everything_is_kept_alone() -> None:
    log = MemoryEventLog(event_log_bytes=100)
    await log.append("s", b"small")
    large = await log.append("s", b"x" * 1000)
    assert len(log) == 1
    assert await after(log, "s", large) == []
