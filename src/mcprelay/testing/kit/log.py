"""Whether an `EventLog` keeps its promises."""

from __future__ import annotations

import asyncio
import uuid

from mcprelay.ports import EventLog
from mcprelay.testing.kit.promise import PATIENCE, Make, close, made, promise, within


async def check_log(make: Make[EventLog], *, patience: float = PATIENCE) -> None:
    """Hold an event log against the promises of `ports.EventLog`.

    Args:
        make: Gives a log each time. It may hold other streams already.
        patience: Seconds that reading back may take.

    Raises:
        AssertionError: A promise is broken; the message says which.
    """
    log = await made(make)
    try:
        for check in (_gives_the_later_events, _keeps_streams_apart, _knows_no_foreign_id, _takes_many_at_once):
            await check(log, patience)
    finally:
        await close(log)


def _stream() -> str:
    return f"check-log/{uuid.uuid4().hex}"


async def _after(log: EventLog, stream: str, event_id: str, patience: float) -> list[tuple[str, bytes]]:
    async def read() -> list[tuple[str, bytes]]:
        return [event async for event in log.after(stream, event_id)]

    return await within(patience, read(), "after() ends when it has given the events that there are")


async def _gives_the_later_events(log: EventLog, patience: float) -> None:
    stream = _stream()
    data = [b"{}", b"", b"\x00\xff\r\n", "é 漢 🎉".encode(), b"x" * 100_000]
    ids = [await log.append(stream, each) for each in data]
    promise(all(isinstance(id, str) for id in ids) and all(ids), f"append() gives ids that are text: {ids}")
    promise(len(set(ids)) == len(ids), f"append() gives each event an id of its own: {ids}")
    promise(all(id.isprintable() for id in ids), f"an id can stand in a line of text: {ids}")
    events = list(zip(ids, data, strict=True))
    for at, id in enumerate(ids):
        later = await _after(log, stream, id, patience)
        promise(later == events[at + 1 :], f"after() gives the later events of the stream in order, not {later}")
    more = await log.append(stream, b"more")
    later = await _after(log, stream, ids[-1], patience)
    promise(later == [(more, b"more")], "an event can be read as soon as append() returned its id")


async def _keeps_streams_apart(log: EventLog, patience: float) -> None:
    streams = [_stream() for _ in range(3)]
    ids: dict[str, list[str]] = {stream: [] for stream in streams}
    for number in range(5):
        for stream in streams:
            ids[stream].append(await log.append(stream, f"{stream} {number}".encode()))
    flat = [id for each in ids.values() for id in each]
    promise(len(set(flat)) == len(flat), "ids are unique over all streams")
    for stream in streams:
        later = await _after(log, stream, ids[stream][0], patience)
        wanted = [(ids[stream][number], f"{stream} {number}".encode()) for number in range(1, 5)]
        promise(later == wanted, "after() gives the events of the same stream and no others")


async def _knows_no_foreign_id(log: EventLog, patience: float) -> None:
    stream, other = _stream(), _stream()
    known = await log.append(stream, b"{}")
    await log.append(stream, b"secret")
    of_other = await log.append(other, b"{}")
    unknown = [(stream, id) for id in ("check-log-no-such-id", "", known + "0", "-1", "é", "9" * 5000)]
    for where, id in (*unknown, (other, known), (stream, of_other), (_stream(), known)):
        what = f"after() raises KeyError for an id that is not one of the stream's, and for {id[:30]!r}"
        try:
            later = await _after(log, where, id, patience)
        except KeyError:
            continue
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{what} it raised {error!r}") from error
        raise AssertionError(f"{what} it gave {later}")


async def _takes_many_at_once(log: EventLog, patience: float) -> None:
    streams = [_stream(), _stream()]
    first = {stream: await log.append(stream, b"first") for stream in streams}
    appends = [log.append(stream, b"%d" % number) for number in range(100) for stream in streams]
    ids = await asyncio.gather(*appends)
    promise(len(set(ids)) == len(ids), "ids are unique when events are appended at the same time")
    for stream in streams:
        later = await _after(log, stream, first[stream], patience)
        promise(len(later) == 100, f"100 events appended at the same time are kept, and {len(later)} were")
