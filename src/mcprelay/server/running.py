"""Running a server: stdio, or HTTP on uvicorn, from a script (`run`) or from async code (`Running`)."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from typing import TYPE_CHECKING, Any, Self

import mcprelay
from mcprelay.errors import ConfigurationError
from mcprelay.server.listening import HttpOptions, bound, insist_on_signals, listener, on_signals
from mcprelay.wire.spelling import closest

if TYPE_CHECKING:
    import socket
    from collections.abc import Generator

    import uvicorn

    from mcprelay.server import Server
    from mcprelay.server.ending import Ending
    from mcprelay.wire.origin import HostRules

_OPTIONS = {"stdio": ("state",), "http": HttpOptions.__struct_fields__}


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


def _check(transport: str, options: dict[str, Any]) -> None:
    known = _OPTIONS.get(transport)
    if known is None:
        raise ConfigurationError(f"there is no transport {transport!r}; there are 'stdio' and 'http'")
    unknown = sorted(set(options) - set(known))
    if unknown:
        close = closest(unknown[0], known)
        advice = f"did you mean {close!r}?" if close else f"there are {', '.join(known)}"
        raise ConfigurationError(f"there is no option {unknown[0]!r} for {transport}; {advice}")


class Running:
    """A server that runs, or will.

    `async with` it to run it for a while (`url` says where), or await it to run it until it ends by itself.
    """

    def __init__(
        self, server: mcprelay.Server, transport: str, options: dict[str, Any], *, alone: bool = False
    ) -> None:
        """Prepare.

        Args:
            server: The server.
            transport: How it is reached.
            options: See `mcprelay.server.option.RunOptions`.
            alone: Whether the process is there for nothing else: signals end it, and what hangs does not keep it.

        Raises:
            ConfigurationError: The transport or an option will not do.
        """
        _check(transport, options)
        self._server = server
        self._http = HttpOptions(**options) if transport == "http" else None
        self._state = options.get("state")
        self._alone = alone
        self._last: threading.Timer | None = None
        self._task: asyncio.Task[None] | None = None
        self._listener: uvicorn.Server | None = None
        self._socket: socket.socket | None = None
        self.ending: Ending | None = None
        if self._http is not None:
            self._http.check(protected=server.auth is not None)

    @property
    def url(self) -> str:
        """The endpoint's address, once the server runs."""
        if self._socket is None or self._http is None:
            raise ConfigurationError("there is no address: the server does not run over HTTP (yet)")
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
        if self._listener is not None:
            self._listener.should_exit = True
        else:
            self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def announced(self) -> None:
        """Run until it ends by itself, and over HTTP tell the person at the terminal where it is."""
        started = asyncio.get_running_loop().create_future()
        started.add_done_callback(lambda _: self._announce())
        await self._run(started)

    def _announce(self) -> None:
        if self._http is not None:
            sys.stderr.write(f"{self._server.info.name} is served at {self.url} (Ctrl-C ends it)\n")
            sys.stderr.flush()

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
        linger = self._server.limits.eof_grace
        serving = asyncio.create_task(self._server.serve_channel(channel, state=self._state, linger=linger))
        with self._ending_at(serving):
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
    def _ending_at(self, serving: asyncio.Task[None]) -> Generator[None, None, None]:
        """Where the process is there for nothing else, let signals and the client's absence end it for certain."""
        if not self._alone:
            yield
            return
        from mcprelay.server.ending import Ending
        from mcprelay.stdio import descriptor

        descriptors = descriptor.secure()
        ending = self.ending = Ending(
            asyncio.get_running_loop(), descriptors.reads, seconds=self._server.limits.cancel_grace / 2
        )
        try:
            with on_signals(serving.cancel):
                insist_on_signals(ending.told)
                yield
        finally:
            ending.over()
            descriptors.release()

    async def _run_http(self, options: HttpOptions, started: asyncio.Future[None] | None) -> None:
        from mcprelay.server.asgi import App

        self._socket = bound(options)
        bind = self._socket.getsockname()[:2]
        app = App(
            self._server,
            host_rules(self._server, bind),
            path=options.path,
            sse_path=options.sse_path,
            message_path=options.message_path,
        )
        self._listener = listener(app, self._server, options, started, signals=self._alone, insist=self._insist)
        try:
            await self._server.start()  # uvicorn would exit where the lifespan fails, and say why in its own log alone
            await self._listener.serve(sockets=[self._socket])
        finally:
            self._socket.close()
            await self._server.stop()

    def _insist(self) -> None:
        """A signal says that the process shall end: it does, soon, whatever its handlers do."""
        if self._last is None:
            limits = self._server.limits
            self._last = threading.Timer(limits.shutdown_grace + limits.cancel_grace, _end)
            self._last.daemon = True
            self._last.start()

    def ended(self) -> None:
        """The program goes on with what comes after serving."""
        if self._last is not None:
            self._last.cancel()
        if self.ending is not None:
            self.ending.returned()


def _end() -> None:
    from mcprelay.stdio.server import exit_within

    exit_within(0.0)


def run(server: Server, transport: str, options: dict[str, Any]) -> None:
    """See `Server.run`."""
    running = Running(server, transport, options, alone=True)
    _insist_on_own_loop()

    async def main() -> None:
        await running.announced()

    try:
        with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=fastest_loop()) as runner:
            runner.run(main())
    finally:
        running.ended()


def _insist_on_own_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ConfigurationError(
        "run() makes an event loop of its own, and there is one running here: say `await server.serve(…)` instead"
    )


def fastest_loop() -> Any:
    """Uvloop's loop where it is installed, else None for the standard one."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
