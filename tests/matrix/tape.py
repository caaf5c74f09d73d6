"""Everything that goes over a wire, kept and held against the schema of its revision as it passes.

`Tape` knows messages and which request an answer belongs to. `TapedChannel` and `TapedSender` stand between a client
and its wire. None of them changes anything.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from mcprelay.ports import Channel, Reply, Request, Sender
from mcprelay.wire import sse
from tests.wire_schema import WireViolation, validate_message

Side: TypeAlias = Literal["client", "server"]
Message: TypeAlias = dict[str, Any]

VERSION = "io.modelcontextprotocol/protocolVersion"
MOST = 2**24


@dataclass(frozen=True)
class Passed:
    """One message that passed, or a batch of them."""

    sender: Side
    message: Any


class Tape:
    """Messages of one wire, in the order in which they passed.

    Args:
        revision: The name of the revision that is spoken where a message does not say it itself; None to check nothing.

    Attributes:
        passed: The messages.
        requests: HTTP requests, as they were sent.
        faults: What was wrong with messages.
        unheard: A method that no revision has, and that a test calls on purpose.
    """

    unheard = "house/unheard"

    def __init__(self, revision: str | None) -> None:
        self.revision = revision
        self.passed: list[Passed] = []
        self.requests: list[Request] = []
        self.faults: list[str] = []
        self._asked: dict[tuple[Side, Any], tuple[str, str]] = {}

    def take(self, sender: Side, data: bytes, *, refusing: bool = False) -> None:
        """Keep what passes. The body of a refused HTTP request may be an error without an id (transports)."""
        try:
            message = json.loads(data)
        except ValueError as error:
            self.faults.append(f"not JSON from the {sender}: {error}: {data[:200]!r}")
            return
        self.check(Passed(sender, message), refusing=refusing)

    def check(self, passed: Passed, *, refusing: bool = False) -> None:
        """Keep a decoded message, and note what is wrong with it."""
        self.passed.append(passed)
        if self.revision is None:
            return
        for one in passed.message if isinstance(passed.message, list) else [passed.message]:
            whole = {"id": 0, **one} if refusing and "id" not in one else one
            try:
                self._check(passed.sender, whole, refusing=refusing)
            except WireViolation as error:
                self.faults.append(str(error))

    def _check(self, sender: Side, message: Message, *, refusing: bool) -> None:
        method = None
        revision = self.revision or ""
        if "method" in message:
            revision = self._revision_of(message)
            if "id" in message:
                self._asked[sender, message["id"]] = (message["method"], revision)
        elif message.get("id") is not None:
            other: Side = "server" if sender == "client" else "client"
            asked = self._asked.pop((other, message["id"]), None)
            if asked is None and not refusing:
                self.faults.append(f"the {sender} answers what nobody asked: {message}")
                return
            method, revision = asked or (None, revision)
        if message.get("method") == self.unheard:
            return
        validate_message(revision, message, sender=sender, request_method=method)

    def _revision_of(self, message: Message) -> str:
        """What a request says that it speaks; a probe may speak another revision than what is agreed on after it."""
        said = (message.get("params") or {}).get("_meta", {}).get(VERSION)
        return said if isinstance(said, str) else self.revision or ""

    def said(self, sender: Side, method: str | None = None) -> list[Message]:
        """What one side said, in the order in which it passed; only calls and notices of a method where one is given.

        The messages of a batch are counted one by one.
        """
        found: list[Message] = []
        for one in self.passed:
            if one.sender == sender:
                found += one.message if isinstance(one.message, list) else [one.message]
        return found if method is None else [message for message in found if message.get("method") == method]

    def clear(self) -> None:
        """Forget what passed; what was asked is remembered."""
        self.passed.clear()
        self.requests.clear()


class TapedChannel:
    """The client's end of a channel, with everything that it does."""

    def __init__(self, channel: Channel, tape: Tape) -> None:
        self._channel = channel
        self._tape = tape

    def __getattr__(self, name: str) -> Any:
        """What a channel has beyond the port, where it has it; the ways that messages take are taped as well."""
        power = getattr(self._channel, name)
        if name in ("offer", "send_nowait"):
            return lambda data: self._sent(power, data)
        if name == "attach":
            return lambda take: power(lambda data: self._arrived(take, data))
        return power

    def _sent(self, send: Callable[[bytes], Any], data: bytes) -> Any:
        number = send(data)
        if number:  # else it waits for room, and is sent another way
            self._tape.take("client", data)
        return number

    def _arrived(self, take: Callable[[Any], None], data: Any) -> None:
        if isinstance(data, bytes) and data:
            self._tape.take("server", data)
        take(data)

    async def receive(self) -> bytes:
        """See `Channel`."""
        data = await self._channel.receive()
        if data:
            self._tape.take("server", data)
        return data

    async def send(self, data: bytes) -> None:
        """See `Channel`."""
        self._tape.take("client", data)
        await self._channel.send(data)

    async def aclose(self) -> None:
        """See `Channel`."""
        await self._channel.aclose()


class TapedSender:
    """An HTTP client, and the messages in what it sends and gets."""

    def __init__(self, sender: Sender, tape: Tape) -> None:
        self._sender = sender
        self._tape = tape

    @asynccontextmanager
    async def send(self, request: Request) -> AsyncIterator[Reply]:
        """See `Sender`."""
        self._tape.requests.append(request)
        if request.body:
            self._tape.take("client", request.body)
        async with self._sender.send(request) as reply:
            yield TapedReply(reply, self._tape)

    async def aclose(self) -> None:
        """See `Sender`."""
        await self._sender.aclose()


class TapedReply:
    """The reply to an HTTP request, and the messages in it."""

    def __init__(self, reply: Reply, tape: Tape) -> None:
        self._reply = reply
        self._tape = tape
        self.status = reply.status
        self.headers: Mapping[str, str] = reply.headers

    async def read(self, limit: int) -> bytes:
        """See `Reply`."""
        body = await self._reply.read(limit)
        if body and self.headers.get("content-type", "").startswith("application/json"):
            self._tape.take("server", body, refusing=self.status >= 400)
        return body

    async def chunks(self) -> AsyncIterator[bytes]:
        """See `Reply`. A message is kept when its last byte is here, before the client gets it."""
        media_type = self.headers.get("content-type", "")
        if media_type.startswith("application/json"):
            if body := await self.read(MOST):
                yield body
            return
        streams = media_type.startswith("text/event-stream")
        parser = sse.Parser(limit=MOST)
        async for chunk in self._reply.chunks():
            for event in parser.feed(chunk) if streams else ():
                if isinstance(event, sse.Event) and event.data and event.event == "message":
                    self._tape.take("server", event.data)
            yield chunk
