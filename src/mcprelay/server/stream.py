"""One event stream: messages in order, on whichever HTTP response the client reads it at the moment.

A stream outlives its response where there is an event log: then every event has an id, is in the log before the id is
shown, and a later response goes on after any of them (transports, "Resumability and Redelivery").

A reader that is slow slows its writer down (`drain`); what is told without waiting is bounded by the `outbox`.

The module knows ASGI's `send` and frames. It does not know what the messages mean beyond that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from mcprelay.ports import EventLog
from mcprelay.server.outbox import Outbox
from mcprelay.wire import sse

if TYPE_CHECKING:
    Source = Callable[[], "list[bytes] | None"]
    Joined = Literal["joined", "unknown", "superseded"]

Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

logger = logging.getLogger("mcprelay.server")

HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
COMMENT = sse.comment("still here")


class Pace(Struct, frozen=True):
    """How streams behave.

    Attributes:
        keep_alive: Seconds of silence after which a stream gets a comment; 0 for never.
        stream_bytes: How much may wait for a slow reader; see `outbox`.
    """

    keep_alive: float
    stream_bytes: int


class Reply:
    """One HTTP response that is an event stream."""

    __slots__ = ("_send", "begun", "over")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False
        self.over = False

    async def write(self, chunk: bytes, *, last: bool = False) -> None:
        """Write a piece of the stream, and its head before the first one. After the end, nothing is written."""
        if self.over:
            return
        self.over = last
        try:
            if not self.begun:
                self.begun = True
                await self._send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await self._send({"type": "http.response.body", "body": chunk, "more_body": not last})
        except Exception as error:  # noqa: BLE001 - the client is gone, and each host has its own way to say so
            logger.debug("a client is gone: %r", error)
            self.over = True


class Track(Struct, frozen=True):
    """Where the events of a stream are kept.

    Attributes:
        log: The log.
        name: What the stream is called in it.
        label: What the ids that readers see begin with.
        primed: Whether a response begins with an event that has an id and no data, so that its reader can resume.
    """

    log: EventLog
    name: str
    label: str
    primed: bool

    async def framed(self, message: bytes) -> bytes:
        """An event whose id can be resumed from, because it is kept by now. One that cannot be kept has no id."""
        try:
            event_id = await self.log.append(self.name, message)
        except Exception:  # whatever a log raises, the message is owed
            logger.exception("the event log failed; an event of %s cannot be resumed from", self.name)
            return sse.frame(message) if message else b""
        return sse.frame(message, id=self.label + event_id)

    async def knows(self, event_id: str) -> bool:
        """Whether the log has an event of this stream under that id (still)."""
        try:
            async for _ in self.log.after(self.name, event_id):
                break
        except KeyError:
            return False
        return True

    async def replay(self, after: str, reply: Reply) -> bool:
        """Write what follows an event again. False when the log does not know it (any more), and nothing is written."""
        try:
            async for event_id, data in self.log.after(self.name, after):
                if data:
                    await reply.write(sse.frame(data, id=self.label + event_id))
        except KeyError:
            return False
        return True


class Stream:
    """One event stream.

    Args:
        pace: How it behaves.
        reply: The response that it is written on, or None for one that is attached later.
        track: Where its events are kept, if they are.
        source: Where more messages come from when all others are written: called while someone reads, and after
            `wake`. It gives None at its end, which ends the stream.
        frame: Makes an event of a message, where its events are not kept.
    """

    __slots__ = (
        "_closing", "_frame", "_handle", "_joining", "_last_write", "_loop", "_pace", "_parting", "_queue", "_reply",
        "_silent", "_source", "_task", "_timer", "_waiters", "_writing", "track",
    )  # fmt: skip

    def __init__(
        self,
        pace: Pace,
        reply: Reply | None = None,
        *,
        track: Track | None = None,
        source: Source | None = None,
        frame: Callable[[bytes], bytes] = sse.frame,
    ) -> None:
        self._pace = pace
        self._reply = reply
        self.track = track
        self._source = source
        self._frame = frame
        self._queue = Outbox(pace.stream_bytes)
        self._joining: tuple[Reply, str | None, asyncio.Future[Joined]] | None = None
        self._parting: int | None = None
        self._closing = False
        self._silent = False
        self._writing = False
        self._handle: asyncio.Handle | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: list[asyncio.Future[None]] | None = None
        self._last_write = 0.0
        self._loop = asyncio.get_running_loop()

    @property
    def ended(self) -> bool:
        """Whether its last message is on it."""
        return self._closing

    # --- what goes in

    def push(self, message: bytes) -> None:
        """Put a message on the stream. Never waits."""
        if not self._closing:
            self._queue.put(message)
            self.wake()

    def attach(self, reply: Reply, after: str | None = None) -> asyncio.Future[Joined]:
        """Go on with another response, after the event of that id (the log's own) or from now on.

        A response that the stream had before ends. What this gives tells how it went: where the event is unknown,
        nothing is written and the stream stays where it was.
        """
        self._supersede()
        joined: asyncio.Future[Joined] = self._loop.create_future()
        self._joining = (reply, after, joined)
        self.wake()
        return joined

    def _supersede(self) -> None:
        """Whoever waits to join does not any more."""
        joining, self._joining = self._joining, None
        if joining is not None and not joining[2].done():
            joining[2].set_result("superseded")

    def detach(self, reply: Reply) -> None:
        """That response is gone. What comes is kept for a later one, where there is a log."""
        reply.over = True
        if self._reply is reply:
            self._reply = None
        if self._joining is not None and self._joining[0] is reply:
            self._joining = None

    def part(self, retry_ms: int) -> None:
        """End the response after what is queued, and tell its reader to come back for the rest in `retry_ms`."""
        if self.track is not None:
            self._parting = retry_ms
            self.wake()

    async def finish(self, message: bytes | None = None) -> None:
        """Put the last message on the stream and wait until all is written and the response has ended."""
        if message is not None:
            self.push(message)
        self._closing = True
        self.wake()
        await self.drain()
        self.close()

    def close(self) -> None:
        """Nothing more is written."""
        self._closing = True
        self._supersede()
        self._queue.take()
        for handle in (self._timer, self._handle):
            if handle is not None:
                handle.cancel()
        self._timer = self._handle = None

    # --- writing: one at a time, by a task that exists while there is something, or by whoever waits for it

    def wake(self) -> None:
        """Something is to be written: a message, the head of a response that has none yet, or what the source has."""
        if not self._writing and self._handle is None:
            self._handle = self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._handle = None
        self._task = self._loop.create_task(self._write())

    async def drain(self) -> None:
        """Wait until everything so far is handed to the transport."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
            await self._write()
        elif self._writing or (self._task is not None and not self._task.done()):
            waiter = self._loop.create_future()
            self._waiters = [*(self._waiters or ()), waiter]
            await waiter

    async def _write(self) -> None:
        if self._writing:
            return
        self._writing = True
        try:
            await self._open_reply()
            while await self._step():
                pass
            if self._closing and self._reply is not None:
                await self._reply.write(b"", last=True)
        finally:
            self._writing = False
            self._release()
        self._rest()

    def _release(self) -> None:
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    async def _step(self) -> bool:
        """Write something. False when there is nothing to write."""
        if self._joining is not None:
            await self._join(*self._joining)
        elif self._queue:
            await self._flush()
        elif self._parting is not None:
            await self._leave(self._parting)
        elif self._silent and self._reply is not None:
            await self._put(self._reply, COMMENT)
        elif self._source is not None and self._reply is not None and not self._closing:
            return self._drawn(self._source())
        else:
            return False
        return True

    def _drawn(self, messages: list[bytes] | None) -> bool:
        if messages is None:
            self._closing = True
            return False
        for message in messages:
            self._queue.put(message)
        return bool(messages)

    async def _flush(self) -> None:
        batch, track = self._queue.take(), self.track
        frames = [self._frame(message) if track is None else await track.framed(message) for message in batch]
        if self._reply is not None:
            await self._put(self._reply, b"".join(frames), last=self._closing and not self._queue)

    async def _leave(self, retry_ms: int) -> None:
        """The response ends and the stream does not (transports, "the server MAY close the connection")."""
        self._parting = None
        reply, self._reply = self._reply, None
        if reply is not None:
            await reply.write(b"retry: %d\n\n" % retry_ms, last=True)

    async def _open_reply(self) -> None:
        """The first bytes of a response."""
        reply = self._reply
        if reply is not None and not reply.begun:
            first = await self.track.framed(b"") if self.track is not None and self.track.primed else b""
            if first or not self._queue:
                await self._put(reply, first or COMMENT)

    async def _join(self, reply: Reply, after: str | None, joined: asyncio.Future[Joined]) -> None:
        """Replay what the reader has missed, then let this response be the stream's.

        Nothing is appended to the log meanwhile, because only this writer appends.
        """
        known = after is None or (self.track is not None and await self.track.replay(after, reply))
        if self._joining is None or self._joining[0] is not reply:
            return
        self._joining = None
        if known:
            old, self._reply = self._reply, reply
            if old is not None:
                await old.write(b"", last=True)
            if after is not None and not reply.begun:
                await reply.write(COMMENT)
            await self._open_reply()
        if not joined.done():
            joined.set_result("joined" if known else "unknown")

    async def _put(self, reply: Reply, chunk: bytes, *, last: bool = False) -> None:
        self._silent = False
        self._last_write = self._loop.time()
        await reply.write(chunk, last=last)

    # --- keeping a quiet stream alive (streamable-http: an SSE comment)

    def _rest(self) -> None:
        if self._reply is None or self._closing or self._timer is not None or self._pace.keep_alive <= 0:
            return
        self._timer = self._loop.call_later(self._pace.keep_alive, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self._reply is None or self._closing:
            return
        silence = self._loop.time() - self._last_write
        if silence < self._pace.keep_alive * 0.9:
            self._timer = self._loop.call_later(self._pace.keep_alive - silence, self._tick)
        elif not self._writing:
            self._silent = True
            self.wake()
