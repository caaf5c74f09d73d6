"""The page at the end of an authorization: a server on this machine that takes one answer and is gone.

Speaks as much HTTP as a browser's redirect needs. It answers on loopback only, takes the one request that carries the
`state` that was asked with, and turns everything else away without ending the wait: another program on this machine
must not be able to answer in the server's place, nor to keep the person's own answer out.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from mcprelay.auth.address import parse
from mcprelay.auth.flow import state_of
from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_HEAD = 16384
_PATIENCE = 10.0
"""Seconds that a connection gets to say what it wants."""

_PAGE = (
    "<!doctype html><meta charset=utf-8><title>{title}</title>"
    '<body style="font-family:system-ui,sans-serif;margin:15vh auto;max-width:30em;text-align:center">'
    "<h1>{title}</h1><p>{text}</p></body>"
)
_DONE = _PAGE.format(title="Thank you", text="The answer has arrived. You can close this window.")
_NOT_HERE = _PAGE.format(title="Not here", text="This address only takes the answer of an authorization.")


class CallbackServer:
    """Waits for one answer.

    Args:
        host: The host of the redirect URI: `127.0.0.1`, `::1`, or `localhost`.
        path: Its path.
    """

    def __init__(self, *, host: str = "127.0.0.1", path: str = "/callback") -> None:
        if host not in ("127.0.0.1", "::1", "localhost"):
            raise ConfigurationError(f"host={host!r}: a callback is taken on this machine only (127.0.0.1, localhost)")
        if not path.startswith("/"):
            raise ConfigurationError(f"path={path!r} must begin with a slash")
        self.host = host
        self.path = path
        self.port = 0
        self._state: str | None = None
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[str] | None = None
        self._visitors: set[asyncio.Task[None]] = set()

    @property
    def authority(self) -> str:
        """Host and port as they stand in the redirect URI."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def redirect_uri(self) -> str:
        """The redirect URI, once the server has started."""
        return f"http://{self.authority}{self.path}"

    async def start(self, port: int = 0, *, preferred: Sequence[str] = ()) -> None:
        """Listen.

        Args:
            port: A fixed port, or 0 for the port of a preferred redirect URI, or else any that is free.
            preferred: Redirect URIs to take up again, if their port is free.

        Raises:
            ConfigurationError: The fixed port is taken.
        """
        self._answer = asyncio.get_running_loop().create_future()
        for candidate in [port] if port else [*self._ports(preferred), 0]:
            with contextlib.suppress(OSError):
                self._server = await asyncio.start_server(self._serve, self._bind_to, candidate, limit=_LONGEST_HEAD)
                self.port = self._server.sockets[0].getsockname()[1]
                return
        raise ConfigurationError(
            f"port {port} of {self.host} is taken, and the redirect URI needs it: end what uses it, or take another"
        )

    @property
    def _bind_to(self) -> str:
        return "127.0.0.1" if self.host == "localhost" else self.host

    def _ports(self, preferred: Sequence[str]) -> list[int]:
        ports: list[int] = []
        for uri in preferred:
            with contextlib.suppress(ValueError):
                place = parse(uri)
                if (place.scheme, place.host, place.path) == ("http", self.host, self.path):
                    ports.append(place.port)
        return ports

    def expect(self, state: str | None) -> None:
        """Take the answer with this `state` and no other; None takes the first that comes."""
        self._state = state

    async def answer(self) -> str:
        """The URL of the answer, once it has come."""
        assert self._answer is not None  # noqa: S101 - `start` comes first
        return await self._answer

    async def aclose(self) -> None:
        """Stop listening, and hang up on whoever is still connected."""
        if self._server is None:
            return
        self._server.close()
        if self._answer is not None:
            self._answer.cancel()
        for visitor in self._visitors:
            visitor.cancel()
        await asyncio.gather(*self._visitors, return_exceptions=True)
        await self._server.wait_closed()

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitor = asyncio.create_task(self._receive(reader, writer))
        self._visitors.add(visitor)
        visitor.add_done_callback(self._visitors.discard)

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                url = self._wanted(head.decode("latin-1"))
                writer.write(_page("200 OK", _DONE) if url else _page("404 Not Found", _NOT_HERE))
                await writer.drain()
            if url and self._answer is not None and not self._answer.done():
                self._answer.set_result(url)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # a visitor that is no browser; the wait goes on (a timeout is an OSError)
        finally:
            writer.close()

    def _wanted(self, head: str) -> str | None:
        """The URL asked for, when it is the answer that is waited for.

        The Host must be ours: a page of another site can make a browser send requests here under a name of its own.
        """
        line, *fields = head.split("\r\n")
        method, _, rest = line.partition(" ")
        target = rest.partition(" ")[0]
        hosts = [
            value.strip() for name, _, value in (field.partition(":") for field in fields) if name.lower() == "host"
        ]
        url = f"http://{self.authority}{target}"
        if method != "GET" or hosts != [self.authority] or target.partition("?")[0] != self.path:
            return None
        return url if self._state is None or state_of(url) == self._state else None


def _page(status: str, text: str) -> bytes:
    body = text.encode("utf-8")
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nContent-Security-Policy: default-src 'none'; "
        "style-src 'unsafe-inline'\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
