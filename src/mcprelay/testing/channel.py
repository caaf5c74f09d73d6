"""The other side of a `Channel`, played by the test."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import msgspec

from mcprelay.client.misuse import told_value
from mcprelay.errors import NotSent
from mcprelay.testing.fault import ScriptFault

PATIENCE = 5.0
"""Seconds that `expect` waits unless told otherwise."""


class ScriptedChannel:
    """A `Channel` whose other side is the test: it reads what was sent, and says what comes.

    Attributes:
        sent: Every message that was sent, in order.
        closed: Whether the user of the channel closed it.
    """

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed = False
        self._read = 0
        self._said: deque[bytes] = deque()
        self._ended = False
        self._failure: Exception | None = None
        self._free = asyncio.Event()
        self._free.set()
        self._waiters: set[asyncio.Future[None]] = set()

    # --- the port

    async def receive(self) -> bytes:
        """See `Channel`."""
        while not self._said:
            if self._ended:
                return b""
            await self._change()
        return self._said.popleft()

    async def send(self, data: bytes) -> None:
        """See `Channel`."""
        await self._free.wait()
        if self._failure is not None:
            raise self._failure
        if self._ended:
            raise NotSent("the channel is closed")
        self.sent.append(data)
        self._changed()

    async def aclose(self) -> None:
        """See `Channel`."""
        self.closed = True
        self.end()

    # --- the script

    async def expect(self, method: str | None = None, *, patience: float = PATIENCE) -> dict[str, Any]:
        """The next message that was sent, decoded.

        Args:
            method: What it must call or tell; anything when left out.
            patience: Seconds to wait for it.

        Raises:
            AssertionError: Another message came, or none.
        """
        wanted = "a message" if method is None else f"a call of {method}"
        try:
            async with asyncio.timeout(patience):
                while self._read >= len(self.sent):
                    await self._change()
        except TimeoutError:
            raise AssertionError(f"expected {wanted}, and nothing came in {patience:g} s") from None
        data = self.sent[self._read]
        self._read += 1
        message: dict[str, Any] = msgspec.json.decode(data)
        if method is not None and message.get("method") != method:
            raise AssertionError(f"expected {wanted}, and this came: {data.decode()}")
        return message

    def say(self, data: bytes) -> None:
        """Send bytes to the user of the channel, whatever they are.

        Raises:
            ScriptFault: They are none.
        """
        given: object = data  # whatever the test says
        if not isinstance(given, bytes) or not given:
            hint = ": end() ends the channel" if given == b"" else ": encode it" if isinstance(given, str) else ""
            raise ScriptFault(f"say: a message is bytes, at least one, and not {told_value(data)}{hint}")
        self._said.append(data)
        self._changed()

    def reply(self, request: dict[str, Any], result: Any) -> None:
        """Answer a request with a result.

        Raises:
            ScriptFault: It is none that is answered, or JSON cannot carry the result.
        """
        self._tell({"id": _id(request), "result": result})

    def refuse(self, request: dict[str, Any], code: int, message: str = "no", data: Any = None) -> None:
        """Answer a request with an error.

        Raises:
            ScriptFault: It is none that is answered, or JSON cannot carry the error.
        """
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        self._tell({"id": _id(request), "error": error})

    def call(self, id: int | str, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a request of the other side's own."""
        self._tell({"id": id, "method": method, "params": params or {}})

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        self._tell({"method": method} | ({} if params is None else {"params": params}))

    def end(self) -> None:
        """The other side ends the channel."""
        self._ended = True
        self._changed()

    def fail_sends(self, error: Exception) -> None:
        """Let every later `send` raise.

        Raises:
            ScriptFault: It is no exception.
        """
        if not isinstance(error, Exception):
            raise ScriptFault(
                f"fail_sends: an exception such as NotSent('full') is raised, and not {told_value(error)}"
            )
        self._failure = error

    def hold_sends(self) -> None:
        """Let every `send` wait: the other side takes nothing."""
        self._free.clear()

    def release_sends(self) -> None:
        """The other side takes what waits."""
        self._free.set()

    def _tell(self, message: dict[str, Any]) -> None:
        try:
            data = msgspec.json.encode({"jsonrpc": "2.0", **message})
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ScriptFault(f"JSON cannot carry {told_value(message)}: {error}") from error
        self.say(data)

    async def _change(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)

    def _changed(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


def _id(request: Any) -> Any:
    """The id of a request, as `expect` gave it."""
    if not isinstance(request, dict) or "id" not in request:
        what = "is a request that expect() gave, with an id"
        raise ScriptFault(f"what is answered {what}, and not {told_value(request)}")
    return request["id"]
