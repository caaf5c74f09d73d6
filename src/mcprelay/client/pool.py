"""One client for each server of an application."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from mcprelay.client import Client, check_names, misuse
from mcprelay.errors import ConfigurationError, LimitExceeded, LocalFault

if TYPE_CHECKING:
    from collections.abc import Hashable
    from types import TracebackType
    from typing import Self


class _Kept:
    """A client, how many are waiting for it to connect, and whether a block of the pool's keeps it open."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.awaited = 0
        self.entered = False

    @property
    def idle(self) -> bool:
        """Whether nobody waits for anything of it."""
        return not self.awaited and not self.client.busy

    async def close(self) -> None:
        """Close it, whoever is in a block. From then on it is closed by the blocks of who keeps it, as any client."""
        await self.client.aclose()
        if self.entered:
            self.entered = False
            await self.client.__aexit__(None, None, None)


class ClientPool:
    """Keeps the clients of an application, one for each server and each way of connecting to it.

    Who asks for the same server with the same options gets the same client, so that a token is never used for another
    user's calls. Belongs to one event loop at a time: until it is closed, or that loop is.

    Args:
        clients: How many are kept. Beyond that the one that was asked for longest ago, of those that nothing waits
            for, is closed: no call, from its beginning to its end, and nobody who listens.
        options: Options that every client gets. A `sender=` serves them all, and is closed by whoever made it.

    Raises:
        ConfigurationError: A client has no such option, or `clients` is no whole number of at least 1.
    """

    def __init__(self, *, clients: int = 256, **options: Any) -> None:
        misuse.number("clients", clients, least=1, whole=True)
        if options:
            check_names("ClientPool", options, "clients")
        self.clients = clients
        self._options = options
        self._kept: dict[Hashable, _Kept] = {}
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def get(self, target: Any, **options: Any) -> Client:
        """The client for a server, connected.

        Args:
            target: See `Client`.
            options: More options for the client: part of what tells it from others.

        Raises:
            CallFailed: There is no connection.
            LimitExceeded: As many clients as `clients` allows are busy.
            LocalFault: The pool is open in another event loop.
            ConfigurationError: The pool is closed, or there can be no such client.
        """
        self._check_loop()
        if self._closed:
            raise ConfigurationError("the pool is closed: enter it again")
        key = _key(target, options)
        kept = self._kept.pop(key, None)
        leaving = None
        if kept is None:
            kept = _Kept(Client(target, **{**self._options, **options}))
            leaving = self._make_room()
        self._kept[key] = kept  # now the one that was asked for last
        kept.awaited += 1
        try:
            if leaving is not None:
                await asyncio.shield(leaving)
            self._check_kept(key, kept)
            await kept.client.__aenter__()  # a block of the caller's does not close what is shared
            if kept.entered:
                await kept.client.__aexit__(None, None, None)  # one block is enough
            kept.entered = True
            self._check_kept(key, kept)
        except BaseException:
            kept.awaited -= 1
            if kept.idle:
                if self._kept.get(key) is kept:
                    del self._kept[key]
                await asyncio.shield(self._close(kept))
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

    def _check_kept(self, key: Hashable, kept: _Kept) -> None:
        if self._kept.get(key) is not kept:
            raise ConfigurationError("the pool was closed while the client was connecting")

    def _make_room(self) -> asyncio.Task[None] | None:
        """Let go of an idle client where there is no room for one more, and give what closes it."""
        if len(self._kept) < self.clients:
            return None
        idle = next((key for key, kept in self._kept.items() if kept.idle), None)
        if idle is None:
            raise LimitExceeded("clients", self.clients, what="the number of clients that are busy")
        return self._close(self._kept.pop(idle))

    def _close(self, kept: _Kept) -> asyncio.Task[None]:
        """Close a client beside whoever caused it, who may be cancelled; closing the pool waits for it."""
        task = asyncio.ensure_future(kept.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def aclose(self) -> None:
        """Close every client, all at once.

        Raises:
            LocalFault: The pool is open in another event loop.
        """
        self._check_loop()
        self._closed = True
        while self._kept:
            _ = self._close(self._kept.popitem()[1])  # which `_closing` holds
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


class _Same:
    """A value that is only the same as itself. It is held, so that nothing else comes to be in its place."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


def _key(target: Any, options: dict[str, Any]) -> Hashable:
    """What tells one client from another: values where they can be compared, else the very object."""
    return _comparable(target), _comparable(options)


def _comparable(value: Any) -> tuple[str, Any]:
    if isinstance(value, (list, tuple)):
        return "list", tuple(map(_comparable, value))
    if isinstance(value, dict):
        return "dict", frozenset((str(name), _comparable(item)) for name, item in value.items())
    if isinstance(value, os.PathLike):
        return "str", repr(os.fspath(value))
    if isinstance(value, (str, int, float, bytes, bool)) or value is None:
        return type(value).__name__, repr(value)
    return "object", _Same(value)
