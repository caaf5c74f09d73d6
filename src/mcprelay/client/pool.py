"""One client for each server of an application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcprelay.client import Client
from mcprelay.errors import ConfigurationError, LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Hashable
    from types import TracebackType
    from typing import Self


class ClientPool:
    """Keeps the clients of an application, one for each server and each way of connecting to it.

    Who asks for the same server with the same options gets the same client, so that a token is never used for another
    user's calls. Belongs to one event loop at a time.

    Args:
        clients: How many are kept. Beyond that the one that was asked for longest ago, of those that nothing waits
            for, is closed.
        options: Options that every client gets.
    """

    def __init__(self, *, clients: int = 256, **options: Any) -> None:
        if clients < 1:
            raise ConfigurationError(f"clients is at least 1, not {clients}")
        self.clients = clients
        self._options = options
        self._kept: dict[Hashable, Client] = {}
        self._closed = False

    async def get(self, target: Any, **options: Any) -> Client:
        """The client for a server, connected.

        Args:
            target: See `Client`.
            options: More options for the client: part of what tells it from others.

        Raises:
            CallFailed: There is no connection.
            LimitExceeded: As many clients as `clients` allows are busy.
            ConfigurationError: The pool is closed, or there can be no such client.
        """
        if self._closed:
            raise ConfigurationError("the pool is closed: enter it again")
        key = _key(target, options)
        client = self._kept.pop(key, None)
        if client is None:
            await self._make_room()
            client = Client(target, **{**self._options, **options})
        self._kept[key] = client  # now the one that was asked for last
        try:
            return await client.connect()
        except BaseException:
            if self._kept.get(key) is client and not client.busy:
                del self._kept[key]
                await client.aclose()
            raise

    async def _make_room(self) -> None:
        while len(self._kept) >= self.clients:
            idle = next((key for key, client in self._kept.items() if not client.busy), None)
            if idle is None:
                raise LimitExceeded("clients", self.clients, what="the number of clients that are busy")
            await self._kept.pop(idle).aclose()

    async def aclose(self) -> None:
        """Close every client."""
        self._closed = True
        while self._kept:
            _, client = self._kept.popitem()
            await client.aclose()

    async def __aenter__(self) -> Self:
        self._closed = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def _key(target: Any, options: dict[str, Any]) -> Hashable:
    """What tells one client from another: values where they can be compared, else the very object."""
    return _comparable(target), tuple(sorted((name, _comparable(value)) for name, value in options.items()))


def _comparable(value: Any) -> tuple[str, Any]:
    if isinstance(value, (list, tuple)):
        return "list", tuple(map(_comparable, value))
    if isinstance(value, dict):
        return "dict", tuple(sorted((str(name), _comparable(item)) for name, item in value.items()))
    if isinstance(value, (str, int, float, bytes, bool)) or value is None:
        return type(value).__name__, repr(value)
    return "object", str(id(value))
