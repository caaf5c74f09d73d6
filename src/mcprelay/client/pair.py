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
from mcprelay.core.dialer import Addressed, Dialer, Kind, kind_of
from mcprelay.errors import CallFailed, Evidence, LimitExceeded, NotSent
from mcprelay.wire import sse
from mcprelay.wire.field import shown

if TYPE_CHECKING:
    from mcprelay.client.courier import Courier
    from mcprelay.client.setting import Settings
    from mcprelay.ports import Reply


class PairChannel:
    """Both ways of the pair. Made by `open`."""

    def __init__(self, url: str, courier: Courier, settings: Settings) -> None:
        self._url = url
        self._courier = courier
        self._settings = settings
        self._dialer = Dialer(url)
        self._loop = asyncio.get_running_loop()
        self._endpoint: asyncio.Future[str] = self._loop.create_future()
        self._ready: deque[bytes | LimitExceeded] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._broken: Exception | None = None
        self._reader: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, url: str, courier: Courier, *, settings: Settings, due: float) -> PairChannel:
        """Open the stream and wait for the address, until `due`.

        Raises:
            CallFailed: There is no such stream here.
        """
        channel = cls(url, courier, settings)
        channel._reader = channel._loop.create_task(channel._read())
        waiting: list[asyncio.Future[Any]] = [channel._endpoint, channel._reader]
        try:
            async with asyncio.timeout_at(due):
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if channel._endpoint.done():
                channel._dialer = Dialer(channel._endpoint.result())
                return channel
        except TimeoutError:
            channel._broken = failure.unconnected(
                None, f"no endpoint event came within connect_timeout={settings.connect_timeout:g} seconds"
            )
        except BaseException:
            await channel.aclose()
            raise
        error = channel._broken or failure.unconnected(None, "the stream ended before its endpoint event")
        await channel.aclose()
        raise error

    async def _read(self) -> None:
        try:
            answer = await self._courier.deliver(self._dialer.get(), self._receive)
            if isinstance(answer, Refusal):
                self._broken = failure.http(None, answer.status, answer.headers, answer.body)
        except Exception as error:  # noqa: BLE001 - kept, and raised by `receive`
            self._broken = error
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

    async def send(self, data: bytes) -> None:
        """See `Channel`. A message that the server refuses is a `CallFailed`, and the channel goes on."""
        request = self._dialer.post(Addressed(data), revision=None)
        try:
            refusal = await self._courier.deliver(request, _accepted)
        except CallFailed as error:
            if error.evidence is Evidence.NOT_SENT:
                raise NotSent(str(error)) from error
            raise
        if refusal is not None:
            raise failure.http(None, refusal.status, refusal.headers, refusal.body)

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
    """The answer comes on the stream."""


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of a URL."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port
