"""How a person is asked: by a browser, by a printed URL, by the application's own pages, or not at all.

An `Interaction` brings the redirect URI and gets an authorization URL before a person; what comes back is the URL that
the person was sent to afterwards. Judges no answer: that is `flow`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar
from urllib.parse import urljoin

from mcprelay.auth.address import same_origin
from mcprelay.auth.callback import CallbackServer
from mcprelay.auth.failure import StepFailed, shown
from mcprelay.auth.flow import same_redirect, state_of
from mcprelay.auth.veil import Hidden
from mcprelay.errors import MCPRelayError
from mcprelay.ports import Request, Sender

STEP = "asking the user"

Given = TypeVar("Given")


class Conversation(Protocol):
    """One request for authorization, from before the client is registered until the answer is there."""

    @property
    def redirect_uri(self) -> str:
        """Where the authorization server is to send the person back to."""
        ...

    def ask(self, url: str, /) -> Awaitable[str]:
        """Get `url` before the person and wait for the answer.

        Returns:
            The whole URL to which the person was sent back.
        """
        ...


class Interaction(Protocol):
    """How an application asks its user."""

    def open(self, preferred: Sequence[str] = ()) -> AbstractAsyncContextManager[Conversation]:
        """Begin a conversation; leaving the context ends whatever it listened on.

        Args:
            preferred: Redirect URIs with which the client is registered already. Offering one of them again saves a
                registration; offering another is no error.
        """
        ...


class Loopback:
    """Prints the URL, and waits for the answer on a port of this machine.

    Args:
        write: Gets each line that the person should read; stderr when None.
        host: `127.0.0.1`, or `localhost` for an authorization server that takes only that.
        port: A fixed port, for redirect URIs that were registered by hand; 0 for one that is free.
        path: The path of the redirect URI.

    Raises:
        ConfigurationError: The host is not this machine, or the path is none.
    """

    def __init__(
        self,
        *,
        write: Callable[[str], object] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        path: str = "/callback",
    ) -> None:
        CallbackServer(host=host, path=path)  # says now what would be wrong later
        self._write = write or _to_stderr
        self.host = host
        self.port = port
        self.path = path

    @contextlib.asynccontextmanager
    async def open(self, preferred: Sequence[str] = ()) -> AsyncGenerator[Conversation]:
        """Listen, on the port of a preferred redirect URI where that is possible."""
        server = CallbackServer(host=self.host, path=self.path)
        await server.start(self.port, preferred=preferred)
        try:
            yield _LoopbackConversation(server, self.present)
        finally:
            await server.aclose()

    async def present(self, url: str) -> None:
        """Get the URL before the person."""
        self._write(f"To authorize, open this address in a browser on this machine:\n\n    {url}\n")


class Browser(Loopback):
    """Opens the person's browser, and waits for the answer on a port of this machine.

    Where no browser can be started, the URL is printed.

    Args:
        launch: Opens a URL and says whether it could; the standard library's `webbrowser` when None.
        write: As for `Loopback`, and so are `host`, `port` and `path`.
    """

    def __init__(
        self,
        *,
        launch: Callable[[str], bool] | None = None,
        write: Callable[[str], object] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        path: str = "/callback",
    ) -> None:
        super().__init__(write=write, host=host, port=port, path=path)
        self._launch = launch or open_browser

    async def present(self, url: str) -> None:
        """Open the browser at the URL."""
        if await _beside(lambda: self._launch(url)):
            self._write("Your browser was opened to authorize this program. If nothing shows, open this address:")
            self._write(f"\n    {url}\n")
        else:
            await super().present(url)


class _LoopbackConversation:
    def __init__(self, server: CallbackServer, present: Callable[[str], Awaitable[None]]) -> None:
        self._server = server
        self._present = present

    @property
    def redirect_uri(self) -> str:
        return self._server.redirect_uri

    async def ask(self, url: str) -> str:
        self._server.expect(state_of(url))
        await self._present(url)
        return await self._server.answer()


class Paste:
    """Prints the URL and lets the person paste the address that the browser ends at: for a machine without a browser.

    The last page of the browser will not load, because nothing listens there; its address is what counts.

    Args:
        redirect_uri: The redirect URI.
        write: Gets each line that the person should read; stderr when None.
        read: Gets one line from the person, in a thread of its own; from standard input when None.
    """

    def __init__(
        self,
        *,
        redirect_uri: str = "http://127.0.0.1:33418/callback",
        write: Callable[[str], object] | None = None,
        read: Callable[[], str] | None = None,
    ) -> None:
        self.redirect_uri = redirect_uri
        self._write = write or _to_stderr
        self._read = read or _line

    @contextlib.asynccontextmanager
    async def open(self, preferred: Sequence[str] = ()) -> AsyncGenerator[Conversation]:
        """Nothing is listened on."""
        yield self

    async def ask(self, url: str) -> str:
        """Print the URL and read the answer."""
        self._write(f"Open this address in a browser on any machine:\n\n    {url}\n")
        self._write("Then paste the address of the page that it ends at (that page will not load):")
        try:
            pasted = Hidden((await _beside(self._read)).strip())
        except EOFError as error:
            raise StepFailed(
                STEP, "the input ended before an address was pasted; run it where somebody can paste one"
            ) from error
        if "://" not in pasted:  # some browsers hide the scheme
            pasted = Hidden(f"{self.redirect_uri.partition('://')[0]}://{pasted}")
        if not same_redirect(pasted, self.redirect_uri):
            raise StepFailed(STEP, f"what was pasted does not begin with {self.redirect_uri}; paste the whole address")
        return pasted


class Application:
    """The application asks in its own way: a web application that redirects, a desktop application with a scheme.

    Args:
        redirect_uri: The application's redirect URI.
        ask: Gets the authorization URL before the right person and gives the whole URL to which that person came back.
            It must belong to the person on whose behalf the client calls.
    """

    def __init__(self, redirect_uri: str, ask: Callable[[str], Awaitable[str]]) -> None:
        self.redirect_uri = redirect_uri
        self.ask = ask

    @contextlib.asynccontextmanager
    async def open(self, preferred: Sequence[str] = ()) -> AsyncGenerator[Conversation]:
        """The application listens already."""
        yield self


class Headless:
    """Nobody is asked: the authorization URL is fetched, and its redirect is the answer. For tests.

    Args:
        sender: Sends the request.
        redirect_uri: The redirect URI; nothing listens there.
        steps: How many redirects are followed within the authorization server.
    """

    def __init__(
        self, sender: Sender, *, redirect_uri: str = "http://127.0.0.1:33418/callback", steps: int = 5
    ) -> None:
        self.redirect_uri = redirect_uri
        self._sender = sender
        self._steps = steps

    @contextlib.asynccontextmanager
    async def open(self, preferred: Sequence[str] = ()) -> AsyncGenerator[Conversation]:
        """Nothing is listened on."""
        yield self

    async def ask(self, url: str) -> str:
        """Follow the authorization URL, within its own origin, until it leads to the redirect URI.

        Raises:
            StepFailed: It leads nowhere, or elsewhere.
        """
        for _ in range(self._steps):
            status, location = await self._step(url)
            if not 300 <= status < 400 or location is None:
                raise StepFailed(STEP, f"the authorization page answered {status} and sent nobody back")
            before, url = url, urljoin(url, location)
            if same_redirect(url, self.redirect_uri):
                return url
            if not same_origin(before, url):
                raise StepFailed(STEP, f"the authorization page sent everybody to {shown(url)}")
        raise StepFailed(STEP, f"the authorization page redirected {self._steps} times and never back")

    async def _step(self, url: str) -> tuple[int, str | None]:
        try:
            async with self._sender.send(Request(method="GET", url=url)) as reply:
                return reply.status, reply.headers.get("location")
        except MCPRelayError as error:
            raise StepFailed(STEP, f"{shown(url)} could not be reached: {error}") from error


class Refuse:
    """Nobody can be asked here: a service, a build. What would need a person fails and says which command to run.

    Args:
        advice: What to do instead, as a sentence without a full stop; or a function that gives one for the scopes that
            a step up needs, none for a first login.
    """

    def __init__(
        self, advice: str | Callable[[Sequence[str]], str] = "log in first, where a person can be asked"
    ) -> None:
        self._advice = advice

    def advice(self, scope: Sequence[str] = ()) -> str:
        """What to do instead."""
        return self._advice if isinstance(self._advice, str) else self._advice(scope)

    def refusal(self, scope: Sequence[str] = ()) -> StepFailed:
        """The error of whoever wanted to ask."""
        return StepFailed(STEP, f"no person can be asked here; {self.advice(scope)}")

    @contextlib.asynccontextmanager
    async def open(self, preferred: Sequence[str] = ()) -> AsyncGenerator[Conversation]:
        """Fails.

        Raises:
            StepFailed: Always.
        """
        raise self.refusal()
        yield self  # type: ignore[unreachable]  # makes this a context manager like the others


async def _beside(work: Callable[[], Given]) -> Given:
    """Do what may wait for a person without an end. No thread that a program waits for when it ends: it would not."""
    outcome: Future[Given] = Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(work())
        except Exception as error:  # noqa: BLE001 - whoever waits has it
            outcome.set_exception(error)

    threading.Thread(target=run, name="mcprelay-person", daemon=True).start()
    return await asyncio.wrap_future(outcome)


def _line() -> str:
    """A line of standard input, past its buffer: a process that ends while a thread holds the buffer is aborted."""
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(sys.stdin.fileno(), 4096)
        if not piece and not line:
            raise EOFError
        if not piece:
            break
        line += piece
    return line.decode("utf-8", "replace")


def _to_stderr(text: str) -> None:
    """Never stdout: a stdio server's protocol and a command's output go there."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def open_browser(url: str) -> bool:
    """Open the default browser, and say whether there is one.

    The URL is known to be http or https, so no program's option can be in it.
    """
    import webbrowser

    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False
