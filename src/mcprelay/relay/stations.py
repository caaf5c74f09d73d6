"""All servers that a relay has reached, one station for each server and principal, and where their lists are kept."""

from __future__ import annotations

import asyncio
import inspect
import os
import secrets
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mcprelay.relay.disk import Disk
from mcprelay.relay.errand import Late, awaited, foreign
from mcprelay.relay.errors import SettingWrong, TokenFailed
from mcprelay.relay.listed import Listed, Memory, identity
from mcprelay.relay.settings import CacheSettings, Secret, ServerSettings, sendable
from mcprelay.relay.station import Station

_SPARE = 8
"""Idle stations that are kept for the tokens that one function gave."""
_IDLE = 300.0
"""Seconds after which an idle station for a function's token is closed when another one is made."""

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.relay.budget import Limits
    from mcprelay.relay.question import Askers
    from mcprelay.relay.settings import TokenSource


class Shelves:
    """Where lists are kept: in this process, and in a file for what may be there.

    Args:
        settings: The file, and how long lists without a hint are kept.
        clock: The time in seconds since the epoch.
    """

    def __init__(self, settings: CacheSettings, *, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.hintless = settings.hintless
        self._memory = Memory(clock=clock)
        self._path = None if settings.path is None else Path(settings.path)
        self._disk: Disk | None = None
        self._key = secrets.token_bytes(32)

    @property
    def key(self) -> bytes:
        """The key of the hash that lists are named by."""
        disk = self._opened()
        return self._key if disk is None else disk.key

    def get(self, key: str) -> Listed | None:
        """A list that is still fresh, or None."""
        listed = self._memory.get(key)
        if listed is None and (disk := self._opened()) is not None:
            listed = disk.get(key)
            if listed is not None:
                self._memory.put(key, listed)
        return listed

    def put(self, key: str, listed: Listed, *, of: ServerSettings) -> None:
        """Keep a list for as long as it is fresh. That of an object of this process is in no file."""
        if listed.fresh_until <= listed.read_at:
            return
        self._memory.put(key, listed)
        disk = self._opened()
        if disk is not None and of.target is None:
            disk.put(key, listed)

    def drop(self, key: str) -> None:
        """Forget a list."""
        self._memory.drop(key)
        disk = self._opened()
        if disk is not None:
            disk.drop(key)

    def close(self) -> None:
        """Let go of the file."""
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def _opened(self) -> Disk | None:
        if self._disk is None and self._path is not None:
            self._disk = Disk(self._path, clock=self.clock)
        return self._disk


class Place(NamedTuple):
    """What a station is shared by."""

    server: str
    key: str
    timeout: float
    limits: Limits


class Reached(NamedTuple):
    """A station, and how many seconds of a call the function for its token took."""

    station: Station
    spent: float = 0.0


class Stations:
    """See the module.

    Args:
        shelves: Where lists are kept.
        askers: Who answers the servers' questions.
        connections: How many stations are kept open of which nothing is wanted just now. There may be more only while
            more are busy.
    """

    def __init__(self, shelves: Shelves, *, askers: Askers, connections: int) -> None:
        self.shelves = shelves
        self._askers = askers
        self._most = connections
        self._closing: set[asyncio.Task[None]] = set()
        self._open: dict[Place, Station] = {}
        self.closed = False

    async def of(self, settings: ServerSettings, *, token: Secret | TokenSource | None) -> Reached:
        """The station of a server for whom the token is. One is shared where nothing that it goes by is another.

        Args:
            token: In place of the configured one; None for the configured one.

        Raises:
            SettingWrong: The relay is closed.
            TokenFailed: What gives the token failed, took too long, or gave none.
        """
        given = token if token is not None else settings.token
        text, spent = await resolved(given, server=settings.name, timeout=settings.timeout)
        self.require_open(settings.name)  # it may have been closed while the token was waited for
        key = identity(settings, token=text, key=self.shelves.key, environment=os.environ)
        place = Place(settings.name, key, settings.timeout, settings.limits)
        station = self._open.pop(place, None)
        if station is None:
            source = given if callable(given) else None
            self._close_idle(self._most - 1)
            if source is not None:
                self._retire(settings.name, source)
            own = token is None and source is None
            station = Station(
                settings,
                token=text,
                key=key,
                shelves=self.shelves,
                askers=self._askers,
                listening="on" if own else "off",
                rested=self._rested,
                source=source,
            )
        station.used_at = self.shelves.clock()
        self._open[place] = station  # the last one used comes last
        return Reached(station, spent)

    def require_open(self, server: str) -> None:
        """See that the relay is not closed: nobody would let go of what is opened after that.

        Raises:
            SettingWrong: It is.
        """
        if self.closed:
            raise SettingWrong("the relay is closed; use it, and its tools, inside `async with Relay…`", server=server)

    def heard(self, name: str) -> dict[str, int]:
        """What a server has said unasked, counted over all of its stations."""
        counts: Counter[str] = Counter()
        for (server, *_), station in self._open.items():
            if server == name:
                counts += station.said
        return dict(counts)

    async def aclose(self) -> None:
        """Let go of all servers."""
        self.closed = True
        stations, self._open = list(self._open.values()), {}
        if self._closing:
            await asyncio.wait(self._closing)
        for station in stations:
            await station.aclose()
        self.shelves.close()

    def _rested(self, station: Station) -> None:
        """See that no more stay open than may, now that this one may be idle: not before whoever has it goes on."""
        if len(self._open) > self._most and not station.busy:
            asyncio.get_running_loop().call_soon(self._close_idle, self._most)

    def _close_idle(self, most: int) -> None:
        """Close idle stations of more than so many that are open, those first that were asked for longest ago."""
        idle = [place for place, station in self._open.items() if not station.busy]
        for place in idle[: max(0, len(self._open) - most)]:
            self._close(place)

    def _retire(self, server: str, source: TokenSource) -> None:
        """Let go of stations for tokens that their functions give no more, as far as that can be told."""
        idle = [(place, one) for place, one in self._open.items() if one.source is not None and not one.busy]
        same = [place for place, one in idle if place.server == server and one.source == source]
        before = self.shelves.clock() - _IDLE
        old = {place for place, one in idle if one.used_at < before}.union(same[: max(0, len(same) - _SPARE + 1)])
        for place in old:
            self._close(place)

    def _close(self, place: Place) -> None:
        """Close a station. Nobody's call waits for that, or can break it off: its server may take its time."""
        station = self._open.pop(place)
        station.closed = True  # at once: who has it looks at that before a call
        task = asyncio.ensure_future(station.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def resolved(token: Secret | TokenSource | None, *, server: str, timeout: float) -> tuple[str | None, float]:
    """The token's text, from whatever gives it, and how many seconds that took.

    Args:
        timeout: Seconds that a function may take.

    Raises:
        TokenFailed: The function raised, took longer, or gave what is no token.
    """
    if token is None or isinstance(token, Secret):
        return (None if token is None else token.value), 0.0
    clock = asyncio.get_running_loop().time
    began, who = clock(), f"the function that is the token of the server {server!r}"
    late = f"{who} gave none within timeout={timeout:g}, so nothing was sent; raise timeout, if it only takes longer"
    try:
        text: Any = token()
        if inspect.isawaitable(text):
            text = await awaited(text, seconds=timeout, who=who)
    except Late:
        raise TokenFailed(late, server=server) from None
    except (Exception, asyncio.CancelledError) as caught:  # noqa: BLE001 - whatever it is, there is no token
        error = foreign(caught)
        said = f"{who} raised {type(error).__name__}, which is the cause of this error, so nothing was sent"
        raise TokenFailed(said, server=server) from error
    spent = clock() - began
    if spent >= timeout:  # one that is no coroutine cannot be ended
        raise TokenFailed(late, server=server)
    if not isinstance(text, str) or not sendable(text):
        right = "it gives the bearer token alone, as a text, or raises where there is none"
        raise TokenFailed(f"{who} gave {_kind(text)}, so nothing was sent; {right}", server=server)
    return text, spent


def _kind(wrong: Any) -> str:
    """What was given in the place of a token, without a word of it: it may be a secret all the same."""
    if not isinstance(wrong, str):
        return f"{type(wrong).__name__}, and no token"
    return "a text with a character that no token has" if wrong else "an empty text"
