"""HTTP on uvicorn: options, the listening socket, and a uvicorn that starts and stops as this package's servers do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcprelay.errors import ConfigurationError
from mcprelay.server.cutting import cutting
from mcprelay.wire.authority import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import uvicorn

    from mcprelay.server import Server
    from mcprelay.server.asgi import App
    from mcprelay.server.limits import Limits


_PATHS = {"path": "/mcp", "sse_path": "/sse", "message_path": "/messages"}


class HttpOptions(Struct, kw_only=True):
    """How `run("http")` binds. See `mcprelay.server.option.RunOptions`."""

    host: str = "127.0.0.1"
    port: int = 8000
    path: str = "/mcp"
    sse_path: str | None = "/sse"
    message_path: str = "/messages"
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    allow_unauthenticated: bool = False
    fd: int | None = None

    def check(self, *, protected: bool) -> None:
        """Whether a server may be bound so.

        Raises:
            ConfigurationError: An option will not do.
        """
        host: Any = self.host  # whatever a user passed
        port: Any = self.port
        if not isinstance(host, str) or not host:
            raise ConfigurationError(f"host: an address or a name to bind, such as '127.0.0.1', and not {host!r}")
        if not isinstance(port, int) or not 0 <= port < 2**16:
            raise ConfigurationError(f"port: a number from 0 to 65535, and not {port!r}")
        for option in ("path", "sse_path", "message_path"):
            given = getattr(self, option)
            if not isinstance(given, str) and not (given is None and option == "sse_path"):
                raise ConfigurationError(f"{option}: a path such as {_PATHS[option]!r}, and not {given!r}")
        for option in ("ssl_certfile", "ssl_keyfile"):
            file = getattr(self, option)
            if file is not None and not Path(file).is_file():
                raise ConfigurationError(f"{option}: there is no file {file!r}")
        if self.ssl_keyfile is not None and self.ssl_certfile is None:
            raise ConfigurationError("ssl_keyfile is of no use without ssl_certfile")
        bound_to = self.host if self.fd is None else _inherited(self.fd)
        if not protected and not self.allow_unauthenticated and not is_loopback(bound_to):
            raise ConfigurationError(
                f"{bound_to} is reachable from other machines and this server has no auth=."
                " Protect it, bind 127.0.0.1, or say allow_unauthenticated=True."
            )


def bound(options: HttpOptions) -> socket.socket:
    """A listening socket.

    Raises:
        ConfigurationError: There cannot be one.
    """
    try:
        if options.fd is not None:
            listening = socket.socket(fileno=os.dup(options.fd))
        else:
            family = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0][0]
            listening = socket.create_server((options.host, options.port), family=family, backlog=2048)
    except OSError as error:
        msg = f"cannot listen on {options.host}:{options.port}: {error.strerror or error}. Choose another port or host."
        raise ConfigurationError(msg) from error
    # Connections inherit it. asyncio sets it only where a socket names its protocol, which `create_server` does not do,
    # and without it the second part of every answer waits for the client's delayed acknowledgement, 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _inherited(fd: int) -> str:
    """The address that a socket is bound to which somebody else made."""
    try:
        with socket.socket(fileno=os.dup(fd)) as made:
            listens = made.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if made.family in {socket.AF_INET, socket.AF_INET6} and listens:
                return str(made.getsockname()[0])
    except (OSError, TypeError, OverflowError, ValueError) as error:
        raise ConfigurationError(f"fd: {fd!r} is no descriptor of a socket: {error}") from error
    raise ConfigurationError(f"fd: {fd!r} is no socket that listens for TCP connections")


def listener(
    app: App,
    server: Server,
    options: HttpOptions,
    started: asyncio.Future[None] | None,
    *,
    signals: bool,
    insist: Callable[[], None],
) -> uvicorn.Server:
    """A uvicorn that says when it listens, and ends streams with their final message before it waits for them.

    Args:
        app: What it serves.
        server: Whose app that is.
        options: How it serves.
        started: Set when connections are accepted.
        signals: Whether SIGINT and SIGTERM end it; the second one at once. `serve` returns then like at any other end.
        insist: Called at such a signal even while the loop is blocked, from the main thread.
    """
    import uvicorn

    class Listener(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if started is not None and not started.done():
                started.set_result(None)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            server.changes.close()
            with cutting(server, self.server_state.tasks):
                await super().shutdown(sockets)

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None, None, None]:
            with contextlib.ExitStack() as stack:
                if signals:
                    stack.enter_context(on_signals(self._told))
                    insist_on_signals(insist)
                yield

        def _told(self) -> None:
            self.force_exit = self.should_exit
            self.should_exit = True

    return Listener(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on",
            ws="none",
            server_header=False,
            date_header=False,
            ssl_certfile=options.ssl_certfile,
            ssl_keyfile=options.ssl_keyfile,
            timeout_graceful_shutdown=_patience(server.limits),
        )
    )


def _patience(limits: Limits) -> Any:
    """Seconds after which uvicorn gives up what does not even end when it is cancelled."""
    return limits.shutdown_grace + limits.cancel_grace / 2


def insist_on_signals(insist: Callable[[], None]) -> None:
    """Beside the loop's own handlers, which a blocked loop never calls: call `insist` at SIGINT and SIGTERM."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(number, lambda *_: insist())


@contextlib.contextmanager
def on_signals(told: Any) -> Generator[None, None, None]:
    """Call `told` on the running loop at SIGINT and SIGTERM, as long as the context is entered."""
    loop = asyncio.get_running_loop()
    caught = []
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, told)
        except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            continue
        caught.append(number)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
