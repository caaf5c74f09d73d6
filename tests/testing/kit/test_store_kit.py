import asyncio
import re
from collections.abc import Callable

import msgspec
import pytest

from mcprelay.ports import Session
from mcprelay.testing import FakeClock, check_store


class Store:
    """A store that keeps its promises."""

    def __init__(self, clock=None):
        self.clock = clock or FakeClock()
        self.kept = {}

    async def load(self, id: str) -> Session | None:
        session, until = self.kept.get(id, (None, 0.0))
        return session if self.clock.monotonic() < until else None

    async def save(self, id: str, session: Session, ttl: float) -> None:
        self.kept[id] = (msgspec.structs.replace(session), self.clock.monotonic() + ttl)

    async def touch(self, id: str, ttl: float) -> bool:
        session = await self.load(id)
        if session is not None:
            self.kept[id] = (session, self.clock.monotonic() + ttl)
        return session is not None

    async def update(self, id: str, change: Callable[[Session], None], ttl: float) -> Session | None:
        session = await self.load(id)
        if session is not None:
            change(session)
            self.kept[id] = (session, self.clock.monotonic() + ttl)
        return session

    async def drop(self, id: str) -> None:
        self.kept.pop(id, None)


class ForgetsAField(Store):
    async def save(self, id, session, ttl):
        await super().save(id, msgspec.structs.replace(session, log_level=None), ttl)


class KeepsTheFirst(Store):
    async def save(self, id, session, ttl):
        if id not in self.kept:
            await super().save(id, session, ttl)


class FindsByPrefix(Store):
    async def load(self, id):
        return await super().load(id if id in self.kept else id[:-1])


class NeverForgets(Store):
    async def save(self, id, session, ttl):
        await super().save(id, session, 1e9)


class ForgetsEarly(Store):
    async def save(self, id, session, ttl):
        await super().save(id, session, min(ttl, 0.01) if "lasting" in id else ttl)


class CountsFromTheFirst(Store):
    async def save(self, id, session, ttl):
        until = self.kept.get(id, (None, None))[1]
        await super().save(id, session, ttl)
        if until is not None and "renewed" in id:
            self.kept[id] = (self.kept[id][0], until)


class DropsAll(Store):
    async def drop(self, id):
        self.kept.clear()


class DropsNothing(Store):
    async def drop(self, id):
        return None


class DropsOnce(Store):
    async def drop(self, id):
        del self.kept[id]


class HoldsTen(Store):
    async def save(self, id, session, ttl):
        await super().save(id, session, ttl)
        while len(self.kept) > 10:
            del self.kept[next(iter(self.kept))]


class Resurrects(Store):
    async def touch(self, id, ttl):
        if id in self.kept:
            self.kept[id] = (self.kept[id][0], self.clock.monotonic() + ttl)
        return id in self.kept


class TouchesWhatItNeverHad(Store):
    async def touch(self, id, ttl):
        await super().touch(id, ttl)
        return True


class TouchesWithoutTime(Store):
    async def touch(self, id, ttl):
        return await self.load(id) is not None


class TouchesByWriting(Store):
    """Renews by writing back what it read a while ago, as a server without `touch` would."""

    def __init__(self, clock=None):
        super().__init__(clock)
        self.first = {}

    async def save(self, id, session, ttl):
        await super().save(id, session, ttl)
        self.first[id] = msgspec.structs.replace(session)

    async def touch(self, id, ttl):
        if await self.load(id) is None:
            return False
        self.kept[id] = (msgspec.structs.replace(self.first[id]), self.clock.monotonic() + ttl)
        return True


class UpdatesNothing(Store):
    async def update(self, id, change, ttl):
        await self.touch(id, ttl)
        return await self.load(id)


class MakesWhatItUpdates(Store):
    async def update(self, id, change, ttl):
        if "only" in id and await self.load(id) is None:
            await self.save(id, Session(id=id, revision="any"), ttl)
        return await super().update(id, change, ttl)


class LosesUpdates(Store):
    """Reads, waits, and writes."""

    async def update(self, id, change, ttl):
        session = await self.load(id)
        if session is None:
            return None
        copy = msgspec.structs.replace(session, subscriptions=set(session.subscriptions))
        await asyncio.sleep(0)
        change(copy)
        await self.save(id, copy, ttl)
        return copy


BROKEN = [
    (ForgetsAField, "load() gives every field as it was saved"),
    (KeepsTheFirst, "save() replaces what was saved before"),
    (FindsByPrefix, "load() of another id gives None"),
    (NeverForgets, "a session saved for 0.05 s is forgotten after that time"),
    (ForgetsEarly, "a session is kept for as long as it was saved for"),
    (CountsFromTheFirst, "saving again counts the time from then"),
    (DropsAll, "drop() drops that session and no other"),
    (DropsNothing, "load() of a session that was dropped gives None"),
    (DropsOnce, "dropping what is not there is no error, and this was raised: KeyError"),
    (HoldsTen, "sessions saved at the same time are all kept"),
    (Resurrects, "touch() of a session whose time is over gives False"),
    (TouchesWhatItNeverHad, "touch() of a session whose time is over gives False"),
    (TouchesWithoutTime, "touch() counts the time from then"),
    (TouchesByWriting, "touch() changes nothing but the time"),
    (UpdatesNothing, "update() gives the session as it was changed, and all else as it was"),
    (MakesWhatItUpdates, "update() of a session never saved gives None"),
    (LosesUpdates, "no change is lost when several update() and touch() run at the same time"),
]


async def test_a_store_that_keeps_its_promises_passes():
    clock = FakeClock()
    await check_store(lambda: Store(clock), advance=clock.advance)


async def test_a_store_on_real_time_passes():
    import time

    await check_store(lambda: Store(time))


@pytest.mark.parametrize(("broken", "sentence"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
async def test_a_store_that_breaks_a_promise_is_found_out(broken, sentence):
    clock = FakeClock()
    with pytest.raises(AssertionError, match=re.escape(sentence)):
        await check_store(lambda: broken(clock), advance=clock.advance)
