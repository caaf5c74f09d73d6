"""Running a server: stdio, or HTTP on uvicorn, from a script (`run`) or from async code (`Running`)."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Generator

    import uvicorn

    from mcprelay.server import Server
    from mcprelay.wire.origin import HostRules

_LOOPBACK = ("127.", "localhost", "::1")


class HttpOptions(Struct, kw_only=True):
    """How `run("http")` binds.

    Attributes:
        host: The address to bind.
        port: The port; 0 for a free one.
        path: Where the endpoint is.
        sse_path: Where the stream of the older HTTP+SSE transport is; None for none.
        message_path: Where its messages are posted.
        ssl_certfile: A certificate chain, for HTTPS.
        ssl_keyfile: Its key.
        allow_unauthenticated: Whether a server without `auth` may bind more than loopback.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    path: str = "/mcp"
    sse_path: str | None = "/sse"
    message_path: str = "/messages"
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    allow_unauthenticated: bool = False


def host_rules(server: Server, bind: tuple[str, int] | None) -> HostRules:
    """Which hosts and origins a server accepts, by what it is bound to."""
    from mcprelay.wire.origin import HostRules

    host, port = bind or (None, None)
    return HostRules.from_bind(
        host,
        port,
        public_url=server.public_url,
        allowed_hosts=server.allowed_hosts,
        allowed_origins=server.allowed_origins,
    )


def _http_options(options: dict[str, Any]) -> HttpOptions:
    try:
        return HttpOptions(**options)
    except TypeError:
        unknown = ", ".join(sorted(set(options) - set(HttpOptions.__struct_fields__)))
        known = ", ".join(HttpOptions.__struct_fields__)
        msg = f"there is no option {unknown} for http; there are {known}"
        raise ConfigurationError(msg) from None


class Running:
    """A server that runs, or will.

    `async with` it to run it for a while (`url` says where), or await it to run it until it ends by itself.
    """

    def __init__(self, server: Server, transport: str, options: dict[str, Any], *, signals: bool = False) -> None:
        if transport not in ("stdio", "http"):
            msg = f"there is no transport {transport!r}; there are 'stdio' and 'http'"
            raise ConfigurationError(msg)
        if transport == "stdio" and options:
            msg = f"stdio has no options, but {', '.join(sorted(options))} was given"
            raise ConfigurationError(msg)
        self._server = server
        self._http = _http_options(options) if transport == "http" else None
        self._signals = signals
        self._task: asyncio.Task[None] | None = None
        self._uvicorn: uvicorn.Server | None = None
        self._socket: socket.socket | None = None
        if self._http is not None:
            self._check_exposed(self._http)

    def _check_exposed(self, options: HttpOptions) -> None:
        if self._server.auth is None and not options.allow_unauthenticated and not options.host.startswith(_LOOPBACK):
            msg = (
                f"{options.host} is reachable from other machines and this server has no auth="
                " Protect it, bind 127.0.0.1, or say allow_unauthenticated=True."
            )
            raise ConfigurationError(msg)

    @property
    def url(self) -> str:
        """The endpoint's address, once the server runs."""
        if self._socket is None or self._http is None:
            msg = "there is no address: the server does not run over HTTP (yet)"
            raise ConfigurationError(msg)
        host, port = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        scheme = "https" if self._http.ssl_certfile else "http"
        return f"{scheme}://{shown}:{port}/{self._http.path.strip('/')}"

    async def __aenter__(self) -> Self:
        """Start, and return when connections are accepted."""
        started = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(started))
        await asyncio.wait([self._task, started], return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            await self._task
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop: streams get their final message, then everything is closed."""
        assert self._task is not None, "entered before it is left"  # noqa: S101 - the language's promise
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True
        else:
            self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def __await__(self) -> Generator[Any, Any, None]:
        """Run until it ends by itself, or is cancelled."""
        return self._run(None).__await__()

    async def _run(self, started: asyncio.Future[None] | None) -> None:
        self._server.claim()
        try:
            await (self._run_stdio(started) if self._http is None else self._run_http(self._http, started))
        finally:
            self._server.release()

    async def _run_stdio(self, started: asyncio.Future[None] | None) -> None:
        from mcprelay.stdio import open_stdio

        channel = await open_stdio(message_bytes=self._server.limits.message_bytes)
        serving = asyncio.create_task(self._server.serve_channel(channel))
        with self._stopping(serving):
            if started is not None:
                started.set_result(None)
            try:
                await serving
            except asyncio.CancelledError:
                if not serving.cancelled():
                    serving.cancel()
                    raise
            finally:
                await self._server.stop()

    @contextlib.contextmanager
    def _stopping(self, serving: asyncio.Task[None]) -> Generator[None, None, None]:
        """Let SIGINT and SIGTERM end the serving, where this program is the server's own."""
        loop = asyncio.get_running_loop()
        if not self._signals:
            yield
            return
        caught = (signal.SIGINT, signal.SIGTERM)
        for number in caught:
            loop.add_signal_handler(number, serving.cancel)
        try:
            yield
        finally:
            for number in caught:
                loop.remove_signal_handler(number)

    async def _run_http(self, options: HttpOptions, started: asyncio.Future[None] | None) -> None:
        import uvicorn

        from mcprelay.server.asgi import App

        self._socket = _bound(options)
        bind = self._socket.getsockname()[:2]
        app = App(
            self._server,
            host_rules(self._server, bind),
            path=options.path,
            sse_path=options.sse_path,
            message_path=options.message_path,
        )
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on",
            ws="none",
            server_header=False,
            date_header=False,
            ssl_certfile=options.ssl_certfile,
            ssl_keyfile=options.ssl_keyfile,
            timeout_graceful_shutdown=max(1, round(self._server.limits.shutdown_grace)),
        )
        self._uvicorn = _uvicorn_server(config, self._server, started, signals=self._signals)
        try:
            await self._uvicorn.serve(sockets=[self._socket])
        finally:
            self._socket.close()


def _bound(options: HttpOptions) -> socket.socket:
    """A listening socket."""
    try:
        family = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((options.host, options.port), family=family, backlog=2048)
    except OSError as error:
        msg = f"cannot listen on {options.host}:{options.port}: {error.strerror or error}. Choose another port or host."
        raise ConfigurationError(msg) from error
    # Connections inherit it. asyncio sets it only where a socket names its protocol, which `create_server` does not do,
    # and without it the second part of every answer waits for the client's delayed acknowledgement, 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _uvicorn_server(
    config: uvicorn.Config, server: Server, started: asyncio.Future[None] | None, *, signals: bool
) -> uvicorn.Server:
    """uvicorn, which says when it listens, and ends our streams with their final message before it waits for them."""
    import uvicorn

    class Uvicorn(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if started is not None and not started.done():
                started.set_result(None)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            server.changes.close()
            await super().shutdown(sockets)

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None, None, None]:
            if not signals:
                yield
                return
            with super().capture_signals():
                yield

    return Uvicorn(config)


def run(server: Server, transport: str, options: dict[str, Any]) -> None:
    """See `Server.run`."""
    running = Running(server, transport, options, signals=True)

    async def main() -> None:
        await running

    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=fastest_loop()) as runner:
        runner.run(main())


def fastest_loop() -> Any:
    """Uvloop's loop where it is installed, else None for the standard one."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
