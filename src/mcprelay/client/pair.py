"""The HTTP+SSE pair of the oldest revision as a `Channel`: a stream of messages one way, a POST for each the other way.

The server's first event names the address to post to (the oldest transports page, "HTTP with SSE"). It must be at the
server's own origin: credentials go nowhere else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from mcprelay.client import failure
from mcprelay.client.courier import Refusal
from mcprelay.client.deadline import is_cancelled
from mcprelay.client.stream import settle
from mcprelay.core.dialer import Addressed, Dialer, Kind, kind_of
from mcprelay.errors import Evidence, LimitExceeded
from mcprelay.wire import sse
from mcprelay.wire.field import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.client.call import Call
    from mcprelay.client.courier import Courier, Patience
    from mcprelay.client.setting import Settings
    from mcprelay.errors import CallFailed
    from mcprelay.ports import Reply

_CONNECTIONS = 3
"""The stream's, one that a call is posted over, and one for what must be said while that POST is held: answers."""


class PairChannel:
    """Both ways of the pair. Made by `open`.

    Attributes:
        broken: What the stream broke off with, or None.
    """

    def __init__(
        self, url: str, courier: Courier, settings: Settings, failed: Callable[[Call, Refusal], CallFailed]
    ) -> None:
        self._url = url
        self._courier = courier
        self._settings = settings
        self._failed = failed
        self._dialer = Dialer(url)
        self._loop = asyncio.get_running_loop()
        self._endpoint: asyncio.Future[str] = self._loop.create_future()
        self._ready: deque[bytes | LimitExceeded] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self.broken: Exception | None = None
        self._reader: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        url: str,
        courier: Courier,
        *,
        settings: Settings,
        failed: Callable[[Call, Refusal], CallFailed],
        due: float,
    ) -> PairChannel:
        """Open the stream and wait for the address, until `due`. `failed` makes a refusal the failure of its call.

        Raises:
            CallFailed: There is no such stream here, or no connection beside it.
        """
        if settings.connections < _CONNECTIONS:
            few = f"it takes {_CONNECTIONS} connections at once, and connections={settings.connections:g}"
            raise failure.unconnected(None, few)
        channel = cls(url, courier, settings, failed)
        channel._reader = channel._loop.create_task(channel._read())
        waiting: list[asyncio.Future[Any]] = [channel._endpoint, channel._reader]
        try:
            async with asyncio.timeout_at(due):
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if channel._endpoint.done():
                channel._dialer = Dialer(channel._endpoint.result())
                return channel
        except TimeoutError:
            channel.broken = failure.unconnected(
                None, f"no endpoint event came within connect_timeout={settings.connect_timeout:g} seconds"
            )
        except BaseException:
            await channel.aclose()
            raise
        error = channel.broken or failure.unconnected(None, "the stream ended before its endpoint event")
        await channel.aclose()
        raise error

    async def _read(self) -> None:
        try:
            answer = await self._courier.deliver(self._dialer.get(), self._receive)
            if isinstance(answer, Refusal):
                self.broken = failure.http(None, answer.status, answer.headers, answer.body)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            self.broken = failure.lost(None, Evidence.MAYBE_SENT, "the HTTP client gave up")
        except Exception as error:  # noqa: BLE001 - kept, and told when the end is received
            self.broken = error
        finally:
            self._ended = True
            self._wake()

    async def _receive(self, reply: Reply) -> None:
        if kind_of(reply.status, reply.headers) is not Kind.STREAM:
            media_type = reply.headers.get("content-type", "none")
            raise failure.invalid(
                None, f"a GET is answered with the content type {shown(media_type)}, not with a stream"
            )
        parser = sse.Parser(limit=self._settings.response_bytes)
        async for chunk in reply.chunks():
            for event in parser.feed(chunk):
                self._take(event)

    def _take(self, event: sse.Event | sse.Oversized) -> None:
        if isinstance(event, sse.Oversized):
            self._ready.append(LimitExceeded("response_bytes", event.limit, what="an event"))
        elif event.event == "endpoint":
            if not self._endpoint.done():
                self._endpoint.set_result(self._address(event.data))
        elif event.event == "message":
            self._ready.append(event.data)
        self._wake()

    def _address(self, data: bytes) -> str:
        address = urljoin(self._url, data.decode("utf-8", "replace").strip())
        if origin(address) != origin(self._url):
            raise failure.invalid(None, "the endpoint event names an address at another origin", data)
        return address

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> bytes:
        """See `Channel`."""
        while not self._ready:
            if self._ended:
                return b""
            self._waiter = self._loop.create_future()
            await self._waiter
        item = self._ready.popleft()
        if isinstance(item, LimitExceeded):
            raise item
        return item

    async def send(self, data: bytes, *, call: Call | None = None, patience: Patience | None = None) -> None:
        """See `Channel`: a POST, which does not wait for others. Returns when the server has answered it.

        Args:
            data: The message.
            call: What it asks, if it is a request: its failure names it, and `call.request` knows the evidence.
            patience: Told before and after a person may be asked for consent.

        Raises:
            CallFailed: The server did not take this message. The channel goes on.
        """
        request = self._dialer.post(Addressed(data), revision=None)
        if call is not None:
            call.request = request
        refusal = await self._courier.deliver(request, _accepted, call=call, patience=patience)
        if refusal is None:
            return
        if call is None:
            raise failure.http(None, refusal.status, refusal.headers, refusal.body)
        raise self._failed(call, refusal)

    async def aclose(self) -> None:
        """See `Channel`."""
        self._ended = True
        if self._reader is not None and not self._reader.done():
            self._reader.cancel()
            await asyncio.wait([self._reader])
        if not self._endpoint.done():
            self._endpoint.cancel()
        self._wake()


async def _accepted(reply: Reply) -> None:
    """The answer comes on the stream, so nothing of the body is waited for."""
    settle(reply)


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of a URL."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port
