"""One client, and behind it a server that is exchanged while the client stays connected.

Knows JSON-RPC, and which messages leave a state behind in a server: those are told again to each new server. Knows
neither why a server is exchanged nor how it is started. Everything else passes as it came, message for message, and is
bounded and judged by the two who speak.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcprelay.cli.position import Position
from mcprelay.cli.subscription import CANCELLED, LISTEN, Subscriptions
from mcprelay.errors import MCPRelayError
from mcprelay.server.subscription import UPDATED, notice
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.ports import Channel
    from mcprelay.types import RequestId

INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"
SUBSCRIBE = "resources/subscribe"
LATEST = frozenset((INITIALIZED, "logging/setLevel"))
"""Of these, the latest one counts."""

READY = f"mcprelay-{secrets.token_hex(8)}"
"""The id of our own question: no request of a client has it."""

LISTS = ("tools", "resources", "prompts")
NEVER = "the server did not start; what went wrong is on its standard error"


class Switchboard:
    """Connects a client with the server that is plugged in.

    Args:
        client: The client's channel. It belongs to whoever made it.
        ended: Called when a server ended that nobody had unplugged.
    """

    def __init__(self, client: Channel, *, ended: Callable[[], None]) -> None:
        self._client = client
        self._ended = ended
        self._current: Position | None = None
        self._leaving: set[Position] = set()
        self._states: dict[tuple[str, Any], tuple[bytes, RequestId | UnsetType]] = {}
        self._subscriptions = Subscriptions()
        self._asked: dict[RequestId, Position] = {}
        self._absence = NEVER
        self._tried = asyncio.Event()

    # ------------------------------------------------------------------------------------------------ the client's end

    async def run(self) -> None:
        """Pass on what the client says, until it ends. What it says before there was a server waits for the first."""
        await self._tried.wait()
        while line := await self._client.receive():
            await self._from_client(line)

    async def _from_client(self, line: bytes) -> None:
        message = jsonrpc.parse(line)
        if isinstance(message, jsonrpc.Malformed):
            await self._hand(line, self._current)
        elif message.is_response:
            asker = None if message.id is UNSET else self._asked.pop(message.id, None)
            await self._hand(line, asker or self._current)
        else:
            self._remember(message, line)
            await self._ask(message, line)

    def _remember(self, message: jsonrpc.Envelope, line: bytes) -> None:
        if message.method == INITIALIZE:
            self._states = {(INITIALIZE, None): (line, message.id)}
        elif message.method in LATEST:
            self._states[str(message.method), None] = (line, message.id)
        elif message.method == SUBSCRIBE:
            self._states[SUBSCRIBE, _word(message.params, "uri")] = (line, message.id)
        elif message.method == "resources/unsubscribe":
            self._states.pop((SUBSCRIBE, _word(message.params, "uri")), None)
        elif message.method == CANCELLED:
            self._subscriptions.end(_word(message.params, "requestId"))

    async def _ask(self, message: jsonrpc.Envelope, line: bytes) -> None:
        position = self._addressee(message)
        if position is None:
            if message.method == INITIALIZE:
                self._states.clear()  # no server was greeted
            if message.id is not UNSET:
                await self._tell(jsonrpc.refusal(message.id, jsonrpc.INTERNAL_ERROR, self._absence))
            return
        if message.id is not UNSET and message.method == LISTEN:
            self._subscriptions.begin(message.id, line, position)
        elif message.id is not UNSET:
            position.owes(message.id)
        await self._hand(line, position)

    def _addressee(self, message: jsonrpc.Envelope) -> Position | None:
        """A cancellation goes to the server that was asked, which may be about to leave."""
        if message.method == CANCELLED:
            meant = _word(message.params, "requestId")
            for position in self._leaving:
                if meant in position.pending:
                    return position
        return self._current

    async def _hand(self, line: bytes, position: Position | None) -> None:
        if position is not None:
            with suppress(MCPRelayError):  # it ended; its reader sees that, and answers what it owes
                await position.channel.send(line)

    # ------------------------------------------------------------------------------------------------ the server's end

    async def plug(self, channel: Channel, *, grace: float) -> bool:
        """Let a new server take over, once it knows what the old one was told. Whether it did.

        Args:
            channel: Where it is reached. It is closed where it does not take over, and when it ends.
            grace: Seconds that the old one has to finish what it is doing.
        """
        position = Position(channel)
        position.reader = asyncio.create_task(self._listen(position))
        face = await self._face(position)
        if face is None:
            self._tried.set()
            await self._unplug(position)
            return False
        old, self._current = self._current, position
        self._tried.set()
        for line in self._subscriptions.moved(position):
            await self._hand(line, position)
        if old is not None:
            await self._retire(old, grace=grace)
        await self._tell_of_changes(face)
        return True

    async def _face(self, position: Position) -> Raw | None:
        """Wait until it answers, and tell it what makes the session. Gives what it says of itself; None for failure."""
        ready = position.repeated(READY)
        await self._hand(jsonrpc.request(READY, "ping", b"{}"), position)
        face = await ready
        for (method, _), (line, request_id) in tuple(self._states.items()):
            if face is None:
                break
            answer = None if isinstance(request_id, UnsetType) else position.repeated(request_id)
            await self._hand(line, position)
            if answer is not None and method == INITIALIZE:
                face = await answer
        return face

    async def _retire(self, position: Position, *, grace: float) -> None:
        self._leaving.add(position)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await position.idle.wait()
        await self._unplug(position)
        self._leaving.discard(position)

    async def _unplug(self, position: Position) -> None:
        await position.channel.aclose()
        if position.reader is not None:
            await position.reader

    async def _tell_of_changes(self, face: Raw) -> None:
        """What the new server offers may be different: the client looks again, as far as it was promised notice.

        This is for sessions. Who listens by a request is told when the new server has acknowledged that.
        """
        for kind in LISTS:
            if _offers(face, kind, "listChanged"):
                await self._tell(notice((f"notifications/{kind}/list_changed", None)))
        for method, uri in tuple(self._states) if _offers(face, "resources", "subscribe") else ():
            if method == SUBSCRIBE and isinstance(uri, str):
                await self._tell(notice((UPDATED, uri)))

    async def _listen(self, position: Position) -> None:
        while line := await position.channel.receive():
            await self._from_server(line, position)
        await self._over(position)

    async def _from_server(self, line: bytes, position: Position) -> None:
        message = jsonrpc.parse(line)
        if isinstance(message, jsonrpc.Envelope) and message.id is not UNSET:
            if message.is_request:
                self._asked[message.id] = position
            elif position.swallows(message.id, None if isinstance(message.result, UnsetType) else message.result):
                return
            else:
                position.answered(message.id)
        instead = None if isinstance(message, jsonrpc.Malformed) else self._subscriptions.judge(message, position)
        for each in (line,) if instead is None else instead.client:
            await self._tell(each)
        for each in () if instead is None else instead.server:
            await self._hand(each, position)

    async def _over(self, position: Position) -> None:
        """It ended. What it owes is answered with the reason; what the client listens to waits for the next one."""
        position.over()
        self._asked = {each: asked for each, asked in self._asked.items() if asked is not position}
        by_itself = position is self._current
        if by_itself:
            self._current = None
            code = getattr(position.channel, "exit_code", None)
            self._absence = f"the server exited{'' if code is None else f' with code {code}'}"
        reason = self._absence if by_itself else "the server was exchanged before it had answered; ask again"
        for request_id in tuple(position.pending):
            position.answered(request_id)
            await self._tell(jsonrpc.refusal(request_id, jsonrpc.INTERNAL_ERROR, reason))
        if by_itself:
            self._ended()

    async def _tell(self, line: bytes) -> None:
        with suppress(MCPRelayError):  # the client is gone, which `run` sees
            await self._client.send(line)

    async def aclose(self) -> None:
        """Unplug every server."""
        current, self._current = self._current, None
        for position in (*self._leaving, *([current] if current else [])):
            await self._unplug(position)


def _member(params: Raw | UnsetType, name: str) -> Any:
    """A member of an object, or None."""
    if isinstance(params, UnsetType):
        return None
    try:
        found = msgspec.json.decode(params)
    except msgspec.DecodeError:
        return None
    return found.get(name) if isinstance(found, dict) else None


def _offers(face: Raw, kind: str, what: str) -> bool:
    """Whether a server declares something of a kind."""
    offered = _member(face, "capabilities")
    capability = offered.get(kind) if isinstance(offered, dict) else None
    return isinstance(capability, dict) and capability.get(what) is True


def _word(params: Raw | UnsetType, name: str) -> int | str | None:
    """A member that names something, or None."""
    found = _member(params, name)
    return found if isinstance(found, int | str) else None
