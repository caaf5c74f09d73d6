"""The `Sender` on aiohttp: pool, TLS, proxies, and exact evidence. Imported on first use.

aiohttp keeps the head of a request back until its body is written, so nothing has left for as long as the body's
`write_with_length` was not entered. Redirects and cookies are off; compression is not asked for, and what comes
compressed all the same is bounded while it is decompressed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import os
import socket
import ssl as tls
import weakref
import zlib
from typing import TYPE_CHECKING, Any, Self

import aiohttp
from aiohttp.payload import Payload
from multidict import CIMultiDict
from yarl import URL

from mcprelay.client.certificate import fault_of
from mcprelay.client.failure import PLAIN, PROXY_AUTH, proxy_refusal
from mcprelay.errors import MAYBE_SENT, NOT_SENT, ConnectionLost, LimitExceeded, NotSent, told

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping
    from types import TracebackType

    from mcprelay.ports import Request

KEEP_ALIVE = 15.0
"""How long a connection that is not used is kept, in seconds."""
DRAIN_SECONDS = 1.0
"""How long the rest of a stream whose answer is there may take, so that its connection can be used again."""
_DRAIN_BYTES = 2**16
_PIECE = 2**16
_HEAD_BYTES = 2**16
_URLS = 256


class _Body(Payload):
    """A request's body, which notes when it is about to leave, and stays here once its sender is being cancelled.

    aiohttp may write it in a task of its own, which runs a moment later: whoever gave the request up in between was
    told that nothing had left.
    """

    _autoclose = True

    def __init__(self, request: Request, loop: asyncio.AbstractEventLoop | None) -> None:
        self._value = request.body or b""
        self._headers = _JSON
        self._size = len(self._value)
        self._request = request
        self._sender = asyncio.current_task(loop)
        self._cancelling = 0 if self._sender is None else self._sender.cancelling()

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """See aiohttp."""
        return self._value.decode(encoding, errors)  # type: ignore[no-any-return]

    async def write(self, writer: Any) -> None:
        """See aiohttp."""
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: Any, content_length: int | None) -> None:
        """See aiohttp."""
        if self._sender is not None and self._sender.cancelling() > self._cancelling:
            raise asyncio.CancelledError("the request was given up before it was written")
        transport = writer.transport
        if transport is not None and not transport.is_closing():  # else aiohttp refuses to write, and nothing leaves
            self._request.evidence = MAYBE_SENT
            if getattr(transport, "max_size", 0) > _PIECE:
                # asyncio asks for 256 KB at each read, which the system maps and unmaps every time.
                transport.max_size = _PIECE
        await writer.write(self._value)


_JSON: CIMultiDict[str] = CIMultiDict({"Content-Type": "application/json"})


class HttpSender:
    """An HTTP client for one event loop at a time.

    One that is dropped, or whose loop ends, without `aclose` closes its connections by itself and says nothing.

    Args:
        connect_timeout: Seconds that a connection, TLS included, may take; `math.inf` is for ever.
        connections: How many connections may be open at once; `math.inf` is as many as there are.
        proxy: The URL of an HTTP proxy.
        ssl: How TLS is done: custom authorities, a client certificate. The system's authorities when left out.
        trust_env: Whether the environment's proxies are used.
    """

    def __init__(
        self,
        *,
        connect_timeout: float = 10.0,
        connections: float = 1024,
        proxy: str | None = None,
        ssl: tls.SSLContext | None = None,
        trust_env: bool = False,
    ) -> None:
        self._connect_timeout = connect_timeout
        self._connections = 0 if connections == math.inf else int(connections)  # of which zero is aiohttp's no limit
        self._proxy = None if proxy is None else URL(proxy)
        self._ssl = True if ssl is None else ssl
        self._trust_env = trust_env
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lifetime: Any = None  # the generator that closes the session
        self._forsaken: weakref.finalize[..., HttpSender] | None = None
        self._urls: dict[str, URL] = {}
        self._draining: set[asyncio.Task[None]] = set()
        self._closed = False

    def send(self, request: Request) -> Exchange:
        """See `Sender`."""
        return Exchange(self, request)

    async def aclose(self) -> None:
        """See `Sender`."""
        self._closed = True
        for task in list(self._draining):
            task.cancel()
        lifetime, self._lifetime, self._session = self._lifetime, None, None
        if self._forsaken is not None:
            self._forsaken.detach()
        if lifetime is not None and not lifetime.ag_running:  # else the loop is ending it just now
            await lifetime.aclose()

    async def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise NotSent("the HTTP client is closed")
        self._loop = asyncio.get_running_loop()
        session = self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=KEEP_ALIVE, ssl=self._ssl),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=None if self._connect_timeout == math.inf else self._connect_timeout
            ),
            trust_env=self._trust_env,
            max_line_size=_HEAD_BYTES,
            max_field_size=_HEAD_BYTES,
        )
        if self._forsaken is not None:
            self._forsaken.detach()
        self._forsaken = weakref.finalize(self, _forsake, session, self._loop)
        self._lifetime = _lifetime(session)
        await anext(self._lifetime)
        return session

    def _url(self, url: str) -> URL:
        parsed = self._urls.get(url)
        if parsed is None:
            if len(self._urls) >= _URLS:
                self._urls.clear()
            parsed = self._urls[url] = URL(url, encoded="%" in url)
        return parsed

    async def begin(self, request: Request) -> aiohttp.ClientResponse:
        """Send a request, and give the response once its head is there. See `Sender.send` for what is raised."""
        session = self._session
        if session is None or session.closed:
            session = await self._open()
        with_body = request.body is not None
        request.evidence = NOT_SENT if with_body else MAYBE_SENT
        try:
            return await session.request(
                request.method,
                self._url(request.url),
                data=_Body(request, self._loop) if with_body else None,
                headers=CIMultiDict(request.headers),
                allow_redirects=False,
                proxy=self._proxy,
            )
        except aiohttp.ConnectionTimeoutError as error:
            request.evidence = NOT_SENT
            raise NotSent(f"no connection within connect_timeout={self._connect_timeout:g} seconds") from error
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            request.evidence = NOT_SENT
            raise NotSent(_sentence(error)) from error
        except (aiohttp.ClientError, OSError, RuntimeError, ValueError) as error:
            if request.evidence is NOT_SENT:
                raise NotSent(_unwritten(error)) from error
            raise ConnectionLost(_sentence(error), evidence=request.evidence) from error

    def drain_later(self, response: aiohttp.ClientResponse) -> None:
        """Read what is left of a body beside the calls."""
        task = asyncio.ensure_future(_drain(response))
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)


async def _lifetime(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    """Closes a session at the end. A loop ends its generators before it ends, and those that are dropped."""
    try:
        yield
    finally:
        await session.close()


def _forsake(session: aiohttp.ClientSession, loop: asyncio.AbstractEventLoop) -> None:
    """The last resort, where a loop was closed without having ended its generators: aiohttp would speak of it."""
    connector = session.connector
    if connector is not None and loop.is_closed():
        session.detach()
        with contextlib.suppress(StopIteration, RuntimeError):
            next(connector.close().__await__())  # which has nothing to wait for where there is no loop


class Exchange:
    """One request and its reply: the context that `HttpSender.send` gives, and the `Reply` inside it."""

    __slots__ = ("_answered", "_request", "_response", "_sender", "headers", "status")

    def __init__(self, sender: HttpSender, request: Request) -> None:
        self._sender = sender
        self._request = request
        self._response: aiohttp.ClientResponse = None  # type: ignore[assignment]  # there once the context is entered
        self._answered = False
        self.status = 0
        self.headers: Mapping[str, str] = {}

    async def __aenter__(self) -> Self:
        response = self._response = await self._sender.begin(self._request)
        self.status = response.status
        self.headers = _joined(response.headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        response = self._response
        if response.content.at_eof():
            response.release()
        elif self._answered and kind is None:
            self._sender.drain_later(response)
        else:
            response.close()

    @property
    def vouched(self) -> bool:
        """Whether a proxy was shown credentials with the request."""
        return "Proxy-Authorization" in self._response.request_info.headers

    def settle(self) -> None:
        """The answer is there: leaving the context need not close the stream, whose end is waited for elsewhere."""
        self._answered = True

    async def read(self, limit: int) -> bytes:
        """See `Reply`."""
        response = self._response
        length = response.headers.get("Content-Length")
        if length is not None and "Content-Encoding" not in response.headers:
            if length.isdecimal() and int(length) > limit:
                raise LimitExceeded("response_bytes", limit, actual=int(length), what="the body")
            try:
                return await response.read()
            except (aiohttp.ClientError, OSError) as error:
                raise ConnectionLost(_sentence(error), evidence=MAYBE_SENT) from error
        pieces: list[bytes] = []
        size = 0
        async for piece in self.chunks():
            size += len(piece)
            if size > limit:
                raise LimitExceeded("response_bytes", limit, what="the body")
            pieces.append(piece)
        return b"".join(pieces)

    async def chunks(self) -> AsyncIterator[bytes]:
        """See `Reply`."""
        content = self._response.content
        inflater = _inflater(self._response.headers.get("Content-Encoding", "identity"))
        try:
            while chunk := await content.readany():
                if inflater is None:
                    yield chunk
                else:
                    for piece in _inflate(inflater, chunk):
                        yield piece
        except (aiohttp.ClientError, OSError, zlib.error) as error:
            raise ConnectionLost(_sentence(error), evidence=MAYBE_SENT) from error


def _joined(headers: Any) -> dict[str, str]:
    """Header names in lower case, the values of a repeated one joined with a comma."""
    joined: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return joined


def _inflater(encoding: str) -> Any:
    """What decompresses a body that came compressed although that was not asked for, or None."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(wbits=47)
    raise ConnectionLost(f"the body has the encoding {encoding!r}, which was not asked for", evidence=MAYBE_SENT)


def _inflate(inflater: Any, chunk: bytes) -> Any:
    """Pieces of bounded size, so that a small body cannot become a large one at once."""
    while chunk and not inflater.eof:  # zlib keeps whatever comes after the end, without a bound
        piece = inflater.decompress(chunk, _PIECE)
        if piece:
            yield piece
        chunk = inflater.unconsumed_tail


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read what is left of a body, so that its connection can be used again."""
    size = 0
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while size < _DRAIN_BYTES and (chunk := await response.content.readany()):
                size += len(chunk)
    except (aiohttp.ClientError, OSError):  # TimeoutError is an OSError
        pass
    finally:
        if response.content.at_eof():
            response.release()
        else:
            response.close()


def _sentence(error: BaseException) -> str:
    """What went wrong, in one line."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the certificate of {error.host}:{error.port} {_refuted(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        hint = _unmet(error.os_error)
        whom = "the proxy " if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
        return f"cannot connect to {whom}{error.host}:{error.port} ({_reason(error.os_error)}){hint}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection without an answer"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        said = f"the proxy does not connect to the server (HTTP {error.status}: {told(error.message, most=150)})"
        vouched = "Proxy-Authorization" in error.request_info.headers
        return f"{said}; it {proxy_refusal(vouched=vouched)}" if error.status == PROXY_AUTH else said
    if isinstance(error, aiohttp.ClientResponseError):
        return f"what the server sent is no HTTP ({told(error.message, most=150)})"
    if isinstance(error, aiohttp.ClientPayloadError):
        return f"the body ended early or is no HTTP ({_why(error)})"
    if isinstance(error, zlib.error):
        return f"the body cannot be decompressed ({error})"
    if isinstance(error, OSError) and error.errno is not None:
        return f"the connection failed ({_reason(error)})"
    if isinstance(error, OSError) and isinstance(error.__cause__, OSError):
        return _sentence(error.__cause__)  # it could not be written, and this is why
    text = told(str(error).strip())
    return text or f"the connection failed ({type(error).__name__})"


def _refuted(error: Exception) -> str:
    """What is wrong with a certificate, and what to do about it."""
    what, then = fault_of(error)
    why = getattr(error, "verify_message", "") or str(error)
    return f"{what} ({told(why.rstrip('.'))}): {then}"


def _unmet(error: OSError) -> str:
    """What to do about a connection that did not come about, where that can be told from why."""
    if isinstance(error, tls.SSLError):
        is_plain = (error.reason or "").lower().replace("_", " ") in PLAIN
        return ". The server seems to speak plain HTTP there: write http://" if is_plain else ""
    return ". Is it running?" if error.errno == errno.ECONNREFUSED else ""


def _unwritten(error: BaseException) -> str:
    """Why a request did not leave: a kept connection may have been closed by its server meanwhile."""
    stale = (aiohttp.ServerDisconnectedError, aiohttp.ClientConnectionResetError)
    if isinstance(error, stale) or isinstance(error.__cause__, stale):
        return "the server closed the connection before the request was written"
    return _sentence(error)


def _why(error: aiohttp.ClientPayloadError) -> str:
    """What aiohttp says of a body, without the status that it invents for it."""
    cause = error.__cause__
    message = cause.message if isinstance(cause, aiohttp.http.HttpProcessingError) else str(error)
    return told(message.strip().rstrip("."), most=150)


def _reason(error: OSError) -> str:
    """Why, in the system's words: the loop puts its own in their place."""
    if isinstance(error, tls.SSLError):
        return told(error.reason or str(error))
    if isinstance(error, socket.gaierror) or error.errno is None or error.errno <= 0:
        return told(error.strerror or str(error)) or type(error).__name__
    return os.strerror(error.errno)
