"""Whether a `SessionStore` keeps its promises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mcprelay.ports import Session, SessionStore
from mcprelay.testing.kit.promise import PATIENCE, Make, close, made, promise

_LONG = 3_600.0
_SHORT = 0.05


async def check_store(
    make: Make[SessionStore], *, advance: Callable[[float], None] | None = None, patience: float = PATIENCE
) -> None:
    """Hold a session store against the promises of `ports.SessionStore`.

    Args:
        make: Gives a store each time. It may hold other sessions already.
        advance: Lets time pass for the store; without it the kit waits for real time.
        patience: Seconds that a session may outlive its time.

    Raises:
        AssertionError: A promise is broken; the message says which.
    """
    store = await made(make)
    try:
        await _loads_what_was_saved(store)
        await _drops(store)
        await _forgets_in_time(store, advance, patience)
        await _takes_many_at_once(store)
        await _updates_what_is_there(store)
        await _renews_only(store)
        await _loses_no_update(store)
    finally:
        await close(store)


def _session(name: str) -> Session:
    return Session(
        id=f"check-store-{name}",
        revision="any",
        client_info={"name": "check_store", "version": "1", "title": "É 漢"},
        client_capabilities={"roots": {"listChanged": True}, "experimental": {}},
        principal="somebody",
        log_level="warning",
        subscriptions={"file:///a b", "custom://x?y"},
        initialized=True,
    )


async def _loads_what_was_saved(store: SessionStore) -> None:
    session = _session("full")
    promise(await store.load(session.id) is None, "load() of a session that was never saved gives None")
    await store.save(session.id, session, _LONG)
    promise(await store.load(session.id) == _session("full"), "load() gives every field as it was saved")
    bare = Session(id=session.id, revision="another")
    await store.save(session.id, bare, _LONG)
    promise(await store.load(session.id) == bare, "save() replaces what was saved before")
    promise(await store.load(session.id + "x") is None, "load() of another id gives None")
    await store.drop(session.id)


async def _drops(store: SessionStore) -> None:
    one, other = _session("one"), _session("other")
    await store.save(one.id, one, _LONG)
    await store.save(other.id, other, _LONG)
    await store.drop(one.id)
    promise(await store.load(one.id) is None, "load() of a session that was dropped gives None")
    promise(await store.load(other.id) == other, "drop() drops that session and no other")
    try:
        await store.drop(one.id)
        await store.drop("check-store-never-there")
    except Exception as error:
        raise AssertionError(f"dropping what is not there is no error, and this was raised: {error!r}") from error
    await store.drop(other.id)


async def _forgets_in_time(store: SessionStore, advance: Callable[[float], None] | None, patience: float) -> None:
    names = ("brief", "lasting", "renewed", "touched", "updated")
    brief, lasting, renewed, touched, updated = map(_session, names)
    await store.save(brief.id, brief, _SHORT)
    await store.save(lasting.id, lasting, _LONG)
    await store.save(renewed.id, renewed, _SHORT)
    await store.save(renewed.id, renewed, _LONG)
    await store.save(touched.id, touched, _SHORT)
    await store.touch(touched.id, _LONG)
    await store.save(updated.id, updated, _SHORT)
    await store.update(updated.id, _level("error"), _LONG)
    if advance is not None:
        advance(2 * _SHORT)
    for _ in range(1 if advance is not None else max(1, round(patience / _SHORT))):
        await asyncio.sleep(0 if advance is not None else _SHORT)
        if await store.load(brief.id) is None:
            break
    promise(await store.load(brief.id) is None, f"a session saved for {_SHORT} s is forgotten after that time")
    promise(await store.load(lasting.id) == lasting, "a session is kept for as long as it was saved for")
    promise(await store.load(renewed.id) == renewed, "saving again counts the time from then")
    promise(await store.load(touched.id) == touched, "touch() counts the time from then")
    promise(await store.load(updated.id) is not None, "update() counts the time from then")
    promise(await store.touch(brief.id, _LONG) is False, "touch() of a session whose time is over gives False")
    promise(await store.update(brief.id, _level("x"), _LONG) is None, "update() of one whose time is over gives None")
    promise(await store.load(brief.id) is None, "touch() and update() bring back no session whose time is over")
    for session in (lasting, renewed, touched, updated):
        await store.drop(session.id)


async def _takes_many_at_once(store: SessionStore) -> None:
    sessions = [_session(f"many-{number}") for number in range(50)]
    await asyncio.gather(*(store.save(session.id, session, _LONG) for session in sessions))
    loaded = await asyncio.gather(*(store.load(session.id) for session in sessions))
    promise(loaded == sessions, "sessions saved at the same time are all kept")
    await asyncio.gather(*(store.drop(session.id) for session in sessions))
    left = await asyncio.gather(*(store.load(session.id) for session in sessions))
    promise(not any(left), "sessions dropped at the same time are all forgotten")


def _level(level: str) -> Callable[[Session], None]:
    def change(session: Session) -> None:
        session.log_level = level

    return change


def _subscription(uri: str) -> Callable[[Session], None]:
    return lambda session: session.subscriptions.add(uri)


async def _renews_only(store: SessionStore) -> None:
    session = _session("touched-only")
    promise(await store.touch(session.id, _LONG) is False, "touch() of a session that was never saved gives False")
    promise(await store.load(session.id) is None, "touch() makes no session")
    await store.save(session.id, session, _LONG)
    await store.update(session.id, _level("error"), _LONG)
    promise(await store.touch(session.id, _LONG) is True, "touch() of a session that is there gives True")
    kept = await store.load(session.id)
    promise(kept is not None and kept.log_level == "error", "touch() changes nothing but the time")
    await store.drop(session.id)
    promise(await store.touch(session.id, _LONG) is False, "touch() of a session that was dropped gives False")


async def _updates_what_is_there(store: SessionStore) -> None:
    session = _session("updated-only")
    change = _level("error")
    promise(await store.update(session.id, change, _LONG) is None, "update() of a session never saved gives None")
    promise(await store.load(session.id) is None, "update() makes no session")
    await store.save(session.id, session, _LONG)
    made = await store.update(session.id, change, _LONG)
    wanted = _session("updated-only")
    wanted.log_level = "error"
    promise(made == wanted, "update() gives the session as it was changed, and all else as it was")
    promise(await store.load(session.id) == wanted, "when update() returns, every load() sees what it changed")
    await store.drop(session.id)
    promise(await store.update(session.id, change, _LONG) is None, "update() of a session that was dropped gives None")


async def _loses_no_update(store: SessionStore) -> None:
    session = Session(id="check-store-shared", revision="any")
    await store.save(session.id, session, _LONG)
    uris = [f"x:{number}" for number in range(30)]
    await asyncio.gather(
        *(store.update(session.id, _subscription(uri), _LONG) for uri in uris),
        *(store.touch(session.id, _LONG) for _ in uris),
        store.update(session.id, _level("alert"), _LONG),
    )
    kept = await store.load(session.id)
    promise(
        kept is not None and kept.subscriptions == set(uris) and kept.log_level == "alert",
        "no change is lost when several update() and touch() run at the same time",
    )
    await store.drop(session.id)
