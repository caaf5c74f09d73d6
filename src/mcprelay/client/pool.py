"""One client for each server of an application."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mcprelay.client import Client, check_names, misuse
from mcprelay.client.likeness import functions, key, remade
from mcprelay.client.progress import logger
from mcprelay.errors import ConfigurationError, DeadlineExceeded, Evidence, LimitExceeded, LocalFault

if TYPE_CHECKING:
    from collections.abc import Hashable
    from types import TracebackType
    from typing import Self

    from mcprelay.client.connection import Connection

_ASK = "`await pool.get(...)` gives one that is open: ask each time, and hold none over an await but in a block"
_GO_ON = "; a question that is open goes on there: client.load_question(question.dump())"
_CLOSED = "its pool was closed: enter the pool again, and `await pool.get(...)`"
_OF_COMMANDS = frozenset({"env", "cwd", "stderr"})


class _Kept:
    """A client, how many are waiting for it to connect, and whether a block of the pool's keeps it open.

    Attributes:
        remade: What it has in common with those that differ from it by functions made anew, or None.
    """

    def __init__(self, client: Client, alike: Hashable | None) -> None:
        self.client = client
        inside: Any = client  # which its users have no part in
        self._connection: Connection = inside._connection  # noqa: SLF001
        self._hush = inside._hush  # noqa: SLF001
        self.remade = alike
        self.leaving: list[asyncio.Future[None]] = []  # what ends before it connects
        self.awaited = 0
        self.entered = False

    @property
    def idle(self) -> bool:
        """Whether nobody waits for anything of it, and nobody but the pool is in a block of it."""
        return not self.awaited and not self.client.busy and not self._connection.lent

    def retire(self, why: str) -> asyncio.Future[None]:
        """Close it for good: what begins after this moment is refused, and so is opening it again. Gives its end."""
        nothing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            ending = self._connection.retire(why, first=self._hush)
        except LocalFault as error:  # somebody has opened it in another loop: the others are closed all the same
            nothing.set_exception(error)
            return nothing
        if ending is not None:
            return ending
        nothing.set_result(None)
        return nothing


class ClientPool:
    """Keeps the clients of an application, one for each server and each way of connecting to it.

    Who asks for the same server with the same options gets the same client, so that a token is never used for another
    user's calls. A function is the same as itself alone: one that is made anew for each `get` is another client each
    time. Belongs to one event loop at a time: until it is closed, or that loop is.

    Args:
        clients: How many are kept. Beyond that the one that was asked for longest ago, of those that nothing waits
            for, is closed: no call, from its beginning to its end, nobody who listens, and nobody who is in a block of
            it (`async with await pool.get(...) as client:`). It is closed for good, so ask `get` each time, and hold no
            client over an await outside of a block.
        options: Options that every client gets. A `sender=` serves them all, and is closed by whoever made it.

    Raises:
        ConfigurationError: A client has no such option, or cannot have it as it is, or `clients` is no whole number of
            at least 1.
    """

    def __init__(self, *, clients: int = 256, **options: Any) -> None:
        misuse.number("clients", clients, least=1, whole=True)
        if options:
            check_names("ClientPool", options, "clients")
            if isinstance(options.get("on_roots"), Iterator):  # it can be read but once
                options["on_roots"] = tuple(options["on_roots"])
            _check(options)
        self.clients = clients
        self._options = options
        self._kept: dict[Hashable, _Kept] = {}
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: dict[asyncio.Future[None], Hashable] = {}  # and which client each is the end of
        self._warned = False

    async def get(
        self, target: Any, *, timeout: float | None = None, deadline: float | None = None, **options: Any
    ) -> Client:
        """The client for a server, connected. Ask each time: one that is held over an await may be closed meanwhile.

        Args:
            target: See `Client`.
            timeout: Seconds that it may take. `connect_timeout` holds beside it.
            deadline: The same as a time of the loop's clock. With both, the earlier one counts.
            options: More options for the client: part of what tells it from others.

        Raises:
            CallFailed: There is no connection; a `DeadlineExceeded` where none came in that time.
            LimitExceeded: As many clients as `clients` allows are busy.
            LocalFault: The pool is open in another event loop.
            ConfigurationError: The pool is closed, or there can be no such client.
        """
        if timeout is None and deadline is None:
            return await self._get(target, options)
        limit, said = _limit(timeout, deadline)
        scope = asyncio.timeout_at(limit)
        try:
            async with scope:
                return await self._get(target, options)
        except TimeoutError:
            if not scope.expired():
                raise
            wrong = f"connecting: there was no connection {said}; nothing was sent, so it is safe to try again"
            raise DeadlineExceeded(wrong, evidence=Evidence.NOT_SENT) from None

    async def _get(self, target: Any, options: dict[str, Any]) -> Client:
        self._check_loop()
        if self._closed:
            raise ConfigurationError("the pool is closed: enter it again")
        which = key(target, options)
        kept = self._kept.pop(which, None)
        if kept is None:
            kept = _Kept(Client(target, **{**self._options, **options}), remade(target, options))
            self._warn(kept, options)
            kept.leaving = [ending for ending, whose in self._closing.items() if whose == which]
            kept.leaving += self._make_room()
        self._kept[which] = kept  # now the one that was asked for last
        kept.awaited += 1
        try:
            if kept.leaving:
                await asyncio.shield(asyncio.gather(*kept.leaving))
                kept.leaving = []
            self._check_kept(which, kept)
            await kept.client.__aenter__()  # a block of the caller's does not close what is shared
            if kept.entered:
                await kept.client.__aexit__(None, None, None)  # one block is enough
            kept.entered = True
            self._check_kept(which, kept)
        except BaseException:
            kept.awaited -= 1
            if kept.idle and self._kept.get(which) is kept:  # else whoever took it out has closed it
                del self._kept[which]
                _ = self._close(which, kept, f"its pool could not connect it, and {_ASK}")  # beside whoever gave up
            raise
        kept.awaited -= 1
        return kept.client

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None and not self._loop.is_closed():
            raise LocalFault("this pool is open in another event loop: make one for each, or close it there first")
        self._loop = loop
        self._closing.clear()  # what was being closed has ended with its loop, and so have blocks
        for kept in self._kept.values():
            kept.entered = False

    def _check_kept(self, which: Hashable, kept: _Kept) -> None:
        if self._kept.get(which) is not kept:
            raise ConfigurationError("the pool was closed while the client was connecting")

    def _warn(self, kept: _Kept, options: dict[str, Any]) -> None:
        """Say once that functions are made anew for the same client, which fills the pool with others of its kind."""
        if kept.remade is None or self._warned or all(other.remade != kept.remade for other in self._kept.values()):
            return
        self._warned = True
        logger.warning(
            "a pool has another client of %r, for nothing but a function that was made anew (%s): make it once, "
            "outside of where the pool is asked, and it is the same client each time",
            kept.client,
            ", ".join(functions(options)),
        )

    def _make_room(self) -> list[asyncio.Future[None]]:
        """Let go of an idle client where there is no room for one more, and give what closes it."""
        if len(self._kept) < self.clients:
            return []
        idle = next((which for which, kept in self._kept.items() if kept.idle), None)
        if idle is None:
            raise LimitExceeded("clients", self.clients, what="the number of clients that are busy")
        why = f"its pool closed it to make room for another (clients={self.clients:g}), and {_ASK}{_GO_ON}"
        return [self._close(idle, self._kept.pop(idle), why)]

    def _close(self, which: Hashable, kept: _Kept, why: str) -> asyncio.Future[None]:
        """Close a client beside whoever caused it, who may be cancelled.

        Closing the pool waits for it, and so does the next one of its kind.
        """
        ending = kept.retire(why)
        self._closing[ending] = which
        ending.add_done_callback(self._ended)
        return ending

    def _ended(self, ending: asyncio.Future[None]) -> None:
        self._closing.pop(ending, None)
        if not ending.cancelled():
            ending.exception()  # is told to whoever waits, if anybody does

    async def aclose(self) -> None:
        """Close every client, all at once.

        Raises:
            LocalFault: The pool is open in another event loop.
        """
        self._check_loop()
        self._closed = True
        while self._kept:
            _ = self._close(*self._kept.popitem(), _CLOSED)  # which `_closing` holds
        if self._closing:
            await asyncio.shield(asyncio.gather(*self._closing))
        self._loop = None

    async def __aenter__(self) -> Self:
        self._check_loop()
        self._closed = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def _limit(timeout: float | None, deadline: float | None) -> tuple[float | None, str]:
    """Until when, on the loop's clock, and how that is said. None is for ever."""
    now = asyncio.get_running_loop().time()
    limit, said = math.inf, ""
    if deadline is not None:
        misuse.moment("deadline", deadline, now=now)
        limit, said = deadline, "before its deadline"
    if timeout is not None and now + misuse.duration("timeout", timeout) < limit:
        limit, said = now + timeout, f"within timeout={timeout:.6g} seconds"
    return None if limit == math.inf else limit, said


def _check(options: dict[str, Any]) -> None:
    """See that a client could have these options: one with an address, or else one with a command.

    Raises:
        ConfigurationError: None could.
    """
    try:
        Client("https://pool.invalid", **options)
    except ConfigurationError:
        if not options.keys() & _OF_COMMANDS:
            raise
        Client(["pool"], **options)
