"""The link that a client has at the moment: made once for all who need it, and made anew when it was lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

from mcprelay.client import failure
from mcprelay.client.deadline import is_cancelled
from mcprelay.client.memory import Acquaintance
from mcprelay.client.party import weakly
from mcprelay.errors import CallFailed, ConnectFailed, Evidence, LocalFault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcprelay.client.call import Call
    from mcprelay.client.link import Link
    from mcprelay.client.memory import Memory
    from mcprelay.client.party import Party
    from mcprelay.client.target import Target


def _now() -> float:
    return asyncio.get_running_loop().time()


class Connection:
    """Keeps a client's link. Belongs to the loop that it was opened in, until it is closed.

    Attributes:
        current: The link, if there is one, dead or alive.
        held: Whether somebody was told that the client is open, and will close it.
        retired: Why it is not opened any more, and what to do instead; empty as long as it serves.
        now: The time of the loop's clock.
    """

    def __init__(self, target: Target, party: Party, memory: Memory) -> None:
        self.target = target
        self._party = party
        self._known = Acquaintance(memory, target, party)
        self.current: Link | None = None
        self._opening: asyncio.Task[Link] | None = None
        self._waiting: Counter[asyncio.Task[Link]] = Counter()  # how many wait for each making of a link
        self._coming = 0
        self.held = False
        self.retired = ""
        self._entered = 0
        self._entered_in: asyncio.AbstractEventLoop | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.now: Callable[[], float] = _now
        self._process = 0  # where it was opened
        self._leaving: set[asyncio.Future[Any]] = set()
        self._undoing: set[asyncio.Future[Any]] = set()  # of them, what was begun and given up
        party.met = self._known.keep
        self._forsaken: weakref.finalize[..., Connection] | None = None
        party.leaving = weakly(self._leaves)

    def _leaves(self, ending: asyncio.Future[Any]) -> None:
        """What failed to connect is being ended beside the calls; `close`, and the next attempt, wait for it."""
        self._leaving.add(ending)
        ending.add_done_callback(self._leaving.discard)

    def _departing(self) -> set[asyncio.Future[Any]]:
        """What is being ended in the loop that runs. What another loop was ending has ended with that."""
        loop = asyncio.get_running_loop()
        return {ending for ending in self._leaving if ending.get_loop() is loop}

    def enter(self) -> None:
        """One more block needs it open. What was entered in a loop that ended without leaving does not count.

        Raises:
            LocalFault: It is open, or needed, in another event loop, or in the process that this one was forked from;
                or it serves no more.
        """
        self._check_serves()
        loop = asyncio.get_running_loop()
        _check_loop(loop, self._loop)
        if self._entered_in is not loop:
            _check_loop(loop, self._entered_in)
            self._entered, self._entered_in = 0, loop
        self._entered += 1

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for a link."""
        return bool(self._waiting)

    @property
    def last(self) -> bool:
        """Whether no more than one block needs it open."""
        return self._entered <= 1

    @property
    def lent(self) -> bool:
        """Whether more than one block needs it open, in a loop that has not ended."""
        return not self.last and self._entered_in is not None and not self._entered_in.is_closed()

    def leave(self) -> bool:
        """A block was left. Whether it was the last one that needs it open."""
        self._entered = max(0, self._entered - 1)
        if not self._entered:
            self._entered_in = None
        return not self._entered

    async def open(self) -> None:
        """Connect, as far as the wire has to. Opening twice is opening once.

        Raises:
            CallFailed: There is no connection.
            LocalFault: It is open in another event loop, or in the process that this one was forked from; or it serves
                no more.
        """
        self._check_serves()
        loop = asyncio.get_running_loop()
        _check_loop(loop, self._loop)
        if self._loop is not loop:
            self.current = self._opening = None
            self._leaving = self._departing()
            self._loop, self.now = loop, loop.time  # to ask for the running one each time is a system call
            self._process = os.getpid()
        if self.current is None or not self.current.alive or self.current.mute:
            self._coming += 1
            try:
                await self._opened(None)
            except asyncio.CancelledError:
                if not self.held and self._coming == 1 and (ending := self._let_go()) is not None:
                    ending.add_done_callback(_seen)  # whoever gave up does not wait for it
                raise
            finally:
                self._coming -= 1
        self.held = True

    def ready(self) -> Link | None:
        """The link, if it can be used here and now.

        Raises:
            LocalFault: It belongs to the process that this one was forked from.
        """
        link = self.current
        try:
            if link is not None and link.alive and not link.mute and link.loop is asyncio.get_running_loop():
                return link
        except RuntimeError:  # a fork of the process goes on in the middle of a coroutine, and without a loop
            self._check_process()
            raise
        return None

    def _check_serves(self) -> None:
        self._check_process()
        if self.retired:
            raise LocalFault(f"{_RETIRED}: {self.retired}")

    def _check_process(self) -> None:
        if self._loop is not None and self._process != os.getpid():
            raise LocalFault(_ANOTHER_PROCESS)

    async def link(self, call: Call) -> Link:
        """The link to send this call over.

        Raises:
            CallFailed: There is none, and none could be made within the call's deadline. Nothing was sent.
            LocalFault: The client is open in another event loop, or in the process that this one was forked from.
        """
        link = self.ready()
        if link is not None:
            return link
        self._check_process()
        if self.retired:
            raise failure.unconnected(call, f"{_RETIRED}: {self.retired}", lasting=True)
        if self._loop is None:
            reason = "the client is not open: use `async with client`, or await client.connect()"
            raise failure.unconnected(call, reason, lasting=True)
        if self._loop is not asyncio.get_running_loop():
            raise LocalFault(_ENDED_LOOP if self._loop.is_closed() else _ANOTHER_LOOP)
        return await self._opened(call)

    async def _opened(self, call: Call | None) -> Link:
        """Wait for the link that is being made, or make it. Whoever waits last and gives up ends the making."""
        opening = self._opening
        if opening is None or opening.done():
            opening = self._opening = asyncio.create_task(self._make())
            opening.add_done_callback(_seen)
        self._waiting[opening] += 1
        limit = asyncio.timeout_at(None if call is None else call.deadline)
        try:
            async with limit:
                return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if opening.cancelled() and not is_cancelled():
                raise failure.unconnected(call, "the client was closed while it connected") from None
            self._give_up(opening)
            raise
        except TimeoutError as error:
            if not limit.expired():
                raise failure.unconnected(call, str(error)) from error
            self._give_up(opening)
            raise failure.expired(call, Evidence.NOT_SENT) from None
        except CallFailed as error:
            if error.evidence is Evidence.ANSWERED or (call is None and isinstance(error, ConnectFailed)):
                raise
            process = {"exit_code": error.exit_code, "stderr": error.stderr}
            lasting = isinstance(error, ConnectFailed) and error.lasting
            why = failure.unconnected(call, f"there is no connection ({error})", lasting=lasting, **process)
            raise why from error.__cause__ or error
        finally:
            self._waiting[opening] -= 1
            self._waiting += Counter()  # those that nobody waits for are dropped

    def _give_up(self, opening: asyncio.Task[Link]) -> None:
        """End the making of a link, unless somebody else waits for it. Its end is not waited for."""
        if self._waiting[opening] > 1 or opening.done():
            return
        if self._opening is opening:
            self._opening = None
        opening.cancel()
        self._leaves(opening)

    async def _make(self) -> Link:
        if leaving := self._departing():
            await asyncio.wait(leaving)
        old = self.current
        if old is not None:
            if not self.target.reopens:
                reason = "the channel ended, and a channel serves for one connection"
                raise failure.unconnected(None, reason, lasting=True)
            await old.aclose()
        try:
            link = await self._reached()
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            raise failure.unconnected(None, f"connecting was cancelled from inside ({error!r})") from error
        self.current = link
        if self._forsaken is not None:
            self._forsaken.detach()  # or each link that was lost would be kept for as long as the client lives
        self._forsaken = weakref.finalize(self, _forsake, link, self._process)
        self._forsaken.atexit = False
        return link

    async def _reached(self) -> Link:
        """A link, made in a task of its own: when that is given up, what was begun is ended beside whoever waited."""
        reaching = asyncio.ensure_future(self.target.open(self._party, self._known))
        reaching.add_done_callback(_seen)
        try:
            return await asyncio.shield(reaching)
        except asyncio.CancelledError:
            if is_cancelled():
                reaching.cancel()
                undoing = asyncio.ensure_future(_undone(reaching))
                undoing.add_done_callback(_seen)
                self._leaves(undoing)
                self._undoing.add(undoing)
                undoing.add_done_callback(self._undoing.discard)
            raise

    async def close(self) -> None:
        """Let go of everything. Twice is once, from any task; the client can be opened again.

        In a fork of the process that it is open in there is nothing to let go of: it is left as it is.

        Raises:
            LocalFault: It is open in another event loop.
        """
        ending = self._let_go()
        if ending is not None:
            await asyncio.shield(ending)  # which goes on when whoever closes is cancelled

    def retire(self, why: str, *, first: Callable[[], Awaitable[None]]) -> asyncio.Future[None] | None:
        """Close it for good. What begins from this moment on is refused, without anything sent, and told why.

        Args:
            why: What became of it, and what to do instead.
            first: What is done before the link ends.

        Returns:
            The end of it, or None where there is nothing to wait for.

        Raises:
            LocalFault: It is open in another event loop.
        """
        self.retired = why
        return self._let_go(first)

    def _let_go(self, first: Callable[[], Awaitable[None]] | None = None) -> asyncio.Future[None] | None:
        """Have no link from this moment on, and end the one that there was."""
        if self._loop is not None and self._process != os.getpid():
            return None
        opening, self._opening = self._opening, None
        link, self.current = self.current, None
        loop, self._loop = self._loop, None
        if loop is not None and loop is not asyncio.get_running_loop():
            if loop.is_closed():
                return None
            self._opening, self.current, self._loop = opening, link, loop
            raise LocalFault(_ANOTHER_LOOP)
        if opening is not None and not opening.done():
            opening.cancel()
            self._leaves(opening)
        self.held = False
        if self._forsaken is not None:
            self._forsaken.detach()
        ending = asyncio.ensure_future(self._end(link, self._departing(), first))
        self._leaves(ending)
        return ending

    async def _end(
        self, link: Link | None, leaving: set[asyncio.Future[Any]], first: Callable[[], Awaitable[None]] | None
    ) -> None:
        if first is not None:
            await first()
        if leaving:
            await asyncio.wait(leaving)
        if undoing := self._departing() & self._undoing:  # of what has left meanwhile
            await asyncio.wait(undoing)
        late, self.current = self.current, None  # made while it was being cancelled
        for one in (link, late):
            if one is not None:
                await one.aclose()


_ANOTHER_LOOP = (
    "this client is open in another event loop; a client belongs to one loop at a time: make one for each, "
    "or close it there first"
)

_ENDED_LOOP = (
    "the event loop that this client was open in has ended, and its connection with it: await client.connect(), or "
    "`async with client`, opens it in this one"
)

_RETIRED = "the client is not open any more"

_ANOTHER_PROCESS = (
    "this process was forked from the one that this client is open in, and a connection cannot be shared by processes: "
    "make a client in each process, after the fork"
)


def _check_loop(loop: asyncio.AbstractEventLoop, belongs: asyncio.AbstractEventLoop | None) -> None:
    if belongs is not None and belongs is not loop and not belongs.is_closed():
        raise LocalFault(_ANOTHER_LOOP)


_ENDINGS: set[asyncio.Task[None]] = set()
"""Of links whose client is gone: nobody else knows of them."""


def _forsake(link: Link, process: int) -> None:
    """A client was dropped without having been closed: its link, which the loop holds, ends all the same."""

    def end() -> None:
        task = link.loop.create_task(link.aclose())
        _ENDINGS.add(task)
        task.add_done_callback(_ENDINGS.discard)

    if link.alive and process == os.getpid():  # in a fork the loop is the other process's
        with contextlib.suppress(RuntimeError):  # the loop is closed, and with it all that it held
            link.loop.call_soon_threadsafe(end)


def _seen(task: asyncio.Future[Any]) -> None:
    """Whoever waited may have given up: that the task failed is no news then."""
    if not task.cancelled():
        task.exception()


async def _undone(reaching: asyncio.Future[Link]) -> None:
    """Wait until the making of a link has ended, and end the link where it was made nonetheless."""
    await asyncio.wait([reaching])
    if not reaching.cancelled() and reaching.exception() is None:
        await reaching.result().aclose()
