"""The link over the HTTP+SSE pair: it hears on the stream, and each message that it sends is a POST of its own.

The server may answer a POST only once it has done what the message asks, so none waits for another: a question inside
a call is answered, and a call is cancelled, while the call's own POST is open. The one order that the protocol has is
kept by whoever shakes hands: `tell` returns when its POST was answered.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcprelay.client import failure
from mcprelay.client.deadline import is_cancelled
from mcprelay.client.ending import Ending
from mcprelay.client.line import Line
from mcprelay.client.link import Link
from mcprelay.client.progress import logger
from mcprelay.errors import CallFailed, Evidence
from mcprelay.revisions import Era

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Raw

    from mcprelay.client.call import Call
    from mcprelay.client.pair import PairChannel
    from mcprelay.client.party import Party
    from mcprelay.core.peer import Pending
    from mcprelay.ports import Request
    from mcprelay.revisions import Revision

_SPARE = 2
"""Connections that calls leave to others: the stream's own, and one for what must be said while calls are open."""


class PairLine(Line):
    """The link over the pair. So many calls as there are `connections` are posted at once; others wait, not sent.

    Args:
        channel: The pair.
        party: Who we are.
        due: Until when the connection must stand, on the loop's clock.
    """

    def __init__(self, channel: PairChannel, party: Party, *, due: float) -> None:
        super().__init__(channel, party, remembered=Era.HANDSHAKE, due=due)
        self._pair = channel
        self._turn = asyncio.Semaphore(max(1, self.settings.connections - _SPARE))
        self._posts: dict[int | str, asyncio.Task[None]] = {}
        self._stands = False

    async def start(self) -> None:
        """See `Line`."""
        await super().start()
        self._stands = True

    def _begin(self) -> None:
        self._reader = self.loop.create_task(self._read())

    async def ask(self, call: Call, revision: Revision | None) -> Raw:
        """See `Line`. The POST of a call that is over is ended, at once where nothing of it left."""
        try:
            return await super().ask(call, revision)
        finally:
            self._let_go(call)

    async def tell(self, message: bytes) -> None:
        """See `Link`. Returns when the POST was answered, or has taken as long as a connection may, all in all."""
        if not message or not self.alive:
            return
        due = self.loop.time() + self.settings.connect_timeout if self._stands else self.due
        try:
            async with asyncio.timeout_at(due):
                await self._pair.send(message)
        except (CallFailed, TimeoutError, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            logger.debug("a message to the server was lost: %r", error)

    @property
    def swamped(self) -> bool:
        """See `Link`."""
        return self._refusing > self.settings.refusal_bytes

    def _reply(self, message: bytes) -> None:
        Link._reply(self, message)  # noqa: SLF001 - no outbox here: an answer is a POST, as over HTTP

    # --- sending

    def _put_now(self, pending: Pending | None, data: bytes, send: Callable[[bytes], int]) -> bool:
        if pending is None:
            self.spawn(self.tell(data))
        else:
            pending.slot.request = None
            self._posts[pending.id] = self.started(self._post(pending, data))
        return True

    async def _post(self, pending: Pending, data: bytes) -> None:
        call: Call = pending.slot
        try:
            async with self._turn:
                pending.evidence = Evidence.MAYBE_SENT
                await self._pair.send(data, call=call, patience=self)
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            gave_up = failure.lost(call, self._evidence(pending), "the HTTP client gave up")
            gave_up.__cause__ = error
            self._refused(pending, gave_up)
        except Exception as error:  # noqa: BLE001 - headers and credentials may be the user's: it is the call's failure
            self._refused(pending, error)

    def _refused(self, pending: Pending, error: Exception) -> None:
        """A POST failed, and with it its call alone, unless the answer was faster."""
        call: Call = pending.slot
        if self.peer.pending.get(pending.id) is not pending:
            logger.debug("the POST of a call that is over failed: %s", error)
            return
        call.evidence = error.evidence if isinstance(error, CallFailed) else self._evidence(pending)
        _ = self.peer.abandon(pending)  # an answer that comes all the same is late
        self._fail(call, error)

    def _evidence(self, pending: Pending) -> Evidence:
        request: Request | None = pending.slot.request
        if request is None or pending.evidence is not Evidence.MAYBE_SENT:
            return pending.evidence
        return request.evidence

    def expired(self, call: Call, pending: Pending, notice: bytes) -> None:
        """See `Link`."""
        self._withhold(pending)
        super().expired(call, pending, notice)

    def _is_full(self, connections: float) -> bool:
        return self._turn.locked()

    def _withhold(self, pending: Pending) -> None:
        """What has not left never does."""
        if self._evidence(pending) is Evidence.NOT_SENT and (task := self._posts.get(pending.id)) is not None:
            task.cancel()

    def _let_go(self, call: Call) -> None:
        """A call is over. A server that has its request may still answer the POST; it is not waited for much longer."""
        task = self._posts.pop(call.request_id, None)  # type: ignore[arg-type]
        if task is None or task.done():
            return
        if call.evidence is Evidence.NOT_SENT:
            task.cancel()
            return
        ending = self.loop.call_later(self.settings.close_timeout, task.cancel)
        task.add_done_callback(lambda _: ending.cancel())

    # --- ending

    def _ended(self) -> Ending:
        broken = self._pair.broken
        return super()._ended() if broken is None else Ending(f"the stream broke off ({broken})", broken)

    def _settle_all(self) -> None:
        for pending in self.peer.pending.values():
            self._withhold(pending)
        super()._settle_all()
