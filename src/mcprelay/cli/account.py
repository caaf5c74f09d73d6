"""Logging in at a server and out again, for commands and for servers with `auth = "oauth"`.

Knows what a person wants and what the server's table in `mcprelay.toml` says of the way to it. How a token is had is
the work of `mcprelay.auth`.
"""

from __future__ import annotations

import shlex
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from mcprelay.cli.show import say
from mcprelay.errors import ConfigurationError, MCPRelayError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from mcprelay.auth import Interaction, OAuth, Registered
    from mcprelay.ports import Sender
    from mcprelay.relay.settings import ServerSettings

_REDIRECT_PORT = 33418


class Wishes(Struct, frozen=True, kw_only=True):
    """How a person wants to log in.

    Attributes:
        scope: Scopes to ask for beside those that the server wants.
        client_id: A client that was registered by hand.
        client_secret: Its secret.
        port: The port of the redirect URI, 0 for one that is free.
        paste: Whether the person pastes the answer, on a machine without a browser.
        allowed_hosts: Hosts and networks that the server may name although they are not public.
    """

    scope: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    port: int = 0
    paste: bool = False
    allowed_hosts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Wishes(…)"

    def client(self) -> Registered | None:
        """The client that was registered by hand, or None.

        Raises:
            ConfigurationError: There is a secret alone.
        """
        from mcprelay.auth import Registered

        if self.client_id is not None:
            return Registered(client_id=self.client_id, client_secret=self.client_secret)
        if self.client_secret is not None:
            raise ConfigurationError(
                "--client-secret (MCPRELAY_CLIENT_SECRET) is that of a client: give --client-id too"
            )
        return None

    def interaction(self) -> Interaction:
        """How the person is asked."""
        from mcprelay.auth import Browser, Paste

        if self.paste:
            return Paste(redirect_uri=f"http://127.0.0.1:{self.port or _REDIRECT_PORT}/callback")
        return Browser(port=self.port, launch=_launch)


def _launch(url: str) -> bool:
    from mcprelay.auth.interaction import open_browser

    opened = open_browser(url)
    if not opened:
        say("no browser can be opened here; with --paste one on another machine will do")
    return opened


async def login(target: str, wishes: Wishes = Wishes()) -> None:  # noqa: B008 - it is frozen
    """Get a token for a URL, or for a name in `mcprelay.toml`, and keep it."""
    from mcprelay.auth import login as account
    from mcprelay.auth.oauth import OAuth
    from mcprelay.auth.store import FileStore

    url, server = meant(target)
    given = OAuth(
        store=FileStore(),
        scopes=wishes.scope or (),
        client=wishes.client(),
        interaction=wishes.interaction(),
        allowed_hosts=wishes.allowed_hosts,
    )
    headers = {name: secret.value for name, secret in server.headers.items()}
    async with _sender(server) as sender:
        auth = _bindable(given, server, url)
        found = await account.login(url, auth=auth, sender=sender, headers=headers, client="remembered")
    say(f"logged in at {found.server} by {found.issuer}; scope: {' '.join(found.scope) or 'none named'}")
    if server.name != url and server.auth is None:
        say(f'set auth = "oauth" for [servers.{target}] in mcprelay.toml: until then its token is not used there')


async def logout(target: str) -> None:
    """Forget a token, and have it made worthless where that is offered."""
    from mcprelay.auth import login as account
    from mcprelay.auth.failure import StepFailed

    url, server = meant(target)
    try:
        async with _sender(server) as sender:
            auth = _bindable(account.stored(target), server, url)
            outcome = await account.logout(url, auth=auth, sender=sender)
    except StepFailed as error:
        raise MCPRelayError(f"{error}. The token is forgotten here all the same") from error
    said = {
        "revoked": "the token is forgotten here and worthless there",
        "not offered": "the token is forgotten here; the server cannot make it worthless",
        "none": "there was no token",
    }
    say(said[outcome])


def _bindable(auth: OAuth, server: ServerSettings, url: str) -> OAuth:
    """What may go to the server as its table says; how an authorization server is reached, no table says."""
    return auth.over_plaintext(url) if server.allow_plaintext else auth


def meant(target: str) -> tuple[str, ServerSettings]:
    """The URL that a target means, and what its table says; nothing more, where the target is the URL.

    Raises:
        ConfigurationError: It is none, and no server with a URL in `mcprelay.toml`.
    """
    from mcprelay.relay import config
    from mcprelay.relay.settings import ServerSettings

    if is_url(target):
        return target, ServerSettings(name=target, transport="http", url=target)
    if not Path(config.FILE).exists():
        raise ConfigurationError(
            f"{target!r} is no URL (http:// or https://), and there is no {config.FILE} here that could name it"
        )
    server = config.load().server(target)
    if server.url is None:
        raise ConfigurationError(
            f"the server {target!r} is a command, so there is nowhere to log in; env in its table gives it credentials"
        )
    return server.url, server


@asynccontextmanager
async def _sender(server: ServerSettings) -> AsyncGenerator[Sender]:
    """An HTTP client that goes the way of a server's table, as what is stored will be used and renewed."""
    from mcprelay.client.http import HttpSender
    from mcprelay.relay.network import network

    way = network(server)
    way.pop("allow_plaintext", None)  # what may go where, the credentials know
    sender = HttpSender(**way)
    try:
        yield sender
    finally:
        await sender.aclose()


def advised(
    auth: Any, *, target: str, url: str, headers: Iterable[str], plaintext: Literal["refused", "allowed"] = "refused"
) -> Any:
    """What a command shows to a server, such that a refusal says what to run.

    Args:
        auth: A token, None, or what says so by itself.
        target: What the person wrote.
        url: The address that it means.
        headers: The names of the headers that go with each request.
        plaintext: Whether it may be shown over plain HTTP to another machine.
    """
    from mcprelay.auth.address import insecure, parse
    from mcprelay.auth.bearer import Anonymous, StaticToken

    try:
        if insecure(parse(url)) is not None and plaintext == "refused":
            return auth  # nothing may be shown there, and the client says so
    except ValueError:
        return auth
    login = f"run: {shlex.join(['mcprelay', 'login', target])}"
    if not is_url(target):
        login = f'set auth = "oauth" for it in mcprelay.toml and {login}'
    if isinstance(auth, str):
        return StaticToken(auth, advice=f"give another; or give none, and {login}")
    if auth is not None:
        return auth
    if any(each.lower() == "authorization" for each in headers):
        return Anonymous(
            advice=f"the header Authorization is not what it wants: give another; or give none, and {login}"
        )
    return Anonymous(advice=f"no credentials were given: {login}; or give a token")


def is_url(target: str) -> bool:
    """Whether it is the address of a server, and no name of one."""
    return target.startswith(("http://", "https://"))
